#pragma once
// The golden files: tensors from an archive, and the table beside it. tests/golden/make_golden.py says what
// is in them.
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "tapehead/files/npy.hpp"

namespace golden {

/// A file of tests/golden, or of the folder that TAPEHEAD_GOLDEN names. Tests run from the project's top
/// folder.
inline std::string path(const std::string& name) {
  const char* folder = std::getenv("TAPEHEAD_GOLDEN");
  return (folder != nullptr ? std::string(folder) : std::string("tests/golden")) + "/" + name;
}

inline std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

/// Words by name; what is asked for and not there throws.
class Words {
 public:
  bool has(const std::string& key) const { return words_.count(key) != 0; }
  const std::string& text(const std::string& key) const {
    const auto found = words_.find(key);
    if (found == words_.end()) throw std::runtime_error("golden: there is no '" + key + "'");
    return found->second;
  }
  std::string text(const std::string& key, const std::string& otherwise) const {
    return has(key) ? text(key) : otherwise;
  }
  double number(const std::string& key) const { return std::strtod(text(key).c_str(), nullptr); }
  double number(const std::string& key, double otherwise) const { return has(key) ? number(key) : otherwise; }
  std::int64_t integer(const std::string& key) const { return std::strtoll(text(key).c_str(), nullptr, 10); }
  std::int64_t integer(const std::string& key, std::int64_t otherwise) const {
    return has(key) ? integer(key) : otherwise;
  }
  bool flag(const std::string& key, bool otherwise = false) const { return has(key) ? text(key) == "1" : otherwise; }
  std::vector<std::int64_t> integers(const std::string& key) const {
    std::vector<std::int64_t> list;
    for (const std::string& part : split(text(key), ',')) list.push_back(std::strtoll(part.c_str(), nullptr, 10));
    return list;
  }
  std::vector<double> numbers(const std::string& key) const {
    std::vector<double> list;
    for (const std::string& part : split(text(key), ',')) list.push_back(std::strtod(part.c_str(), nullptr));
    return list;
  }
  void set(const std::string& key, const std::string& word) { words_[key] = word; }
  auto begin() const { return words_.begin(); }
  auto end() const { return words_.end(); }

 private:
  std::map<std::string, std::string> words_;
};

/// `key=word;key=word` of one cell.
inline Words options(const std::string& cell) {
  Words words;
  for (const std::string& part : split(cell, ';'))
    words.set(part.substr(0, part.find('=')), part.substr(part.find('=') + 1));
  return words;
}

/// The lines of a table, by the names in its first line.
inline std::vector<Words> table(const std::string& name) {
  std::ifstream file(path(name));
  std::string line;
  if (!std::getline(file, line))
    throw std::runtime_error("golden: there is no " + path(name) + " here; run the tests from the top folder");
  const auto columns = split(line, '\t');
  std::vector<Words> lines;
  while (std::getline(file, line)) {
    const auto cells = split(line, '\t');
    Words words;
    for (std::size_t i = 0; i < columns.size(); ++i) words.set(columns[i], i < cells.size() ? cells[i] : "");
    lines.push_back(words);
  }
  if (lines.empty()) throw std::runtime_error("golden: " + path(name) + " is empty");
  return lines;
}

/// Where and how x is not the reference; empty where it is. Equal numbers are right, so are two of one kind
/// of non-finite, and what differs by no more than tol · max(1, max |reference|).
template <class T>
std::string difference(const tapehead::Tensor<T>& x, const tapehead::Tensor<T>& reference, double tol) {
  std::ostringstream text;
  text.precision(17);
  if (!(x.shape() == reference.shape())) {
    text << "shape " << x.shape().str() << ", and the reference has " << reference.shape().str();
    return text.str();
  }
  const auto ours = x.to_vector(), theirs = reference.to_vector();
  double largest = 1;
  for (const auto v : theirs)
    if (std::isfinite(static_cast<double>(v))) largest = std::max(largest, std::abs(static_cast<double>(v)));
  for (std::size_t i = 0; i < ours.size(); ++i) {
    const double a = static_cast<double>(ours[i]), b = static_cast<double>(theirs[i]);
    if (a == b || (std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= tol * largest) continue;
    text << "element " << i << " of " << x.shape().str() << " is " << a << ", and the reference " << b;
    return text.str();
  }
  return {};
}

}  // namespace golden
