#include "tapehead/files/npy.hpp"

#include <algorithm>
#include <bit>

#include "files/file_bytes.hpp"
#include "files/header_text.hpp"
#include "kernels/write_file.hpp"
#include "tensor/copy.hpp"

// The format: the magic bytes "\x93NUMPY", a version, the header's length (two bytes in version 1, four
// later), the header, which is a Python dictionary as text, and the elements.
// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html

namespace tapehead {
namespace detail {
namespace {

constexpr std::string_view magic = "\x93NUMPY";
constexpr bool big_endian = std::endian::native == std::endian::big;

struct NpyHeader {
  std::string descr;  // the byte order, and the type's code: "<f8"
  bool fortran = false;
  std::vector<std::int64_t> sizes;
};

// {'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }
NpyHeader read_header(const Span& text) {
  NpyHeader header;
  HeaderText reader(text);
  int keys = 0;
  reader.dictionary([&](const std::string& key) {
    if (key == "descr")
      header.descr = reader.string(), keys |= 1;
    else if (key == "fortran_order")
      header.fortran = reader.boolean(), keys |= 2;
    else if (key == "shape")
      header.sizes = reader.integers("(", ")"), keys |= 4;
    else
      reader.damaged("an unknown key '{}'", key);
  });
  reader.end();
  if (keys != 7) reader.damaged("it must have descr, fortran_order and shape");
  return header;
}

// A copy in row-major order of elements that are stored in Fortran order; x has the axes reversed.
template <class E> Tensor<E> from_fortran(const Tensor<E>& x) {
  Shape sizes = x.shape();
  Strides strides = x.strides();
  std::reverse(&sizes[0], &sizes[0] + sizes.rank());
  std::reverse(&strides[0], &strides[0] + strides.rank());
  return copied(x.view(sizes, strides, x.data()));
}

}  // namespace

AnyTensor parse_npy(const Span& file) {
  const Source& source = file.source();
  check_kind(file, ".npy");
  source.require(file.part(0, magic.size(), "the magic bytes").text() == magic,
                 "is not a .npy file: it does not start with \\x93NUMPY");
  const auto major = file.number(6, 1, "the version"), minor = file.number(7, 1, "the version");
  source.require(major >= 1 && major <= 3 && minor == 0, "has format version {}.{}; 1.0, 2.0 and 3.0 can be read",
                 major, minor);
  const int width = major == 1 ? 2 : 4;
  const auto begin = static_cast<std::uint64_t>(8 + width);
  const std::uint64_t end = begin + file.number(8, width, "the header's length");
  NpyHeader header = read_header(file.part(begin, end - begin, "the header"));
  const bool ordered = std::string_view("<>=|").find(header.descr.substr(0, 1)) != std::string_view::npos;
  const Stored& type = stored_as(source, &Stored::npy, ordered && !header.descr.empty() ? header.descr.substr(1) : "",
                                 fmt::format("holds elements of type '{}'", header.descr));

  const std::uint64_t size = bytes_of(source, type, header.sizes);
  const Span elements = file.part(end, size, "the elements");
  source.require(end + size == file.size(), "{} bytes are left over after the array", file.size() - end - size);
  const bool swapped = header.descr.front() == (big_endian ? '<' : '>');
  if (!header.fortran) return type.read(elements, swapped, Shape(header.sizes));
  std::reverse(header.sizes.begin(), header.sizes.end());
  return std::visit([](const auto& x) -> AnyTensor { return from_fortran(x); },
                    type.read(elements, swapped, Shape(header.sizes)));
}

std::string npy_header(const AnyTensor& x) {
  const char order = stored_type(x).bytes == 1 ? '|' : big_endian ? '>' : '<';
  std::string text = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': {}, }}", order,
                                 stored_type(x).npy, shape_of(x).str());
  // Spaces and a line break fill up the 10 bytes before the text and the text to a multiple of 64.
  text.resize((10 + text.size() + 1 + 63) / 64 * 64 - 10 - 1, ' ');
  text += '\n';
  std::string start(magic);
  put(start, 1, 2), put(start, text.size(), 2);
  return start + text;
}

}  // namespace detail

template <class E> Tensor<E> load_npy(const std::string& path) {
  const detail::Source source{"load_npy", path};
  const detail::Bytes bytes = detail::read_file(source);
  return detail::exactly<E>("load_npy", path, detail::parse_npy({source, bytes.data(), bytes.size()}));
}

template <class E> void save_npy(const std::string& path, const Tensor<E>& x) {
  std::vector<AnyTensor> keep;
  const std::string header = detail::npy_header(x);
  detail::write_file("save_npy", path, {header, detail::bytes_in_order(x, keep)});
}

#define TAPEHEAD_NPY(E)                               \
  template Tensor<E> load_npy<E>(const std::string&); \
  template void save_npy<E>(const std::string&, const Tensor<E>&);
TAPEHEAD_ELEMENTS(TAPEHEAD_NPY)

}  // namespace tapehead
