#pragma once
// The two ready-made score hooks: a boolean mask, and a bias that is added and can be learned.

#include <cstdint>
#include <vector>

#include "kernels/flash.hpp"

namespace tapehead::kernels {

/// Query i may attend to key j where mask.at(b, h, i)[j * mask.element] is true. Tiles without a true entry
/// are skipped, tiles of nothing else go unedited. `mask` must live as long as the hook.
template <class T>
ScoreHook<T> mask_hook(const Heads<const bool>& mask);

/// bias.at(b, h, i)[j * bias.element] is added to the scaled score; -inf there means "may not attend" even
/// where the score is NaN, and a tile of nothing else is skipped. When grad.data is not null the backward
/// pass finds the bias' gradient: grad has the strides of the gradient array, 0 on the axes along which the
/// bias is broadcast, where the gradient is summed (in double). The object must live as long as the hook. It
/// serves one backward pass, after which finish() writes the sums to grad.
template <class T>
class Bias {
 public:
  /// For attention of B x Hq x Lq x Lk scores and Hkv kv heads (packed batches: the largest Lq and Lk).
  Bias(Heads<const T> bias, std::int64_t B, std::int64_t Hq, std::int64_t Hkv, std::int64_t Lq,
       std::int64_t Lk, Heads<T> grad = {});

  ScoreHook<T> hook();
  void finish();

 private:
  static TileKind kind(const void* self, const Tile& tile);
  static void edit(const void* self, const Tile& tile, T* S);
  static void edit_gradient(const void* self, const Tile& tile, const T* S, T* dS, double* sums);
  static void reduce(void* self, std::int64_t b, std::int64_t kv_head, const double* sums);
  void write(const double* values);

  Heads<const T> bias_;
  Heads<T> grad_;
  std::int64_t group_;                // query heads a kv head
  std::int64_t B_, H_, rows_, cols_;  // sizes of the gradient array: 1 on a broadcast axis
  bool direct_;                       // every score has an element of its own: no sums are needed
  std::vector<double> total_;
};

}  // namespace tapehead::kernels
