# Programs as readers write them, and the same in PyTorch.
CHECKS += tests/programs/test.sh

.PHONY: programs-record
programs-record: $(LIB) $(call precompiled,programs) ## run the PyTorch programs of tests/programs, and record what they print
	@tests/programs/test.sh write

ifneq ($(if $(TEST),$(findstring $(TEST),tests/programs/test.sh),all),)
test: $(if $(CHECKS),$(call precompiled,programs))
endif
