# The table of gradients. It links the library's objects, since an archive gives only those that a program names.
CHECKS += chapters/companion/rules_test.sh
RULES := $(BUILD)/chapters/companion/rules

.PHONY: rules rules-page
rules: $(RULES) ## every operation: formula, pullback, shapes and file
	@$(RULES)

rules-page: $(RULES) ## write that table into the chapter's RULES.md
	@chapters/companion/rules_test.sh write

$(RULES): $(RULES).o $(LIB_SRC:%.cpp=$(BUILD)/%.o)
	$(Q)$(LINK) $^ $(LIBRARY_LDFLAGS) -o $@
-include $(RULES).d
ifneq ($(if $(TEST),$(findstring $(TEST),chapters/companion/rules_test.sh),all),)
test: $(if $(CHECKS),$(RULES))
endif
