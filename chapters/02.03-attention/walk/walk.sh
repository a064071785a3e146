#!/usr/bin/env bash
# Compares the chapter's pages with its programs. Runs in the top folder, with the programs built.
#
#   walk.sh            checks that README.md, ERRATA.md and figures/ show what the programs print and draw
#   walk.sh write      writes them (make docs); timings are not changed, unless SAMPLES=1
#
# With PROMPTS=1 each "Try it" of README is carried out as well: the line is changed, the program compiled and run.
set -u
chapter=chapters/02.03-attention
built=$BUILD/$chapter
source tests/judge.sh
mkdir "$scratch/outputs" "$scratch/changed" "$scratch/after"
export NO_COLOR=1 LC_ALL=C

# ---- what the programs print and draw

rm -f "$built"/figures/*.svg
for source in "$chapter"/[0-9][0-9]_*.cpp; do
  name=$(basename "$source" .cpp)
  "$built/$name" >"$scratch/outputs/${name%%_*}.txt" 2>&1 || echo "$name ended with status $?"
done >"$scratch/log"
"$built/report" --errata >"$scratch/ERRATA.md" 2>>"$scratch/log" || echo "the report ended with status $?" >>"$scratch/log"
! [[ -s $scratch/log ]]
judge $? 'the programs run, and everything in them is as expected' "$scratch/log"

# render [NAME=VALUE...]: writes README as it should be into the scratch folder
render() {
  local variables=()
  for variable; do variables+=(-v "$variable"); done
  awk -v chapter="$chapter" -v outputs="$scratch/outputs" -v drawings="$built/figures" \
    -v samples="${SAMPLES-}" ${variables[@]+"${variables[@]}"} \
    -f $chapter/walk/render.awk "$chapter/README.md" >"$scratch/README.md" 2>"$scratch/log"
}

# try FILE: compiles and runs a changed program. Its claims may fail, because it was changed.
try() {
  local name=${1%.cpp}
  $TAPEHEAD_COMPILE -O0 -w -Isrc -I$chapter -c "$1" -o "$name.o" &&
    $TAPEHEAD_LINK "$name.o" "$built/shared.a" $TAPEHEAD_LDLIBS -o "$name" || return
  "$name"
  (($? <= 1))
}

if [[ -n ${PROMPTS-} ]]; then
  render changed="$scratch/changed"
  for file in "$scratch"/changed/*.cpp; do
    number=$(basename "$file" .cpp)
    (try "$file" >"$scratch/after/${number%%_*}.txt" 2>&1 || echo "$number" >>"$scratch/broken") &
    while (($(jobs -rp | wc -l) > 1)); do wait -n 2>/dev/null || sleep 0.2; done
  done
  wait
  for number in $(cat "$scratch/broken" 2>/dev/null); do
    head -n 20 "$scratch/after/${number%%_*}.txt" | sed "s/^/$number: /"
  done >"$scratch/log"
  ! [[ -s $scratch/log ]]
  judge $? 'the changed programs compile and run' "$scratch/log"
  render after="$scratch/after"
else
  render
fi
judge $? 'the marks in README find what they ask for' "$scratch/log"

# ---- make docs

sample() { [[ $1 == */sample_* && -z ${SAMPLES-} ]]; }

if [[ ${1-} == write ]]; then
  if ((failed > 0)); then finish; fi
  mkdir -p "$chapter/figures"
  for file in "$chapter"/figures/*.svg; do
    [[ -e $built/figures/${file##*/} ]] || rm -f "$file"
  done
  for file in "$built"/figures/*.svg; do
    [[ -e $chapter/figures/${file##*/} ]] && sample "$file" || cp "$file" "$chapter/figures/"
  done
  cat "$scratch/README.md" >"$chapter/README.md"
  cat "$scratch/ERRATA.md" >"$chapter/ERRATA.md"
  echo "$chapter: README.md, ERRATA.md and figures/ have been written"
  exit
fi

# ---- make test

for page in README.md ERRATA.md; do
  diff -U1 "$chapter/$page" "$scratch/$page" >"$scratch/log"
  judge $? "$chapter/$page says what the programs print (if they are right: make docs)" "$scratch/log"
done

for name in $(ls "$chapter/figures" "$built/figures" | grep '\.svg$' | sort -u); do
  if ! [[ -e $chapter/figures/$name ]]; then echo "$name is drawn, but it is not in the folder"
  elif ! [[ -e $built/figures/$name ]]; then echo "$name is in the folder, but nothing draws it"
  elif ! sample "/$name" && ! cmp -s "$chapter/figures/$name" "$built/figures/$name"; then echo "$name differs from what is drawn"
  elif ! grep -qF "](figures/$name)" "$chapter/README.md"; then echo "README does not show $name"
  elif ! grep -q '<title>..*</title>' "$chapter/figures/$name"; then echo "$name has no title"
  elif ! grep -q '<desc>..*</desc>' "$chapter/figures/$name"; then echo "$name has no description"
  fi
done >"$scratch/log"
! [[ -s $scratch/log ]]
judge $? "$chapter/figures has what the programs draw (if they are right: make docs)" "$scratch/log"

# page FILE: prints what a Markdown viewer would not show correctly
page() {
  awk -v page="$1" '
    function odd(text, what) { if (gsub(what, "", text) % 2) print page ":" FNR ": an odd number of " what ": " $0 }
    /^ *```/ { inside = !inside; if (inside) fence = FNR; next }
    inside { next }
    /^<!-- value/ { print page ":" FNR ": a comment that begins a line ends the paragraph: " $0 }
    { if (!/^<!-- [a-z]* ?[0-9]*: `.*-->$/) { gsub(/`[^`]*`/, "code"); gsub(/\\[$]/, ""); odd($0, "[$]"); odd($0, "`") } }
    /[$][^$]*[ (][*][^$]*[*][^$]*[$]/ { print page ":" FNR ": a star in mathematics may become emphasis: " $0 }
    /<details>/ { ++open } /<\/details>/ { --open }
    END {
      if (inside) print page ":" fence ": this fenced block is never closed"
      if (open) print page ": " open " <details> more are opened than closed"
    }' "$1"
  anchors=$(sed -n 's/^#\{1,6\} //p' "$1" | tr 'A-Z' 'a-z' | sed 's/[^a-z0-9 _-]//g; s/ /-/g')
  awk '/^ *```/ { inside = !inside } !inside { gsub(/`[^`]*`/, ""); print }' "$1" |
    grep -o '](\([^)]*\))' | sed 's/^](//; s/)$//' | sort -u | while read -r link; do
    case $link in
      http*) ;;
      '#'*) grep -qx -- "${link#\#}" <<<"$anchors" || echo "$1: no heading for $link" ;;
      *) [[ -e $(dirname "$1")/${link%%#*} ]] || echo "$1: there is no $link" ;;
    esac
  done
}
for file in README.md "$chapter/README.md" "$chapter/ERRATA.md" "$chapter/exercises/README.md" chapters/from-pytorch/*.md; do page "$file"; done >"$scratch/log"
! [[ -s $scratch/log ]]
judge $? 'on every page blocks and mathematics are closed, and links lead somewhere' "$scratch/log"

finish
