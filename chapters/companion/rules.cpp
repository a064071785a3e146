// Prints every operation of the library as a Markdown table: name, formula, pullback, shapes and file, in the words that
// the operation itself is defined with.
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "tapehead/autograd/tape.hpp"

namespace {

// A bar would end the cell.
std::string cell(const std::string& text) {
  std::string escaped;
  for (char c : text) escaped += c == '|' ? std::string("\\|") : std::string(1, c);
  return escaped;
}

std::string linked(const std::string& file, const std::string& folder) {
  const std::size_t slash = file.rfind('/');
  return "[" + file.substr(slash == std::string::npos ? 0 : slash + 1) + "](" + folder + file + ")";
}

// Room by room, in the order of the files and of the operations in each.
bool before(const tapehead::Op* a, const tapehead::Op* b) {
  const std::string x = a->file, y = b->file;
  return x < y || (x == y && std::string(a->name) < b->name);
}

}  // namespace

// The argument is the way from the page's folder to the top folder, for the links: "../../".
int main(int argc, char** argv) {
  const std::string folder = argc > 1 ? argv[1] : "";
  std::vector<const tapehead::Op*> operations = tapehead::all_operations();
  std::stable_sort(operations.begin(), operations.end(), before);
  std::puts("| operation | formula | pullback | shapes | file |\n|---|---|---|---|---|");
  for (const tapehead::Op* op : operations)
    std::printf("| `%s` | %s | %s | %s | %s |\n", op->name, cell(op->formula).c_str(),
                cell(op->pullback).c_str(), cell(op->shapes).c_str(), linked(op->file, folder).c_str());
}
