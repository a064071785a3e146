# A chapter's programs: CHAPTER=chapters/01.07-autodiff chooses another chapter.
CHECKS += tests/claims_test.sh tests/readme_test.sh

.PHONY: book run
# Results of an earlier run must not appear in this run's report.
book: $(SECTIONS) $(REPORT) ## run the chapter's programs in order, then report on every number that they check
	@if [ -z '$(SECTIONS)' ]; then echo '$(CHAPTER) has no programs'; exit 1; fi
	@rm -f $(BUILD)/$(CHAPTER)/*.claims; failed=; for program in $(SECTIONS) $(REPORT); do \
	  $$program || failed="$$failed $${program##*/}"; \
	done; \
	if [ -n "$$failed" ]; then echo "make book: failed:$$failed"; exit 1; fi

RUN := $(if $(S),$(filter $(BUILD)/$(CHAPTER)/$(S)_% $(BUILD)/$(CHAPTER)/0$(S)_% $(BUILD)/$(CHAPTER)/$(S),\
  $(SECTIONS) $(REPORT)))
run: $(RUN) ## run one program of the chapter: S=03 (or S=report), with ARGS=
	@if [ -z '$(RUN)' ]; then echo 'make run S=..., one of: $(notdir $(SECTIONS) $(REPORT))'; exit 1; fi
	@$(RUN) $(ARGS)
