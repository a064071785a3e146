#!/usr/bin/env bash
# Tests what a reader's own program relies on: headers that compile alone, units that link, and `make install`.
# Nothing is built again when the headers, the library and the build are as they were when all of it passed.
set -u
stamp=$BUILD/tests/build_test.passed
inputs=(include Makefile .make "$0" "$BUILD/libtapehead.a" "$BUILD/config.mk")
if [[ -f $stamp && -z $(find "${inputs[@]}" -newer "$stamp") ]]; then
  echo 'nothing has changed since these passed'
  cat "$stamp"
  exit
fi

scratch=$(mktemp -d "${TMPDIR:-/tmp}/tapehead.XXXXXX") || exit 1
trap 'rm -rf "$scratch"' EXIT
headers=$(cd include && find tapehead -name '*.hpp' | sort)
passed=0 failed=0

# judge STATUS WHAT [FILE]: counts it, and shows the file when it failed
judge() {
  if (($1 == 0)); then
    passed=$((passed + 1)) && echo "ok: $2"
  else
    failed=$((failed + 1)) && echo "FAILED: $2"
    [[ -n ${3-} ]] && head -n 40 "$3" | sed 's/^/    /'
  fi
}

# each_alone COMPILER_COMMAND: compiles every public header as a unit of its own, two at a time
each_alone() {
  for header in $headers; do echo "$header"; done |
    COMMAND=$1 xargs -P 2 -n 1 sh -c 'echo "#include <$1>" | $COMMAND -Werror -O0 -fsyntax-only -x c++ -' sh
}

# own_make ARGUMENT...: a make that does not take part in the one that runs this, with the same settings
own_make() { env MAKEFLAGS= MFLAGS= MAKELEVEL=0 "$TAPEHEAD_MAKE" --no-print-directory "$@"; }

each_alone "$TAPEHEAD_COMPILE" >"$scratch/log" 2>&1
judge $? "row 47: each of $(wc -w <<<"$headers" | tr -d ' ') headers compiles alone with $CXX" "$scratch/log"

libcxx='clang++ -stdlib=libc++ -std=c++20 -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-unknown-pragmas'
libcxx="$libcxx -Iinclude"
if echo '#include <vector>' | $libcxx -fsyntax-only -x c++ - 2>/dev/null; then
  each_alone "$libcxx" >"$scratch/log" 2>&1
  judge $? 'row 47: each header compiles alone with clang++ and libc++' "$scratch/log"
else
  echo 'not here: clang++ with libc++, for which each header would be compiled too'
fi

for header in $headers; do echo "#include <$header>"; done >"$scratch/first.cpp"
cp "$scratch/first.cpp" "$scratch/second.cpp"
echo 'int main() {}' >>"$scratch/first.cpp"
for unit in first second; do
  $TAPEHEAD_COMPILE -O0 -c "$scratch/$unit.cpp" -o "$scratch/$unit.o" &
done >"$scratch/log" 2>&1
wait
$TAPEHEAD_LINK "$scratch"/{first,second}.o $TAPEHEAD_LDLIBS -o "$scratch/linked" >>"$scratch/log" 2>&1
judge $? 'row 46: two units that include everything link' "$scratch/log"

own_make -B -n V=1 all >"$scratch/log" 2>&1
[[ $(grep -c -e '-std=c++20' "$scratch/log") -gt 1 ]] &&
  ! grep -e '-ffast-math' -e '-Ofast' -e '-ffinite-math-only' -e '-funsafe-math' "$scratch/log" >"$scratch/found"
judge $? 'row 48: no command of the build lets NaN and infinity be ignored' "$scratch/found"

# What was found to work has to arrive: a flag lost on its way costs speed and nothing else shows it.
if echo 'int main() {}' | $CXX "-march=$MARCH" -fsyntax-only -x c++ - 2>/dev/null; then
  ! grep -e '-c src/' "$scratch/log" | grep -v -e " -march=$MARCH " >"$scratch/found"
  judge $? "each file of the library is built for MARCH=$MARCH" "$scratch/found"
fi

# installed FOLDER: every header is there as it is here
installed() {
  for header in $headers; do cmp "include/$header" "$1/include/$header" || return; done
}

! grep -n 'install  *-[a-zA-Z]*D' Makefile >"$scratch/found" &&
  own_make install PREFIX=/usr DESTDIR="$scratch/stage" >"$scratch/log" 2>&1 &&
  installed "$scratch/stage/usr" >>"$scratch/log" 2>&1 &&
  [[ -s $scratch/stage/usr/lib/libtapehead.a ]] &&
  grep -q '^prefix=/usr$' "$scratch/stage/usr/lib/pkgconfig/tapehead.pc" &&
  own_make uninstall PREFIX=/usr DESTDIR="$scratch/stage" >>"$scratch/log" 2>&1 &&
  [[ -z $(find "$scratch/stage" -type f) ]]
judge $? 'row 49: make install PREFIX=/usr DESTDIR=... puts its files there; uninstall removes them' "$scratch/log"

# flags --cflags|--libs: what tapehead.pc asks for, by pkg-config where there is one
flags() {
  local pc=$scratch/prefix/lib/pkgconfig/tapehead.pc
  if command -v pkg-config >/dev/null; then
    PKG_CONFIG_PATH=${pc%/*} pkg-config "$1" tapehead
  else
    local field=Cflags && [[ $1 == --libs ]] && field=Libs
    sed -n "s|^$field: ||p" "$pc" |
      sed "s|\${libdir}|$scratch/prefix/lib|g; s|\${includedir}|$scratch/prefix/include|g"
  fi
}
mkdir "$scratch/elsewhere"
cat >"$scratch/elsewhere/program.cpp" <<'EOF'
#include <tapehead/tapehead.hpp>

int main() {
  tapehead::Tensor<double> x{{1, 2}, {3, 4}};
  tapehead::Tape<double> tape;
  tape.watch({x});
  auto y = tapehead::sum(x * x);
  auto grad = tape.backward(y);
  return grad[x].at({1, 0}) == 6 ? 0 : 1;
}
EOF
compiler="$CXX ${SANITIZE:+-fsanitize=$SANITIZE}"
seconds=$(
  {
    own_make install PREFIX="$scratch/prefix" DESTDIR= && cd "$scratch/elsewhere" &&
      TIMEFORMAT='%R %U' && time $compiler -O1 $(flags --cflags) -c program.cpp &&
      $compiler program.o $(flags --libs) -o program && ./program
  } 2>&1 >"$scratch/log" | tee "$scratch/errors" | sed -n 's/^\([0-9.]* [0-9.]*\)$/\1/p'
  exit "${PIPESTATUS[0]}"
)
status=$?
cat "$scratch/errors" >>"$scratch/log"
judge $status "row 49: a program outside the tree builds with pkg-config's flags, and runs" "$scratch/log"

# A limit far above the 2.5 s that it should take: this machine may be slow or busy, but not that slow.
if [[ -n $seconds ]]; then
  read -r real user <<<"${seconds//,/.}"
  awk -v user="$user" 'BEGIN { exit !(user < 10) }'
  judge $? "compiling it, with the one header for everything, took $real s ($user s of processor; wanted: under 2.5)"
fi

result="$passed passed, $failed failed"
((failed == 0)) && echo "$result" >"$stamp"
echo "$result"
((failed == 0))
