#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "tapehead/tapehead.hpp"
#include "testing.hpp"

using namespace tapehead;
using testing::message;

namespace {
const double NaN = std::numeric_limits<double>::quiet_NaN();
Tensor<double> counting(const Shape& shape) {
  return arange<double>(static_cast<double>(shape.numel())).reshape(shape);
}
}  // namespace

TEST_CASE("tensor: braces are values at every depth, and one element is not a number") {
  CHECK(Tensor<double>{{1}, {2}}.shape() == Shape{2, 1});
  CHECK(Tensor<double>{{1, 2}}.shape() == Shape{1, 2});
  CHECK(Tensor<float>{{{1, 2}, {3, 4}}, {{5, 6}, {7, 8}}, {{9, 10}, {11, 12}}}.shape() == Shape{3, 2, 2});
  CHECK(Tensor<bool>{{true, false}}.at({0, 1}) == false);
  CHECK(Tensor<std::int64_t>{7}.shape() == Shape{1});
  CHECK(Tensor<double>{1, 2.5f, 3L}.at({1}) == 2.5);
  CHECK(message<ShapeError>([] {
          Tensor<double>{{1, 2}, {3}};
        }) == "tensor: ragged braces: a list of 1 where its neighbours have 2 (depth 1)"sv);
  CHECK(message<ShapeError>([] {
          Tensor<double>{{1, 2}, 3};
        }).find("a number stands among lists") != std::string::npos);
  CHECK(message<ShapeError>([] { Tensor<double>{{{{{{{1}}}}}}}; }).find("deeper than 6") != std::string::npos);
}

TEST_CASE("tensor: default and moved-from tensors have shape (0,) and every access is checked") {
  Tensor<double> x, y{1, 2};
  CHECK(x.shape() == Shape{0});
  CHECK(x.to_vector().empty());
  Tensor<double> z = std::move(y);
  CHECK(y.shape() == Shape{0});  // NOLINT: the moved-from state is what is tested
  CHECK(sum(y).item() == 0);
  CHECK((x + 1).shape() == Shape{0});
  CHECK(x.reshape({0, 3}).shape() == Shape{0, 3});
  CHECK(message<IndexError>([&] { y.at({0}); }) == "at: index 0 on axis 0 of shape (0,); it must be in 0 to -1"sv);
  CHECK(message<ShapeError>([&] { x.item(); }).find("item: shape (0,) has 0 elements") == 0);
}

TEST_CASE("tensor: zero-dimensional and empty tensors are ordinary") {
  CHECK(scalar(2.5).shape() == Shape{});
  CHECK(scalar(2.5).item() == 2.5);
  CHECK((scalar(2.5) * zeros<double>({0, 3})).shape() == Shape{0, 3});
  CHECK(sum(zeros<double>({0, 3}), 0).to_vector() == std::vector<double>{0, 0, 0});
  CHECK(matmul(zeros<double>({2, 0}), zeros<double>({0, 3})).to_vector() == std::vector<double>(6, 0.0));
  CHECK(softmax(zeros<double>({0, 3}), -1).shape() == Shape{0, 3});
  CHECK(softmax(zeros<double>({3, 0}), -1).shape() == Shape{3, 0});
  CHECK(arange<double>(0).numel() == 0);
  CHECK(arange<double>(5, 1, -2).to_vector() == std::vector<double>{5, 3});
  CHECK(eye<double>(2).to_vector() == std::vector<double>{1, 0, 0, 1});
}

TEST_CASE("tensor: impossible shapes throw before anything is allocated") {
  const auto huge = std::int64_t{1} << 62;
  CHECK(Shape{4740, 840, 840}.numel() == 3'344'544'000);
  CHECK(message<ShapeError>([&] { zeros<float>({huge + 2}); }).find("more memory than there can be") !=
        std::string::npos);
  CHECK(message<ShapeError>([&] {
          zeros<float>({std::int64_t{1} << 32, std::int64_t{1} << 32});
        }).find("2^63") != std::string::npos);
  CHECK(message<ShapeError>([&] { zeros<float>({-1}); }) == "zeros: (-1,) has a negative size"sv);
  CHECK(message<ShapeError>([&] { zeros<float>({1, 1, 1, 1, 1, 1, 1}); }) == "shape: 7 axes; a tensor has at most 6"sv);
  CHECK(message<Error>([&] { zeros<float>({huge / 8}); }).find("memory") == 0);
  CHECK(zeros<float>({0, huge, 4}).numel() == 0);
}

TEST_CASE("tensor: views share elements, copies share everything, and operations change nothing") {
  Tensor<double> x = counting({2, 3});
  CHECK(x.T().data() == x.data());
  CHECK(x.slice(1, 1, 3).data() == x.data() + 1);
  CHECK(Tensor<double>(x).id() == x.id());
  CHECK(x.reshape({2, 3}).id() != x.id());
  const auto before = x.to_vector();
  x + 1, exp(x), softmax(x, 0), x.T() * 2;
  CHECK(x.to_vector() == before);
}

TEST_CASE("tensor: arange of whole numbers is exact to both ends of int64") {
  using Ints = std::vector<std::int64_t>;
  const std::int64_t t = 1'700'000'000'000'000'001, beyond = (std::int64_t{1} << 53) + 1;
  const std::int64_t least = std::numeric_limits<std::int64_t>::min(), most = std::numeric_limits<std::int64_t>::max();
  CHECK(arange<std::int64_t>(t, t + 3).to_vector() == Ints{t, t + 1, t + 2});
  CHECK(arange<std::int64_t>(beyond, beyond + 1).to_vector() == Ints{beyond});
  CHECK(arange<std::int64_t>(most - 2, most).to_vector() == Ints{most - 2, most - 1});
  CHECK(arange<std::int64_t>(least + 2, least, -1).to_vector() == Ints{least + 2, least + 1});
  CHECK(arange<std::int64_t>(least, most, std::int64_t{1} << 62).to_vector() ==
        Ints{least, least + (std::int64_t{1} << 62), 0, std::int64_t{1} << 62});
  CHECK(arange<std::int64_t>(most, least, least).to_vector() == Ints{most, -1});
  CHECK(arange<std::int64_t>(0, 7, 3).to_vector() == Ints{0, 3, 6});
  CHECK(arange<std::int64_t>(0, 6, 3).to_vector() == Ints{0, 3});
  CHECK(arange<std::int64_t>(7, 0, -3).to_vector() == Ints{7, 4, 1});
  for (std::int64_t step : {1, 5, -1, -5}) CHECK(arange<std::int64_t>(4, 4, step).numel() == 0);
  CHECK(arange<std::int64_t>(4, 3).numel() == 0);
  CHECK(arange<std::int64_t>(3, 4, -1).numel() == 0);
  CHECK_THROWS_AS(arange<std::int64_t>(least, most), Error);
  CHECK_THROWS_AS(arange<std::int64_t>(0, 1, 0), ValueError);
}

TEST_CASE("tensor: arange of fractions has NumPy's count and NumPy's roundings") {
  CHECK(arange<double>(0, 1, 0.1).numel() == 10);
  CHECK(arange<double>(1, 1.3, 0.1).numel() == 4);  // np.arange(1, 1.3, 0.1) has 1.3 too
  CHECK(arange<double>(1, 1.3, 0.1).to_vector() ==
        std::vector<double>{1, 1 + (1.1 - 1), 1 + 2 * (1.1 - 1), 1 + 3 * (1.1 - 1)});
  CHECK(arange<double>(0, -1, 0.1).numel() == 0);
  CHECK(arange<float>(0, 1, 0.25f).to_vector() == std::vector<float>{0, 0.25f, 0.5f, 0.75f});
  const double inf = std::numeric_limits<double>::infinity();
  for (double bad : {inf, -inf, NaN}) {
    CHECK_THROWS_AS(arange<double>(bad, 1), ValueError);
    CHECK_THROWS_AS(arange<double>(0, 1, NaN), ValueError);
  }
  CHECK_THROWS_AS(arange<double>(0, inf), ValueError);
  CHECK_THROWS_AS(arange<double>(0, 1, 0), ValueError);
}

TEST_CASE("tensor: numbers that int64 does not hold are refused, not wrapped") {
  using Ints = Tensor<std::int64_t>;
  CHECK(message<ValueError>([] { Ints{18446744073709551615ull}; }) ==
        "tensor: 18446744073709551615 does not fit std::int64_t, which ends at 9223372036854775807"sv);
  CHECK_THROWS_AS((Ints{{1, 2}, {3, 9223372036854775808ull}}), ValueError);
  CHECK(Ints{9223372036854775807ull}.item() == 9223372036854775807);
  CHECK(Ints{4294967295u}.item() == 4294967295);
  CHECK(Tensor<double>{18446744073709551615ull}.item() == 18446744073709551616.0);
}

TEST_CASE("tensor: a loop over a tensor visits its rows") {
  std::vector<double> firsts;
  for (const auto& row : Tensor<double>{{1, 2}, {3, 4}, {5, 6}}) {
    CHECK(row.shape() == Shape{2});
    firsts.push_back(row.at({0}));
  }
  CHECK(firsts == std::vector<double>{1, 3, 5});
  for (const auto& none : zeros<double>({0, 2})) FAIL(none.shape().str());
  for (const auto& none : Tensor<double>()) FAIL(none.shape().str());
  CHECK(message<ShapeError>([] {
          for (const auto& none : scalar(2.0)) FAIL(none.shape().str());
        }) == "for: a tensor of rank 0 is one number, which item() reads"sv);
  const Tensor<double> x{{1, 2}, {3, 4}};
  Tape<double> tape;
  tape.watch(x);
  auto total = scalar(0.0);
  for (const auto& row : x) total = total + sum(row * row);
  CHECK(equal(tape.backward(total)[x], 2 * x));
}

// Seen by AddressSanitizer where an accessor of a temporary returns a reference.
TEST_CASE("tensor: what is asked of a temporary outlives it") {
  const auto made = [] { return zeros<double>({2, 3}); };
  const auto& shape = made().shape();
  const auto& strides = made().strides();
  const auto& of_buffer = Buffer<float>({4, 5}).shape();
  const auto noise = made() + made();
  CHECK(shape == Shape{2, 3});
  CHECK(strides == Strides{3, 1});
  CHECK(of_buffer == Shape{4, 5});
  std::int64_t product = 1;
  for (std::int64_t n : made().shape()) product *= n;
  CHECK(product == 6);
  static_assert(std::is_reference_v<decltype(noise.shape())>);
  static_assert(!std::is_reference_v<decltype(made().shape())>);
}

TEST_CASE("tensor: from_vector says how to leave a size open") {
  const std::vector<double> v{1, 2, 3, 4, 5, 6};
  CHECK(message<ShapeError>([&] {
          from_vector(v, {-1, 3});
        }) ==
        "from_vector: (-1, 3) leaves a size open; give every size, or write from_vector(values).reshape({…}) "
        "with the -1"sv);
  CHECK(from_vector(v).reshape({-1, 3}).shape() == Shape{2, 3});
  CHECK((equal(from_vector(v), from_vector(v, {6})) && from_vector(std::vector<float>()).shape() == Shape{0}));
  CHECK(equal(from_vector(std::vector<bool>{true, false}), Tensor<bool>{true, false}));
  CHECK(message<ShapeError>([&] {
          from_vector(v, {2, 2});
        }) == "from_vector: 6 values for shape (2, 2), which has 4"sv);
  CHECK_THROWS_AS(from_vector(v, {-2, -3}), ShapeError);
}

TEST_CASE("tensor: what memory cannot hold is an Error of the library") {
  const auto huge = broadcast_to(scalar(1.0), {std::int64_t{1} << 61});
  CHECK(message<Error>([&] { huge.to_vector(); }).find("to_vector: there is no memory for the 2305843009213693952") ==
        0);
}

TEST_CASE("tensor: the element types that there are") {
  static_assert(Element<float> && Element<double> && Element<bool> && Element<std::int64_t>);
  static_assert(!Element<int> && !Element<long double> && !Element<unsigned> && !Element<const float>);
  CHECK(dtype_name<float>() == "float"sv);
  CHECK(dtype_name<double>() == "double"sv);
  CHECK(dtype_name<bool>() == "bool"sv);
  CHECK(dtype_name<std::int64_t>() == "int64"sv);
}

TEST_CASE("tensor: a linspace whose length overflows is refused") {
  CHECK(message<ValueError>([] { linspace(-1.7e308, 1.7e308, 5); }) ==
        "linspace: from -1.7e+308 to 1.7e+308 is further than double can count"sv);
  CHECK(linspace(-3e38f, 3e38f, 3).to_vector() == std::vector<float>{-3e38f, 0, 3e38f});  // steps are counted in double
}
