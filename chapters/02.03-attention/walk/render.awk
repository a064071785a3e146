# Prints README.md as it should be: everything that has a mark is replaced by what the section programs give now.
#
#   awk -v chapter=DIR -v outputs=DIR [-v changed=DIR] [-v after=DIR] [-v samples=1] -f render.awk README.md
#
# A mark is a comment, which a Markdown viewer does not show. NN is a program's number, and in a `code` mark also NN.py,
# the Python program of that number, or a path from the page; from `a` to `b` are the lines from the first with a in it to
# the next with b in it, and without b to the next empty one. Before a fenced block:
#
#   <!-- code NN: `a` to `b` -->       lines of the program
#   <!-- body NN: `a` -->              the indented lines after the first with a in it: what a function does
#   <!-- output NN: `a` to `b` -->     lines that it printed (outputs/NN.txt)
#   <!-- sample NN: `a` to `b` -->     the same for timings, which may differ: the old ones stay, unless samples is set
#   <!-- change NN: `old` to `new` -->    a line of the program before and after a change
#   <!-- after: `a` to `b` -->         lines printed after the changes above. The K-th changed program is written to
#                                      changed/K_NN.cpp, and its output is in after/K.txt; without `after`, the
#                                      block stays
#
# In a line, <!-- value NN: i of `a` -->number<!-- --> is the i-th word of the first line with a in it. And
# ![...](figures/NAME.svg) gets the drawing's own description as its alternative text.

function fail(what) {
  print FILENAME ":" FNR ": " what >"/dev/stderr"
  wrong = 1
}

# ---- reading

function read(path,    n, line) {
  if (path in count) return count[path]
  n = 0
  while ((getline line < path) > 0) content[path, ++n] = line
  close(path)
  if (n == 0) fail("nothing to read in " path)
  return count[path] = n
}

function program(number,    path) {
  if (number ~ /\//) return chapter "/" number
  if (!(number in source)) {
    ("ls " chapter "/" substr(number, 1, 2) "_*" (number ~ /\.py$/ ? ".py" : ".cpp")) | getline path
    source[number] = path
  }
  return source[number]
}

function find(path, text, start,    i) {
  for (i = start; i <= read(path); ++i) if (index(content[path, i], text)) return i
  fail("no line of " path " has: " text)
  return 0
}

# The lines from `a` to `b`, without the spaces that all of them begin with.
function lines(path, a, b,    first, last) {
  first = find(path, a, 1)
  if (!first) return ""
  if (b != "") last = find(path, b, first)
  else for (last = first; last < count[path] && content[path, last + 1] != ""; ++last) {}
  return dedented(path, first, last)
}
function body(path, a,    first, last) {
  first = find(path, a, 1)
  if (!first) return ""
  for (last = first; last < count[path] && content[path, last + 1] ~ /^( .*)?$/; ++last) {}
  while (content[path, last] == "") --last
  return dedented(path, first + 1, last)
}
function dedented(path, first, last,    i, spaces, least, text) {
  least = 99
  for (i = first; i <= last; ++i) {
    match(content[path, i], /^ */)
    if (content[path, i] != "" && RLENGTH < least) least = RLENGTH
  }
  for (i = first; i <= last; ++i) {
    spaces = content[path, i]
    sub(/ +$/, "", spaces)
    text = text substr(spaces, least + 1) "\n"
  }
  return text
}

# ---- one function for each kind of mark

function replaced(line, old, new,    at) {
  at = index(line, old)
  return substr(line, 1, at - 1) new substr(line, at + length(old))
}

function change(number, old, new,    path, i, line) {
  path = program(number)
  i = find(path, old, 1)
  if (!i) return ""
  line = content[path, i]
  if (find_again(path, old, i + 1)) fail("more than one line of " path " has: " old)
  if (run) run = n_edits = 0
  edits[++n_edits] = i
  edited[n_edits] = replaced(line, old, new)
  edited_program = number
  sub(/^ +/, "", line)
  new = edited[n_edits]
  sub(/^ +/, "", new)
  return "-" line "\n" (new == "" ? "" : "+" new "\n")
}
function find_again(path, text, start,    i) {
  for (i = start; i <= count[path]; ++i) if (index(content[path, i], text)) return 1
  return 0
}

function write_changed(    path, i, j, line, to) {
  path = program(edited_program)
  to = changed "/" run "_" edited_program ".cpp"
  for (i = 1; i <= count[path]; ++i) {
    line = content[path, i]
    for (j = 1; j <= n_edits; ++j) if (edits[j] == i) line = edited[j]
    print line > to
  }
  close(to)
}

# The output after the changes above. The block stays as it is if the changed program was not run.
function outcome(a, b, now,    path, line) {
  if (!n_edits) fail("no change before this")
  if (!run) {
    run = ++n_runs
    if (changed != "") write_changed()
  }
  if (after == "") {
    if (now == "" && changed == "") fail("make docs PROMPTS=1 has to fill this in")
    return now
  }
  return lines(after "/" run ".txt", a, b)
}

function shape_of(text) {
  gsub(/[0-9][0-9.]*/, "#", text)
  gsub(/ +/, " ", text)
  return text
}

function block_for(mark, now,    part, word, kind, number, new) {
  split(mark, part, "`")
  split(part[1], word, " ")
  kind = word[2]
  number = word[3]
  sub(/:$/, "", number)
  if (kind == "after:") return outcome(part[2], part[4], now)
  if (kind == "code") return lines(program(number), part[2], part[4])
  if (kind == "body") return body(program(number), part[2])
  if (kind == "change") return change(number, part[2], part[4])
  new = lines(outputs "/" number ".txt", part[2], part[4])
  if (kind == "sample" && !samples && shape_of(new) == shape_of(now)) return now
  return new
}

function with_values(line,    out, mark, part, word, words, path, at) {
  while (match(line, /<!-- value [0-9][0-9]: [0-9]+ of `[^`]*` -->[^<]*<!-- -->/)) {
    mark = substr(line, RSTART, RLENGTH)
    out = out substr(line, 1, RSTART - 1)
    line = substr(line, RSTART + RLENGTH)
    split(mark, part, "`")
    split(part[1], word, " ")
    path = outputs "/" substr(word[3], 1, 2) ".txt"
    at = find(path, part[2], 1)
    gsub(/[][(),;:]/, " ", content[path, at])
    if (split(content[path, at], words, " ") < word[4]) fail("fewer words are in: " content[path, at])
    out = out part[1] "`" part[2] "` -->" words[word[4] + 0] "<!-- -->"
  }
  return out line
}

function with_description(line,    path, text) {
  path = line
  sub(/.*\]\(/, "", path)
  sub(/\).*/, "", path)
  text = lines(drawings "/" substr(path, 9), "<desc>", "</desc>")
  gsub(/<\/?desc>|\n/, "", text)
  return "![" text "](" path ")"
}

# ---- README, line by line

function fence(line) { return line ~ /^```/ }

/^<!-- (code|body|output|sample|change) [0-9A-Za-z_.\/-]+: `.*` -->$|^<!-- after: `.*` -->$/ {
  mark = $0
  print
  if ((getline) <= 0 || !fence($0)) fail("no fenced block after this mark: " mark)
  opening = $0
  now = ""
  while ((getline) > 0 && !fence($0)) now = now $0 "\n"
  printf "%s\n%s```\n", opening, block_for(mark, now)
  next
}
fence($0) { inside = !inside }
!inside && /<!--/ && !/<!-- value [0-9][0-9]: [0-9]+ of `[^`]*` -->[^<]*<!-- -->/ { fail("not a mark: " $0) }
!inside && /^!\[.*\]\(figures\/[a-zA-Z0-9_]*\.svg\)$/ { $0 = with_description($0) }
{ print with_values($0) }
END { exit wrong }
