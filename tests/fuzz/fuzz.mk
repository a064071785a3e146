# Included by the Makefile: `make fuzz` runs each program of this folder for FUZZ_SECONDS, where there is clang++ with
# libFuzzer; 0 leaves them out. It starts from the inputs kept in tests/fuzz/inputs/NAME, which `make test` runs too, and
# leaves what it finds in the build folder: a crash there is to be mended, and its input kept.

FUZZ_SECONDS ?= 60
FUZZ_NAMES := $(basename $(notdir $(wildcard tests/fuzz/*.cpp)))
FUZZ_BUILD := $(BUILD)/fuzz

.PHONY: fuzz-files $(FUZZ_NAMES:%=fuzz-%)
fuzz: fuzz-files
fuzz-files:
	@if [ '$(FUZZ_SECONDS)' = 0 ]; then :; \
	elif echo 'extern "C" int LLVMFuzzerTestOneInput(const char*, unsigned long) { return 0; }' | \
	    clang++ -fsanitize=fuzzer -x c++ - -o /dev/null 2>/dev/null; then \
	  $(MAKE) -j1 $(FUZZ_NAMES:%=fuzz-%); \
	else echo 'skipped: the programs of tests/fuzz need clang++ with libFuzzer'; fi

# A build of its own for the library: instrumented, so that libFuzzer sees which lines an input reaches.
$(FUZZ_NAMES:%=fuzz-%): fuzz-%:
	@$(MAKE) CXX=clang++ BUILD=$(FUZZ_BUILD) SANITIZE=address,undefined OPENMP=0 CXXFLAGS=-fsanitize=fuzzer-no-link lib
	@mkdir -p $(FUZZ_BUILD)/found/$*
	@clang++ -std=c++20 -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all $(ABI_FLAGS) \
	  $(LIBRARY_CPPFLAGS) -Iinclude -Isrc tests/fuzz/$*.cpp $(FUZZ_BUILD)/libtapehead.a $(LIBRARY_LDFLAGS) -lfmt \
	  -o $(FUZZ_BUILD)/$*
	@echo "fuzz $*: $(FUZZ_SECONDS) s"
	@cd $(FUZZ_BUILD) && ./$* -max_total_time=$(FUZZ_SECONDS) -max_len=4000 -timeout=10 -malloc_limit_mb=64 -verbosity=0 \
	  -print_final_stats=1 -artifact_prefix=found/$*- found/$* $(CURDIR)/tests/fuzz/inputs/$*
