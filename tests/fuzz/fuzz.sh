#!/bin/sh
# Runs each program of this folder under libFuzzer for FUZZ_SECONDS:   tests/fuzz/fuzz.sh BUILD_FOLDER
# A program starts from the inputs in tests/fuzz/inputs/NAME, which `make test` runs too. It writes an input that
# crashes to BUILD_FOLDER/found: mend the crash and keep the input.
set -eu
folder=$1 seconds=${FUZZ_SECONDS-60}
[ "$seconds" != 0 ] || exit 0
if ! echo 'extern "C" int LLVMFuzzerTestOneInput(const char*, unsigned long) { return 0; }' |
  clang++ -fsanitize=fuzzer -x c++ - -o /dev/null 2>/dev/null; then
  echo 'skipped: the programs of tests/fuzz need clang++ with libFuzzer' && exit
fi

# The library has a build of its own, instrumented so that libFuzzer sees which lines an input reaches.
env MAKEFLAGS= MFLAGS= MAKELEVEL=0 "$TAPEHEAD_MAKE" --no-print-directory BUILD="$folder" CXX=clang++ \
  SANITIZE=address,undefined CXXFLAGS=-fsanitize=fuzzer-no-link PRECOMPILED=0 fuzzers
for program in tests/fuzz/*.cpp; do
  name=$(basename "$program" .cpp)
  mkdir -p "$folder/found/$name"
  echo "fuzz $name: $seconds s"
  "$folder/tests/fuzz/$name" -max_total_time="$seconds" -max_len=4000 -timeout=10 -malloc_limit_mb=64 -verbosity=0 \
    -print_final_stats=1 -artifact_prefix="$folder/found/$name-" "$folder/found/$name" "tests/fuzz/inputs/$name"
done
