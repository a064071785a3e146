#!/bin/sh
# Tests the house: a file includes only what its room may include, no room holds more code than its budget, every public
# header has a test file of its name, and nothing but what the design names lies at the top. It prints the lines of code
# of each room (include/ and src/ together, without blank lines and comments).
set -u
scratch=$(mktemp -d "${TMPDIR:-/tmp}/tapehead.XXXXXX") || exit 1
trap 'rm -rf "$scratch"' EXIT
passed=0 failed=0

house_budget=12860
# A room may include the rooms that are named after its budget, and in turn theirs.
rooms='
kernels     3240
tensor      1035  kernels
random       320  tensor
autograd     890  tensor
ops         2145  autograd random
checks       530  ops
attention   1370  ops
caches       650  attention
files        810  tensor
models      1350  caches files
figures      820  autograd'

# check FOLDER: prints a line for each room, and one beginning with "wrong: " for each fault
check() {
  (cd "$1" && find include src -name '*.?pp' | sort | xargs awk -v table="$rooms" -v limit="$house_budget" '
    BEGIN {
      count = split(table, line, "\n")
      for (i = 2; i <= count; ++i) {
        n = split(line[i], word, " ")
        room[i - 1] = word[1]; budget[word[1]] = word[2]; may[word[1], word[1]] = 1
        for (j = 3; j <= n; ++j)  # those named here stand above, so all that they may include is known
          for (k = 1; k < i; ++k) if ((word[j], room[k]) in may) may[word[1], room[k]] = 1
      }
    }
    FNR == 1 {
      name = FILENAME; sub(/^(include\/tapehead|src)\//, "", name)
      own = name; sub(/\/.*/, "", own); comment = 0
      if (name == "tapehead.hpp") own = ""
      else if (!(own in budget)) print "wrong: " FILENAME " is in no room"
    }
    own == "" { next }
    /^[ \t]*#[ \t]*include[ \t]*("|<tapehead\/)/ {
      target = $0; sub(/^[^"<]*["<](tapehead\/)?/, "", target); sub(/\/.*/, "", target)
      if (!((own, target) in may)) print "wrong: " FILENAME ":" FNR ": " own " may not include: " $0
    }
    {
      text = $0; code = ""
      gsub(/\047\\?"\047/, "", text); gsub(/"([^"\\]|\\.)*"/, "text", text)
      while (text != "") {
        if (comment) {
          if (!(at = index(text, "*/"))) break
          text = substr(text, at + 2); comment = 0
        } else if (match(text, /\/[\/*]/)) {
          code = code substr(text, 1, RSTART - 1)
          if (substr(text, RSTART + 1, 1) == "/") break
          text = substr(text, RSTART + 2); comment = 1
        } else {
          code = code text; break
        }
      }
      lines[own] += code ~ /[^ \t]/
    }
    END {
      for (i = 1; i < count; ++i) {
        total += lines[room[i]]
        printf "%-10s %5d lines of at most %5d\n", room[i], lines[room[i]], budget[room[i]]
        if (lines[room[i]] > budget[room[i]])
          print "wrong: " room[i] " has " lines[room[i]] " lines of code; its budget is " budget[room[i]]
      }
      printf "%-10s %5d lines of at most %5d\n", "in all", total, limit
      if (total > limit) print "wrong: the house has " total " lines of code; its budget is " limit
    }'
  for name in $(git ls-files 2>/dev/null | sed 's,/.*,,' | sort -u); do
    case $name in
      .* | Makefile | README.md | LICENSE | include | src | tests | chapters | notebooks) ;;
      *) echo "wrong: $name lies at the top, where nothing but the folders of the design belongs" ;;
    esac
  done
  for header in include/tapehead/*/*.hpp; do
    test=tests/${header#include/tapehead/}
    [ -e "${test%.hpp}_test.cpp" ] || echo "wrong: $header has no test file ${test%.hpp}_test.cpp"
  done)
}

# expect FAULT SHELL_COMMAND: check() names this fault, and no other, in a small house that the command has spoilt
house=$scratch/house
expect() {
  rm -rf "$house" && mkdir "$house"
  for room in kernels tensor ops models; do
    mkdir -p "$house/include/tapehead/$room" "$house/src/$room" "$house/tests/$room"
    printf '#pragma once\n' >"$house/include/tapehead/$room/$room.hpp"
    printf '#include "tapehead/%s/%s.hpp"\n#include "tapehead/kernels/kernels.hpp"\n' "$room" "$room" \
      >"$house/src/$room/$room.cpp"
    touch "$house/tests/$room/${room}_test.cpp"
  done
  printf '#include "tapehead/models/models.hpp"\n' >"$house/include/tapehead/tapehead.hpp"
  (cd "$house" && eval "$2")
  check "$house" >"$scratch/report" 2>&1
  if [ "$(grep -c '^wrong: ' "$scratch/report")" -eq "$([ -n "$1" ] && echo 1 || echo 0)" ] &&
    grep -qF -e "${1:+wrong: }$1" "$scratch/report" && [ "$(wc -l <"$scratch/report")" -ge 12 ]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "FAILED: this check itself; it should say '$1' after: $2"
    sed 's/^/    /' "$scratch/report"
  fi
}
lines() { yes "$1" | head -n "$2"; }
expect '' ':'
expect 'src/tensor/tensor.cpp:3: tensor may not include: #include "tapehead/ops/ops.hpp"' \
  'echo "#include \"tapehead/ops/ops.hpp\"" >>src/tensor/tensor.cpp'
expect 'src/kernels/kernels.cpp:3: kernels may not include: #  include <tapehead/tensor/tensor.hpp>' \
  'echo "#  include <tapehead/tensor/tensor.hpp>" >>src/kernels/kernels.cpp'
expect 'include/tapehead/models/models.hpp:2: models may not include: #include "tapehead/tapehead.hpp"' \
  'echo "#include \"tapehead/tapehead.hpp\"" >>include/tapehead/models/models.hpp'
expect '' 'echo "#include \"tensor/tensor.hpp\"" >>src/models/models.cpp'  # caches, attention, ops, autograd, tensor
expect 'src/attic/a.cpp is in no room' 'mkdir src/attic; touch src/attic/b.hpp; echo "int a;" >src/attic/a.cpp'
expect 'tensor has 1036 lines of code; its budget is 1035' 'lines "int a;  // a" 1033 >>src/tensor/tensor.cpp'
expect '' 'lines "int a;" 1032 >>src/tensor/tensor.cpp; lines "  // no code" 9 >>src/tensor/tensor.cpp'
expect '' '{ lines "int a;" 1031; echo "int b; /* one"; lines "two \" // " 9; echo "three */"; lines "" 9; } >>src/tensor/tensor.cpp'
expect 'tensor has 1036' '{ lines "int a;" 1032; echo "const char* b = \"/*\"; /**/ char c = \047\"\047;"; } >>src/tensor/tensor.cpp'
expect 'the house has' 'echo "$rooms" | while read -r room budget more; do
  [ -z "$room" ] || { mkdir -p "src/$room" && lines "int a;" "$((budget - 5))" >>"src/$room/$room.cpp"; }
done'
expect 'core lies at the top' 'git init -q . && touch core mine && git add core'
expect 'include/tapehead/ops/ops.hpp has no test file tests/ops/ops_test.cpp' 'rm tests/ops/ops_test.cpp'

check . | tee "$scratch/report"
if grep -q '^wrong: ' "$scratch/report"; then failed=$((failed + 1)); else passed=$((passed + 1)); fi
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
