#!/usr/bin/env bash
# Tests what README.md shows: its example compiles and prints what stands below it, its commands are targets,
# and every file that it names is there. (Its picture is held against the program by the chapter's walk/walk.sh.)
set -u
source tests/judge.sh

# block LANGUAGE: the first fenced block of that language
block() {
  awk -v fence="\`\`\`$1" '/^```/ { if (inside) exit; inside = $0 == fence; next } inside' README.md
}

block cpp >"$scratch/example.cpp"
block text >"$scratch/expected"
{
  [[ -s $scratch/example.cpp && -s $scratch/expected ]] &&
    $TAPEHEAD_COMPILE -Werror -c "$scratch/example.cpp" -o "$scratch/example.o" &&
    $TAPEHEAD_LINK "$scratch/example.o" $TAPEHEAD_LDLIBS -o "$scratch/example" &&
    "$scratch/example" >"$scratch/printed" &&
    diff "$scratch/expected" "$scratch/printed"
} >"$scratch/log" 2>&1
judge $? 'the example compiles and prints what README says' "$scratch/log"

own_make() { env MAKEFLAGS= MFLAGS= MAKELEVEL=0 "$TAPEHEAD_MAKE" --no-print-directory "$@"; }
sed -n 's/^\(make [a-z]*\).*/\1/p; s/.*`\(make [a-z]*\).*/\1/p' README.md | sort -u | while read -r command; do
  own_make -n "${command#make }" >"$scratch/log" 2>&1 || echo "$command"
done >"$scratch/wrong"
! [[ -s $scratch/wrong ]]
judge $? 'every make command in README is one' "$scratch/wrong"

{
  grep -o '`[a-z./0-9_-]*/[a-zA-Z./0-9_-]*`' README.md | tr -d '`'
  grep -o '](\([^)#]*\))' README.md | sed 's/^](//; s/)$//' | grep -v '^https\?:'
} | sort -u | while read -r path; do
  [[ -e $path ]] || echo "$path"
done >"$scratch/wrong"
! [[ -s $scratch/wrong ]]
judge $? 'every path in README is there' "$scratch/wrong"

finish
