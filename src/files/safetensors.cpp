#include "tapehead/files/safetensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>

#include "files/file_bytes.hpp"
#include "tapehead/kernels/error.hpp"

// The file: the header's length in 8 bytes, the header, which is {"name": {"dtype": "F32", "shape": [2, 3],
// "data_offsets": [0, 24]}, …} with perhaps "__metadata__": {"key": "text"} among it, and the elements,
// row-major and little-endian. Offsets count from the end of the header, and the tensors fill what follows
// without gap or overlap.

namespace tapehead {
namespace detail {
namespace {

struct Place {
  std::string name;
  std::string dtype;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> offsets;
};

// Reads the header: no JSON in general, but this one kind of document.
class HeaderJson {
 public:
  explicit HeaderJson(const Span& header) : source_(header.source()), text_(header.text()) {}

  std::vector<Place> read() {
    std::vector<Place> places;
    object([&](std::string name) {
      if (name == "__metadata__") return object([&](const std::string&) { string(); });
      places.push_back(place(std::move(name)));
    });
    skip_spaces();
    if (!text_.empty()) damaged("text after its closing brace");
    return places;
  }

 private:
  [[noreturn]] void damaged(const std::string& what) const { source_.fail("in the header: " + what); }
  [[noreturn]] void expected(const char* what) const {
    damaged(text_.empty() ? fmt::format("it ends where {} should be", what)
                          : fmt::format("'{}' where {} should be", text_.substr(0, 16), what));
  }
  void skip_spaces() { text_.remove_prefix(std::min(text_.find_first_not_of(" \t\r\n"), text_.size())); }
  bool take(char c) {
    skip_spaces();
    if (text_.empty() || text_.front() != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  void expect(char c, const char* what) {
    if (!take(c)) expected(what);
  }
  template <class F>
  void object(const F& member) {
    expect('{', "a '{'");
    if (take('}')) return;
    do {
      std::string key = string();
      expect(':', "a ':'");
      member(std::move(key));
    } while (take(','));
    expect('}', "a '}'");
  }
  Place place(std::string name) {
    Place place;
    place.name = std::move(name);
    int keys = 0;
    object([&](const std::string& key) {
      if (key == "dtype")
        place.dtype = string(), keys |= 1;
      else if (key == "shape")
        place.shape = integers(), keys |= 2;
      else if (key == "data_offsets")
        place.offsets = integers(), keys |= 4;
      else
        damaged(fmt::format("'{}' has an unknown key '{}'", place.name, key));
    });
    if (keys != 7 || place.offsets.size() != 2)
      damaged(fmt::format("'{}' must have dtype, shape and two data_offsets", place.name));
    return place;
  }
  std::vector<std::int64_t> integers() {
    std::vector<std::int64_t> list;
    expect('[', "a '['");
    if (take(']')) return list;
    do {
      skip_spaces();
      std::int64_t value = 0;
      const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), value);
      if (error != std::errc{}) expected("a whole number");
      text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
      list.push_back(value);
    } while (take(','));
    expect(']', "a ']'");
    return list;
  }
  std::string string() {
    expect('"', "a string");
    std::string out;
    while (!text_.empty() && text_.front() != '"') {
      const char c = text_.front();
      if (static_cast<Byte>(c) < 0x20) damaged("a control character in a string");
      text_.remove_prefix(1);
      if (c == '\\')
        escape(out);
      else
        out += c;
    }
    expect('"', "the end of a string");
    return out;
  }
  void escape(std::string& out) {
    if (text_.empty()) expected("an escaped character");
    static constexpr std::string_view escaped = "\"\\/bfnrt", meant = "\"\\/\b\f\n\r\t";
    const char c = text_.front();
    text_.remove_prefix(1);
    if (c == 'u') return utf8(out);
    if (escaped.find(c) == std::string_view::npos) damaged(fmt::format("an unknown escape '\\{}'", c));
    out += meant[escaped.find(c)];
  }
  std::uint32_t four_digits() {
    std::uint32_t unit = 0;
    const char* end = text_.data() + std::min<std::size_t>(4, text_.size());
    if (text_.size() < 4 || std::from_chars(text_.data(), end, unit, 16).ptr != end)
      expected("four hexadecimal digits");
    text_.remove_prefix(4);
    return unit;
  }
  // \uXXXX, or two of them for a character beyond U+FFFF.
  void utf8(std::string& out) {
    std::uint32_t code = four_digits();
    if (code >= 0xd800 && code < 0xe000) {
      if (code >= 0xdc00 || text_.substr(0, 2) != "\\u") damaged("half a surrogate pair");
      text_.remove_prefix(2);
      const std::uint32_t low = four_digits();
      if (low < 0xdc00 || low >= 0xe000) damaged("half a surrogate pair");
      code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
    const auto byte = [&](std::uint32_t mark, int shift) {
      out += static_cast<char>(mark | (code >> shift & (mark == 0x80 ? 0x3fu : 0xffu)));
    };
    if (code < 0x80)
      byte(0, 0);
    else if (code < 0x800)
      byte(0xc0, 6), byte(0x80, 0);
    else if (code < 0x10000)
      byte(0xe0, 12), byte(0x80, 6), byte(0x80, 0);
    else
      byte(0xf0, 18), byte(0x80, 12), byte(0x80, 6), byte(0x80, 0);
  }

  const Source& source_;
  std::string_view text_;
};

Stored type_of(const Source& source, const Place& place) {
  static constexpr std::pair<const char*, Stored> types[] = {
      {"F64", Stored::f64},      {"F32", Stored::f32}, {"F16", Stored::f16}, {"BF16", Stored::bf16},
      {"BOOL", Stored::boolean}, {"I64", Stored::i64}, {"I32", Stored::i32}, {"I16", Stored::i16},
      {"I8", Stored::i8},        {"U64", Stored::u64}, {"U32", Stored::u32}, {"U16", Stored::u16},
      {"U8", Stored::u8}};
  for (const auto& [code, type] : types)
    if (place.dtype == code) return type;
  source.fail(
      fmt::format("'{}' has elements of type '{}'; F64, F32, F16, BF16, BOOL and integers can be read",
                  place.name, place.dtype));
}

// Each place must be as long as its shape says and follow on from the one before.
void check_places(const Span& data, const std::vector<Place>& places) {
  const Source& source = data.source();
  std::vector<const Place*> in_order;
  for (const Place& place : places) in_order.push_back(&place);
  std::sort(in_order.begin(), in_order.end(),
            [](const Place* a, const Place* b) { return a->offsets < b->offsets; });
  std::int64_t at = 0;
  for (const Place* place : in_order) {
    const std::int64_t begin = place->offsets[0], end = place->offsets[1];
    if (begin < 0 || end < begin || static_cast<std::uint64_t>(end) > data.size())
      source.fail(
          fmt::format("'{}' is at {} to {}, in {} bytes of elements", place->name, begin, end, data.size()));
    const std::uint64_t needed = bytes_of(source, type_of(source, *place), place->shape);
    if (needed != static_cast<std::uint64_t>(end - begin))
      source.fail(fmt::format("'{}' has {} bytes, and {} elements of shape {} take {}", place->name,
                              end - begin, place->dtype, Shape(place->shape).str(), needed));
    if (begin != at)
      source.fail(
          fmt::format("'{}' begins at {}, and what stands before it ends at {}", place->name, begin, at));
    at = end;
  }
  if (static_cast<std::uint64_t>(at) != data.size())
    source.fail(fmt::format("{} bytes are left over after the tensors",
                            data.size() - static_cast<std::uint64_t>(at)));
}

// By the index in AnyTensor.
constexpr const char* dtype_codes[] = {"F32", "F64", "BOOL", "I64"};
constexpr int dtype_sizes[] = {4, 8, 1, 8};

std::string quoted(const std::string& name) {
  std::string out = "\"";
  for (const char c : name) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<Byte>(c) < 0x20)
      out += fmt::format("\\u{:04x}", static_cast<int>(c));
    else
      out += c;
  }
  return out + '"';
}

}  // namespace

NamedTensors parse_safetensors(const Span& file) {
  const std::uint64_t length = file.number(0, 8, "the header's length");
  const std::vector<Place> places = HeaderJson(file.part(8, length, "the header")).read();
  const Span data = file.part(8 + length, file.size() - 8 - length, "the elements");
  check_places(data, places);
  NamedTensors tensors;
  for (const Place& place : places) {
    if (tensors.contains(place.name)) file.source().fail(fmt::format("has two tensors '{}'", place.name));
    const auto begin = static_cast<std::uint64_t>(place.offsets[0]),
               end = static_cast<std::uint64_t>(place.offsets[1]);
    tensors.add(place.name, decode(data.part(begin, end - begin, "a tensor"), type_of(file.source(), place),
                                   std::endian::native == std::endian::big, Shape(place.shape)));
  }
  return tensors;
}

}  // namespace detail

NamedTensors load_safetensors(const std::string& path) {
  const detail::Source source{"load_safetensors", path};
  const detail::Bytes bytes = detail::read_file(source);
  return detail::parse_safetensors({source, bytes.data(), bytes.size()});
}

void save_safetensors(const std::string& path, const NamedTensors& tensors) {
  static_assert(std::endian::native == std::endian::little, "the elements would have to be turned round");
  if (tensors.contains("__metadata__"))
    throw ValueError("save_safetensors: '__metadata__' cannot be the name of a tensor there");
  std::vector<const NamedTensors::Entry*> in_order;
  for (const auto& entry : tensors) in_order.push_back(&entry);
  std::stable_sort(in_order.begin(), in_order.end(), [](const auto* a, const auto* b) {
    return detail::dtype_sizes[a->second.index()] > detail::dtype_sizes[b->second.index()];
  });
  std::vector<AnyTensor> keep;
  std::vector<std::string_view> pieces(2);
  std::string header = R"({"__metadata__":{"format":"pt"})";  // Hugging Face's loaders ask for it
  std::size_t at = 0;
  for (const auto* entry : in_order) {
    const Shape& shape = std::visit([](const auto& x) -> const Shape& { return x.shape(); }, entry->second);
    pieces.push_back(detail::bytes_in_order(entry->second, keep));
    std::string sizes;
    for (const std::int64_t n : shape) sizes += (sizes.empty() ? "" : ",") + std::to_string(n);
    header += fmt::format(R"(,{}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                          detail::quoted(entry->first), detail::dtype_codes[entry->second.index()], sizes, at,
                          at + pieces.back().size());
    at += pieces.back().size();
  }
  header += '}';
  header.resize((header.size() + 7) / 8 * 8, ' ');  // so that the elements are aligned in the file
  std::string length;
  for (int i = 0; i < 8; ++i) length += static_cast<char>(header.size() >> 8 * i & 255);
  pieces[0] = length, pieces[1] = header;
  detail::write_file({"save_safetensors", path}, pieces);
}

}  // namespace tapehead
