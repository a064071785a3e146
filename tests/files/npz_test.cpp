// Reader and writer of .npz archives: by hand-made ones, each fault of its own. golden_files_test.cpp reads
// what NumPy itself wrote.
#include <cstdint>
#include <string>
#include <vector>

#include "files/npy_bytes.hpp"
#include "tapehead/ops/arithmetic.hpp"
#include "tapehead/files/npy.hpp"
#include "tapehead/ops/views.hpp"
#include "testing.hpp"

using namespace tapehead;
using namespace std::string_literals;
using namespace testing;

namespace {

// One array of a zip archive, every field to be set apart.
struct Part {
  std::string name = "a.npy", bytes;
  std::uint64_t crc = 0, size = bytes.size(), method = 0, packed = bytes.size(), flags = 0;
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
    const std::string both = little(20, 2) + little(p.flags, 2) + little(p.method, 2) + little(0, 4) +
                             little(p.crc, 4) + little(p.packed, 4) + little(p.size, 4) +
                             little(p.name.size(), 2) + little(0, 2);
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

// A deflate stream of one block by the fixed code: bytes as they are, and runs of 258 more of the last one.
class Deflate {
 public:
  Deflate() { put(1, 1), put(1, 2); }
  Deflate& bytes(const std::string& text) {
    for (char c : text) {
      const auto b = static_cast<unsigned char>(c);
      b < 144 ? word(0x30 + b, 8) : word(0x190 + b - 144, 9);
    }
    return *this;
  }
  Deflate& run(int times) {
    for (int i = 0; i < times; ++i) word(0xc5, 8), word(0, 5);  // length 258, distance 1
    return *this;
  }
  std::string end() {
    word(0, 7);
    return out_;
  }

 private:
  void put(int value, int bits) {
    for (int i = 0; i < bits; ++i, ++held_) {
      if (held_ % 8 == 0) out_ += '\0';
      out_.back() = static_cast<char>(out_.back() | (value >> i & 1) << held_ % 8);
    }
  }
  void word(int code, int bits) {  // a code's words go in highest bit first
    for (int i = bits - 1; i >= 0; --i) put(code >> i & 1, 1);
  }
  std::string out_;
  int held_ = 0;
};
Part deflated(const std::string& bytes) {
  return {"a.npy", Deflate().bytes(bytes).end(),       crc_of(bytes), bytes.size(),
          8,       Deflate().bytes(bytes).end().size()};
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
        "get<float>: 'h.0/weight' holds double elements, which float does not hold exactly; get<double>, "
        "then to<float>()"sv);
  CHECK(message<ValueError>([&] {
          NamedTensors{{"x", scalar(1.0)}, {"x", scalar(1.f)}};
        }) == "add: there is a tensor 'x' already"sv);
  save_npz(folder.path("none.npz"), {});
  CHECK(load_npz(folder.path("none.npz")).size() == 0);
}

TEST_CASE("npz: compressed entries, and a comment at the end") {
  const std::string array = npy("<f8", "(6,)", doubles);
  CHECK(equal(from_zip(zip({whole("x.npy", array)}, "a comment")).get<double>("x"), {1, 2, 3, 4, 5, 6}));
  CHECK(equal(from_zip(zip({deflated(array)})).get<double>("a"), {1, 2, 3, 4, 5, 6}));
  // the same as a stored block: last, kind 0, length and its complement
  const std::string stored = "\1" + little(array.size(), 2) + little(~array.size(), 2) + array;
  CHECK(equal(
      from_zip(zip({{"a.npy", stored, crc_of(array), array.size(), 8, stored.size()}})).get<double>("a"),
      {1, 2, 3, 4, 5, 6}));
  const std::string zeros = npy("|u1", "(2580,)", "");
  const std::string run = Deflate().bytes(zeros + '\0').run(9).bytes(std::string(257, '\0')).end();
  const std::string plain = zeros + std::string(2580, '\0');
  CHECK(equal(
      from_zip(zip({{"a.npy", run, crc_of(plain), plain.size(), 8, run.size()}})).get<std::int64_t>("a"),
      tapehead::zeros<std::int64_t>({2580})));
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
  CHECK(with([](Part& p) { p.crc ^= 1; }) ==
        "/a': the checksum of 'a.npy' is wrong: its bytes have changed"sv);
  CHECK(with([](Part& p) { p.bytes.back() ^= 1; }) ==
        "/a': the checksum of 'a.npy' is wrong: its bytes have changed"sv);
  CHECK(with([](Part& p) { p.flags = 1; }) == "/a': 'a.npy' is encrypted"sv);
  CHECK(with([](Part& p) { p.method = 12; }) ==
        "/a': 'a.npy' is packed by method 12; stored (0) and deflate (8) can be read"sv);
  CHECK(with([](Part& p) { p.size += 8; }) == "/a': 'a.npy' is stored, but its two sizes differ"sv);
  CHECK(with([](Part& p) { p.size = p.packed = 0x7fffffff; }) == "': its entries overlap"sv);
  CHECK(with([](Part& p) { p.size = 0xffffffff; }) ==
        "': 'a.npy' needs the zip64 extension; archives up to 4 GiB can be read"sv);
  CHECK(with([](Part& p) { p.name = "a.txt"; }) ==
        "': 'a.txt' is not an array: its name does not end in .npy"sv);
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

TEST_CASE("npz: compressed data that is damaged, or is not as long as it says") {
  const std::string array = npy("<f8", "(6,)", doubles);
  const auto with = [&](auto change) {
    Part part = deflated(array);
    change(part);
    return npz_refusal(zip({part}));
  };
  CHECK(with([](Part& p) { p.crc ^= 1; }) ==
        "/a': the checksum of 'a.npy' is wrong: its bytes have changed"sv);
  CHECK(with([](Part& p) { --p.size; }).find("bytes by its header and") != std::string::npos);
  CHECK(with([](Part& p) { p.bytes.resize(p.packed = 40); }) == "/a': compressed data is cut short"sv);
  CHECK(with([](Part& p) { p.bytes[0] = '\7'; }) == "/a': compressed data is damaged"sv);  // block kind 3
  const auto stream = [&](const std::string& bytes) {
    return with([&](Part& p) { p.bytes = bytes, p.packed = bytes.size(); });
  };
  CHECK(stream("\1" + little(array.size(), 2) + little(array.size(), 2) + array) ==
        "/a': compressed data is damaged"sv);
  CHECK(stream("\5\0\x92\0\0\0\0\0"s) ==
        "/a': compressed data is damaged"sv);  // three words of one bit: by their lengths, too many
  CHECK(with([](Part& p) { p.bytes.clear(), p.packed = 0; }) == "/a': compressed data is cut short"sv);
  const auto packed = [&](const std::string& bytes, std::uint64_t size) {
    return npz_refusal(zip({{"a.npy", bytes, 0, size, 8, bytes.size()}}));
  };
  const std::string header = npy("<f8", "(6,)", "");
  CHECK(packed(Deflate().bytes(array).run(400'000).end(), array.size()) ==  // 100 MB follow
        "/a': 'a.npy' unpacks to more bytes than its " + std::to_string(array.size()));
  CHECK(packed(Deflate().bytes(array).run(400'000).end(), array.size() + 258 * 400'000)
            .find("bytes by its header and") != std::string::npos);
  const std::string huge = npy("<f8", "(500000000,)", "");
  CHECK(packed(Deflate().bytes(huge + "12345").end(), huge.size() + 4'000'000'000) ==
        "/a': 'a.npy' unpacks to fewer bytes than its " + std::to_string(huge.size() + 4'000'000'000));
  CHECK(packed(Deflate().bytes("\x93NUMPY\2\0\xf0\xff\xff\xff{"s).end(), 4'000'000'000).find("cut short") !=
        std::string::npos);
}

TEST_CASE("npz: any byte may be wrong, and any error is a FileError") {
  const std::string array = npy("<f8", "(6,)", doubles, true, 2);
  for (const std::string& good :
       {zip({whole("a.npy", array), whole("b.npy", array)}), zip({deflated(array)}), array}) {
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
