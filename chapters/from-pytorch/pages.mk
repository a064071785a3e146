# The pages of this folder, kept to what their programs are and print.
CHECKS += chapters/from-pytorch/pages.sh

.PHONY: docs-from-pytorch
docs: docs-from-pytorch
docs-from-pytorch: $(LIB) $(call precompiled,programs) ## the pages of chapters/from-pytorch as their programs have them
	@chapters/from-pytorch/pages.sh write

ifneq ($(if $(TEST),$(findstring $(TEST),chapters/from-pytorch/pages.sh),all),)
test: $(if $(CHECKS),$(call precompiled,programs))
endif
