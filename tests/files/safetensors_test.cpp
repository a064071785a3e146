#include "tapehead/files/safetensors.hpp"

#include <cmath>

#include "files.hpp"
#include "tapehead/ops/arithmetic.hpp"
#include "tapehead/ops/views.hpp"
#include "testing.hpp"

using namespace tapehead;
using namespace std::string_literals;
using testing::Folder;
using testing::little;
using testing::message;

namespace {

std::string file(const std::string& header, const std::string& elements) {
  return little(header.size(), 8) + header + elements;
}
std::string one(const std::string& dtype, const std::string& shape, const std::string& offsets,
                const std::string& elements) {
  return file(R"({"x":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}",
              elements);
}
NamedTensors load(const std::string& bytes) {
  const Folder folder;
  return load_safetensors(folder.write("x.safetensors", bytes));
}
std::string refusal(const std::string& bytes) {
  return testing::refusal("load_safetensors: '", "': ", bytes, [](const std::string& path) { load_safetensors(path); });
}
const std::string sixteen(16, '\0');

}  // namespace

TEST_CASE("safetensors: what is written is read back, aligned, the same bytes each time") {
  const Folder folder;
  const NamedTensors saved{{"mask", Tensor<bool>{{true, false, true}}},
                           {"h.0.attn/weight", arange<double>(6).reshape({2, 3}).T()},
                           {"quote \" slash \\ tab \t and Ω", scalar(1.5f)},
                           {"ids", arange<std::int64_t>(3)},
                           {"none", zeros<float>({2, 0, 3})}};
  save_safetensors(folder.path("a"), saved);
  save_safetensors(folder.path("b"), saved);
  CHECK(folder.files() == 2);
  const std::string bytes = testing::read_bytes(folder.path("a"));
  CHECK(bytes == testing::read_bytes(folder.path("b")));
  CHECK((bytes.size() - 6 * 8 - 4 - 3 * 8 - 3) % 8 == 0);  // where the elements start
  const NamedTensors loaded = load_safetensors(folder.path("a"));
  CHECK(loaded.size() == saved.size());
  CHECK(loaded.begin()->first == "h.0.attn/weight"sv);
  for (const auto& entry : saved) {
    const auto& name = entry.first;  // clang 14 cannot capture a structured binding
    const auto& tensor = entry.second;
    INFO(name);
    std::visit(
        [&, &n = name](const auto& x) {
          using E = typename std::decay_t<decltype(x)>::element;
          CHECK(equal(loaded.get<E>(n), x));
          CHECK(loaded.shape(n) == x.shape());
        },
        tensor);
  }
  save_safetensors(folder.path("empty"), {});
  CHECK(load_safetensors(folder.path("empty")).size() == 0);
  CHECK(message<ValueError>([&] {
          save_safetensors(folder.path("c"), {{"__metadata__", scalar(1.0)}});
        }) == "save_safetensors: '__metadata__' is reserved in this format; rename the tensor"sv);
  CHECK_THROWS_AS(save_safetensors(folder.path("no/x"), saved), FileError);
}

TEST_CASE("safetensors: half precision and small integers") {
  const auto half = load(one("F16", "[4]", "[0,8]", "\0\x3c\0\xc0\xff\x7b\1\0"s)).get<float>("x");
  CHECK(equal(half, {1, -2, 65504, 0x1p-24f}));
  const auto brain = load(one("BF16", "[3]", "[0,6]", "\x80\x3f\x49\x40\x80\xff"s)).get<float>("x");
  CHECK(equal(brain, {1, 3.140625f, -INFINITY}));
  CHECK(equal(load(one("I8", "[2]", "[0,2]", "\xff\x7f"s)).get<std::int64_t>("x"), {-1, 127}));
  CHECK(equal(load(one("U16", "[1,2]", "[0,4]", "\xff\xff\1\0"s)).get<double>("x"), {{65535, 1}}));
  CHECK(equal(load(one("BOOL", "[2]", "[0,2]", "\0\2"s)).get<bool>("x"), {false, true}));
  CHECK(load(one("F64", "[]", "[0,8]", "\0\0\0\0\0\0\x0c\x40"s)).get<double>("x").item() == 3.5);
}

TEST_CASE("safetensors: a header's order, spaces, metadata and escapes are free") {
  const auto loaded =
      load(file(" { \"__metadata__\" : { \"format\" : \"pt\" , \"n\" : \"\" } , "
                "\"b\\u00e9\\ud83d\\ude00\\n\" : { \"shape\" : [ 1 ] ,\n"
                "\"data_offsets\" : [ 4 , 8 ] , \"dtype\" : \"F32\" } , \"a\" : "
                "{\"dtype\":\"F32\",\"shape\":[1,1],\"data_offsets\":[0,4]}}   ",
                "\0\0\x80\x3f\0\0\0\x40"s));
  CHECK(loaded.get<float>("a").at({0, 0}) == 1);
  CHECK(loaded.get<float>("b\u00e9\U0001f600\n").item() == 2);
  CHECK(load(file("{}", "")).size() == 0);
}

TEST_CASE("safetensors: lengths and places are not trusted") {
  CHECK(refusal(little(std::uint64_t{1} << 63, 8) + "{}") ==
        "the header should be bytes 8 to 9223372036854775816, and there are only 10: cut short, or damaged"sv);
  CHECK(refusal(little(~std::uint64_t{0}, 8) + "{}").find("the header should be bytes 8 to") == 0);
  CHECK(refusal("{}").find("the header's length should be bytes 0 to 8, and there are only 2") == 0);
  CHECK(refusal(one("F64", "[2]", "[8,0]", sixteen)) == "'x' is at 8 to 0, and the tensor before it ends at 0"sv);
  CHECK(refusal(one("F64", "[2]", "[-8,8]", sixteen)) == "'x' is at -8 to 8, and the tensor before it ends at 0"sv);
  CHECK(refusal(one("F64", "[125]", "[0,1000]", sixteen)) == "its tensors take 1000 bytes, and there are 16"sv);
  CHECK(refusal(one("F32", "[2]", "[0,4]", sixteen)) ==
        "'x' is at 0 to 4, and F32 elements of shape (2,) take 8 bytes"sv);
  CHECK(refusal(one("F32", "[4611686018427387904,4]", "[0,16]", sixteen)) ==
        "shape: (4611686018427387904, 4) has more than 2^63 - 1 elements"sv);
  CHECK(refusal(one("F32", "[-2,-2]", "[0,16]", sixteen)) == "shape: (-2, -2) has a negative size"sv);
  CHECK(refusal(one("F32", "[1,1,1,1,1,1,4]", "[0,16]", sixteen)) == "an array of 7 axes; a tensor has at most 6"sv);
  CHECK(refusal(one("F32", "[2]", "[0,8]", sixteen)) == "its tensors take 8 bytes, and there are 16"sv);
  CHECK(refusal(one("F32", "[2]", "[8,16]", sixteen)) == "'x' is at 8 to 16, and the tensor before it ends at 0"sv);
  CHECK(refusal(one("F32", "[99999999999999999999]", "[0,8]", sixteen)).find("where a whole number should be") !=
        std::string::npos);
  CHECK(refusal(one("U64", "[2]", "[0,16]", std::string(16, '\xff'))) ==
        "the unsigned number 18446744073709551615 does not fit an int64"sv);
  const std::string x = R"("x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]})";
  CHECK(refusal(file("{" + x + R"(,"y":{"dtype":"F32","shape":[3],"data_offsets":[4,16]}})", sixteen)) ==
        "'y' is at 4 to 16, and the tensor before it ends at 8"sv);
  CHECK(refusal(file("{" + x + R"(,"x":{"dtype":"F32","shape":[2],"data_offsets":[8,16]}})", sixteen)) ==
        "has two tensors 'x'"sv);
}

TEST_CASE("safetensors: a damaged header is told where") {
  const auto refused = [](const std::string& header) { return refusal(file(header, sixteen)); };
  CHECK(refused("") == "in the header: it ends where a '{' should be"sv);
  CHECK(refused("[]") == "in the header: '[]' where a '{' should be"sv);
  CHECK(refused("{} x") == "in the header: text after its closing brace"sv);
  CHECK(refused(R"({"x":1})") == "in the header: '1}' where a '{' should be"sv);
  CHECK(refused(R"({"x":{"dtype":"F32","shape":[4]}})") ==
        "in the header: 'x' must have dtype, shape and two data_offsets"sv);
  CHECK(refused(R"({"x":{"dtype":"F32","shape":[4],"data_offsets":[0]}})") ==
        "in the header: 'x' must have dtype, shape and two data_offsets"sv);
  CHECK(refused(R"({"x":{"dtype":"F32","shape":[4],"data_offsets":[0,16],"more":1}})") ==
        "in the header: 'x' has an unknown key 'more'"sv);
  CHECK(refused(R"({"x":{"dtype":"F8_E4M3","shape":[16],"data_offsets":[0,16]}})") ==
        "'x' has elements of type 'F8_E4M3'; floating-point numbers of 16 (F16, BF16), 32 and 64 bits, bool "
        "and "
        "integers can be read"sv);
  CHECK(refused(R"({"x":{"dtype":"F32","shape":[4.0],"data_offsets":[0,16]}})") ==
        "in the header: '.0],\"data_offset' where a ']' should be"sv);
  CHECK(refused(R"({"x\q":{}})") == "in the header: an unknown escape '\\q'"sv);
  CHECK(refused(R"({"\u12":{}})").find("where four hexadecimal digits should be") != std::string::npos);
  CHECK(refused(R"({"\ud800":{}})") == "in the header: half a surrogate pair"sv);
  CHECK(refused(R"({"\ud800\u0041":{}})") == "in the header: half a surrogate pair"sv);
  CHECK(refused("{\"\xff\":" + std::string(R"({"dtype":"F32","shape":[4],"data_offsets":[0,16]}})")) ==
        "in the header: it is not UTF-8"sv);
  CHECK(refused("{\"a\nb\":{}}") == "in the header: a control character in a string"sv);
  CHECK(refused(R"({"x)") == "in the header: it ends where the end of a string should be"sv);
  CHECK(refused(R"({"x\)") == "in the header: it ends where an escaped character should be"sv);
}

TEST_CASE("safetensors: names that other readers refuse are refused") {
  const Folder folder;
  for (const char* name : {"\xff", "a\xc3", "\xe2\x86", "\x80", "\xc1\xbf"})
    CHECK(message<ValueError>([&] {
            save_safetensors(folder.path("x"), {{name, scalar(1.0)}});
          }) ==
          "save_safetensors: the name of tensor 0 (shape ()) is not valid UTF-8, which other readers refuse; "
          "rename it"sv);
  CHECK(message<ValueError>([&] {
          save_safetensors(folder.path("x"), {{"\0"s, scalar(1.0)}});
        }) ==
        "save_safetensors: the name of tensor 0 (shape ()) contains a NUL character, which other readers "
        "refuse; "
        "rename it"sv);
  CHECK(folder.files() == 0);
}

TEST_CASE("safetensors: a file of another kind is named, with the way to load it") {
  CHECK(refusal("PK\3\4\0\0\x08\x08\0\0 archive/data.pkl FB and so on"s) ==
        "is not a .safetensors file; it was written by torch.save. In Python, load it with torch.load, write "
        "its "
        "dictionary of tensors with safetensors.torch.save_file(tensors, path), and call load_safetensors "
        "for that "
        "file"sv);
  CHECK(refusal("PK\3\4 weight.npy") ==
        "is not a .safetensors file; it is a zip archive, as .npz files are: call load_npz"sv);
  CHECK(refusal("\x93NUMPY\1\0"s) == "is not a .safetensors file; it is a .npy file: call load_npy"sv);
  CHECK(refusal("\x1f\x8b\x08") ==
        "is not a .safetensors file; it is compressed by gzip: unpack it with gunzip first"sv);
  CHECK(refusal("\x80\2}q\0X\6\0\0\0weight"s) ==
        "is not a .safetensors file; it is a Python pickle, or an old torch.save file. Load it in Python, "
        "write its "
        "arrays with np.savez or safetensors, and load that file"sv);
  CHECK(refusal("version https://git-lfs.github.com/spec/v1\n") ==
        "is not a .safetensors file; it is only Git LFS's pointer to the file: run git lfs pull"sv);
  // A header of 640 bytes starts like a pickle, one of 0x8b1f like gzip.
  for (const std::size_t length : {0x280u, 0x8b1fu})
    CHECK(load(file("{}" + std::string(length - 2, ' '), "")).size() == 0);
}

TEST_CASE("safetensors: cut short anywhere it is refused, and any byte may be wrong") {
  const Folder folder;
  save_safetensors(folder.path("good"), {{"w", arange<double>(3)}, {"b", Tensor<bool>{true, false}}});
  const std::string good = testing::read_bytes(folder.path("good"));
  for (std::size_t size = 0; size < good.size(); ++size) CHECK(refusal(good.substr(0, size)) != ""sv);
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (int change : {0x01, 0x80, 0xff}) {
      std::string bytes = good;
      bytes[at] = static_cast<char>(bytes[at] ^ change);
      const std::string text = message<FileError>([&] { load_safetensors(folder.write("x", bytes)); });
      CHECK(text.find("[another") == std::string::npos);
    }
  }
}
