#include "tapehead/checks/profile.hpp"

#include <algorithm>
#include <chrono>

#include "kernels/require.hpp"

namespace tapehead {

namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace

Profile::Profile() : last_(now()) {
  require<Error>(detail::tape_listener == nullptr, "profile: another Profile lives on this thread; end it first");
  detail::tape_listener = this;
  detail::tape_watch = [](detail::TapeEvent event, const Op* op) {
    static_cast<Profile*>(detail::tape_listener)->hear(event, op);
  };
}
Profile::~Profile() { detail::tape_watch = nullptr, detail::tape_listener = nullptr; }

void Profile::hear(detail::TapeEvent event, const Op* op) {
  using detail::TapeEvent;
  if (event == TapeEvent::walk_begins) ++walks_;
  if (event == TapeEvent::walk_ends) --walks_;
  const bool backward = event == TapeEvent::pulled;
  if (op != nullptr && walks_ == (backward ? 1 : 0)) add(op->name, backward);
}

void Profile::add(const std::string& name, bool backward) {
  Entry& entry = entries_[{name, backward}];
  entry.name = name, entry.backward = backward;
  ++entry.calls;
  const double before = std::exchange(last_, now());
  entry.seconds += last_ - before;
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
    table += fmt::format("{:28}{:9.3f}{:7.1f}{:8}\n", e.name + (e.backward ? ", backward" : ""), 1e3 * e.seconds,
                         total > 0 ? 100 * e.seconds / total : 0, e.calls);
  return table + fmt::format("{:28}{:9.3f}\n", "all", 1e3 * total);
}

}  // namespace tapehead
