// Exercise 07: wrong answers, and what the check says about each.
#include "checker.hpp"

namespace exercise {

inline void wrong_answers(Question<T(T, T)>& q) {
  q.mistake("forgot the D term: y ⊙ dy would be right if each weight depended on its own score only",
            [](T y, T dy) { return y * dy; });
  q.mistake("the sum inside D is of dy alone; it has to be weighted, of y ⊙ dy",
            [](T y, T dy) { return y * (dy - sum(dy, -1, true)); });
  q.mistake("D is the plain mean of dy; it has to be weighted, the sum of y ⊙ dy",
            [](T y, T dy) { return y * (dy - mean(dy, -1, true)); });
  q.mistake("D is the mean of y ⊙ dy, but it is the sum: y are weights already",
            [](T y, T dy) { return y * (dy - mean(y * dy, -1, true)); });
  q.mistake("the factor y in front is missing", [](T y, T dy) { return dy - sum(y * dy, -1, true); });
  q.mistake("D is subtracted outside the product: this is y ⊙ dy - D",
            [](T y, T dy) { return y * dy - sum(y * dy, -1, true); });
  q.mistake("wrong sign before D", [](T y, T dy) { return y * (dy + sum(y * dy, -1, true)); });
  q.mistake("there is one D for the whole matrix; each row has its own",
            [](T y, T dy) { return y * (dy - sum(y * dy)); });
  q.mistake("wrong axis: D sums along a row, the axis of the softmax",
            [](T y, T dy) { return y * (dy - sum(y * dy, 0, true)); });
  q.mistake("D without `true` loses its axis, and then lines up with the columns",
            [](T y, T dy) { return y * (dy - sum(y * dy, -1)); });
  q.mistake("only the diagonal of the Jacobian is used: y (1 - y) dy is the gradient of a sigmoid",
            [](T y, T dy) { return y * (1 - y) * dy; });
  q.mistake("y is used squared: D has the factor y already",
            [](T y, T dy) { return y * (dy - y * sum(dy, -1, true)); });
  q.mistake("softmax is applied to y again, but y are weights already", [](T y, T dy) {
    const T z = softmax(y, -1);
    return z * (dy - sum(z * dy, -1, true));
  });
  q.mistake("this is dy unchanged", [](T, T dy) { return dy; });
  q.wrong("Most likely: the sign is wrong: every number is the negative of the right one",
          [](T y, T dy) { return y * (sum(y * dy, -1, true) - dy); });
  q.wrong("Most likely: every number is 0", [](T y, T) { return zeros<double>(y.shape()); });
  // The Jacobian of every row, which the last input makes too large.
  q.mistake("out of memory: do not build the Jacobian, an n by n matrix for every row", [](T y, T dy) {
    if (y.size(1) > 1000) throw std::bad_alloc();
    return y * (dy - sum(y * dy, -1, true));
  });
}

}  // namespace exercise
