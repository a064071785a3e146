#include "tapehead/figures/tape_graph.hpp"

#include <algorithm>
#include <vector>

#include "autograd/tape_records.hpp"
#include "figures/plot_canvas.hpp"
#include "kernels/require.hpp"

namespace tapehead {

using detail::Record;

namespace {

// ---- for Graphviz and Mermaid ----------------------------------------------------------------------------

// How a language writes a graph: a watched tensor and an operation (each by its number, head and shape), and the arrow
// from an input to an operation.
struct Language {
  const char *start, *watched, *operation, *arrow, *quote, *end;
};
constexpr Language graphviz{"digraph tape {\n  node [shape=box, fontname=\"monospace\"];\n",
                            "  n{} [label=\"{}\\n{}\", style=rounded];\n",
                            "  n{} [label=\"{}\\n{}\"];\n",
                            "  n{} -> n{};\n",
                            "\\\"",
                            "}\n"};
constexpr Language mermaid_text{
    "flowchart TD\n", "  n{}([\"{}<br>{}\"])\n", "  n{}[\"{}<br>{}\"]\n", "  n{} --> n{}\n", "#quot;", ""};

std::string written(const std::vector<Record>& records, const Language& in) {
  std::string text = in.start;
  for (std::size_t i = 0; i < records.size(); ++i) {
    std::string head;
    for (const char c : records[i].head()) c == '"' ? head += in.quote : head += c;
    text += fmt::format(fmt::runtime(records[i].op == nullptr ? in.watched : in.operation), i, head,
                        records[i].shape.str());
    for (const int into : records[i].inputs) text += fmt::format(fmt::runtime(in.arrow), into, i);
  }
  return text + in.end;
}

// ---- as a picture ----------------------------------------------------------------------------------------

constexpr double margin = 20, gap = 24, box_height = 38, row_height = 70;
constexpr std::size_t most = 256;

struct Box {
  std::string head, shape;
  std::size_t row = 0;
  double x = 0, y = 0, width = 0;  // x: of the middle
};
using Boxes = std::vector<Box>;

Boxes boxes_of(const std::vector<Record>& records) {
  Boxes boxes;
  for (const Record& record : records) {
    Box box{record.head(), record.shape.str()};
    if (box.head.empty()) box.head = fmt::format("#{}", boxes.size());
    for (const int into : record.inputs) box.row = std::max(box.row, boxes[static_cast<std::size_t>(into)].row + 1);
    box.width = std::max({64.0, figure::pixels(box.head) + 20, figure::pixels(box.shape) + 20});
    boxes.push_back(std::move(box));
  }
  // Each box moves down to the row just above its first use.
  std::vector<std::size_t> first_use(boxes.size(), boxes.size());
  for (std::size_t i = boxes.size(); i-- > 0;) {
    if (first_use[i] < boxes.size()) boxes[i].row = first_use[i] - 1;
    for (const int into : records[i].inputs) {
      std::size_t& use = first_use[static_cast<std::size_t>(into)];
      use = std::min(use, boxes[i].row);
    }
  }
  return boxes;
}

// Sets the places of the boxes: rows from top to bottom, each centred, and in a row the order of the tape.
// Returns the width of the widest row.
double place(Boxes& boxes, std::size_t rows, double top) {
  std::vector<double> length(rows, -gap), x;
  for (const Box& box : boxes) length[box.row] += box.width + gap;
  const double widest = *std::max_element(length.begin(), length.end());
  for (const double each : length) x.push_back(margin + (widest - each) / 2);
  for (Box& box : boxes) {
    box.x = x[box.row] + box.width / 2;
    box.y = top + static_cast<double>(box.row) * row_height;
    x[box.row] += box.width + gap;
  }
  return widest;
}

// The line from a box to one below it, which goes around the boxes of the rows between.
std::vector<figure::Point> path(const Boxes& boxes, const Box& from, const Box& to) {
  const figure::Point begin{from.x, from.y + box_height}, end{to.x, to.y};
  if (to.row == from.row + 1) return {begin, end};
  double side = 0;
  for (const Box& box : boxes)
    if (box.row > from.row && box.row < to.row) side = std::max(side, box.x + box.width / 2 + margin / 2);
  return {begin, {side, from.y + row_height}, {side, to.y - row_height + box_height}, end};
}

std::string drawn(const std::vector<Record>& records, const std::string& title, const std::string& description) {
  require<ValueError>(records.size() <= most,
                      "tape_svg: {} records; at most {} can be read in a figure. tape.print() shows the "
                      "beginning and the end of a long tape, and tape.dot() writes it for Graphviz",
                      records.size(), most);
  Boxes boxes = boxes_of(records);
  std::size_t rows = 1;
  for (const Box& box : boxes) rows = std::max(rows, box.row + 1);
  const double top = title.empty() ? margin : margin + 26;
  const double width = std::max(place(boxes, rows, top), figure::pixels(title) * 1.2) + 2 * margin;
  const double height = top + static_cast<double>(rows - 1) * row_height + box_height + margin;
  figure::Canvas canvas(width, height, title,
                        description.empty() ? fmt::format("a tape of {} records", boxes.size()) : description);
  for (std::size_t i = 0; i < boxes.size(); ++i)
    for (const int into : records[i].inputs)
      canvas.through("polyline", path(boxes, boxes[static_cast<std::size_t>(into)], boxes[i]), "c0 stroke");
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    const auto& [head, shape, row, x, y, w] = boxes[i];
    const double left = x - w / 2, right = x + w / 2, bottom = y + box_height;
    canvas.rect(left, y, w, box_height, "class='ground'");
    canvas.through("polygon", {{left, y}, {right, y}, {right, bottom}, {left, bottom}},
                   records[i].op == nullptr ? "c1 area" : "c0 area");
    canvas.text({x, y + 16}, head, "mid");
    canvas.text({x, y + 31}, shape, "mid soft small");
  }
  return canvas.str();
}

}  // namespace

template <class T> std::string tape_svg(const Tape<T>& tape, const std::string& title, const std::string& description) {
  return drawn(detail::records_of(tape), title, description);
}
template <class T> std::string Tape<T>::dot() const { return written(detail::records_of(*this), graphviz); }
template <class T> std::string Tape<T>::mermaid() const { return written(detail::records_of(*this), mermaid_text); }

#define TAPEHEAD_TAPE_GRAPH(T)                                                           \
  template std::string tape_svg(const Tape<T>&, const std::string&, const std::string&); \
  template std::string Tape<T>::dot() const;                                             \
  template std::string Tape<T>::mermaid() const;
TAPEHEAD_REALS(TAPEHEAD_TAPE_GRAPH)

}  // namespace tapehead
