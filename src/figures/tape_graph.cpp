#include "tapehead/figures/tape_graph.hpp"

#include <algorithm>
#include <vector>

#include "autograd/tape_records.hpp"
#include "figures/plot_canvas.hpp"
#include "kernels/require.hpp"

namespace tapehead {

namespace {

// ---- for Graphviz and Mermaid ----------------------------------------------------------------------------

using detail::Record;

std::string escaped(const std::string& text, const char* quote) {
  std::string out;
  for (const char c : text) c == '"' ? out += quote : out += c;
  return out;
}

std::string dot_of(const std::vector<Record>& records) {
  std::string text = "digraph tape {\n  node [shape=box, fontname=\"monospace\"];\n";
  for (std::size_t i = 0; i < records.size(); ++i) {
    const Record& record = records[i];
    text += fmt::format("  n{} [label=\"{}\\n{}\"{}];\n", i, escaped(record.head(), "\\\""),
                        record.shape.str(), record.op == nullptr ? ", style=rounded" : "");
    for (const int into : record.inputs) text += fmt::format("  n{} -> n{};\n", into, i);
  }
  return text + "}\n";
}

std::string mermaid_of(const std::vector<Record>& records) {
  std::string text = "flowchart TD\n";
  for (std::size_t i = 0; i < records.size(); ++i) {
    const Record& record = records[i];
    const bool leaf = record.op == nullptr;
    text += fmt::format("  n{}{}\"{}<br>{}\"{}\n", i, leaf ? "([" : "[", escaped(record.head(), "#quot;"),
                        record.shape.str(), leaf ? "])" : "]");
    for (const int into : record.inputs) text += fmt::format("  n{} --> n{}\n", into, i);
  }
  return text;
}

// ---- as a picture ----------------------------------------------------------------------------------------

constexpr double margin = 20, gap = 24, box_height = 38, row_height = 70;
constexpr std::size_t most = 256;

struct Box {
  std::string head, shape;
  std::vector<std::size_t> inputs;
  bool watched = false;
  std::size_t row = 0;
  double x = 0, y = 0, width = 0;  // x: of the middle
};

std::vector<Box> boxes_of(const std::vector<Record>& records) {
  std::vector<Box> boxes;
  for (const Record& record : records) {
    Box box{record.head(), record.shape.str(), {}, record.op == nullptr};
    if (box.head.empty()) box.head = fmt::format("#{}", boxes.size());
    for (const int into : record.inputs) {
      box.inputs.push_back(static_cast<std::size_t>(into));
      box.row = std::max(box.row, boxes[box.inputs.back()].row + 1);
    }
    box.width = std::max({64.0, figure::pixels(box.head) + 20, figure::pixels(box.shape) + 20});
    boxes.push_back(std::move(box));
  }
  // Each box moves down to the row just above its first use.
  std::vector<std::size_t> first_use(boxes.size(), boxes.size());
  for (std::size_t i = boxes.size(); i-- > 0;) {
    if (first_use[i] < boxes.size()) boxes[i].row = first_use[i] - 1;
    for (const std::size_t input : boxes[i].inputs)
      first_use[input] = std::min(first_use[input], boxes[i].row);
  }
  return boxes;
}

// Sets the places of the boxes: rows from top to bottom, each centred, and in a row the order of the tape.
// Returns the width of the widest row.
double place(std::vector<Box>& boxes, std::size_t rows, double top) {
  std::vector<double> length(rows, -gap);
  for (const Box& box : boxes) length[box.row] += box.width + gap;
  const double widest = *std::max_element(length.begin(), length.end());
  for (std::size_t row = 0; row < rows; ++row) {
    double x = margin + (widest - length[row]) / 2;
    for (Box& box : boxes) {
      if (box.row != row) continue;
      box.x = x + box.width / 2;
      box.y = top + static_cast<double>(row) * row_height;
      x += box.width + gap;
    }
  }
  return widest;
}

// The line from a box to one below it, which goes around the boxes of the rows between.
std::vector<figure::Point> path(const std::vector<Box>& boxes, const Box& from, const Box& to) {
  const figure::Point begin{from.x, from.y + box_height}, end{to.x, to.y};
  if (to.row == from.row + 1) return {begin, end};
  double side = 0;
  for (const Box& box : boxes)
    if (box.row > from.row && box.row < to.row) side = std::max(side, box.x + box.width / 2 + margin / 2);
  return {begin, {side, from.y + row_height}, {side, to.y - row_height + box_height}, end};
}

std::string drawn(const std::vector<Record>& records, const std::string& title,
                  const std::string& description) {
  require<ValueError>(
      records.size() <= most,
      "tape_svg: {} records; at most {} can be read in a figure. tape.print() shows the beginning and "
      "the end of a long tape, and tape.dot() writes it for Graphviz",
      records.size(), most);
  std::vector<Box> boxes = boxes_of(records);
  std::size_t rows = 1;
  for (const Box& box : boxes) rows = std::max(rows, box.row + 1);
  const double top = title.empty() ? margin : margin + 26;
  const double width = std::max(place(boxes, rows, top), figure::pixels(title) * 1.2) + 2 * margin;
  const double height = top + static_cast<double>(rows - 1) * row_height + box_height + margin;
  figure::Canvas canvas(
      width, height, title,
      description.empty() ? fmt::format("a tape of {} records", boxes.size()) : description);
  for (const Box& box : boxes)
    for (const std::size_t input : box.inputs)
      canvas.through("polyline", path(boxes, boxes[input], box), "c0 stroke");
  for (const Box& box : boxes) {
    canvas.rect(box.x - box.width / 2, box.y, box.width, box_height, "class='ground'");
    canvas.through("polygon",
                   {{box.x - box.width / 2, box.y},
                    {box.x + box.width / 2, box.y},
                    {box.x + box.width / 2, box.y + box_height},
                    {box.x - box.width / 2, box.y + box_height}},
                   box.watched ? "c1 area" : "c0 area");
    canvas.text({box.x, box.y + 16}, box.head, "mid");
    canvas.text({box.x, box.y + 31}, box.shape, "mid soft small");
  }
  return canvas.str();
}

}  // namespace

template <class T>
std::string tape_svg(const Tape<T>& tape, const std::string& title, const std::string& description) {
  return drawn(detail::records_of(tape), title, description);
}

template <class T>
std::string Tape<T>::dot() const {
  return dot_of(detail::records_of(*this));
}
template <class T>
std::string Tape<T>::mermaid() const {
  return mermaid_of(detail::records_of(*this));
}

#define TAPEHEAD_TAPE_GRAPH(T)                                                           \
  template std::string tape_svg(const Tape<T>&, const std::string&, const std::string&); \
  template std::string Tape<T>::dot() const;                                             \
  template std::string Tape<T>::mermaid() const;
TAPEHEAD_TAPE_GRAPH(float)
TAPEHEAD_TAPE_GRAPH(double)

}  // namespace tapehead
