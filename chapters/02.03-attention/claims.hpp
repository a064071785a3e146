#pragma once
#include <deque>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "captions.hpp"
#include "tapehead/tapehead.hpp"

// The book's claims, compared with what the engine computes. A section's program opens the Book, runs the section's
// listing, and gives the result for each claim; close() compares it with the exact values, prints a verdict for
// each claim, and stores the verdicts for the report.
//
//   Book book(argv[0], "A From-Scratch Implementation in NumPy");
//   book.claim("sanity_weights", {{"scores", S}, {"weights", w}}).printed(w);
//   return book.close();

namespace chapter {

/// Numbers of any element type, and how far they may be from the exact ones, relative to the largest exact one
/// (or to 1, if that is larger): 1e-12 in double; 2e-6 in float, whose last bits depend on the order of summation;
/// 0 for other types.
struct Numbers {
  template <class E>
  Numbers(const tapehead::Tensor<E>& x) : shape(x.shape()), tolerance(tolerance_of<E>) {
    for (const E element : x.to_vector()) values.push_back(static_cast<double>(element));
  }
  template <tapehead::Number N>
  Numbers(N x) : values{static_cast<double>(x)}, tolerance(tolerance_of<N>) {}

  tapehead::Shape shape;
  std::vector<double> values;
  double tolerance;

 private:
  template <class E>
  static constexpr double tolerance_of = std::is_same_v<E, double>  ? 1e-12
                                         : std::is_same_v<E, float> ? 2e-6
                                                                    : 0;
};

/// A line of tests/golden/chapter.tsv: one thing that the book says.
struct Entry {
  std::string id, section, kind, source, text, note;  // source "full": only in the book's longer version
  std::vector<std::string> figures;                   // as printed
  int decimals = -1;                                  // of np.round, where the listing rounds
  std::optional<bool> agrees;  // the reference's own verdict; none if the book prints nothing to compare
};

enum class Verdict {
  agree,    // the book's numbers are the exact ones, rounded, and its statement is true
  erratum,  // a number of the book is wrong, or its statement is false
  exact,    // the book prints no number; ours is the exact one
  differs   // ours is not the exact one: a mistake of ours
};
const char* name(Verdict verdict);

/// Our values of an entry's exact ones, by name.
using Values = std::initializer_list<std::pair<std::string, Numbers>>;

/// What the engine computes for one entry.
class Claim {
 public:
  explicit Claim(Entry entry) : entry_(std::move(entry)) {}

  /// Our value for the entry's exact one; or for each of several exact ones, by name. None may be left out.
  Claim& value(const Numbers& ours);
  Claim& values(Values ours);
  /// An exact value that is not compared ("torch" stands for all of torch/…). Give the reason in a comment.
  Claim& aside(const std::string& field);
  /// Our draw of one of the entry's inputs, which must equal the reference's bit for bit.
  Claim& drawn(const std::string& input, const Numbers& ours);
  /// Our values for the numbers that the book prints, in its order.
  Claim& printed(const Numbers& ours);
  /// Whether the book's statement is true, and the evidence.
  Claim& holds(bool statement, const std::string& evidence);
  /// A remark, for an entry in which the book makes no statement that could be true or false.
  Claim& note(const std::string& text);

 private:
  friend class Book;
  void compare(const std::string& name, const Numbers& ours, double tolerance);
  std::vector<std::string> missing() const;

  Entry entry_;
  std::vector<std::string> given_;  // names of the exact values compared or left aside
  bool figures_given_ = false;
  std::optional<bool> right_;        // whether the book is: every figure and statement of it that we checked
  std::vector<std::string> here_;    // our figures in the book's digits, and the evidence
  std::vector<std::string> faults_;  // of ours
};

/// What close() stores for each claim, and the report reads.
struct Result {
  std::string id;
  Verdict verdict = Verdict::differs;
  std::string here, fault;
};

class Book {
 public:
  /// Prints the section's title. `program` is argv[0]: results and figures go beside it.
  Book(const std::string& program, const std::string& title);

  /// The entry of that name, with our value or values. Throws ValueError if there is no such entry, or if it was
  /// claimed before.
  Claim& claim(const std::string& id, Values ours = {});
  Claim& claim(const std::string& id, const Numbers& ours) { return claim(id).value(ours); }
  /// A statement of our own that must be true, in addition to the book's entries.
  void expect(const std::string& what, bool holds);
  /// Shows the matrix in the terminal and draws it into figures/NAME.svg beside the program. Title, description and
  /// axes are those of captions.cpp, unless they are given.
  template <class E>
  void draw(const std::string& figure, const tapehead::Tensor<E>& x) {
    draw(figure, x, heatmap_caption(figure));
  }
  template <class E>
  void draw(const std::string& figure, const tapehead::Tensor<E>& x,
            const tapehead::HeatmapOptions& options) {
    draw(figure, tapehead::heatmap_svg(x, options), tapehead::heatmap_text(x, options));
  }
  /// Draws the curves, with title, description and axes of captions.cpp.
  void draw(const std::string& figure, const std::vector<tapehead::Series>& curves) const {
    draw(figure, tapehead::plot_svg(curves, plot_caption(figure)));
  }
  /// Stores a figure that has been drawn already.
  void draw(const std::string& figure, const std::string& svg, const std::string& text = {}) const;
  /// Prints a verdict for every claim and stores it for the report. Returns what main should return: 0 if all of our
  /// results are right, 1 otherwise.
  int close();

 private:
  static Result judge(const Claim& claim);

  std::string program_;
  std::vector<Entry> entries_;
  std::deque<Claim> claims_;
  std::vector<std::pair<std::string, bool>> expectations_;
};

/// The largest |x|, and the largest |a - b|.
template <std::floating_point T>
double largest(const tapehead::Tensor<T>& x) {
  return static_cast<double>(max(abs(x)).item());
}
template <std::floating_point T>
double apart(const tapehead::Tensor<T>& a, const tapehead::Tensor<T>& b) {
  return largest(a - b);
}

/// All entries of a table of tests/golden/, in the chapter's order.
std::vector<Entry> read_entries(const std::string& table = "chapter.tsv");
/// The results that a program stored; none if it has not run to its end since it was built.
std::optional<std::vector<Result>> read_results(const std::string& program);
/// Prints the verdict and the entry, what the book says, what we compute, and what is wrong, if anything.
void print(const Entry& entry, const Result& result);
void print_not_covered(const Entry& entry, const std::string& why);
/// `text` in a colour ("1;32") if the output is a terminal.
std::string coloured(const std::string& text, const char* code);

}  // namespace chapter
