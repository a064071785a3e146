// libFuzzer on the .npy reader: any bytes give an array or a FileError, and an array is the same when written
// and read again.
#include "files/file_bytes.hpp"
#include "fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::expect_errors_only([&] {
    const tapehead::AnyTensor x = tapehead::detail::parse_npy({fuzz::source, data, size});
    std::vector<tapehead::AnyTensor> keep;
    const std::string again = tapehead::detail::npy_header(x) + std::string(tapehead::detail::bytes_in_order(x, keep));
    fuzz::require_same(x, tapehead::detail::parse_npy(
                              {fuzz::source, reinterpret_cast<const std::uint8_t*>(again.data()), again.size()}));
  });
  return 0;
}
