#include "files/file_bytes.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "kernels/utf8.hpp"

namespace tapehead::detail {

Span Span::part(std::uint64_t start, std::uint64_t count, const char* what) const {
  source_->require(start <= size_ && count <= size_ - start,
                   "{} should be bytes {} to {}, and there are only {}: cut short, or damaged", what, start,
                   start + std::min(count, ~start), size_);
  return {*source_, bytes_ + start, static_cast<std::size_t>(count)};
}

std::uint64_t Span::number(std::uint64_t start, int width, const char* what) const {
  const Span digits = part(start, static_cast<std::uint64_t>(width), what);
  std::uint64_t value = 0;
  for (int i = width - 1; i >= 0; --i) value = value << 8 | digits.bytes()[i];
  return value;
}

void put(std::string& out, std::uint64_t value, int width) {
  for (int i = 0; i < width; ++i, value >>= 8) out += static_cast<char>(value & 255);
}

Bytes read_file(const Source& source) {
  source.require(source.path.find('\0') == std::string::npos, "a path cannot contain a NUL character");
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(source.path, error);
  source.require(!error, "{}", error.message());
  std::ifstream file(source.path, std::ios::binary);
  Bytes bytes(static_cast<std::size_t>(size));
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(size));
  source.require(!file.fail(), "cannot be read");
  return bytes;
}

namespace {

struct Kind {
  std::string_view name, start, instead;
};
constexpr Kind kinds[] = {
    {".npy", "\x93NUMPY", "it is a .npy file: call load_npy"},
    {"torch.save", "PK\3\4",
     "it was written by torch.save. In Python, load it with torch.load, write its dictionary of tensors with "
     "safetensors.torch.save_file(tensors, path), and call load_safetensors for that file"},
    {".npz", "PK", "it is a zip archive, as .npz files are: call load_npz"},
    {"gzip", "\x1f\x8b", "it is compressed by gzip: unpack it with gunzip first"},
    {"pickle", "\x80",
     "it is a Python pickle, or an old torch.save file. Load it in Python, write its arrays with np.savez or "
     "safetensors, and load that file"},
    {"Git LFS", "version https://git-lfs", "it is only Git LFS's pointer to the file: run git lfs pull"},
    {".safetensors", "", "it is a .safetensors file: call load_safetensors"}};

bool is(const Kind& kind, std::string_view text) {
  if (kind.name == ".safetensors")  // 8 bytes for the header's length, and then the header
    return text.substr(std::min(text.find_first_not_of(" \t\r\n", 8), text.size())).substr(0, 1) == "{";
  const bool torch = text.substr(0, 300).find("data.pkl") != std::string_view::npos;
  return text.substr(0, kind.start.size()) == kind.start && (torch || kind.name != "torch.save");
}

}  // namespace

void check_kind(const Span& file, std::string_view wanted) {
  const Kind* found = nullptr;
  for (const Kind& kind : kinds) {
    if (!is(kind, file.text())) continue;
    if (kind.name == wanted && !(found != nullptr && found->name == "torch.save")) return;
    if (found == nullptr) found = &kind;
  }
  if (found != nullptr) file.source().fail("is not a {} file; {}", wanted, found->instead);
}

void check_names(const char* op, const NamedTensors& tensors) {
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto& [name, tensor] = tensors.begin()[static_cast<std::ptrdiff_t>(i)];
    const bool nul = name.find('\0') != std::string::npos;
    require<ValueError>(!nul && is_utf8(name),
                        "{}: the name of tensor {} (shape {}) {}, which other readers refuse; rename it", op, i,
                        shape_of(tensor), nul ? "contains a NUL character" : "is not valid UTF-8");
  }
}

}  // namespace tapehead::detail
