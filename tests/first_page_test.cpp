// A first page, to be read from top to bottom: what the library does, in small steps.
#include <cmath>

#include "tapehead/tapehead.hpp"
#include "testing.hpp"

using namespace tapehead;

TEST_CASE("first page: a tensor is numbers in a shape") {
  Tensor<double> x{{1, 2, 3}, {4, 5, 6}};
  CHECK(x.shape() == Shape{2, 3});
  CHECK(x.at({1, 0}) == 4);
  CHECK(x.T().shape() == Shape{3, 2});
  CHECK(x.reshape({-1}).to_vector() == std::vector<double>{1, 2, 3, 4, 5, 6});
}

TEST_CASE("first page: operations make new tensors and broadcast") {
  Tensor<double> x{{1, 2, 3}, {4, 5, 6}}, row{10, 20, 30};
  CHECK((x + row).to_vector() == std::vector<double>{11, 22, 33, 14, 25, 36});
  CHECK((x * 2).to_vector() == std::vector<double>{2, 4, 6, 8, 10, 12});
  CHECK(sum(x, 0).to_vector() == std::vector<double>{5, 7, 9});
  CHECK(matmul(x, x.T()).to_vector() == std::vector<double>{14, 32, 32, 77});
}

TEST_CASE("first page: softmax turns scores into weights that sum to 1") {
  auto weights = softmax(Tensor<double>{2, 1, 0}, -1);
  CHECK(weights.at({0}) == doctest::Approx(std::exp(2) / (std::exp(2) + std::exp(1) + 1)).epsilon(1e-15));
  CHECK(sum(weights).item() == doctest::Approx(1).epsilon(1e-15));
}

TEST_CASE("first page: a tape records what happens to the tensors it watches") {
  Tensor<double> x{1, 2, 3};
  Tape<double> tape;
  tape.watch(x);
  auto y = sum(x * x);      // two records: mul and sum
  CHECK(tape.size() == 3);  // and x itself
  auto grad = tape.backward(y);
  CHECK(grad[x].to_vector() == std::vector<double>{2, 4, 6});  // d Σx² = 2x
}

TEST_CASE("first page: gradients of gradients come from one tape in another") {
  Tensor<double> x{1, 2, 3};
  Tape<double> outer;
  outer.watch(x);
  Tape<double> inner;
  inner.watch(x);
  auto gradient = inner.backward(sum(x * x * x))[x];  // 3x², recorded by the outer tape
  CHECK(outer.backward(sum(gradient))[x].to_vector() == std::vector<double>{6, 12, 18});
}

TEST_CASE("first page: attention is a soft retrieval") {
  Tensor<double> Q{{0.1, 3.0, 0.1, 0.0}};                      // one query, close to key 1
  Tensor<double> K{{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}};  // three keys
  Tensor<double> V{{10, 10}, {20, 20}, {30, 30}};              // and their values
  auto [out, weights] = attention(Q, K, V);
  CHECK(weights.at({0, 1}) == doctest::Approx(0.6806700571806339).epsilon(1e-14));
  CHECK(out.at({0, 0}) == doctest::Approx(20).epsilon(1e-15));
}

TEST_CASE("first page: the gradient by hand is the gradient by tape") {
  Tensor<double> Q{{0.5, -1.0}, {2.0, 0.3}}, K{{1.0, 0.2}, {-0.4, 0.9}, {0.1, 0.1}}, V{{1, 2}, {3, 4}, {5, 7}};
  Tensor<double> dO{{1, -1}, {0.5, 2}};
  Tape<double> tape;
  tape.watch({{"Q", Q}, {"K", K}, {"V", V}});
  auto grad = tape.backward(attention(Q, K, V).out, dO);
  auto hand = attention_backward(detach(Q), detach(K), detach(V), dO);
  CHECK(allclose(grad[Q], hand.dQ, 0, 1e-14));
  CHECK(allclose(grad[K], hand.dK, 0, 1e-14));
  CHECK(allclose(grad[V], hand.dV, 0, 1e-14));
}

TEST_CASE("first page: a mistake is told, with what would be right") {
  Tensor<double> a = zeros<double>({2, 3}), b = zeros<double>({4, 3});
  CHECK(testing::message<ShapeError>([&] { matmul(a, b); }) ==
        "matmul: (2, 3) @ (4, 3): inner sizes 3 and 4 differ; did you mean matmul(a, b.T())?"sv);
}
