#pragma once
#include "tapehead/kernels/threads.hpp"

namespace testing {

/// Chooses the number of threads until the end of the scope.
class Threads {
 public:
  explicit Threads(int n) { tapehead::set_num_threads(n); }
  ~Threads() { tapehead::set_num_threads(before_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  int before_ = tapehead::num_threads();
};

}  // namespace testing
