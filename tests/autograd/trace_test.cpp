#include "tapehead/autograd/trace.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>

#include "tapehead/tapehead.hpp"
#include "testing.hpp"

using namespace tapehead;
using testing::has;
using testing::message;

namespace {

// Attention on the tape, with one name for each of the chapter's letters.
struct Example {
  NumpyRandom rng{1};
  Tensor<double> x = rng.randn({6, 8}), Wq = rng.randn({8, 4}), Wk = rng.randn({8, 4}), Wv = rng.randn({8, 4}),
                 dO = rng.randn({6, 4});
  Tape<double> tape;
  Tensor<double> Q, K, V, A, O;

  Example() {
    tape.watch({{"x", x}, {"Wq", Wq}, {"Wk", Wk}, {"Wv", Wv}});
    Q = matmul(x, Wq), K = matmul(x, Wk), V = matmul(x, Wv);
    A = softmax(matmul(Q, K.T()) / 2, -1);
    O = matmul(A, V);
    tape.watch({{"Q", Q}, {"K", K}, {"V", V}, {"A", A}, {"O", O}});
  }
};

}  // namespace

TEST_CASE("trace: the tape as a table") {
  Example a;
  CHECK(a.tape.print() ==
        " #  operation   formula                                inputs  name  shape   saves\n"
        " 0  watched                                                    x     (6, 8)\n"
        " 1  watched                                                    Wq    (8, 4)\n"
        " 2  watched                                                    Wk    (8, 4)\n"
        " 3  watched                                                    Wv    (8, 4)\n"
        " 4  matmul      C = A B                                x, Wq   Q     (6, 4)  640 B\n"
        " 5  matmul      C = A B                                x, Wk   K     (6, 4)  640 B\n"
        " 6  matmul      C = A B                                x, Wv   V     (6, 4)  640 B\n"
        " 7  transpose   y = x with two axes swapped            K             (4, 6)\n"
        " 8  matmul      C = A B                                Q, #7         (6, 6)  384 B\n"
        " 9  div_number  y = x / s                              #8            (6, 6)\n"
        "10  softmax     A = exp(S - max S) / Σ exp(S - max S)  #9      A     (6, 6)  288 B\n"
        "11  matmul      C = A B                                A, V    O     (6, 4)  480 B\n"
        "12 records; 2016 B kept alive in 8 tensors\n"sv);
}

TEST_CASE("trace: with the norms of one backward pass") {
  Example a;
  const auto grad = a.tape.backward(a.O, a.dO);
  const std::string text = a.tape.print(grad);
  CHECK(has(text, "saves  |gradient|\n"));
  const auto line = [&](const std::string& start) {
    const std::size_t at = text.find("\n" + start);
    REQUIRE(at != std::string::npos);
    return text.substr(at + 1, text.find('\n', at + 1) - at - 1);
  };
  const auto ends = [](const std::string& s, double value) {
    char end[32];
    std::snprintf(end, sizeof end, " %.4g", value);
    return s.size() > std::string(end).size() && s.substr(s.size() - std::string(end).size()) == end;
  };
  CHECK(ends(line(" 0  watched"), norm(grad[a.x]).item()));
  CHECK(ends(line(" 4  matmul"), norm(grad[a.Q]).item()));
  CHECK(ends(line("10  softmax"), norm(grad[a.A]).item()));
  CHECK(ends(line("11  matmul"), norm(a.dO).item()));
  Tensor<double> unused{1, 2};
  a.tape.watch({{"unused", unused}});
  CHECK(has(a.tape.print(a.tape.backward(sum(a.Q))), "unused  (2,)"));
  CHECK(has(a.tape.print(a.tape.backward(sum(a.Q))), "-\n"));
}

TEST_CASE("trace: what a pullback keeps alive is what it captured, masks and indices too") {
  const auto saves = [](auto f) {
    Tensor<double> x{{1, 2, 3}, {4, 5, 6}};
    Tape<double> tape;
    tape.watch(x);
    f(x);
    const std::string text = tape.print(), last = text.substr(text.rfind("records; ") + 9);
    return last.substr(0, last.find(" kept"));
  };
  CHECK(saves([](auto x) { return x + x; }) == "0 B"sv);
  CHECK(saves([](auto x) { return x * x; }) == "48 B"sv);
  CHECK(saves([](auto x) { return exp(x); }) == "48 B"sv);
  CHECK(saves([](auto x) { return masked_fill(x, Tensor<bool>{true, false, true}, 0); }) == "3 B"sv);
  CHECK(saves([](auto x) { return gather(x, 1, Tensor<std::int64_t>{{0, 1}, {2, 2}}); }) == "32 B"sv);
  CHECK(saves([](auto x) { return matmul(x, zeros<double>({3, 1000})); }) == "23.4 KiB"sv);
}

TEST_CASE("trace: attention keeps its weights alive, the fused kernel does not") {
  const std::int64_t n = 128, d = 4;
  const auto x = zeros<float>({n, d});
  const auto saves = [&](auto f) {
    Tape<float> tape;
    const auto Q = x + 1, K = x + 2, V = x + 3;
    tape.watch({Q, K, V});
    f(Q, K, V);
    const std::string text = tape.print(), last = text.substr(text.rfind("records; ") + 9);
    return last.substr(0, last.find(" kept"));
  };
  CHECK(saves([](auto Q, auto K, auto V) { return attention(Q, K, V).out; }) ==
        "70.0 KiB"sv);  // Q, K, V and the weights
  CHECK(saves([](auto Q, auto K, auto V) { return flash_attention(Q, K, V).out; }) == "9216 B"sv);  // Q, K, V, O and L
}

TEST_CASE("trace: a long tape shows its beginning and its end") {
  Tensor<double> x{1};
  Tape<double> tape;
  tape.watch(x);
  auto y = x;
  for (int i = 0; i < 1000; ++i) y = -y;
  const std::string text = tape.print();
  CHECK(std::count(text.begin(), text.end(), '\n') == 203);
  CHECK(has(text, "\n  99  neg        y = -x   #98"));
  CHECK(has(text, "\n… 801 more records …\n"));
  CHECK(has(text, "\n 901  neg        y = -x   #900"));
  CHECK(has(text, "\n1001 records; 0 B kept alive in 0 tensors\n"));
  CHECK(Tape<float>().print() ==
        "#  operation  formula  inputs  name  shape  saves\n0 records; 0 B kept alive in 0 tensors\n"sv);
}

TEST_CASE("explain: the value path and the query and key paths through attention") {
  Example a;
  const auto grad = a.tape.backward(a.O, a.dO);
  const auto why = explain(grad, a.x);
  REQUIRE(why.routes.size() == 3);
  Tensor<double> whole = zeros_like(a.x);
  double shares = 0;
  for (const auto& route : why.routes) {
    whole = whole + route.gradient, shares += route.share;
    CHECK(route.norm == doctest::Approx(norm(route.gradient).item()));
    const Tensor<double>& to = route.path == "V" ? a.V : route.path == "Q → A" ? a.Q : a.K;
    const Tensor<double>& W = route.path == "V" ? a.Wv : route.path == "Q → A" ? a.Wq : a.Wk;
    CHECK_MESSAGE(allclose(route.gradient, matmul(grad[to], W.T()), 1e-12, 1e-12), route.path);
  }
  CHECK(allclose(whole, grad[a.x], 1e-12, 1e-12));
  CHECK(allclose(why.gradient, grad[a.x], 1e-12, 1e-12));
  CHECK(shares == doctest::Approx(1));
  CHECK(why.norm == doctest::Approx(norm(grad[a.x]).item()));
  CHECK(std::is_sorted(why.routes.begin(), why.routes.end(),
                       [](const auto& p, const auto& q) { return p.norm > q.norm; }));
  std::vector<std::string> paths;
  for (const auto& route : why.routes) paths.push_back(route.path);
  std::sort(paths.begin(), paths.end());
  CHECK(paths == std::vector<std::string>{"K → A", "Q → A", "V"});
  const std::string text = why.text();
  CHECK(text.find("gradient of x, shape (6, 8): norm ") == 0);
  CHECK(has(text, ", by 3 routes\n norm   share  route\n"));
  CHECK(explain(grad, a.x, Routes::by_use).routes[0].path == why.routes[0].path.substr(0, 1));
}

TEST_CASE("explain: unnamed ways, a value used twice, the output itself, what does not matter") {
  Tensor<double> x{1, 2}, other{3};
  Tape<double> tape;
  tape.watch({{"x", x}, {"other", other}});
  const auto y = x * x, z = exp(x);
  const auto out = sum(y + z);
  const auto grad = tape.backward(out);
  const auto why = explain(grad, x);
  CHECK(why.text() ==
        "gradient of x, shape (2,): norm 12.33, by 3 routes\n"
        " norm   share  route\n"
        "7.873  63.8 %  exp #3\n"
        "2.236  18.1 %  mul #2 (use 1)\n"
        "2.236  18.1 %  mul #2 (use 2)\n"sv);
  CHECK(why.routes[0].records == std::vector<int>{3});
  CHECK(explain(grad, y).text() ==
        "gradient of #2, shape (2,): norm 1.414, by 1 route\n norm    share  route\n1.414  100.0 %  add #4\n"sv);
  CHECK(explain(grad, out).text() == "gradient of #5, shape (): norm 1, where backward began\n"sv);
  CHECK(explain(grad, other).text() ==
        "gradient of other, shape (1,): norm 0, by no route: the output does not depend on it\n"sv);
  CHECK(explain(tape.backward(sum(y)), z).text() ==
        "gradient of #3, shape (2,): norm 0, by no route: the output does not depend on it\n"sv);
}

TEST_CASE("explain and print record nothing, on outer tapes either") {
  Tensor<double> x{1, 2};
  Tape<double> outer;
  outer.watch(x);
  Tape<double> inner;
  inner.watch(x);
  const auto y = sum(exp(x));
  const auto grad = inner.backward(y);
  const std::int64_t before = outer.size();
  inner.print(grad), explain(grad, x), inner.dot();
  CHECK(outer.size() == before);
  exp(x);
  CHECK(outer.size() == before + 1);
}

TEST_CASE("explain: what it refuses") {
  Tensor<double> x{1, 2}, stranger{1};
  std::optional<Gradients<double>> grad;
  {
    Tape<double> tape;
    tape.watch(x);
    auto y = x;
    for (int i = 0; i < 9; ++i) {  // two ways to go at each of nine stages, told apart by a name on one of them
      const auto named = tanh(y);
      tape.watch(named);
      y = named + y;
    }
    grad = tape.backward(sum(y));
    CHECK(explain(*grad, x, Routes::by_use).routes.size() == 2);
    CHECK(message<ValueError>([&] { explain(*grad, x); }) ==
          "explain: more than 256 routes; watch fewer of the results on the way, or ask for Routes::by_use"sv);
    CHECK(message<GradientError>([&] {
            explain(*grad, stranger);
          }).find("explain: the tape does not know this tensor of shape (1,)") == 0);
    Tape<double> another;
    another.watch(x);
    CHECK(message<GradientError>([&] { another.print(*grad); }) ==
          "print: these gradients belong to another tape; print the tape whose backward() made them"sv);
  }
  CHECK(message<GradientError>([&] { explain(*grad, x); }) ==
        "gradients: the tape they came by is gone (or on another thread); look at them while it lives"sv);
}
