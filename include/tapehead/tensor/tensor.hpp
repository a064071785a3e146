#pragma once
#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tapehead/kernels/error.hpp"
#include "tapehead/kernels/memory.hpp"
#include "tapehead/tensor/real.hpp"
#include "tapehead/tensor/shape.hpp"

namespace tapehead {

/// "float", "double", "bool" or "int64".
template <class E> const char* dtype_name();

namespace detail {

// The elements, shared by a tensor and its views. They follow this struct, 64 bytes in.
struct alignas(64) Storage {
  std::atomic<std::int64_t> owners{1};
  std::atomic<int> watchers{0};  // tapes that watch a tensor kept here: see Tape::find
  std::size_t bytes = 0;         // of the whole block
  void* elements() { return this + 1; }
};

// What a tensor is: immutable, counted, shared by its copies.
struct Header {
  mutable std::atomic<std::int64_t> owners{1};
  std::int64_t id = 0;  // given at birth, shared by copies; a view has its own
  Storage* storage = nullptr;
  void* data = nullptr;  // the first element: the storage's, or further in for a view
  Shape shape;
  Strides strides;
  std::int64_t numel = 0;
  bool contiguous = true;  // stored row after row, without gaps
  bool detached = false;   // made by detach(), or a view of such a tensor
};

std::int64_t next_id();
const Header& empty_header();
Storage* new_storage(const char* op, const Shape& shape, std::int64_t numel, std::size_t element_bytes);
Header* new_header();
const Header* share(const Header* header) noexcept;                             // one owner more; null stays null
const Header* share_copied(const Header* header, const void* tensor) noexcept;  // see copy_hook
void drop(const Header* header) noexcept;                                       // one fewer; the last takes it along
[[noreturn]] void raise_not_scalar(const Shape& shape);
[[noreturn]] void raise_beyond_int64(unsigned long long value);

// A number, or a list of these: what nested braces are made of.
template <class E> class Nested {
 public:
  template <Number N> Nested(N value) : value_(static_cast<E>(value)) {
    static_assert(
        std::is_floating_point_v<E> || (std::is_same_v<E, bool> == std::is_same_v<N, bool> && std::is_integral_v<N>),
        "Tensor<std::int64_t> holds whole numbers and Tensor<bool> true and false: write Tensor<double>{1.5}");
    if constexpr (std::is_same_v<E, std::int64_t> && std::is_unsigned_v<N>)
      if (value_ < 0) raise_beyond_int64(value);
  }
  Nested(std::initializer_list<Nested> list) : list_(list), is_list_(true) {}

  E value_{};
  std::initializer_list<Nested> list_;  // in the caller's expression, which outlives this
  bool is_list_ = false;
};

// Called, where set, with each tensor that item() or at() reads on this thread: how flex_attention notices a
// score function that captured what it should have bound.
template <class E> using ReadWatch = void (*)(const Tensor<E>&);
template <class E> inline constinit thread_local ReadWatch<E> read_watch = nullptr;
// Called, where set, with the address of each tensor that is copied on this thread: gives the header that the copy
// holds, or null for the tensor's own. A module sets it while it is copied, see models/module.hpp. Called with two
// nulls when a tensor is made, which ends the copy.
using CopyHook = const Header* (*)(const Header* header, const void* tensor) noexcept;
inline constinit thread_local CopyHook copy_hook = nullptr;
}  // namespace detail

/// The elements of a tensor that is being made: filled through data(), then moved once into a Tensor.
template <class E> class Buffer {
 public:
  static_assert(Element<E>, "a buffer holds float, double, bool or std::int64_t");
  /// Uninitialised elements. Throws ShapeError naming `op` where the shape is negative or too large.
  explicit Buffer(const Shape& shape, const char* op = "tensor");
  Buffer(Buffer&& other) noexcept : header_(std::exchange(other.header_, nullptr)) {}
  Buffer& operator=(Buffer&&) = delete;
  ~Buffer() { detail::drop(header_); }

  E* data() { return static_cast<E*>(header_->data); }
  /// Element i in row-major order. Where the standard library's assertions are on, as in exercises and
  /// notebooks, throws IndexError if i is outside; otherwise i is not checked.
#ifdef _GLIBCXX_ASSERTIONS
  [[gnu::always_inline]] E& operator[](std::int64_t i) {  // inlined, because the library's own copy does not check
    if (i < 0 || i >= numel())
      throw IndexError("Buffer: index " + std::to_string(i) + " is outside: there are " + std::to_string(numel()) +
                       " elements, from index 0");
    return data()[i];
  }
#else
  E& operator[](std::int64_t i) { return data()[i]; }
#endif
  const Shape& shape() const& { return header_->shape; }
  Shape shape() const&& { return header_->shape; }
  std::int64_t numel() const { return header_->numel; }

 private:
  friend class Tensor<E>;
  Buffer() : header_(detail::new_header()) {}
  detail::Header* header_;
};

/// An array of float, double, bool or std::int64_t with up to six axes. A value: copies share one immutable
/// header and the elements, and cost a count. No operation changes its inputs. A default or moved-from tensor
/// has shape (0,). Accessors return a reference into the tensor, and on a temporary tensor the value itself.
template <class E> class Tensor {
 public:
  static_assert(Element<E>,
                "a tensor holds float, double, bool or std::int64_t: write Tensor<std::int64_t>, "
                "zeros<double>({2, 3}), scalar(2.0); to<double>(x) converts a tensor");
  using element = E;

  Tensor() = default;
  /// Nested braces are values, never a shape: `Tensor<double> K{{1, 0}, {0, 1}, {2, 3}}` has shape (3, 2).
  /// Throws ShapeError on ragged rows and on more than six levels.
  Tensor(std::initializer_list<detail::Nested<E>> values);
  Tensor(Buffer<E>&& filled) : header_(std::exchange(filled.header_, nullptr)) {}

  Tensor(const Tensor& other) noexcept : header_(detail::share_copied(other.header_, &other)) {}
  Tensor(Tensor&& other) noexcept : header_(std::exchange(other.header_, nullptr)) {}
  /// No tensor is converted implicitly: this says what to write.
  template <class U> Tensor(const Tensor<U>&) { static_assert(detail::converts<E, U>()); }
  Tensor& operator=(Tensor other) noexcept {
    std::swap(header_, other.header_);
    return *this;
  }
  ~Tensor() { detail::drop(header_); }

  const Shape& shape() const& { return header().shape; }
  Shape shape() const&& { return header().shape; }
  int rank() const { return shape().rank(); }
  std::int64_t numel() const { return header().numel; }
  /// The size along one axis; negative axes count from the end.
  std::int64_t size(int axis) const { return shape()[normalize_axis("size", axis, shape())]; }

  /// The value of a tensor with exactly one element, whatever its rank. Throws ShapeError otherwise.
  E item() const {
    if (numel() != 1) detail::raise_not_scalar(shape());
    if (detail::read_watch<E> != nullptr) detail::read_watch<E>(*this);
    return *data();
  }
  /// One element by its indices, one an axis; negative ones count from the end. Throws IndexError.
  E at(std::initializer_list<std::int64_t> indices) const;
  /// All elements, row after row.
  std::vector<E> to_vector() const;
  /// for (auto row : x) visits x[0], x[1], …, recorded as those are. Throws ShapeError for a tensor of rank 0. For the
  /// numbers themselves write for (double v : x.to_vector()).
  class Rows;
  Rows begin() const { return {*this, 0}; }
  Rows end() const { return {*this, rows()}; }

  // Views share the elements (and are recorded on a tape like any operation): see views.hpp for the rules.
  Tensor reshape(const Shape& shape) const;  ///< one size may be -1; copies what cannot be a view
  Tensor transpose(int axis0, int axis1) const;
  Tensor T() const;  ///< rank 2 only; mT() swaps the last two axes of any rank
  Tensor permute(const std::vector<int>& axes) const;
  Tensor slice(int axis, std::int64_t start, std::int64_t stop, std::int64_t step = 1) const;
  Tensor select(int axis, std::int64_t index) const;
  Tensor operator[](std::int64_t index) const { return select(0, index); }
  Tensor unsqueeze(int axis) const;
  Tensor squeeze(int axis) const;

  // The inside, for kernels: element (i, j, …) is data()[i * strides()[0] + j * strides()[1] + …].
  const E* data() const { return static_cast<const E*>(header().data); }
  const Strides& strides() const& { return header().strides; }
  Strides strides() const&& { return header().strides; }
  bool is_contiguous() const { return header().contiguous; }
  std::int64_t id() const { return header().id; }
  const detail::Header& header() const& { return header_ != nullptr ? *header_ : detail::empty_header(); }
  /// The same elements seen through another shape; unrecorded, unchecked: for the library's own views.
  Tensor view(const Shape& shape, const Strides& strides, const E* first) const;
  /// The same tensor under a new id that no tape knows: see detach() in tape.hpp.
  Tensor unrecorded() const;

 private:
  const detail::Header& header() const&& = delete;
  std::int64_t rows() const;
  const detail::Header* header_ = nullptr;
};

template <class E> class Tensor<E>::Rows {
 public:
  Rows(const Tensor& of, std::int64_t first) : of_(of), i_(first) {}
  Tensor operator*() const { return of_[i_]; }
  Rows& operator++() { return ++i_, *this; }
  bool operator!=(const Rows& other) const { return i_ != other.i_; }

 private:
  Tensor of_;
  std::int64_t i_;
};

// Making tensors. Shapes are written {2, 3}; {} is a zero-dimensional tensor with one element.
template <class E> Tensor<E> full(const Shape& shape, NumberFor<E> value,
                                  const char* op = "full");  // op: named in errors
template <class E> Tensor<E> zeros(const Shape& shape) { return full<E>(shape, E{}, "zeros"); }
template <class E> Tensor<E> ones(const Shape& shape) { return full<E>(shape, E{1}, "ones"); }
template <class E> Tensor<E> zeros_like(const Tensor<E>& x) { return full<E>(x.shape(), E{}); }
template <class E> Tensor<E> ones_like(const Tensor<E>& x) { return full<E>(x.shape(), E{1}); }
/// A zero-dimensional tensor: scalar(2.5) is a double, scalar(2.5f) a float.
template <class E> Tensor<E> scalar(E value) { return full<E>({}, value); }
/// start, start + step, … below stop (above it where step is negative): ⌈(stop - start) / step⌉ numbers, with the
/// roundings of np.arange; exact for int64. Throws ValueError where step is 0 or there is no such number.
template <class E> Numeric<E> arange(NumberFor<E> start, NumberFor<E> stop, NumberFor<E> step = 1);
template <class E> Numeric<E> arange(NumberFor<E> stop) { return arange<E>(E{}, stop); }
/// `count` numbers from start to stop, both included, as np.linspace. Throws ShapeError where count is negative,
/// and ValueError where stop - start overflows.
template <Floating E> Tensor<E> linspace(E start, std::type_identity_t<E> stop, std::int64_t count);
/// The n x n identity, (n, n).
template <class E> Tensor<E> eye(std::int64_t n);
/// The values in row-major order. Throws ShapeError when their number is not the shape's, or a size is -1.
template <class E> Tensor<E> from_vector(const std::vector<E>& values, const Shape& shape);
template <class E> Tensor<E> from_vector(const std::vector<E>& values) {
  return from_vector(values, {static_cast<std::int64_t>(values.size())});
}

}  // namespace tapehead
