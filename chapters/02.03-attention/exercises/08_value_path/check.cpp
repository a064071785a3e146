#include "checker.hpp"

namespace exercise {

void value_path(Checker& check, T (*values)(const T&, const T&), T (*weights)(const T&, const T&)) {
  Draw draw(8);
  Question<T, T, T> q(check, "values_gradient", values, {"A", "dO"});
  q.right([](auto& A, auto& dO) { return matmul(A.T(), dO); });
  q.mistake("A is not transposed: value j gathers down column j of A",
            [](auto& A, auto& dO) { return matmul(A, dO); });
  q.mistake("the product is the wrong way round and transposed: dOᵀ A",
            [](auto& A, auto& dO) { return matmul(dO.T(), A); });
  q.mistake("divided by the number of queries: gradients add up",
            [](auto& A, auto& dO) { return matmul(A.T(), dO) / A.size(0); });
  q.mistake("divided by √d: the scale is on the path of queries and keys alone",
            [](auto& A, auto& dO) { return matmul(A.T(), dO) / std::sqrt(static_cast<double>(dO.size(1))); });
  q.mistake("the weights do not count: every value gets the sum of dO",
            [](auto& A, auto& dO) { return matmul(ones_like(A).T(), dO); });
  q.input(draw.weights({3, 3}), draw({3, 3}));
  q.input(draw.weights({2, 3}), draw({2, 4}));
  q.input(draw.weights({4, 1}), draw({4, 2}));
  q.input(draw.weights({3, 5}), draw({3, 3}));
  q.ask();

  Question<T, T, T> r(check, "weights_gradient", weights, {"dO", "V"});
  r.right([](auto& dO, auto& V) { return matmul(dO, V.T()); });
  r.mistake("V is not transposed: dA_ij is the product of row i of dO with row j of V",
            [](auto& dO, auto& V) { return matmul(dO, V); });
  r.mistake("the result is transposed: V dOᵀ", [](auto& dO, auto& V) { return matmul(V, dO.T()); });
  r.mistake("divided by √d: the scale comes later, at the scores",
            [](auto& dO, auto& V) { return matmul(dO, V.T()) / std::sqrt(static_cast<double>(dO.size(1))); });
  r.mistake("this is dS already, or a softmax: dA comes before them",
            [](auto& dO, auto& V) { return softmax(matmul(dO, V.T()), -1); });
  r.input(draw({3, 3}), draw({3, 3}));
  r.input(draw({2, 4}), draw({3, 4}));
  r.input(draw({1, 2}), draw({5, 2}));
  r.ask();
}

}  // namespace exercise
