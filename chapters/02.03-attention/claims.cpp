#include "claims.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <sstream>

#include "tapehead/files/npy.hpp"

namespace chapter {

namespace fs = std::filesystem;
using tapehead::FileError;
using tapehead::ValueError;

namespace {

std::vector<std::string> split(const std::string& line, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(line);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

// The reference's files, in the project's folder, from which `make book` runs these programs.
std::string golden(const std::string& file) {
  const std::string path = "tests/golden/" + file;
  if (!fs::exists(path))
    throw FileError(path + " is not here: run this from the project's folder, as `make book` does");
  return path;
}

const tapehead::NamedTensors& exact_values() {
  static const auto values = tapehead::load_npz(golden("chapter.npz"));
  return values;
}
Numbers exact_value(const std::string& name) {
  return std::visit([](const auto& x) { return Numbers(x); }, exact_values()[name]);
}

// ---- printing

void print_lines(const Entry& entry, const char* verdict, const char* code,
                 std::initializer_list<std::pair<const char*, std::string>> lines) {
  fmt::print("  {}  {}\n", coloured(fmt::format("{:7}", verdict), code), entry.id);
  for (const auto& [label, text] : lines)
    if (!text.empty()) fmt::print("           {:4}  {}\n", label, text);
}

// ---- comparing

// Where and how far ours is from the exact value; nothing where it is equal. Equal are the same numbers, the
// same kind of non-finite, and what is nearer than the tolerance.
std::string difference(const Numbers& ours, const Numbers& exact, double tolerance) {
  if (ours.shape != exact.shape)
    return fmt::format("ours has shape {}, the exact one {}", ours.shape.str(), exact.shape.str());
  double largest = 1;
  for (const double e : exact.values)
    if (std::isfinite(e)) largest = std::max(largest, std::abs(e));
  for (std::size_t i = 0; i < exact.values.size(); ++i) {
    const double o = ours.values[i], e = exact.values[i];
    if (o == e || (std::isnan(o) && std::isnan(e)) || std::abs(o - e) <= tolerance * largest) continue;
    return fmt::format("element {}: ours is {:.17g}, the exact one {:.17g}", i, o, e);
  }
  return {};
}

// x in the digits of a printed figure, halves to the even one: 2.6E10 has one decimal and an exponent, 0.160
// three, 8 none.
std::string in_the_digits_of(const std::string& figure, double x, int decimals) {
  const auto exponent = figure.find_first_of("eE"), point = figure.find('.');
  const bool scientific = exponent != std::string::npos;
  if (decimals < 0)
    decimals =
        point == std::string::npos ? 0 : static_cast<int>(std::min(exponent, figure.size()) - point - 1);
  char text[512];
  std::snprintf(text, sizeof text, scientific ? "%.*E" : "%.*f", decimals, x);
  std::string out = text;
  if (const auto e = out.find('E'); e != std::string::npos)  // E+10 reads E10
    out = out.substr(0, e + 1) + std::to_string(std::stoi(out.substr(e + 1)));
  return std::strtod(out.c_str(), nullptr) == 0 && out[0] == '-' ? out.substr(1) : out;
}

}  // namespace

const char* name(Verdict verdict) {
  constexpr const char* names[] = {"agree", "erratum", "exact", "differs"};
  return names[static_cast<int>(verdict)];
}

std::vector<Entry> read_entries(const std::string& table) {
  std::ifstream file(golden(table));
  std::string line;
  std::getline(file, line);
  const auto columns = split(line, '\t');
  std::vector<Entry> entries;
  while (std::getline(file, line)) {
    const auto cells = split(line, '\t');
    const auto cell = [&](const char* column) {
      const auto at =
          static_cast<std::size_t>(std::find(columns.begin(), columns.end(), column) - columns.begin());
      if (at == columns.size())
        throw FileError(fmt::format("tests/golden/{} has no column {}", table, column));
      return at < cells.size() ? cells[at] : std::string();
    };
    Entry& entry = entries.emplace_back();
    entry.id = cell("id"), entry.section = cell("section"), entry.kind = cell("kind");
    entry.source = cell("source"), entry.text = cell("text"), entry.note = cell("note");
    if (!cell("values").empty()) entry.figures = split(cell("values"), ' ');
    if (!cell("decimals").empty()) entry.decimals = std::stoi(cell("decimals"));
    if (!cell("agrees").empty()) entry.agrees = cell("agrees") == "true";
  }
  return entries;
}

// ---- one claim

void Claim::compare(const std::string& path, const Numbers& ours, double tolerance) {
  const std::string full = entry_.id + "/" + path;
  if (!exact_values().contains(full)) {
    faults_.push_back("the reference has no " + full);
  } else if (const auto off = difference(ours, exact_value(full), tolerance); !off.empty()) {
    faults_.push_back(path + ": " + off);
  }
}

Claim& Claim::value(const Numbers& ours) {
  given_.push_back("exact");
  compare("exact", ours, ours.tolerance);
  return *this;
}

Claim& Claim::values(Values ours) {
  for (const auto& [name, numbers] : ours) {
    given_.push_back("exact/" + name);
    compare(given_.back(), numbers, numbers.tolerance);
  }
  return *this;
}

Claim& Claim::aside(const std::string& field) {
  given_.push_back("exact/" + field);
  return *this;
}

Claim& Claim::drawn(const std::string& input, const Numbers& ours) {
  compare("inputs/" + input, ours, 0);
  return *this;
}

Claim& Claim::printed(const Numbers& ours) {
  figures_given_ = true;
  const auto& figures = entry_.figures;
  if (figures.size() != ours.values.size()) {
    faults_.push_back(
        fmt::format("the book prints {} numbers, ours are {}", figures.size(), ours.values.size()));
    return *this;
  }
  std::string row, unrounded;
  bool right = true;
  for (std::size_t i = 0; i < figures.size(); ++i) {
    const std::string digits = in_the_digits_of(figures[i], ours.values[i], entry_.decimals);
    right &= std::strtod(digits.c_str(), nullptr) == std::strtod(figures[i].c_str(), nullptr);
    row += (i > 0 ? " " : "") + digits;
    unrounded += fmt::format("{}{:.7g}", i > 0 ? " " : "", ours.values[i]);
  }
  here_.push_back(right || row == unrounded ? row : row + ", from " + unrounded);
  right_ = right_.value_or(true) && right;
  return *this;
}

Claim& Claim::holds(bool statement, const std::string& evidence) {
  right_ = right_.value_or(true) && statement;
  return note(evidence);
}

Claim& Claim::note(const std::string& text) {
  here_.push_back(text);
  return *this;
}

// The exact values that no value() was given for.
std::vector<std::string> Claim::missing() const {
  std::vector<std::string> names;
  for (const auto& [full, tensor] : exact_values()) {
    if (full.rfind(entry_.id + "/exact", 0) != 0) continue;
    const std::string path = full.substr(entry_.id.size() + 1);
    const bool given = std::any_of(given_.begin(), given_.end(), [&](const std::string& g) {
      return path == g || path.rfind(g + "/", 0) == 0;
    });
    if (!given) names.push_back(path);
  }
  return names;
}

// ---- the book

Book::Book(const std::string& program, const std::string& title)
    : program_(program), entries_(read_entries()) {
  fs::remove(program_ + ".claims");
  fmt::print("\n{}\n\n", coloured("2.3  " + title, "1"));
}

Claim& Book::claim(const std::string& id, Values ours) {
  for (const Claim& claim : claims_)
    if (claim.entry_.id == id) throw ValueError("Book::claim: " + id + " was claimed before");
  for (const Entry& entry : entries_)
    if (entry.id == id) return claims_.emplace_back(entry).values(ours);
  throw ValueError("Book::claim: the book has no entry " + id);
}

void Book::expect(const std::string& what, bool holds) { expectations_.emplace_back(what, holds); }

void Book::draw(const std::string& figure, const std::string& svg, const std::string& text) const {
  const fs::path folder = fs::path(program_).parent_path() / "figures";
  fs::create_directories(folder);
  tapehead::save_svg((folder / (figure + ".svg")).string(), svg);
  fmt::print("\n{}{}-> {}\n", text, text.empty() ? "" : "\n", (folder / (figure + ".svg")).string());
}

Result Book::judge(const Claim& claim) {
  auto faults = claim.faults_;
  for (const auto& path : claim.missing()) faults.push_back(path + " was not recomputed");
  if (!claim.entry_.figures.empty() && !claim.figures_given_)
    faults.push_back("the numbers that it prints were not compared");
  if (claim.entry_.agrees != claim.right_)
    faults.push_back(fmt::format("the reference's own verdict is {}", !claim.entry_.agrees   ? "exact"
                                                                      : *claim.entry_.agrees ? "agree"
                                                                                             : "erratum"));
  Verdict verdict = !claim.right_ ? Verdict::exact : *claim.right_ ? Verdict::agree : Verdict::erratum;
  if (!faults.empty()) verdict = Verdict::differs;
  return {claim.entry_.id, verdict, fmt::format("{}", fmt::join(claim.here_, "; ")),
          fmt::format("{}", fmt::join(faults, "; "))};
}

int Book::close() {
  bool right = true;
  std::ofstream file(program_ + ".claims");
  if (!claims_.empty()) fmt::print("\n{}\n", coloured("What the book says, recomputed", "1"));
  for (const Claim& claim : claims_) {
    const Result result = judge(claim);
    right &= result.verdict != Verdict::differs;
    print(claim.entry_, result);
    file << result.id << '\t' << static_cast<int>(result.verdict) << '\t' << result.here << '\t'
         << result.fault << '\n';
  }
  if (!expectations_.empty()) fmt::print("\n{}\n", coloured("Also", "1"));
  for (const auto& [what, holds] : expectations_) {
    right &= holds;
    fmt::print("  {}  {}\n", holds ? coloured("yes", "32") : coloured("NO ", "1;31"), what);
  }
  if (!file.flush()) throw FileError("cannot write " + program_ + ".claims");
  return right ? 0 : 1;
}

// ---- the report

std::optional<std::vector<Result>> read_results(const std::string& program) {
  std::ifstream file(program + ".claims");
  if (!file || fs::last_write_time(program + ".claims") < fs::last_write_time(program)) return {};
  std::vector<Result> results;
  for (std::string line; std::getline(file, line);) {
    const auto cells = split(line, '\t');
    Result& result = results.emplace_back();
    result.id = cells.at(0), result.verdict = static_cast<Verdict>(std::stoi(cells.at(1))),
    result.here = cells.at(2);
    if (cells.size() > 3) result.fault = cells[3];
  }
  return results;
}

void print(const Entry& entry, const Result& result) {
  constexpr const char* codes[] = {"32", "1;33", "36", "1;31"};
  print_lines(entry, name(result.verdict), codes[static_cast<int>(result.verdict)],
              {{"book", entry.text}, {"here", result.here}, {"but", result.fault}});
}

void print_not_covered(const Entry& entry, const std::string& why) {
  print_lines(entry, "-", "2", {{"book", entry.text}, {"", "not covered: " + why}});
}

std::string coloured(const std::string& text, const char* code) {
  static const bool terminal = isatty(STDOUT_FILENO) != 0 && std::getenv("NO_COLOR") == nullptr;
  return terminal ? fmt::format("\033[{}m{}\033[0m", code, text) : text;
}

}  // namespace chapter
