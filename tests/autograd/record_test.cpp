// What a custom operation may do with record().
#include "tapehead/autograd/record.hpp"

#include <type_traits>

#include "tapehead/tapehead.hpp"
#include "testing.hpp"
#include "values.hpp"

using namespace tapehead;
using testing::gradient;
using testing::message;

namespace {

const Op reversal_op{"test: reversal", "y = x", "dx = -dy"};
template <class T> Tensor<T> reversal(const Tensor<T>& x) {
  return record(reversal_op, x, wrt(x, [](const auto& dy) { return -dy; }));
}

// The inputs of a sum, for record_all().
struct SumInputs {
  std::vector<Tensor<double>> inputs;
  auto operator()(std::size_t i) const {
    return wrt(inputs[i], [](const auto& dy) { return dy; });
  }
};

// Whether record() takes such an operation.
template <class O>
concept Recordable = requires(O&& op, Tensor<double> x) {
  record(std::forward<O>(op), x, wrt(x, [](const auto& dy) { return dy; }));
};
template <class O>
concept AllRecordable = requires(O&& op, Tensor<double> x, std::vector<Tensor<double>> inputs) {
  record_all(std::forward<O>(op), x, inputs, SumInputs());
};

}  // namespace

TEST_CASE_TEMPLATE("record: a result that is its own input has an identity of its own", T, float, double) {
  const Tensor<T> x{1, 2};
  CHECK(reversal(x).id() != x.id());  // without a tape too: x may be watched later
  CHECK(equal(reversal(x), x));
  {
    Tape<T> tape;
    tape.watch(x);
    const auto y = reversal(x);
    CHECK(equal(tape.backward(sum(y))[x], Tensor<T>{-1, -1}));
    CHECK(equal(tape.backward(sum(x * 2))[x], Tensor<T>{2, 2}));
    CHECK(equal(tape.backward(sum(x + y))[x], Tensor<T>{0, 0}));
    CHECK(equal(tape.backward(sum(reversal(reversal(x))))[x], Tensor<T>{1, 1}));
  }
  CHECK(equal(gradient([](const auto& v) { return sum(reversal(v * 3) * v); }, x), Tensor<T>{-3 + 3, -6 + 6}));
}

TEST_CASE("record: the same with tapes nested, and where only one of them knows the input") {
  const Tensor<double> x{1, 2};
  Tape<double> outer;
  outer.watch(x);
  Tape<double> inner;
  const auto only_outer = sum(reversal(x));  // older than the inner tape, which does not know it yet
  CHECK(inner.size() == 0);
  inner.watch(x);
  const auto both = reversal(x * x);  // x², whose derivative is -2x by decree
  const auto g = inner.backward(sum(both * both))[x];
  CHECK(equal(g, Tensor<double>{-4, -32}));                                 // -2 both 2x
  CHECK(equal(outer.backward(sum(g))[x], Tensor<double>{8 - 4, 32 - 16}));  // -2 (-2x) 2x - 2 both 2
  CHECK(equal(outer.backward(only_outer)[x], Tensor<double>{-1, -1}));
  CHECK(equal(outer.backward(sum(x * x))[x], Tensor<double>{2, 4}));
}

TEST_CASE("record: a result that a tape knows already, or that is older than the tape") {
  static const Op choose_op{"test: choose", "y = b", "da = dy"};
  const auto choose = [](const Tensor<double>& a, const Tensor<double>& b) {
    return record(choose_op, b, wrt(a, [](const auto& dy) { return dy; }));
  };
  const Tensor<double> old{5, 6}, x{1, 2};
  Tape<double> tape;
  tape.watch(x);
  const auto z = x * 10;
  const auto y = choose(x, z);  // a straight-through estimator: z's value, x's gradient
  CHECK(y.id() != z.id());
  CHECK(equal(tape.backward(sum(y))[x], Tensor<double>{1, 1}));
  CHECK(equal(tape.backward(sum(z))[x], Tensor<double>{10, 10}));
  const auto from_old = choose(x, old);
  CHECK(equal(from_old, old));
  CHECK(equal(tape.backward(sum(from_old))[x], Tensor<double>{1, 1}));
  CHECK_FALSE(tape.knows(old));
}

TEST_CASE("record_all: a result that is one of the inputs") {
  static const Op first_op{"test: first", "y = x0", "dx0 = 2 dy, dxi = 0"};
  const Tensor<double> a{1, 2}, b{3, 4};
  Tape<double> tape;
  tape.watch({a, b});
  const std::vector inputs{a, b};
  const auto y = record_all(first_op, a, inputs, [&](std::size_t i) {
    return wrt(inputs[i], [i](const auto& dy) { return dy * (i == 0 ? 2.0 : 0.0); });
  });
  CHECK(equal(tape.backward(sum(y))[a], Tensor<double>{2, 2}));
  CHECK(equal(tape.backward(sum(y))[b], Tensor<double>{0, 0}));
  CHECK(equal(tape.backward(sum(a * b))[a], b));
}

TEST_CASE("record: a temporary operation, to which the tape would refer, does not compile") {
  static_assert(Recordable<const Op&> && Recordable<Op&>);
  static_assert(!Recordable<Op> && !Recordable<const Op>);
  static_assert(AllRecordable<const Op&> && !AllRecordable<Op>);
  static_assert(!std::is_copy_constructible_v<Op>);
}

TEST_CASE("record: what a pullback saves reaches it as an argument, and lives as long as the tape") {
  static const Op scale_op{"test: scale", "y = s x", "dx = s dy"};
  const Tensor<double> x{1, 2};
  Tape<double> tape;
  tape.watch(x);
  Tensor<double> y;
  {
    const Tensor<double> s{10, 100};
    y = record(scale_op, x * 1,
               wrt(
                   x, [](const auto& dy, const auto& saved) { return dy * saved; }, s));
  }
  const auto noise = x * 7;
  CHECK(equal(tape.backward(sum(y))[x], Tensor<double>{10, 100}));
}
