#include <algorithm>
#include <array>

#include "files/file_bytes.hpp"
#include "kernels/write_file.hpp"
#include "tapehead/files/npy.hpp"

// A zip archive: the entries one after the other, each behind a local header; then a directory that says
// where each begins; then an end record that says where the directory is. Sizes are little-endian. (PKWARE's
// APPNOTE.TXT, 4.3)

namespace tapehead {
namespace detail {
namespace {

constexpr std::uint32_t local_mark = 0x04034b50, directory_mark = 0x02014b50, end_mark = 0x06054b50;
// Of sizes and positions; larger archives need the zip64 extension.
constexpr std::uint64_t zip_limit = 0xffffffff;

std::uint32_t crc32(std::uint32_t crc, std::string_view bytes) {
  static constexpr auto table = [] {
    std::array<std::uint32_t, 256> made{};
    for (std::uint32_t i = 0; i < 256; ++i) {
      made[i] = i;
      for (int bit = 0; bit < 8; ++bit) made[i] = made[i] >> 1 ^ (0xedb88320u & (0u - (made[i] & 1u)));
    }
    return made;
  }();
  crc = ~crc;
  for (const char byte : bytes) crc = crc >> 8 ^ table[(crc ^ static_cast<Byte>(byte)) & 255];
  return ~crc;
}

struct ZipEntry {
  std::string name;
  std::uint64_t method, crc, packed, size;
  std::uint64_t local;   // where its local header is
  std::uint64_t record;  // bytes of its record in the directory
};

ZipEntry read_entry(const Span& directory, std::uint64_t at) {
  const auto number = [&](std::uint64_t offset, int width) {
    return directory.number(at + offset, width, "an entry of the directory");
  };
  directory.source().require(number(0, 4) == directory_mark, "its directory is damaged");
  const std::uint64_t name = number(28, 2);
  ZipEntry entry{std::string(directory.part(at + 46, name, "a name").text()),
                 number(10, 2),
                 number(16, 4),
                 number(20, 4),
                 number(24, 4),
                 number(42, 4),
                 46 + name + number(30, 2) + number(32, 2)};
  directory.source().require(entry.packed < zip_limit && entry.size < zip_limit && entry.local < zip_limit,
                             "'{}' needs the zip64 extension; archives up to 4 GiB can be read", entry.name);
  return entry;
}

// The entry's bytes, found through its local header.
Span stored_bytes(const Span& file, const ZipEntry& entry) {
  file.source().require(file.number(entry.local, 4, "a local header") == local_mark,
                        "'{}' is not where the directory says", entry.name);
  const std::uint64_t names =
      file.number(entry.local + 26, 2, "a local header") + file.number(entry.local + 28, 2, "a local header");
  return file.part(entry.local + 30 + names, entry.packed, entry.name.c_str());
}

AnyTensor read_array(const Span& file, const ZipEntry& entry) {
  const Source& source = file.source();
  source.require(entry.method == 0,
                 "'{}' is compressed; write the archive with np.savez instead of np.savez_compressed", entry.name);
  source.require(entry.packed == entry.size, "'{}' is not compressed, but its two sizes differ", entry.name);
  const Span npy = stored_bytes(file, entry);
  source.require(crc32(0, npy.text()) == entry.crc, "the checksum of '{}' is wrong: its bytes have changed",
                 entry.name);
  return parse_npy(npy);
}

// The end record is the last thing in the file but for a comment of up to 64 KiB.
Span end_record(const Span& file) {
  for (std::uint64_t back = 22; back <= std::min<std::uint64_t>(file.size(), 22 + 0xffff); ++back) {
    const Span end = file.part(file.size() - back, back, "the end record");
    if (end.number(0, 4, "") == end_mark && end.number(20, 2, "") + 22 == back) return end;
  }
  file.source().fail("is not a .npz file: it has no end of a zip archive, or is cut short");
}

// What the local header and the directory both say of an entry.
std::string description(const std::string& name, std::uint32_t crc, std::uint64_t size) {
  std::string out;
  put(out, 20, 2), put(out, 0x800, 2), put(out, 0, 2);  // version needed; names are UTF-8; stored
  put(out, 0, 2), put(out, 0x21, 2);                    // 1980-01-01, the earliest that there is
  put(out, crc, 4), put(out, size, 4), put(out, size, 4);
  put(out, name.size(), 2), put(out, 0, 2);
  return out;
}

}  // namespace

NamedTensors parse_npz(const Span& file) {
  check_kind(file, ".npz");
  const Source& source = file.source();
  const Span end = end_record(file);
  const std::uint64_t count = end.number(10, 2, ""), size = end.number(12, 4, ""), start = end.number(16, 4, "");
  source.require(count < 0xffff && size < zip_limit && start < zip_limit,
                 "needs the zip64 extension; archives up to 4 GiB can be read");
  const Span directory = file.part(start, size, "the directory");
  NamedTensors tensors;
  std::uint64_t at = 0, packed = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    const ZipEntry entry = read_entry(directory, at);
    at += entry.record;
    packed += entry.packed;  // overlapping entries would need more memory than the file has
    source.require(packed <= file.size(), "its entries overlap");
    source.require(entry.name.ends_with(".npy"), "'{}' is not an array: its name does not end in .npy", entry.name);
    std::string name = entry.name.substr(0, entry.name.size() - 4);
    source.require(!tensors.contains(name), "has two arrays '{}'", name);
    const Source part{source.op, source.path + "/" + name};
    tensors.add(std::move(name), read_array({part, file.bytes(), file.size()}, entry));
  }
  return tensors;
}

}  // namespace detail

NamedTensors load_npz(const std::string& path) {
  const detail::Source source{"load_npz", path};
  const detail::Bytes bytes = detail::read_file(source);
  return detail::parse_npz({source, bytes.data(), bytes.size()});
}

void save_npz(const std::string& path, const NamedTensors& tensors) {
  using namespace detail;
  check_names("save_npz", tensors);
  std::vector<AnyTensor> keep;
  std::vector<std::string> heads;
  std::vector<std::string_view> pieces;
  heads.reserve(tensors.size() + 1);  // the pieces point into them
  std::string directory;
  std::uint64_t at = 0;
  for (const auto& [plain, tensor] : tensors) {
    const std::string name = plain + ".npy", header = npy_header(tensor);
    require<ValueError>(name.size() <= 0xffff, "save_npz: a name of {} bytes; at most 65531", plain.size());
    const std::string_view elements = bytes_in_order(tensor, keep);
    const std::uint64_t size = header.size() + elements.size();
    require<ValueError>(at + size + directory.size() <= zip_limit - 0x20000 && tensors.size() <= 0xfffe,
                        "save_npz: more than 4 GiB or 65534 arrays; use several files, or save_safetensors");
    const std::uint32_t crc = crc32(crc32(0, header), elements);
    const std::string both = description(name, crc, size);
    put(directory, directory_mark, 4), put(directory, 20, 2), directory += both;
    put(directory, 0, 10), put(directory, at, 4), directory += name;  // no comment, one disk, no attributes
    std::string head;
    put(head, local_mark, 4), head += both + name + header;
    at += head.size() + elements.size();
    heads.push_back(std::move(head));
    pieces.push_back(heads.back());
    pieces.push_back(elements);
  }
  const std::uint64_t directory_size = directory.size();
  put(directory, end_mark, 4), put(directory, 0, 4);  // all on one disk
  put(directory, tensors.size(), 2), put(directory, tensors.size(), 2);
  put(directory, directory_size, 4), put(directory, at, 4), put(directory, 0, 2);
  pieces.push_back(directory);
  write_file("save_npz", path, pieces);
}

}  // namespace tapehead
