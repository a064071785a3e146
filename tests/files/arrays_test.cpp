#include "tapehead/files/arrays.hpp"

#include <type_traits>
#include <vector>

#include "tapehead/ops/arithmetic.hpp"
#include "testing.hpp"

using namespace tapehead;
using testing::message;

namespace {

NamedTensors several() {
  return {{"weight", Tensor<float>{{1, 2}, {3, 4}}},
          {"bias", Tensor<double>{0.5, 1.5}},
          {"mask", Tensor<bool>{true, false}},
          {"ids", Tensor<std::int64_t>{7, 8, 9}}};
}

}  // namespace

TEST_CASE("arrays: tensors by name, in the order in which they were added") {
  NamedTensors all = several();
  all.add("late", scalar(2.5));
  std::vector<std::string> names;
  for (const auto& [name, tensor] : all) names.push_back(name);
  CHECK(names == std::vector<std::string>{"weight", "bias", "mask", "ids", "late"});
  CHECK(all.size() == 5);
  CHECK(all.contains("late"));
  CHECK_FALSE(all.contains("Late"));
  CHECK(all.shape("weight") == Shape{2, 2});
  CHECK(std::get<Tensor<double>>(all["late"]).item() == 2.5);
  CHECK(message<ValueError>([&] { all.add("bias", scalar(1.0)); }) == "add: there is a tensor 'bias' already"sv);
  CHECK(all.size() == 5);
  CHECK(message<IndexError>([] { NamedTensors().shape("x"); }) == "get: there is no tensor 'x'; there are none"sv);
  CHECK(message<IndexError>([&] {
          NamedTensors{{"x", scalar(1.0)}}["y"];
        }) == "get: there is no tensor 'y'; there is 'x'"sv);
}

TEST_CASE("arrays: get converts where the new type holds every value, and refuses where it would round") {
  const NamedTensors all = several();
  CHECK(equal(all.get<double>("weight"), {{1, 2}, {3, 4}}));
  CHECK(equal(all.get<float>("mask"), {1, 0}));
  CHECK(equal(all.get<std::int64_t>("mask"), {1, 0}));
  CHECK(equal(all.get<float>("ids"), {7, 8, 9}));
  CHECK(message<ValueError>([&] { all.get<float>("bias"); }) ==
        "get<float>: 'bias' holds double elements, which float does not hold exactly; call get<double>, then "
        "to<float>()"sv);
  CHECK_THROWS_AS(all.get<std::int64_t>("weight"), ValueError);
  CHECK_THROWS_AS(all.get<bool>("ids"), ValueError);
  CHECK_THROWS_AS(all.get<bool>("weight"), ValueError);
  CHECK(message<ValueError>([] {
          NamedTensors{{"n", scalar<std::int64_t>((1 << 24) + 1)}}.get<float>("n");
        }) ==
        "get<float>: 'n' holds 16777217, and float may round whole numbers beyond ±16777216; get<int64> is "
        "exact"sv);
}

TEST_CASE("arrays: what a temporary returns lives on its own") {
  const auto& tensor = several()["bias"];  // lives as long as the reference: it is a value
  CHECK(equal(std::get<Tensor<double>>(tensor), {0.5, 1.5}));
  std::int64_t elements = 1;
  for (const std::int64_t n : several().shape("weight")) elements *= n;
  CHECK(elements == 4);
  static_assert(!std::is_reference_v<decltype(several()["bias"])>);
  static_assert(std::is_reference_v<decltype(std::declval<const NamedTensors&>()["bias"])>);
}
