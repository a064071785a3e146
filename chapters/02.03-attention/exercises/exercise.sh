#!/bin/sh
# What `make exercise`, `exercises`, `hint`, `solution` and `watch` run, from the top folder.
#
# Environment: EX (a number or a name; empty: the next open one), ANSWERS (the reader's folder), BUILD, and the
# compiler as the Makefile exports it. Status 0: solved (or shown), 1: not.
set -u
here=$(dirname "$0")
table=$here/exercises.txt
answers=${ANSWERS:-exercises}
work=$BUILD/exercises
command=$1
if [ -t 1 ]; then bold=$(printf '\033[1m') plain=$(printf '\033[0m'); else bold='' plain=''; fi

rows() { grep -v '^#' "$table"; }
# field N LINE: of a line of the table: 1 number and name, 2 functions, 3 title, 4 the book's section
field() { printf '%s\n' "$2" | awk -F ' *[|] *' -v n="$1" '{ print $n }'; }

# use LINE: the exercise that the functions below speak of
use() {
  row=$1
  set -- $(field 1 "$row")
  number=$1 name=$2
  folder=$here/${number}_$name
  answer=$answers/${number}_$name.hpp
  functions=$(field 2 "$row")
  title="$number  $(field 3 "$row")"
  section=$(field 4 "$row")
}

# What was found out last is kept with a checksum of all that it depends on.
fingerprint() {
  cat "$answer" "$folder/check.cpp" "$here"/*.hpp "$here/checker.cpp" "$here/main.cpp" | cksum | cut -d' ' -f1
}
remember() {
  grep -v "^$number " "$answers/.state" 2>/dev/null >"$answers/.state.new"
  echo "$number $1 $(fingerprint)" >>"$answers/.state.new"
  mv "$answers/.state.new" "$answers/.state"
}
# state: open (nothing written), solved, failing, or changed (since it was last checked)
state() {
  if [ ! -f "$answer" ] || cmp -s "$answer" "$folder/stub.hpp"; then echo open && return; fi
  known=$(sed -n "s/^$number \([a-z]*\) $(fingerprint)\$/\1/p" "$answers/.state" 2>/dev/null)
  echo "${known:-changed}"
}

# first_error LOG: the compiler's first error, and the reader's line, where the error itself is elsewhere
first_error() {
  sed 's|^\./||; s|^<command[- ]line>: ||' "$1" | awk -v answer="$answer" '
    /error: / && !found { found = 1; print; inside = 1; if (index($0, answer) == 1) own = 1; next }
    inside && /^(In file|compilation terminated|[^ ].*: (note|warning|error):|[0-9]+ error)/ { inside = 0 }
    inside { print }
    !own && !line && index($0, answer ":") == 1 { split($0, at, ":"); line = at[2] }
    END {
      if (!found) exit 1
      if (!own && line) print "It comes from line " line " of " answer "."
      else if (!own) {
        print "It is not in your file, but where the check calls your functions as the stub declares them:"
        print "has a name, an argument or a result changed?"
      }
    }'
}

# check_answer: compiles and checks, prints what there is to say, sets verdict
check_answer() {
  verdict=failing
  mkdir -p "$work"
  program=$work/$number
  if ! $TAPEHEAD_COMPILE -O0 -Wno-error -Wfatal-errors -Werror=return-type -fdiagnostics-color=never -I. -I"$here" \
    -DANSWER="\"$answer\"" -DNAME="$name" -DFUNCTIONS="$functions" -DTITLE="\"$title\"" \
    -c "$here/main.cpp" -o "$program.o" >"$program.log" 2>&1; then
    echo "$title: it does not compile yet. The compiler's first error:"
    echo
    first_error "$program.log" || cat "$program.log"
  elif ! $TAPEHEAD_LINK "$program.o" "$work"/checks[12].o "$work/checker.o" $TAPEHEAD_LDLIBS -o "$program" \
    >"$program.log" 2>&1; then
    echo "$title: something is declared in $answer but never defined:"
    echo
    grep -m1 'undefined' "$program.log" | sed 's/^.*: undefined/undefined/' || cat "$program.log"
  else
    "$program" >"$program.log" 2>&1
    status=$?
    cat "$program.log"
    # A status of 0 alone could be the answer's own exit().
    case $status in
      0)
        if tail -n 1 "$program.log" | grep -qF "$title: solved."; then verdict=solved
        else echo "$title: the program ended before the check did. Is there an exit() in the answer?"; fi ;;
      1 | 2) ;;
      *) echo "$title: the program ended with status $status before the check did." ;;
    esac
  fi
  remember $verdict
}

# choose: the exercise that EX names, or the first that is not solved; status 1 when there is none
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

start() {  # the reader's file, from the stub, if there is none; status 0 when there was none
  [ -f "$answer" ] && return 1
  mkdir -p "$answers" && cp "$folder/stub.hpp" "$answer"
}

introduce() {
  echo "$bold$title$plain   ($section)"
  echo
  sed -n '/^#include/q; s/^\/\/ \{0,1\}//p' "$folder/stub.hpp" | sed '1,2d'
  echo
  echo "Write your answer in $bold$answer$plain, then: make exercise"
  echo "Stuck? make hint EX=${number#0}     Checked on every save: make watch EX=${number#0}"
}

check() {
  if start; then introduce && return 0; fi
  if cmp -s "$answer" "$folder/stub.hpp"; then introduce && echo "There is no answer yet." && return 1; fi
  check_answer
  if [ $verdict = solved ]; then
    echo "The reasoning, to compare with yours: make solution EX=${number#0}     The next one: make exercise"
    return 0
  fi
  echo
  echo "Your answer: $answer     A hint: make hint EX=${number#0}"
  return 1
}

case $command in
  list)
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
      if [ -n "$next" ]; then echo "Next: make exercise     (another: make exercise EX=${next#0})"
      else echo "All exercises are solved."; fi
    } ;;
  check) choose && check ;;
  hint)
    choose
    mkdir -p "$answers"
    given=$(grep -c "^$number\$" "$answers/.hints" 2>/dev/null)
    total=$(wc -l <"$folder/hints.txt" | tr -d ' ')
    if [ "${given:-0}" -lt "$total" ]; then
      echo "$number" >>"$answers/.hints"
      given=$((${given:-0} + 1))
      echo "$title: hint $given of $total"
      echo
      sed -n "${given}p" "$folder/hints.txt" | fold -s -w 100
    else
      echo "$title: these are all the hints"
      echo
      fold -s -w 100 "$folder/hints.txt"
    fi
    echo
    if [ "$given" -lt "$total" ]; then echo "The next one: make hint EX=${number#0}"
    else echo "A solution: make solution EX=${number#0}"; fi ;;
  solution)
    choose
    echo "$bold$title$plain"
    echo
    cat "$folder/solution.hpp" ;;
  watch)
    choose
    start
    echo "Watching $answer. Ctrl-C ends it."
    before=
    while :; do
      now=$(cksum "$answer" 2>/dev/null)
      if [ -n "$now" ] && [ "$now" != "$before" ]; then
        before=$now
        printf '\n---- %s\n' "$(date +%H:%M:%S)"
        if check; then exit 0; fi
      fi
      sleep 1
    done ;;
  generate)
    echo "// Every second check, written by exercise.sh from exercises.txt."
    rows | awk -v half="$2" 'NR % 2 == half % 2' | while IFS= read -r line; do
      use "$line"
      echo "#include \"${number}_$name/check.cpp\""
    done ;;
  *) echo "exercise.sh: there is no command '$command'" && exit 1 ;;
esac
