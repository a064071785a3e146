// Every case of sdpa.npz, on every rung that can express it: from operations on the tape, attention(), the
// gradients by hand, and the fused kernel; in double to the case's tolerance, and the fused kernel in float
// to its own bound.
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "golden_cases.hpp"
#include "tapehead/tapehead.hpp"
#include "testing.hpp"

using namespace tapehead;

namespace {

const NamedTensors& tensors() {
  static const NamedTensors loaded = load_npz(golden::path("sdpa.npz"));
  return loaded;
}

// float holds 24 bits; sums of some dozens of terms of mixed size leave a few dozen roundings of the largest.
constexpr double float_tolerance = 2e-6;

struct Case {
  explicit Case(const golden::Words& line)
      : name(line.text("name")), tol(line.number("tol")), options(golden::options(line.text("options"))) {
    for (const char* key : {"q", "k", "v", "d_out", "bias"})
      if (has(key)) input.emplace_back(key, tensors().get<double>(name + "/in/" + key));
  }
  bool has(const std::string& key) const { return tensors().contains(name + "/in/" + key); }
  const Tensor<double>& operator()(const std::string& key) const {
    for (const auto& [own, x] : input)
      if (own == key) return x;
    throw std::runtime_error("golden: no input '" + key + "' in " + name);
  }
  Tensor<double> result(const std::string& key) const { return tensors().get<double>(name + "/out/" + key); }
  bool packed() const { return options.text("layout") == "thd"; }
  bool causal() const { return options.flag("causal"); }
  Align align() const { return options.text("align") == "bottom_right" ? Align::bottom_right : Align::top_left; }
  double scale() const {
    const double own = options.number("scale", 1 / std::sqrt(static_cast<double>((*this)("q").size(-1))));
    return own / options.number("temperature", 1);
  }

  std::string name;
  double tol;
  golden::Words options;
  std::vector<std::pair<std::string, Tensor<double>>> input;
};

// j - q_pos, (Lq, Lk).
Tensor<double> distance(std::int64_t Lq, std::int64_t Lk, Align align) {
  const double shift = align == Align::bottom_right ? static_cast<double>(Lk - Lq) : 0;
  return unsqueeze(arange<double>(static_cast<double>(Lk)), 0) -
         unsqueeze(arange<double>(static_cast<double>(Lq)) + shift, 1);
}

Tensor<double> per_head(const std::vector<double>& values) {
  return from_vector(values, {static_cast<std::int64_t>(values.size()), 1, 1});
}

// Everything that hides keys, but causal: mask, window and documents together.
std::optional<Tensor<bool>> mask_of(const Case& c, std::int64_t Lq, std::int64_t Lk) {
  std::optional<Tensor<bool>> mask;
  const auto also = [&](const Tensor<bool>& m) { mask = mask ? *mask & m : m; };
  if (c.has("mask")) also(tensors().get<bool>(c.name + "/in/mask"));
  if (c.options.has("window")) {
    const auto window = c.options.integers("window");
    const Tensor<double> far = distance(Lq, Lk, c.align());
    if (window[0] >= 0) also(far >= -window[0]);
    if (window[1] >= 0) also(far <= window[1]);
  }
  if (c.has("doc_q")) {
    const auto q = tensors().get<std::int64_t>(c.name + "/in/doc_q"),
               k = tensors().get<std::int64_t>(c.name + "/in/doc_k");
    also(unsqueeze(eq(unsqueeze(q, -1), unsqueeze(k, -2)), 1));
  }
  return mask;
}

// What is added to the scores: the bias, ALiBi and relative positions; nothing when a score function
// multiplies.
std::optional<Tensor<double>> added(const Case& c, std::int64_t Lq, std::int64_t Lk) {
  std::optional<Tensor<double>> sum;
  const auto plus = [&](const Tensor<double>& x) { sum = sum ? *sum + x : x; };
  if (c.has("bias")) plus(c("bias"));
  if (c.options.has("alibi.slopes")) {
    const auto far = distance(Lq, Lk, c.align()), slopes = per_head(c.options.numbers("alibi.slopes"));
    plus(c.options.text("alibi.form") == "signed" ? slopes * far : -(slopes * abs(far)));
  }
  return sum;
}

bool has_score_function(const Case& c) { return c.options.has("softcap") || c.options.has("score_mod.0.kind"); }

// The README's order of operations, written in operations.
Tensor<double> from_operations(const Case& c, const Tensor<double>& Q, const Tensor<double>& K,
                               const Tensor<double>& V) {
  const std::int64_t Lq = Q.size(-2), Lk = K.size(-2), group = Q.rank() > 2 ? Q.size(-3) / K.size(-3) : 1;
  const auto heads = [group](const Tensor<double>& x) {
    if (group <= 1) return x;
    std::vector<Tensor<double>> repeated;
    for (std::int64_t h = 0; h < x.size(-3); ++h)
      for (std::int64_t g = 0; g < group; ++g) repeated.push_back(x.slice(-3, h, h + 1));
    return cat(repeated, -3);
  };
  Tensor<double> S = matmul(Q, mT(heads(K))) * c.scale();
  if (c.options.has("softcap")) S = tanh(S / c.options.number("softcap")) * c.options.number("softcap");
  for (int n = 0; c.options.has("score_mod." + std::to_string(n) + ".kind"); ++n) {
    const std::string at = "score_mod." + std::to_string(n) + ".", kind = c.options.text(at + "kind");
    if (kind == "rel_pos")
      S = S - distance(Lq, Lk, c.align()) * c.options.number(at + "coef");
    else if (kind == "head_scale")
      S = S * per_head(c.options.numbers(at + "factors"));
    else if (kind == "square")
      S = S * S * c.options.number(at + "coef");
    else
      throw std::runtime_error("golden: score_mod " + kind);
  }
  if (const auto plus = added(c, Lq, Lk)) S = S + *plus;
  std::optional<Tensor<bool>> mask = mask_of(c, Lq, Lk);
  if (c.causal()) mask = mask ? *mask & causal_mask(Lq, Lk, c.align()) : causal_mask(Lq, Lk, c.align());
  if (mask) S = masked_fill(S, ~*mask, -std::numeric_limits<double>::infinity());
  Tensor<double> A = softmax(S, -1, EmptyRows::zero);
  if (c.has("keep")) A = A * to<double>(tensors().get<bool>(c.name + "/in/keep")) / (1 - c.options.number("dropout_p"));
  return matmul(A, heads(V));
}

AttentionOptions<double> options_of(const Case& c, std::int64_t Lq, std::int64_t Lk) {
  AttentionOptions<double> o;
  o.mask = mask_of(c, Lq, Lk), o.bias = added(c, Lq, Lk), o.causal = c.causal(), o.align = c.align(),
  o.scale = c.scale();
  o.enable_gqa = c.options.flag("enable_gqa");
  if (c.has("keep"))
    o.keep_mask = tensors().get<bool>(c.name + "/in/keep"), o.dropout_p = c.options.number("dropout_p");
  return o;
}

using Forward = std::function<Tensor<double>(const Tensor<double>&, const Tensor<double>&, const Tensor<double>&)>;

// A packed buffer (total, H, d) as one call for each document.
Tensor<double> by_documents(const Case& c, const Tensor<double>& q, const Tensor<double>& k, const Tensor<double>& v,
                            const Forward& f) {
  const auto cu_q = tensors().get<std::int64_t>(c.name + "/in/cu_seqlens_q").to_vector();
  const auto cu_k = tensors().get<std::int64_t>(c.name + "/in/cu_seqlens_k").to_vector();
  std::vector<Tensor<double>> parts;
  for (std::size_t n = 0; n + 1 < cu_q.size(); ++n) {
    const auto document = [n](const Tensor<double>& x, const std::vector<std::int64_t>& cu) {
      return x.slice(0, cu[n], cu[n + 1]).transpose(0, 1);
    };
    parts.push_back(f(document(q, cu_q), document(k, cu_k), document(v, cu_k)).transpose(0, 1));
  }
  return cat(parts, 0);
}

// Runs a rung under a tape and holds its output and every gradient to the case.
void hold(const Case& c, const std::string& rung, const Forward& f) {
  CAPTURE(c.name);
  CAPTURE(rung);
  const Tensor<double>&q = c("q"), &k = c("k"), &v = c("v");
  Tape<double> tape;
  for (const auto& [key, x] : c.input)
    if (key != "d_out") tape.watch(x);
  const Tensor<double> out = c.packed() ? by_documents(c, q, k, v, f) : f(q, k, v);
  const auto grad = tape.backward(out, c("d_out"));
  CHECK(golden::difference(out, c.result("out"), c.tol) == ""sv);
  CHECK(golden::difference(grad[q], c.result("dq"), c.tol) == ""sv);
  CHECK(golden::difference(grad[k], c.result("dk"), c.tol) == ""sv);
  CHECK(golden::difference(grad[v], c.result("dv"), c.tol) == ""sv);
  if (c.has("bias")) CHECK(golden::difference(grad[c("bias")], c.result("d_bias"), c.tol) == ""sv);
}

}  // namespace

TEST_CASE("golden attention: every case from operations on the tape") {
  for (const auto& line : golden::table("sdpa.tsv")) {
    const Case c(line);
    hold(c, "operations", [&](const auto& q, const auto& k, const auto& v) { return from_operations(c, q, k, v); });
  }
}

TEST_CASE("golden attention: attention(), and the gradients by hand") {
  for (const auto& line : golden::table("sdpa.tsv")) {
    const Case c(line);
    if (has_score_function(c)) continue;
    hold(c, "attention()", [&](const auto& q, const auto& k, const auto& v) {
      return attention(q, k, v, options_of(c, q.size(-2), k.size(-2))).out;
    });
    if (c.packed()) continue;
    CAPTURE(c.name);
    const auto g =
        attention_backward(c("q"), c("k"), c("v"), c("d_out"), options_of(c, c("q").size(-2), c("k").size(-2)));
    CHECK(golden::difference(g.A, c.result("weights"), c.tol) == ""sv);
    CHECK(golden::difference(g.O, c.result("out"), c.tol) == ""sv);
    CHECK(golden::difference(g.dQ, c.result("dq"), c.tol) == ""sv);
    CHECK(golden::difference(g.dK, c.result("dk"), c.tol) == ""sv);
    CHECK(golden::difference(g.dV, c.result("dv"), c.tol) == ""sv);
    if (c.has("bias")) CHECK(golden::difference(*g.d_bias, c.result("d_bias"), c.tol) == ""sv);
  }
}

TEST_CASE("golden attention: the fused kernel, in double and in float") {
  int in_one_tensor = 0;
  for (const auto& line : golden::table("sdpa.tsv")) {
    const Case c(line);
    if (has_score_function(c)) continue;
    hold(c, "flash_attention()", [&](const auto& q, const auto& k, const auto& v) {
      return flash_attention(q, k, v, options_of(c, q.size(-2), k.size(-2))).out;
    });
    const Shape &of_q = c("q").shape(), &of_k = c("k").shape();
    if (!c.packed() && c("q").rank() > 2 && of_k == c("v").shape() &&
        of_q.without(of_q.rank() - 3) == of_k.without(of_k.rank() - 3)) {
      ++in_one_tensor;
      hold(c, "flash_attention_qkvpacked()", [&](const auto& q, const auto& k, const auto& v) {
        return flash_attention_qkvpacked(cat<double>({q, k, v}, -3), q.size(-3), options_of(c, q.size(-2), k.size(-2)))
            .out;
      });
    }
    // Scores of size S carry S times the rounding of one: the large-logit cases are for double.
    if (c.packed() || c.tol > 1e-12) continue;
    CAPTURE(c.name);
    const auto o = options_of(c, c("q").size(-2), c("k").size(-2));
    const Tensor<float> q = to<float>(c("q")), k = to<float>(c("k")), v = to<float>(c("v"));
    Tape<float> tape;
    tape.watch({q, k, v});
    const auto out = flash_attention(q, k, v,
                                     {.mask = o.mask,
                                      .bias = o.bias ? std::optional(to<float>(*o.bias)) : std::nullopt,
                                      .causal = o.causal,
                                      .align = o.align,
                                      .scale = o.scale,
                                      .enable_gqa = o.enable_gqa,
                                      .dropout_p = o.dropout_p,
                                      .keep_mask = o.keep_mask})
                         .out;
    const auto grad = tape.backward(out, to<float>(c("d_out")));
    CHECK(golden::difference(to<double>(detach(out)), c.result("out"), float_tolerance) == ""sv);
    CHECK(golden::difference(to<double>(grad[q]), c.result("dq"), float_tolerance) == ""sv);
    CHECK(golden::difference(to<double>(grad[k]), c.result("dk"), float_tolerance) == ""sv);
    CHECK(golden::difference(to<double>(grad[v]), c.result("dv"), float_tolerance) == ""sv);
  }
  CHECK(in_one_tensor > 5);
}

TEST_CASE("golden attention: score functions on the fused kernel, and packed buffers in one call") {
  for (const auto& line : golden::table("sdpa.tsv")) {
    const Case c(line);
    if (c.packed()) {
      CAPTURE(c.name);
      const auto cu_q = tensors().get<std::int64_t>(c.name + "/in/cu_seqlens_q"),
                 cu_k = tensors().get<std::int64_t>(c.name + "/in/cu_seqlens_k");
      Tape<double> tape;
      tape.watch({c("q"), c("k"), c("v")});
      const auto out =
          flash_attention_varlen(c("q"), c("k"), c("v"), cu_q, cu_k,
                                 {.causal = c.causal(), .align = c.align(), .scale = c.scale(), .enable_gqa = true})
              .out;
      const auto grad = tape.backward(out, c("d_out"));
      CHECK(golden::difference(out, c.result("out"), c.tol) == ""sv);
      CHECK(golden::difference(grad[c("q")], c.result("dq"), c.tol) == ""sv);
      CHECK(golden::difference(grad[c("k")], c.result("dk"), c.tol) == ""sv);
      CHECK(golden::difference(grad[c("v")], c.result("dv"), c.tol) == ""sv);
    }
    if (!has_score_function(c) || c.packed() || c.has("keep")) continue;
    // In the README's order: softcap, ALiBi, the score_mod list, the bias; every step that a case does not
    // have is skipped.
    struct Step {
      char kind;
      std::vector<double> numbers;
    };
    std::vector<Step> steps;
    if (c.options.has("softcap")) steps.push_back({'c', {c.options.number("softcap")}});
    if (c.options.has("alibi.slopes"))
      steps.push_back({c.options.text("alibi.form") == "signed" ? 'a' : 'b', c.options.numbers("alibi.slopes")});
    for (int n = 0; c.options.has("score_mod." + std::to_string(n) + ".kind"); ++n) {
      const std::string at = "score_mod." + std::to_string(n) + ".", kind = c.options.text(at + "kind");
      steps.push_back({kind == "rel_pos"      ? 'r'
                       : kind == "head_scale" ? 'h'
                                              : 's',
                       c.options.numbers(at + (kind == "head_scale" ? "factors" : "coef"))});
    }
    const std::int64_t Lq = c("q").size(-2), Lk = c("k").size(-2);
    const std::int64_t shift = c.align() == Align::bottom_right ? Lk - Lq : 0;
    const auto edit = [steps, shift](auto s, auto, auto h, auto q, auto kv) {
      const auto far = static_cast<double>(kv - q - shift);
      for (const Step& step : steps) {
        const double x = step.numbers.size() > 1 ? step.numbers[static_cast<std::size_t>(h)] : step.numbers[0];
        if (step.kind == 'c') s = x * tanh(s / x);
        if (step.kind == 'a') s = s + x * far;
        if (step.kind == 'b') s = s - x * std::abs(far);
        if (step.kind == 'r') s = s - x * far;
        if (step.kind == 'h') s = s * x;
        if (step.kind == 's') s = x * s * s;
      }
      return s;
    };
    std::optional<Tensor<bool>> hidden = mask_of(c, Lq, Lk);
    if (c.causal()) hidden = hidden ? *hidden & causal_mask(Lq, Lk, c.align()) : causal_mask(Lq, Lk, c.align());
    const Tensor<bool> mask =
        broadcast_to(hidden.value_or(full<bool>({}, true)),
                     {c("q").rank() > 3 ? c("q").size(0) : 1, c("q").rank() > 2 ? c("q").size(-3) : 1, Lq, Lk});
    const auto keep = [mask](auto b, auto h, auto i, auto j) { return mask.at({b, h, i, j}); };
    const AttentionOptions<double> flex{.scale = c.scale(), .enable_gqa = c.options.flag("enable_gqa")};
    if (c.has("bias")) {
      const auto add_bias = [edit, rank = c("bias").rank()](auto s, auto b, auto h, auto i, auto j, auto read) {
        const auto y = edit(s, b, h, i, j);
        return y + (rank == 2 ? read(i, j) : rank == 3 ? read(h, i, j) : read(b, h, i, j));
      };
      const Shape whole = c.result("weights").shape();
      hold(c, "flex_attention()", [&](const auto& q, const auto& k, const auto& v) {
        return flex_attention(q, k, v, score_mod(add_bias, broadcast_to(c("bias"), whole)), keep, flex).out;
      });
    } else {
      hold(c, "flex_attention()",
           [&](const auto& q, const auto& k, const auto& v) { return flex_attention(q, k, v, edit, keep, flex).out; });
    }
  }
}
