# Prints where what a program printed differs from what is recorded of another, and nothing where it does not.
#
#   awk -v other=PRINTED -f compare.awk RECORDED
#
# The first line of RECORDED ends with the relative tolerance for numbers. Brackets, commas and capitals do not count.
function words(line) { gsub(/[][(),]/, " ", line); return tolower(line) }
function number(word) { return word ~ /^[-+]?[0-9.]+(e[-+]?[0-9]+)?$/ }
function differ(text) { print text; wrong = 1; exit }
FNR == 1 { tolerance = $NF + 0; if (tolerance <= 0) differ("no tolerance in: " $0); next }
{
  if ((getline line < other) <= 0) differ("not printed: " $0)
  n = split(words($0), want, " ")
  same = n == split(words(line), got, " ")
  for (i = 1; same && i <= n; ++i) {
    off = got[i] - want[i]; size = want[i] < 0 ? -want[i] : want[i] + 0
    if (number(want[i]) && number(got[i])) same = (off < 0 ? -off : off) <= tolerance * size
    else same = got[i] "" == want[i] ""
  }
  if (!same) differ("PyTorch: " $0 "\nhere:    " line)
}
END { if (!wrong && (getline line < other) > 0) print "too much: " line }
