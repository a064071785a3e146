#pragma once
#include <string>
#include <vector>

#include "tapehead/figures/plot.hpp"

namespace chapter {

/// Numbers that a program measures, one row at a time, to be printed as a table and drawn as curves. The first
/// column is the x axis of all curves.
///
///   Table table({"d_k", "no scale", "over √d_k"});
///   table.add(64, 63.2, 0.99);                                    // and so on
///   table.print("{:5.0f} {:5.1f} {:7.2f}\n");
///   book.draw("variance", {table.curve("no scale"), table.curve("over √d_k")});
class Table {
 public:
  /// Throws ValueError if there are no columns.
  explicit Table(std::vector<std::string> columns);

  /// Throws ValueError unless there is one number for each column.
  template <tapehead::Number... N>
  void add(N... row) {
    add_row({static_cast<double>(row)...});
  }

  /// Prints each row in this format of fmt's, which also has to end the line.
  void print(const std::string& format) const;

  /// Throws ValueError if there is no column of that name, as the next two do.
  tapehead::Tensor<double> column(const std::string& name) const;
  tapehead::Series curve(const std::string& name, tapehead::Style style = tapehead::Style::line) const;
  /// The exponent p of the power law y = c x^p that fits the column best: the slope of log y against log x.
  double exponent(const std::string& name) const;

 private:
  void add_row(const std::vector<double>& row);
  const std::vector<double>& find(const std::string& name) const;

  std::vector<std::string> names_;
  std::vector<std::vector<double>> columns_;
};

}  // namespace chapter
