#!/bin/sh
# Checks the exercises themselves: each stub compiles and fails, each solution passes, each mistake is recognised
# under its own name, no stub gives the solution away, nothing is missing or left over, and the commands say what
# they should.
set -u
parts="$BUILD/exercises/checks1.o $BUILD/exercises/checks2.o $BUILD/exercises/checker.o"
here=$(dirname "$0")
scratch=$(mktemp -d "${TMPDIR:-/tmp}/tapehead.XXXXXX") || exit 1
trap 'rm -rf "$scratch"' EXIT
passed=0 failed=0

pass() { passed=$((passed + 1)); }
fail() { failed=$((failed + 1)) && echo "$@"; }
# is MESSAGE COMMAND...: the command succeeds
is() {
  message=$1
  shift
  if "$@"; then pass; else fail "$message"; fi
}
# says FILE TEXT: the text stands in the file
says() { if grep -qF -- "$2" "$1"; then pass; else fail "expected '$2' in:" && sed 's/^/    /' "$1"; fi; }

title() { rows | grep "^$1 " | awk -F ' *[|] *' '{ print $3 }'; }
rows() { grep -v '^#' "$here/exercises.txt"; }
rows | awk '{ print $1 "_" $2 }' >"$scratch/folders"

# ---- the files

# Code lines of a solution that a stub must not have: all that is indented.
given_away() {
  sed -n 's/^ \{1,\}//p' "$1/solution.hpp" | grep -Ev '^const [A-Za-z:<>]*& |^[a-z]* [a-z]*[)] [{]$' | awk 'length > 9' >"$scratch/lines"
  sed -n '/{ return/s/^.*{ return \(.*\) }.*$/\1/p' "$1/solution.hpp" >>"$scratch/lines"
  grep -F -f "$scratch/lines" "$1/stub.hpp"
}
expected='check.cpp hints.txt solution.hpp stub.hpp'
for folder in $(cat "$scratch/folders"); do
  is "$folder: files are '$(ls "$here/$folder" | xargs)', not '$expected'" \
    [ "$(ls "$here/$folder" | xargs)" = "$expected" ]
  is "$folder: the stub gives something of the solution away" [ -z "$(given_away "$here/$folder")" ]
  is "$folder: no todo() in the stub" grep -q 'todo();' "$here/$folder/stub.hpp"
  is "$folder: fewer than 2 hints" [ "$(grep -c '..........' "$here/$folder/hints.txt")" -ge 2 ]
  is "$folder: an empty line among the hints" [ "$(grep -c '^ *$' "$here/$folder/hints.txt")" -eq 0 ]
  is "$folder: the solution has no reasoning" [ "$(grep -c '^// .\{40\}' "$here/$folder/solution.hpp")" -ge 3 ]
  is "$folder: the stub's first line is not '// ${folder%%_*}  title'" \
    grep -q "^// ${folder%%_*}  $(title "${folder%%_*}")" "$here/$folder/stub.hpp"
  is "$folder: not in README.md" grep -q "$folder" "$here/README.md"
  is "$folder: stub or solution includes more than exercise.hpp" \
    [ "$(cat "$here/$folder"/s*.hpp | grep '^#include' | sort -u)" = '#include "exercise.hpp"' ]
done
ls "$here" >"$scratch/there"
{
  cat "$scratch/folders"
  printf '%s\n' README.md checker.cpp checker.hpp checks.hpp exercise.hpp exercise.sh exercises.txt main.cpp \
    self_test.sh
} | sort >"$scratch/known"
is "files that belong to nothing, or are missing: $(LC_ALL=C sort "$scratch/there" | diff - "$scratch/known")" \
  cmp -s "$scratch/there" "$scratch/known"
is 'numbers in exercises.txt are not 01, 02, ...' \
  [ -z "$(rows | awk '$1 != sprintf("%02d", NR)')" ]

# ---- stubs, solutions and mistakes, in one program

{
  echo '#include <cstdio>'
  echo '#include "checker.hpp"'
  echo '#include "tapehead/autograd/tape.hpp"'
  rows | while IFS= read -r line; do
    set -- $line
    echo "namespace solution_$1 {"
    echo "#include \"$1_$2/solution.hpp\""
    echo '}'
  done
  echo '#pragma GCC diagnostic ignored "-Wunused-parameter"'
  rows | while IFS= read -r line; do
    set -- $line
    echo "namespace stub_$1 {"
    echo "#include \"$1_$2/stub.hpp\""
    echo '}'
  done
  cat <<'EOF'
using exercise::Checker;
int passed = 0, failed = 0;
void is(bool what, const char* name, const char* message, const std::string& text = "") {
  ++(what ? passed : failed);
  if (!what) std::printf("%s: %s\n%s\n", name, message, text.c_str());
}
void exercise_is_sound(const char* name, void (*stub)(Checker&), void (*solution)(Checker&)) {
  Checker untouched, solved(true);
  stub(untouched);
  is(untouched.asked() > 0 && untouched.todo() == untouched.asked(), name, "the stub passes", untouched.text());
  solution(solved);
  is(solved.solved(), name, "the solution does not pass", solved.text());
  is(solved.trials() >= 3, name, "fewer than three mistakes are known");
  for (const auto& problem : solved.problems()) is(false, name, problem.c_str());
  passed += solved.trials() - static_cast<int>(solved.problems().size());
}
// What is recognised in any answer, and what must not count as right.
using exercise::T;
std::string taken_for(const std::function<T(const T&)>& answer) {
  Checker check;
  exercise::Question<T, T> q(check, "twice", answer, {"x"});
  q.right([](auto& x) { return x * 2; });
  q.input({{1, 2}, {3, 4}});
  q.input({{0.5, -1}, {2, 7}});
  q.ask();
  return check.solved() ? "solved" : check.text();
}
void in_general(const char* message, const std::function<T(const T&)>& answer) {
  const auto text = taken_for(answer);
  is(text.find(message) != std::string::npos, "checker", message, text);
}
int main() {
  in_general("solved", [](const T& x) { return x + x; });
  in_general("does not depend on the input", [](const T&) { return T{{2, 4}, {6, 8}}; });
  in_general("the sign is the wrong way round", [](const T& x) { return x * -2; });
  in_general("the result is transposed", [](const T& x) { return x.T() * 2; });
  in_general("every number is 1.5 times what it should be", [](const T& x) { return x * 3; });
  in_general("right to four digits", [](const T& x) { return x * 2.00001; });
  in_general("an exception: matmul: (2, 2) @ (3, 1)", [](const T& x) { return matmul(x, zeros<double>({3, 1})); });
  in_general("the shape is (4,); it should be (2, 2)", [](const T& x) { return x.reshape({4}) * 2; });
  in_general("furthest off at (1, 0): 7 came, 6 is right", [](const T& x) { return x * 2 + T{{0, 0}, {1, 0}}; });
  in_general("furthest off at (0, 1): nan came, 4 is right",
             [](const T& x) { return x * 2 + T{{0, std::nan("")}, {0, 0}}; });
  in_general("no answer yet", [](const T&) -> T { todo(); });
EOF
  rows | while IFS= read -r line; do
    set -- $line
    list() { rows | grep "^$1 " | awk -F ' *[|] *' '{ print $2 }' | sed "s/\([a-z_]\{1,\}\)/$2_$1::\1/g"; }
    echo "  exercise_is_sound(\"$1_$2\", [](Checker& c) { exercise::$2(c, $(list "$1" stub)); },"
    echo "                    [](Checker& c) { exercise::$2(c, $(list "$1" solution)); });"
  done
  printf '%s\n' '  std::printf("%d %d\n", passed, failed);'
  echo '}'
} >"$scratch/all.cpp"
if $TAPEHEAD_COMPILE -O0 -I"$here" -c "$scratch/all.cpp" -o "$scratch/all.o" &&
  $TAPEHEAD_LINK "$scratch/all.o" $parts $TAPEHEAD_LDLIBS -o "$scratch/all" &&
  "$scratch/all" >"$scratch/all.log"; then
  sed '$d' "$scratch/all.log"
  set -- $(tail -n 1 "$scratch/all.log")
  passed=$((passed + $1)) failed=$((failed + $2))
else
  cat "$scratch/all.log" 2>/dev/null
  fail 'the program of all stubs and solutions does not build, or crashed'
fi

# ---- the commands

ANSWERS=$scratch/answers
export ANSWERS
run() { EX=$2 "$here/exercise.sh" "$1" >"$scratch/log" 2>&1; }

is 'the first exercise cannot be begun' run check ''
says "$scratch/log" "Write your answer in $ANSWERS/01_three_roles.hpp"
is 'the stub was not copied' cmp -s "$here/01_three_roles/stub.hpp" "$ANSWERS/01_three_roles.hpp"
is 'an untouched stub counts as solved' eval '! run check ""'
says "$scratch/log" 'There is no answer yet.'
is 'a number that is not there is taken' eval '! run check 99'
says "$scratch/log" "There is no exercise '99'"

cp "$here/07_softmax_pullback/solution.hpp" "$ANSWERS/07_softmax_pullback.hpp"
is 'a solution does not pass' run check 7
says "$scratch/log" 'The gradient of softmax: solved.'
mine() { printf '#include "exercise.hpp"\n%s\n' "$1" >"$ANSWERS/07_softmax_pullback.hpp"; }
function='Tensor<double> softmax_pullback(const Tensor<double>& y, const Tensor<double>& dy)'
mine "$function { return y * dy; }"
is 'a wrong answer passes' eval '! run check softmax_pullback'
says "$scratch/log" 'Most likely: forgot the D term'
is 'the reader'\''s own file was changed' grep -q 'return y \* dy; }' "$ANSWERS/07_softmax_pullback.hpp"
mine "$function {
  return y * dz;
}"
is 'an answer that does not compile passes' eval '! run check 7'
says "$scratch/log" '07_softmax_pullback.hpp:3:'
is 'not the first error alone is shown' [ "$(grep -c 'error: ' "$scratch/log")" -eq 1 ]

run list ''
says "$scratch/log" '  failing  07  The gradient of softmax'
says "$scratch/log" '> open     01  One input in three roles'
run hint 7
says "$scratch/log" "hint 1 of $(wc -l <"$here/07_softmax_pullback/hints.txt" | tr -d ' ')"
run hint 07
says "$scratch/log" 'hint 2 of'
run solution 7
says "$scratch/log" 'return y * (dy - sum(y * dy, -1, true));'

# A program that crashes or does not end, without waiting for the compiler again.
cat >"$scratch/bad.cpp" <<'EOF'
#include <cstdlib>
#include <cstring>
#include "checks.hpp"
const char* what = "";
Tensor<double> f(const Tensor<double>& y, const Tensor<double>& dy) {
  volatile int zero = 0;
  if (std::strcmp(what, "loop") == 0) while (zero == 0) {}
  if (std::strcmp(what, "recursion") == 0) return y * f(dy, y);
  if (std::strcmp(what, "segv") == 0) *(volatile int*)nullptr = 1;
  if (std::strcmp(what, "abort") == 0) std::abort();
  if (std::strcmp(what, "exit") == 0) std::exit(0);
  throw 1;
}
int main(int, char** argv) {
  what = argv[1];
  return exercise::run("bad", [](exercise::Checker& c) { exercise::softmax_pullback(c, f); }, 1);
}
EOF
bad() { "$scratch/bad" "$1" >"$scratch/log" 2>&1; }
if $TAPEHEAD_COMPILE -O0 -w -I"$here" -c "$scratch/bad.cpp" -o "$scratch/bad.o" &&
  $TAPEHEAD_LINK "$scratch/bad.o" $parts $TAPEHEAD_LDLIBS -o "$scratch/bad"; then
  case ${SANITIZE:-} in
    *thread*) ;;  # it holds an alarm back until the program calls something
    *)
      is 'an endless loop passes' eval '! bad loop'
      says "$scratch/log" 'Stopped: no result'
      says "$scratch/log" 'It was in softmax_pullback, given'
      ;;
  esac
  is 'a throw of any kind passes' eval '! bad throw'
  says "$scratch/log" 'of a type that is not a std::exception'
  if [ -z "${SANITIZE:-}" ]; then  # these report crashes in their own words
    for kind in recursion segv abort; do
      is "a crash passes: $kind" eval "! bad $kind"
      says "$scratch/log" 'Crashed:'
    done
  fi
else
  fail 'the program that crashes does not build'
fi

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
