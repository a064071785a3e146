#include "tapehead/tensor/tensor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <new>

#include "kernels/walk.hpp"
#include "tapehead/kernels/error.hpp"

namespace tapehead {

template <>
const char* dtype_name<float>() {
  return "float";
}
template <>
const char* dtype_name<double>() {
  return "double";
}
template <>
const char* dtype_name<bool>() {
  return "bool";
}
template <>
const char* dtype_name<std::int64_t>() {
  return "int64";
}

namespace detail {

std::int64_t next_id() {
  static std::atomic<std::int64_t> ids{1};
  return ids.fetch_add(1, std::memory_order_relaxed);
}

const Header& empty_header() {
  static const Header* header = [] {
    auto* made = new Header;  // never destroyed: default tensors may outlive every static
    made->shape = Shape{0};
    made->strides = Strides{1};
    return made;
  }();
  return *header;
}

Storage* new_storage(const char* op, const Shape& shape, std::int64_t numel, std::size_t element_bytes) {
  const auto count = static_cast<std::uint64_t>(numel);
  if (count > (std::uint64_t{1} << 62) / element_bytes)
    throw ShapeError(fmt::format("{}: shape {} of {}-byte elements is more memory than there can be", op,
                                 shape.str(), element_bytes));
  const std::size_t bytes = sizeof(Storage) + count * element_bytes;
  auto* storage = new (allocate(bytes)) Storage;
  storage->bytes = bytes;
  return storage;
}

Header* new_header() {
  auto* header = new (allocate(sizeof(Header))) Header;
  header->id = next_id();
  return header;
}

namespace {
// One owner fewer; true for the last. Who alone holds it needs no locked instruction: nobody else can be
// counting.
bool last_of(std::atomic<std::int64_t>& owners) {
  return owners.load(std::memory_order_acquire) == 1 || owners.fetch_sub(1, std::memory_order_acq_rel) == 1;
}
}  // namespace

const Header* share(const Header* header) noexcept {
  if (header == nullptr) return nullptr;
  header->owners.fetch_add(1, std::memory_order_relaxed);
  if (copy_watch != nullptr) [[unlikely]]
    copy_watch(*header);
  return header;
}

void drop(const Header* header) noexcept {
  if (header == nullptr || !last_of(header->owners)) return;
  Storage* storage = header->storage;  // none in a buffer whose allocation failed
  if (storage != nullptr && last_of(storage->owners)) release(storage, storage->bytes);
  release(const_cast<Header*>(header), sizeof(Header));
}

void throw_not_scalar(const Shape& shape) {
  throw ShapeError(
      fmt::format("item: shape {} has {} elements; item() reads a tensor of exactly one, at({{…}}) reads any",
                  shape.str(), shape.numel()));
}

namespace {

template <class E>
void measure(const Nested<E>& nested, int depth, Shape& shape) {
  if (!nested.is_list_) return;
  if (depth == max_rank)
    throw ShapeError(fmt::format("tensor: braces nested deeper than {} levels", max_rank));
  shape = shape.with(depth, static_cast<std::int64_t>(nested.list_.size()));
  if (nested.list_.size() > 0) measure(*nested.list_.begin(), depth + 1, shape);
}

template <class E>
void collect(const Nested<E>& nested, int depth, const Shape& shape, E*& out) {
  if (nested.is_list_ != (depth < shape.rank()))
    throw ShapeError(
        fmt::format("tensor: a {} stands among {} at depth {} of the braces; each level must be all lists or "
                    "all numbers",
                    nested.is_list_ ? "list" : "number", nested.is_list_ ? "numbers" : "lists", depth));
  if (!nested.is_list_) {
    *out++ = nested.value_;
    return;
  }
  const auto size = static_cast<std::int64_t>(nested.list_.size());
  if (size != shape[depth])
    throw ShapeError(
        fmt::format("tensor: ragged braces: a list of {} where its neighbours have {} (depth {})", size,
                    shape[depth], depth));
  for (const Nested<E>& inner : nested.list_) collect(inner, depth + 1, shape, out);
}

}  // namespace
}  // namespace detail

template <class E>
Buffer<E>::Buffer(const Shape& shape, const char* op) : Buffer() {
  header_->numel = shape.numel(op);
  header_->storage = detail::new_storage(op, shape, header_->numel, sizeof(E));
  header_->data = header_->storage->elements();
  header_->shape = shape;
  header_->strides = row_major(shape);
}

template <class E>
Tensor<E>::Tensor(std::initializer_list<detail::Nested<E>> values) {
  const detail::Nested<E> all(values);
  Shape shape;
  detail::measure(all, 0, shape);
  Buffer<E> buffer(shape);
  E* out = buffer.data();
  detail::collect(all, 0, shape, out);
  *this = std::move(buffer);
}

template <class E>
E Tensor<E>::at(std::initializer_list<std::int64_t> indices) const {
  if (static_cast<int>(indices.size()) != rank())
    throw IndexError(
        fmt::format("at: {} indices for shape {}; give one an axis", indices.size(), shape().str()));
  if (detail::read_watch<E> != nullptr) detail::read_watch<E>(*this);
  const E* at = data();
  int axis = 0;
  for (std::int64_t index : indices) {
    const std::int64_t size = shape()[axis];
    if (index < -size || index >= size)
      throw IndexError(fmt::format("at: index {} on axis {} of shape {}; it must be in {} to {}", index, axis,
                                   shape().str(), -size, size - 1));
    at += (index < 0 ? index + size : index) * strides()[axis];
    ++axis;
  }
  return *at;
}

template <class E>
std::vector<E> Tensor<E>::to_vector() const {
  std::vector<E> values;
  values.reserve(static_cast<std::size_t>(numel()));
  kernels::for_each_element(shape().rank(), shape().begin(), strides().begin(),
                            [&](std::int64_t offset) { values.push_back(data()[offset]); });
  return values;
}

template <class E>
Tensor<E> Tensor<E>::view(const Shape& shape, const Strides& strides, const E* first) const {
  const detail::Header& base = header();
  if (base.storage == nullptr)
    return Tensor(Buffer<E>(shape));  // the shared empty tensor has nothing to share
  detail::Header* made = detail::new_header();
  made->storage = base.storage;
  made->storage->owners.fetch_add(1, std::memory_order_relaxed);
  made->data = const_cast<E*>(first);
  made->shape = shape;
  made->strides = strides;
  made->numel = shape.numel();
  made->contiguous = is_row_major(shape, strides);
  made->detached = base.detached;
  Tensor out;
  out.header_ = made;
  return out;
}

template <class E>
Tensor<E> Tensor<E>::unrecorded() const {
  Tensor out = view(shape(), strides(), data());
  const_cast<detail::Header*>(out.header_)->detached = true;
  return out;
}

template <class E>
Tensor<E> full(const Shape& shape, std::type_identity_t<E> value, const char* op) {
  Buffer<E> out(shape, op);
  std::fill_n(out.data(), out.numel(), value);
  return out;
}

template <class E>
Tensor<E> arange(std::type_identity_t<E> start, std::type_identity_t<E> stop, std::type_identity_t<E> step) {
  if (step == E{}) throw ValueError("arange: step 0 never arrives; give one that is positive or negative");
  const double steps =
      std::ceil((static_cast<double>(stop) - static_cast<double>(start)) / static_cast<double>(step));
  if (!(steps < 9e18))
    throw ValueError(fmt::format("arange: from {} to {} by {} has no end", start, stop, step));
  Buffer<E> out({std::max<std::int64_t>(0, static_cast<std::int64_t>(steps))}, "arange");
  for (std::int64_t i = 0; i < out.numel(); ++i) out[i] = static_cast<E>(start + static_cast<E>(i) * step);
  return out;
}

template <class E>
Tensor<E> eye(std::int64_t n) {
  Buffer<E> out({n, n}, "eye");
  std::fill_n(out.data(), out.numel(), E{});
  for (std::int64_t i = 0; i < n; ++i) out[i * n + i] = E{1};
  return out;
}

template <class E>
Tensor<E> from_vector(const std::vector<E>& values, const Shape& shape) {
  if (static_cast<std::int64_t>(values.size()) != shape.numel())
    throw ShapeError(fmt::format("from_vector: {} values for shape {}, which has {}", values.size(),
                                 shape.str(), shape.numel()));
  Buffer<E> out(shape);
  std::copy(values.begin(), values.end(), out.data());
  return out;
}

#define TAPEHEAD_TENSOR(E)                                                        \
  template class Buffer<E>;                                                       \
  template class Tensor<E>;                                                       \
  template Tensor<E> full<E>(const Shape&, std::type_identity_t<E>, const char*); \
  template Tensor<E> eye<E>(std::int64_t);                                        \
  template Tensor<E> from_vector<E>(const std::vector<E>&, const Shape&);
TAPEHEAD_TENSOR(float)
TAPEHEAD_TENSOR(double)
TAPEHEAD_TENSOR(bool)
TAPEHEAD_TENSOR(std::int64_t)
template Tensor<float> arange<float>(float, float, float);
template Tensor<double> arange<double>(double, double, double);
template Tensor<std::int64_t> arange<std::int64_t>(std::int64_t, std::int64_t, std::int64_t);

}  // namespace tapehead
