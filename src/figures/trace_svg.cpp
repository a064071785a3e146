#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "figures/plot_canvas.hpp"
#include "autograd/tape_records.hpp"
#include "tapehead/kernels/error.hpp"
#include "tapehead/autograd/trace.hpp"

// The tape drawn: a box a record, below all that went into it.

namespace tapehead {

namespace {

constexpr double margin = 20, gap = 24, box_height = 38, row_height = 70;
constexpr std::size_t most = 256;

struct Box {
  std::string head, shape;
  std::vector<std::size_t> inputs;
  bool watched = false;
  std::size_t row = 0;
  double x = 0, y = 0, width = 0;  // x: of the middle
};

std::vector<Box> boxes_of(const std::vector<detail::Record>& records) {
  std::vector<Box> boxes;
  for (const detail::Record& record : records) {
    Box box{record.head(), record.shape.str(), {}, record.op == nullptr};
    if (box.head.empty()) box.head = fmt::format("#{}", boxes.size());
    for (const int into : record.inputs) {
      box.inputs.push_back(static_cast<std::size_t>(into));
      box.row = std::max(box.row, boxes[box.inputs.back()].row + 1);
    }
    box.width = std::max({64.0, figure::pixels(box.head) + 20, figure::pixels(box.shape) + 20});
    boxes.push_back(std::move(box));
  }
  // Everything stands just above its first use.
  std::vector<std::size_t> first_use(boxes.size(), boxes.size());
  for (std::size_t i = boxes.size(); i-- > 0;) {
    if (first_use[i] < boxes.size()) boxes[i].row = first_use[i] - 1;
    for (const std::size_t input : boxes[i].inputs)
      first_use[input] = std::min(first_use[input], boxes[i].row);
  }
  return boxes;
}

// Rows from top to bottom, each in the middle; in a row the order of the tape. Returns the widest.
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

// From a box to one below; around the boxes of the rows between.
std::vector<figure::Point> way(const std::vector<Box>& boxes, const Box& from, const Box& to) {
  const figure::Point begin{from.x, from.y + box_height}, end{to.x, to.y};
  if (to.row == from.row + 1) return {begin, end};
  double side = 0;
  for (const Box& box : boxes)
    if (box.row > from.row && box.row < to.row) side = std::max(side, box.x + box.width / 2 + margin / 2);
  return {begin, {side, from.y + row_height}, {side, to.y - row_height + box_height}, end};
}

std::string drawn(const std::vector<detail::Record>& records, const std::string& title,
                  const std::string& description) {
  if (records.size() > most)
    throw ValueError(
        fmt::format("tape_svg: {} records; at most {} can be read in a figure. print(tape) "
                    "shortens, dot(tape) is for Graphviz",
                    records.size(), most));
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
    for (const std::size_t input : box.inputs) canvas.polyline(way(boxes, boxes[input], box), "c0 stroke");
  for (const Box& box : boxes) {
    canvas.rect(box.x - box.width / 2, box.y, box.width, box_height, "class='ground'");
    canvas.polygon({{box.x - box.width / 2, box.y},
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

template std::string tape_svg(const Tape<float>&, const std::string&, const std::string&);
template std::string tape_svg(const Tape<double>&, const std::string&, const std::string&);

}  // namespace tapehead
