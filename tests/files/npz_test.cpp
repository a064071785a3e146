// Reader and writer of .npz archives: by hand-made ones, each fault of its own. golden_files_test.cpp reads
// what NumPy itself wrote.
#include <cstdint>
#include <string>
#include <vector>

#include "files/npy_bytes.hpp"
#include "tapehead/files/npy.hpp"
#include "tapehead/ops/arithmetic.hpp"
#include "tapehead/ops/views.hpp"
#include "testing.hpp"

using namespace tapehead;
using namespace std::string_literals;
using namespace testing;

namespace {

// One array of a zip archive, every field to be set apart.
struct Part {
  std::string name = "a.npy", bytes;
  std::uint64_t crc = 0, size = bytes.size(), method = 0, packed = bytes.size();
};
std::uint64_t crc_of(const std::string& bytes) {
  std::uint32_t crc = ~0u;
  for (char c : bytes) {
    crc ^= static_cast<unsigned char>(c);
    for (int i = 0; i < 8; ++i) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
  }
  return ~crc;
}
std::string zip(const std::vector<Part>& parts, const std::string& comment = "") {
  std::string file, directory;
  for (const Part& p : parts) {
    const std::string both = little(20, 2) + little(0, 2) + little(p.method, 2) + little(0, 4) + little(p.crc, 4) +
                             little(p.packed, 4) + little(p.size, 4) + little(p.name.size(), 2) + little(0, 2);
    directory += "PK\1\2" + little(20, 2) + both + little(0, 10) + little(file.size(), 4) + p.name;
    file += "PK\3\4" + both + p.name + p.bytes;
  }
  const std::uint64_t at = file.size();
  return file + directory + "PK\5\6" + little(0, 4) + little(parts.size(), 2) + little(parts.size(), 2) +
         little(directory.size(), 4) + little(at, 4) + little(comment.size(), 2) + comment;
}
Part whole(const std::string& name, const std::string& bytes) {
  return {name, bytes, crc_of(bytes), bytes.size(), 0, bytes.size()};
}

NamedTensors from_zip(const std::string& bytes) {
  const Folder folder;
  return load_npz(folder.write("x.npz", bytes));
}
std::string npz_refusal(const std::string& bytes) {
  return refusal("load_npz: '", "", bytes, [](const std::string& path) { load_npz(path); });
}

}  // namespace

TEST_CASE("npz: tensors by name, of several types, and the same bytes each time") {
  const Folder folder;
  const NamedTensors saved{{"h.0/weight", arange<double>(6).reshape({2, 3}).T()},
                           {"keep", Tensor<bool>{true, false}},
                           {"ids", arange<std::int64_t>(4)},
                           {"float", scalar(0.1f)},
                           {"", zeros<float>({0})}};
  save_npz(folder.path("a.npz"), saved);
  save_npz(folder.path("b.npz"), saved);
  CHECK(testing::read_bytes(folder.path("a.npz")) == testing::read_bytes(folder.path("b.npz")));
  const NamedTensors loaded = load_npz(folder.path("a.npz"));
  CHECK(loaded.size() == 5);
  CHECK(loaded.begin()->first == "h.0/weight"sv);
  CHECK(equal(loaded.get<double>("h.0/weight"), {{0, 3}, {1, 4}, {2, 5}}));
  CHECK(equal(loaded.get<bool>("keep"), {true, false}));
  CHECK(equal(loaded.get<std::int64_t>("ids"), {0, 1, 2, 3}));
  CHECK(equal(loaded.get<double>("ids"), {0, 1, 2, 3}));
  CHECK(loaded.get<double>("float").item() == double(0.1f));
  CHECK(loaded.shape("") == Shape{0});
  CHECK(message<IndexError>([&] { loaded.get<double>("bias"); }) ==
        "get: there is no tensor 'bias'; there are 'h.0/weight', 'keep', 'ids', 'float', ''"sv);
  CHECK(message<ValueError>([&] { loaded.get<float>("h.0/weight"); }) ==
        "get<float>: 'h.0/weight' holds double elements, which float does not hold exactly; call "
        "get<double>, then to<float>()"sv);
  CHECK(message<ValueError>([&] {
          NamedTensors{{"x", scalar(1.0)}, {"x", scalar(1.f)}};
        }) == "add: there is a tensor 'x' already"sv);
  save_npz(folder.path("none.npz"), {});
  CHECK(load_npz(folder.path("none.npz")).size() == 0);
}

TEST_CASE("npz: a comment at the end of the archive") {
  const std::string array = npy("<f8", "(6,)", doubles);
  CHECK(equal(from_zip(zip({whole("x.npy", array)}, "a comment")).get<double>("x"), {1, 2, 3, 4, 5, 6}));
}

TEST_CASE("npz: a compressed archive is refused, and the message names np.savez") {
  const std::string array = npy("<f8", "(6,)", doubles);
  for (const std::uint64_t method : {8u, 12u}) {  // deflate and bzip2
    Part part = whole("a.npy", array);
    part.method = method;
    CHECK(npz_refusal(zip({part})) ==
          "/a': 'a.npy' is compressed; write the archive with np.savez instead of np.savez_compressed"sv);
  }
}

TEST_CASE("npz: names that other readers refuse are refused") {
  const Folder folder;
  for (const char* name : {"\xff", "a\xc3", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80"})
    CHECK(message<ValueError>([&] {
            save_npz(folder.path("x.npz"), {{"good", scalar(1.0)}, {name, zeros<float>({2, 3})}});
          }) ==
          "save_npz: the name of tensor 1 (shape (2, 3)) is not valid UTF-8, which other readers refuse; rename it"sv);
  CHECK(message<ValueError>([&] {
          save_npz(folder.path("x.npz"), {{"a\0b"s, scalar(1.0)}});
        }) ==
        "save_npz: the name of tensor 0 (shape ()) contains a NUL character, which other readers refuse; "
        "rename "
        "it"sv);
  CHECK(folder.files() == 0);
  save_npz(folder.path("x.npz"), {{"Ω → 𝄞", scalar(1.0)}});
  CHECK(load_npz(folder.path("x.npz")).contains("Ω → 𝄞"));
}

TEST_CASE("npz: a file of another kind is named, with the way to load it") {
  const std::string array = npy("<f8", "(6,)", doubles);
  const auto start = [](const std::string& text) { return text.substr(0, 75); };
  CHECK(npz_refusal(array) == "': is not a .npz file; it is a .npy file: call load_npy"sv);
  CHECK(start(npz_refusal(zip({whole("model/data.pkl", "x"), whole("model/version", "3")}))) ==
        "': is not a .npz file; it was written by torch.save. In Python, load it wit"sv);
  CHECK(start(npz_refusal("\x1f\x8b\x08\0\0\0\0\0\0\3"s)) ==
        "': is not a .npz file; it is compressed by gzip: unpack it with gunzip firs"sv);
  CHECK(start(npz_refusal("\x80\4\x95"s)) ==
        "': is not a .npz file; it is a Python pickle, or an old torch.save file. Lo"sv);
  CHECK(npz_refusal(little(2, 8) + "{}") ==
        "': is not a .npz file; it is a .safetensors file: call load_safetensors"sv);
}

TEST_CASE("npz: archives that are damaged or lie") {
  const std::string array = npy("<f8", "(6,)", doubles), good = zip({whole("a.npy", array)});
  REQUIRE(from_zip(good).size() == 1);
  for (std::size_t size = 0; size < good.size(); ++size)
    CHECK(npz_refusal(good.substr(0, size)) ==
          "': is not a .npz file: it has no end of a zip archive, or is cut short"sv);
  const auto with = [&](auto change) {
    Part part = whole("a.npy", array);
    change(part);
    return npz_refusal(zip({part}));
  };
  CHECK(with([](Part& p) { p.crc ^= 1; }) == "/a': the checksum of 'a.npy' is wrong: its bytes have changed"sv);
  CHECK(with([](Part& p) { p.bytes.back() ^= 1; }) ==
        "/a': the checksum of 'a.npy' is wrong: its bytes have changed"sv);
  CHECK(with([](Part& p) { p.size += 8; }) == "/a': 'a.npy' is not compressed, but its two sizes differ"sv);
  CHECK(with([](Part& p) { p.size = p.packed = 0x7fffffff; }) == "': its entries overlap"sv);
  CHECK(with([](Part& p) { p.size = 0xffffffff; }) ==
        "': 'a.npy' needs the zip64 extension; archives up to 4 GiB can be read"sv);
  CHECK(with([](Part& p) { p.name = "a.txt"; }) == "': 'a.txt' is not an array: its name does not end in .npy"sv);
  CHECK(npz_refusal(zip({whole("a.npy", array), whole("a.npy", array)})) == "': has two arrays 'a'"sv);
  std::string moved = good;
  moved.replace(moved.size() - 6, 4, little(9, 4));  // where the directory starts
  CHECK(npz_refusal(moved).find("its directory is damaged") != std::string::npos);
  moved.replace(moved.size() - 6, 4, little(0x7fffffff, 4));
  CHECK(npz_refusal(moved).find("the directory should be bytes 2147483647 to") != std::string::npos);
  std::string elsewhere = good;
  elsewhere.replace(elsewhere.size() - 22 - 5 - 4, 4, little(3, 4));  // where the entry's local header is
  CHECK(npz_refusal(elsewhere) == "/a': 'a.npy' is not where the directory says"sv);
}

TEST_CASE("npz: any byte may be wrong, and any error is a FileError") {
  const std::string array = npy("<f8", "(6,)", doubles, true, 2);
  for (const std::string& good : {zip({whole("a.npy", array), whole("b.npy", array)}), array}) {
    const Folder folder;
    for (std::size_t at = 0; at < good.size(); ++at) {
      for (int change : {0x01, 0x80, 0xff}) {
        std::string bytes = good;
        bytes[at] = static_cast<char>(bytes[at] ^ change);
        const std::string path = folder.write("x", bytes);
        const std::string text =
            message<FileError>([&] { good == array ? (void)load_npy<double>(path) : (void)load_npz(path); });
        CHECK(text.find("[another") == std::string::npos);
      }
    }
  }
}
