#include "table.hpp"

#include <fmt/args.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "tapehead/tapehead.hpp"

namespace chapter {

using tapehead::Tensor;
using tapehead::ValueError;

Table::Table(std::vector<std::string> columns) : names_(std::move(columns)), columns_(names_.size()) {
  if (names_.empty())
    throw ValueError("Table: no columns; name at least the first one, the x axis of the curves");
}

void Table::add_row(const std::vector<double>& row) {
  if (row.size() != names_.size())
    throw ValueError(fmt::format("Table::add: {} numbers for {} columns: {}", row.size(), names_.size(),
                                 fmt::join(names_, "; ")));
  for (std::size_t i = 0; i < row.size(); ++i) columns_[i].push_back(row[i]);
}

void Table::print(const std::string& format) const {
  for (std::size_t row = 0; row < columns_[0].size(); ++row) {
    fmt::dynamic_format_arg_store<fmt::format_context> numbers;
    for (const auto& column : columns_) numbers.push_back(column[row]);
    fmt::vprint(format, numbers);
  }
}

const std::vector<double>& Table::find(const std::string& name) const {
  for (std::size_t i = 0; i < names_.size(); ++i)
    if (names_[i] == name) return columns_[i];
  throw ValueError(fmt::format("Table: no column {}; there are {}", name, fmt::join(names_, "; ")));
}

Tensor<double> Table::column(const std::string& name) const {
  return tapehead::from_vector(find(name), {static_cast<std::int64_t>(columns_[0].size())});
}

tapehead::Series Table::curve(const std::string& name, tapehead::Style style) const {
  return {name, columns_[0], find(name), style};
}

double Table::exponent(const std::string& name) const {
  const auto log_x = log(column(names_[0])), log_y = log(column(name));
  const auto off_x = log_x - mean(log_x);
  return (sum(off_x * (log_y - mean(log_y))) / sum(off_x * off_x)).item();
}

}  // namespace chapter
