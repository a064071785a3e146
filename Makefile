# tapehead's build. `make` alone lists what there is to make; GNU make 3.81 (macOS) is enough.
#
# Variables, on the command line or in the environment:
#   CXX=clang++         the compiler (g++ >= 11 or clang++ >= 14)
#   MARCH=haswell       the processor to build for (default: native; none: the compiler's default)
#   DEBUG=1             -O0 -g and checked standard containers
#   SANITIZE=address,undefined    or thread
#   OPENMP=0            without OpenMP, which is used where the compiler has it
#   PLAIN=1             the kernels' path without vector types
#   WERROR=1            warnings are errors
#   PRECOMPILED=0       every file is compiled by itself and reads its own headers (slower; shows an #include that is
#                       missing)
#   CPPFLAGS, CXXFLAGS, LDFLAGS   added to ours
#   V=1                 show the commands
# Each combination has a build folder of its own; BUILD=dir chooses another.

VERSION := 0.1.0
MARCH ?= native
OPENMP ?= 1
DEBUG ?=
SANITIZE ?=
PLAIN ?=
WERROR ?=
PRECOMPILED ?= 1
PREFIX ?= /usr/local
DESTDIR ?=
CHAPTER ?= chapters/02.03-attention
N ?= 20000
FUZZ_TESTS ?= *random program*
ifeq ($(origin CXX),default)
CXX := $(shell command -v g++ >/dev/null || ! command -v clang++ >/dev/null && echo g++ || echo clang++)
endif

comma := ,
space := $(subst ,, )
BUILD ?= build/$(subst $(space),-,$(strip $(notdir $(CXX)) $(MARCH) $(if $(filter 1,$(DEBUG)),debug) \
  $(subst $(comma),-,$(SANITIZE)) $(if $(filter 0,$(OPENMP)),no-openmp) $(if $(filter 1,$(PLAIN)),plain) \
  $(if $(filter 1,$(WERROR)),werror) $(if $(filter 0,$(PRECOMPILED)),own-headers) $(USER_FLAGS)))
ifneq ($(strip $(CPPFLAGS)$(CXXFLAGS)$(LDFLAGS)),)
USER_FLAGS := $(shell echo '$(CPPFLAGS) $(CXXFLAGS) $(LDFLAGS)' | cksum | cut -d' ' -f1)
endif
export CXX MARCH OPENMP DEBUG SANITIZE PLAIN WERROR PRECOMPILED BUILD

.DEFAULT_GOAL := help
.SUFFIXES:
.SECONDARY:
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory
ifeq ($(MAKELEVEL),0)
MAKEFLAGS += -j$(shell nproc 2>/dev/null || getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
endif
Q := $(if $(filter 1,$(V)),,@)
say = $(if $(filter 1,$(V)),,@echo "  $(1)")

# ---- flags -------------------------------------------------------------------------------------------------
# FLAGS are the same for every file. -ffp-contract=fast is g++'s default, which clang++ has to be told;
# the next two free loops from errno and from the order of floating-point exceptions, of which nothing here asks.
# None of them lets a compiler assume that NaN or infinity does not occur.

WARNINGS := -Wall -Wextra -Wpedantic -Wshadow -Wconversion $(if $(filter 1,$(WERROR)),-Werror)
ABI_FLAGS := $(if $(filter 1,$(PLAIN)),-DTAPEHEAD_PLAIN)
FLAGS := -std=c++20 -ffp-contract=fast -fno-math-errno -fno-trapping-math $(WARNINGS) $(ABI_FLAGS)
CHECKED := -g -D_GLIBCXX_ASSERTIONS
ifneq ($(SANITIZE),)
CHECKED += -fsanitize=$(SANITIZE) -fno-sanitize-recover=all -fno-omit-frame-pointer
endif
# Kernels are where time goes and get every optimisation. The rest needs its short loops made vectors and its small
# functions inlined ($(OPT_SHORT), as the compiler takes it: see .make/configure). More gains next to nothing there,
# and takes half as long again to compile.
ifeq ($(DEBUG),1)
OPT_KERNELS := -O0 $(CHECKED)
OPT_LIBRARY := $(OPT_KERNELS)
else ifneq ($(SANITIZE),)
OPT_KERNELS := -O1 $(CHECKED)
OPT_LIBRARY := $(OPT_KERNELS)
else
OPT_KERNELS := -O3 -DNDEBUG
OPT_LIBRARY = $(OPT_SHORT) -DNDEBUG
endif
UBSAN_OPTIONS ?= print_stacktrace=1
ASAN_OPTIONS ?= allocator_may_return_null=1
TSAN_OPTIONS ?= allocator_may_return_null=1
export UBSAN_OPTIONS ASAN_OPTIONS TSAN_OPTIONS

# ---- files -------------------------------------------------------------------------------------------------

ROOMS := kernels tensor random autograd ops checks attention caches files models figures
HEADERS := $(sort $(wildcard include/tapehead/*.hpp include/tapehead/*/*.hpp))
LIB_SRC := $(sort $(wildcard $(ROOMS:%=src/%/*.cpp)))
TEST_SRC := tests/main.cpp $(filter-out tests/main.cpp,$(sort $(wildcard tests/*.cpp $(ROOMS:%=tests/%/*.cpp))))
objects = $(1:%.cpp=$(BUILD)/%.o)
BENCH_SRC := $(sort $(wildcard tests/bench/*.cpp))
SECTION_SRC := $(sort $(wildcard $(CHAPTER)/[0-9][0-9]_*.cpp))
REPORT_SRC := $(wildcard $(CHAPTER)/report.cpp)
SHARED_SRC := $(filter-out $(SECTION_SRC) $(REPORT_SRC),$(sort $(wildcard $(CHAPTER)/*.cpp)))
ALL_SRC := $(LIB_SRC) $(TEST_SRC) $(BENCH_SRC) $(SECTION_SRC) $(REPORT_SRC) $(SHARED_SRC)

LIB := $(BUILD)/libtapehead.a
TESTS := $(BUILD)/tests/run
CHAPTER_LIB := $(if $(SHARED_SRC),$(BUILD)/$(CHAPTER)/shared.a)
SECTIONS := $(SECTION_SRC:%.cpp=$(BUILD)/%)
REPORT := $(REPORT_SRC:%.cpp=$(BUILD)/%)
BENCHES := $(BENCH_SRC:%.cpp=$(BUILD)/%)

# Programs that `make test` runs after the tests, from the top folder. Each counts as one, or, when its last line
# is `N passed, M failed`, as that many. Add to it from an included .mk: CHECKS += chapters/x/check.sh
CHECKS := tests/run_test.sh tests/build_test.sh

# ---- what the compiler can do: asked once per build folder -------------------------------------------------

NEEDS_NO_COMPILER := help deps clean format uninstall bench-peers
ifneq ($(filter-out $(NEEDS_NO_COMPILER),$(MAKECMDGOALS)),)
ifneq ($(shell BUILD='$(BUILD)' CXX='$(CXX)' MARCH='$(MARCH)' OPENMP='$(OPENMP)' SANITIZE='$(SANITIZE)' \
  CPPFLAGS='$(CPPFLAGS)' CXXFLAGS='$(CXXFLAGS)' LDFLAGS='$(LDFLAGS)' \
  SOURCES='$(LIB_SRC) : $(TEST_SRC) : $(SHARED_SRC)' \
  FLAGS='$(FLAGS) $(OPT_KERNELS) $(OPT_LIBRARY)' .make/configure && echo ready),ready)
$(error the build cannot start; the reason is above)
endif
include $(BUILD)/config.mk
endif

COMPILE = $(CXX) $(FLAGS) $(QUIET_FLAGS) $(MEMORY_FLAGS) $(MARCH_FLAGS) $(OPENMP_CXXFLAGS) -Iinclude $(LIBRARY_CPPFLAGS) \
  $(CPPFLAGS) $(CXXFLAGS)
LINK = $(CXX) $(OPT_LIBRARY) $(LDFLAGS)
LDLIBS = $(LIB) $(LIBRARY_LDFLAGS) -lfmt $(OPENMP_LDFLAGS)
TAPEHEAD_COMPILE = $(COMPILE) $(OPT_LIBRARY)
TAPEHEAD_LINK = $(LINK)
TAPEHEAD_LDLIBS = $(LDLIBS)
TAPEHEAD_MAKE := $(MAKE)
export TAPEHEAD_COMPILE TAPEHEAD_LINK TAPEHEAD_LDLIBS TAPEHEAD_MAKE

# ---- targets -----------------------------------------------------------------------------------------------

.PHONY: help all lib tests test book run fuzz bench bench-peers deps install uninstall format clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z][a-z-]*:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo; sed -n '/^# Variables/,/^$$/s/^# \{0,1\}//p' Makefile

all: lib tests $(SECTIONS) $(REPORT) $(BENCHES) ## build everything, run nothing
lib: $(LIB) ## the library alone
tests: $(TESTS)

test: $(TESTS) $(LIB) ## build and run the tests (TEST=softmax: those with that in their name)
	@tests/run.sh '$(TEST)' $(TESTS) $(CHECKS)

book: $(SECTIONS) $(REPORT) ## the chapter's programs in order, then the report of the book's numbers
	@failed=; for program in $(SECTIONS) $(REPORT); do \
	  $$program || failed="$$failed $${program##*/}"; \
	done; \
	if [ -z "$(SECTIONS)" ]; then echo "$(CHAPTER) has no programs"; exit 1; fi; \
	if [ -n "$$failed" ]; then echo "make book: failed:$$failed"; exit 1; fi

RUN := $(if $(S),$(filter $(BUILD)/$(CHAPTER)/$(S)_% $(BUILD)/$(CHAPTER)/0$(S)_% $(BUILD)/$(CHAPTER)/$(S),\
  $(SECTIONS) $(REPORT)))
run: $(RUN) ## one program of the chapter: S=03 (or S=report); ARGS= for it
	@if [ -z "$(RUN)" ]; then echo 'make run S=..., one of: $(notdir $(SECTIONS) $(REPORT))'; exit 1; fi
	@$(RUN) $(ARGS)

fuzz: $(TESTS) ## random programs of operations, N of them (N=20000)
	@TAPEHEAD_FUZZ_N='$(N)' tests/run.sh '$(FUZZ_TESTS)' $(TESTS)

BENCH_RUN := $(filter $(BUILD)/tests/bench/$(BENCH)%,$(BENCHES))
PEERS := build/peers
bench: $(BENCH_RUN) ## timings and their ceilings, beside each peer that is installed (BENCH=gemm: one)
	@if [ -z "$(BENCH_RUN)" ]; then echo 'make bench BENCH=..., one of: $(notdir $(BENCHES))'; exit 1; fi
	@set -e; for program in $(BENCH_RUN); do \
	  TAPEHEAD_PYTHON=$$(ls $(PEERS)/bin/python3 2>/dev/null || command -v python3 || :) $$program $(ARGS); \
	done

# PyTorch's own index has builds without the graphics libraries; where it cannot be reached, PyPI's 3 GB do.
bench-peers: ## NumPy and PyTorch for `make bench` to compare with, in build/peers
	@python3 -m venv $(PEERS) || { echo 'on Debian and Ubuntu: apt-get install -y python3-venv'; exit 1; }
	$(PEERS)/bin/pip install --quiet numpy
	$(PEERS)/bin/pip install --quiet --retries 0 --index-url https://download.pytorch.org/whl/cpu torch \
	  2>/dev/null || $(PEERS)/bin/pip install --quiet torch
	@$(PEERS)/bin/python3 -c 'import numpy, torch; print("numpy", numpy.__version__, "torch", torch.__version__)'

deps: ## install fmt and doctest with the system's package manager
	@.make/deps --all

install: $(LIB) ## the library, headers and pkg-config file under PREFIX=/usr/local (DESTDIR=)
	mkdir -p $(ROOMS:%=$(DESTDIR)$(PREFIX)/include/tapehead/%) $(DESTDIR)$(PREFIX)/lib/pkgconfig
	$(foreach header,$(HEADERS),install -m 644 $(header) $(DESTDIR)$(PREFIX)/$(header) &&) :
	install -m 644 $(LIB) $(DESTDIR)$(PREFIX)/lib/libtapehead.a
	sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@VERSION@|$(VERSION)|' \
	  -e 's|@CFLAGS@|$(strip $(ABI_FLAGS) $(MARCH_FLAGS) $(OPENMP_CXXFLAGS) $(LIBRARY_CPPFLAGS))|' \
	  -e 's|@LIBS@|$(strip $(LIBRARY_LDFLAGS) -lfmt $(OPENMP_LDFLAGS))|' \
	  .make/tapehead.pc.in >$(DESTDIR)$(PREFIX)/lib/pkgconfig/tapehead.pc

uninstall: ## what `make install` put there
	rm -f $(HEADERS:%=$(DESTDIR)$(PREFIX)/%) \
	  $(DESTDIR)$(PREFIX)/lib/libtapehead.a $(DESTDIR)$(PREFIX)/lib/pkgconfig/tapehead.pc
	-rmdir $(ROOMS:%=$(DESTDIR)$(PREFIX)/include/tapehead/%) $(DESTDIR)$(PREFIX)/include/tapehead

format: ## clang-format over all C++ files
	clang-format -i $(HEADERS) $(sort $(ALL_SRC) \
	  $(wildcard src/*/*.hpp tests/*.hpp tests/*/*.hpp $(CHAPTER)/*.hpp))

clean: ## delete the build folders
	rm -rf $(if $(filter command% env%,$(origin BUILD)),$(BUILD),build)

# ---- rules -------------------------------------------------------------------------------------------------

# Half of what compiling a file takes is reading the same headers: each kind of file finds them read already.
# (A compiler that cannot use the result reads the copy beside it.) ALONE: a file with other flags or macros.
ifneq ($(PRECOMPILED),0)
precompiled = $(BUILD)/precompiled/$(1).hpp.gch
included = $(if $(ALONE),,-include $(BUILD)/precompiled/$(1).hpp)
endif
$(BUILD)/precompiled/kernels.hpp.gch: OPT := $(OPT_KERNELS)
$(BUILD)/precompiled/library.hpp.gch $(BUILD)/precompiled/programs.hpp.gch: OPT := $(OPT_LIBRARY)
$(BUILD)/precompiled/tests.hpp.gch: OPT := $(OPT_LIBRARY) -O0

$(BUILD)/precompiled/%.hpp: .make/precompiled/%.hpp $(BUILD)/config.mk
	@mkdir -p $(@D)
	@cp $< $@

$(BUILD)/precompiled/%.hpp.gch: $(BUILD)/precompiled/%.hpp
	$(call say,headers: $*)
	$(Q)$(COMPILE) -Isrc -Itests $(OPT) -MMD -MP -MF $(@:.gch=.d) -x c++-header -c $< -o $@

# The book's seeds, bit for bit: no multiply-adds but those that the code asks for. Drawing is a loop of its own, and
# gets a kernel's optimisation.
$(BUILD)/src/random/random.o: FILE_FLAGS := $(OPT_KERNELS) -ffp-contract=off
$(BUILD)/src/random/random.o: ALONE := 1

COMPILE_KERNEL = $(COMPILE) -Isrc $(OPT_KERNELS) $(call included,kernels) -MMD -MP
COMPILE_SOURCE = $(COMPILE) -Isrc $(OPT_LIBRARY) $(FILE_FLAGS) $(call included,library) -MMD -MP
# Tests are not optimised: what takes time in a test is the library, and this takes half as long to compile.
COMPILE_TEST = $(COMPILE) -Isrc -Itests $(OPT_LIBRARY) -O0 $(call included,tests) -MMD -MP

$(BUILD)/src/kernels/%.o: src/kernels/%.cpp $(BUILD)/config.mk $(call precompiled,kernels)
	$(call say,$<)
	@mkdir -p $(@D)
	$(Q)$(COMPILE_KERNEL) -c $< -o $@

$(BUILD)/src/%.o: src/%.cpp $(BUILD)/config.mk $(call precompiled,library)
	$(call say,$<)
	@mkdir -p $(@D)
	$(Q)$(COMPILE_SOURCE) -c $< -o $@

$(BUILD)/tests/bench/%.o: tests/bench/%.cpp $(BUILD)/config.mk
	$(call say,$<)
	@mkdir -p $(@D)
	$(Q)$(COMPILE) -Isrc $(OPT_KERNELS) -MMD -MP -c $< -o $@

$(BUILD)/tests/%.o: tests/%.cpp $(BUILD)/config.mk $(call precompiled,tests)
	$(call say,$<)
	@mkdir -p $(@D)
	$(Q)$(COMPILE_TEST) -c $< -o $@

$(BUILD)/%.o: %.cpp $(BUILD)/config.mk $(call precompiled,programs)
	$(call say,$<)
	@mkdir -p $(@D)
	$(Q)$(COMPILE) -Isrc $(OPT_LIBRARY) $(call included,programs) -MMD -MP -c $< -o $@

$(LIB): $(call objects,$(LIB_SRC)) $(BUILD)/sources
	$(Q)rm -f $@ && ar rcs $@ $(filter %.o,$^)

$(CHAPTER_LIB): $(SHARED_SRC:%.cpp=$(BUILD)/%.o) $(BUILD)/sources
	$(Q)rm -f $@ && ar rcs $@ $(filter %.o,$^)

$(TESTS): $(call objects,$(TEST_SRC)) $(LIB) $(BUILD)/sources
	$(Q)$(LINK) $(filter %.o,$^) $(LDLIBS) -o $@

$(SECTIONS) $(REPORT): %: %.o $(CHAPTER_LIB) $(LIB)
	$(Q)$(LINK) $(filter %.o,$^) $(CHAPTER_LIB) $(LDLIBS) -o $@

$(BENCHES): %: %.o $(LIB)
	$(Q)$(LINK) $(filter %.o,$^) $(LDLIBS) -o $@

$(BUILD)/config.mk $(BUILD)/sources: ;

-include $(ALL_SRC:%.cpp=$(BUILD)/%.d) $(wildcard $(BUILD)/precompiled/*.d)
-include $(sort $(wildcard tests/*/*.mk chapters/*/*.mk notebooks/*.mk))
