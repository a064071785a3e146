#include "tapehead/autograd/trace.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "autograd/tape_records.hpp"
#include "kernels/require.hpp"
#include "kernels/utf8.hpp"
#include "tapehead/autograd/accumulate.hpp"

namespace tapehead {

using detail::Record;
using detail::records_of;

std::string Record::head() const {
  const std::string made = op != nullptr ? op->name : "";
  return name.empty() || made.empty() ? name + made : name + " = " + made;
}

template <class T> std::vector<Record> detail::records_of(const Tape<T>& tape) {
  std::vector<Record> records;
  for (std::int64_t i = 0; i < tape.size(); ++i) {
    const Node<T>& node = tape.node(i);
    records.push_back({node.op, tape.name(i), node.shape(), {}});
    for (const Edge<T>* edge = node.edges; edge != nullptr; edge = edge->next)
      records.back().inputs.push_back(edge->into);
  }
  return records;
}

namespace {

// Σ x ⊙ y
template <class T> double inner(const Tensor<T>& x, const Tensor<T>& y) {
  const std::vector<T> a = x.to_vector(), b = y.to_vector();
  double total = 0;
  for (std::size_t i = 0; i < a.size(); ++i) total += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return total;
}

// Rows of cells as aligned text. right[c] is 'r' for a column that is aligned to the right. A row with one cell runs
// across the columns.
std::string table(const std::vector<std::vector<std::string>>& rows, const std::string& right) {
  std::vector<std::size_t> widest;
  for (const auto& row : rows)
    for (std::size_t c = 0; row.size() > 1 && c < row.size(); ++c) {
      if (c >= widest.size()) widest.push_back(0);
      widest[c] = std::max(widest[c], detail::columns(row[c]));
    }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) {
      const std::string space(row.size() > 1 ? widest[c] - detail::columns(row[c]) : 0, ' ');
      line += (c > 0 ? "  " : "") + (right[c] == 'r' ? space + row[c] : row[c] + space);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string bytes_text(std::size_t bytes) {
  if (bytes < 10'000) return fmt::format("{} B", bytes);
  const double kibi = static_cast<double>(bytes) / 1024;
  return kibi < 10'000 ? fmt::format("{:.1f} KiB", kibi) : fmt::format("{:.1f} MiB", kibi / 1024);
}

// The blocks of memory that pullbacks keep alive, with their sizes in bytes.
using Held = std::map<const detail::Storage*, std::size_t>;
template <class T> Held held_by(const detail::Node<T>& node) {
  Held held;
  for (const detail::Edge<T>* edge = node.edges; edge != nullptr; edge = edge->next)
    edge->each_saved([&](const detail::Header& header) {
      if (header.storage != nullptr) held[header.storage] = header.storage->bytes - sizeof(detail::Storage);
    });
  return held;
}
std::size_t total(const Held& held) {
  std::size_t bytes = 0;
  for (const auto& [storage, size] : held) bytes += size;
  return bytes;
}

// A record's name, or else its number.
std::string called(const std::vector<Record>& records, int i) {
  const std::string& name = records[static_cast<std::size_t>(i)].name;
  return name.empty() ? fmt::format("#{}", i) : name;
}

std::string printed(const std::vector<Record>& records, const std::vector<Held>& held,
                    const std::map<std::size_t, double>* norms) {
  constexpr std::size_t shown = 100;
  const std::size_t n = records.size();
  std::vector<std::vector<std::string>> rows{{"#", "operation", "formula", "inputs", "name", "shape", "saves"}};
  if (norms != nullptr) rows[0].push_back("|gradient|");
  Held all;
  for (std::size_t i = 0; i < n; ++i) {
    all.insert(held[i].begin(), held[i].end());
    if (n > 2 * shown && i >= shown && i < n - shown) {
      if (i == shown) rows.push_back({fmt::format("… {} more records …", n - 2 * shown)});
      continue;
    }
    const Record& record = records[i];
    std::string inputs;
    for (const int into : record.inputs) inputs += (inputs.empty() ? "" : ", ") + called(records, into);
    rows.push_back({std::to_string(i), record.op != nullptr ? record.op->name : "watched",
                    record.op != nullptr ? record.op->formula : "", inputs, record.name, record.shape.str(),
                    held[i].empty() ? "" : bytes_text(total(held[i]))});
    if (norms != nullptr) rows.back().push_back(norms->count(i) != 0 ? fmt::format("{:.4g}", norms->at(i)) : "-");
  }
  return table(rows, "rlllllrr") + fmt::format("{} records; {} kept alive in {} tensor{}\n", n, bytes_text(total(all)),
                                               all.size(), all.size() == 1 ? "" : "s");
}
template <class T> std::string printed(const Tape<T>& tape, const std::map<std::size_t, double>* norms) {
  std::vector<Held> held;
  for (std::int64_t i = 0; i < tape.size(); ++i) held.push_back(held_by(tape.node(i)));
  return printed(records_of(tape), held, norms);
}

}  // namespace

template <class T> std::string Tape<T>::print() const { return printed(*this, nullptr); }

template <class T> std::string Tape<T>::print(const Gradients<T>& grad) const {
  require<GradientError>(&grad.tape() == this,
                         "print: these gradients belong to another tape; print the tape whose backward() made them");
  const Paused paused;
  std::map<std::size_t, double> norms;
  replay(grad.from(), grad.dy(), [&](int i, const Tensor<T>& gradient) {
    norms[static_cast<std::size_t>(i)] = std::sqrt(inner(gradient, gradient));
  });
  return printed(*this, &norms);
}

namespace {

// A part of the gradient at a record, and the watched results that it passed: record numbers, the last one first.
template <class T> struct Part {
  std::vector<int> passed;
  Tensor<T> gradient;
};

void check_number(std::size_t routes) {
  require<ValueError>(
      routes < 256, "explain: more than 256 routes; watch fewer of the results on the way, or ask for Routes::by_use");
}

template <class T> void add(std::vector<Part<T>>& parts, std::vector<int> passed, Tensor<T> gradient) {
  for (Part<T>& part : parts)
    if (part.passed == passed) {
      part.gradient = tapehead::add(part.gradient, gradient);
      return;
    }
  check_number(parts.size());
  parts.push_back({std::move(passed), std::move(gradient)});
}

// Whether each record's result depends on record `at`.
std::vector<char> dependents(const std::vector<Record>& records, int at) {
  std::vector<char> depends(records.size(), 0);
  depends[static_cast<std::size_t>(at)] = 1;
  for (std::size_t i = static_cast<std::size_t>(at) + 1; i < records.size(); ++i)
    for (const int into : records[i].inputs) depends[i] |= depends[static_cast<std::size_t>(into)];
  return depends;
}

// A route as text: the nth use of x (record `at`), then the watched results that were passed.
std::string path(const std::vector<Record>& records, int at, int nth, const std::vector<int>& along) {
  const std::vector<int>& used = records[static_cast<std::size_t>(along[0])].inputs;
  std::string text;
  for (const int i : along) {
    const Record& record = records[static_cast<std::size_t>(i)];
    if (!text.empty()) text += " → ";
    text += record.name.empty() ? fmt::format("{} #{}", record.op->name, i) : record.name;
    if (i == along[0] && std::count(used.begin(), used.end(), at) > 1) text += fmt::format(" (use {})", nth);
  }
  return text;
}

}  // namespace

template <class T> Explanation<T> explain(const Gradients<T>& grad, const Tensor<T>& x, Routes how) {
  const Tape<T>& tape = grad.tape();
  const int at = tape.find(x), from = grad.from();
  require<GradientError>(at >= 0,
                         "explain: the tape does not know this tensor of shape {}; watch it, or ask for a tensor that "
                         "is computed from watched ones",
                         x.shape());
  const typename Tape<T>::Paused paused;
  const std::vector<Record> records = records_of(tape);
  const std::vector<char> depends = dependents(records, at);
  Explanation<T> e{called(records, at), zeros<T>(x.shape()), 0, {}};
  if (at == from) e.gradient = grad.dy();
  std::vector<std::vector<Part<T>>> parts(static_cast<std::size_t>(std::max(from, at)) + 1);
  if (from > at) parts[static_cast<std::size_t>(from)].push_back({{}, grad.dy()});
  for (int i = from; i > at; --i) {
    for (const Part<T>& part : std::exchange(parts[static_cast<std::size_t>(i)], {})) {
      int nth = 0;
      for (const detail::Edge<T>* edge = tape.node(i).edges; edge != nullptr; edge = edge->next) {
        const int into = edge->into;
        if (into < at || !depends[static_cast<std::size_t>(into)]) continue;
        Tensor<T> pulled = sum_to(edge->pull(part.gradient), tape.node(into).shape());
        if (into == at) {
          check_number(e.routes.size());
          e.gradient = tapehead::add(e.gradient, pulled);
          std::vector<int> along(part.passed.rbegin(), part.passed.rend());
          if (along.empty() || along[0] != i) along.insert(along.begin(), i);
          const double norm = std::sqrt(inner(pulled, pulled));
          const auto place =
              std::find_if(e.routes.begin(), e.routes.end(), [&](const Route<T>& r) { return r.norm < norm; });
          e.routes.insert(place, {path(records, at, ++nth, along), along, std::move(pulled), norm, 0});
        } else {
          std::vector<int> passed = part.passed;
          if (how == Routes::by_name && tape.node(into).kept >= 0) passed.push_back(into);
          add(parts[static_cast<std::size_t>(into)], std::move(passed), std::move(pulled));
        }
      }
    }
  }
  e.norm = std::sqrt(inner(e.gradient, e.gradient));
  for (Route<T>& r : e.routes) r.share = e.norm > 0 ? inner(r.gradient, e.gradient) / (e.norm * e.norm) : 0;
  return e;
}

template <class T> std::string Explanation<T>::text() const {
  const std::string head = fmt::format("gradient of {}, shape {}: norm {:.4g}, ", name, gradient.shape().str(), norm);
  if (routes.empty())
    return head + (norm == 0 ? "by no route: the output does not depend on it\n" : "where backward began\n");
  std::vector<std::vector<std::string>> rows{{"norm", "share", "route"}};
  for (const Route<T>& r : routes)
    rows.push_back({fmt::format("{:.4g}", r.norm), fmt::format("{:.1f} %", 100 * r.share), r.path});
  return head + fmt::format("by {} route{}\n", routes.size(), routes.size() == 1 ? "" : "s") + table(rows, "rrl");
}

#define TAPEHEAD_TRACE(T)                                          \
  template std::vector<Record> detail::records_of(const Tape<T>&); \
  template std::string Tape<T>::print() const;                     \
  template std::string Tape<T>::print(const Gradients<T>&) const;  \
  template struct Explanation<T>;                                  \
  template Explanation<T> explain(const Gradients<T>&, const Tensor<T>&, Routes);
TAPEHEAD_REALS(TAPEHEAD_TRACE)

}  // namespace tapehead
