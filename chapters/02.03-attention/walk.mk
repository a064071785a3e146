# The chapter's README.md, ERRATA.md and figures, kept to what the programs print and draw.
CHECKS += $(CHAPTER)/walk/walk.sh

.PHONY: docs prompts
docs: $(SECTIONS) $(REPORT) ## the chapter's pages as its programs have them (SAMPLES=1 timings, PROMPTS=1 changes too)
	@SAMPLES='$(SAMPLES)' PROMPTS='$(PROMPTS)' $(CHAPTER)/walk/walk.sh write

prompts: $(SECTIONS) $(REPORT) ## carry out every "change this and run it again" of the chapter's README
	@PROMPTS=1 $(CHAPTER)/walk/walk.sh

ifneq ($(if $(TEST),$(findstring $(TEST),$(CHAPTER)/walk/walk.sh),all),)
test: $(if $(CHECKS),$(SECTIONS) $(REPORT))
endif
