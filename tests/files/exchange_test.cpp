// The engine's half of tests/golden/check.sh: reads every file of a folder that NumPy filled and writes it
// again, for NumPy to compare. Skipped unless asked for, since it needs Python on both sides.
#include <cstdlib>
#include <filesystem>

#include "tapehead/files/npy.hpp"
#include "tapehead/files/safetensors.hpp"
#include "testing.hpp"

using namespace tapehead;

TEST_CASE("exchange: every file of TAPEHEAD_EXCHANGE/in is read, and written to out" * doctest::skip()) {
  const char* folder = std::getenv("TAPEHEAD_EXCHANGE");
  REQUIRE(folder != nullptr);
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(folder) + "/in")) {
    const std::string from = entry.path().string(), name = entry.path().filename().string(),
                      to = std::string(folder) + "/out/" + name;
    const auto is = [&](const char* part) { return name.find(part) != std::string::npos; };
    INFO(name);
    if (is(".npz"))
      save_npz(to, load_npz(from));
    else if (is(".safetensors"))
      save_safetensors(to, load_safetensors(from));
    else if (is("double_"))
      save_npy(to, load_npy<double>(from));
    else if (is("float_"))
      save_npy(to, load_npy<float>(from));
    else if (is("int64_"))
      save_npy(to, load_npy<std::int64_t>(from));
    else if (is("bool_"))
      save_npy(to, load_npy<bool>(from));
    else
      FAIL("a file of no known kind");
    ++files;
  }
  CHECK(files > 0);
}
