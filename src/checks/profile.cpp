#include "tapehead/checks/profile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "tapehead/kernels/error.hpp"

namespace tapehead {

namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

Profile::Profile() : last_(now()) {
  if (detail::tape_listener != nullptr)
    throw Error("profile: another Profile lives on this thread; end it first");
  detail::tape_listener = this;
  detail::tape_watch = [](detail::TapeEvent event, const Op* op) {
    static_cast<Profile*>(detail::tape_listener)->hear(event, op);
  };
}
Profile::~Profile() { detail::tape_watch = nullptr, detail::tape_listener = nullptr; }

double Profile::lap() {
  const double before = last_;
  last_ = now();
  return last_ - before;
}

void Profile::hear(detail::TapeEvent event, const Op* op) {
  using detail::TapeEvent;
  if (event == TapeEvent::walk_begins) ++walks_;
  if (event == TapeEvent::walk_ends) --walks_;
  const bool backward = event == TapeEvent::pulled;
  if (op == nullptr || walks_ != (backward ? 1 : 0)) return;
  Entry& entry = entries_[{op->name, backward}];
  entry.name = op->name, entry.backward = backward;
  ++entry.calls;
  entry.seconds += lap();
}

void Profile::mark(const std::string& name) {
  Entry& entry = entries_[{name, false}];
  entry.name = name;
  ++entry.calls;
  entry.seconds += lap();
}

std::vector<Profile::Entry> Profile::entries() const {
  std::vector<Entry> list;
  for (const auto& entry : entries_) list.push_back(entry.second);
  std::sort(list.begin(), list.end(), [](const Entry& a, const Entry& b) { return a.seconds > b.seconds; });
  return list;
}

std::string Profile::print() const {
  double total = 0;
  for (const Entry& e : entries()) total += e.seconds;
  std::string table = fmt::format("{:28}{:>9}{:>7}{:>8}\n", "", "ms", "%", "calls");
  for (const Entry& e : entries())
    table += fmt::format("{:28}{:9.3f}{:7.1f}{:8}\n", e.name + (e.backward ? ", backward" : ""),
                         1e3 * e.seconds, total > 0 ? 100 * e.seconds / total : 0, e.calls);
  return table + fmt::format("{:28}{:9.3f}\n", "all", 1e3 * total);
}

}  // namespace tapehead
