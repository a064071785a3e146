#!/usr/bin/env bash
# Tests what a reader's own program relies on: headers that compile alone, units that link, and `make install` with the
# flags of pkg-config and the package of CMake.
set -u
source tests/judge.sh
headers=$(cd include && find tapehead -name '*.hpp' | sort)

# own_make ARGUMENT...: a make that does not take part in the one that runs this, with the same settings
own_make() { env MAKEFLAGS= MFLAGS= MAKELEVEL=0 "$TAPEHEAD_MAKE" --no-print-directory "$@"; }

# ---- the headers: slow, and done again only when one of them, or the build folder's configuration, is newer

# each_alone COMPILER_COMMAND: compiles every public header as a unit of its own, two at a time
each_alone() {
  xargs -P 2 -n 1 env COMMAND="$1" \
    sh -c 'echo "#include <$1>" | $COMMAND -Werror -O0 -fsyntax-only -x c++ -' sh <<<"$headers"
}

headers_alone() {
  each_alone "$TAPEHEAD_COMPILE" >"$scratch/log" 2>&1
  judge $? "each of $(wc -w <<<"$headers" | tr -d ' ') headers compiles alone with $CXX" "$scratch/log"
  local libcxx="$CXX -stdlib=libc++ -std=c++20 -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Iinclude"
  if [[ $CXX == *clang* ]] && echo '#include <vector>' | $libcxx -fsyntax-only -x c++ - 2>/dev/null; then
    each_alone "$libcxx" >"$scratch/log" 2>&1
    judge $? 'each of them compiles alone with libc++' "$scratch/log"
  fi
}

units_link() {
  sed 's/.*/#include <&>/' <<<"$headers" >"$scratch/second.cpp"
  { cat "$scratch/second.cpp" && echo 'int main() {}'; } >"$scratch/first.cpp"
  for unit in first second; do
    $TAPEHEAD_COMPILE -O0 -c "$scratch/$unit.cpp" -o "$scratch/$unit.o" &
  done >"$scratch/log" 2>&1
  wait
  $TAPEHEAD_LINK "$scratch"/{first,second}.o $TAPEHEAD_LDLIBS -o "$scratch/linked" >>"$scratch/log" 2>&1
  judge $? 'two units that include everything link' "$scratch/log"
}

verdicts=$BUILD/tests/headers.passed
if [[ -f $verdicts && -z $(find include "$0" "$BUILD/config.mk" -newer "$verdicts") ]]; then
  passed=$(grep -c '^ok' "$verdicts") && sed 's/^ok/ok, as before/' "$verdicts"
else
  rm -f "$verdicts"
  touch "$scratch/began"  # a header that changes while this runs is newer than its verdict
  headers_alone >"$scratch/verdicts"
  units_link >>"$scratch/verdicts"
  cat "$scratch/verdicts"
  if ((failed == 0)); then cp "$scratch/verdicts" "$verdicts" && touch -r "$scratch/began" "$verdicts"; fi
fi

# ---- an element type that an operation does not take

! printf '%s\n' '#include <tapehead/ops/math.hpp>' 'auto y = tapehead::exp(tapehead::Tensor<std::int64_t>{1});' |
  $TAPEHEAD_COMPILE -O0 -fsyntax-only -x c++ - >"$scratch/log" 2>&1 &&
  grep -q 'this operation takes Tensor<float> or Tensor<double>: convert with to<float>(x)' "$scratch/log"
judge $? 'exp() of an int64 tensor stops the compiler at a line that says how to convert' "$scratch/log"

# ---- the flags

own_make -B -n V=1 all >"$scratch/log" 2>&1
[[ $(grep -c -e '-std=c++20' "$scratch/log") -gt 1 ]] &&
  ! grep -e '-ffast-math' -e '-Ofast' -e '-ffinite-math-only' -e '-funsafe-math' "$scratch/log" >"$scratch/found"
judge $? 'no command of the build lets a compiler assume that NaN and infinity do not occur' "$scratch/found"

# What was found to work has to arrive: a flag lost on its way costs speed and nothing else shows it.
if echo 'int main() {}' | $CXX "-march=$MARCH" -fsyntax-only -x c++ - 2>/dev/null; then
  grep -e '-c [^ ]*src/' "$scratch/log" >"$scratch/library"
  [[ -s $scratch/library ]] &&
    ! grep -v -e " -march=$MARCH " "$scratch/library" >"$scratch/found"
  judge $? "each file of the library is built for MARCH=$MARCH" "$scratch/found"
fi

# ---- the list of targets

sed -n 's/^\.PHONY: *//p' Makefile tests/*/*.mk chapters/*/*.mk notebooks/*.mk | tr ' ' '\n' | grep -v -e '-force$' | sort >"$scratch/targets"
own_make help | sed -n 's/^  make \([a-z-]*\) .*/\1/p' | sort | diff "$scratch/targets" - >"$scratch/log"
judge $? 'every target has a line of help' "$scratch/log"

# ---- make install

# installed FOLDER: every header is there as it is here
installed() {
  for header in $headers; do cmp "include/$header" "$1/include/$header" || return; done
}

! grep -n 'install  *-[a-zA-Z]*D' .make/install >"$scratch/found" &&
  own_make install PREFIX=/usr DESTDIR="$scratch/stage" >"$scratch/log" 2>&1 &&
  installed "$scratch/stage/usr" >>"$scratch/log" 2>&1 &&
  [[ -s $scratch/stage/usr/lib/libtapehead.a ]] &&
  grep -q '^prefix=/usr$' "$scratch/stage/usr/lib/pkgconfig/tapehead.pc" &&
  own_make uninstall PREFIX=/usr DESTDIR="$scratch/stage" >>"$scratch/log" 2>&1 &&
  [[ -z $(find "$scratch/stage" -type f) && ! -e $scratch/stage/usr/include/tapehead ]]
judge $? 'make install PREFIX=/usr DESTDIR=... puts its files there; make uninstall removes all of them' "$scratch/log"

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
judge $status "a program outside the tree builds with pkg-config's flags, and runs" "$scratch/log"

# A limit far above the 2.5 s that it should take: this machine may be slow or busy, but not that slow.
if [[ -n $seconds ]]; then
  read -r real user <<<"${seconds//,/.}"
  awk -v user="$user" 'BEGIN { exit !(user < 10) }'
  judge $? "compiling it, with the one header for everything, took $real s ($user s of processor; wanted: under 2.5)"
fi

# ---- a CMake project

words=($CXX ${SANITIZE:+-fsanitize=$SANITIZE})
if ! command -v cmake >/dev/null; then
  echo 'skipped: there is no cmake to try find_package(tapehead) with'
else
  sed 's/mine\.cpp/program.cpp/' chapters/from-pytorch/CMakeLists.txt >"$scratch/elsewhere/CMakeLists.txt"
  project=(cmake -S "$scratch/elsewhere" -DCMAKE_PREFIX_PATH="$scratch/prefix" -DCMAKE_CXX_COMPILER="${words[0]}"
    -DCMAKE_CXX_FLAGS="${words[*]:1}")
  "${project[@]}" -B "$scratch/cmake" >"$scratch/log" 2>&1 &&
    cmake --build "$scratch/cmake" >>"$scratch/log" 2>&1 && "$scratch/cmake/mine"
  judge $? 'the CMake project of chapters/from-pytorch builds, and its program runs' "$scratch/log"
  sed -i.before 's/tapehead 0\.1/tapehead 9.0/' "$scratch/elsewhere/CMakeLists.txt"
  ! "${project[@]}" -B "$scratch/cmake9" >"$scratch/log" 2>&1 && grep -q 'version: 0.1.0' "$scratch/log"
  judge $? 'find_package(tapehead 9.0) refuses this version' "$scratch/log"
fi

finish
