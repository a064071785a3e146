// The inputs that libFuzzer found and that are kept in tests/fuzz/inputs, through the very programs that
// `make fuzz` runs. Each ends the whole run where an answer is neither right nor an Error.
#define LLVMFuzzerTestOneInput run_npy
#include "fuzz/npy.cpp"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput run_npz
#include "fuzz/npz.cpp"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput run_safetensors
#include "fuzz/safetensors.cpp"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput run_views
#include "fuzz/views.cpp"
#undef LLVMFuzzerTestOneInput

#include <filesystem>

#include "files.hpp"
#include "testing.hpp"

TEST_CASE("fuzz: the inputs kept from earlier runs") {
  const std::pair<const char*, int (*)(const std::uint8_t*, std::size_t)> programs[] = {
      {"npy", run_npy}, {"npz", run_npz}, {"safetensors", run_safetensors}, {"views", run_views}};
  for (const auto& [name, run] : programs) {
    int inputs = 0;
    for (const auto& entry : std::filesystem::directory_iterator(std::string("tests/fuzz/inputs/") + name)) {
      INFO(entry.path().string());
      const std::string bytes = testing::read_bytes(entry.path().string());
      CHECK(run(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()) == 0);
      ++inputs;
    }
    CHECK(inputs > 0);
  }
}
