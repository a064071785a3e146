// From Hard Retrieval to Soft Retrieval
//
// A store compares a query with its keys, picks the key that is equal, and returns that key's value. Attention
// takes the same three steps, but each is smooth: a similarity instead of equality, weights instead of a pick,
// and a blend of values instead of one value. This program turns the first into the second.
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "claims.hpp"

using namespace tapehead;
using chapter::Book;

namespace {

void hard(Book& book) {
  const std::map<std::string, std::string> store{{"paris", "france"}, {"tokyo", "japan"}, {"lima", "peru"}};
  fmt::print("store[\"tokyo\"] -> {}\n", store.at("tokyo"));

  bool raised = false;
  try {
    store.at("oslo");  // a dictionary has no nearly right
  } catch (const std::out_of_range&) {
    raised = true;
  }
  book.claim("hard_dict").holds(store.at("tokyo") == "japan" && raised, "japan; a missing key raises");
}

// The same store as arithmetic. Keys that are all different can be the axes of a space, with one key in each
// row. A query that equals one of them has dot product 1 with it and 0 with the others.
void lookup_as_a_product(Book& book) {
  const Tensor<double> keys = eye<double>(3);                    // paris, tokyo, lima
  const Tensor<double> values{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};  // france, japan, peru
  const Tensor<double> query = keys[1];

  const Tensor<double> scores = matmul(keys, query);                 // the similarity with each key
  const Tensor<double> found = to<double>(eq(scores, max(scores)));  // 1 where equal
  fmt::print("\nquery         = {}\n", query);
  fmt::print("keys @ query  = {}    found = {}    value = {}\n", scores, found, matmul(found, values));
  book.expect("a lookup is a product with a one-hot row", equal(matmul(found, values), values[1]));

  // Soften the pick: softmax divides a weight of 1 among the keys, more evenly at a higher temperature.
  std::vector<Series> bars;
  for (const double temperature : {10.0, 1.0, 0.1, 0.01}) {
    const Tensor<double> weights = softmax(scores / temperature, -1);
    fmt::print("softmax(scores / {:<4}) = {}\n", temperature, round(weights, 3));
    if (temperature > 0.01)
      bars.push_back({fmt::format("temperature {}", temperature), {}, round(weights, 3).to_vector()});
  }
  book.draw("soft_lookup", bars_svg({"paris", "tokyo", "lima"}, bars, chapter::plot_caption("soft_lookup")));
  book.expect("at temperature 0.01 the soft lookup is the hard one",
              allclose(softmax(scores / 0.01, -1), found, 0, 1e-14));
}

// A query that is 70 % like key 3 and 30 % like key 7 gets that blend of their values.
void soft(Book& book) {
  const Tensor<double> V{{0, 1}, {1, 0}, {2, 2}, {3, -1}, {4, 0}, {5, 5}, {6, 1}, {7, 3}};  // value j a row
  const double never = -std::numeric_limits<double>::infinity();
  const Tensor<double> scores{never, never, never, std::log(0.7), never, never, never, std::log(0.3)};

  Tape<double> tape;
  tape.watch({{"scores", scores}, {"V", V}});
  const Tensor<double> weights = softmax(scores, -1);
  const Tensor<double> blend = matmul(weights, V);
  fmt::print("\nweights = {}\n{:.1f} v3 + {:.1f} v7 = {}\n", round(weights, 3), weights.at({3}),
             weights.at({7}), blend);

  book.claim("soft_blend_weights", {{"sum", sum(weights)}})
      .holds(allclose(blend, 0.7 * V[3] + 0.3 * V[7], 0, 1e-14), "softmax gives 0.7 and 0.3, their sum is 1");

  // And what no dictionary can do: say how the answer changes if a score changes.
  const auto grad = tape.backward(sum(blend));
  fmt::print("d sum(blend) / d scores[3], [7] = {:.2f} {:.2f}\n", grad[scores].at({3}), grad[scores].at({7}));
  book.expect("a larger score for key 7 moves the blend towards value 7", grad[scores].at({7}) > 0);
}

}  // namespace

int main(int, char** argv) {
  Book book(argv[0], "From Hard Retrieval to Soft Retrieval");
  hard(book);
  lookup_as_a_product(book);
  soft(book);
  return book.close();
}
