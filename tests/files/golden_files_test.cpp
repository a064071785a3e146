// Files that NumPy wrote, of every kind that it writes; each holds 0, 1, 2, … in its shape, or false, true,
// false, …
#include "golden_cases.hpp"
#include "tapehead/ops/arithmetic.hpp"
#include "testing.hpp"

using namespace tapehead;

namespace {

// Each array is that by its own name: as its kind of element, and, where that is exact, as another.
template <class Get> void check_counting(const Shape& shape, const std::string& kind, const Get& get) {
  const auto count = arange<std::int64_t>(shape.numel()).reshape(shape);
  if (kind == "b") {
    const auto odd = eq(count - mul(to<std::int64_t>(to<double>(count) / 2), 2), scalar<std::int64_t>(1));
    CHECK(equal(get.template operator()<bool>(), odd));
    CHECK(equal(get.template operator()<float>(), to<float>(odd)));
  } else {
    CHECK(equal(get.template operator()<double>(), to<double>(count)));
    if (kind != "f") CHECK(equal(get.template operator()<std::int64_t>(), count));
    if (kind != "f") CHECK(equal(get.template operator()<float>(), to<float>(count)));
  }
}

}  // namespace

TEST_CASE("npy: files by NumPy, of every element type, byte order, layout, shape and version") {
  for (const golden::Words& line : golden::table("numpy/files.tsv")) {
    INFO(line.text("file"));
    const std::string path = golden::path("numpy/" + line.text("file"));
    check_counting(Shape(line.integers("shape")), line.text("kind"), [&]<class E>() { return load_npy<E>(path); });
  }
}

TEST_CASE("npz: an archive by np.savez") {
  const NamedTensors all = load_npz(golden::path("numpy/savez.npz"));
  CHECK(all.shape("flat") == Shape{5000});
  CHECK(equal(all.get<double>("flat"), zeros<double>({5000})));
  CHECK(all.shape("big") == Shape{300, 40});
  int checked = 0;
  for (const golden::Words& line : golden::table("numpy/files.tsv")) {
    const std::string array = line.text("file").substr(0, line.text("file").size() - 4);
    if (!all.contains(array)) continue;
    INFO(array);
    check_counting(Shape(line.integers("shape")), line.text("kind"), [&]<class E>() { return all.get<E>(array); });
    ++checked;
  }
  CHECK(checked > 20);
  check_counting(Shape{300, 40}, "f", [&]<class E>() { return all.get<E>("big"); });
}

TEST_CASE("npz: an archive by np.savez_compressed is refused") {
  const std::string path = golden::path("numpy/savez_compressed.npz");
  const std::string text = testing::message<FileError>([&] { load_npz(path); });
  CHECK(text.find("' is compressed; write the archive with np.savez instead of np.savez_compressed") !=
        std::string::npos);
}
