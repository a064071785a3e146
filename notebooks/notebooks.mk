# The notebooks: `make notebook` to read them, `make notebooks` to check them. Everything that Jupyter needs and writes is
# in the build folder; nothing is written into the reader's home. All paths are relative, since they may have spaces above.
NOTEBOOKS := $(sort $(wildcard notebooks/*.ipynb))
NB := $(BUILD)/notebooks
NB_PYTHON := $(NB)/venv/bin/python3
NB_PIP = $$($(NB_PYTHON) -c 'import pip' 2>/dev/null && echo $(NB_PYTHON) -m pip || echo python3 -m pip --python $(NB_PYTHON)) \
  install --quiet --disable-pip-version-check --no-cache-dir --no-warn-script-location
NB_ENV = nb=$$(cd '$(NB)' && pwd) && export JUPYTER_PATH="$$nb/share/jupyter" JUPYTER_CONFIG_DIR="$$nb/home/config" \
  JUPYTER_DATA_DIR="$$nb/home/data" JUPYTER_RUNTIME_DIR="$$nb/home/runtime" JUPYTER_PLATFORM_DIRS=1 \
  JUPYTERLAB_SETTINGS_DIR="$$nb/home/lab" JUPYTERLAB_WORKSPACES_DIR="$$nb/home/workspaces" \
  IPYTHONDIR="$$nb/home/ipython" XDG_CACHE_HOME="$$nb/home/cache" PYTHONDONTWRITEBYTECODE=1 &&

# Cells are compiled without optimisation, which halves the wait: the code that takes long to run is in the library.
# Containers check their indices, and what the compiler knows to be wrong is an error.
NB_CELL = $(filter-out -W%,$(TAPEHEAD_COMPILE)) -I$(NB)/precompiled -Inotebooks -Inotebooks/kernel -DXCPP20 -UNDEBUG \
  -D_GLIBCXX_ASSERTIONS -O0 -g0 -fPIC -Werror=return-type -Werror=return-local-addr -Werror=uninitialized
NB_CLANG = $(if $(findstring clang,$(CXX)),-include-pch $(NB)/precompiled/setup.hpp.gch)

.PHONY: notebook notebooks notebooks-update notebooks-kernel-test notebooks-force
notebook: $(NB)/ready $(NB)/venv/lab ## open the notebooks in the browser
	@$(NB_ENV) mkdir -p "$$nb/checkpoints" && $(NB_PYTHON) -m nbformat.sign $(NOTEBOOKS) >"$$nb/trusted" && \
	  exec $(NB_PYTHON) -m jupyterlab --ServerApp.root_dir="$$PWD/notebooks" --FileCheckpoints.checkpoint_dir="$$nb/checkpoints" \
	  $(if $(filter 0,$(shell id -u)),--allow-root) $(ARGS)

notebooks: $(NB)/ready ## run every notebook and compare the outputs with the stored ones
	@$(NB_ENV) $(NB_PYTHON) notebooks/run.py check $(or $(N_B),$(NOTEBOOKS))

notebooks-update: $(NB)/ready ## run every notebook and store the outputs
	@$(NB_ENV) $(NB_PYTHON) notebooks/run.py update $(or $(N_B),$(NOTEBOOKS))

notebooks-kernel-test: $(NB)/ready $(NB)/venv/lab ## test the notebooks' C++ kernel with cells of every kind (N_B=what_goes_wrong: one session)
	@$(NB_ENV) $(NB_PYTHON) notebooks/kernel/test.py $(or $(N_B),all) $(NOTEBOOKS)

$(NB)/ready: $(NB)/host $(NB)/precompiled/setup.hpp.gch $(NB)/venv/ready notebooks/kernel/kernel.py
	$(Q)$(NB_PYTHON) notebooks/kernel/kernel.py install $(NB) && touch $@

$(NB)/venv/ready: notebooks/kernel/requirements.txt
	@echo "  Jupyter's Python packages" && mkdir -p $(NB) && \
	  if python3 -c 'import ensurepip' 2>/dev/null; then python3 -m venv $(NB)/venv; else python3 -m venv --without-pip $(NB)/venv; fi && \
	  $(NB_PIP) -r $< || { echo 'notebooks need Python 3.9 or newer with pip (on Debian and Ubuntu: apt-get install -y python3-venv)'; exit 1; }
	$(Q)touch $@

$(NB)/venv/lab: $(NB)/venv/ready
	@echo '  JupyterLab' && $(NB_PIP) 'jupyterlab>=4,<5' && mkdir -p $(NB)/venv/share/jupyter/lab/settings && \
	  echo '{"@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": false}}' \
	  >$(NB)/venv/share/jupyter/lab/settings/overrides.json && touch $@

# The whole library is in the host and visible to the cells, which are loaded into it.
$(NB)/host: notebooks/kernel/host.cpp notebooks/kernel/cell.hpp $(firstword $(TAPEHEAD_LDLIBS)) $(NB)/command
	@echo '  $<'
	$(Q)$(TAPEHEAD_COMPILE) -c $< -o $@.o && $(TAPEHEAD_LINK) $@.o -Wl,--whole-archive $(firstword $(TAPEHEAD_LDLIBS)) \
	  -Wl,--no-whole-archive -rdynamic $(wordlist 2,99,$(TAPEHEAD_LDLIBS)) -ldl -pthread -o $@

$(NB)/precompiled/setup.hpp.gch: notebooks/setup.hpp $(NB)/command
	@echo '  $<' && mkdir -p $(@D)
	$(Q)$(NB_CELL) -w -MMD -MP -x c++-header $< -o $@

$(NB)/command: notebooks-force
	@mkdir -p $(@D) && echo '$(NB_CELL) $(NB_CLANG)' | cmp -s - $@ || echo '$(NB_CELL) $(NB_CLANG)' >$@

-include $(NB)/precompiled/setup.hpp.d
