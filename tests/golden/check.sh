#!/bin/sh
# What needs NumPy: the golden files are the ones that their script makes, and files go to NumPy and come back.
# Run by `make test`. What cannot be checked here is named as skipped.
passed=0 failed=0
judge() {
  if [ "$1" -eq 0 ]; then passed=$((passed + 1)) && echo "ok: $2"; else failed=$((failed + 1)) && echo "FAILED: $2"; fi
}
finish() {
  echo "$passed passed, $failed failed"
  [ "$failed" -eq 0 ]
  exit
}

# One that has safetensors is taken before one that has NumPy alone.
python=
for module in safetensors.numpy numpy; do
  for candidate in ${TAPEHEAD_PYTHON:-} build/peers/bin/python3 python3 /usr/bin/python3; do
    if [ -z "$python" ] && "$candidate" -c "import numpy, $module" 2>/dev/null; then python=$candidate; fi
  done
done
if [ -z "$python" ]; then
  echo 'skipped: golden files against their script, and files exchanged with NumPy: no python3 here has NumPy'
  finish
fi

oracle=${TAPEHEAD_ORACLE:-../shared/oracle}
if [ -f "$oracle/rng.json" ]; then
  "$python" tests/golden/make_golden.py "$oracle" --check
  judge $? "the golden files are those that make_golden.py makes of $oracle"
else
  echo "skipped: golden files against their script: there is no $oracle here"
fi

scratch=$(mktemp -d "${TMPDIR:-/tmp}/tapehead.XXXXXX") || exit 1
trap 'rm -rf "$scratch"' EXIT
given=$("$python" tests/golden/exchange.py give "$scratch") &&
  TAPEHEAD_EXCHANGE=$scratch "${BUILD:?is set by make}/tests/run" '-tc=exchange:*' --no-skip >"$scratch/log" 2>&1 &&
  "$python" tests/golden/exchange.py take "$scratch" >>"$scratch/log" 2>&1
status=$?
[ "$status" -eq 0 ] || tail -n 20 "$scratch/log"
judge "$status" "files that NumPy wrote, read and written here, are what NumPy wrote: $given"
case $given in *without*) echo 'skipped: .safetensors files exchanged: that Python has no safetensors' ;; esac
finish
