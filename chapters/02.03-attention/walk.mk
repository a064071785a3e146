# README.md, ERRATA.md and figures of the chapter are written and checked from what its programs print and draw.
CHECKS += $(CHAPTER)/walk/walk.sh

.PHONY: docs prompts
docs: $(SECTIONS) $(REPORT) ## write the chapter's pages from its programs' output (SAMPLES=1: timings too, PROMPTS=1: changes too)
	@SAMPLES='$(SAMPLES)' PROMPTS='$(PROMPTS)' $(CHAPTER)/walk/walk.sh write

prompts: $(SECTIONS) $(REPORT) ## carry out every "Try it" of the chapter's README and compare the results
	@PROMPTS=1 $(CHAPTER)/walk/walk.sh

ifneq ($(if $(TEST),$(findstring $(TEST),$(CHAPTER)/walk/walk.sh),all),)
test: $(if $(CHECKS),$(SECTIONS) $(REPORT))
endif
