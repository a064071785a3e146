#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tapehead/autograd/tape.hpp"

namespace tapehead {

/// Where the time goes. While one of these lives, all time on its thread is given to somebody: what passes up
/// to a record, to the operation recorded; what a record's pullbacks take, to that operation's way back; what
/// passes up to mark(name), to that name. Without one, an operation asks a single pointer.
///   Profile profile;
///   … loss = …; grad = tape.backward(loss); profile.mark("rest"); adam.step(model, grad);
///   profile.mark("AdamW"); fmt::print("{}", profile.print());
class Profile {
 public:
  /// Begins to listen; throws Error where another one lives on this thread.
  Profile();
  ~Profile();
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;

  /// Gives what passed since the last record, pullback or mark to `name`.
  void mark(const std::string& name);

  struct Entry {
    std::string name;
    bool backward = false;
    std::int64_t calls = 0;
    double seconds = 0;
  };
  /// What there is so far, the largest first.
  std::vector<Entry> entries() const;
  /// These as a table: milliseconds, share of the whole, calls.
  std::string print() const;

 private:
  void hear(detail::TapeEvent event, const Op* op);
  double lap();

  std::map<std::pair<std::string, bool>, Entry> entries_;
  double last_;
  int walks_ = 0;  // backward passes under way: their own records are part of the pullbacks
};

}  // namespace tapehead
