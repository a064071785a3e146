#pragma once
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "files/file_bytes.hpp"
#include "tapehead/kernels/error.hpp"
#include "tapehead/ops/views.hpp"

namespace fuzz {

inline const tapehead::detail::Source source{"fuzz", "input"};

/// Runs f. An Error is an answer; any other exception ends the program, which libFuzzer reports.
template <class F> void expect_errors_only(const F& f) {
  try {
    f();
  } catch (const tapehead::Error& e) {
    if (std::strlen(e.what()) == 0) std::abort();
  }
}

inline void require_same(const tapehead::AnyTensor& a, const tapehead::AnyTensor& b) {
  std::vector<tapehead::AnyTensor> keep;
  const auto shape = [](const auto& x) { return x.shape(); };
  if (a.index() != b.index() || !(std::visit(shape, a) == std::visit(shape, b)) ||
      tapehead::detail::bytes_in_order(a, keep) != tapehead::detail::bytes_in_order(b, keep))
    std::abort();
}

}  // namespace fuzz
