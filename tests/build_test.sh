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

# refused TEXT CALL...: each of these calls, of tensors f(loat), d(ouble), i(nt64) and m(ask), stops the compiler with one
# error, and that is a line with TEXT in it
refused() {
  printf '%s\0' "${@:2}" | LC_ALL=C TEXT=$1 COMMAND="$TAPEHEAD_COMPILE -w -fsyntax-only -include $scratch/all.hpp -x c++ -" \
    xargs -0 -P 2 -n 1 sh -c '
      said=$(echo "using namespace tapehead;
        void call(Tensor<float> f, Tensor<double> d, Tensor<std::int64_t> i, Tensor<bool> m, TorchRandom& rng,
                  Tape<float>& tape, KVCache<float>& cache) { static_cast<void>($1); }" | $COMMAND 2>&1)
      errors=$(echo "$said" | grep "error:")
      case $errors in *"
"*) ;; *"static"*"$TEXT"*) exit ;; esac
      echo "$1: ${errors:-compiles}" && exit 1' sh >"$scratch/log" 2>&1
  judge $? "$(($# - 1)) calls stop the compiler at one line: $1" "$scratch/log"
}

what_is_not_offered() {
  echo '#include <tapehead/tapehead.hpp>' >"$scratch/all.hpp"
  $TAPEHEAD_COMPILE -x c++-header "$scratch/all.hpp" -o "$scratch/all.hpp.gch"
  refused 'this operation takes Tensor<float> or Tensor<double>: convert with to<float>(x)' \
    'exp(i)' 'matmul(i, i)' 'softmax(i, 0)' 'mean(i)' 'i / i' 'allclose(i, i)' 'attention(i, i, i)' \
    'flash_attention(i, i, i)' 'scaled_dot_product_attention(i, i, i)' 'flex_attention(i, i, i)' \
    'linear_attention(i, i, i)' 'embedding(i, i)' 'cross_entropy(i, i)' 'nn::Linear<std::int64_t>(1, 2, rng)' \
    'KVCache<std::int64_t>({}, 1, 2)' 'PagedKVCache<std::int64_t>({.blocks = 1})' 'rng.rand<std::int64_t>({2})' \
    'AdamW<std::int64_t>{}' 'Tape<std::int64_t>()'
  refused 'Tensor<float> is needed here; convert with to<float>(x)' \
    'matmul(f, d)' 'linear(f, d)' 'linear(f, f, d)' 'where(m, f, d)' 'f + d' 'f == d' 'maximum(f, d)' 'pow(f, d)' \
    'allclose(f, d)' 'equal(f, i)' 'mse_loss(f, d)' 'attention(f, d, d)' 'attention(f, f, d)' \
    'flash_attention(f, d, f)' 'scaled_dot_product_attention(f, d, f)' 'flex_attention(f, d, f)' \
    'linear_attention(f, d, f)' 'composed::attention(f, d, f)' 'layer_norm(f, d)' 'scatter_add(f, 0, i, d)' \
    'tape.watch(d)' 'tape.watch({d, d})' 'tape.watch({{"d", d}})' 'tape.backward(d)' 'cache.append(d, d)' \
    'decode(d, cache)' 'Tensor<float>(d)'
  refused 'Tensor<double> is needed here; convert with to<double>(x)' 'matmul(d, f)' 'gradcheck([](auto x) { return x; }, {f})'
  refused 'Tensor<std::int64_t> is needed here; convert with to<std::int64_t>(x)' \
    'embedding(f, d)' 'gather(f, 0, f)' 'index_select(f, 0, d)' 'one_hot(f, 3)' 'rope(f, f)' 'cross_entropy(f, f)' \
    'flash_attention_varlen(f, f, f, f, f)' 'document_mask(f)'
  refused 'a mask, Tensor<bool>, is needed here: make one by a comparison' \
    'any(f)' 'all(i)' 'f & m' '~f' 'masked_fill(f, f, 0)' 'dropout(f, 0.5, f)'
  refused 'the element types differ: convert the parts with to<float>(x) or to<double>(x)' 'cat({f, d})' 'stack({f, d}, 1)'
  refused 'this operation takes numbers' 'm + m' '-m' 'argmax(m)' 'cumsum(m, 0)' 'arange<bool>(3)'
  refused 'beside a tensor of int64 or bool a number must be whole' 'i + 0.5' 'where(m, i, 0.5)' 'where(m, 0.5, i)' \
    'add(i, 0.5)' 'mul(i, 0.5)' 'masked_fill(i, m, 0.5)' 'full<std::int64_t>({2}, 1.5)' 'arange<std::int64_t>(2.5)'
  refused 'Tensor<std::int64_t> holds whole numbers and Tensor<bool> true and false' \
    'Tensor<std::int64_t>{1.5}' 'Tensor<std::int64_t>{{1, 2}, {1.5, 2}}' 'Tensor<bool>{1, 0}'
  refused 'a tensor holds float, double, bool or std::int64_t' \
    'Tensor<int>{1}' 'zeros<int>({2})' 'full<int>({2}, 1)' 'arange<int>(3)' 'scalar(1)' 'sum(Tensor<int>{1})' \
    'rng.randn<int>({2})' 'linspace(0, 1, 3)' 'KVCache<int>({}, 1, 2)'
}

verdicts=$BUILD/tests/headers.passed
if [[ -f $verdicts && -z $(find include "$0" "$BUILD/config.mk" -newer "$verdicts") ]]; then
  passed=$(grep -c '^ok' "$verdicts") && sed 's/^ok/ok, as before/' "$verdicts"
else
  rm -f "$verdicts"
  touch "$scratch/began"  # a header that changes while this runs is newer than its verdict
  headers_alone >"$scratch/verdicts"
  units_link >>"$scratch/verdicts"
  what_is_not_offered >>"$scratch/verdicts"
  cat "$scratch/verdicts"
  if ((failed == 0)); then cp "$scratch/verdicts" "$verdicts" && touch -r "$scratch/began" "$verdicts"; fi
fi

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

# ---- GNU make 3.81, which is macOS's

# newer FILE...: the lines that need a newer make, and those whose meaning depends on the version: 3.81 takes the first
# pattern rule that fits, newer ones that with the shortest stem, so a folder's rule stands before that of the one above
newer() {
  awk '
    /^\t/ && !/\$\((file|let|intcmp|guile)[ ,]/ { next }  # what the shell reads
    /^ *((export|override) +)*[A-Za-z_][^ :=#]* *(!|:::?)=/ || /\$[({](file|let|intcmp|guile)[ ,]/ ||
    /^ *(undefine|private|-?load) / || /: *private / || /^ *define +[^ =]+ *[:?+!]*=/ || /^[^#=]*&::?( |$)/ ||
    /\.(ONESHELL|RECIPEPREFIX|SHELLFLAGS|SHELLSTATUS|EXTRA_PREREQS|NOTINTERMEDIATE|WAIT|LOADED)/ { print FILENAME ": " $0 }
    match($0, /\(call compiled,[^,]*/) {
      folder = substr($0, RSTART + 15, RLENGTH - 15) "/"
      for (i = 0; i < count; ++i) if (index(folder, before[i]) == 1) print FILENAME ": after " before[i] ": " $0
      before[count++] = folder
    }' "$@"
}
for line in 'A != date' 'A ::= 1' 'export A :::= 1' 'A := $(file <x)' 'B = $(let a,1,$(a))' 'undefine A' 'private A = 1' \
  'all: private A = 1' 'define A =' 'define A :=' 'a b &: c' '.ONESHELL:' '.RECIPEPREFIX = >' '.SHELLFLAGS = -ec' \
  $'\t@$(file >x,1)' '$(eval $(call compiled,tests/kernels,tests))'; do
  { cat Makefile && echo "$line"; } >"$scratch/spoilt.mk"
  [[ $(newer "$scratch/spoilt.mk") == "$scratch/spoilt.mk: "*"$line" ]] || echo "not found: $line"
done >"$scratch/found"
newer Makefile chapters/*/*.mk tests/*/*.mk notebooks/*.mk >>"$scratch/found"
judge "$(wc -l <"$scratch/found")" 'GNU make 3.81 understands every makefile' "$scratch/found"

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
