#!/bin/bash
# Checks the exercises of every chapter: each stub is refused, each solution passes, every wrong answer in a wrong.hpp is
# refused under the name that it should get, every dodge in a dodges.txt is refused with a fitting message, no stub gives
# the solution away, and the commands say what they should.
set -u
shared=$(dirname "$0")
if [[ ${1:-} != one ]]; then scratch=$(mktemp -d "${TMPDIR:-/tmp}/tapehead.XXXXXX") || exit 1; export scratch; fi
passed=0 failed=0

# is MESSAGE COMMAND...: the command succeeds
is() { if "${@:2}"; then ((++passed)); else ((++failed)) && echo "$1"; fi; }
# says FILE TEXT: the text stands in the file
says() { if grep -qF -- "$2" "$1"; then ((++passed)); else ((++failed)) && echo "expected '$2' in:" && sed 's/^/    /' "$1"; fi; }
no() { ! "$@"; }
rows() { grep '^[0-9]' "chapters/$1/exercises/exercises.txt"; }
# run CHAPTER EX COMMAND: the output is in $log
run() { EX=$2 "$shared/exercise.sh" "$1" "$3" >"$log" 2>&1; }

# files CHAPTER ROW: what can be seen without a compiler
files() {
  local here=chapters/$1/exercises number name title
  read -r number name <<<"${2%%|*}"
  title=$(awk -F ' *[|] *' '{ print $3 }' <<<"$2")
  local id=${number}_$name folder=$here/${number}_$name
  is "$id: files are $(ls "$folder" | xargs)" \
    [ "$(ls "$folder" | xargs)" = 'check.cpp hints.txt solution.hpp stub.hpp wrong.hpp' ]
  # Code lines of the solution, that is all that is indented.
  { sed -n 's/^ \{1,\}//p' "$folder/solution.hpp" | grep -Ev '^const [A-Za-z:<>]*& |^[a-z]* [a-z]*[)] [{]$' | awk 'length > 9'
    sed -n '/{ return/s/^.*{ return \(.*\) }.*$/\1/p' "$folder/solution.hpp"; } >"$scratch/$id.lines"
  is "$id: the stub gives a line of the solution away" no grep -qF -f "$scratch/$id.lines" "$folder/stub.hpp"
  is "$id: no todo() in the stub" grep -q 'todo();' "$folder/stub.hpp"
  is "$id: fewer than 2 hints" [ "$(grep -c '..........' "$folder/hints.txt")" -ge 2 ]
  is "$id: an empty line among the hints" no grep -q '^ *$' "$folder/hints.txt"
  is "$id: fewer than ten wrong answers" [ "$(grep -cE '(q|p)\.(wrong|mistake)\(|^  mistake\(' "$folder/wrong.hpp")" -ge 10 ]
  is "$id: the solution has no reasoning" [ "$(grep -c '^// .\{40\}' "$folder/solution.hpp")" -ge 3 ]
  is "$id: the stub's first line is not '// $number  title'" grep -q "^// $number  $title" "$folder/stub.hpp"
  is "$id: not in README.md" grep -q "$id" "$here/README.md"
  is "$id: stub or solution includes more than exercise.hpp" \
    [ "$(cat "$folder"/s*.hpp | grep '^#include' | sort -u)" = '#include "exercise.hpp"' ]
}

# trial CHAPTER ROW: the stub, the solution and the wrong answers
trial() {
  local number name
  read -r number name <<<"${2%%|*}"
  local id=${number}_$name folder=chapters/$1/exercises/${number}_$name
  ANSWERS=$scratch/stubs-$1 && mkdir -p "$ANSWERS"
  { cat "$folder/stub.hpp"; echo '// begun'; } >"$ANSWERS/$id.hpp"
  run "$1" "$number" check
  is "$id: the stub passes" [ $? -ne 0 ]
  says "$log" 'no answer yet'
  ANSWERS=$scratch/solutions-$1 && mkdir -p "$ANSWERS"
  cp "$folder/solution.hpp" "$ANSWERS/$id.hpp"
  is "$id: the solution is refused" run "$1" "$number" check
  says "$log" 'solved.'
  EXERCISE_SELF_TEST=3 "$BUILD/exercises/$1/$number" >"$log" 2>&1
  local more_passed more_failed
  read -r more_passed more_failed <<<"$(sed -n '$s/^\([0-9]*\) passed, \([0-9]*\) failed$/\1 \2/p' "$log")"
  sed '$d' "$log"
  [[ $more_failed ]] || is "$id: the wrong answers were not tried" false
  ((passed += more_passed, failed += more_failed, 1))
}

# dodge CHAPTER FILE: FILE begins with the exercise's number and the message to expect
dodge() {
  local number message
  read -r number message <"$2"
  [[ ${SANITIZE:-} && $message == @plain* ]] && return  # sanitizers report crashes in their own words
  message=${message#@plain }
  ANSWERS=$2.answers && mkdir -p "$ANSWERS"
  local stub=$(echo chapters/$1/exercises/${number}_*/stub.hpp)
  { echo '#include "exercise.hpp"'; sed 1d "$2"; } >"$ANSWERS/$(basename "$(dirname "$stub")").hpp"
  local began=$SECONDS
  EXERCISE_OUT=$ANSWERS run "$1" "$number" check
  local status=$?
  is "$number: this passes: $(cat "$2")" [ $status -ne 0 ]
  says "$log" "$message"
  is "$number: no verdict in the output" grep -qE 'not solved yet|does not compile|forbids|includes' "$log"
  is "$number: the answer took $((SECONDS - began)) s: $(cat "$2")" [ $((SECONDS - began)) -lt 150 ]
}

if [[ ${1:-} == one ]]; then  # one JOB CHAPTER ARGUMENT, of those that are run two at a time
  export ANSWERS
  log=$scratch/log.$$
  "$2" "$3" "$4"
  echo "$passed $failed" >"$scratch/count.$$"
  exit
fi

trap 'rm -rf "$scratch"' EXIT
for table in chapters/*/exercises/exercises.txt; do
  here=$(dirname "$table") chapter=$(basename "$(dirname "$(dirname "$table")")")
  is 'numbers in exercises.txt are not 01, 02, ...' [ -z "$(rows "$chapter" | awk '$1 != sprintf("%02d", NR)')" ]
  is "$here: folders and exercises.txt differ" \
    [ "$(rows "$chapter" | awk '{ print $1 "_" $2 }')" = "$(ls "$here" | grep '^[0-9]')" ]
  while IFS= read -r row; do
    files "$chapter" "$row"
    printf 'trial\0%s\0%s\0' "$chapter" "$row" >>"$scratch/jobs"
  done <<<"$(rows "$chapter")"
  awk -v prefix="$scratch/$chapter." '/^== / { file = prefix (++n); sub(/^== /, "") } file { print >file }' "$here/dodges.txt"
  for file in "$scratch/$chapter".*; do printf 'dodge\0%s\0%s\0' "$chapter" "$file" >>"$scratch/jobs"; done
done
xargs -0 -P 2 -n 3 "$0" one <"$scratch/jobs"
while read -r more_passed more_failed; do ((passed += more_passed, failed += more_failed)); done <<<"$(cat "$scratch"/count.*)"

# ---- the commands, with the first chapter of all

chapter=02.03-attention log=$scratch/log
export ANSWERS=$scratch/answers
is 'the first exercise cannot be begun, or counts as solved' no run $chapter '' check
says "$log" "Write your answer in $ANSWERS/01_three_roles.hpp"
is 'the stub was not copied' cmp -s chapters/$chapter/exercises/01_three_roles/stub.hpp "$ANSWERS/01_three_roles.hpp"
is 'an untouched stub counts as solved' no run $chapter '' check
says "$log" 'There is no answer yet.'
is 'a number that does not exist is accepted' no run $chapter 99 check
says "$log" "There is no exercise '99'"
cp "$scratch/solutions-$chapter/08_value_path.hpp" "$ANSWERS"
is 'a solution does not pass' run $chapter value_path check
says "$log" 'dV and dA: solved.'
answer=$ANSWERS/07_softmax_pullback.hpp
printf '%s\n' '#include "exercise.hpp"' 'Tensor<double> softmax_pullback(const Tensor<double>& y, const Tensor<double>& dy) {' \
  '  return y * dy;' '}' >"$answer"
cp "$answer" "$scratch/mine.hpp"
is 'a wrong answer passes' no run $chapter softmax_pullback check
says "$log" 'Most likely: forgot the D term'
cp "$log" "$scratch/first"
SEED=$(sed -n 's/.*SEED=//p' "$log") run $chapter 7 check
is 'SEED does not repeat the inputs' cmp -s "$log" "$scratch/first"
run $chapter 7 check
is 'two checks have the same inputs' no cmp -s "$log" "$scratch/first"
is "the reader's own file was changed" cmp -s "$answer" "$scratch/mine.hpp"
sed -i.old 's/y \* dy/y * dz/' "$answer"
is 'an answer that does not compile passes' no run $chapter 7 check
says "$log" '07_softmax_pullback.hpp:3:'
is 'more than the first error is shown' [ "$(grep -c 'error: ' "$log")" -eq 1 ]
run $chapter '' list
says "$log" '  wrong    07  The gradient of softmax'
says "$log" '  solved   08  dV and dA'
says "$log" '> open     01  One input in three roles'
run $chapter 7 hint
says "$log" 'hint 1 of '
run $chapter 07 hint
says "$log" 'hint 2 of '
run $chapter 7 solution
says "$log" 'return y * (dy - sum(y * dy, -1, true));'

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
