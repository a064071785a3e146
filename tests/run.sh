#!/bin/sh
# Runs the tests and counts them.   tests/run.sh FILTER BINARY [CHECK...]
#
# BINARY is the doctest program; EMULATOR, when set, runs it (qemu-aarch64), without the test cases whose names begin with
# one of EMULATOR_SKIPS: those that take minutes there. Each CHECK is a program run from the top
# folder: it counts as one, or, when its last line is `N passed, M failed`, as that many. FILTER, when not empty, selects
# the test cases and checks that have it in their name. The last line is `N passed, M failed`; the status is 0 only when M
# is 0. A crash counts as a failure, and so do a program that ends before its tests have, and a filter that selects
# nothing.
filter=$1 binary=$2
shift 2
passed=0 failed=0
scratch=$(mktemp -d "${TMPDIR:-/tmp}/tapehead.XXXXXX") || exit 1
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' HUP INT TERM

pattern=$(printf '%s' "$filter" | sed 's/,/*,*/g')  # a comma separates alternatives
skip=${EMULATOR:+${EMULATOR_SKIPS:+$(printf '%s' "$EMULATOR_SKIPS" | sed 's/,/*,/g')*}}
log=$scratch/cases
: >"$log"
TAPEHEAD_TEST_LOG=$log ${EMULATOR-} "$binary" ${filter:+"-tc=*$pattern*"} ${skip:+"-tce=$skip"}
status=$?
passed=$(grep -c '^passed ' "$log")
failed=$(grep -c '^failed ' "$log")
if [ "$status" -ne 0 ] && [ "$failed" -eq 0 ] || ! grep -q '^end' "$log"; then
  failed=$((failed + 1))
  echo "$binary: stopped with status $status; the last test to finish: $(sed -n '$s/^[a-z]* //p' "$log")"
fi

# counts FILE STATUS: "N M" for a check with this output and status
counts() {
  set -- "$2" $(tail -n 1 "$1" | sed -n 's/^\([0-9][0-9]*\) passed, \([0-9][0-9]*\) failed$/\1 \2/p')
  if [ $# -ne 3 ]; then
    [ "$1" -eq 0 ] && echo 1 0 || echo 0 1
  elif [ "$1" -ne 0 ] && [ "$3" -eq 0 ]; then
    echo "$2 1"
  else
    echo "$2 $3"
  fi
}

for check in "$@"; do
  case $check in *"$filter"*) ;; *) continue ;; esac
  output=$scratch/output began=$(date +%s)
  "$check" >"$output" 2>&1
  status=$?
  set -- $(counts "$output" "$status")
  passed=$((passed + $1)) failed=$((failed + $2))
  [ "$2" -eq 0 ] && verdict=ok || verdict="FAILED (status $status)"
  [ "$2" -eq 0 ] || echo "failed $check" >>"$log"
  echo "--- $check: $verdict, $(($(date +%s) - began)) s"
  sed '$s/^[0-9][0-9]* passed, [0-9][0-9]* failed$/(&)/' "$output"
done

if [ $((passed + failed)) -eq 0 ]; then
  echo "no test has '$filter' in its name"
  failed=1
fi
sed -n 's/^failed /failed: /p' "$log"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
