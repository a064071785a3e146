#include <cmath>
#include <memory>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "tapehead/tapehead.hpp"
#include "testing.hpp"
#include "values.hpp"

using namespace tapehead;
using testing::gradient;
using testing::has;
using testing::message;

TEST_CASE("tape: without one nothing is recorded, and what it does not know costs no record") {
  Tensor<double> x{1, 2}, constant{3, 4};
  CHECK_FALSE(is_recorded(x));
  Tape<double> tape;
  tape.watch(x);
  constant *constant, exp(constant);
  CHECK(tape.size() == 1);
  x* constant;
  CHECK(tape.size() == 2);
}

TEST_CASE("tape: what backward refuses, and what it says") {
  Tensor<double> x{1, 2}, other{5, 6};
  Tape<double> tape;
  tape.watch(x);
  auto y = x * Tensor<double>{2, 3};
  CHECK(message<GradientError>([&] { tape.backward(y); }).find("the output has shape (2,)") != std::string::npos);
  CHECK(tape.backward(y, Tensor<double>{1, 10})[x].to_vector() == std::vector<double>{2, 30});
  CHECK(message<ShapeError>([&] {
          tape.backward(y, zeros<double>({2, 1}));
        }) == "backward: the arriving gradient has shape (2, 1), the output (2,); they must be equal"sv);
  CHECK(message<GradientError>([&] { tape.backward(sum(other)); }).find("is not on this tape") != std::string::npos);
  auto grad = tape.backward(sum(y));
  CHECK(message<GradientError>([&] { grad[y]; }).find("was not watched; call tape.watch(x)") != std::string::npos);
  CHECK(message<GradientError>([&] { grad[other]; }).find("was not watched") != std::string::npos);
  CHECK(message<GradientError>([&] { tape.watch(Tensor<double>()); }).find("watch: a default tensor") == 0);
}

TEST_CASE("tape: a watched intermediate keeps its gradient; a watched tensor the output ignores gets zeros") {
  Tensor<double> x{1, 2}, unused{{1, 2, 3}};
  Tape<double> tape;
  tape.watch({{"x", x}, {"unused", unused}});
  auto h = exp(x);
  tape.watch(h);
  auto grad = tape.backward(sum(h * h));
  CHECK(grad[h].at({0}) == doctest::Approx(2 * std::exp(1.0)));
  CHECK(grad[unused].to_vector() == std::vector<double>{0, 0, 0});
  CHECK(grad[unused].shape() == unused.shape());
  CHECK(tape.name(0) == "x"sv);
}

TEST_CASE("tape: copies of a tensor are the tensor; detach is not") {
  Tensor<double> x{1, 2};
  Tape<double> tape;
  tape.watch(x);
  Tensor<double> copy = x;
  CHECK(tape.backward(sum(copy * x))[copy].to_vector() == std::vector<double>{2, 4});
  CHECK(tape.backward(sum(detach(x) * x))[x].to_vector() == std::vector<double>{1, 2});
}

TEST_CASE("tape: a view taken before its base was watched throws instead of losing the gradient") {
  Tensor<double> x{{1, 2}, {3, 4}};
  auto early = x.T();
  auto freed = detach(x)[0];
  Tape<double> tape;
  auto between = x[0];
  tape.watch({{"x", x}});
  CHECK(message<GradientError>([&] { early * 2; }).find("taken before its base x of shape (2, 2) was watched") !=
        std::string::npos);
  CHECK_THROWS_AS(between * 2, GradientError);
  CHECK_NOTHROW(freed * 2);
  CHECK_NOTHROW(detach(early) * 2);
  CHECK(tape.backward(sum(x.T() * 2))[x].to_vector() == std::vector<double>{2, 2, 2, 2});
}

TEST_CASE("tape: watching one row of a table leaves the other rows usable") {
  Tensor<double> table{{1, 2}, {3, 4}};
  auto first = table[0], second = table[1];
  Tape<double> tape;
  tape.watch(first);
  CHECK_NOTHROW(second * 2);
  CHECK_NOTHROW(table * 2);
  CHECK(tape.backward(sum(first * second))[first].to_vector() == std::vector<double>{3, 4});
}

TEST_CASE("tape: gradients are summed back to the shape that was broadcast") {
  Tensor<double> a = ones<double>({3, 4}), row = ones<double>({1, 4}), number = scalar(2.0);
  Tape<double> tape;
  tape.watch({a, row, number});
  CHECK(tape.backward(sum(a + row))[row].to_vector() == std::vector<double>{3, 3, 3, 3});
  CHECK(tape.backward(sum(a * number))[number].item() == 12);
  Tensor<double> nothing = zeros<double>({0, 3}), three = ones<double>({3});
  tape.watch({nothing, three});
  CHECK(tape.backward(sum(nothing + three))[three].to_vector() == std::vector<double>{0, 0, 0});
}

TEST_CASE("tape: three tapes deep") {
  Tensor<double> x = scalar(2.0);
  Tape<double> third;
  third.watch(x);
  Tape<double> second;
  second.watch(x);
  Tape<double> first;
  first.watch(x);
  auto g1 = first.backward(x * x * x * x)[x];
  auto g2 = second.backward(g1)[x];
  auto g3 = third.backward(g2)[x];
  CHECK(g1.item() == 32);
  CHECK(g2.item() == 48);
  CHECK(g3.item() == 48);
}

TEST_CASE("tape: tapes may end in any order, and each thread has its own") {
  Tensor<double> x = scalar(3.0);
  auto a = std::make_unique<Tape<double>>(), b = std::make_unique<Tape<double>>();
  a->watch(x), b->watch(x);
  a.reset();
  CHECK(b->backward(x * x)[x].item() == 6);
  std::thread([&] {
    CHECK_FALSE(is_recorded(x));
    Tape<double> own;
    own.watch(x);
    CHECK(own.backward(x * x * x)[x].item() == 27);
  }).join();
  CHECK(b->size() == 2);
  b.reset();
  CHECK_FALSE(is_recorded(x));
}

TEST_CASE("tape: an error inside a pullback names its record") {
  static const Op odd_op{"test: odd", "y = x", "a pullback of the wrong shape, on purpose"};
  Tensor<double> x{1, 2, 3};
  Tape<double> tape;
  tape.watch(x);
  auto y = record(odd_op, x * 1, wrt(x, [](const auto&) { return zeros<double>({2}); }));
  CHECK(message<GradientError>([&] { tape.backward(sum(y)); }) ==
        "backward: in record 2 (test: odd, shape (3,)): sum_to: shape (2,) cannot be summed to (3,), which "
        "does not broadcast to it"sv);
}

TEST_CASE("tape: a million chained operations are differentiated and freed without recursion") {
  const auto before = memory_use();
  {
    Tensor<float> x = scalar(1.0f);
    Tape<float> tape;
    tape.watch(x);
    auto y = x;
    for (int i = 0; i < 1'000'000; ++i) y = y * 1.0f;
    CHECK(tape.size() == 1'000'001);
    CHECK(tape.backward(y)[x].item() == 1);
  }
  CHECK(memory_use().blocks == before.blocks);
}

TEST_CASE("tape: no operation keeps itself alive, and ended tapes leave nothing") {
  const auto before = memory_use();
  for (int i = 0; i < 1000; ++i) {
    Tensor<double> x{0.5, 1.5};
    Tape<double> tape;
    tape.watch(x);
    exp(x), softmax(x, 0), tanh(x), sqrt(x);
  }
  CHECK(memory_use().blocks == before.blocks);
  Tensor<double> total = scalar(0.0), x = scalar(2.0);
  for (int i = 0; i < 10'000; ++i) {
    Tape<double> tape;
    tape.watch(x);
    total = total + detach(x * x);
  }
  CHECK(total.item() == 40'000);
  CHECK(memory_use().blocks == before.blocks + 4);  // total and x: a header and its elements each
}

TEST_CASE("tape: a value used twice, fifty times over") {
  const auto a = scalar(1.0);
  Tape<double> tape;
  tape.watch(a);
  auto b = a + a, c = b + b;
  CHECK(tape.backward(c)[a].item() == 4);
  for (int i = 2; i < 50; ++i) c = c + c;  // 2^50 paths, 50 records
  CHECK(tape.backward(c)[a].item() == std::exp2(50));
}

TEST_CASE("tape: a second backward starts afresh") {
  const auto x = scalar(3.0);
  Tape<double> tape;
  tape.watch(x);
  const auto y = x * x * x;
  for (int i = 0; i < 3; ++i) CHECK(tape.backward(y)[x].item() == 27);
  const auto kept = tape.backward(y);
  tape.backward(y * 100);
  CHECK(kept[x].item() == 27);
}

TEST_CASE("tape: what backward needs cannot be changed behind its back") {
  const auto x = scalar(3.0);
  Tape<double> tape;
  tape.watch(x);
  auto a = 2 * x;
  const auto b = a * a;
  a = a + 1;  // another tensor under the same name
  CHECK(tape.backward(b)[x].item() == 24);
}

TEST_CASE("tape: backward guesses nothing, and slices keep their way back") {
  const Tensor<double> x{1, 1};
  Tape<double> tape;
  tape.watch(x);
  const auto y = x * Tensor<double>{2, 3};
  CHECK(has(message<GradientError>([&] { tape.backward(y); }), "give the gradient that arrives"));
  CHECK(equal(tape.backward(y, {1, 10})[x], Tensor<double>{2, 30}));
  CHECK(has(message<ShapeError>([&] { tape.backward(y, zeros<double>({2, 1})); }), "they must be equal"));
  CHECK(has(message<GradientError>([&] { tape.backward(sum(y))[y]; }), "was not watched; call tape.watch(x)"));
  CHECK(equal(gradient([](const auto& v) { return sum(v.slice(0, 0, 3)); }, zeros<double>({5})),
              Tensor<double>{1, 1, 1, 0, 0}));
  CHECK(
      equal(gradient([](const auto& v) { return sum(v[1]); }, zeros<double>({2, 2})), Tensor<double>{{0, 0}, {1, 1}}));
  CHECK(equal(gradient([](const auto& v) { return sum(split(v, 2)[1]); }, zeros<double>({5})),
              Tensor<double>{0, 0, 1, 1, 0}));
}

TEST_CASE("tape: what keeps its own output alive is freed all the same") {
  const Tensor<double> x{{0.3, 0.7}, {0.2, 0.9}};
  using F = Tensor<double> (*)(const Tensor<double>&);
  const std::vector<F> keep_their_output{[](const auto& v) { return exp(v); },
                                         [](const auto& v) { return softmax(v, -1); },
                                         [](const auto& v) { return tanh(v); },
                                         [](const auto& v) { return sqrt(v); },
                                         [](const auto& v) { return log_softmax(v, 0); },
                                         [](const auto& v) { return norm(v); },
                                         [](const auto& v) { return max(v, 0); },
                                         [](const auto& v) { return layer_norm(v); },
                                         [](const auto& v) { return v / v; }};
  for (const auto& f : keep_their_output) {
    const auto before = memory_use();
    {
      Tape<double> tape;
      tape.watch(x);
      for (int i = 0; i < 1000; ++i) f(x);
    }
    CHECK(memory_use().blocks == before.blocks);
    for (int i = 0; i < 1000; ++i) {
      Tape<double> tape;
      tape.watch(x);
      f(x);
    }
    CHECK(memory_use().blocks == before.blocks);
  }
  const auto before = memory_use();
  double total = 0;
  Tensor<double> running = scalar(0.0);
  for (int i = 0; i < 10'000; ++i) {
    Tape<double> tape;
    tape.watch(x);
    const auto loss = sum(x * x);
    tape.backward(loss);
    total += loss.item();
    running = running + detach(loss);
  }
  CHECK(total == doctest::Approx(running.item()));
  CHECK(memory_use().blocks <= before.blocks + 2);
}

TEST_CASE("tape: a first gradient that does not depend on the input has zeros as its derivative") {
  const Tensor<double> x{1, 2};
  Tape<double> outer;
  outer.watch(x);
  Tape<double> inner;
  inner.watch(x);
  const auto g = inner.backward(sum(3 * x))[x];
  CHECK(equal(g, Tensor<double>{3, 3}));
  CHECK(equal(outer.backward(sum(g))[x], Tensor<double>{0, 0}));
  CHECK(equal(outer.backward(sum(g * x))[x], Tensor<double>{3, 3}));
  CHECK(equal(outer.backward(sum(g * g + x))[x], Tensor<double>{1, 1}));
}

TEST_CASE("tape: zeros too for a watched tensor that the output ignores, for linear functions, three tapes deep") {
  const auto x = scalar(2.0), unused = scalar(5.0);
  Tape<double> third;
  third.watch({x, unused});
  Tape<double> second;
  second.watch({x, unused});
  Tape<double> first;
  first.watch({x, unused});
  const auto grad = first.backward(x * x);
  CHECK(second.backward(grad[unused])[x].item() == 0);
  const auto g2 = second.backward(grad[x]);
  CHECK(g2[x].item() == 2);
  CHECK(third.backward(g2[x])[x].item() == 0);
  CHECK(third.backward(g2[unused])[unused].item() == 0);
}

TEST_CASE("tape: a gradient of what an outer tape does not know stays unknown to it") {
  const Tensor<double> x{1, 2}, other{3, 4};
  Tape<double> outer;
  outer.watch(other);
  Tape<double> inner;
  inner.watch(x);
  const auto g = inner.backward(sum(x * x))[x];
  CHECK_FALSE(outer.knows(g));
  CHECK(outer.size() == 1);
}

TEST_CASE("tape: one tensor in two roles, as input and as the gradient that arrives") {
  using F = Tensor<double> (*)(const Tensor<double>&);
  for (F f : {F([](const auto& v) { return exp(v); }), F([](const auto& v) { return softmax(v, -1); }),
              F([](const auto& v) { return layer_norm(v); }), F([](const auto& v) { return gelu(v); }),
              F([](const auto& v) { return v * v; }), F([](const auto& v) { return cumsum(v, -1); })}) {
    const auto both = [f](auto x) {
      Tape<double> tape;
      tape.watch(x);
      return tape.backward(f(x), x)[x];
    };
    const auto report = gradcheck(both, {Tensor<double>{{0.3, -0.7, 1.1}, {0.2, 0.9, -0.4}}}, {.order = 2});
    CHECK_MESSAGE(report, report.text());
  }
  const Tensor<double> x{2, 3};  // Σ x² · x with the second x held: 2 x · x
  Tape<double> tape;
  tape.watch(x);
  CHECK(equal(tape.backward(x * x, x)[x], 2 * x * x));
}

TEST_CASE("tape: names, for one tensor and for a vector") {
  const auto w = scalar(2.0);
  const std::vector<Tensor<double>> b{scalar(1.0), scalar(3.0)};
  Tape<double> tape;
  tape.watch(w, "w");
  tape.watch(b, "b");
  CHECK(tape.name(0) == "w"sv);
  CHECK(tape.name(1) == "b[0]"sv);
  CHECK(tape.name(2) == "b[1]"sv);
  tape.watch(w);
  CHECK(tape.size() == 3);
  const auto y = w * w;
  tape.watch(y);
  tape.watch(y, "y");  // a name that comes later
  CHECK(tape.name(3) == "y"sv);
}

TEST_CASE("tape: two names for one tensor are refused, and nothing is watched") {
  const std::vector<Tensor<double>> b(2, zeros<double>({1}));
  const auto x = zeros<double>({2});
  Tape<double> tape;
  CHECK(message<GradientError>([&] { tape.watch(b, "b"); }) ==
        "watch: b[0] and b[1] are one tensor; give each its own with clone()"sv);
  CHECK(message<GradientError>([&] { tape.watch(b); }) ==
        "watch: list[0] and list[1] are one tensor; give each its own with clone()"sv);
  CHECK(message<GradientError>([&] {
          tape.watch({{"Q", x}, {"K", x}});
        }) == "watch: Q and K are one tensor; give each its own with clone()"sv);
  CHECK_THROWS_AS(tape.watch({x, b[0], x}), GradientError);
  CHECK(tape.size() == 0);
  tape.watch(x, "Q");
  CHECK(message<GradientError>([&] { tape.watch(x, "K"); }) ==
        "watch: Q and K are one tensor; give each its own with clone()"sv);
  const std::vector<Tensor<double>> own{clone(b[0]), clone(b[1])};
  tape.watch(own, "b");
  const auto grad = tape.backward(2 * own[0] + 3 * own[1]);
  CHECK(grad[own[0]].item() == 2);
  CHECK(grad[own[1]].item() == 3);
}

TEST_CASE("tape: a tied parameter is watched once, under its first name") {
  const auto shared = scalar(2.0);
  Tape<double> tape;
  tape.watch(std::vector<Named<double>>{{"emb", shared}, {"head", shared}});
  CHECK(tape.size() == 1);
  CHECK(tape.name(0) == "emb"sv);
  CHECK(tape.backward(shared * shared)[shared].item() == 4);
}

TEST_CASE("tape: an output that is not on it: the cause, and the call to write instead") {
  const auto x = scalar(2.0);
  Tape<double> tape;
  const auto early = x * x;
  CHECK(has(message<GradientError>([&] { tape.backward(early); }), "it watches nothing; call tape.watch(x)"));
  tape.watch(x);
  CHECK(has(message<GradientError>([&] { tape.backward(early); }),
            "it was computed before watch(); call tape.watch(x) first, then compute"));
  CHECK(has(message<GradientError>([&] { tape.backward(detach(x) * 2); }), "detach() and other threads"));
  const auto g = tape.backward(x * x * x)[x];
  const std::string second = message<GradientError>([&] { tape.backward(g); });
  CHECK(has(second, "for a second derivative let an outer tape watch x too"));
  const auto stepped = detach(x) - 0.1 * g;  // what an optimiser's step leaves in x's place
  CHECK(has(message<GradientError>([&] { tape.backward(stepped * stepped); }), "begin a new tape for each step"));
}

TEST_CASE("tape: the error for a stale view of an unnamed tensor reads well") {
  const Tensor<double> x{{1, 2}, {3, 4}};
  const auto early = x.T();
  Tape<double> tape;
  tape.watch(x);
  CHECK(message<GradientError>([&] { early * 2; }) ==
        "tape: a view of shape (2, 2) was taken before its base of shape (2, 2) was watched, so its gradient "
        "would be "
        "lost; take the view after watch() (or detach() it to say that none is wanted)"sv);
}

// Seen by AddressSanitizer where an accessor of a temporary returns a reference.
TEST_CASE("tape: a gradient taken from temporary gradients outlives them") {
  const Tensor<double> w{1, 2};
  Tape<double> tape;
  tape.watch(w);
  const auto y = sum(w * w);
  const auto& g = tape.backward(y)[w];
  const auto& dy = tape.backward(y).dy();
  const auto noise = Tensor<double>{7, 7} * 2;
  CHECK(equal(g, Tensor<double>{2, 4}));
  CHECK(dy.item() == 1);
  const auto grad = tape.backward(y);
  static_assert(std::is_reference_v<decltype(grad[w])>);
  static_assert(!std::is_reference_v<decltype(tape.backward(y)[w])>);
}

TEST_CASE("tape: memory_use() counts what a tape holds") {
  const auto before = memory_use();
  const auto x = scalar(1.0f);
  Tape<float> tape;
  tape.watch(x);
  auto y = x;
  for (int i = 0; i < 100'000; ++i) y = y * 1.0f;
  CHECK(memory_use().bytes - before.bytes > 100'000 * static_cast<std::int64_t>(sizeof(detail::Node<float>)));
}

TEST_CASE("tape: several threads, each with tapes of its own, nested") {
  const Tensor<double> x{0.5, 1.5};
  std::vector<std::thread> threads;
  std::vector<Tensor<double>> second(4);
  for (std::size_t i = 0; i < second.size(); ++i)
    threads.emplace_back([&, i] {
      for (int round = 0; round < 50; ++round) {
        Tape<double> outer;
        outer.watch(x);
        Tape<double> inner;
        inner.watch(x);
        const auto g = inner.backward(sum(x * x * x))[x];
        second[i] = outer.backward(sum(g))[x];
      }
    });
  for (auto& thread : threads) thread.join();
  for (const auto& each : second) CHECK(allclose(each, 6 * x));
}

TEST_CASE("tape: a record that is not there is refused") {
  Tape<double> tape;
  const Tensor<double> x{1, 2};
  tape.watch(x);
  for (int i : {-1, 1}) {
    const auto text = "tape: record " + std::to_string(i) + "; there are 1, from number 0";
    CHECK(message<IndexError>([&] { tape.node(i); }) == text);
    CHECK(message<IndexError>([&] { tape.name(i); }) == text);
    CHECK(message<IndexError>([&] { tape.replay(i, x, [](int, const Tensor<double>&) {}); }) == text);
  }
}
