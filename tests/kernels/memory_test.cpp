#include "tapehead/tapehead.hpp"
#include "testing.hpp"

using namespace tapehead;

TEST_CASE("memory: blocks given back are the blocks that were taken") {
  const auto before = memory_use();
  {
    Tensor<double> x = zeros<double>({1000});
    auto y = exp(x.reshape({10, 100}).T() + 1);
    CHECK(memory_use().blocks > before.blocks);
  }
  CHECK(memory_use().blocks == before.blocks);
  CHECK(memory_use().bytes == before.bytes);
}
