#include "checker.hpp"

namespace exercise {

void minus_infinity(Checker& check, T (*breaking)(), T (*masked_weights)(const T&, const Mask&)) {
  // Many rows are right; what is asked is a property of the row.
  const auto property = [](const std::function<T()>& row) {
    return [row]() -> Parts {
      const T x = row();
      const auto values = x.to_vector();
      bool fit = x.rank() == 1 && values.size() >= 2, nan = false;
      for (const double v : values) fit = fit && (std::isfinite(v) || v == -inf);
      if (fit) nan = std::isnan(softmax(x, 0).at({0}));
      std::vector<Part> all{
          {"is a row of two or more scores, each finite or -inf", scalar(fit ? 1. : 0.), "", true},
          {"its softmax is NaN", scalar(nan ? 1. : 0.), "", true}};
      return all;
    };
  };
  Question<Parts> q(check, "a_row_that_breaks", property(breaking));
  q.right([] {
    return Parts{{"is a row of two or more scores, each finite or -inf", scalar(1.), "", true},
                 {"its softmax is NaN", scalar(1.), "", true}};
  });
  q.mistake("a row that is not only finite numbers and -inf: a mask makes no NaN and no +inf by itself",
            property([] {
              return T{std::nan(""), 1};
            }));
  q.mistake("softmax of this row is well defined: as long as one score is finite, the -inf ones get weight 0",
            property([] {
              return T{1, -inf};
            }));
  q.ask();

  Draw draw(4);
  Question<T, T, Mask> w(check, "masked_weights", masked_weights, {"scores", "allowed"});
  w.right(
      [](auto& S, auto& allowed) { return softmax(where(allowed, S, scalar(-inf)), -1, EmptyRows::zero); });
  w.mistake("forbidden scores are filled with 0: e^0 = 1 is a weight like any other; use -inf",
            [](auto& S, auto& allowed) { return softmax(where(allowed, S, scalar(0.0)), -1); });
  w.mistake("a row without an allowed key is NaN: -inf - (-inf)",
            [](auto& S, auto& allowed) { return softmax(where(allowed, S, scalar(-inf)), -1); });
  w.mistake("filled with a large negative number: a row without an allowed key gets even weights",
            [](auto& S, auto& allowed) { return softmax(where(allowed, S, scalar(-1e9)), -1); });
  w.mistake("the mask came after softmax: the rows that are left do not sum to one",
            [](auto& S, auto& allowed) { return softmax(S, -1) * to<double>(allowed); });
  w.mistake("true and false are exchanged: true = may attend", [](auto& S, auto& allowed) {
    return softmax(where(allowed, scalar(-inf), S), -1, EmptyRows::zero);
  });
  w.mistake("wrong axis: each row is to sum to one, over its keys", [](auto& S, auto& allowed) {
    return softmax(where(allowed, S, scalar(-inf)), 0, EmptyRows::zero);
  });
  w.mistake("the largest score was not subtracted: exp overflows", [](auto& S, auto& allowed) {
    const T e = exp(where(allowed, S, scalar(-inf))), total = sum(e, -1, true);
    return e / masked_fill(total, eq(total, scalar(0.0)), 1);
  });
  w.mistake("the mask is not used", [](auto& S, auto&) { return softmax(S, -1); });
  w.input(T{{2, 7, 1}, {0.5, -1, 0.25}}, Mask{{true, false, true}, {true, true, false}});
  w.input(T{{3, 1, 2}, {1, 2, 0.5}}, Mask{{false, false, false}, {true, true, true}});
  w.input(draw({3, 5}), draw.mask({3, 5}, 0.6));
  w.input(draw({4, 3}) * 800, draw.mask({4, 3}, 0.7));
  w.input(draw({2, 2}) - 3000, Mask{{true, false}, {false, false}});
  w.ask();
}

}  // namespace exercise
