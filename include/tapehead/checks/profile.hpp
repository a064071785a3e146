#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tapehead/autograd/tape.hpp"

namespace tapehead {

/// Measures where the time goes. While a Profile lives, all time on its thread is attributed: the time up to a
/// record to the operation recorded, the time in a record's pullbacks to that operation's backward pass, and the
/// time up to mark(name) to that name. Without a Profile, an operation only tests one pointer.
///   Profile profile;
///   … loss = …; grad = tape.backward(loss); profile.mark("rest"); adam.step(model, grad);
///   profile.mark("AdamW"); fmt::print("{}", profile.print());
class Profile {
 public:
  /// Starts measuring; throws Error where another Profile lives on this thread.
  Profile();
  ~Profile();
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;

  /// Attributes the time since the last record, pullback or mark to `name`.
  void mark(const std::string& name) { add(name, false); }

  struct Entry {
    std::string name;
    bool backward = false;
    std::int64_t calls = 0;
    double seconds = 0;
  };
  /// The times so far, the largest first.
  std::vector<Entry> entries() const;
  /// The times as a table: milliseconds, percentage of the total, calls.
  std::string print() const;

 private:
  void hear(detail::TapeEvent event, const Op* op);
  void add(const std::string& name, bool backward);

  std::map<std::pair<std::string, bool>, Entry> entries_;
  double last_;
  int walks_ = 0;  // backward passes that are running: what they record is part of the pullbacks
};

}  // namespace tapehead
