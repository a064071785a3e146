# Timings, and the peers that they are compared with.
BENCHES := $(filter $(BUILD)/tests/bench/%,$(PROGRAMS))
BENCH_RUN := $(filter $(BUILD)/tests/bench/$(BENCH)%,$(BENCHES))
PEERS := build/peers

.PHONY: bench bench-peers
bench: $(BENCH_RUN) ## timings and their ceilings, beside each peer that is installed (BENCH=gemm: one)
	@if [ -z '$(BENCH_RUN)' ]; then echo 'make bench BENCH=..., one of: $(notdir $(BENCHES))'; exit 1; fi
	@set -e; for program in $(BENCH_RUN); do \
	  TAPEHEAD_PYTHON=$$(ls $(PEERS)/bin/python3 2>/dev/null || command -v python3 || :) $$program $(ARGS); \
	done

# PyTorch's own index has builds without the graphics libraries; where it cannot be reached, PyPI has one of 3 GB.
bench-peers: ## NumPy and PyTorch for `make bench` to compare with, in build/peers
	@python3 -m venv $(PEERS) || { echo 'on Debian and Ubuntu: apt-get install -y python3-venv'; exit 1; }
	$(PEERS)/bin/pip install --quiet numpy safetensors micrograd
	$(PEERS)/bin/pip install --quiet --retries 0 --index-url https://download.pytorch.org/whl/cpu torch \
	  2>/dev/null || $(PEERS)/bin/pip install --quiet torch
	@$(PEERS)/bin/python3 -c 'import numpy, torch; print("numpy", numpy.__version__, "torch", torch.__version__)'
