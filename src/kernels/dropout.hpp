#pragma once
// Which attention weights are dropped: a function of (seed, b, h, i, j) and nothing else. No generator runs
// along, so any tile, thread or rung of the ladder can ask for any weight in any order, the backward pass
// asks again instead of storing a mask, and a run can be replayed.
//
// The hash mixes in two stages, so that the part that is the same for a whole row is done once. The row key
// takes the four numbers in turn: each is added to a state, which is then scrambled by two rounds of "xor
// with its own high half, multiply by an odd constant". A column's 32 bits come from one such chain over (j,
// row key) in 32-bit arithmetic, which the compiler turns into vector code; the second half of the row key
// enters between its rounds, so that two rows whose first halves agree still differ. A weight is kept when
// its 32 bits are at least p 2^32.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>

namespace tapehead::kernels {

/// The part of the hash that a row of weights shares.
inline std::uint64_t dropout_row_key(std::uint64_t seed, std::int64_t b, std::int64_t h, std::int64_t i) {
  std::uint64_t x = 0;
  for (const std::uint64_t part :
       {seed, static_cast<std::uint64_t>(b), static_cast<std::uint64_t>(h), static_cast<std::uint64_t>(i)}) {
    x += part + 0x9e3779b97f4a7c15u;  // 2^64 / golden ratio: 0 must not stay 0
    x = (x ^ (x >> 32)) * 0xd1342543de82ef95u;
    x = (x ^ (x >> 29)) * 0xaef17502108ef2d9u;
    x ^= x >> 32;
  }
  return x;
}

/// 32 random bits for column j of that row; columns 2^32 apart share them.
inline std::uint32_t dropout_bits(std::uint64_t row_key, std::int64_t j) {
  auto x = static_cast<std::uint32_t>(j) * 0x9e3779b9u + static_cast<std::uint32_t>(row_key);
  x = (x ^ (x >> 16)) * 0xe2aba975u + static_cast<std::uint32_t>(row_key >> 32);
  x = (x ^ (x >> 15)) * 0xb3d709cdu;
  return x ^ (x >> 16);
}

/// What a kept weight is multiplied by; 0 when all are dropped.
inline double dropout_scale(double p) { return p < 1 ? 1 / (1 - p) : 0; }

/// The rule, for keys j … j + cols - 1 of query i: out[c] is `kept` where the weight stays and 0 (false) where it
/// is dropped with probability p. Flash attention calls it tile by tile, and the other kinds of attention once for all.
template <class V> void dropout_row(std::uint64_t seed, double p, std::int64_t b, std::int64_t h, std::int64_t i,
                                    std::int64_t j, std::int64_t cols, V kept, V* out) {
  const auto least = static_cast<std::uint64_t>(std::ceil(p * 4294967296.0));  // p 2^32; 2^32 where p is 1
  if (least == 0) return void(std::fill_n(out, cols, kept));
  // Compared as "greater than" because 2^32 needs 33 bits, and vectors hold 32.
  const auto last_dropped = static_cast<std::uint32_t>(least - 1);
  const std::uint64_t key = dropout_row_key(seed, b, h, i);
  for (std::int64_t c = 0; c < cols; ++c) out[c] = dropout_bits(key, j + c) > last_dropped ? kept : V(0);
}

}  // namespace tapehead::kernels
