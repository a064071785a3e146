// Readers and writers of NumPy's files: by hand-made files, each fault of its own. golden_files_test.cpp
// reads what NumPy itself wrote.
#include "tapehead/npy.hpp"

#include <sys/resource.h>

#include <cmath>

#include "files.hpp"
#include "tapehead/arithmetic.hpp"
#include "tapehead/memory.hpp"
#include "tapehead/tape.hpp"
#include "tapehead/views.hpp"
#include "testing.hpp"

using namespace tapehead;
using namespace std::string_literals;
using testing::Folder;
using testing::little;
using testing::message;

namespace {

std::string header_bytes(int major, const std::string& header) {
  return "\x93NUMPY" + little(static_cast<std::uint64_t>(major), 1) + little(0, 1) +
         little(header.size(), major == 1 ? 2 : 4) + header;
}
std::string npy(const std::string& descr, const std::string& shape, const std::string& elements,
                bool fortran = false, int major = 1, std::size_t padding = 0) {
  const std::string order = fortran ? "True" : "False";
  return header_bytes(major, "{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape +
                                 ", }" + std::string(padding, ' ') + "\n") +
         elements;
}
template <class V>
std::string bytes_of(std::initializer_list<V> values) {
  return {reinterpret_cast<const char*>(values.begin()), values.size() * sizeof(V)};
}

// What loading it says; fails the test where that takes memory that the file does not warrant.
template <class F>
std::string refusal(std::size_t file_size, const F& load) {
  const auto resident = [] {
    rusage use{};
    getrusage(RUSAGE_SELF, &use);
    return use.ru_maxrss;
  };  // KiB; bytes on macOS
  reset_peak_memory();
  const std::int64_t held = memory_use().bytes;
  const long before = resident();
  const std::string text = message<FileError>(load);
  CHECK(memory_use().peak_bytes - held <= static_cast<std::int64_t>(file_size) + 4096);
  CHECK(resident() - before <= 32 * 1024);
  return text;
}
std::string npy_refusal(const std::string& bytes) {
  const Folder folder;
  const std::string path = folder.write("x.npy", bytes);
  const std::string text = refusal(bytes.size(), [&] { load_npy<double>(path); });
  const std::string start = "load_npy: '" + path + "': ";
  CHECK(text.substr(0, start.size()) == start);
  return text.substr(std::min(start.size(), text.size()));
}
template <class E>
Tensor<E> from_bytes(const std::string& bytes) {
  const Folder folder;
  return load_npy<E>(folder.write("x.npy", bytes));
}

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
  const Folder folder;
  const std::string path = folder.write("x.npz", bytes);
  const std::string text = refusal(bytes.size(), [&] { load_npz(path); });
  const std::string start = "load_npz: '" + path;
  CHECK(text.substr(0, start.size()) == start);
  return text.substr(std::min(start.size(), text.size()));
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

const std::string doubles = bytes_of({1.0, 2.0, 3.0, 4.0, 5.0, 6.0});

}  // namespace

TEST_CASE("npy: what is written is read back, every type, rank and layout") {
  const Folder folder;
  const auto back = [&](const auto& x) {
    using E = typename std::decay_t<decltype(x)>::element;
    const std::string path = folder.path("x.npy");
    save_npy(path, x);
    CHECK(testing::read_bytes(path).find('\n') % 64 == 63);  // the elements are aligned, as the format asks
    CHECK(equal(load_npy<E>(path), x));
    CHECK(load_npy<E>(path).shape() == x.shape());
  };
  const auto x = arange<double>(720).reshape({2, 3, 4, 5, 6, 1});
  back(x), back(to<float>(x)), back(to<std::int64_t>(x)), back(to<bool>(x));
  back(x.transpose(0, 3)), back(x.slice(2, 0, 4, 2)), back(flip(x, 1)),
      back(broadcast_to(x, {2, 3, 4, 5, 6, 7}));
  back(scalar(2.5)), back(zeros<double>({0})), back(zeros<float>({2, 0, 3})), back(Tensor<double>());
  CHECK(folder.files() == 1);  // no temporary file is left
}

TEST_CASE("row 43: npy in Fortran order, in the other byte order, in every version, at every shape") {
  CHECK(equal(from_bytes<double>(npy("<f8", "(2, 3)", bytes_of({1.0, 4.0, 2.0, 5.0, 3.0, 6.0}), true)),
              {{1, 2, 3}, {4, 5, 6}}));
  CHECK(equal(from_bytes<float>(npy(">f4", "(1,)", "\x3f\x80\0\0"s)), {1.0f}));
  CHECK(equal(from_bytes<double>(npy(">f8", "(1,)", "\x40\x0c\0\0\0\0\0\0"s)), {3.5}));
  CHECK(equal(from_bytes<std::int64_t>(npy(">i2", "(2,)", "\xff\xfe\1\0"s)), {-2, 256}));
  for (int major : {1, 2, 3}) {
    for (std::size_t padding : {0u, 1u, 117u, 5000u})
      CHECK(
          equal(from_bytes<double>(npy("<f8", "(6,)", doubles, false, major, padding)), {1, 2, 3, 4, 5, 6}));
    const auto value = from_bytes<double>(npy("<f8", "()", bytes_of({3.5}), false, major));
    CHECK(value.item() == 3.5);
    CHECK(value.rank() == 0);
  }
  CHECK(from_bytes<double>(npy("<f8", "(0,)", "")).shape() == Shape{0});
  CHECK(from_bytes<double>(npy("<f8", "(2, 0)", "")).shape() == Shape{2, 0});
  CHECK(from_bytes<double>(npy("<f8", "(2, 0)", "", true)).shape() == Shape{2, 0});
}

TEST_CASE("npy: a header's order, quotes and spaces are free, and Python 2's numbers are read") {
  for (const char* header : {"{'shape':(6,),'fortran_order':False,'descr':'<f8'}",
                             "{ \"descr\" : \"<f8\" , 'fortran_order' : False, 'shape' : ( 6 , ) , }  \n",
                             "{'descr': '<f8', 'fortran_order': False, 'shape': (6L,), }\n"})
    CHECK(equal(from_bytes<double>(header_bytes(1, header) + doubles), {1, 2, 3, 4, 5, 6}));
}

TEST_CASE("npy: elements are converted where nothing is lost, and refused where it would be") {
  CHECK(equal(from_bytes<double>(npy("<f4", "(2,)", bytes_of({0.1f, -2.f}))), {double(0.1f), -2}));
  CHECK(equal(from_bytes<double>(npy("<i4", "(2,)", bytes_of({7, -8}))), {7, -8}));
  CHECK(equal(from_bytes<std::int64_t>(npy("|u1", "(2,)", "\x07\xff")), {7, 255}));
  CHECK(equal(from_bytes<float>(npy("|b1", "(3,)", "\0\1\2"s)), {0, 1, 1}));
  CHECK(equal(from_bytes<bool>(npy("|b1", "(3,)", "\0\1\2"s)), {false, true, true}));
  // float16: 1, -2, the largest, the smallest normal and subnormal, -0, inf
  const auto half = from_bytes<float>(
      npy("<f2", "(7,)", bytes_of<std::uint16_t>({0x3c00, 0xc000, 0x7bff, 0x0400, 0x0001, 0x8000, 0x7c00})));
  CHECK(equal(half, {1, -2, 65504, 0x1p-14, 0x1p-24, 0, INFINITY}));
  CHECK(std::signbit(half.at({5})));
  const auto nan = from_bytes<float>(npy("<f2", "(1,)", bytes_of<std::uint16_t>({0x7e01})));
  CHECK(std::isnan(nan.item()));

  const Folder folder;
  const std::string path = folder.write("w.npy", npy("<f8", "(1,)", bytes_of({0.5})));
  CHECK(message<ValueError>([&] { load_npy<float>(path); }) ==
        "load_npy<float>: '" + path +
            "' holds double elements, which float does not hold exactly; load_npy<double>, then to<float>()");
  CHECK_THROWS_AS(load_npy<std::int64_t>(path), ValueError);
  CHECK_THROWS_AS(load_npy<bool>(path), ValueError);
  const std::int64_t most = std::int64_t{1} << 53;
  CHECK(equal(from_bytes<double>(npy("<i8", "(2,)", bytes_of({most, -most}))), {0x1p53, -0x1p53}));
  const std::string wide = folder.write("n.npy", npy("<i8", "(1,)", bytes_of({most + 1})));
  CHECK(message<ValueError>([&] { load_npy<double>(wide); }) ==
        "load_npy<double>: '" + wide +
            "' holds 9007199254740993, and double may round whole numbers beyond ±9007199254740992; "
            "load_npy<int64> is exact");
  CHECK_THROWS_AS(from_bytes<float>(npy("<i4", "(1,)", bytes_of({(1 << 24) + 1}))), ValueError);
  CHECK(npy_refusal(npy("<u8", "(1,)", bytes_of({~std::uint64_t{0}}))) ==
        "the unsigned number 18446744073709551615 does not fit an int64"sv);
}

TEST_CASE("row 44: npy lengths are not trusted") {
  const std::string good = npy("<f8", "(2, 3)", doubles);
  REQUIRE(from_bytes<double>(good).shape() == Shape{2, 3});
  for (std::size_t size = 0; size < good.size(); ++size)
    CHECK(npy_refusal(good.substr(0, size)).find("cut short") != std::string::npos);
  CHECK(npy_refusal("\x93NUMPY\2\0\xf0\xff\xff\xff"s) ==
        "the header should be bytes 12 to 4294967292, and there are only 12: cut short, or damaged"sv);
  CHECK(npy_refusal(good + "xyz") == "3 bytes are left over after the array"sv);
  CHECK(npy_refusal(npy("<f8", "(1099511627776,)", doubles)).find("the elements should be bytes") == 0);
  CHECK(npy_refusal(npy("<f8", "(4294967296, 4294967296)", doubles)) ==
        "shape: (4294967296, 4294967296) has more than 2^63 - 1 elements"sv);
  CHECK(npy_refusal(npy("<f8", "(9223372036854775807,)", doubles)) ==
        "shape (9223372036854775807,) is more than there can be"sv);
  CHECK(npy_refusal(npy("<f8", "(-6,)", doubles)) == "shape: (-6,) has a negative size"sv);
  CHECK(npy_refusal(npy("<f8", "(1, 1, 1, 1, 1, 2, 3)", doubles)) ==
        "an array of 7 axes; a tensor has at most 6"sv);
}

TEST_CASE("npy: a damaged header is told where") {
  const auto refused = [](const std::string& header) {
    return npy_refusal(header_bytes(1, header) + doubles);
  };
  CHECK(npy_refusal("PK\3\4 and more") == "is not a .npy file: it does not start with \\x93NUMPY"sv);
  CHECK(npy_refusal("\x93NUMPY\4\0\0\0\0\0"s) == "has format version 4.0; 1.0, 2.0 and 3.0 can be read"sv);
  CHECK(refused("{'descr': '<c16', 'fortran_order': False, 'shape': (3,), }") ==
        "holds elements of type '<c16'; float16, float32, float64, bool and integers can be read"sv);
  CHECK(refused("{'descr': '|O', 'fortran_order': False, 'shape': (3,), }")
            .find("holds elements of type '|O'") == 0);
  CHECK(refused("{'descr': '', 'fortran_order': False, 'shape': (3,), }").find("holds elements of type ''") ==
        0);
  CHECK(refused("{'descr': [('x', '<f8')], 'fortran_order': False, 'shape': (6,), }") ==
        "in the header: structured elements; only plain numbers can be read"sv);
  CHECK(refused("{'descr': '<f8', 'fortran_order': 0, 'shape': (6,), }") ==
        "in the header: '0, 'shape': ' where True or False should be"sv);
  CHECK(refused("{'descr': '<f8', 'fortran_order': False, 'shape': (6.0,), }") ==
        "in the header: '.0,), }' where a ')' should be"sv);
  CHECK(refused("{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999999999,), }") ==
        "in the header: '99999999999999999999,), ' where a size should be"sv);
  CHECK(refused("{'descr': '<f8', 'fortran_order': False, 'shape': 6}") ==
        "in the header: '6}' where a '(' should be"sv);
  CHECK(refused("{'descr': '<f8', 'fortran_order': False}") ==
        "in the header: it must have descr, fortran_order and shape"sv);
  CHECK(refused("{'descr': '<f8', 'fortran_order': False, 'shape': (6,), 'more': 1}") ==
        "in the header: an unknown key 'more'"sv);
  CHECK(refused("{'descr': '<f8', 'fortran_order': False, 'shape': (6,)} x") ==
        "in the header: text after its closing brace"sv);
  CHECK(refused("{'descr': '<f8', 'fortran_order': False, 'shape': (6,)") ==
        "in the header: it ends where a '}' should be"sv);
  CHECK(refused("").find("in the header: it ends where a '{'") == 0);
}

TEST_CASE("npy: files that are not there, not files, or cannot be written") {
  const Folder folder;
  CHECK(message<FileError>([&] { load_npy<double>(folder.path("none.npy")); }) ==
        "load_npy: '" + folder.path("none.npy") + "': No such file or directory");
  CHECK(message<FileError>([&] { load_npy<double>(folder.path("")); }).find("Is a directory") !=
        std::string::npos);
  CHECK(message<FileError>([&] { save_npy(folder.path("no/x.npy"), scalar(1.0)); }) ==
        "save_npy: '" + folder.path("no/x.npy") + "': cannot be written there: No such file or directory");
  CHECK_THROWS_AS(save_npz(folder.path(""), {{"x", scalar(1.0)}}), FileError);
  CHECK(folder.files() == 0);
}

TEST_CASE("npy: saving within a tape records nothing") {
  const Folder folder;
  const auto x = arange<double>(6).reshape({2, 3});
  Tape<double> tape;
  tape.watch(x);
  const auto y = x.T();
  const auto records = tape.size();
  save_npy(folder.path("y.npy"), y);
  save_npz(folder.path("y.npz"), {{"y", y}});
  CHECK(tape.size() == records);
  CHECK(equal(load_npy<double>(folder.path("y.npy")), y));
}

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
