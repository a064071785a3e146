#!/usr/bin/env bash
# Tests what the build does with folders that it cannot use: a path with a space, with a character that means something
# to make or to the shell, or a build folder that holds other files is refused in one line, and nothing is touched.
set -u
source tests/judge.sh
own_make() { env -u BUILD MAKEFLAGS= MFLAGS= MAKELEVEL=0 "$TAPEHEAD_MAKE" --no-print-directory "$@"; }

mkdir -p "$scratch/kept/y" "$scratch/two words" "$scratch/other" && touch "$scratch/other/file"
cp -R Makefile .make "$scratch/two words/"
before=$(cd "$scratch" && find . | grep -v -e ./log -e ./after | sort)

# refuses WHAT ARGUMENT...: make with these arguments says one line, fails, and changes nothing
refuses() {
  local what=$1 && shift
  own_make "$@" >"$scratch/log" 2>&1
  local status=$?
  (cd "$scratch" && find . | grep -v -e ./log -e ./after | sort) >"$scratch/after"
  ((status != 0)) && [[ $(wc -l <"$scratch/log") -eq 1 ]] && grep -q 'tapehead: ' "$scratch/log" &&
    [[ $(cat "$scratch/after") == "$before" ]]
  judge $? "refused in one line: $what" "$scratch/log"
}

refuses 'make -n clean with a space in BUILD' -n clean "BUILD=$scratch/kept y"
refuses 'make clean with a space in BUILD' clean "BUILD=$scratch/kept y"
for folder in '' / . .. ../. "$HOME" "$PWD" "$PWD/../" 'a;b' 'a$$b' 'a:b' 'a#b' "a'b" 'a"b' 'a*' 'a=b' 'a%b'; do
  refuses "make -n clean BUILD=$folder" -n clean "BUILD=$folder"
done
refuses 'make install with a space in PREFIX' install "PREFIX=$scratch/kept y"
refuses 'make uninstall with a space in PREFIX' uninstall "PREFIX=$scratch/kept y"
refuses 'make install with a relative PREFIX' install PREFIX=kept
refuses 'make install with a space in DESTDIR' install "DESTDIR=$scratch/kept y"
refuses 'a checkout whose path has a space' -C "$scratch/two words" lib
refuses 'a checkout whose path has a space: make clean' -C "$scratch/two words" clean

own_make clean BUILD="$scratch/other" >"$scratch/log" 2>&1
(($? != 0)) && [[ -e $scratch/other/file ]] && grep -q 'is no build folder' "$scratch/log"
judge $? 'make clean leaves a folder alone in which nothing was built' "$scratch/log"
own_make lib BUILD="$scratch/other" >"$scratch/log" 2>&1
(($? != 0)) && [[ $(ls "$scratch/other") == file ]] && grep -q 'holds other files' "$scratch/log"
judge $? 'make does not build into a folder that holds other files' "$scratch/log"

mkdir "$scratch/built" && touch "$scratch/built/config.key"
own_make clean BUILD="$scratch/built" >"$scratch/log" 2>&1 && [[ ! -e $scratch/built ]]
judge $? 'make clean deletes the build folder that it is told' "$scratch/log"

# A build folder is named after the compiler's command, in which = and spaces may stand.
folder=$(env -u BUILD MAKEFLAGS= MFLAGS= MAKELEVEL=0 CXX='clang++ -stdlib=libc++' MARCH=none "$TAPEHEAD_MAKE" \
  --no-print-directory -n clean | sed -n "s|.*-e '\(.*\)/config.key'.*|\1|p")
[[ -n $folder && $folder != *[=\ ]* ]]
judge $? "the build folder for CXX='clang++ -stdlib=libc++' has a name that make can use"

finish
