// Matrix products against the machine's ceiling and against OpenBLAS, Eigen, NumPy and PyTorch.

#include "kernels/gemm.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench.hpp"
#include "kernels/gemm_bf16.hpp"
#include "peers.hpp"
#include "tapehead/kernels/memory.hpp"

using namespace bench;
namespace kernels = tapehead::kernels;

namespace {

struct Size {
  std::string name;
  int64_t m, n, k;
};

std::vector<Size> square(std::initializer_list<int64_t> sizes) {
  std::vector<Size> result;
  for (int64_t n : sizes) result.push_back({std::to_string(n), n, n, n});
  return result;
}

/// Memory such as tensors have: on huge pages where it is large.
template <class T> class Cells {
 public:
  explicit Cells(int64_t size) : bytes_(static_cast<std::size_t>(size) * sizeof(T)) {
    data_ = static_cast<T*>(tapehead::detail::allocate(bytes_));
    for (int64_t i = 0; i < size; ++i) data_[i] = static_cast<T>(i % 17) / T(16) - T(0.5);
  }
  ~Cells() { tapehead::detail::release(data_, bytes_); }
  Cells(const Cells&) = delete;
  Cells& operator=(const Cells&) = delete;
  T* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  std::size_t bytes_;
  T* data_;
};

template <class T> struct Problem {
  explicit Problem(Size s) : size(std::move(s)), A(size.m * size.k), B(size.k * size.n), C(size.m * size.n) {}
  double operations() const { return 2.0 * static_cast<double>(size.m) * static_cast<double>(size.n * size.k); }
  /// Each matrix once: what has to be moved at least.
  double bytes() const { return static_cast<double>(A.bytes() + B.bytes() + C.bytes()); }

  Size size;
  Cells<T> A, B, C;
};

template <class T> void ours(Problem<T>& p) {
  kernels::gemm(p.size.m, p.size.n, p.size.k, p.A.data(), p.size.k, 1, p.B.data(), p.size.n, 1, p.C.data(), p.size.n);
}

struct Peers {
  OpenBlas blas;
  Python python;
  bool numpy = !python.version("numpy").empty(), torch = !python.version("torch").empty();
};

/// One thread each, all sizes.
template <class T>
void compare(Report& report, Peers& peers, const std::string& title, const std::vector<Size>& sizes) {
  report.table(title, {"GFLOP/s", "± %", "% of peak", "MB", "/ OpenBLAS", "/ Eigen", "/ NumPy", "/ PyTorch"});
  const std::string type = sizeof(T) == 4 ? "float32" : "float64";
  for (const Size& s : sizes) {
    auto p = std::make_shared<Problem<T>>(s);
    std::vector<Contender> contenders = {here("ours", [p] { ours(*p); })};
    const auto join = [&](const char* name, const Gemm<T>& gemm) {
      contenders.push_back(
          here(name, [p, gemm] { gemm(p->size.m, p->size.n, p->size.k, p->A.data(), p->B.data(), p->C.data()); }));
    };
    if (peers.blas.there()) join("OpenBLAS", peers.blas.gemm<T>());
    if (const auto gemm = eigen_gemm<T>()) join("Eigen", gemm);
    const std::string task = fmt::format(" matmul {} 1 {} {} {}", type, s.m, s.n, s.k);
    if (peers.numpy) contenders.push_back(peers.python.contender("NumPy", "numpy" + task));
    if (peers.torch) contenders.push_back(peers.python.contender("PyTorch", "torch" + task));

    const double peak = ceiling<T>();
    const auto results = race(contenders);
    const double speed = 1e-9 * p->operations() / results[0].seconds;
    std::vector<std::optional<double>> row = {speed, 100 * results[0].spread, 100 * speed / peak, 1e-6 * p->bytes()};
    for (const char* name : {"OpenBLAS", "Eigen", "NumPy", "PyTorch"}) row.push_back(ratio_of(name, results));
    report.row(s.name, row);
  }
}

/// How much a second thread brings, to us and to OpenBLAS.
void two_threads(Report& report, Peers& peers) {
  report.table("float, two threads over one", {"ours", "OpenBLAS"});
  for (const Size& s : square({128, 256, 512, 1024, 2048})) {
    auto p = std::make_shared<Problem<float>>(s);
    const auto times = [&](const std::function<void()>& work, const std::function<void(int)>& set) {
      std::vector<Contender> contenders;
      for (int n : {2, 1})
        contenders.push_back({std::to_string(n), [=](int64_t count) {
                                set(n);
                                work();  // the threads come awake
                                return here("", work, wall_clock).seconds(count);
                              }});
      const double ratio = race(contenders)[1].ratio;
      set(1);
      return ratio;
    };
    const auto gemm = peers.blas.there() ? peers.blas.gemm<float>() : nullptr;
    std::optional<double> theirs;
    if (gemm)
      theirs = times([=] { gemm(s.m, s.n, s.k, p->A.data(), p->B.data(), p->C.data()); },
                     [&](int n) { peers.blas.threads(n); });
    report.row(s.name, {times([=] { ours(*p); }, use_threads), theirs});
  }
}

}  // namespace

int main(int, char** argv) {
  Report report("gemm", argv[0]);
  Peers peers;
  use_threads(1);
  peers.blas.threads(1);
  report.note(peers.blas.about());
  report.note(about_eigen());
  report.note(peers.python.about("numpy"));
  report.note(peers.python.about("torch"));
  report.note(
      "One thread: medians of interleaved turns, in time of the processor. Peak: multiply-adds alone, "
      "measured");
  report.note(
      "just before each row. MB: A, B and C once. / peer: the peer's time over ours, above 1 is faster than "
      "the peer.");

  report.note(kernels::bf16_pays(512, 512, 512)
                  ? "Large products of floats: on the matrix unit, so more than the peak of the vectors."
                  : "No matrix unit: all products in vectors.");
  compare<float>(report, peers, "float, n x n x n", square({8, 16, 32, 64, 128, 256, 512, 1024, 2048}));
  compare<double>(report, peers, "double, n x n x n", square({8, 16, 32, 64, 128, 256, 512, 1024}));
  compare<float>(report, peers, "float, other shapes (m x n x k)",
                 {{"6x6x8", 6, 6, 8},
                  {"64x64x32", 64, 64, 32},
                  {"1x1024x1024", 1, 1024, 1024},
                  {"1024x1x1024", 1024, 1, 1024},
                  {"16x1024x1024", 16, 1024, 1024},
                  {"768x128x128", 768, 128, 128},
                  {"768x512x128", 768, 512, 128},
                  {"768x65x128", 768, 65, 128},
                  {"1000x1000x10", 1000, 1000, 10},
                  {"10x10x100000", 10, 10, 100'000}});
  two_threads(report, peers);
}
