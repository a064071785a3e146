#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/require.hpp"
#include "tapehead/files/arrays.hpp"

// What the readers and writers of files share.

namespace tapehead::detail {

using Byte = unsigned char;
using Bytes = std::vector<Byte>;

/// The file that an operation reads, for its errors.
struct Source {
  const char* op;
  std::string path;
  /// Throws FileError with the formatted text: "load_npy: 'x.npy': cut short".
  template <class... A> [[noreturn]] void fail(Format<A...> text, const A&... arguments) const {
    raise<FileError>("{}: '{}': {}", op, path.c_str(), fmt::format(text, shown(arguments)...));
  }
  template <class... A> void require(bool condition, Format<A...> text, const A&... arguments) const {
    if (!condition) fail<A...>(text, arguments...);
  }
};

/// A part of a file's bytes that cannot be read beyond its end.
class Span {
 public:
  Span(const Source& source, const Byte* bytes, std::size_t size) : source_(&source), bytes_(bytes), size_(size) {}
  const Source& source() const { return *source_; }
  const Byte* bytes() const { return bytes_; }
  std::size_t size() const { return size_; }
  /// The `count` bytes from `start`; fails where they go beyond the end, naming `what` they are.
  Span part(std::uint64_t start, std::uint64_t count, const char* what) const;
  /// The little-endian number of `width` bytes at `start`.
  std::uint64_t number(std::uint64_t start, int width, const char* what) const;
  std::string_view text() const { return {reinterpret_cast<const char*>(bytes_), size_}; }

 private:
  const Source* source_;
  const Byte* bytes_;
  std::size_t size_;
};

Bytes read_file(const Source& source);
/// Throws FileError where the first bytes show a file of another kind than `wanted` (".npy", ".npz" or
/// ".safetensors"), and says how to read that one.
void check_kind(const Span& file, std::string_view wanted);
/// Throws ValueError naming `op` where a name is not UTF-8 or contains NUL: other readers refuse or cut it.
void check_names(const char* op, const NamedTensors& tensors);

/// A type that files store elements as. float16 and bfloat16 become float, every integer type int64.
struct Stored {
  const char* npy;          // its code in .npy files, without the byte order; "" where NumPy has no such type
  const char* safetensors;  // its code in .safetensors files
  std::int64_t bytes;       // of an element
  AnyTensor (*read)(const Span& bytes, bool swapped, const Shape& shape);
};
/// The type with this code in a format (&Stored::npy or &Stored::safetensors); fails naming `what` has it.
const Stored& stored_as(const Source& source, const char* Stored::*format, std::string_view code,
                        const std::string& what);
/// The type as which a tensor is written.
const Stored& stored_type(const AnyTensor& x);
/// The number of bytes that a shape takes; fails on negative sizes, too many axes and products beyond 2^63.
std::uint64_t bytes_of(const Source& source, const Stored& type, const std::vector<std::int64_t>& sizes);

/// x as elements E where E holds each value exactly; ValueError naming `op` and `name` otherwise.
template <class E> Tensor<E> exactly(const char* op, const std::string& name, const AnyTensor& x);

const Shape& shape_of(const AnyTensor& x);
/// The elements of x in row-major order, as bytes; `keep` holds them.
std::string_view bytes_in_order(const AnyTensor& x, std::vector<AnyTensor>& keep);
/// Appends `value` as `width` little-endian bytes.
void put(std::string& out, std::uint64_t value, int width);

AnyTensor parse_npy(const Span& file);
std::string npy_header(const AnyTensor& x);  // what stands before the elements in a .npy file
NamedTensors parse_npz(const Span& file);
NamedTensors parse_safetensors(const Span& file);

}  // namespace tapehead::detail
