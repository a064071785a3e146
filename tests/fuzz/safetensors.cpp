// libFuzzer on the safetensors reader: any bytes give tensors or a FileError.
#include "files/file_bytes.hpp"
#include "fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::expect_errors_only([&] { tapehead::detail::parse_safetensors({fuzz::source, data, size}); });
  return 0;
}
