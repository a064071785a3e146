#!/bin/sh
# Tests that chapters/02.03-attention/RULES.md shows the table that `make rules` prints.  rules_test.sh write: writes it.
page=chapters/02.03-attention/RULES.md
shown=$(mktemp "${TMPDIR:-/tmp}/tapehead.XXXXXX") || exit 1
trap 'rm -f "$shown"' EXIT

sed '/^|/,$d' "$page" >"$shown" && "$BUILD/chapters/companion/rules" ../../ >>"$shown" || exit 1
if [ "${1-}" = write ]; then
  cat "$shown" >"$page"
elif diff "$page" "$shown"; then
  echo "ok: $page shows each operation as it is defined"
else
  echo "$page differs from what \`make rules\` prints; \`make rules-page\` writes it" && exit 1
fi
