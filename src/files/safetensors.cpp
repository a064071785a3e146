#include "tapehead/files/safetensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "files/file_bytes.hpp"
#include "files/header_text.hpp"
#include "kernels/utf8.hpp"
#include "kernels/write_file.hpp"

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

std::vector<Place> read_header(const Span& text) {
  HeaderText reader(text);
  std::vector<Place> places;
  const auto place = [&](const std::string& name) {
    Place p{name, {}, {}, {}};
    int keys = 0;
    reader.dictionary([&](const std::string& key) {
      if (key == "dtype")
        p.dtype = reader.string(), keys |= 1;
      else if (key == "shape")
        p.shape = reader.integers("[", "]"), keys |= 2;
      else if (key == "data_offsets")
        p.offsets = reader.integers("[", "]"), keys |= 4;
      else
        reader.damaged("'{}' has an unknown key '{}'", name, key);
    });
    if (keys != 7 || p.offsets.size() != 2) reader.damaged("'{}' must have dtype, shape and two data_offsets", name);
    places.push_back(std::move(p));
  };
  reader.dictionary([&](const std::string& name) {
    if (name == "__metadata__")
      reader.dictionary([&](const std::string&) { reader.string(); });
    else
      place(name);
  });
  reader.end();
  if (!is_utf8(text.text())) reader.damaged("it is not UTF-8");
  return places;
}

const Stored& type_of(const Source& source, const Place& place) {
  return stored_as(source, &Stored::safetensors, place.dtype,
                   fmt::format("'{}' has elements of type '{}'", place.name, place.dtype));
}

// The tensors must fill the bytes behind the header without gap or overlap, each as long as its shape says.
void check_places(const Span& data, std::vector<Place> places) {
  const Source& source = data.source();
  std::sort(places.begin(), places.end(), [](const Place& a, const Place& b) { return a.offsets < b.offsets; });
  std::uint64_t at = 0;
  for (const Place& place : places) {
    const std::int64_t begin = place.offsets[0], end = place.offsets[1];
    const std::uint64_t needed = bytes_of(source, type_of(source, place), place.shape);
    source.require(static_cast<std::uint64_t>(begin) == at, "'{}' is at {} to {}, and the tensor before it ends at {}",
                   place.name, begin, end, at);
    source.require(static_cast<std::uint64_t>(end) - at == needed,
                   "'{}' is at {} to {}, and {} elements of shape {} take {} bytes", place.name, begin, end,
                   place.dtype, Shape(place.shape), needed);
    at += needed;
  }
  source.require(at == data.size(), "its tensors take {} bytes, and there are {}", at, data.size());
}

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
  check_kind(file, ".safetensors");
  const std::uint64_t length = file.number(0, 8, "the header's length");
  const std::vector<Place> places = read_header(file.part(8, length, "the header"));
  const Span data = file.part(8 + length, file.size() - 8 - length, "the elements");
  check_places(data, places);
  NamedTensors tensors;
  for (const Place& place : places) {
    file.source().require(!tensors.contains(place.name), "has two tensors '{}'", place.name);
    const auto begin = static_cast<std::uint64_t>(place.offsets[0]);
    const Span elements = data.part(begin, static_cast<std::uint64_t>(place.offsets[1]) - begin, "a tensor");
    tensors.add(
        place.name,
        type_of(file.source(), place).read(elements, std::endian::native == std::endian::big, Shape(place.shape)));
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
  using namespace detail;
  static_assert(std::endian::native == std::endian::little, "the elements would have to be turned round");
  check_names("save_safetensors", tensors);
  require<ValueError>(!tensors.contains("__metadata__"),
                      "save_safetensors: '__metadata__' is reserved in this format; rename the tensor");
  std::vector<const NamedTensors::Entry*> in_order;
  for (const auto& entry : tensors) in_order.push_back(&entry);
  std::stable_sort(in_order.begin(), in_order.end(), [](const auto* a, const auto* b) {
    return stored_type(a->second).bytes > stored_type(b->second).bytes;
  });
  std::vector<AnyTensor> keep;
  std::vector<std::string_view> pieces(2);
  std::string length, header = R"({"__metadata__":{"format":"pt"})";  // Hugging Face's loaders ask for it
  std::size_t at = 0;
  for (const auto* entry : in_order) {
    pieces.push_back(bytes_in_order(entry->second, keep));
    header += fmt::format(R"(,{}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})", quoted(entry->first),
                          stored_type(entry->second).safetensors, fmt::join(shape_of(entry->second), ","), at,
                          at + pieces.back().size());
    at += pieces.back().size();
  }
  header += '}';
  header.resize((header.size() + 7) / 8 * 8, ' ');  // so that the elements are aligned in the file
  put(length, header.size(), 8);
  pieces[0] = length, pieces[1] = header;
  write_file("save_safetensors", path, pieces);
}

}  // namespace tapehead
