# The exercises of every chapter with a folder exercises/: `make exercise` and the related targets, for $(CHAPTER). Answers
# belong to the reader and are in exercises/ at the top; those of chapters other than 2.3 in a folder below it.
EXERCISE_SHARED := chapters/companion/exercises
EXERCISE_CHAPTERS := $(notdir $(patsubst %/exercises/exercises.txt,%,$(wildcard chapters/*/exercises/exercises.txt)))
EXERCISE_CHAPTER = $(notdir $(CHAPTER))
# -O0: nothing here takes long to run, and it compiles in half the time. An index past the end ends the program.
EXERCISE_COMPILE = $(TAPEHEAD_COMPILE) -O0 -Wno-error -D_GLIBCXX_ASSERTIONS \
  $(if $(SANITIZE),-DSANITIZED,-fsanitize=bounds -fsanitize-undefined-trap-on-error) -I$(EXERCISE_SHARED)
export EXERCISE_COMPILE
EXERCISE = EX='$(EX)' SEED='$(SEED)' ANSWERS='exercises$(patsubst %,/%,$(filter-out 02.03-attention,$(EXERCISE_CHAPTER)))' \
  $(EXERCISE_SHARED)/exercise.sh $(EXERCISE_CHAPTER)
CHECKS += $(EXERCISE_SHARED)/self_test.sh

.PHONY: exercise exercises hint solution watch
exercise: exercise-checks ## check the next open exercise, or EX=5 (STRICT=1: fail unless it is solved)
	@$(EXERCISE) check || [ -z '$(STRICT)' ]

exercises: exercise-checks ## list all exercises and your progress
	@$(EXERCISE) list

hint: ## show the next hint for an exercise, one at a time (EX=5)
	@$(EXERCISE) hint

solution: ## show a solution with its reasoning (EX=5)
	@$(EXERCISE) solution

watch: exercise-checks ## check an exercise each time you save it (EX=5)
	@$(EXERCISE) watch

# exercise_objects CHAPTER: what is linked to an answer, for all exercises of a chapter
exercise_objects = $(patsubst %,$(BUILD)/exercises/$(1)/%.o,checker grade \
  $(patsubst chapters/$(1)/exercises/%/check.cpp,%/check,$(wildcard chapters/$(1)/exercises/*/check.cpp)))
.PHONY: exercise-checks
exercise-checks: $(call exercise_objects,$(EXERCISE_CHAPTER)) | lib ## compile the checks of the exercises

ifneq ($(if $(TEST),$(findstring $(TEST),$(EXERCISE_SHARED)/self_test.sh),all),)
test: $(if $(CHECKS),$(foreach chapter,$(EXERCISE_CHAPTERS),$(call exercise_objects,$(chapter))))
endif

# Answers and checks all begin with the same headers, which are precompiled.
define EXERCISE_RULES
$(BUILD)/exercises/$(1)/prelude.hpp: $(EXERCISE_SHARED)/prelude.hpp
	@mkdir -p $$(@D)
	@cp $$< $$@
$(BUILD)/exercises/$(1)/prelude.hpp.gch: $(BUILD)/exercises/$(1)/prelude.hpp $(wildcard $(BUILD)/config.mk)
	@echo '  headers of the exercises'
	$(Q)$$(EXERCISE_COMPILE) -Ichapters/$(1)/exercises -MMD -MP -MF $$(@:.gch=.d) -x c++-header -c $$< -o $$@
$(BUILD)/exercises/$(1)/%.o: chapters/$(1)/exercises/%.cpp $(BUILD)/exercises/$(1)/prelude.hpp.gch
	@mkdir -p $$(@D)
	@echo '  $$<'
	$(Q)$$(EXERCISE_COMPILE) -Ichapters/$(1)/exercises -include $(BUILD)/exercises/$(1)/prelude.hpp -MMD -MP -c $$< -o $$@
$(BUILD)/exercises/$(1)/%.o: $(EXERCISE_SHARED)/%.cpp $(BUILD)/exercises/$(1)/prelude.hpp.gch
	@echo '  $$<'
	$(Q)$$(EXERCISE_COMPILE) -Ichapters/$(1)/exercises -include $(BUILD)/exercises/$(1)/prelude.hpp -MMD -MP -c $$< -o $$@
-include $(patsubst %.o,%.d,$(call exercise_objects,$(1))) $(BUILD)/exercises/$(1)/prelude.hpp.d
endef
$(foreach chapter,$(EXERCISE_CHAPTERS),$(eval $(call EXERCISE_RULES,$(chapter))))
