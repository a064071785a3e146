#include "kernels/flash_masks.hpp"

#include <algorithm>
#include <limits>

namespace tapehead::kernels {
namespace {

/// Calls f(score, value) for a tile and the part of `array` that belongs to it. Rows that lie one element
/// after the other, or repeat one element, have loops of their own, which become vector code.
template <class T, class A, class F>
void for_each_score(const Tile& t, const Heads<A>& array, T* S, const F& f) {
  for (std::int64_t r = 0; r < t.rows; ++r, S += t.ld) {
    A* row = array.at(t.b, t.h, t.i0 + r) + t.j0 * array.element;
    if (array.element == 1)
      for (std::int64_t c = 0; c < t.cols; ++c) f(S[c], row[c]);
    else
      for (std::int64_t c = 0; c < t.cols; ++c) f(S[c], row[c * array.element]);
  }
}

/// Rows and columns of a tile that differ: one of an axis along which the array repeats itself.
template <class A>
Tile distinct(Tile t, const Heads<A>& array) {
  if (array.row == 0) t.rows = std::min<std::int64_t>(t.rows, 1);
  if (array.element == 0) t.cols = std::min<std::int64_t>(t.cols, 1);
  return t;
}

TileKind mask_kind(const void* context, const Tile& tile) {
  const auto& mask = *static_cast<const Heads<const bool>*>(context);
  const Tile t = distinct(tile, mask);
  std::int64_t visible = 0;
  for (std::int64_t r = 0; r < t.rows; ++r) {
    const bool* row = mask.at(t.b, t.h, t.i0 + r) + t.j0 * mask.element;
    int in_row = 0;
    if (mask.element == 1)
      for (std::int64_t c = 0; c < t.cols; ++c) in_row += row[c];
    else
      for (std::int64_t c = 0; c < t.cols; ++c) in_row += row[c * mask.element];
    visible += in_row;
    if (visible > 0 && in_row < t.cols) return TileKind::partial;
  }
  return visible == 0 ? TileKind::skip : visible == t.rows * t.cols ? TileKind::full : TileKind::partial;
}

template <class T>
void mask_edit(const void* context, const Tile& tile, T* S) {
  const auto& mask = *static_cast<const Heads<const bool>*>(context);
  for_each_score(tile, mask, S, [](T& s, bool keep) { s = keep ? s : -std::numeric_limits<T>::infinity(); });
}

}  // namespace

template <class T>
ScoreHook<T> mask_hook(const Heads<const bool>& mask) {
  ScoreHook<T> hook;
  hook.context = const_cast<Heads<const bool>*>(&mask);  // only read: the functions take it as const
  hook.kind = mask_kind;
  hook.edit = mask_edit<T>;
  return hook;
}

template <class T>
Bias<T>::Bias(Heads<const T> bias, std::int64_t B, std::int64_t Hq, std::int64_t Hkv, std::int64_t Lq,
              std::int64_t Lk, Heads<T> grad)
    : bias_(bias),
      grad_(grad),
      group_(Hq / std::max<std::int64_t>(Hkv, 1)),
      B_(grad.batch == 0 ? 1 : B),
      H_(grad.head == 0 ? 1 : Hq),
      rows_(grad.row == 0 ? 1 : Lq),
      cols_(grad.element == 0 ? 1 : Lk),
      direct_(B_ == B && H_ == Hq && rows_ == Lq && cols_ == Lk) {
  if (!grad_.data) return;
  if (direct_)
    write(nullptr);  // skipped tiles will not write their zeros
  else
    total_.resize(static_cast<std::size_t>(B_ * H_ * rows_ * cols_));
}

template <class T>
ScoreHook<T> Bias<T>::hook() {
  ScoreHook<T> hook;
  hook.context = this;
  hook.kind = kind;
  hook.edit = edit;
  if (!grad_.data) return hook;
  hook.edit_gradient = edit_gradient;
  if (!direct_) {
    hook.sum_count = (H_ == 1 ? 1 : group_) * rows_ * cols_;
    hook.reduce = reduce;
  }
  return hook;
}

template <class T>
TileKind Bias<T>::kind(const void* self, const Tile& tile) {
  const auto& bias = static_cast<const Bias*>(self)->bias_;
  const Tile t = distinct(tile, bias);
  for (std::int64_t r = 0; r < t.rows; ++r)
    for (std::int64_t c = 0; c < t.cols; ++c)
      if (bias.at(t.b, t.h, t.i0 + r)[(t.j0 + c) * bias.element] != -std::numeric_limits<T>::infinity())
        return TileKind::partial;
  return TileKind::skip;
}

template <class T>
void Bias<T>::edit(const void* self, const Tile& tile, T* S) {
  for_each_score(tile, static_cast<const Bias*>(self)->bias_, S, [](T& s, T bias) {
    constexpr T hidden = -std::numeric_limits<T>::infinity();
    s = bias == hidden ? hidden : s + bias;
  });
}

template <class T>
void Bias<T>::edit_gradient(const void* self, const Tile& tile, const T*, T* dS, double* sums) {
  const auto& me = *static_cast<const Bias*>(self);
  if (me.direct_) return for_each_score(tile, me.grad_, dS, [](T& ds, T& grad) { grad = ds; });
  // The private sums as one more strided array, its head axis holding only this group.
  Heads<double> part{sums, 0, 0, 0, me.cols_ > 1 ? 1 : 0};
  if (me.rows_ > 1) part.row = me.cols_;
  if (me.H_ > 1) part.head = me.rows_ * me.cols_, part.data -= tile.h / me.group_ * me.group_ * part.head;
  for_each_score(tile, part, dS, [](T& ds, double& sum) { sum += static_cast<double>(ds); });
}

template <class T>
void Bias<T>::reduce(void* self, std::int64_t b, std::int64_t kv_head, const double* sums) {
  auto& me = *static_cast<Bias*>(self);
  const std::int64_t count = (me.H_ == 1 ? 1 : me.group_) * me.rows_ * me.cols_;
  const std::int64_t head = me.H_ == 1 ? 0 : kv_head * me.group_, batch = me.B_ == 1 ? 0 : b;
  double* total = me.total_.data() + (batch * me.H_ + head) * me.rows_ * me.cols_;
  for (std::int64_t n = 0; n < count; ++n) total[n] += sums[n];
}

template <class T>
void Bias<T>::write(const double* values) {
  std::int64_t n = 0;
  for (std::int64_t b = 0; b < B_; ++b)
    for (std::int64_t h = 0; h < H_; ++h)
      for (std::int64_t i = 0; i < rows_; ++i)
        for (std::int64_t j = 0; j < cols_; ++j)
          grad_.at(b, h, i)[j * grad_.element] = values ? static_cast<T>(values[n++]) : T(0);
}

template <class T>
void Bias<T>::finish() {
  if (grad_.data && !direct_) write(total_.data());
}

template ScoreHook<float> mask_hook(const Heads<const bool>&);
template ScoreHook<double> mask_hook(const Heads<const bool>&);
template class Bias<float>;
template class Bias<double>;

}  // namespace tapehead::kernels
