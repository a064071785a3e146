# What an earlier run kept for the report must not count in this one.
.PHONY: forget-results
book: forget-results
forget-results:
	@rm -f $(BUILD)/$(CHAPTER)/*.claims

CHECKS += tests/claims_test.sh tests/readme_test.sh
