# Sourced by the tests that are bash scripts: a folder of their own that goes when they end, and their counts.
scratch=$(mktemp -d "${TMPDIR:-/tmp}/tapehead.XXXXXX") || exit 1
trap 'rm -rf "$scratch"' EXIT
passed=0 failed=0

# judge STATUS WHAT [FILE]: counts it, and shows the file when it failed
judge() {
  if (($1 == 0)); then
    passed=$((passed + 1)) && echo "ok: $2"
  else
    failed=$((failed + 1)) && echo "FAILED: $2"
    [[ -n ${3-} ]] && head -n 40 "$3" | sed 's/^/    /'
  fi
}

# finish: the last line, and the status
finish() {
  echo "$passed passed, $failed failed"
  ((failed == 0))
  exit
}
