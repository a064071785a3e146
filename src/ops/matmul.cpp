#include "tapehead/ops/matmul.hpp"

#include <algorithm>
#include <vector>

#include "kernels/gemm.hpp"
#include "kernels/require.hpp"
#include "kernels/walk.hpp"
#include "tapehead/autograd/record.hpp"
#include "tapehead/ops/arithmetic.hpp"
#include "tapehead/ops/reduce.hpp"
#include "tapehead/ops/views.hpp"

namespace tapehead {

namespace {

// One operand as a batch of matrices: a vector is one row on the left, one column on the right.
template <class T> struct Matrices {
  Matrices(const Tensor<T>& x, bool left) : data(x.data()) {
    const int rank = x.rank();
    if (rank == 1) {
      rows = left ? 1 : x.shape()[0], columns = left ? x.shape()[0] : 1;
      row_step = left ? 0 : x.strides()[0], column_step = left ? x.strides()[0] : 0;
    } else {
      rows = x.shape()[rank - 2], columns = x.shape()[rank - 1];
      row_step = x.strides()[rank - 2], column_step = x.strides()[rank - 1];
      batch = Shape(x.shape().begin(), x.shape().end() - 2);
      batch_strides = Strides(x.strides().begin(), x.strides().end() - 2);
    }
  }
  const T* data;
  std::int64_t rows, columns, row_step, column_step;
  Shape batch;
  Strides batch_strides;
};

template <class T> Tensor<T> product(const Tensor<T>& A, const Tensor<T>& B) {
  require<ShapeError>(A.rank() > 0 && B.rank() > 0,
                      "matmul: {} @ {}: an operand is zero-dimensional; multiply by a number with *", A.shape(),
                      B.shape());
  const Matrices<T> a(A, true), b(B, false);
  if (a.columns != b.rows) {
    const char* turned = B.rank() < 2 || a.columns != b.columns ? ""
                         : B.rank() == 2                        ? "; did you mean matmul(a, b.T())?"
                                                                : "; did you mean matmul(a, mT(b))?";
    raise<ShapeError>("matmul: {} @ {}: inner sizes {} and {} differ{}", A.shape(), B.shape(), a.columns, b.rows,
                      turned);
  }
  Shape shape = broadcast_shapes("matmul", a.batch, b.batch);
  const Shape batch = shape;
  if (A.rank() > 1) shape = shape.with(shape.rank(), a.rows);
  if (B.rank() > 1) shape = shape.with(shape.rank(), b.columns);
  Buffer<T> C(shape, "matmul");

  // A batch of rows against one matrix is one product of a tall matrix.
  if (B.rank() <= 2 && A.rank() > 2 && A.is_contiguous()) {
    const std::int64_t rows = a.batch.numel() * a.rows;
    kernels::gemm<T>(rows, b.columns, a.columns, a.data, a.columns, 1, b.data, b.row_step, b.column_step, C.data(),
                     b.columns);
    return C;
  }
  std::vector<std::int64_t> a_at, b_at;
  const Strides a_strides = broadcast_strides(a.batch, a.batch_strides, batch),
                b_strides = broadcast_strides(b.batch, b.batch_strides, batch);
  kernels::for_each_element(batch.rank(), batch.begin(), a_strides.begin(),
                            [&](std::int64_t offset) { a_at.push_back(offset); });
  kernels::for_each_element(batch.rank(), batch.begin(), b_strides.begin(),
                            [&](std::int64_t offset) { b_at.push_back(offset); });
  kernels::gemm_batch<T>(static_cast<std::int64_t>(a_at.size()), a.rows, b.columns, a.columns, a.data, a_at.data(),
                         a.row_step, a.column_step, b.data, b_at.data(), b.row_step, b.column_step, C.data());
  return C;
}

// The gradients in matrix form. Where B is one matrix for a whole batch of A, the batch is folded into its
// rows, so that dB comes as one product and not as a batch to be summed.
template <class T> Tensor<T> as_rows(const Tensor<T>& x, int last) {
  std::int64_t rows = 1;
  for (int axis = 0; axis < x.rank() - last; ++axis) rows *= x.shape()[axis];
  return reshape(x, last == 0 ? Shape{rows} : Shape{rows, x.size(-1)});
}

template <class T> Tensor<T> gradient_of_left(const Shape& A, const Tensor<T>& B, const Tensor<T>& dC) {
  if (A.rank() == 1 && B.rank() == 1) return dC * B;                   // c = Σ aᵢ bᵢ
  if (B.rank() == 1) return unsqueeze(dC, -1) * B;                     // rows times a column
  if (A.rank() == 1) return matmul(B, unsqueeze(dC, -1)).squeeze(-1);  // a row times matrices
  return matmul(dC, mT(B));
}

template <class T> Tensor<T> gradient_of_right(const Tensor<T>& A, const Shape& B, const Tensor<T>& dC) {
  if (A.rank() == 1 && B.rank() == 1) return dC * A;
  if (A.rank() == 1) return unsqueeze(A, -1) * unsqueeze(dC, -2);
  if (B.rank() == 1) return matmul(as_rows(A, 1).T(), as_rows(dC, 0));
  if (B.rank() == 2) return matmul(as_rows(A, 1).T(), as_rows(dC, 1));
  return matmul(mT(A), dC);
}

}  // namespace

const Op matmul_op{"matmul", "C = A B", "dA = dC Bᵀ, dB = Aᵀ dC", "(…, m, k) (…, k, n) → (…, m, n)"};
template <class T> Real<T> matmul(const Tensor<T>& A, const Like<T>& B) {
  const auto into_A = [shape = A.shape()](const auto& dC, const auto& right) {
    return gradient_of_left(shape, right, dC);
  };
  const auto into_B = [shape = B.shape()](const auto& dC, const auto& left) {
    return gradient_of_right(left, shape, dC);
  };
  return record(matmul_op, product(A, B), wrt(A, into_A, B), wrt(B, into_B, A));
}

const Op linear_op{"linear", "y = x Wᵀ + b", "dx = dy W, dW = dyᵀ x, db = Σ dy", "(…, in) (out, in) (out) → (…, out)"};
template <class T>
Real<T> linear(const Tensor<T>& x, const Like<T>& W, const std::type_identity_t<std::optional<Tensor<T>>>& b) {
  if (x.rank() == 0 || W.rank() != 2 || x.size(-1) != W.size(1) || (b && b->shape() != Shape{W.size(0)}))
    raise<ShapeError>("linear: x {}, W {}{}; they must be (…, in), (out, in){}", x.shape(), W.shape(),
                      b ? ", b " + b->shape().str() : "", b ? " and (out,)" : "");
  const std::int64_t in = W.size(1), out = W.size(0);
  Buffer<T> y(x.shape().replaced(x.rank() - 1, out), "linear");
  const std::int64_t rows = out == 0 ? 0 : y.numel() / out;
  const Tensor<T> none;  // known to no tape: what is left out has no gradient
  const Tensor<T> from = contiguous(detach(x));
  const Tensor<T> row = b ? contiguous(detach(*b)) : none;
  kernels::gemm_row<T>(rows, out, in, from.data(), in, 1, W.data(), W.strides()[1], W.strides()[0],
                       b ? row.data() : nullptr, y.data(), out);
  const auto into_x = [](const auto& dy, const auto& weight) { return matmul(dy, weight); };
  const auto into_W = [](const auto& dy, const auto& at) { return matmul(as_rows(dy, 1).T(), as_rows(at, 1)); };
  return record(linear_op, Tensor<T>(std::move(y)), wrt(x, into_x, W), wrt(W, into_W, x),
                wrt(b ? *b : none, [](const auto& dy) { return dy; }));
}

#define TAPEHEAD_MATMUL(T)                                       \
  template Tensor<T> matmul(const Tensor<T>&, const Tensor<T>&); \
  template Tensor<T> linear<T>(const Tensor<T>&, const Tensor<T>&, const std::optional<Tensor<T>>&);
TAPEHEAD_REALS(TAPEHEAD_MATMUL)

}  // namespace tapehead
