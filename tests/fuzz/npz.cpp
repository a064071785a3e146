// libFuzzer on the .npz reader: any bytes give arrays or a FileError.
#include "files/file_bytes.hpp"
#include "fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::expect_errors_only([&] { tapehead::detail::parse_npz({fuzz::source, data, size}); });
  return 0;
}
