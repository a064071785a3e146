# The chapter as one HTML file: build/page/attention.html, with the engine in it as WebAssembly. em++ compiles the rooms
# that the page needs, into a folder of its own, with flags of its own; nothing else needs em++.
CHECKS += chapters/02.03-attention/page/test.sh

EMXX ?= em++
PAGE_SRC := chapters/02.03-attention/page
PAGE := build/page/attention.html
# NODE_PATH: em++ runs its own JavaScript, which Debian keeps there, by whichever node comes first in PATH.
EM := NODE_PATH=/usr/share/nodejs:$(NODE_PATH) $(EMXX)
# -fexceptions takes JavaScript's help for a throw, which every browser with WebAssembly has.
EM_FLAGS := -std=c++20 -Os -DNDEBUG -fexceptions -fno-math-errno -include $(PAGE_SRC)/wasm.hpp -Iinclude -Isrc \
  -isystem build/page/include
EM_LINK := -Os -fexceptions -sSINGLE_FILE=1 -sENVIRONMENT=web -sFILESYSTEM=0 -sALLOW_MEMORY_GROWTH=1 \
  -sMODULARIZE=1 -sEXPORT_NAME=loadEngine -sEXPORTED_FUNCTIONS=_run,_numbers -sEXPORTED_RUNTIME_METHODS=ccall
EM_SRC := $(PAGE_SRC)/state.cpp $(PAGE_SRC)/fmt.cpp $(wildcard src/tensor/*.cpp src/random/*.cpp) $(patsubst %,src/%.cpp, \
  $(addprefix kernels/,error fold gemm gemm_bf16 gemm_block gemm_pack memory parallel rows threads vmath walk) \
  $(addprefix ops/,arithmetic dropout join math matmul reduce select softmax views) \
  autograd/accumulate autograd/tape checks/jacobian attention/attention attention/masks)
EM_OBJECTS := $(EM_SRC:%.cpp=build/page/%.o)

.PHONY: page
ifeq ($(shell command -v $(EMXX)),)
page:
	@echo 'make page needs em++, which is not here. On Debian and Ubuntu: apt-get install -y emscripten'; exit 1
else
page: $(PAGE) ## the chapter as one HTML file to touch (S=05: and the address of that section's example)
	@echo 'file://$(CURDIR)/$(PAGE)$(if $(S),#example=$(S))'
endif

$(PAGE): build/page/engine.js $(wildcard $(PAGE_SRC)/page.*)
	@sed -e '/^@style$$/{r $(PAGE_SRC)/page.css' -e 'd;}' -e '/^@script$$/{r $(PAGE_SRC)/page.js' -e 'd;}' \
	  -e '/^@engine$$/{r build/page/engine.js' -e 'd;}' $(PAGE_SRC)/page.html >$@

build/page/engine.js: $(EM_OBJECTS)
	@echo '  $@'
	$(Q)$(EM) $(EM_LINK) $^ -o $@

# fmt's headers without their neighbours, which are this machine's
build/page/include/fmt: | $(BUILD)/config.mk
	@mkdir -p $(@D)
	@ln -sfn "$$(dirname "$$(echo '#include <fmt/core.h>' | $(CXX) $(LIBRARY_CPPFLAGS) -M -x c++ - | \
	  tr ' ' '\n' | grep '/fmt/core.h$$')")" $@

build/page/%.o: %.cpp $(PAGE_SRC)/wasm.hpp chapters/02.03-attention/page.mk | build/page/include/fmt
	@echo '  $< (em++)'
	@mkdir -p $(@D)
	$(Q)$(EM) $(EM_FLAGS) -MMD -MP -c $< -o $@
build/page/$(PAGE_SRC)/fmt.o: EM_FLAGS += -fno-inline
build/page/$(PAGE_SRC)/state.o: EM_FLAGS += -DFMT_HEADER_ONLY
-include $(EM_OBJECTS:.o=.d)

# The same answers from a program for this machine, which the test compares the page with.
PAGE_STATE := $(BUILD)/$(PAGE_SRC)/state
$(PAGE_STATE): $(BUILD)/$(PAGE_SRC)/state.o $(LIB)
	$(Q)$(LINK) $< $(LDLIBS) -o $@
-include $(PAGE_STATE).d
ifneq ($(if $(TEST),$(findstring $(TEST),$(PAGE_SRC)/test.sh),all),)
test: $(if $(and $(filter $(PAGE_SRC)/test.sh,$(CHECKS)),$(shell command -v $(EMXX)),$(shell command -v chromedriver)),$(PAGE) $(PAGE_STATE))
endif
