#!/usr/bin/env bash
# Tests the book-keeping of the chapter's programs (chapters/02.03-attention/claims.hpp): a value that is wrong, left out
# or rounded otherwise than printed has to show, and results of an earlier run must not count. And their tables.
# Nothing is built again when all that it is made of is as it was when this passed.
set -u
chapter=chapters/02.03-attention
stamp=$BUILD/tests/claims_test.passed
inputs=(include $chapter/claims.?pp $chapter/captions.?pp $chapter/table.?pp $chapter/report.cpp "$0" "$BUILD/libtapehead.a")
if [[ -f $stamp && -z $(find "${inputs[@]}" -newer "$stamp") ]]; then
  echo 'nothing has changed since these passed'
  cat "$stamp"
  exit
fi

source tests/judge.sh

mkdir -p "$scratch/$chapter" "$scratch/tests/golden"
touch "$scratch/$chapter/01_first.cpp" "$scratch/$chapter/02_second.cpp"

# ---- a book of two sections, and what is exactly true of it
{
  printf 'id\tsection\ttext\tvalues\tdecimals\tagrees\tkind\tsource\tnote\n'
  printf 'pair\tOne\ta and b\t0.12 2.6E10\t\ttrue\n'
  printf 'cut\tOne\tcut off, not rounded\t0.77\t\tfalse\tworked_example\tfull\tit is cut | off\n'
  printf 'listing\tOne\tnp.round(x, 2)\t1 0\t2\ttrue\n'
  printf 'says\tTwo\tit holds\t\t\ttrue\n'
  printf 'silent\tTwo\t\t\t\t\n'
  printf 'infinite\tTwo\t\t\t\t\n'
} >"$scratch/tests/golden/chapter.tsv"
{
  printf 'id\tsection\ttext\tvalues\tdecimals\tagrees\tkind\tsource\tnote\n'
  printf 'far\t\tfast elsewhere\t\t\t\tstatement\tfull\tnot run here\n'
} >"$scratch/tests/golden/chapter_statements.tsv"
cat >"$scratch/01_first.cpp" <<'EOF'
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>

#include "claims.hpp"
#include "table.hpp"
#include "tapehead/files/npy.hpp"
using namespace tapehead;

int main(int, char** argv) {
  const char* wanted = std::getenv("CASE");
  const std::string test = wanted != nullptr ? wanted : "";
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  if (test == "golden")
    return save_npz("tests/golden/chapter.npz", {{"pair/exact/a", scalar(0.125)},
                                                 {"pair/exact/b", scalar(2.649e10)},
                                                 {"pair/inputs/x", Tensor<float>{0.1f, 0.2f}},
                                                 {"cut/exact", scalar(0.7784)},
                                                 {"listing/exact", Tensor<double>{0.996, -0.001}},
                                                 {"silent/exact/deep/m", Tensor<double>{1000, 1}},
                                                 {"infinite/exact", Tensor<double>{inf, -inf, nan}}}), 0;

  chapter::Book book(argv[0], "One");
  const double a = 0.125, b = 2.649e10 * (test == "wrong" ? 1 + 2e-12 : test == "near" ? 1 + 5e-13 : 1);
  auto& pair = book.claim("pair");
  if (test == "missing") pair.values({{"a", a}}); else pair.values({{"a", a}, {"b", b}});
  if (test == "unknown") pair.values({{"c", 1}});
  pair.drawn("x", test == "drawn" ? Tensor<float>{0.1f, 0.20000002f} : Tensor<float>{0.1f, 0.2f});
  if (test != "unprinted") pair.printed(test == "too many" ? Tensor<double>{a, b, b} : Tensor<double>{a, b});
  book.claim("cut").value(0.7784).printed(test == "book right" ? 0.77 : 0.7784);
  book.claim("listing").value(Tensor<double>{0.996, -0.001}).printed(Tensor<double>{0.996, -0.001});
  book.claim("says").holds(test != "does not hold", "seen");
  if (test == "twice") book.claim("says");
  if (test == "no entry") book.claim("nothing");
  if (test == "no words") book.draw("nothing", eye<double>(2));
  if (test == "float") book.claim("silent").values({{"deep/m", Tensor<float>{1000.0019f, 1}}});
  else if (test == "float wrong") book.claim("silent").values({{"deep/m", Tensor<float>{1000.0022f, 1}}});
  else if (test == "shape") book.claim("silent", {{"deep/m", Tensor<double>{{1000, 1}}}});
  else if (test == "aside") book.claim("silent").aside("deep");
  else if (test != "left") book.claim("silent").values({{"deep/m", Tensor<double>{1000, 1}}});
  book.claim("infinite").value(Tensor<double>{inf, test == "sign" ? inf : -inf, test == "no nan" ? 0 : nan});
  book.expect("our own", test != "unexpected");
  chapter::Table table({"x", "y"});
  table.add(1, 3.0);
  table.add(2, 12.0f);
  if (test == "table") table.print("{:3} to {:.2f};"), book.expect("power 2", std::abs(table.exponent("y") - 2) < 1e-14);
  if (test == "curve") book.expect("y", table.curve("y").x[1] == 2 && equal(table.column("y"), Tensor<double>{3, 12}));
  if (test == "short row") table.add(1);
  if (test == "no column") table.curve("z");
  if (test == "no columns") chapter::Table(std::vector<std::string>());
  if (test == "crash") std::abort();
  return book.close();
}
EOF
echo '#include "claims.hpp"
int main(int, char** argv) { return chapter::Book(argv[0], "Two").close(); }' >"$scratch/02_second.cpp"

bin=$scratch/bin
mkdir "$bin"
env MAKEFLAGS= MFLAGS= MAKELEVEL=0 "$TAPEHEAD_MAKE" --no-print-directory "$BUILD/$chapter/report" >"$scratch/log" 2>&1 &&
  cp "$BUILD/$chapter/report" "$bin" || { cat "$scratch/log" && exit 1; }
for program in 01_first 02_second; do
  $TAPEHEAD_COMPILE -I$chapter -c "$scratch/$program.cpp" -o "$bin/$program.o" &&
    $TAPEHEAD_LINK "$bin/$program.o" "$BUILD/$chapter/shared.a" $TAPEHEAD_LDLIBS -o "$bin/$program" || exit 1
done
top=$PWD
cd "$scratch" || exit 1
CASE=golden bin/01_first || exit 1

# expect STATUS TEXT PROGRAM...: it ends with that status (0 or 1; "dies": any other way) and its output has TEXT in it
expect() {
  ("${@:3}" >output 2>&1; exit $?) 2>/dev/null
  local status=$?
  ((status > 1)) && status=dies
  if [[ $status == "$1" && $(cat output) == *"$2"* ]]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "CASE=${CASE-} ${*:3}: expected status $1 and '$2', got status $status and:"
    sed 's/^/    /' output
  fi
}
first() { CASE=$1 expect "$2" "$3" bin/01_first; }

first right 0 'here  0.12 2.6E10'               # half to the even digit; an exponent as the book writes it
first right 0 'erratum  cut'
first right 0 'here  0.78'
first right 0 'here  1.00 0.00'                 # no -0.00
first right 0 'exact    silent'
first near 0 'agree    pair'
first wrong 1 'exact/b: element 0: ours is 26490000000.05'
first wrong 1 'differs  pair'
first missing 1 'exact/b was not recomputed'
first left 0 'agree    pair'                    # an entry without a claim is the report's business
first aside 0 'exact    silent'
first unknown 1 'the reference has no pair/exact/c'
first drawn 1 'inputs/x: element 1'
first unprinted 1 'the numbers that it prints were not compared'
first 'too many' 1 'the book prints 2 numbers, ours are 3'
first 'book right' 1 "the reference's own verdict is erratum"
first 'does not hold' 1 "the reference's own verdict is agree"
first float 0 'exact    silent'
first 'float wrong' 1 'exact/deep/m: element 0'
first shape 1 'ours has shape (1, 2), the exact one (2,)'
first sign 1 'exact: element 1: ours is inf'
first 'no nan' 1 'exact: element 2: ours is 0'
first unexpected 1 'NO   our own'
first twice dies 'says was claimed before'
first 'no entry' dies 'has no entry nothing'
first 'no words' dies 'captions.cpp has no caption for the figure nothing'
first table 0 '  1 to 3.00;  2 to 12.00;'
first table 0 'yes  power 2'
first curve 0 'yes  y'
first 'short row' dies 'Table::add: 1 numbers for 2 columns: x; y'
first 'no columns' dies 'Table: no columns'
first 'no column' dies 'Table: no column z; there are x; y'

first right 0 'agree    pair'
expect 1 '02_second: has not run to its end since it was built' bin/report
expect 0 '' bin/02_second
expect 0 '6 entries: 3 agree, 1 errata, 2 exact where the book prints no number, 0 differ, 0 not covered' bin/report
expect 0 'erratum: cut (make run S=01)' bin/report
expect 0 '**Location**: section "One", worked example (only in the longer version of the chapter)' bin/report --errata
expect 0 'We compute: 0.78, from 0.7784. Note: it is cut \| off.' bin/report --errata
expect 0 '**Correction**: Write 0.78 in place of 0.77.' bin/report --errata
expect 0 '> cut off, not rounded' bin/report --errata
expect 0 '1 of the 6' bin/report --errata
expect 0 '- *fast elsewhere* (only in the longer version of the chapter): not run here' bin/report --errata
first left 0 ''
expect 1 'no program that ran covers it' bin/report
expect 1 'not every entry has been recomputed' bin/report --errata
first wrong 1 ''
expect 1 '2 agree, 1 errata, 2 exact where the book prints no number, 1 differ' bin/report
first right 0 ''
first crash dies ''
expect 1 '01_first: has not run to its end since it was built' bin/report
first right 0 ''
touch -t 203001010000 bin/01_first
expect 1 '01_first: has not run to its end since it was built' bin/report

cd "$top" || exit 1
echo "$passed passed, $failed failed" >"$scratch/counts"
cat "$scratch/counts"
((failed == 0)) && mkdir -p "${stamp%/*}" && cp "$scratch/counts" "$stamp"
