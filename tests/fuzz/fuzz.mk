# `make fuzz` runs random programs of operations, and then each program of this folder for FUZZ_SECONDS where there is a
# clang++ with libFuzzer (0 skips them).
N ?= 20000
FUZZ_TESTS ?= *random program*
FUZZ_SECONDS ?= 60
FUZZERS := $(patsubst %.cpp,$(BUILD)/%,$(wildcard tests/fuzz/*.cpp))

.PHONY: fuzz fuzzers
fuzz: $(TESTS) ## random programs of operations, N of them (N=20000), and libFuzzer's (FUZZ_SECONDS=60 for each)
	@TAPEHEAD_FUZZ_N='$(N)' tests/run.sh '$(FUZZ_TESTS)' $(TESTS)
	@FUZZ_SECONDS='$(FUZZ_SECONDS)' tests/fuzz/fuzz.sh '$(BUILD)/fuzz'

fuzzers: $(FUZZERS) ## libFuzzer's programs; tests/fuzz/fuzz.sh says with which flags
$(FUZZERS): %: %.o $(LIB)
	$(Q)$(LINK) -fsanitize=fuzzer $< $(LDLIBS) -o $@
-include $(FUZZERS:=.d)
