// libFuzzer on the .npz reader, and so on the zip directory and inflate. Checksums are seldom right by
// chance: an input with a first byte of 0 is taken as a bare deflate stream.
#include "files/file_bytes.hpp"
#include "fuzz.hpp"
#include "files/inflate.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::expect_errors_only([&] {
    constexpr std::uint64_t limit = 100'000;
    if (size == 0 || data[0] != 0)
      tapehead::detail::parse_npz({fuzz::source, data, size});
    else if (tapehead::detail::inflate({fuzz::source, data + 1, size - 1}, limit).size() > limit + 258)
      std::abort();
  });
  return 0;
}
