#include "tapehead/files/npy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <numeric>

#include "files/file_bytes.hpp"
#include "tapehead/kernels/error.hpp"
#include "tapehead/ops/views.hpp"

// The format: the magic bytes "\x93NUMPY", a version, the header's length (two bytes in version 1, four
// later), the header, which is a Python dictionary as text, and the elements.
// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html

namespace tapehead {
namespace detail {
namespace {

constexpr std::string_view magic = "\x93NUMPY";
constexpr bool big_endian = std::endian::native == std::endian::big;

struct NpyHeader {
  std::string descr;
  Stored type = Stored::f64;
  bool fortran = false;
  std::vector<std::int64_t> sizes;
};

// Reads {'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), } and whatever spaces are in it.
class HeaderText {
 public:
  explicit HeaderText(const Span& header) : source_(header.source()), text_(header.text()) {}

  NpyHeader read() {
    NpyHeader header;
    int keys = 0;
    expect('{');
    while (!take('}')) {
      const std::string key = quoted();
      expect(':');
      if (key == "descr")
        header.descr = quoted(), keys |= 1;
      else if (key == "fortran_order")
        header.fortran = truth(), keys |= 2;
      else if (key == "shape")
        header.sizes = tuple(), keys |= 4;
      else
        damaged(fmt::format("an unknown key '{}'", key));
      if (!take(',')) {
        expect('}');
        break;
      }
    }
    skip_spaces();
    if (!text_.empty()) damaged("text after its closing brace");
    if (keys != 7) damaged("it must have descr, fortran_order and shape");
    return header;
  }

 private:
  [[noreturn]] void damaged(const std::string& what) const { source_.fail("in the header: " + what); }
  void skip_spaces() { text_.remove_prefix(std::min(text_.find_first_not_of(" \t\n"), text_.size())); }
  bool take(char c) {
    skip_spaces();
    if (text_.empty() || text_.front() != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!take(c))
      damaged(text_.empty() ? fmt::format("it ends where a '{}' should be", c)
                            : fmt::format("'{}' where a '{}' should be", text_.substr(0, 12), c));
  }
  std::string quoted() {
    skip_spaces();
    if (text_.substr(0, 1) == "[") damaged("structured elements; only plain numbers can be read");
    const char quote = text_.empty() ? '\0' : text_.front();
    const std::size_t end = quote == '\'' || quote == '"' ? text_.find(quote, 1) : std::string_view::npos;
    if (end == std::string_view::npos)
      damaged(fmt::format("'{}' where a name in quotes should be", text_.substr(0, 12)));
    const std::string name(text_.substr(1, end - 1));
    text_.remove_prefix(end + 1);
    return name;
  }
  bool truth() {
    skip_spaces();
    for (bool value : {false, true}) {
      const std::string_view word = value ? "True" : "False";
      if (text_.substr(0, word.size()) != word) continue;
      text_.remove_prefix(word.size());
      return value;
    }
    damaged(fmt::format("'{}' where True or False should be", text_.substr(0, 12)));
  }
  std::vector<std::int64_t> tuple() {
    std::vector<std::int64_t> sizes;
    expect('(');
    while (!take(')')) {
      skip_spaces();
      std::int64_t size = 0;
      const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), size);
      if (error != std::errc{}) damaged(fmt::format("'{}' where a size should be", text_.substr(0, 24)));
      text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
      take('L');  // Python 2 wrote (3L, 4L)
      sizes.push_back(size);
      if (!take(',')) {
        expect(')');
        break;
      }
    }
    return sizes;
  }

  const Source& source_;
  std::string_view text_;
};

Stored type_of(const Source& source, const std::string& descr) {
  static constexpr std::pair<const char*, Stored> types[] = {
      {"f8", Stored::f64}, {"f4", Stored::f32}, {"f2", Stored::f16}, {"b1", Stored::boolean},
      {"i8", Stored::i64}, {"i4", Stored::i32}, {"i2", Stored::i16}, {"i1", Stored::i8},
      {"u8", Stored::u64}, {"u4", Stored::u32}, {"u2", Stored::u16}, {"u1", Stored::u8}};
  if (!descr.empty() && std::string_view("<>=|").find(descr.front()) != std::string_view::npos)
    for (const auto& [code, type] : types)
      if (descr.substr(1) == code) return type;
  source.fail(fmt::format(
      "holds elements of type '{}'; float16, float32, float64, bool and integers can be read", descr));
}

NpyHeader read_header(const Span& file) {
  const std::uint64_t end = npy_header_end(file);
  const std::uint64_t start = file.bytes()[6] == 1 ? 10 : 12;
  NpyHeader header = HeaderText(file.part(start, end - start, "the header")).read();
  header.type = type_of(file.source(), header.descr);
  return header;
}

}  // namespace

std::uint64_t npy_header_end(const Span& start) {
  if (start.part(0, 6, "the magic bytes").text() != magic)
    start.source().fail("is not a .npy file: it does not start with \\x93NUMPY");
  const auto major = start.number(6, 1, "the version"), minor = start.number(7, 1, "the version");
  if (major < 1 || major > 3 || minor != 0)
    start.source().fail(fmt::format("has format version {}.{}; 1.0, 2.0 and 3.0 can be read", major, minor));
  return major == 1 ? 10 + start.number(8, 2, "the header's length")
                    : 12 + start.number(8, 4, "the header's length");
}

std::uint64_t npy_size(const Span& file) {
  const NpyHeader header = read_header(file);
  return npy_header_end(file) + bytes_of(file.source(), header.type, header.sizes);
}

AnyTensor parse_npy(const Span& file) {
  NpyHeader header = read_header(file);
  const std::uint64_t start = npy_header_end(file), size = npy_size(file);
  const Span elements = file.part(start, size - start, "the elements");
  if (size != file.size())
    file.source().fail(fmt::format("{} bytes are left over after the array", file.size() - size));
  const bool swapped = header.descr.front() == (big_endian ? '<' : '>');
  if (!header.fortran) return decode(elements, header.type, swapped, Shape(header.sizes));
  std::reverse(header.sizes.begin(), header.sizes.end());
  std::vector<int> axes(header.sizes.size());
  std::iota(axes.rbegin(), axes.rend(), 0);
  return std::visit([&](const auto& x) -> AnyTensor { return contiguous(permute(x, axes)); },
                    decode(elements, header.type, swapped, Shape(header.sizes)));
}

std::string npy_header(const AnyTensor& any) {
  static constexpr const char* codes[] = {"f4", "f8", "b1", "i8"};
  const char order = std::holds_alternative<Tensor<bool>>(any) ? '|' : big_endian ? '>' : '<';
  const std::string shape = std::visit([](const auto& x) { return x.shape().str(); }, any);
  std::string text = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': {}, }}", order,
                                 codes[any.index()], shape);
  text.resize((magic.size() + 4 + text.size() + 1 + 63) / 64 * 64 - magic.size() - 4 - 1,
              ' ');  // elements start at 64 n
  text += '\n';
  const auto length = static_cast<unsigned>(text.size());
  const char version_and_length[] = {1, 0, static_cast<char>(length & 255), static_cast<char>(length >> 8)};
  return std::string(magic) + std::string(version_and_length, 4) + text;
}

}  // namespace detail

template <class E>
Tensor<E> load_npy(const std::string& path) {
  const detail::Source source{"load_npy", path};
  const detail::Bytes bytes = detail::read_file(source);
  return detail::exactly<E>("load_npy", path, detail::parse_npy({source, bytes.data(), bytes.size()}));
}

template <class E>
void save_npy(const std::string& path, const Tensor<E>& x) {
  std::vector<AnyTensor> keep;
  const std::string header = detail::npy_header(x);
  detail::write_file({"save_npy", path}, {header, detail::bytes_in_order(x, keep)});
}

#define TAPEHEAD_NPY(E)                               \
  template Tensor<E> load_npy<E>(const std::string&); \
  template void save_npy<E>(const std::string&, const Tensor<E>&);
TAPEHEAD_NPY(float)
TAPEHEAD_NPY(double)
TAPEHEAD_NPY(bool)
TAPEHEAD_NPY(std::int64_t)

}  // namespace tapehead
