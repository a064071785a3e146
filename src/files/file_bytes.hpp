#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tapehead/files/arrays.hpp"

// What the readers and writers of files have in common.

namespace tapehead::detail {

using Byte = unsigned char;
using Bytes = std::vector<Byte>;

/// Whose file is read or written, for the errors.
struct Source {
  const char* op;
  std::string path;
  [[noreturn]] void fail(const std::string& what) const;  // throws FileError: "load_npy: 'x.npy': what"
};

/// A part of a file's bytes that cannot be read beyond its end.
class Span {
 public:
  Span(const Source& source, const Byte* bytes, std::size_t size)
      : source_(&source), bytes_(bytes), size_(size) {}
  const Source& source() const { return *source_; }
  const Byte* bytes() const { return bytes_; }
  std::size_t size() const { return size_; }
  /// The `count` bytes from `start`; fails where they go beyond the end, naming `what` they are.
  Span part(std::uint64_t start, std::uint64_t count, const char* what) const;
  Span from(std::uint64_t start, const char* what) const {
    return part(start, start <= size_ ? size_ - start : 1, what);
  }
  /// The little-endian number of `width` bytes at `start`.
  std::uint64_t number(std::uint64_t start, int width, const char* what) const;
  std::string_view text() const { return {reinterpret_cast<const char*>(bytes_), size_}; }

 private:
  const Source* source_;
  const Byte* bytes_;
  std::size_t size_;
};

Bytes read_file(const Source& source);
/// Writes the pieces to a file beside `path`, and then gives it that name.
void write_file(const Source& source, const std::vector<std::string_view>& pieces);

/// How a file stores elements.
enum class Stored { f16, bf16, f32, f64, boolean, i8, i16, i32, i64, u8, u16, u32, u64 };
std::int64_t bytes_of(Stored type);
/// The number of bytes that a shape takes; fails on negative sizes, too many axes and products beyond 2^63.
std::uint64_t bytes_of(const Source& source, Stored type, const std::vector<std::int64_t>& sizes);
/// Row-major elements from bytes, of which there must be as many as bytes_of says: float for f16, bf16 and
/// f32, int64 for every integer. Fails on a u64 beyond 2^63 - 1.
AnyTensor decode(const Span& bytes, Stored type, bool swapped, const Shape& shape);

/// x as elements E where E holds each value exactly; ValueError naming `op` and `name` otherwise.
template <class E>
Tensor<E> exactly(const char* op, const std::string& name, const AnyTensor& x);

/// The elements of x row after row, as bytes; `keep` holds them.
std::string_view bytes_in_order(const AnyTensor& x, std::vector<AnyTensor>& keep);

// The .npy format, which .npz archives hold too. Where its header ends, by the first 12 bytes; how long the
// file is, by the bytes up to there.
inline constexpr std::uint64_t npy_start = 12;
std::uint64_t npy_header_end(const Span& start);
std::uint64_t npy_size(const Span& header);
AnyTensor parse_npy(const Span& file);
std::string npy_header(const AnyTensor& x);
NamedTensors parse_npz(const Span& file);
NamedTensors parse_safetensors(const Span& file);

}  // namespace tapehead::detail
