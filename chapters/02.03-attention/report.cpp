// Prints every entry of the chapter in its order: what the book says, what the engine computes, and the verdict.
// It reads what the section programs stored when they last ran; `make book` runs them all first. With --errata it
// prints the text of ERRATA.md.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "claims.hpp"

namespace fs = std::filesystem;
using namespace chapter;

namespace {

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

// Sorted by section, in the order in which the sections first occur in the chapter.
std::vector<Entry> by_section(const std::vector<Entry>& entries) {
  std::map<std::string, std::size_t> place;
  for (const Entry& entry : entries) place.insert({entry.section, place.size()});
  auto sorted = entries;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [&](const Entry& a, const Entry& b) { return place[a.section] < place[b.section]; });
  return sorted;
}

// What the programs beside this one stored, by entry. `complete` becomes false if one of them stored nothing.
std::map<std::string, Found> read_all(const fs::path& folder, bool& complete) {
  std::map<std::string, Found> found;
  for (const auto& program : section_programs()) {
    const auto results = read_results((folder / program).string());
    if (!results) fmt::print("{}: has not run to its end since it was built\n", program);
    complete &= results.has_value();
    for (const auto& result : results.value_or(std::vector<Result>()))
      if (!found.insert({result.id, {result, program}}).second)
        throw tapehead::ValueError(result.id + " is claimed by two programs");
  }
  return found;
}

void print_heading(const std::string& section, const std::vector<Entry>& entries,
                   const std::map<std::string, Found>& found) {
  std::set<std::string> numbers;  // of the programs that cover it
  for (const Entry& entry : entries)
    if (const auto at = found.find(entry.id); entry.section == section && at != found.end())
      numbers.insert(at->second.program.substr(0, 2));
  fmt::print("\n{}   make run S={}\n", coloured(section, "1"), fmt::join(numbers, " or S="));
}

// Text as Markdown shows it in a table.
std::string markdown(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (std::string("\\`*_|~[]<").find(c) != std::string::npos) out += '\\';
    out += c;
  }
  return out;
}

// An erratum in the words of a report to the authors.
struct Words {
  std::string title, correction;
};

// A new erratum without words here has the book's text as its title, and no correction yet.
Words words_for(const Entry& entry, const std::string& ours) {
  static const std::map<std::string, Words> words{
      {"scale_example_scaled",
       {"The scaled weights of the worked example are cut off instead of rounded", ""}},
      {"naive_softmax_overflow",
       {"Overflow in the naive softmax does not make the whole row NaN",
        "Write that the overflowing entries become NaN (inf / inf) and all other entries become 0."}},
      {"softmax_exponent_range",
       {"The exponentials of the stable softmax can be exactly 0",
        "Write \"in [0, 1]\": exp underflows to 0 for very negative numbers, which does no harm here."}},
      {"sanity_value_comment",
       {"The comment on the values of the worked example does not describe them",
        "Write \"value j is the number 10 * (j + 1), repeated\"."}},
      {"byte_for_byte",
       {"The PyTorch version computes the same formula, but not the same bytes",
        "Write that the formula is the same, and that the results agree to the precision of float32."}},
      {"scores_bytes_32x32", {"The memory of 32 layers with 32 heads is rounded twice", ""}},
      {"ex1_symmetry",
       {"Symmetric scores do not give symmetric attention weights",
        "Write that the raw score of (i, j) equals that of (j, i). The weights differ all the same, because "
        "softmax "
        "divides each row by its own sum."}},
      {"ex3a_weights", {"The first weight in the solution of exercise 3 (a) is rounded up by mistake", ""}},
      {"padding_zeroes_scores",
       {"A padding mask does not zero out scores",
        "Write \"sets every score whose key is a pad token to minus infinity, so that its weight becomes "
        "0\"."}}};
  const auto at = words.find(entry.id);
  Words found = at == words.end() ? Words{entry.text, ""} : at->second;
  if (found.correction.empty())
    found.correction = fmt::format("Write {} in place of {}.", ours.substr(0, ours.find(", from ")),
                                   fmt::join(entry.figures, " "));
  return found;
}

// Each erratum in the fields of the book's own template for error reports, ready to be sent.
int print_errata(const std::map<std::string, Found>& found, bool complete) {
  const auto entries = by_section(read_entries());
  const auto verdict = [&](const Entry& entry) { return found.at(entry.id).result.verdict; };
  complete = complete && std::all_of(entries.begin(), entries.end(), [&](const Entry& entry) {
               return found.count(entry.id) != 0 && verdict(entry) != Verdict::differs;
             });
  if (!complete) {
    fmt::print(stderr, "make book: not every entry has been recomputed correctly\n");
    return 1;
  }
  fmt::print("# Errata\n\n");
  fmt::print(
      "These are the places in chapter 2.3 of *The LLM Stack*, The Attention Mechanism From Scratch, where a "
      "number\n"
      "or a statement is wrong: {} of the {} that we recomputed. The chapter exists in a shorter and a "
      "longer "
      "version;\n"
      "some errors are only in the longer one. Each erratum has the fields of the book's own template for "
      "error\n"
      "reports, so that it can be sent as it stands. The command runs in the top folder of a clone of this "
      "project and\n"
      "prints our numbers under the name of the entry. `make docs` writes this page from the programs' "
      "results.\n",
      std::count_if(entries.begin(), entries.end(),
                    [&](const Entry& entry) { return verdict(entry) == Verdict::erratum; }),
      entries.size());
  int number = 0;
  for (const Entry& entry : entries) {
    if (verdict(entry) != Verdict::erratum) continue;
    const auto& [result, program] = found.at(entry.id);
    std::string kind = entry.kind;
    std::replace(kind.begin(), kind.end(), '_', ' ');
    const auto words = words_for(entry, result.here);
    fmt::print("\n## {}. {}\n\n", ++number, markdown(words.title));
    fmt::print("**Chapter**: content/02-transformer/03-attention-from-scratch.md (chapter 2.3)\n\n");
    fmt::print("**What's wrong**: the book says\n\n> {}\n\n", markdown(entry.text));
    fmt::print("We compute: {}.", markdown(result.here));
    if (!entry.note.empty()) fmt::print(" Note: {}.", markdown(entry.note));
    fmt::print("\n\n**Correction**: {}\n\n", markdown(words.correction));
    fmt::print("**Location**: section \"{}\", {}{}\n\n", markdown(entry.section), kind,
               entry.source == "full" ? " (only in the longer version of the chapter)" : "");
    fmt::print("Reproduce it with `make run S={}`, entry `{}`.\n", program.substr(0, 2), entry.id);
  }
  fmt::print(
      "\n## Not computed here\n\n"
      "These statements are about other machines or about the text itself, so no program of this project can "
      "check "
      "them.\n");
  for (const Entry& statement : read_entries("chapter_statements.tsv"))
    fmt::print("\n- *{}*{}: {}\n", markdown(statement.text),
               statement.source == "full" ? " (only in the longer version of the chapter)" : "",
               markdown(statement.note));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  bool right = true;
  const auto found = read_all(fs::path(argv[0]).parent_path(), right);
  if (argc > 1 && std::string(argv[1]) == "--errata") return print_errata(found, right);
  fmt::print("\n{}\n", coloured("The attention chapter: what the book says, and what we compute", "1"));

  std::map<std::string, int> count;
  std::vector<std::string> errata;
  const auto entries = by_section(read_entries());
  const std::string* section = nullptr;
  for (const Entry& entry : entries) {
    if (section == nullptr || entry.section != *section) print_heading(entry.section, entries, found);
    section = &entry.section;
    const auto at = found.find(entry.id);
    if (at == found.end()) {
      print_not_covered(entry, "no program that ran covers it");
      ++count["not covered"];
      right = false;
      continue;
    }
    const auto& [result, program] = at->second;
    print(entry, result);
    ++count[name(result.verdict)];
    right &= result.verdict != Verdict::differs;
    if (result.verdict == Verdict::erratum)
      errata.push_back(fmt::format("{} (make run S={})", entry.id, program.substr(0, 2)));
  }
  fmt::print("\n{} entries: {} agree, {} errata, {} exact where the book prints no number, ", entries.size(),
             count["agree"], count["erratum"], count["exact"]);
  fmt::print("{} differ, {} not covered\n", count["differs"], count["not covered"]);
  for (const auto& erratum : errata) fmt::print("  erratum: {}\n", erratum);
  return right ? 0 : 1;
}
