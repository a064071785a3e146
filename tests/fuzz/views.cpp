// libFuzzer on shapes, axes, indices and slices: each call gives a tensor whose elements are those that its
// indices say, or throws an Error. The bytes are a small program: a shape, then calls one after the other.
#include "tapehead/ops/views.hpp"

#include <array>

#include "fuzz.hpp"
#include "tapehead/ops/join.hpp"
#include "tapehead/ops/reduce.hpp"

using namespace tapehead;
using X = Tensor<std::int64_t>;

namespace {

class Program {
 public:
  Program(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}
  bool done() const { return at_ >= size_; }
  // A small number, most often, and now and then one of the extremes.
  std::int64_t number() {
    static constexpr std::array<std::int64_t, 8> extremes = {INT64_MIN,
                                                             INT64_MIN + 1,
                                                             -(std::int64_t{1} << 62),
                                                             -(std::int64_t{1} << 32),
                                                             std::int64_t{1} << 32,
                                                             std::int64_t{1} << 62,
                                                             INT64_MAX - 1,
                                                             INT64_MAX};
    const int byte = done() ? 0 : data_[at_++];
    return byte >= 248 ? extremes[static_cast<std::size_t>(byte - 248)] : byte % 16 - 6;
  }
  int axis() {
    return static_cast<int>(std::max<std::int64_t>(INT32_MIN, std::min<std::int64_t>(INT32_MAX, number())));
  }
  std::size_t count() { return done() ? 0 : data_[at_++] % 8u; }
  std::vector<std::int64_t> numbers() {
    std::vector<std::int64_t> list(count());
    for (auto& v : list) v = number();
    return list;
  }
  std::vector<int> axes() {
    std::vector<int> list(count());
    for (auto& v : list) v = axis();
    return list;
  }

 private:
  const std::uint8_t* data_;
  std::size_t size_, at_ = 0;
};

// The element at a row-major position, found by the strides.
std::int64_t element(const X& x, std::int64_t position) {
  std::int64_t offset = 0;
  for (int axis = x.rank() - 1; axis >= 0; --axis) {
    offset += position % x.shape()[axis] * x.strides()[axis];
    position /= x.shape()[axis];
  }
  return x.data()[offset];
}

// to_vector, contiguous and a walk by the strides agree, which reads every element that the view says it has.
void read_all(const X& x) {
  if (x.numel() > 4096) return;
  const auto values = x.to_vector(), dense = contiguous(x).to_vector();
  for (std::int64_t i = 0; i < x.numel(); ++i)
    if (values.at(static_cast<std::size_t>(i)) != element(x, i) ||
        dense.at(static_cast<std::size_t>(i)) != element(x, i))
      std::abort();
}

// Summing (0, 2^40) over its first axis gives 2^40 zeros, and splitting it by 1 as many parts: right, and too
// slow here.
bool is_little(const X& x) {
  std::int64_t kept = 1;
  for (std::int64_t size : x.shape())
    if (size > 65536 || (kept *= std::max<std::int64_t>(1, size)) > 65536) return false;
  return true;
}

X call(Program& p, const X& x) {
  switch (p.number() & 15) {
    case 0:
      return reshape(x, Shape(p.numbers()));
    case 1: {
      const int a = p.axis(), b = p.axis();
      return transpose(x, a, b);
    }
    case 2:
      return permute(x, p.axes());
    case 3: {
      const int axis = p.axis();
      const std::int64_t start = p.number(), stop = p.number(), step = p.number();
      return slice(x, axis, start, stop, step);
    }
    case 4: {
      const int axis = p.axis();
      return select(x, axis, p.number());
    }
    case 5:
      return flip(x, p.axis());
    case 6:
      return unsqueeze(x, p.axis());
    case 7:
      return squeeze(x, p.axis());
    case 8:
      return broadcast_to(x, Shape(p.numbers()));
    case 9:
      return is_little(x) ? sum(x, Axes(p.axes()), (p.number() & 1) != 0) : x;
    case 10:
      return cat(std::vector{x, x}, p.axis());
    case 11:
      return stack(std::vector{x, x}, p.axis());
    case 12: {
      const std::int64_t size = p.number();
      if (!is_little(x)) return x;
      const auto parts = split(x, size, p.axis());
      return parts.empty() ? x : parts.back();
    }
    case 13: {
      const Shape shape(p.numbers());
      if (shape.numel() > 4096) return x;  // a big one may be right, and would only be slow
      const int axis = p.axis();
      const std::int64_t start = p.number();
      return unslice(x, shape, axis, start, p.number());
    }
    case 14:
      return x.T();
    default:
      return is_little(x) ? argmax(x, p.axis()) : x;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Program p(data, size);
  fuzz::expect_errors_only([&] {
    const Shape shape(p.numbers());
    if (shape.numel() > 4096) return;
    X x = arange<std::int64_t>(shape.numel()).reshape(shape);
    for (int calls = 0; calls < 12 && !p.done(); ++calls) {
      fuzz::expect_errors_only([&] {
        const X y = call(p, x);
        if (y.numel() <= 65536) x = y, read_all(x);
      });
    }
  });
  return 0;
}
