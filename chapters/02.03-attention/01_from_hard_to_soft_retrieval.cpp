// From Hard Retrieval to Soft Retrieval
//
// A store compares a query with its keys, picks the key that is equal, and hands back that key's value.
// Attention takes the same three steps without a jump in any of them: likeness for equality, shares for the
// pick, a blend for the value. Here the one is turned into the other.
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
    store.at("oslo");  // nearly right does not exist here
  } catch (const std::out_of_range&) {
    raised = true;
  }
  book.claim("hard_dict")
      .holds(store.at("tokyo") == "japan" && raised, "japan; a key that is not there raises");
}

// The same store as arithmetic. Keys that are all different are axes of a space, a key a row; a query that is
// one of them has dot product 1 with it and 0 with the others.
void lookup_as_a_product(Book& book) {
  const Tensor<double> keys = eye<double>(3);                    // paris, tokyo, lima
  const Tensor<double> values{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};  // france, japan, peru
  const Tensor<double> query = keys[1];                          // tokyo

  const Tensor<double> scores = matmul(keys, query);                 // 0 1 0
  const Tensor<double> found = to<double>(eq(scores, max(scores)));  // 1 where equal
  fmt::print("\nkeys @ query  = {}    found = {}    value = {}\n", scores, found, matmul(found, values));
  book.expect("a lookup is a product with a one-hot row", equal(matmul(found, values), values[1]));

  // Soften the pick: softmax shares 1 out among the keys, the more evenly the higher the temperature.
  std::vector<Series> shares;
  for (const double temperature : {10.0, 1.0, 0.1, 0.01}) {
    const Tensor<double> weights = softmax(scores / temperature, -1);
    fmt::print("softmax(scores / {:<4}) = {}\n", temperature, round(weights, 3));
    if (temperature > 0.01)
      shares.push_back({fmt::format("temperature {}", temperature), {}, weights.to_vector()});
  }
  book.draw("soft_lookup",
            bars_svg({"paris", "tokyo", "lima"}, shares, chapter::plot_caption("soft_lookup")));
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
  fmt::print("\nweights = {}\n0.7 v3 + 0.3 v7 = {}\n", round(weights, 3), blend);

  book.claim("soft_blend_weights", {{"sum", sum(weights)}})
      .holds(allclose(blend, 0.7 * V[3] + 0.3 * V[7], 0, 1e-14), "softmax gives 0.7 and 0.3, their sum is 1");

  // And what no dict can do: say how the answer changes with the question.
  const auto grad = tape.backward(sum(blend));
  fmt::print("d sum(blend) / d scores[3], [7] = {:.2f} {:.2f}\n", grad[scores].at({3}), grad[scores].at({7}));
  book.expect("a little more likeness to key 7 moves the blend towards value 7", grad[scores].at({7}) > 0);
}

}  // namespace

int main(int, char** argv) {
  Book book(argv[0], "From Hard Retrieval to Soft Retrieval");
  hard(book);
  lookup_as_a_product(book);
  soft(book);
  return book.close();
}
