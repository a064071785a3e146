// The engine of the page. A state of the page is one line of text, which is also what stands behind # in a link:
//
//   draw=numpy:1:4,4,8,8&causal=1&dO=at:0,2
//
// run() reads such a line, computes attention and its gradients with the library, and answers in JSON. In the browser
// the page's script calls it; built for this machine, the same file is a program that answers each line of its input.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tapehead/attention/attention.hpp"
#include "tapehead/attention/masks.hpp"
#include "tapehead/autograd/tape.hpp"
#include "tapehead/checks/jacobian.hpp"
#include "tapehead/ops/arithmetic.hpp"
#include "tapehead/ops/math.hpp"
#include "tapehead/ops/matmul.hpp"
#include "tapehead/ops/reduce.hpp"
#include "tapehead/ops/select.hpp"
#include "tapehead/ops/softmax.hpp"
#include "tapehead/ops/views.hpp"
#include "tapehead/random/random.hpp"

using namespace tapehead;

namespace {

constexpr std::int64_t most_rows = 16, most_columns = 64;
constexpr double most = 1e9;

// Something in the state that cannot be used, and where: the page shows the message at that cell.
struct Fault {
  std::string field, message;
  int row = -1, column = -1;
};

using Row = std::vector<double>;
using Rows = std::vector<Row>;

struct Draw {
  std::string generator;  // numpy or torch
  std::int64_t seed = 0, Lq = 0, Lk = 0, d_k = 0, d_v = 0;
};

struct State {
  std::optional<Draw> draw;
  std::map<std::string, Rows> given;  // Q, K, V and dO, as far as they were not drawn
  std::string dO = "ones", scale = "sqrt", empty = "zero", type = "double";
  double tau = 1, fill = -std::numeric_limits<double>::infinity();
  bool causal = false;
  std::optional<std::int64_t> length;  // of the keys, how many are not padding
  std::vector<std::string> mask;       // a row for each query: 1 = may attend
  int axis = -1;
  std::int64_t row = 0;  // whose Jacobian is shown

  std::int64_t Lq() const { return rows("Q", draw ? draw->Lq : 0); }
  std::int64_t Lk() const { return rows("K", draw ? draw->Lk : 0); }
  std::int64_t d_k() const { return columns("K", draw ? draw->d_k : 0); }
  std::int64_t d_v() const { return columns("V", draw ? draw->d_v : 0); }
  bool masked() const { return causal || length || !mask.empty(); }
  // What the scores are divided by.
  double divisor() const {
    const auto width = static_cast<double>(d_k());
    return (scale == "none" ? 1 : scale == "dk" ? width : std::sqrt(width)) * tau;
  }
  // Whether attention() computes this: softmax over the keys, and hidden scores of -inf.
  bool by_hand() const { return axis == -1 && std::isinf(fill); }

 private:
  std::int64_t rows(const char* name, std::int64_t drawn) const {
    return given.count(name) != 0 ? static_cast<std::int64_t>(given.at(name).size()) : drawn;
  }
  std::int64_t columns(const char* name, std::int64_t drawn) const {
    return given.count(name) != 0 ? static_cast<std::int64_t>(given.at(name)[0].size()) : drawn;
  }
};

// ---- reading a state ---------------------------------------------------------------------------------------

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == separator) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

std::string quoted(const std::string& text) {
  return '"' + (text.size() > 20 ? text.substr(0, 20) + "…" : text) + '"';
}

double number(const std::string& field, const std::string& text, int row = -1, int column = -1) {
  char* end = nullptr;
  const double x = std::strtod(text.c_str(), &end);
  const bool digits = text.find_first_not_of("0123456789+-.eE") == std::string::npos;
  if (text.empty() || !digits || *end != '\0')
    throw Fault{field, quoted(text) + " is not a number", row, column};
  if (!(std::abs(x) <= most))
    throw Fault{field, fmt::format("{} is too large: the page takes numbers from -1e9 to 1e9", quoted(text)),
                row, column};
  return x;
}

std::int64_t whole(const std::string& field, const std::string& text, std::int64_t low, std::int64_t high) {
  if (text.empty() || text.size() > 10 || text.find_first_not_of("0123456789") != std::string::npos ||
      std::stoll(text) < low || std::stoll(text) > high)
    throw Fault{field, fmt::format("{}; it must be a whole number from {} to {}", quoted(text), low, high)};
  return std::stoll(text);
}

std::string one_of(const std::string& field, const std::string& text,
                   const std::vector<std::string>& choices) {
  if (std::find(choices.begin(), choices.end(), text) == choices.end())
    throw Fault{field, fmt::format("{}; it must be one of: {}", quoted(text), fmt::join(choices, ", "))};
  return text;
}

Rows matrix(const std::string& field, const std::string& text) {
  // Rows that were read before: reading a decimal takes longer than all that is computed from it, and a reader changes
  // one row at a time.
  static std::map<std::string, Row> known;
  if (known.size() > 200) known.clear();
  Rows rows;
  for (const std::string& line : split(text, ';')) {
    rows.emplace_back();
    const int row = static_cast<int>(rows.size()) - 1;
    if (const auto found = known.find(line); found != known.end()) {
      rows.back() = found->second;
    } else {
      for (const std::string& entry : split(line, ','))
        rows.back().push_back(number(field, entry, row, static_cast<int>(rows.back().size())));
      known[line] = rows.back();
    }
    if (rows.back().size() != rows[0].size())
      throw Fault{field,
                  fmt::format("row {} has {} numbers and row 0 has {}; rows must be equally long", row,
                              rows.back().size(), rows[0].size()),
                  row};
  }
  if (rows.size() > most_rows || rows[0].size() > most_columns)
    throw Fault{field, fmt::format("{} rows of {} numbers; the page shows at most {} rows of {}", rows.size(),
                                   rows[0].size(), most_rows, most_columns)};
  return rows;
}

Draw draw(const std::string& text) {
  const auto parts = split(text, ':');
  const auto sizes = parts.size() == 3 ? split(parts[2], ',') : std::vector<std::string>();
  if (sizes.size() != 4)
    throw Fault{"draw", quoted(text) + "; it must be like numpy:SEED:queries,keys,d_k,d_v"};
  Draw d{one_of("draw", parts[0], {"numpy", "torch"}), whole("draw", parts[1], 0, 4294967295)};
  d.Lq = whole("draw", sizes[0], 1, most_rows), d.Lk = whole("draw", sizes[1], 1, most_rows);
  d.d_k = whole("draw", sizes[2], 1, most_columns), d.d_v = whole("draw", sizes[3], 1, most_columns);
  return d;
}

void read(State& s, const std::string& field, const std::string& value) {
  if (field == "Q" || field == "K" || field == "V") {
    s.given[field] = matrix(field, value);
  } else if (field == "dO") {
    s.dO = value;
    if (value != "ones" && value != "drawn" && value.rfind("at:", 0) != 0)
      s.given[field] = matrix(field, value);
  } else if (field == "draw") {
    s.draw = draw(value);
  } else if (field == "scale") {
    s.scale = one_of(field, value, {"none", "sqrt", "dk"});
  } else if (field == "tau") {
    s.tau = number(field, value);
    if (s.tau < 1e-6) throw Fault{field, quoted(value) + "; a temperature is at least 1e-6"};
  } else if (field == "causal") {
    s.causal = one_of(field, value, {"0", "1"}) == "1";
  } else if (field == "length") {
    s.length = whole(field, value, 0, most_rows);
  } else if (field == "mask") {
    s.mask = split(value, ';');
  } else if (field == "axis") {
    s.axis = one_of(field, value, {"keys", "queries"}) == "keys" ? -1 : 0;
  } else if (field == "fill") {
    if (value != "-inf") s.fill = number(field, value);
  } else if (field == "empty") {
    s.empty = one_of(field, value, {"zero", "nan"});
  } else if (field == "type") {
    s.type = one_of(field, value, {"double", "float"});
  } else if (field == "row") {
    s.row = whole(field, value, 0, most_rows - 1);
  } else if (field != "queries" && field != "keys") {  // page.js alone uses the labels
    throw Fault{field, "the page has no setting of this name"};
  }
}

// What can only be judged when all fields are known.
void check(State& s) {
  for (const char* name : {"Q", "K", "V"})
    if (!s.draw && s.given.count(name) == 0) throw Fault{name, "no numbers, and no draw"};
  const auto fits = [](bool good, const char* field, const std::string& message) {
    if (!good) throw Fault{field, message};
  };
  const auto rows = [&](const char* name) { return static_cast<std::int64_t>(s.given.at(name).size()); };
  const auto columns = [&](const char* name) {
    return static_cast<std::int64_t>(s.given.at(name)[0].size());
  };
  const std::int64_t width_Q = s.given.count("Q") != 0 ? columns("Q") : s.draw->d_k;
  const std::int64_t rows_V = s.given.count("V") != 0 ? rows("V") : s.draw->Lk;
  fits(width_Q == s.d_k(), "Q",
       fmt::format("queries of width {} and keys of width {}; both are d_k", width_Q, s.d_k()));
  fits(rows_V == s.Lk(), "V", fmt::format("{} values and {} keys; each key has one value", rows_V, s.Lk()));
  fits(!s.length || *s.length <= s.Lk(), "length",
       fmt::format("{} of {} keys", s.length.value_or(0), s.Lk()));
  bool whole_mask = s.mask.empty() || static_cast<std::int64_t>(s.mask.size()) == s.Lq();
  for (const std::string& row : s.mask)
    whole_mask &=
        static_cast<std::int64_t>(row.size()) == s.Lk() && row.find_first_not_of("01") == std::string::npos;
  fits(whole_mask, "mask", fmt::format("it must be {} rows of {} digits 0 or 1", s.Lq(), s.Lk()));
  s.row = std::min(s.row, (s.axis == -1 ? s.Lq() : s.Lk()) - 1);

  if (s.dO.rfind("at:", 0) == 0) {
    const auto at = split(s.dO.substr(3), ',');
    fits(at.size() == 2, "dO", quoted(s.dO) + "; it must be like at:row,column");
    const auto i = static_cast<std::size_t>(whole("dO", at[0], 0, s.Lq() - 1)),
               j = static_cast<std::size_t>(whole("dO", at[1], 0, s.d_v() - 1));
    s.given["dO"] = Rows(static_cast<std::size_t>(s.Lq()), Row(static_cast<std::size_t>(s.d_v())));
    s.given["dO"][i][j] = 1;
  }
  fits(s.dO != "drawn" || s.draw, "dO", "nothing is drawn in this state");
  fits(s.given.count("dO") == 0 || (rows("dO") == s.Lq() && columns("dO") == s.d_v()), "dO",
       fmt::format("it must have the output's shape, {} rows of {}", s.Lq(), s.d_v()));
}

State read(const std::string& text) {
  State state;
  for (const std::string& part : split(text, '&')) {
    if (part.empty()) continue;
    const auto equals = std::min(part.find('='), part.size());
    read(state, part.substr(0, equals), equals < part.size() ? part.substr(equals + 1) : "");
  }
  check(state);
  return state;
}

// ---- the inputs --------------------------------------------------------------------------------------------

template <class T>
Tensor<T> tensor(const Rows& rows) {
  Buffer<T> x({static_cast<std::int64_t>(rows.size()), static_cast<std::int64_t>(rows[0].size())});
  std::int64_t i = 0;
  for (const Row& row : rows)
    for (const double v : row) x[i++] = static_cast<T>(v);
  return x;
}

template <class T>
struct Inputs {
  Tensor<T> Q, K, V, dO;
};

// The generator draws Q, K, V and dO in this order; what the state gives as numbers then replaces a draw.
template <class T>
Inputs<T> inputs(const State& s) {
  Inputs<T> in;
  if (s.draw) {
    NumpyRandom numpy(s.draw->seed);
    TorchRandom torch(s.draw->seed);
    const auto randn = [&](std::int64_t rows, std::int64_t columns) {
      return s.draw->generator == "numpy" ? to<T>(numpy.randn({rows, columns}))
                                          : to<T>(torch.randn({rows, columns}));
    };
    const Draw& d = *s.draw;
    in = {randn(d.Lq, d.d_k), randn(d.Lk, d.d_k), randn(d.Lk, d.d_v), randn(d.Lq, d.d_v)};
  }
  for (const auto& [name, x] : {std::pair{"Q", &in.Q}, {"K", &in.K}, {"V", &in.V}, {"dO", &in.dO}})
    if (s.given.count(name) != 0) *x = tensor<T>(s.given.at(name));
  if (s.dO == "ones") in.dO = ones<T>({s.Lq(), s.d_v()});
  if (in.dO.shape() != Shape{s.Lq(), s.d_v()})
    throw Fault{"dO", fmt::format("it was drawn with shape {}; the output's is {}", in.dO.shape().str(),
                                  Shape{s.Lq(), s.d_v()}.str())};
  return in;
}

// true where a query may attend to a key
Tensor<bool> mask_of(const State& s) {
  Tensor<bool> mask = full<bool>({s.Lq(), s.Lk()}, true);
  if (s.causal) mask = mask & causal_mask(s.Lq(), s.Lk(), Align::top_left);
  if (s.length) mask = mask & padding_mask({*s.length}, s.Lk()).reshape({1, s.Lk()});
  if (s.mask.empty()) return mask;
  Buffer<bool> own({s.Lq(), s.Lk()});
  std::int64_t i = 0;
  for (const std::string& row : s.mask)
    for (const char c : row) own[i++] = c == '1';
  return mask & Tensor<bool>(std::move(own));
}

// ---- the answer --------------------------------------------------------------------------------------------

std::string json(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      (out += '\\') += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (static_cast<unsigned char>(c) >= ' ') {
      out += c;
    }
  }
  return out + '"';
}

// A tensor's elements are not part of the text in the browser, which reads them from `elements`: writing and reading
// thousands of decimals would take longer than computing them.
std::vector<double> elements;

template <class E>
std::string json(const Tensor<E>& x) {
  const std::string shape =
      fmt::format("{{\"shape\":[{}],", fmt::join(x.shape().begin(), x.shape().end(), ","));
  const std::vector<E> values = x.to_vector();
#ifdef __EMSCRIPTEN__
  elements.insert(elements.end(), values.begin(), values.end());
  return shape + fmt::format("\"at\":{}}}", elements.size() - values.size());
#else  // JSON has no NaN and no infinity, but Python reads these
  std::string data;
  for (const auto v : values) {
    const auto value = static_cast<double>(v);
    data += data.empty() ? "" : ",";
    data += std::isnan(value)   ? "NaN"
            : std::isinf(value) ? value > 0 ? "Infinity" : "-Infinity"
                                : fmt::to_string(value);
  }
  return shape + "\"data\":[" + data + "]}";
#endif
}

// Each record of the tape, with its value and the gradient that reached it.
template <class T>
std::string json(const Tape<T>& tape, const std::vector<Tensor<T>>& values, const Gradients<T>& grad) {
  std::map<std::int64_t, std::string> value, gradient;
  for (const Tensor<T>& x : values) value[tape.find(x)] = json(x);
  {
    const typename Tape<T>::Paused paused;
    tape.replay(grad.from(), grad.dy(), [&](int i, const Tensor<T>& dy) { gradient[i] = json(dy); });
  }
  std::vector<std::string> records;
  for (std::int64_t i = 0; i < tape.size(); ++i) {
    const auto& node = tape.node(i);
    std::vector<int> inputs;
    for (const auto* edge = node.edges; edge != nullptr; edge = edge->next) inputs.push_back(edge->into);
    records.push_back(fmt::format(
        "{{\"op\":{},\"formula\":{},\"pullback\":{},\"name\":{},\"shape\":{},\"inputs\":[{}],\"value\":{},"
        "\"gradient\":{}}}",
        json(node.op != nullptr ? node.op->name : "watched"),
        json(node.op != nullptr ? node.op->formula : ""), json(node.op != nullptr ? node.op->pullback : ""),
        json(tape.name(i)), json(node.shape().str()), fmt::join(inputs, ","),
        value.count(i) != 0 ? value[i] : "null", gradient.count(i) != 0 ? gradient[i] : "null"));
  }
  return fmt::format("[{}]", fmt::join(records, ","));
}

template <class T>
double apart(const Tensor<T>& x, const Tensor<T>& y) {
  return static_cast<double>(max(abs(x - y)).item());
}

std::string program(const State& s);

template <class T>
std::string answer(const State& s) {
  const auto [Q, K, V, dO] = inputs<T>(s);
  const Tensor<bool> mask = mask_of(s);
  const EmptyRows empty = s.empty == "nan" ? EmptyRows::nan : EmptyRows::zero;
  const auto fill = static_cast<T>(s.fill);

  // Forward, a step at a time, so that each is a record of the tape.
  Tape<T> tape;
  tape.watch({{"Q", Q}, {"K", K}, {"V", V}});
  const Tensor<T> Kt = K.T();
  const Tensor<T> S = matmul(Q, Kt);
  const Tensor<T> scaled = s.divisor() == 1 ? S : S / s.divisor();
  const Tensor<T> masked = s.masked() ? masked_fill(scaled, ~mask, fill) : scaled;
  const Tensor<T> A = softmax(masked, s.axis, empty);
  const Tensor<T> O = matmul(A, V);
  tape.watch({{"Kᵀ", Kt}, {"S", S}, {"A", A}, {"O", O}});
  if (s.divisor() != 1) tape.watch(scaled, "scaled");
  if (s.masked()) tape.watch(masked, "masked");
  const Gradients<T> grad = tape.backward(O, dO);

  // Backward by the chapter's formulas. attention_backward has them for softmax over the keys; for the other axis and
  // for a finite fill value the tape's own gradients are shown.
  AttentionOptions<T> options{.empty_rows = empty};
  if (s.masked()) options.mask = mask;
  if (s.scale != "sqrt" || s.tau != 1) options.scale = 1 / s.divisor();
  AttentionGradients<T> g;
  const typename Tape<T>::Paused paused;
  if (s.by_hand()) {
    g = attention_backward(Q, K, V, dO, options);
  } else {
    g.dA = grad[A], g.D = sum(g.dA * A, s.axis, true), g.dS = grad[scaled];
    g.dQ = grad[Q], g.dK = grad[K], g.dV = grad[V];
  }
  const double difference = std::max({apart(g.dQ, grad[Q]), apart(g.dK, grad[K]), apart(g.dV, grad[V])});

  const Tensor<T> row = s.axis == -1 ? masked[s.row] : masked.T()[s.row];
  const Tensor<T> J = jacobian([&](const Tensor<T>& x) { return softmax(x, -1, empty); }, row);

  std::string out = "{";
  for (const auto& [name, x] : std::vector<std::pair<const char*, Tensor<T>>>{{"Q", Q},
                                                                              {"K", K},
                                                                              {"V", V},
                                                                              {"dO", dO},
                                                                              {"S", S},
                                                                              {"scaled", scaled},
                                                                              {"masked", masked},
                                                                              {"A", A},
                                                                              {"O", O},
                                                                              {"dV", g.dV},
                                                                              {"dA", g.dA},
                                                                              {"D", g.D},
                                                                              {"dS", g.dS},
                                                                              {"dQ", g.dQ},
                                                                              {"dK", g.dK},
                                                                              {"J", J},
                                                                              {"row_sums", sum(A, 1)},
                                                                              {"column_sums", sum(A, 0)}})
    out += fmt::format("\"{}\":{},", name, json(x));
  out += fmt::format("\"mask\":{},\"divisor\":{},\"row\":{},\"by_hand\":{},\"difference\":{},", json(mask),
                     s.divisor(), s.row, s.by_hand(),
                     std::isfinite(difference) ? fmt::to_string(difference) : "null");
  const std::vector<Tensor<T>> values{Q, K, V, Kt, S, scaled, masked, A, O};
  return out + "\"tape\":" + json(tape, values, grad) + ",\"program\":" + json(program(s)) + "}";
}

// ---- the same in C++ ---------------------------------------------------------------------------------------

std::string braces(const Rows& rows) {
  std::vector<std::string> lines;
  for (const Row& row : rows) lines.push_back(fmt::format("{{{}}}", fmt::join(row, ", ")));
  return fmt::format("{{{}}}", fmt::join(lines, ",\n    "));
}

std::string program(const State& s) {
  const std::string T = s.type;
  std::string text =
      "#include <fmt/format.h>\n#include <tapehead/tapehead.hpp>\n\n#include <cmath>\n\nusing namespace "
      "tapehead;\n\n"
      "int main() {\n";
  const auto line = [&](const std::string& l) { text += "  " + l + "\n"; };

  if (s.draw) {
    const bool numpy = s.draw->generator == "numpy";
    line(fmt::format("{} rng({});  // {}({})", numpy ? "NumpyRandom" : "TorchRandom", s.draw->seed,
                     numpy ? "np.random.seed" : "torch.manual_seed", s.draw->seed));
  }
  const auto input = [&](const char* name, std::int64_t rows, std::int64_t columns, bool needed) {
    const bool given = s.given.count(name) != 0;
    const std::string converted =
        !s.draw || (s.draw->generator == "numpy") == (T == "double") ? "{}" : "to<" + T + ">({})";
    if (given) line(fmt::format("const Tensor<{}> {}{};", T, name, braces(s.given.at(name))));
    if (!s.draw || !needed) return;
    const std::string draw = fmt::format("rng.randn({{{}, {}}})", rows, columns);
    line(given
             ? draw + ";  // drawn, and replaced by the numbers above"
             : fmt::format("const Tensor<{}> {} = {};", T, name, fmt::format(fmt::runtime(converted), draw)));
  };
  const Draw d = s.draw.value_or(Draw{});
  input("Q", d.Lq, d.d_k, true);
  input("K", d.Lk, d.d_k, true);
  input("V", d.Lk, d.d_v, true);
  if (s.dO == "ones") {
    line(fmt::format("const Tensor<{}> dO = ones<{}>({{{}, {}}});", T, T, s.Lq(), s.d_v()));
  } else {
    input("dO", d.Lq, d.d_v, s.dO == "drawn");  // the last one: nothing is drawn after it
  }

  text += "\n";
  if (s.masked()) {
    line(fmt::format("Tensor<bool> mask = full<bool>({{{}, {}}}, true);  // true: may attend", s.Lq(),
                     s.Lk()));
    if (s.causal) line(fmt::format("mask = mask & causal_mask({}, {}, Align::top_left);", s.Lq(), s.Lk()));
    if (s.length)
      line(fmt::format("mask = mask & padding_mask({{{}}}, {}).reshape({{1, {}}});", *s.length, s.Lk(),
                       s.Lk()));
    std::vector<std::string> rows;
    for (const std::string& row : s.mask) {
      std::vector<std::string> cells;
      for (const char c : row) cells.push_back(c == '1' ? "true" : "false");
      rows.push_back(fmt::format("{{{}}}", fmt::join(cells, ", ")));
    }
    if (!rows.empty()) line(fmt::format("mask = mask & Tensor<bool>{{{}}};", fmt::join(rows, ",\n      ")));
  }
  const std::string width = fmt::format("{}.0", s.d_k());
  std::string divisor = s.scale == "sqrt" ? "std::sqrt(" + width + ")" : s.scale == "dk" ? width : "";
  if (s.tau != 1) divisor += fmt::format("{}{}", divisor.empty() ? "" : " * ", s.tau);
  if (divisor.find('*') != std::string::npos) divisor = "(" + divisor + ")";
  const std::string empty = s.empty == "zero" ? "EmptyRows::zero" : "EmptyRows::nan";

  if (s.masked()) text += "\n";
  line(fmt::format("Tape<{}> tape;", T));
  line("tape.watch({{\"Q\", Q}, {\"K\", K}, {\"V\", V}});");
  line("const auto S = matmul(Q, K.T());");
  line("const auto scaled = S" + (s.divisor() == 1 ? ";" : " / " + divisor + ";"));
  line("const auto masked = " +
       (s.masked() ? fmt::format("masked_fill(scaled, ~mask, {});",
                                 std::isinf(s.fill) ? "-INFINITY" : fmt::format("{}", s.fill))
                   : std::string("scaled;")));
  line(fmt::format("const auto A = softmax(masked, {}, {});{}", s.axis, empty,
                   s.axis == 0 ? "  // over the queries" : ""));
  line("const auto O = matmul(A, V);");
  line("const auto grad = tape.backward(O, dO);");
  line("fmt::print(\"A\\n{}\\nO\\n{}\\n\", A, O);");
  line("fmt::print(\"dQ\\n{}\\ndK\\n{}\\ndV\\n{}\\n\", grad[Q], grad[K], grad[V]);");

  if (s.by_hand()) {
    std::vector<std::string> options;
    if (s.masked()) options.push_back(".mask = mask");
    if (s.scale != "sqrt" || s.tau != 1)
      options.push_back(".scale = 1 / " + (divisor.empty() ? "1.0" : divisor));
    if (s.empty == "nan") options.push_back(".empty_rows = " + empty);
    text += "\n";
    line("// The same gradients by the chapter's formulas, with the steps between.");
    line(fmt::format("const auto g = attention_backward(Q, K, V, dO{});",
                     options.empty() ? "" : fmt::format(", {{{}}}", fmt::join(options, ", "))));
    line("fmt::print(\"dA\\n{}\\nD\\n{}\\ndS\\n{}\\n\", g.dA, g.D, g.dS);");
  }
  return text + "}\n";
}

}  // namespace

/// The answer to one state: {"Q": {"shape": …, "data": …}, …}, or {"error": {"field", "message", "row", "column"}}.
/// It stays valid until the next call.
extern "C" const char* run(const char* text) {
  static std::string out;
  elements.clear();
  try {
    const State state = read(text);
    out = state.type == "float" ? answer<float>(state) : answer<double>(state);
  } catch (const Fault& fault) {
    out = fmt::format("{{\"error\":{{\"field\":{},\"message\":{},\"row\":{},\"column\":{}}}}}",
                      json(fault.field), json(fault.message), fault.row, fault.column);
  } catch (const std::exception& error) {
    out = fmt::format("{{\"error\":{{\"field\":\"\",\"message\":{},\"row\":-1,\"column\":-1}}}}",
                      json(error.what()));
  }
  return out.c_str();
}

#ifdef __EMSCRIPTEN__
/// The elements of all tensors of that answer, where "at" counts from.
extern "C" const double* numbers() { return elements.data(); }
#else
#include <iostream>

int main() {
  for (std::string line; std::getline(std::cin, line);) fmt::print("{}\n", run(line.c_str()));
}
#endif
