// Every draw of the golden files, bit for bit.
#include <cstring>
#include <limits>
#include <memory>

#include "golden_cases.hpp"
#include "tapehead/ops/arithmetic.hpp"
#include "tapehead/random/random.hpp"
#include "testing.hpp"

using namespace tapehead;

namespace {

// The same shape, and the same bits in every element. Normals rest on the C library's double log, sin and
// cos: with another than glibc their last bit is its own.
template <class E> bool same_bits(const Tensor<E>& a, const Tensor<E>& b) {
#ifndef __GLIBC__
  if constexpr (std::is_floating_point_v<E>)
    return a.shape() == b.shape() && allclose(a, b, 4 * std::numeric_limits<E>::epsilon(), 0);
#endif
  return a.shape() == b.shape() &&
         (a.numel() == 0 || std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.numel()) * sizeof(E)) == 0);
}
bool same_bits(const AnyTensor& drawn, const AnyTensor& reference) {
  return drawn.index() == reference.index() &&
         std::visit([&](const auto& x) { return same_bits(x, std::get<std::decay_t<decltype(x)>>(reference)); }, drawn);
}

// The first draw of each kind, in the reference's shape. The kinds' fixed numbers (0 to 100, a half) are the
// reference's.
AnyTensor draw(NumpyRandom& rng, const std::string& kind, const Shape& shape) {
  if (kind == "rand") return rng.rand(shape);
  if (kind.rfind("randn", 0) == 0) return rng.randn(shape);
  if (kind == "randint") return rng.randint(0, 100, shape);
  if (kind == "permutation") return rng.permutation(shape.numel());
  throw std::runtime_error("golden: NumPy's kind of draw '" + kind + "' is not known");
}
AnyTensor draw(TorchRandom& rng, const std::string& kind, const Shape& shape) {
  if (kind == "rand" || kind == "rand_f32") return rng.rand(shape);
  if (kind == "rand_f64") return rng.rand<double>(shape);
  if (kind.rfind("randn_f32", 0) == 0) return rng.randn(shape);
  if (kind.rfind("randn_f64", 0) == 0) return rng.randn<double>(shape);
  if (kind == "randint") return rng.randint(0, 100, shape);
  if (kind == "randperm") return rng.randperm(shape.numel());
  if (kind == "dropout") return rng.bernoulli(0.5, shape);
  throw std::runtime_error("golden: PyTorch's kind of draw '" + kind + "' is not known");
}

const NamedTensors& draws() {
  static const NamedTensors loaded = load_npz(golden::path("rng.npz"));
  return loaded;
}

// Checks LIBRARY/KIND/SEED[/PART], where PART is a size, and IN x OUT _ weight or bias for a linear layer.
template <class Generator> void check_kind(const std::string& library) {
  int checked = 0;
  for (const auto& entry : draws()) {
    const auto& name = entry.first;  // clang 14 cannot capture a structured binding
    const auto& reference = entry.second;
    const auto parts = golden::split(name, '/');
    if (parts.at(0) != library || parts.at(1) == "mixed") continue;
    INFO(name);
    Generator rng(std::stoll(parts.at(2)));
    const Shape& shape = std::visit([](const auto& x) -> const Shape& { return x.shape(); }, reference);
    if constexpr (std::is_same_v<Generator, TorchRandom>) {
      if (parts.at(1) == "linear") {
        const auto by = parts.at(3).find('x');
        const std::int64_t in = std::stoll(parts[3].substr(0, by)), out = std::stoll(parts[3].substr(by + 1));
        const AnyTensor weight = rng.linear_weight(in, out), bias = rng.linear_bias(in, out);
        CHECK(same_bits(parts[3].substr(parts[3].find('_') + 1) == "weight"sv ? weight : bias, reference));
        ++checked;
        continue;
      }
    }
    CHECK(same_bits(draw(rng, parts.at(1), shape), reference));
    ++checked;
  }
  CHECK(checked > 0);
}

// Checks LIBRARY/mixed/SEED/I, draws in turn from one generator.
template <class Generator> void check_mixed(const std::string& library) {
  int checked = 0;
  for (const golden::Words& line : golden::table("rng.tsv")) {
    if (line.text("kind") != library + "/mixed") continue;
    std::map<std::string, std::unique_ptr<Generator>> by_seed;
    const auto calls = golden::split(line.text("calls"), ';');
    for (const auto& entry : draws()) {
      const auto& name = entry.first;  // clang 14 cannot capture a structured binding
      const auto& reference = entry.second;
      const auto parts = golden::split(name, '/');
      if (parts.at(0) != library || parts.at(1) != "mixed") continue;
      INFO(name);
      auto& rng = by_seed[parts.at(2)];
      if (rng == nullptr) rng = std::make_unique<Generator>(std::stoll(parts[2]));
      const std::string call = calls.at(std::stoul(parts.at(3)));
      const Shape& shape = std::visit([](const auto& x) -> const Shape& { return x.shape(); }, reference);
      CHECK(shape == Shape{std::stoll(call.substr(call.find('=') + 1))});
      CHECK(same_bits(draw(*rng, call.substr(0, call.find('=')), shape), reference));
      ++checked;
    }
  }
  CHECK(checked > 0);
}

}  // namespace

TEST_CASE("golden: the words of the Mersenne Twister") {
  int checked = 0;
  for (const auto& entry : draws()) {
    const auto& name = entry.first;  // clang 14 cannot capture a structured binding
    const auto& reference = entry.second;
    const auto parts = golden::split(name, '/');
    if (parts.at(0) != "mt19937") continue;
    INFO(name);
    Mt19937 words(static_cast<std::uint32_t>(std::stoll(parts.at(1))));
    for (std::int64_t word : std::get<Tensor<std::int64_t>>(reference).to_vector()) CHECK(words.next() == word);
    ++checked;
  }
  CHECK(checked > 0);
}

TEST_CASE("golden: NumPy's draws") { check_kind<NumpyRandom>("numpy"); }
TEST_CASE("golden: PyTorch's draws") { check_kind<TorchRandom>("torch"); }
TEST_CASE("golden: NumPy's draws in turn") { check_mixed<NumpyRandom>("numpy"); }
TEST_CASE("golden: PyTorch's draws in turn") { check_mixed<TorchRandom>("torch"); }
