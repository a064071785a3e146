# tapehead's build. `make` alone lists what there is to make; GNU make 3.81 (macOS) is enough.
#
# Variables, on the command line or in the environment:
#   CXX=clang++         the compiler (g++ >= 11 or clang++ >= 14)
#   MARCH=haswell       the processor to build for (default: native; none: the compiler's default)
#   DEBUG=1             -O0 -g and checked standard containers
#   SANITIZE=address,undefined    or thread
#   PLAIN=1             use the kernels' code without vector types
#   WERROR=1            warnings are errors
#   PRECOMPILED=0       compile each file with its own headers only (slower; finds a missing #include)
#   CPPFLAGS, CXXFLAGS, LDFLAGS   are added to the build's own flags
#   V=1                 show the commands
# Each combination of these has its own build folder; BUILD=dir chooses another.

VERSION := 0.1.0
MARCH ?= native
PRECOMPILED ?= 1
PREFIX ?= /usr/local
CHAPTER ?= chapters/02.03-attention
ifeq ($(origin CXX),default)
CXX := $(shell command -v g++ >/dev/null || ! command -v clang++ >/dev/null && echo g++ || echo clang++)
endif
comma := ,
space := $(subst ,, )
ifneq ($(strip $(CPPFLAGS)$(CXXFLAGS)$(LDFLAGS)),)
USER_FLAGS := $(shell echo '$(CPPFLAGS) $(CXXFLAGS) $(LDFLAGS)' | cksum | cut -d' ' -f1)
endif
BUILD ?= build/$(subst =,-,$(subst $(space),-,$(strip $(notdir $(CXX)) $(MARCH) $(if $(filter 1,$(DEBUG)),debug) \
  $(subst $(comma),-,$(SANITIZE)) $(if $(filter 1,$(PLAIN)),plain) $(if $(filter 1,$(WERROR)),werror) \
  $(if $(filter 0,$(PRECOMPILED)),own-headers) $(USER_FLAGS))))

# Make and the shell split a path at a space and give other characters a meaning of their own, so such a path is
# refused before any command runs; and so is a build folder that holds more than a build.
SPECIAL := ' " ` \ $$ \# % : ; & | < > ( ) * ? [ ] { } ~ ! =
refused = $(error tapehead: $(1)='$($(1))': $(2))
$(foreach path,BUILD CURDIR PREFIX DESTDIR,$(if $(word 2,x$($(path))x),$(call refused,$(path),a path with a space \
  cannot be used; choose another))$(foreach character,$(SPECIAL),$(if $(findstring $(character),$($(path))),$(call \
  refused,$(path),a path with $(character) cannot be used; choose another))))
$(if $(BUILD),,$(call refused,BUILD,the build needs a folder))
$(if $(filter $(patsubst %/,%,$(abspath $(BUILD)))/%,$(CURDIR)/. $(HOME)/.),$(call refused,BUILD,`make clean` \
  deletes this folder$(comma) so it cannot be one that holds other files))
$(if $(filter /%,$(PREFIX)),,$(call refused,PREFIX,installed files name this folder$(comma) so it must be absolute))

export CXX MARCH DEBUG SANITIZE PLAIN WERROR PRECOMPILED BUILD
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
# FLAGS are the same for every file. -ffp-contract=fast is g++'s default, which clang++ has to be told; the next two
# free loops from setting errno and from keeping the order of floating-point exceptions, which nothing here reads.
# None of them lets a compiler assume that NaN or infinity does not occur.

WARNINGS := -Wall -Wextra -Wpedantic -Wshadow -Wconversion $(if $(filter 1,$(WERROR)),-Werror)
ABI_FLAGS := $(if $(filter 1,$(PLAIN)),-DTAPEHEAD_PLAIN)
FLAGS := -std=c++20 -ffp-contract=fast -fno-math-errno -fno-trapping-math $(WARNINGS) $(ABI_FLAGS)
# Kernels take most of the running time, so they get every optimisation. The rest of the library needs its short loops
# vectorised and its small functions inlined ($(OPT_SHORT), see .make/configure); more takes half as long again to
# compile and gains next to nothing.
OPT_KERNELS := -O3 -DNDEBUG
OPT_LIBRARY = $(OPT_SHORT) -DNDEBUG
ifneq ($(filter 1,$(DEBUG))$(SANITIZE),)
OPT_KERNELS := $(if $(filter 1,$(DEBUG)),-O0,-O1) -g -D_GLIBCXX_ASSERTIONS $(if $(SANITIZE),-fsanitize=$(SANITIZE) \
  -fno-sanitize-recover=all -fno-omit-frame-pointer)
OPT_LIBRARY := $(OPT_KERNELS)
endif
UBSAN_OPTIONS ?= print_stacktrace=1
ASAN_OPTIONS ?= allocator_may_return_null=1
TSAN_OPTIONS ?= allocator_may_return_null=1
export UBSAN_OPTIONS ASAN_OPTIONS TSAN_OPTIONS

# ---- files -------------------------------------------------------------------------------------------------

ROOMS := kernels tensor random autograd ops checks attention caches files models figures
HEADERS := $(sort $(wildcard include/tapehead/*.hpp include/tapehead/*/*.hpp))
LIB_SRC := $(sort $(wildcard $(ROOMS:%=src/%/*.cpp)))
TEST_SRC := $(sort $(wildcard tests/*.cpp $(ROOMS:%=tests/%/*.cpp)))
SECTION_SRC := $(sort $(wildcard $(CHAPTER)/[0-9][0-9]_*.cpp))
REPORT_SRC := $(wildcard $(CHAPTER)/report.cpp)
SHARED_SRC := $(filter-out $(SECTION_SRC) $(REPORT_SRC),$(sort $(wildcard $(CHAPTER)/*.cpp)))
PROGRAM_SRC := $(SECTION_SRC) $(REPORT_SRC) $(sort $(wildcard tests/bench/*.cpp))

LIB := $(BUILD)/libtapehead.a
TESTS := $(BUILD)/tests/run
CHAPTER_LIB := $(if $(SHARED_SRC),$(BUILD)/$(CHAPTER)/shared.a)
SECTIONS := $(SECTION_SRC:%.cpp=$(BUILD)/%)
REPORT := $(REPORT_SRC:%.cpp=$(BUILD)/%)
PROGRAMS := $(PROGRAM_SRC:%.cpp=$(BUILD)/%)

# Programs that `make test` runs after the tests, from the top folder. Each counts as one, or, when its last line
# is `N passed, M failed`, as that many. Add to it from an included .mk: CHECKS += chapters/x/check.sh
CHECKS := tests/run_test.sh tests/rooms_test.sh tests/paths_test.sh tests/build_test.sh

# ---- what the compiler can do: asked once for each build folder ---------------------------------------------

ifneq ($(filter-out help deps clean format uninstall bench-peers,$(MAKECMDGOALS)),)
ifneq ($(shell BUILD='$(BUILD)' CXX='$(CXX)' MARCH='$(MARCH)' SANITIZE='$(SANITIZE)' \
  CPPFLAGS='$(CPPFLAGS)' CXXFLAGS='$(CXXFLAGS)' LDFLAGS='$(LDFLAGS)' \
  SOURCES='$(LIB_SRC) : $(TEST_SRC) : $(SHARED_SRC)' \
  FLAGS='$(FLAGS) $(OPT_KERNELS) $(OPT_LIBRARY)' .make/configure && echo ready),ready)
$(error the build cannot start; the reason is above)
endif
include $(BUILD)/config.mk
endif

COMPILE = $(CXX) $(FLAGS) $(QUIET_FLAGS) $(MEMORY_FLAGS) $(MARCH_FLAGS) -pthread -Iinclude $(LIBRARY_CPPFLAGS) \
  $(CPPFLAGS) $(CXXFLAGS)
LINK = $(CXX) $(OPT_LIBRARY) -pthread $(LDFLAGS)
LDLIBS = $(LIB) $(LIBRARY_LDFLAGS)
TAPEHEAD_COMPILE = $(COMPILE) $(OPT_LIBRARY)
TAPEHEAD_LINK = $(LINK)
TAPEHEAD_LDLIBS = $(LDLIBS)
TAPEHEAD_MAKE := $(MAKE)
export TAPEHEAD_COMPILE TAPEHEAD_LINK TAPEHEAD_LDLIBS TAPEHEAD_MAKE

# ---- targets -----------------------------------------------------------------------------------------------

.PHONY: help all lib tests test deps install uninstall format clean
help: ## show this list
	@awk -F ':.*## ' '/^[a-z][a-z-]*:.*## / { printf "  make %-22s %s\n", $$1, $$2 }' $(filter %Makefile %.mk,$(MAKEFILE_LIST))
	@echo; sed -n '/^# Variables/,/^$$/s/^# \{0,1\}//p' Makefile

all: lib tests $(PROGRAMS) ## build everything, run nothing
lib: $(LIB) ## build the library alone
tests: $(TESTS) ## build the test program without running it

test: $(TESTS) $(LIB) ## build and run the tests (TEST=softmax: those with that in their name)
	@tests/run.sh '$(TEST)' $(TESTS) $(CHECKS)

deps: ## install fmt and doctest with the system's package manager
	@.make/deps --all

install: $(LIB) ## install library, headers, pkg-config file and CMake package under PREFIX=/usr/local (DESTDIR=)
	@VERSION='$(VERSION)' CFLAGS='$(strip $(ABI_FLAGS) $(MARCH_FLAGS) $(LIBRARY_CPPFLAGS))' \
	  LIBS='$(strip $(LIBRARY_LDFLAGS) -pthread)' .make/install '$(LIB)' '$(DESTDIR)' '$(PREFIX)' $(HEADERS)

uninstall: ## remove what `make install` installed
	@.make/install --remove '$(DESTDIR)' '$(PREFIX)' $(HEADERS)

format: ## run clang-format on all C++ files
	clang-format -i $(HEADERS) $(sort $(LIB_SRC) $(TEST_SRC) $(PROGRAM_SRC) $(SHARED_SRC) \
	  $(wildcard src/*/*.hpp tests/*.hpp tests/*/*.hpp tests/programs/*.cpp chapters/*/*.?pp chapters/*/page/*.?pp))

clean: ## delete the build folders, or BUILD alone where that is given
	@if [ ! -e '$(BUILD)/config.key' ] && [ -e '$(BUILD)' ]; then echo 'tapehead: $(BUILD) is no build folder'; exit 1; fi
	rm -rf $(if $(filter command% env%,$(origin BUILD)),$(BUILD),build)

# ---- rules -------------------------------------------------------------------------------------------------
# An object depends on its source, its headers and the flags. Files of one kind share their flags and a header of
# .make/precompiled/ that is parsed once for all of them: parsing takes about half of the time. (A compiler that cannot
# use the result reads the copy beside it.)

OPT_kernels = $(OPT_KERNELS)
# The book's seeds, bit for bit: a multiplication and an addition are fused only where the code says so.
OPT_random = $(OPT_KERNELS) -ffp-contract=off
OPT_library = $(OPT_LIBRARY)
OPT_bench = $(OPT_KERNELS)
# Tests are not optimised: their time goes to the library, and this takes half as long to compile.
OPT_tests = $(OPT_LIBRARY) -O0
OPT_programs = $(OPT_LIBRARY)
ALL_PRECOMPILED := $(if $(filter 0,$(PRECOMPILED)),,$(patsubst .make/%,$(BUILD)/%.gch,$(wildcard .make/precompiled/*.hpp)))
precompiled = $(filter $(BUILD)/precompiled/$(1).hpp.gch,$(ALL_PRECOMPILED))
$(ALL_PRECOMPILED): $(BUILD)/precompiled/%.hpp.gch: .make/precompiled/%.hpp $(BUILD)/config.mk
	$(call say,$<)
	@mkdir -p $(@D) && cp $< $(@:.gch=)
	$(Q)$(COMPILE) -Isrc -Itests $(OPT_$*) -MMD -MP -MF $(@:.gch=.d) -x c++-header -c $(@:.gch=) -o $@

# $(call compiled,FOLDER,KIND): the rule for all files below a folder. The first that fits a file is taken.
define compiled
$(BUILD)/$(1)/%.o: $(1)/%.cpp $(BUILD)/config.mk $(call precompiled,$(2))
	$$(call say,$$<)
	@mkdir -p $$(@D)
	$$(Q)$$(COMPILE) -Isrc -Itests $$(OPT_$(2)) $(patsubst %.gch,-include %,$(call precompiled,$(2))) -MMD -MP -c $$< -o $$@
endef
$(eval $(call compiled,src/kernels,kernels))
$(eval $(call compiled,src/random,random))
$(eval $(call compiled,src,library))
$(eval $(call compiled,tests/bench,bench))
$(eval $(call compiled,tests,tests))
$(eval $(call compiled,chapters,programs))

$(LIB): $(LIB_SRC:%.cpp=$(BUILD)/%.o)
$(CHAPTER_LIB): $(SHARED_SRC:%.cpp=$(BUILD)/%.o)
$(LIB) $(CHAPTER_LIB): $(BUILD)/sources
	$(Q)rm -f $@ && ar rcs $@ $(filter %.o,$^)
$(TESTS): $(TEST_SRC:%.cpp=$(BUILD)/%.o) $(LIB) $(BUILD)/sources
	$(Q)$(LINK) $(filter %.o,$^) $(LDLIBS) -o $@
$(PROGRAMS): %: %.o $(CHAPTER_LIB) $(LIB)
	$(Q)$(LINK) $< $(CHAPTER_LIB) $(LDLIBS) -o $@
$(BUILD)/config.mk $(BUILD)/sources: ;

-include $(patsubst %.cpp,$(BUILD)/%.d,$(LIB_SRC) $(TEST_SRC) $(SHARED_SRC) $(PROGRAM_SRC)) $(ALL_PRECOMPILED:.gch=.d)
include $(sort $(wildcard tests/*/*.mk chapters/*/*.mk notebooks/*.mk))
