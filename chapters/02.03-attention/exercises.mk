# The exercises: `make exercise` and its kin. Answers are the reader's own and live in exercises/ at the top.
EXERCISES := $(CHAPTER)/exercises
EXERCISE := BUILD='$(BUILD)' EX='$(EX)' $(EXERCISES)/exercise.sh
EXERCISE_CHECKS := $(patsubst %,$(BUILD)/exercises/%.o,checks1 checks2 checker)
CHECKS += $(EXERCISES)/self_test.sh

.PHONY: exercise exercises hint solution watch
exercise: $(LIB) $(EXERCISE_CHECKS) ## check the next open exercise (EX=5: that one)
	@$(EXERCISE) check

exercises: $(LIB) $(EXERCISE_CHECKS) ## all exercises and how far you are
	@$(EXERCISE) list

hint: ## the next hint for it, one at a time (EX=5)
	@$(EXERCISE) hint

solution: ## a solution with its reasoning (EX=5)
	@$(EXERCISE) solution

watch: $(LIB) $(EXERCISE_CHECKS) ## check it whenever you save (EX=5)
	@$(EXERCISE) watch

ifneq ($(if $(TEST),$(findstring $(TEST),$(EXERCISES)/self_test.sh),all),)
test: $(EXERCISE_CHECKS)
endif

# -O0: nothing here takes long to run, and it compiles in half the time. Two files, for two processors.
$(BUILD)/exercises/checks%.cpp: $(EXERCISES)/exercises.txt $(EXERCISES)/exercise.sh
	@mkdir -p $(@D)
	@$(EXERCISE) generate $* >$@

$(BUILD)/exercises/checks%.o: $(BUILD)/exercises/checks%.cpp $(BUILD)/config.mk
	$(call say,the exercises' checks: $* of 2)
	$(Q)$(COMPILE) $(OPT_PROGRAM) -O0 -I$(EXERCISES) -MMD -MP -c $< -o $@

$(BUILD)/exercises/checker.o: $(EXERCISES)/checker.cpp $(BUILD)/config.mk
	@mkdir -p $(@D)
	$(call say,$<)
	$(Q)$(COMPILE) $(OPT_PROGRAM) -O0 -MMD -MP -c $< -o $@

-include $(EXERCISE_CHECKS:.o=.d)
