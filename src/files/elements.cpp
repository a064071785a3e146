#include <bit>
#include <cstring>
#include <limits>

#include "files/file_bytes.hpp"
#include "tensor/copy.hpp"

// Elements as files store them, and as tensors have them.

namespace tapehead::detail {
namespace {

// IEEE 754 binary16: sign, 5 bits of exponent with bias 15, 10 of fraction. A float's bias is 127 = 15 + 112.
float from_half(std::uint16_t half) {
  const std::uint32_t sign = (half & 0x8000u) << 16, rest = (half & 0x7fffu) << 13;
  if (rest >= 0x0f800000u) return std::bit_cast<float>(sign | 0x70000000u | rest);  // infinity or NaN
  const float size = std::bit_cast<float>(rest) * 0x1p112f;
  return sign != 0 ? -size : size;
}
// bfloat16 is the upper half of a float.
float from_bfloat(std::uint16_t half) { return std::bit_cast<float>(std::uint32_t{half} << 16); }
template <class E, class V> E converted(V value) { return static_cast<E>(value); }

template <class V> V read_value(const Byte* p, bool swapped) {
  Byte in_order[sizeof(V)];
  for (std::size_t i = 0; i < sizeof(V); ++i) in_order[i] = p[swapped ? sizeof(V) - 1 - i : i];
  V value;
  std::memcpy(&value, in_order, sizeof(V));
  return value;
}

// Elements E, made from values V in row-major order.
template <class E, class V, E convert(V) = converted<E, V>>
AnyTensor read(const Span& bytes, bool swapped, const Shape& shape) {
  Buffer<E> out(shape);
  if (std::is_same_v<E, V> && !swapped) {
    if (out.numel() > 0) std::memcpy(out.data(), bytes.bytes(), bytes.size());
    return Tensor<E>(std::move(out));
  }
  for (std::int64_t i = 0; i < out.numel(); ++i) {
    const V value = read_value<V>(bytes.bytes() + i * static_cast<std::int64_t>(sizeof(V)), swapped);
    out[i] = convert(value);
    if (std::is_same_v<V, std::uint64_t> && out[i] < E{})
      bytes.source().fail("the unsigned number {} does not fit an int64", value);
  }
  return Tensor<E>(std::move(out));
}

// First the types that tensors are written as, in AnyTensor's order.
constexpr Stored types[] = {{"f4", "F32", 4, read<float, float>},
                            {"f8", "F64", 8, read<double, double>},
                            {"b1", "BOOL", 1, read<bool, Byte>},
                            {"i8", "I64", 8, read<std::int64_t, std::int64_t>},
                            {"f2", "F16", 2, read<float, std::uint16_t, from_half>},
                            {"", "BF16", 2, read<float, std::uint16_t, from_bfloat>},
                            {"i4", "I32", 4, read<std::int64_t, std::int32_t>},
                            {"i2", "I16", 2, read<std::int64_t, std::int16_t>},
                            {"i1", "I8", 1, read<std::int64_t, std::int8_t>},
                            {"u8", "U64", 8, read<std::int64_t, std::uint64_t>},
                            {"u4", "U32", 4, read<std::int64_t, std::uint32_t>},
                            {"u2", "U16", 2, read<std::int64_t, std::uint16_t>},
                            {"u1", "U8", 1, read<std::int64_t, std::uint8_t>}};

}  // namespace

const Stored& stored_as(const Source& source, const char* Stored::*format, std::string_view code,
                        const std::string& what) {
  for (const Stored& type : types)
    if (code == type.*format && !code.empty()) return type;
  source.fail("{}; floating-point numbers of 16 (F16, BF16), 32 and 64 bits, bool and integers can be read", what);
}
const Stored& stored_type(const AnyTensor& x) { return types[x.index()]; }

std::uint64_t bytes_of(const Source& source, const Stored& type, const std::vector<std::int64_t>& sizes) {
  source.require(sizes.size() <= static_cast<std::size_t>(max_rank), "an array of {} axes; a tensor has at most {}",
                 sizes.size(), max_rank);
  try {
    const std::int64_t count = Shape(sizes).numel();
    if (count <= std::numeric_limits<std::int64_t>::max() / 16) return static_cast<std::uint64_t>(count * type.bytes);
  } catch (const ShapeError& e) {
    source.fail("{}", e.what());
  }
  source.fail("shape {} is larger than any memory", Shape(sizes));
}

const Shape& shape_of(const AnyTensor& any) {
  return std::visit([](const auto& x) -> const Shape& { return x.shape(); }, any);
}

std::string_view bytes_in_order(const AnyTensor& any, std::vector<AnyTensor>& keep) {
  return std::visit(
      [&](const auto& x) {
        using E = typename std::decay_t<decltype(x)>::element;
        const auto in_order = dense(x);
        keep.emplace_back(in_order);
        return std::string_view(reinterpret_cast<const char*>(in_order.data()),
                                static_cast<std::size_t>(in_order.numel()) * sizeof(E));
      },
      any);
}

template <class E> Tensor<E> exactly(const char* op, const std::string& name, const AnyTensor& any) {
  return std::visit(
      [&](const auto& x) -> Tensor<E> {
        using From = typename std::decay_t<decltype(x)>::element;
        if constexpr (std::is_same_v<E, From>) {
          return x;
        } else if constexpr (std::is_same_v<E, bool> || std::is_same_v<From, double> ||
                             (std::is_same_v<From, float> && !std::is_same_v<E, double>)) {
          raise<ValueError>(
              "{}<{}>: '{}' holds {} elements, which {} does not hold exactly; call {}<{}>, then to<{}>()", op,
              dtype_name<E>(), name, dtype_name<From>(), dtype_name<E>(), op, dtype_name<From>(), dtype_name<E>());
        } else {
          if constexpr (std::is_same_v<From, std::int64_t>) {
            constexpr std::int64_t limit = std::int64_t{1} << std::numeric_limits<E>::digits;
            for (const std::int64_t v : x.to_vector())
              if (v < -limit || v > limit)
                raise<ValueError>(
                    "{}<{}>: '{}' holds {}, and {} may round whole numbers beyond ±{}; {}<int64> is exact", op,
                    dtype_name<E>(), name, v, dtype_name<E>(), limit, op);
          }
          return cast<E>(x);
        }
      },
      any);
}

#define TAPEHEAD_EXACTLY(E) template Tensor<E> exactly<E>(const char*, const std::string&, const AnyTensor&);
TAPEHEAD_ELEMENTS(TAPEHEAD_EXACTLY)

}  // namespace tapehead::detail
