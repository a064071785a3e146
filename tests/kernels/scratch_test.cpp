#include "kernels/scratch.hpp"

#include "testing.hpp"

using namespace tapehead;

TEST_CASE("scratch: memory that is counted and returned, one element at least") {
  const MemoryUse before = memory_use();
  {
    const kernels::Scratch<double> none(0);
    none[0] = 3;
    kernels::Scratch<float> x(1000);
    x.fill(2);
    CHECK((x[0] == 2 && x[999] == 2 && x + 999 == &x[999]));
    x.zero();
    CHECK((x[0] == 0 && x[999] == 0));
    CHECK(memory_use().blocks == before.blocks + 2);
  }
  CHECK(memory_use().bytes == before.bytes);
}
