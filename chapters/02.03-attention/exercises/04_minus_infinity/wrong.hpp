// Exercise 04: wrong answers, and what the check says about each.
#include "checker.hpp"

namespace exercise {

// Many rows are right: what is compared are properties of the row.
inline Parts properties(const T& x) {
  bool row = x.rank() == 1 && x.numel() >= 2, nan = false;
  for (const double v : x.to_vector()) row = row && (std::isfinite(v) || v == -inf);
  if (row) nan = std::isnan(softmax(x, 0).at({0}));
  return {{"two or more scores, each finite or -inf", {}, row ? "true" : "false"},
          {"their softmax is NaN", {}, nan ? "true" : "false"}};
}

inline void wrong_row(Question<Parts()>& q) {
  const auto row = [](const T& x) { return [x] { return properties(x); }; };
  q.mistake(
      "this row has something else than finite numbers and -inf, or fewer than two scores: a mask leaves no "
      "NaN and "
      "no +inf",
      row({std::nan(""), 1}));
  q.mistake("softmax of this row is well defined: if one score is finite, the -inf ones get weight 0",
            row({1, -inf}));
}

// Softmax over the allowed keys, with a number of one's own in place of those that are forbidden.
inline T filled(const T& S, const Mask& allowed, double fill, EmptyRows empty = EmptyRows::nan) {
  return softmax(where(allowed, S, scalar(fill)), -1, empty);
}
inline T divided(const T& e) {
  const T total = sum(e, -1, true);
  return e / masked_fill(total, eq(total, scalar(0.0)), 1);
}

inline void wrong_weights(Question<T(T, Mask)>& q) {
  q.mistake("forbidden scores are filled with 0, but e^0 = 1 is a weight like any other; use -inf",
            [](T S, Mask allowed) { return filled(S, allowed, 0); });
  q.mistake("a row without an allowed key is NaN, because it computes -inf - (-inf)",
            [](T S, Mask allowed) { return filled(S, allowed, -inf); });
  for (const double fill : {-1e9, -1e4, -100.0})
    q.mistake(
        "forbidden scores are filled with a large negative number: a row without an allowed key then attends "
        "to "
        "forbidden ones; use -inf",
        [fill](T S, Mask allowed) { return filled(S, allowed, fill); });
  const char* even =
      "a row without an allowed key gets even weights, as it does with a large negative number in place of "
      "-inf; it should be all 0";
  for (const double fill : {-1e30, std::numeric_limits<double>::lowest()})
    q.mistake(even, [fill](T S, Mask allowed) { return filled(S, allowed, fill); });
  for (const double fill : {-1e9, -1e4})
    q.mistake(
        "forbidden scores are filled with a large negative number, but a score can be lower still; use -inf",
        [fill](T S, Mask allowed) { return filled(S, allowed, fill) * max(to<double>(allowed), -1, true); });
  q.mistake("the mask came after softmax: the remaining weights of a row no longer sum to one",
            [](T S, Mask allowed) { return softmax(S, -1) * to<double>(allowed); });
  const char* forbidden_too =
      "forbidden scores take part in the largest score or in the softmax: if one is far larger than the "
      "allowed ones, all allowed weights underflow to 0; mask first";
  q.mistake(forbidden_too, [](T S, Mask allowed) { return divided(softmax(S, -1) * to<double>(allowed)); });
  q.mistake(forbidden_too, [](T S, Mask allowed) {
    return divided(exp(where(allowed, S - max(S, -1, true), scalar(-inf))));
  });
  q.mistake("one largest score is taken for the whole matrix: each row needs its own", [](T S, Mask allowed) {
    const T masked = where(allowed, S, scalar(-inf));
    return divided(exp(masked - max(masked)));
  });
  q.mistake("true and false are exchanged: true = may attend",
            [](T S, Mask allowed) { return filled(S, ~allowed, -inf, EmptyRows::zero); });
  q.mistake("wrong axis: each row sums to one, over its keys",
            [](T S, Mask allowed) { return softmax(where(allowed, S, scalar(-inf)), 0, EmptyRows::zero); });
  q.mistake("the largest score is not subtracted: exp overflows or underflows",
            [](T S, Mask allowed) { return divided(exp(where(allowed, S, scalar(-inf)))); });
  q.mistake("the exponentials are not divided by their sum", [](T S, Mask allowed) {
    const T masked = where(allowed, S, scalar(-inf)), top = max(masked, -1, true);
    return exp(masked - masked_fill(top, eq(top, scalar(-inf)), 0));
  });
  q.mistake("the mask is not used", [](T S, Mask) { return softmax(S, -1); });
  q.mistake(even, [](T S, Mask allowed) {
    return where(max(to<double>(allowed), -1, true) > 0, filled(S, allowed, -inf),
                 scalar(1.0 / static_cast<double>(S.size(1))));
  });
  q.wrong("", [](T S, Mask allowed) {  // 1e-9 against the division by 0
    const T e = exp(where(allowed, S, scalar(-inf)) - 5);
    return e / (sum(e, -1, true) + 1e-9);
  });
  q.wrong("Most likely: the numbers are right to four digits: was something rounded, or computed as a float?",
          [](T S, Mask allowed) { return filled(S, allowed, -inf, EmptyRows::zero) + 1e-6; });
}

}  // namespace exercise
