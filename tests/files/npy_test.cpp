// Readers and writers of NumPy's files: by hand-made files, each fault of its own. golden_files_test.cpp
// reads what NumPy itself wrote.
#include "tapehead/files/npy.hpp"

#include <cmath>

#include "files/npy_bytes.hpp"
#include "tapehead/autograd/tape.hpp"
#include "tapehead/ops/arithmetic.hpp"
#include "tapehead/ops/views.hpp"
#include "testing.hpp"

using namespace tapehead;
using namespace std::string_literals;
using namespace testing;

namespace {

std::string npy_refusal(const std::string& bytes) {
  return refusal("load_npy: '", "': ", bytes, [](const std::string& path) { load_npy<double>(path); });
}
template <class E> Tensor<E> from_bytes(const std::string& bytes) {
  const Folder folder;
  return load_npy<E>(folder.write("x.npy", bytes));
}

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
  back(x.transpose(0, 3)), back(x.slice(2, 0, 4, 2)), back(flip(x, 1)), back(broadcast_to(x, {2, 3, 4, 5, 6, 7}));
  back(scalar(2.5)), back(zeros<double>({0})), back(zeros<float>({2, 0, 3})), back(Tensor<double>());
  CHECK(folder.files() == 1);  // no temporary file is left
}

TEST_CASE("npy: arrays in Fortran order, in the other byte order, in every version, at every shape") {
  CHECK(equal(from_bytes<double>(npy("<f8", "(2, 3)", bytes_of({1.0, 4.0, 2.0, 5.0, 3.0, 6.0}), true)),
              {{1, 2, 3}, {4, 5, 6}}));
  CHECK(equal(from_bytes<float>(npy(">f4", "(1,)", "\x3f\x80\0\0"s)), {1.0f}));
  CHECK(equal(from_bytes<double>(npy(">f8", "(1,)", "\x40\x0c\0\0\0\0\0\0"s)), {3.5}));
  CHECK(equal(from_bytes<std::int64_t>(npy(">i2", "(2,)", "\xff\xfe\1\0"s)), {-2, 256}));
  for (int major : {1, 2, 3}) {
    for (std::size_t padding : {0u, 1u, 117u, 5000u})
      CHECK(equal(from_bytes<double>(npy("<f8", "(6,)", doubles, false, major, padding)), {1, 2, 3, 4, 5, 6}));
    const auto value = from_bytes<double>(npy("<f8", "()", bytes_of({3.5}), false, major));
    CHECK(value.item() == 3.5);
    CHECK(value.rank() == 0);
  }
  CHECK(from_bytes<double>(npy("<f8", "(0,)", "")).shape() == Shape{0});
  CHECK(from_bytes<double>(npy("<f8", "(2, 0)", "")).shape() == Shape{2, 0});
  CHECK(from_bytes<double>(npy("<f8", "(2, 0)", "", true)).shape() == Shape{2, 0});
}

TEST_CASE("npy: a header's order, quotes and spaces are free") {
  for (const char* header : {"{'shape':(6,),'fortran_order':False,'descr':'<f8'}",
                             "{ \"descr\" : \"<f8\" , 'fortran_order' : False, 'shape' : ( 6 , ) , }  \n"})
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
            "' holds double elements, which float does not hold exactly; call load_npy<double>, then "
            "to<float>()");
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

TEST_CASE("npy: lengths are not trusted") {
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
        "shape (9223372036854775807,) is larger than any memory"sv);
  CHECK(npy_refusal(npy("<f8", "(-6,)", doubles)) == "shape: (-6,) has a negative size"sv);
  CHECK(npy_refusal(npy("<f8", "(1, 1, 1, 1, 1, 2, 3)", doubles)) == "an array of 7 axes; a tensor has at most 6"sv);
}

TEST_CASE("npy: a damaged header is told where") {
  const auto refused = [](const std::string& header) { return npy_refusal(header_bytes(1, header) + doubles); };
  CHECK(npy_refusal("hello, world") == "is not a .npy file: it does not start with \\x93NUMPY"sv);
  CHECK(npy_refusal("\x93NUMPY\4\0\0\0\0\0"s) == "has format version 4.0; 1.0, 2.0 and 3.0 can be read"sv);
  CHECK(refused("{'descr': '<c16', 'fortran_order': False, 'shape': (3,), }") ==
        "holds elements of type '<c16'; floating-point numbers of 16 (F16, BF16), 32 and 64 bits, bool and "
        "integers "
        "can be read"sv);
  CHECK(refused("{'descr': '|O', 'fortran_order': False, 'shape': (3,), }").find("holds elements of type '|O'") == 0);
  CHECK(refused("{'descr': '', 'fortran_order': False, 'shape': (3,), }").find("holds elements of type ''") == 0);
  CHECK(refused("{'descr': [('x', '<f8')], 'fortran_order': False, 'shape': (6,), }") ==
        "in the header: '[('x', '<f8')], ' where a string in quotes should be"sv);
  CHECK(refused("{'descr': '<f8', 'fortran_order': 0, 'shape': (6,), }") ==
        "in the header: '0, 'shape': (6,)' where True or False should be"sv);
  CHECK(refused("{'descr': '<f8', 'fortran_order': False, 'shape': (6.0,), }") ==
        "in the header: '.0,), }' where a ')' should be"sv);
  CHECK(refused("{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999999999,), }") ==
        "in the header: '9999999999999999' where a whole number should be"sv);
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
  CHECK(message<FileError>([&] { load_npy<double>(folder.path("")); }).find("Is a directory") != std::string::npos);
  CHECK(message<FileError>([&] { save_npy(folder.path("no/x.npy"), scalar(1.0)); }) ==
        "save_npy: '" + folder.path("no/x.npy") +
            "': cannot be written: No such file or directory; make its folder first");
  CHECK_THROWS_AS(save_npz(folder.path(""), {{"x", scalar(1.0)}}), FileError);
  CHECK(folder.files() == 0);
}

TEST_CASE("npy: a file of another kind is named, with the way to load it") {
  CHECK(npy_refusal("PK\3\4 and more") ==
        "is not a .npy file; it is a zip archive, as .npz files are: call load_npz"sv);
  CHECK(npy_refusal("PK\3\4 archive/data.pkl").find("is not a .npy file; it was written by torch.save.") == 0);
  CHECK(npy_refusal("\x1f\x8b\x08") == "is not a .npy file; it is compressed by gzip: unpack it with gunzip first"sv);
  CHECK(npy_refusal("version https://git-lfs.github.com/spec/v1\n") ==
        "is not a .npy file; it is only Git LFS's pointer to the file: run git lfs pull"sv);
  CHECK(npy_refusal(little(2, 8) + "{}") == "is not a .npy file; it is a .safetensors file: call load_safetensors"sv);
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
