# Included by the Makefile.
CHECKS += tests/golden/check.sh
