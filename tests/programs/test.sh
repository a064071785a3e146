#!/usr/bin/env bash
# Tests the programs of this folder: an ordinary program has at most 40 lines, compiles, and prints what the PyTorch
# program beside it prints. NAME.txt is what NAME.py printed, under a line with the relative tolerance for the numbers
# in it. Where PyTorch is installed, NAME.py is run again and compared with NAME.txt too.
#
#   test.sh            as `make test` runs it
#   test.sh write      runs the PyTorch programs and records what they print
set -u
source tests/judge.sh
source tests/programs/build.sh
folder=tests/programs
built=$BUILD/$folder data=$scratch/data
mkdir "$data" "$scratch/ours" "$scratch/theirs"
cp $folder/people.txt "$data"
names=$(cd $folder && for file in *.cpp; do [[ ! -e ${file%.cpp}.py ]] || echo "${file%.cpp}"; done)
python=$(python_with torch numpy safetensors)

# ---- compiling

compile $folder digits_data $names
for name in digits_data $names; do
  lines=$(wc -l <$folder/$name.cpp | tr -d ' ')
  beside=$([[ -e $folder/$name.py ]] && echo " ($(wc -l <$folder/$name.py | tr -d ' ') in PyTorch)")
  [[ -x $built/$name && ! -s $built/$name.log ]] && ((lines <= 40))
  judge $? "$name: $lines lines of at most 40$beside, compiled without a warning in $(cat "$built/$name.seconds") s" \
    "$built/$name.log"
done

# ---- running

printf '# relative tolerance 1e-3\nloss 2.0 [0.5 -1]\nend\n' >"$scratch/recorded"
tried() { tr '|' '\n' <<<"$1" | compare "$scratch/recorded" /dev/stdin; }
[[ -z $(tried 'loss 2.0019 0.5, -1.0005|end') ]] &&
  for wrong in 'loss 2.0021 0.5 -1|end' 'loss 2 0.5 1|end' 'less 2 0.5 -1|end' 'loss nan 0.5 -1|end' 'loss 2 0.5|end' \
    'loss 2 0.5 -1' 'loss 2 0.5 -1|end|end'; do [[ -n $(tried "$wrong") ]] || break; done
judge $? 'the comparison finds a number that is too far off, and words and lines that are missing or others'

# program NAME: runs it, and compares what it prints
program() {
  [[ -x $built/$1 ]] && "$built/$1" "$data" >"$scratch/ours/$1" 2>"$scratch/log" || return
  compare $folder/$1.txt "$scratch/ours/$1" >"$scratch/log"
  ! [[ -s $scratch/log ]]
}
# torch FOLDER: runs the PyTorch programs
torch() { "$python" $folder/run.py "$data" "$1" $names >"$scratch/log" 2>&1; }

"$built/digits_data" "$data"
if [[ ${1-} == write ]]; then
  [[ -n $python ]] || { echo 'no python3 here has torch, numpy and safetensors' && exit 1; }
  torch $folder && cat "$data/pytorch.safetensors" >$folder/exchange.safetensors
  judge $? 'recorded what the PyTorch programs print' "$scratch/log"
  finish
fi
cp $folder/exchange.safetensors "$data/pytorch.safetensors"
for name in $names; do
  program "$name"
  judge $? "$name prints what it prints in PyTorch, within $(sed '1s/.* //; q' $folder/$name.txt)" "$scratch/log"
done

if [[ -z $python ]]; then
  echo 'skipped: the programs in PyTorch: no python3 here has torch, numpy and safetensors'
  finish
fi
torch "$scratch/theirs"
status=$?
judge $status 'the PyTorch programs run, and exchange.py reads the weights that exchange.cpp saved' "$scratch/log"
if ((status == 0)); then
  for name in $names; do
    tail -n +2 "$scratch/theirs/$name.txt" | compare $folder/$name.txt /dev/stdin
  done >"$scratch/log"
  ! [[ -s $scratch/log ]]
  judge $? 'they print what was recorded' "$scratch/log"
  program exchange
  judge $? 'exchange reads the weights that PyTorch has now saved' "$scratch/log"
fi
finish
