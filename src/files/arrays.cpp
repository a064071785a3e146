#include "tapehead/files/arrays.hpp"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>

#include "files/file_bytes.hpp"
#include "tapehead/ops/arithmetic.hpp"
#include "tapehead/kernels/error.hpp"
#include "tapehead/autograd/tape.hpp"
#include "tapehead/ops/views.hpp"

namespace tapehead {

NamedTensors::NamedTensors(std::initializer_list<Entry> entries) {
  for (const Entry& entry : entries) add(entry.first, entry.second);
}

void NamedTensors::add(std::string name, AnyTensor tensor) {
  if (!index_.emplace(name, entries_.size()).second)
    throw ValueError(fmt::format("add: there is a tensor '{}' already", name));
  entries_.emplace_back(std::move(name), std::move(tensor));
}

const AnyTensor& NamedTensors::operator[](const std::string& name) const {
  const auto found = index_.find(name);
  if (found != index_.end()) return entries_[found->second].second;
  std::string known;
  for (std::size_t i = 0; i < entries_.size() && i < 8; ++i)
    known += (i ? ", '" : "'") + entries_[i].first + "'";
  throw IndexError(fmt::format("get: there is no tensor '{}'; there {} {}{}", name,
                               entries_.size() == 1 ? "is" : "are", entries_.empty() ? "none" : known,
                               entries_.size() > 8 ? ", …" : ""));
}

const Shape& NamedTensors::shape(const std::string& name) const {
  return std::visit([](const auto& x) -> const Shape& { return x.shape(); }, (*this)[name]);
}

template <class E>
Tensor<E> NamedTensors::get(const std::string& name) const {
  return detail::exactly<E>("get", name, (*this)[name]);
}

namespace detail {

template <class E>
Tensor<E> exactly(const char* op, const std::string& name, const AnyTensor& any) {
  return std::visit(
      [&](const auto& x) -> Tensor<E> {
        using From = typename std::decay_t<decltype(x)>::element;
        if constexpr (std::is_same_v<E, From>) {
          return x;
        } else if constexpr (std::is_same_v<From, bool> ||
                             (std::is_same_v<From, float> && std::is_same_v<E, double>)) {
          return to<E>(detach(x));
        } else if constexpr (std::is_same_v<From, std::int64_t> && std::is_floating_point_v<E>) {
          constexpr std::int64_t limit = std::int64_t{1} << std::numeric_limits<E>::digits;
          for (std::int64_t v : x.to_vector())
            if (v < -limit || v > limit)
              throw ValueError(fmt::format(
                  "{}<{}>: '{}' holds {}, and {} may round whole numbers beyond ±{}; {}<int64> is exact", op,
                  dtype_name<E>(), name, v, dtype_name<E>(), limit, op));
          return to<E>(x);
        } else {
          throw ValueError(fmt::format(
              "{}<{}>: '{}' holds {} elements, which {} does not hold exactly; {}<{}>, then to<{}>()", op,
              dtype_name<E>(), name, dtype_name<From>(), dtype_name<E>(), op, dtype_name<From>(),
              dtype_name<E>()));
        }
      },
      any);
}

void Source::fail(const std::string& what) const {
  throw FileError(fmt::format("{}: '{}': {}", op, path, what));
}

Span Span::part(std::uint64_t start, std::uint64_t count, const char* what) const {
  if (start > size_ || count > size_ - start)
    source_->fail(fmt::format("{} should be bytes {} to {}, and there are only {}: cut short, or damaged",
                              what, start, start + std::min(count, ~start), size_));
  return {*source_, bytes_ + start, static_cast<std::size_t>(count)};
}

std::uint64_t Span::number(std::uint64_t start, int width, const char* what) const {
  const Span digits = part(start, static_cast<std::uint64_t>(width), what);
  std::uint64_t value = 0;
  for (int i = width - 1; i >= 0; --i) value = value << 8 | digits.bytes()[i];
  return value;
}

Bytes read_file(const Source& source) {
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(source.path, error);
  if (error) source.fail(error.message());
  std::ifstream file(source.path, std::ios::binary);
  Bytes bytes(static_cast<std::size_t>(size));
  if (!file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(size)))
    source.fail("cannot be read");
  return bytes;
}

void write_file(const Source& source, const std::vector<std::string_view>& pieces) {
  const std::string beside = source.path + fmt::format(".{:08x}.tmp", std::random_device{}());
  std::error_code error;
  std::ofstream file(beside, std::ios::binary);
  if (!file) source.fail(fmt::format("cannot be written there: {}", std::strerror(errno)));
  for (std::string_view piece : pieces) file.write(piece.data(), static_cast<std::streamsize>(piece.size()));
  file.close();
  if (file) std::filesystem::rename(beside, source.path, error);
  if (!file || error) {
    const std::string reason = error ? error.message() : std::strerror(errno);
    std::filesystem::remove(beside, error);
    source.fail(fmt::format("cannot be written: {}", reason));
  }
}

std::int64_t bytes_of(Stored type) {
  switch (type) {
    case Stored::boolean:
    case Stored::i8:
    case Stored::u8:
      return 1;
    case Stored::f16:
    case Stored::bf16:
    case Stored::i16:
    case Stored::u16:
      return 2;
    case Stored::f32:
    case Stored::i32:
    case Stored::u32:
      return 4;
    default:
      return 8;
  }
}

std::uint64_t bytes_of(const Source& source, Stored type, const std::vector<std::int64_t>& sizes) {
  if (sizes.size() > static_cast<std::size_t>(max_rank))
    source.fail(fmt::format("an array of {} axes; a tensor has at most {}", sizes.size(), max_rank));
  try {
    const std::int64_t count = Shape(sizes).numel();
    if (count <= std::numeric_limits<std::int64_t>::max() / 16)
      return static_cast<std::uint64_t>(count * bytes_of(type));
  } catch (const ShapeError& e) {
    source.fail(e.what());
  }
  source.fail(fmt::format("shape {} is more than there can be", Shape(sizes).str()));
}

namespace {

// IEEE 754 binary16: sign, 5 bits of exponent, 10 of fraction. Every value is a float.
float from_half(std::uint16_t half) {
  const std::uint32_t sign = (half & 0x8000u) << 16, exponent = (half >> 10) & 31, fraction = half & 1023u;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | fraction << 13);
  const float size = exponent == 0
                         ? std::ldexp(static_cast<float>(fraction), -24)
                         : std::ldexp(static_cast<float>(fraction | 1024u), static_cast<int>(exponent) - 25);
  return sign != 0 ? -size : size;
}

template <class V>
V read_value(const Byte* p, bool swapped) {
  Byte in_order[sizeof(V)];
  for (std::size_t i = 0; i < sizeof(V); ++i) in_order[i] = p[swapped ? sizeof(V) - 1 - i : i];
  V value;
  std::memcpy(&value, in_order, sizeof(V));
  return value;
}

// Elements E made by f from values V.
template <class E, class V, class F>
AnyTensor each(const Span& bytes, bool swapped, const Shape& shape, const F& f) {
  Buffer<E> out(shape);
  if constexpr (std::is_same_v<E, V>) {
    if (!swapped) {
      if (out.numel() > 0) std::memcpy(out.data(), bytes.bytes(), bytes.size());
      return Tensor<E>(std::move(out));
    }
  }
  for (std::int64_t i = 0; i < out.numel(); ++i)
    out[i] = f(read_value<V>(bytes.bytes() + i * static_cast<std::int64_t>(sizeof(V)), swapped));
  return Tensor<E>(std::move(out));
}

template <class V>
AnyTensor integers(const Span& bytes, bool swapped, const Shape& shape) {
  return each<std::int64_t, V>(bytes, swapped, shape, [&](V v) {
    if (std::is_same_v<V, std::uint64_t> && static_cast<std::int64_t>(v) < 0)
      bytes.source().fail(fmt::format("the unsigned number {} does not fit an int64", v));
    return static_cast<std::int64_t>(v);
  });
}

}  // namespace

AnyTensor decode(const Span& bytes, Stored type, bool swapped, const Shape& shape) {
  switch (type) {
    case Stored::f16:
      return each<float, std::uint16_t>(bytes, swapped, shape, from_half);
    case Stored::bf16:
      return each<float, std::uint16_t>(bytes, swapped, shape, [](std::uint16_t v) {
        return std::bit_cast<float>(std::uint32_t{v} << 16);
      });
    case Stored::f32:
      return each<float, float>(bytes, swapped, shape, [](float v) { return v; });
    case Stored::f64:
      return each<double, double>(bytes, swapped, shape, [](double v) { return v; });
    case Stored::boolean:
      return each<bool, Byte>(bytes, swapped, shape, [](Byte v) { return v != 0; });
    case Stored::i8:
      return integers<std::int8_t>(bytes, swapped, shape);
    case Stored::i16:
      return integers<std::int16_t>(bytes, swapped, shape);
    case Stored::i32:
      return integers<std::int32_t>(bytes, swapped, shape);
    case Stored::i64:
      return integers<std::int64_t>(bytes, swapped, shape);
    case Stored::u8:
      return integers<std::uint8_t>(bytes, swapped, shape);
    case Stored::u16:
      return integers<std::uint16_t>(bytes, swapped, shape);
    case Stored::u32:
      return integers<std::uint32_t>(bytes, swapped, shape);
    case Stored::u64:
      return integers<std::uint64_t>(bytes, swapped, shape);
  }
  bytes.source().fail("an unknown element type");
}

std::string_view bytes_in_order(const AnyTensor& any, std::vector<AnyTensor>& keep) {
  return std::visit(
      [&](const auto& x) {
        const auto dense = contiguous(detach(x));
        keep.emplace_back(dense);
        return std::string_view(reinterpret_cast<const char*>(dense.data()),
                                static_cast<std::size_t>(dense.numel()) * sizeof(*dense.data()));
      },
      any);
}

#define TAPEHEAD_EXACTLY(E) template Tensor<E> exactly<E>(const char*, const std::string&, const AnyTensor&);
TAPEHEAD_EXACTLY(float) TAPEHEAD_EXACTLY(double) TAPEHEAD_EXACTLY(bool) TAPEHEAD_EXACTLY(std::int64_t)

}  // namespace detail

template Tensor<float> NamedTensors::get<float>(const std::string&) const;
template Tensor<double> NamedTensors::get<double>(const std::string&) const;
template Tensor<bool> NamedTensors::get<bool>(const std::string&) const;
template Tensor<std::int64_t> NamedTensors::get<std::int64_t>(const std::string&) const;

}  // namespace tapehead
