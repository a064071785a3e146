#!/bin/sh
# What `make exercise`, `exercises`, `hint`, `solution` and `watch` run, from the top folder:
#   exercise.sh CHAPTER check | list | hint | solution | watch
#
# Environment: EX (a number or a name; empty: the next open one), SEED (of the inputs; empty: another one each time),
# ANSWERS (the reader's folder), BUILD, and the compiler as the Makefiles export it. Status 0: solved, or nothing to
# solve; 1: not solved.
set -u
shared=$(dirname "$0")
here=chapters/$1/exercises
table=$here/exercises.txt
answers=$ANSWERS
work=$BUILD/exercises/$1
out=${EXERCISE_OUT:-$work}
command=$2
case ${SEED:-} in *[!0-9]*) echo "SEED is a whole number, such as SEED=4711" && exit 1 ;; esac
if [ -t 1 ]; then bold=$(printf '\033[1m') plain=$(printf '\033[0m'); else bold='' plain=''; fi

rows() { grep '^[0-9]' "$table"; }
# field N LINE: of a line of the table: 1 number and name, 2 functions, 3 title, 4 the book's section, 5 forbidden
field() { printf '%s\n' "$2" | awk -F ' *[|] *' -v n="$1" '{ print $n }'; }

# use LINE: the exercise with which the functions below work
use() {
  row=$1
  set -- $(field 1 "$row")
  number=$1 name=$2
  folder=$here/${number}_$name
  answer=$answers/${number}_$name.hpp
  functions=$(field 2 "$row")
  title="$number  $(field 3 "$row")"
  section=$(field 4 "$row")
  program=$out/$number
}

# The last result is kept with a checksum of everything it depends on.
fingerprint() {
  cat "$answer" "$folder/check.cpp" "$folder/wrong.hpp" "$table" "$shared"/*.[ch]pp "$here"/*.hpp | cksum | cut -d' ' -f1
}
remember() {
  grep -v "^$number " "$answers/.state" 2>/dev/null >"$answers/.state.new"
  echo "$number $1 $(fingerprint)" >>"$answers/.state.new"
  mv "$answers/.state.new" "$answers/.state"
}
# state: open (nothing written), solved, wrong, or changed (since it was last checked)
state() {
  if [ ! -f "$answer" ] || cmp -s "$answer" "$folder/stub.hpp"; then echo open && return; fi
  known=$(sed -n "s/^$number \([a-z]*\) $(fingerprint)\$/\1/p" "$answers/.state" 2>/dev/null)
  echo "${known:-changed}"
}

# The compiler refuses the names that the task forbids: those in the table, where @group stands for a line of
# forbidden.txt.
forbid() {
  field 5 "$row" | awk -v groups="$shared/forbidden.txt" '
    BEGIN { while ((getline line < groups) > 0) { name = line; sub(/:.*/, "", name); sub(/^[^:]*:/, "", line); group[name] = line } }
    NF { printf "#pragma GCC poison"; for (i = 1; i <= NF; ++i) printf " %s", $i in group ? group[$i] : $i; print "" }'
}

# first_error LOG: the compiler's first error, and the reader's line, where the error itself is elsewhere
first_error() {
  sed 's|^\./||; s|^<command[- ]line>: ||' "$1" | awk -v answer="$answer" '
    /error: .*poisoned/ && !found {
      split($0, at, ":")
      if (match($0, /"[^"]*"/)) word = substr($0, RSTART + 1, RLENGTH - 2)
      else { getline word; word = substr(word, at[3]); match(word, /^[A-Za-z_0-9]*/); word = substr(word, 1, RLENGTH) }
      poisoned = at[1] ":" at[2]; found = own = 1; next
    }
    poisoned && /note: expanded from here/ { getline word; sub(/[^A-Za-z_0-9].*/, "", word) }  # pasted by a macro
    /error: / && !found { found = 1; print; inside = 1; if (index($0, answer) == 1) own = 1; next }
    inside && /^(In file|compilation terminated|[^ ].*: (note|warning|error):|[0-9]+ error)/ { inside = 0 }
    inside { print }
    !own && !line && index($0, answer ":") == 1 && !/declared here/ { split($0, at, ":"); line = at[2] }
    END {
      if (!found) exit 1
      if (poisoned) {
        print poisoned ": the task does not allow " word ". Write it yourself; a function or"
        print "variable of your own needs another name."
      }
      if (!own && line) print "It comes from line " line " of " answer "."
      else if (!own) {
        print "The error is not in your file, but where the check uses the functions that the stub declares:"
        print "did you change a name, an argument or a result?"
      }
    }'
}

# show_log: what the program printed, with the standard library's assertions in the words of a reader
show_log() {
  sed -E -e '/(ssertion|ASSERT).*empty/s/.*/front(), back() or the like was called for an empty container./' \
    -e '/(ssertion|ASSERT).*(size|bounds|__n)/s/.*/An index is past the end of a std::vector or another container./' "$program.log"
}

# build_answer: compiles and links; prints what is wrong
build_answer() {
  mkdir -p "$out"
  forbid >"$program.forbidden.hpp"
  list=$(printf '%s\n' "$functions" | sed 's/\([a-z_0-9]\{1,\}\)/TAPEHEAD_ANSWER(\1)/g')
  if ! $EXERCISE_COMPILE -Wfatal-errors -Werror=return-type -fdiagnostics-color=never -I"$here" \
    -include "$work/prelude.hpp" -I. -DANSWER="\"$answer\"" -DFORBIDDEN="\"$program.forbidden.hpp\"" -DFUNCTIONS="$list" \
    -MMD -MF "$program.d" -c "$shared/answer.cpp" -o "$program.o" >"$program.log" 2>&1; then
    if grep -q 'poisoned' "$program.log"; then echo "$title: your answer uses what the task forbids:"
    else echo "$title: it does not compile yet. The compiler's first error:"; fi
    echo
    first_error "$program.log" || cat "$program.log"
    return 1
  fi
  if grep -q "$here/[^ ]*/" "$program.d"; then
    echo "$title: your file includes $(grep -o "$here/[^ ]*/[^ ]*" "$program.d" | head -n 1). Write the answer in your own file."
    return 1
  fi
  if ! $TAPEHEAD_LINK "$program.o" "$work/${number}_$name/check.o" "$work/checker.o" "$work/grade.o" $TAPEHEAD_LDLIBS \
    -o "$program" >"$program.log" 2>&1; then
    echo "$title: something is declared in $answer but never defined:"
    echo
    grep -m1 'undefined' "$program.log" | sed 's/^.*: undefined/undefined/' || cat "$program.log"
    return 1
  fi
}

# check_answer: compiles and checks, prints the result, sets verdict
check_answer() {
  verdict=wrong
  if build_answer; then
    key=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
    SEED=${SEED:-} EXERCISE_KEY=$key "$program" 3>"$program.key" >"$program.log" 2>&1
    status=$?
    show_log
    # Only the grading program knows the key. A status of 0 alone could be an exit() of the answer.
    if [ $status -eq 0 ] && [ "$(cat "$program.key")" = "$key" ]; then
      verdict=solved
      echo && echo "$title: solved."
    else
      [ $status -eq 0 ] && echo "The program ended before the check did. Is there an exit() in the answer?"
      echo && echo "$title: not solved yet."
    fi
  fi
  remember $verdict
}

# choose: the exercise that EX names, or the first that is not solved; ends the program when there is none
choose() {
  if [ -z "$EX" ]; then
    chosen=$(rows | while IFS= read -r line; do
      use "$line"
      if [ "$(state)" != solved ]; then printf '%s\n' "$line" && break; fi
    done)
    if [ -z "$chosen" ]; then echo "All exercises are solved." && exit 0; fi
  else
    chosen=$(rows | awk -v ex="$EX" '{ n = $1; sub(/^0/, "", n); e = ex; sub(/^0/, "", e) }
      n == e || $2 == ex || $1 "_" $2 == ex { print; exit }')
    if [ -z "$chosen" ]; then
      echo "There is no exercise '$EX'. There are 1 to $(rows | wc -l | tr -d ' '); make exercises lists them."
      exit 1
    fi
  fi
  use "$chosen"
}

start() {  # copies the stub for the reader, if there is no answer; status 0 when there was none
  [ -f "$answer" ] && return 1
  mkdir -p "$answers" && cp "$folder/stub.hpp" "$answer"
}

introduce() {
  echo "$bold$title$plain   ($section)"
  echo
  sed -n '/^#include/q; s/^\/\/ \{0,1\}//p' "$folder/stub.hpp" | sed '1,2d'
  echo
  echo "Write your answer in $bold$answer$plain, then run: make exercise"
  echo "For a hint: make hint EX=${number#0}     To check it each time you save: make watch EX=${number#0}"
}

check() {
  if start; then introduce && return 1; fi
  if cmp -s "$answer" "$folder/stub.hpp"; then introduce && echo "There is no answer yet." && return 1; fi
  check_answer
  if [ $verdict = solved ]; then
    echo "To compare your reasoning: make solution EX=${number#0}     The next exercise: make exercise"
    return 0
  fi
  echo "Your answer: $answer     A hint: make hint EX=${number#0}"
  return 1
}

list() {
  rows | {
    next=
    while IFS= read -r line; do
      use "$line"
      now=$(state)
      if [ "$now" = changed ]; then check_answer >/dev/null && now=$verdict; fi
      mark=' '
      if [ -z "$next" ] && [ "$now" != solved ]; then next=$number mark='>'; fi
      printf '%s %-8s %-52s %s\n' "$mark" "$now" "$title" "$section"
    done
    echo
    if [ -n "$next" ]; then echo "Next: make exercise     (another one: make exercise EX=${next#0})"
    else echo "All exercises are solved."; fi
  }
}

hint() {
  mkdir -p "$answers"
  given=$(grep -c "^$number\$" "$answers/.hints" 2>/dev/null)
  given=${given:-0}
  total=$(wc -l <"$folder/hints.txt" | tr -d ' ')
  if [ "$given" -lt "$total" ]; then
    echo "$number" >>"$answers/.hints"
    given=$((given + 1))
    echo "$title: hint $given of $total"
    echo
    sed -n "${given}p" "$folder/hints.txt" | fold -s -w 100
  else
    echo "$title: you have seen all hints; here they are again"
    echo
    fold -s -w 100 "$folder/hints.txt"
  fi
  echo
  if [ "$given" -lt "$total" ]; then echo "The next hint: make hint EX=${number#0}"
  else echo "A solution: make solution EX=${number#0}"; fi
}

watch() {
  start
  echo "Watching $answer. Press Ctrl-C to stop."
  before=
  while :; do
    now=$(cksum "$answer" 2>/dev/null)
    if [ -n "$now" ] && [ "$now" != "$before" ]; then
      before=$now
      printf '\n---- %s\n' "$(date +%H:%M:%S)"
      if check; then exit 0; fi
    fi
    sleep 1
  done
}

case $command in
  list) list ;;
  check | hint | watch) choose && $command ;;
  solution)
    choose
    echo "$bold$title$plain"
    echo
    cat "$folder/solution.hpp" ;;
  *) echo "exercise.sh: there is no command '$command'" && exit 1 ;;
esac
