#include "tapehead/tensor/ostream.hpp"

#include <sstream>

#include "testing.hpp"

using namespace tapehead;

TEST_CASE("ostream: a stream takes tensors and shapes as NumPy prints them") {
  std::ostringstream out;
  const Tensor<float> x{{1, 0.5f, -2}, {3, 4, 5}};
  out << x << " " << x.shape() << " " << Tensor<bool>{true, false} << " " << scalar<std::int64_t>(7) << " "
      << scalar(0.25);
  CHECK(out.str() == "[[ 1.   0.5 -2. ]\n [ 3.   4.   5. ]] (2, 3) [ True False] 7 0.25"sv);
}
