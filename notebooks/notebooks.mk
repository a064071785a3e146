# The notebooks: `make notebook` to read them, `make notebooks` to check them. All that Jupyter needs and writes is in
# the build folder; nothing goes into the reader's home.
NOTEBOOKS := $(sort $(wildcard notebooks/*.ipynb))
NB := $(abspath $(BUILD))/notebooks
NB_KERNEL := notebooks/kernel
NB_PYTHON := $(NB)/venv/bin/python3
NB_ENV := JUPYTER_PATH='$(NB)/share/jupyter' JUPYTER_CONFIG_DIR='$(NB)/home/config' \
  JUPYTER_DATA_DIR='$(NB)/home/data' JUPYTER_RUNTIME_DIR='$(NB)/home/runtime' JUPYTER_PLATFORM_DIRS=1 \
  JUPYTERLAB_SETTINGS_DIR='$(NB)/home/lab' JUPYTERLAB_WORKSPACES_DIR='$(NB)/home/workspaces' \
  IPYTHONDIR='$(NB)/home/ipython' XDG_CACHE_HOME='$(NB)/home/cache' PYTHONDONTWRITEBYTECODE=1 \
  XCPP20_CONFIG='$(NB)/config.json'

# A cell is not optimised, which halves the wait for it: what takes long is in the library. It has checked
# containers, and what a compiler knows to be wrong is an error.
NB_CELL := $(CXX) -I$(NB)/precompiled $(filter-out $(WARNINGS),$(FLAGS)) $(MARCH_FLAGS) $(OPENMP_CXXFLAGS) \
  -I$(abspath include) -I$(abspath notebooks) -I$(abspath $(NB_KERNEL)) $(LIBRARY_CPPFLAGS) $(CPPFLAGS) $(CXXFLAGS) \
  -DXCPP20 -D_GLIBCXX_ASSERTIONS -O0 -g0 -fPIC -Werror=return-type -Werror=return-local-addr -Werror=uninitialized
NB_CELL_PRECOMPILED := $(if $(findstring clang,$(CXX)),-include-pch $(NB)/precompiled/setup.hpp.gch)

.PHONY: notebook notebooks notebooks-update notebooks-kernel-test
notebook: $(NB)/ready $(NB)/venv/lab ## open the notebooks in the browser
	@$(NB_ENV) $(NB)/venv/bin/jupyter lab --notebook-dir=notebooks $(if $(filter 0,$(shell id -u)),--allow-root) $(ARGS)

notebooks: $(NB)/ready ## run every notebook and compare what comes out with what is stored
	@$(NB_ENV) $(NB_PYTHON) notebooks/run.py check $(or $(N_B),$(NOTEBOOKS))

notebooks-update: $(NB)/ready ## run every notebook and store what comes out
	@$(NB_ENV) $(NB_PYTHON) notebooks/run.py update $(or $(N_B),$(NOTEBOOKS))

notebooks-kernel-test: $(NB)/ready ## what the notebooks' C++ kernel does with cells of every kind
	@$(NB_ENV) $(NB_PYTHON) $(NB_KERNEL)/test.py

NB_PRECOMPILED := $(NB)/precompiled/setup.hpp.gch $(NB)/precompiled/xcpp20.hpp.gch
$(NB)/ready: $(NB)/host $(NB_PRECOMPILED) $(NB)/venv/ready $(NB_KERNEL)/install.py notebooks/notebooks.mk
	$(Q)XCPP20_COMPILE='$(NB_CELL) $(NB_CELL_PRECOMPILED) -shared' $(NB_PYTHON) $(NB_KERNEL)/install.py $(NB)
	$(Q)touch $@

$(NB)/venv/ready: $(NB_KERNEL)/venv.sh
	$(Q)$(NB_KERNEL)/venv.sh $(NB)/venv 'ipykernel>=6.20,<8' 'nbclient>=0.8,<1' 'nbformat>=5.7,<6'
	$(Q)touch $@

$(NB)/venv/lab: $(NB)/venv/ready
	$(Q)$(NB_KERNEL)/venv.sh $(NB)/venv 'jupyterlab>=4,<5'
	@mkdir -p $(NB)/venv/share/jupyter/lab/settings
	@echo '{"@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": false}}' \
	  >$(NB)/venv/share/jupyter/lab/settings/overrides.json
	$(Q)touch $@

# The whole library is in the host, and open to the cells, which are loaded into it.
$(NB)/host: $(NB)/host.o $(LIB)
	$(Q)$(LINK) $< -Wl,--whole-archive $(LIB) -Wl,--no-whole-archive -rdynamic $(LIBRARY_LDFLAGS) -lfmt \
	  $(OPENMP_LDFLAGS) -ldl -pthread -o $@

$(NB)/host.o: $(NB_KERNEL)/host.cpp $(BUILD)/config.mk
	$(call say,$<)
	@mkdir -p $(@D)
	$(Q)$(COMPILE) $(OPT_PROGRAM) -MMD -MP -c $< -o $@

vpath xcpp20.hpp $(NB_KERNEL)
vpath setup.hpp notebooks
$(NB)/precompiled/%.hpp.gch: %.hpp $(BUILD)/config.mk notebooks/notebooks.mk
	$(call say,$<)
	@mkdir -p $(@D)
	$(Q)$(NB_CELL) -w -MMD -MP -x c++-header $< -o $@

-include $(NB)/host.d $(NB_PRECOMPILED:.gch=.d)
