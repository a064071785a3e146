#include "tapehead/tensor/tensor.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <new>

#include "kernels/require.hpp"
#include "kernels/walk.hpp"

namespace tapehead {

template <class E> const char* dtype_name() {
  return std::is_same_v<E, float>    ? "float"
         : std::is_same_v<E, double> ? "double"
         : std::is_same_v<E, bool>   ? "bool"
                                     : "int64";
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
  require<ShapeError>(count <= (std::uint64_t{1} << 62) / element_bytes,
                      "{}: shape {} of {}-byte elements is more memory than there can be", op, shape, element_bytes);
  const std::size_t bytes = sizeof(Storage) + count * element_bytes;
  auto* storage = new (allocate(bytes)) Storage;
  storage->bytes = bytes;
  return storage;
}

Header* new_header() {
  if (copy_hook != nullptr) [[unlikely]]
    copy_hook(nullptr, nullptr);
  auto* header = new (allocate(sizeof(Header))) Header;
  header->id = next_id();
  return header;
}

namespace {
// One owner fewer; true for the last. The only owner needs no locked instruction, because no other thread can be
// counting.
bool last_of(std::atomic<std::int64_t>& owners) {
  return owners.load(std::memory_order_acquire) == 1 || owners.fetch_sub(1, std::memory_order_acq_rel) == 1;
}
}  // namespace

const Header* share(const Header* header) noexcept {
  if (header == nullptr) return nullptr;
  header->owners.fetch_add(1, std::memory_order_relaxed);
  return header;
}

const Header* share_copied(const Header* header, const void* tensor) noexcept {
  if (copy_hook != nullptr) [[unlikely]]
    if (const Header* own = copy_hook(header, tensor)) return own;
  return share(header);
}

void drop(const Header* header) noexcept {
  if (header == nullptr || !last_of(header->owners)) return;
  Storage* storage = header->storage;  // none in a buffer whose allocation failed
  if (storage != nullptr && last_of(storage->owners)) release(storage, storage->bytes);
  release(const_cast<Header*>(header), sizeof(Header));
}

void raise_not_scalar(const Shape& shape) {
  raise<ShapeError>("item: shape {} has {} elements; item() reads a tensor of exactly one, at({{…}}) reads any", shape,
                    shape.numel());
}
void raise_beyond_int64(unsigned long long value) {
  raise<ValueError>("tensor: {} does not fit std::int64_t, which ends at 9223372036854775807", value);
}

namespace {

template <class E> void measure(const Nested<E>& nested, int depth, Shape& shape) {
  if (!nested.is_list_) return;
  require<ShapeError>(depth < max_rank, "tensor: braces nested deeper than {} levels", max_rank);
  shape = shape.with(depth, static_cast<std::int64_t>(nested.list_.size()));
  if (nested.list_.size() > 0) measure(*nested.list_.begin(), depth + 1, shape);
}

template <class E> void collect(const Nested<E>& nested, int depth, const Shape& shape, E*& out) {
  require<ShapeError>(nested.is_list_ == (depth < shape.rank()),
                      "tensor: a {} stands among {} at depth {} of the braces; each level must be all lists or all "
                      "numbers",
                      nested.is_list_ ? "list" : "number", nested.is_list_ ? "numbers" : "lists", depth);
  if (!nested.is_list_) {
    *out++ = nested.value_;
    return;
  }
  const auto size = static_cast<std::int64_t>(nested.list_.size());
  require<ShapeError>(size == shape[depth],
                      "tensor: ragged braces: a list of {} where its neighbours have {} (depth {})", size, shape[depth],
                      depth);
  for (const Nested<E>& inner : nested.list_) collect(inner, depth + 1, shape, out);
}

}  // namespace
}  // namespace detail

template <class E> Buffer<E>::Buffer(const Shape& shape, const char* op) : Buffer() {
  header_->numel = shape.numel(op);
  header_->storage = detail::new_storage(op, shape, header_->numel, sizeof(E));
  header_->data = header_->storage->elements();
  header_->shape = shape;
  header_->strides = row_major(shape);
}

template <class E> Tensor<E>::Tensor(std::initializer_list<detail::Nested<E>> values) {
  const detail::Nested<E> all(values);
  Shape shape;
  detail::measure(all, 0, shape);
  Buffer<E> buffer(shape);
  E* out = buffer.data();
  detail::collect(all, 0, shape, out);
  *this = std::move(buffer);
}

template <class E> E Tensor<E>::at(std::initializer_list<std::int64_t> indices) const {
  require<IndexError>(indices.size() == static_cast<std::size_t>(rank()),
                      "at: {} indices for shape {}; give one for each axis", indices.size(), shape());
  if (detail::read_watch<E> != nullptr) detail::read_watch<E>(*this);
  const E* at = data();
  int axis = 0;
  for (std::int64_t index : indices) {
    const std::int64_t size = shape()[axis];
    require<IndexError>(index >= -size && index < size, "at: index {} on axis {} of shape {}; it must be in {} to {}",
                        index, axis, shape(), -size, size - 1);
    at += (index < 0 ? index + size : index) * strides()[axis];
    ++axis;
  }
  return *at;
}

template <class E> std::vector<E> Tensor<E>::to_vector() const {
  std::vector<E> values;
  try {
    values.reserve(static_cast<std::size_t>(numel()));
  } catch (const std::exception&) {
    raise<Error>("to_vector: there is no memory for the {} elements of shape {}", numel(), shape());
  }
  kernels::for_each_element(shape().rank(), shape().begin(), strides().begin(),
                            [&](std::int64_t offset) { values.push_back(data()[offset]); });
  return values;
}

template <class E> std::int64_t Tensor<E>::rows() const {
  require<ShapeError>(rank() > 0, "for: a tensor of rank 0 is one number, which item() reads");
  return shape()[0];
}

template <class E> Tensor<E> Tensor<E>::view(const Shape& shape, const Strides& strides, const E* first) const {
  const detail::Header& base = header();
  if (base.storage == nullptr) return Tensor(Buffer<E>(shape));  // the shared empty tensor has nothing to share
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

template <class E> Tensor<E> Tensor<E>::unrecorded() const {
  Tensor out = view(shape(), strides(), data());
  const_cast<detail::Header*>(out.header_)->detached = true;
  return out;
}

template <class E> Tensor<E> full(const Shape& shape, NumberFor<E> value, const char* op) {
  Buffer<E> out(shape, op);
  std::fill_n(out.data(), out.numel(), value);
  return out;
}

namespace {

// How many of start, start + step, … come before stop.
template <class E> std::int64_t steps(E start, E stop, E step) {
  if constexpr (std::is_integral_v<E>) {  // in unsigned numbers, which hold every distance
    if (step > 0 ? stop <= start : stop >= start) return 0;
    const auto from = static_cast<std::uint64_t>(start), to = static_cast<std::uint64_t>(stop);
    const std::uint64_t distance = step > 0 ? to - from : from - to;
    const std::uint64_t stride = step > 0 ? static_cast<std::uint64_t>(step) : 0 - static_cast<std::uint64_t>(step);
    return static_cast<std::int64_t>(std::min((distance - 1) / stride + 1, std::uint64_t{1} << 62));
  } else {
    const double count =
        std::ceil((static_cast<double>(stop) - static_cast<double>(start)) / static_cast<double>(step));
    require<ValueError>(std::abs(count) < 9e18, "arange: from {} to {} by {} has no end", start, stop, step);
    return static_cast<std::int64_t>(std::max(count, 0.0));
  }
}

}  // namespace

template <class E> Numeric<E> arange(NumberFor<E> from, NumberFor<E> to, NumberFor<E> by) {
  const E start = from, stop = to, step = by;
  require<ValueError>(step != E{}, "arange: step 0 never arrives; give one that is positive or negative");
  Buffer<E> out({steps(start, stop, step)}, "arange");
  if constexpr (std::is_integral_v<E>) {
    for (std::int64_t i = 0; i < out.numel(); ++i)
      out[i] = static_cast<E>(static_cast<std::uint64_t>(start) +
                              static_cast<std::uint64_t>(i) * static_cast<std::uint64_t>(step));
  } else {  // NumPy's difference of the first two, in which step may have been rounded
    const E difference = static_cast<E>(static_cast<double>(start) + static_cast<double>(step)) - start;
    for (std::int64_t i = 0; i < out.numel(); ++i) out[i] = start + static_cast<E>(i) * difference;
  }
  return out;
}

template <Floating E> Tensor<E> linspace(E start, std::type_identity_t<E> stop, std::int64_t count) {
  Buffer<E> out({count}, "linspace");
  const double first = static_cast<double>(start),
               step = (static_cast<double>(stop) - first) / std::max(1.0, double(count - 1));
  require<ValueError>(std::isfinite(step) || !std::isfinite(first) || !std::isfinite(stop),
                      "linspace: from {} to {} is further than {} can count", start, stop, dtype_name<E>());
  for (std::int64_t i = 0; i < count; ++i) out[i] = i > 0 && i == count - 1 ? stop : E(double(i) * step + first);
  return out;
}

template <class E> Tensor<E> eye(std::int64_t n) {
  Buffer<E> out({n, n}, "eye");
  std::fill_n(out.data(), out.numel(), E{});
  for (std::int64_t i = 0; i < n; ++i) out[i * n + i] = E{1};
  return out;
}

template <class E> Tensor<E> from_vector(const std::vector<E>& values, const Shape& shape) {
  require<ShapeError>(
      std::find(shape.begin(), shape.end(), -1) == shape.end(),
      "from_vector: {} leaves a size open; give every size, or write from_vector(values).reshape({{…}}) "
      "with the -1",
      shape);
  require<ShapeError>(static_cast<std::int64_t>(values.size()) == shape.numel("from_vector"),
                      "from_vector: {} values for shape {}, which has {}", values.size(), shape, shape.numel());
  Buffer<E> out(shape);
  std::copy(values.begin(), values.end(), out.data());
  return out;
}

#define TAPEHEAD_TENSOR(E)                                             \
  template const char* dtype_name<E>();                                \
  template class Buffer<E>;                                            \
  template class Tensor<E>;                                            \
  template Tensor<E> full<E>(const Shape&, NumberFor<E>, const char*); \
  template Tensor<E> eye<E>(std::int64_t);                             \
  template Tensor<E> from_vector<E>(const std::vector<E>&, const Shape&);
TAPEHEAD_ELEMENTS(TAPEHEAD_TENSOR)
template Tensor<float> linspace<float>(float, float, std::int64_t);
template Tensor<double> linspace<double>(double, double, std::int64_t);
template Tensor<float> arange<float>(NumberFor<float>, NumberFor<float>, NumberFor<float>);
template Tensor<double> arange<double>(NumberFor<double>, NumberFor<double>, NumberFor<double>);
template Tensor<std::int64_t> arange<std::int64_t>(NumberFor<std::int64_t>, NumberFor<std::int64_t>,
                                                   NumberFor<std::int64_t>);

}  // namespace tapehead
