// Every entry of the chapter, in its order: what the book says, what the engine computes, and the verdict.
// Reads what the section programs kept when they last ran; `make book` runs them all first.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "claims.hpp"

namespace fs = std::filesystem;
using namespace chapter;

namespace {

// Entries that no program covers yet, and why.
const std::map<std::string, std::string> not_yet{
    {"builtin_comparison",
     "needs scaled_dot_product_attention, the fused kernel's front door, which is not here yet"},
};

struct Found {
  Result result;
  std::string program;
};

// The section programs, by their sources' names.
std::vector<std::string> section_programs() {
  std::vector<std::string> names;
  for (const auto& file : fs::directory_iterator(fs::path(__FILE__).parent_path())) {
    const auto name = file.path().filename().string();
    if (std::isdigit(static_cast<unsigned char>(name[0])) != 0 && file.path().extension() == ".cpp")
      names.push_back(file.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// Each section's entries together, sections in the order in which the chapter first has them.
std::vector<Entry> by_section(const std::vector<Entry>& entries) {
  std::map<std::string, std::size_t> place;
  for (const Entry& entry : entries) place.insert({entry.section, place.size()});
  auto sorted = entries;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [&](const Entry& a, const Entry& b) { return place[a.section] < place[b.section]; });
  return sorted;
}

}  // namespace

int main(int, char** argv) {
  bool right = true;
  std::map<std::string, Found> found;
  for (const auto& program : section_programs()) {
    const auto results = read_results((fs::path(argv[0]).parent_path() / program).string());
    if (!results) fmt::print("{}: has not run to its end since it was built\n", program);
    right &= results.has_value();
    for (const auto& result : results.value_or(std::vector<Result>()))
      if (!found.insert({result.id, {result, program}}).second)
        throw tapehead::ValueError(result.id + " is claimed by two programs");
  }

  fmt::print("\n{}\n", coloured("The attention chapter: what the book says, and what comes out here", "1"));
  std::map<std::string, int> count;
  std::vector<std::string> errata;
  std::string section;
  for (const Entry& entry : by_section(read_entries())) {
    if (entry.section != section) fmt::print("\n{}\n", coloured(section = entry.section, "1"));
    const auto at = found.find(entry.id);
    const auto reason = not_yet.find(entry.id);
    if (at != found.end()) {
      print(entry, at->second.result);
      ++count[name(at->second.result.verdict)];
      right &= at->second.result.verdict != Verdict::differs;
      if (at->second.result.verdict == Verdict::erratum)
        errata.push_back(fmt::format("{} (make run S={})", entry.id, at->second.program.substr(0, 2)));
    } else {
      print_not_covered(entry, reason != not_yet.end() ? reason->second : "no program that ran speaks of it");
      ++count["not covered"];
      right &= reason != not_yet.end();
    }
    if (at != found.end() && reason != not_yet.end())
      throw tapehead::ValueError(entry.id + " is covered; take it off the list");
  }
  fmt::print(
      "\n{} entries: {} agree, {} errata, {} exact where the book prints no figure, {} differ, {} not "
      "covered\n",
      count["agree"] + count["erratum"] + count["exact"] + count["differs"] + count["not covered"],
      count["agree"], count["erratum"], count["exact"], count["differs"], count["not covered"]);
  for (const auto& erratum : errata) fmt::print("  erratum: {}\n", erratum);
  return right ? 0 : 1;
}
