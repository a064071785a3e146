#!/usr/bin/env bash
# The pages of this folder against their programs, from the top folder.
#
#   pages.sh           do the pages show the programs as they are, and do both columns print the same?
#   pages.sh write     make the pages show them
set -u
source tests/judge.sh
source tests/programs/build.sh
chapter=chapters/from-pytorch
built=$BUILD/$chapter
mkdir "$scratch/outputs" "$scratch/data"

# ---- the programs

names=$(cd $chapter && for file in *.cpp; do echo "${file%.cpp}"; done)
compile $chapter $names
for name in $names; do
  "$built/$name" "$scratch/data" >"$scratch/outputs/${name%%_*}.txt" 2>>"$built/$name.log"
  judge $? "$name compiles and runs" "$built/$name.log"
done

# ---- the pages

for page in README.md custom_operations.md; do
  awk -v chapter=$chapter -v outputs="$scratch/outputs" -v samples="${SAMPLES-}" \
    -f chapters/02.03-attention/walk/render.awk "$chapter/$page" >"$scratch/$page" 2>"$scratch/log"
  judge $? "the marks in $page find what they ask for" "$scratch/log"
  if [[ ${1-} == write && $failed == 0 ]]; then cat "$scratch/$page" >"$chapter/$page"; fi
  diff -U1 "$chapter/$page" "$scratch/$page" >"$scratch/log"
  judge $? "$chapter/$page shows what the programs are and print (if they are right: make docs)" "$scratch/log"
done

# The comment in record.hpp is the operation that the page shows.
sed -n 's|^//   ||p' include/tapehead/autograd/record.hpp >"$scratch/comment"
sed -n '/^\/\/ y = c tanh/,/^}/p' tests/programs/custom.cpp | diff -U1 "$scratch/comment" - >"$scratch/log"
judge $? "the example in record.hpp is the operation of tests/programs/custom.cpp" "$scratch/log"

# ---- the Python programs, where there is a Python with what they import

for pair in '01_from_pytorch torch numpy safetensors' '02_from_numpy numpy' '03_from_micrograd micrograd'; do
  name=${pair%% *} python=$(python_with ${pair#* })
  if [[ -z $python ]]; then
    echo "skipped: $name.py: no python3 here has ${pair#* }"
    continue
  fi
  { echo '# relative tolerance 1e-9' &&
    OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1 "$python" "$chapter/$name.py" "$scratch/data"; } >"$scratch/python" 2>"$scratch/log" &&
    compare "$scratch/python" "$scratch/outputs/${name%%_*}.txt" >"$scratch/log"
  ! [[ -s $scratch/log ]]
  judge $? "$name.py and $name.cpp print the same" "$scratch/log"
done
finish
