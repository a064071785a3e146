#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "tapehead/kernels/memory.hpp"

namespace tapehead::kernels {

/// Working memory for n elements from the cache of freed blocks, not initialised.
template <class T> class Scratch {
 public:
  explicit Scratch(std::int64_t n)
      : size_(std::max<std::int64_t>(n, 1)), data_(static_cast<T*>(tapehead::detail::allocate(bytes()))) {}
  ~Scratch() { tapehead::detail::release(data_, bytes()); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  void fill(T value) { std::fill_n(data_, size_, value); }
  void zero() { fill(T(0)); }
  T* operator+(std::int64_t offset) const { return data_ + offset; }
  T& operator[](std::int64_t i) const { return data_[i]; }

 private:
  std::size_t bytes() const { return static_cast<std::size_t>(size_) * sizeof(T); }
  std::int64_t size_;
  T* data_;
};

}  // namespace tapehead::kernels
