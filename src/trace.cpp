#include "tapehead/trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "tapehead/arithmetic.hpp"
#include "tapehead/error.hpp"
#include "tapehead/reduce.hpp"

namespace tapehead {

namespace {

template <class T>
double norm_of(const Tensor<T>& x) {
  return std::sqrt(sum(to<double>(detach(x)) * to<double>(detach(x))).item());
}

// Columns on the screen: code points, but for accents that stand on the letter before (x̂).
std::size_t width(const std::string& text) {
  std::size_t columns = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool accent = byte == 0xCC || (byte == 0xCD && i + 1 < text.size() &&
                                         static_cast<unsigned char>(text[i + 1]) < 0xB0);
    columns += (byte & 0xC0) != 0x80 && !accent;
  }
  return columns;
}

// Rows of cells as aligned text; the columns named in `right` to the right. A row of one cell runs across.
std::string table(const std::vector<std::vector<std::string>>& rows, const std::string& right) {
  std::vector<std::size_t> widest;
  for (const auto& row : rows)
    for (std::size_t c = 0; row.size() > 1 && c < row.size(); ++c) {
      if (c >= widest.size()) widest.push_back(0);
      widest[c] = std::max(widest[c], width(row[c]));
    }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) {
      const std::string space(row.size() > 1 ? widest[c] - width(row[c]) : 0, ' ');
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

// The storages that pullbacks hold, and their bytes.
using Held = std::map<const detail::Storage*, std::size_t>;
template <class T>
Held held_by(const detail::Node<T>& node) {
  static thread_local Held* found = nullptr;
  Held held;
  struct Watch {
    explicit Watch(Held& into) {
      found = &into;
      detail::copy_watch = [](const detail::Header& header) {
        if (header.storage != nullptr)
          (*found)[header.storage] = header.storage->bytes - sizeof(detail::Storage);
      };
    }
    ~Watch() { detail::copy_watch = nullptr; }
  } watch(held);
  for (const detail::Edge<T>* edge = node.edges; edge != nullptr; edge = edge->next) edge->copy_captured();
  return held;
}
std::size_t total(const Held& held) {
  std::size_t bytes = 0;
  for (const auto& [storage, size] : held) bytes += size;
  return bytes;
}

// A record by its name, or else by its number.
template <class T>
std::string called(const Tape<T>& tape, std::int64_t i) {
  return tape.name(i).empty() ? fmt::format("#{}", i) : tape.name(i);
}

template <class T>
std::string printed(const Tape<T>& tape, const std::map<std::int64_t, double>* norms) {
  constexpr std::int64_t shown = 100;
  std::vector<std::vector<std::string>> rows{
      {"#", "operation", "formula", "inputs", "name", "shape", "saves"}};
  if (norms != nullptr) rows[0].push_back("|gradient|");
  Held all;
  for (std::int64_t i = 0; i < tape.size(); ++i) {
    const detail::Node<T>& node = tape.node(i);
    const Held held = held_by(node);
    all.insert(held.begin(), held.end());
    if (tape.size() > 2 * shown && i >= shown && i < tape.size() - shown) {
      if (i == shown) rows.push_back({fmt::format("… {} more records …", tape.size() - 2 * shown)});
      continue;
    }
    std::string inputs;
    for (const detail::Edge<T>* edge = node.edges; edge != nullptr; edge = edge->next)
      inputs += (inputs.empty() ? "" : ", ") + called(tape, edge->into);
    rows.push_back({std::to_string(i), node.op != nullptr ? node.op->name : "watched",
                    node.op != nullptr ? node.op->formula : "", inputs, tape.name(i), node.shape().str(),
                    held.empty() ? "" : bytes_text(total(held))});
    if (norms != nullptr)
      rows.back().push_back(norms->count(i) != 0 ? fmt::format("{:.4g}", norms->at(i)) : "-");
  }
  return table(rows, "rlllllrr") + fmt::format("{} records; {} kept alive in {} tensor{}\n", tape.size(),
                                               bytes_text(total(all)), all.size(),
                                               all.size() == 1 ? "" : "s");
}

std::string escaped(const std::string& text, const char* quote) {
  std::string out;
  for (char c : text) c == '"' ? out += quote : out += c;
  return out;
}

}  // namespace

template <class T>
std::string print(const Tape<T>& tape) {
  return printed(tape, nullptr);
}

template <class T>
std::string print(const Tape<T>& tape, const Gradients<T>& grad) {
  if (&grad.tape() != &tape) throw GradientError("print: these gradients came by another tape");
  const typename Tape<T>::Paused paused;
  std::map<std::int64_t, double> norms;
  tape.replay(grad.from(), grad.dy(),
              [&](int i, const Tensor<T>& gradient) { norms[i] = norm_of(gradient); });
  return printed(tape, &norms);
}

template <class T>
std::string dot(const Tape<T>& tape) {
  std::string text = "digraph tape {\n  node [shape=box, fontname=\"monospace\"];\n";
  for (std::int64_t i = 0; i < tape.size(); ++i) {
    const detail::Node<T>& node = tape.node(i);
    const std::string name = escaped(tape.name(i), "\\\""), op = node.op != nullptr ? node.op->name : "";
    const std::string head = name.empty() || op.empty() ? name + op : name + " = " + op;
    text += fmt::format("  n{} [label=\"{}\\n{}\"{}];\n", i, head, node.shape().str(),
                        node.op == nullptr ? ", style=rounded" : "");
    for (const detail::Edge<T>* edge = node.edges; edge != nullptr; edge = edge->next)
      text += fmt::format("  n{} -> n{};\n", edge->into, i);
  }
  return text + "}\n";
}

template <class T>
std::string mermaid(const Tape<T>& tape) {
  std::string text = "flowchart TD\n";
  for (std::int64_t i = 0; i < tape.size(); ++i) {
    const detail::Node<T>& node = tape.node(i);
    const std::string name = escaped(tape.name(i), "#quot;"), op = node.op != nullptr ? node.op->name : "";
    const std::string head = name.empty() || op.empty() ? name + op : name + " = " + op;
    const bool leaf = node.op == nullptr;
    text += fmt::format("  n{}{}\"{}<br>{}\"{}\n", i, leaf ? "([" : "[", head, node.shape().str(),
                        leaf ? "])" : "]");
    for (const detail::Edge<T>* edge = node.edges; edge != nullptr; edge = edge->next)
      text += fmt::format("  n{} --> n{}\n", edge->into, i);
  }
  return text;
}

template <class T>
std::string Tape<T>::print() const {
  return tapehead::print(*this);
}
template <class T>
std::string Tape<T>::print(const Gradients<T>& grad) const {
  return tapehead::print(*this, grad);
}
template <class T>
std::string Tape<T>::dot() const {
  return tapehead::dot(*this);
}
template <class T>
std::string Tape<T>::mermaid() const {
  return tapehead::mermaid(*this);
}

namespace {

// What has come to a record, and which watched results it passed: record numbers, the last first.
template <class T>
struct Part {
  std::vector<int> passed;
  Tensor<T> gradient;
};

void check_number(std::size_t routes) {
  if (routes >= 256)
    throw ValueError(
        "explain: more than 256 routes; watch fewer of the results on the way, or ask for Routes::by_use");
}

template <class T>
void add(std::vector<Part<T>>& parts, std::vector<int> passed, Tensor<T> gradient) {
  for (Part<T>& part : parts)
    if (part.passed == passed) {
      part.gradient = part.gradient + gradient;
      return;
    }
  check_number(parts.size());
  parts.push_back({std::move(passed), std::move(gradient)});
}

// Whether each record's result depends on record `at`.
template <class T>
std::vector<char> dependents(const Tape<T>& tape, int at, int last) {
  std::vector<char> depends(static_cast<std::size_t>(last) + 1, 0);
  depends[static_cast<std::size_t>(at)] = 1;
  for (int i = at + 1; i <= last; ++i)
    for (const detail::Edge<T>* edge = tape.node(i).edges; edge != nullptr; edge = edge->next)
      depends[static_cast<std::size_t>(i)] |= depends[static_cast<std::size_t>(edge->into)];
  return depends;
}

// The use of x in record `use`, then the watched results that were passed, from x on.
template <class T>
Route<T> route(const Tape<T>& tape, int at, int use, int nth, const std::vector<int>& passed,
               Tensor<T> gradient) {
  Route<T> r;
  r.records.assign(passed.rbegin(), passed.rend());
  if (r.records.empty() || r.records[0] != use) r.records.insert(r.records.begin(), use);
  int uses = 0;
  for (const detail::Edge<T>* edge = tape.node(use).edges; edge != nullptr; edge = edge->next)
    uses += edge->into == at;
  for (int i : r.records) {
    if (!r.path.empty()) r.path += " → ";
    r.path += tape.name(i).empty() ? fmt::format("{} #{}", tape.node(i).op->name, i) : tape.name(i);
    if (i == use && uses > 1) r.path += fmt::format(" (use {})", nth);
  }
  r.norm = norm_of(gradient);
  r.gradient = std::move(gradient);
  return r;
}

}  // namespace

template <class T>
Explanation<T> explain(const Gradients<T>& grad, const Tensor<T>& x, Routes how) {
  const Tape<T>& tape = grad.tape();
  const int at = tape.find(x), from = grad.from();
  if (at < 0)
    throw GradientError(
        fmt::format("explain: the tape does not know this tensor of shape {}; watch it, or ask for something "
                    "computed from what was watched",
                    x.shape().str()));
  const typename Tape<T>::Paused paused;
  Explanation<T> e{called(tape, at), zeros<T>(x.shape()), 0, {}};
  if (at == from) e.gradient = grad.dy();
  std::vector<std::vector<Part<T>>> parts(static_cast<std::size_t>(std::max(from, at)) + 1);
  const std::vector<char> depends = dependents(tape, at, std::max(from, at));
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
          e.gradient = e.gradient + pulled;
          e.routes.push_back(route(tape, at, i, ++nth, part.passed, std::move(pulled)));
        } else {
          std::vector<int> passed = part.passed;
          if (how == Routes::by_name && tape.node(into).kept >= 0) passed.push_back(into);
          add(parts[static_cast<std::size_t>(into)], std::move(passed), std::move(pulled));
        }
      }
    }
  }
  e.norm = norm_of(e.gradient);
  for (Route<T>& r : e.routes)
    r.share = e.norm > 0 ? static_cast<double>(sum(r.gradient * e.gradient).item()) / (e.norm * e.norm) : 0;
  std::stable_sort(e.routes.begin(), e.routes.end(),
                   [](const Route<T>& a, const Route<T>& b) { return a.norm > b.norm; });
  return e;
}

template <class T>
std::string Explanation<T>::text() const {
  const std::string head =
      fmt::format("gradient of {}, shape {}: norm {:.4g}, ", name, gradient.shape().str(), norm);
  if (routes.empty())
    return head + (norm == 0 ? "by no route: the output does not depend on it\n" : "where backward began\n");
  std::vector<std::vector<std::string>> rows{{"norm", "share", "route"}};
  for (const Route<T>& r : routes)
    rows.push_back({fmt::format("{:.4g}", r.norm), fmt::format("{:.1f} %", 100 * r.share), r.path});
  return head + fmt::format("by {} route{}\n", routes.size(), routes.size() == 1 ? "" : "s") +
         table(rows, "rrl");
}

#define TAPEHEAD_TRACE(T)                                          \
  template std::string print(const Tape<T>&);                      \
  template std::string print(const Tape<T>&, const Gradients<T>&); \
  template std::string dot(const Tape<T>&);                        \
  template std::string mermaid(const Tape<T>&);                    \
  template std::string Tape<T>::print() const;                     \
  template std::string Tape<T>::print(const Gradients<T>&) const;  \
  template std::string Tape<T>::dot() const;                       \
  template std::string Tape<T>::mermaid() const;                   \
  template struct Explanation<T>;                                  \
  template Explanation<T> explain(const Gradients<T>&, const Tensor<T>&, Routes);
TAPEHEAD_TRACE(float)
TAPEHEAD_TRACE(double)

}  // namespace tapehead
