# Sourced, behind tests/judge.sh, by the checks that compile programs and compare them with programs in Python.

# compile FOLDER NAME...: compiles each program into the build folder, two at a time, unless it is newer than its source,
# the headers and the library. Beside it are NAME.log, and NAME.seconds: the processor time that the compiler took.
compile_one() {
  local program=$BUILD/$1 headers=$BUILD/precompiled/programs.hpp TIMEFORMAT=%U
  [[ -x $program && -z $(find "$1.cpp" include "$BUILD/libtapehead.a" "$BUILD/config.mk" -newer "$program") ]] && return
  [[ -e $headers.gch ]] || headers=
  rm -f "$program"
  { time $TAPEHEAD_COMPILE ${headers:+-include "$headers"} -c "$1.cpp" -o "$program.o" 2>"$program.log"; } \
    2>"$program.seconds" &&
    $TAPEHEAD_LINK "$program.o" $TAPEHEAD_LDLIBS -o "$program" 2>>"$program.log"
}
compile() {
  local folder=$1 name
  mkdir -p "$BUILD/$folder"
  for name in "${@:2}"; do
    compile_one "$folder/$name" &
    while (($(jobs -rp | wc -l) > 1)); do wait -n 2>/dev/null || sleep 0.1; done
  done
  wait
}

# python_with MODULE...: a Python that has all of them, or nothing. They are not imported, which would take seconds.
python_with() {
  local candidate
  for candidate in ${TAPEHEAD_PYTHON:-} build/peers/bin/python3 python3; do
    "$candidate" -c 'import importlib.util, sys
raise SystemExit(not all(map(importlib.util.find_spec, sys.argv[1:])))' "$@" 2>/dev/null && echo "$candidate" && return
  done
}

# compare RECORDED PRINTED: prints where they differ
compare() { awk -v other="$2" -f tests/programs/compare.awk "$1"; }
