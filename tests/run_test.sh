#!/bin/sh
# Tests tests/run.sh, on which every other test relies to be heard: a failing, crashing or vanishing test shows.
set -u
scratch=$(mktemp -d "${TMPDIR:-/tmp}/tapehead.XXXXXX") || exit 1
trap 'rm -rf "$scratch"' EXIT
passed=0 failed=0

# expect LAST_LINE STATUS ARGUMENT...: run.sh with these arguments ends so
expect() {
  line=$1 status=$2
  shift 2
  tests/run.sh "$@" >"$scratch/output" 2>&1
  got=$?
  if [ "$(tail -n 1 "$scratch/output")" = "$line" ] && [ "$got" -eq "$status" ]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "run.sh $*: expected '$line' and status $status, got status $got and:"
    sed 's/^/    /' "$scratch/output"
  fi
}

cat >"$scratch/cases.cpp" <<'EOF'
#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include "testing.hpp"
TEST_CASE("good: one") { CHECK(1 + 1 == 2); }
TEST_CASE("good: two") { CHECK(testing::message([] { throw tapehead::ShapeError("no"); }) == "no"); }
TEST_CASE("wrong") { CHECK(1 + 1 == 3); }
TEST_CASE("throws") { throw std::runtime_error("in a test"); }
TEST_CASE("crash: fine before") {}
TEST_CASE("crash: segfault") { std::raise(SIGSEGV); }
TEST_CASE("crash: never reached") {}
TEST_CASE("abort") { std::abort(); }
TEST_CASE("exit") { std::_Exit(0); }
EOF
$TAPEHEAD_COMPILE -Itests -c "$scratch/cases.cpp" -o "$scratch/cases.o" &&
  $TAPEHEAD_LINK "$BUILD/tests/main.o" "$scratch/cases.o" $TAPEHEAD_LDLIBS -o "$scratch/cases" || exit 1
tests=$scratch/cases

expect '2 passed, 0 failed' 0 'good' "$tests"
expect '1 passed, 0 failed' 0 'good: two' "$tests"
expect '2 passed, 1 failed' 1 'good,wrong' "$tests"
expect '0 passed, 1 failed' 1 'throws' "$tests"
expect '1 passed, 1 failed' 1 'crash' "$tests"
expect '0 passed, 1 failed' 1 'abort' "$tests"
expect '0 passed, 1 failed' 1 'exit' "$tests"
expect '0 passed, 1 failed' 1 'no such test' "$tests"
expect '0 passed, 1 failed' 1 '' "$scratch/no-such-binary"

EMULATOR_SKIPS='good: o,wrong' expect '2 passed, 1 failed' 1 'good,wrong' "$tests"
EMULATOR=env EMULATOR_SKIPS='good: o,wrong' expect '1 passed, 0 failed' 0 'good,wrong' "$tests"
EMULATOR=env EMULATOR_SKIPS='ood' expect '2 passed, 0 failed' 0 'good' "$tests"

# check NAME COMMANDS: a check of that name
check() { printf '#!/bin/sh\n%s\n' "$2" >"$scratch/$1" && chmod +x "$scratch/$1"; }
check good_ok 'exit 0'
check good_counted 'echo text; echo "3 passed, 0 failed"'
check good_bad 'exit 1'
check good_counted_bad 'echo "3 passed, 2 failed"; exit 1'
check good_lying 'echo "3 passed, 0 failed"; exit 1'
check good_silent_bad 'echo "3 passed, 2 failed"'
check other 'exit 1'
expect '6 passed, 0 failed' 0 'good' "$tests" "$scratch/good_ok" "$scratch/good_counted" "$scratch/other"
expect '2 passed, 1 failed' 1 'good' "$tests" "$scratch/good_bad"
expect '5 passed, 2 failed' 1 'good' "$tests" "$scratch/good_counted_bad"
expect '5 passed, 1 failed' 1 'good' "$tests" "$scratch/good_lying"
expect '5 passed, 2 failed' 1 'good' "$tests" "$scratch/good_silent_bad"
expect '2 passed, 1 failed' 1 'good' "$tests" "$scratch/good_missing"

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
