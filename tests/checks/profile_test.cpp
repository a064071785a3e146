#include "tapehead/checks/profile.hpp"

#include <chrono>
#include <thread>

#include "tapehead/tapehead.hpp"
#include "testing.hpp"

using namespace tapehead;
using testing::message;

namespace {

Profile::Entry find(const Profile& profile, const std::string& name, bool backward) {
  for (const Profile::Entry& e : profile.entries())
    if (e.name == name && e.backward == backward) return e;
  return {};
}
void wait() { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }

}  // namespace

TEST_CASE("profile: every record and every pullback is counted under its operation, and the rest by mark") {
  Tape<double> tape;
  const Tensor<double> x{0.5, 1, 2};
  tape.watch(x);
  const auto start = std::chrono::steady_clock::now();
  Profile profile;
  const auto loss = sum(exp(x) * exp(x));
  tape.backward(loss);
  wait();
  profile.mark("waiting");
  const double passed = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  for (bool backward : {false, true}) {
    CHECK(find(profile, "exp", backward).calls == 2);
    CHECK(find(profile, "mul", backward).calls == 1);  // and not those within the pullbacks
    CHECK(find(profile, "sum", backward).calls == 1);
  }
  CHECK(profile.entries().size() == 7);
  CHECK(profile.entries().front().name == "waiting"sv);
  CHECK(find(profile, "waiting", false).seconds >= 0.02);
  double all = 0;
  for (const auto& e : profile.entries()) all += e.seconds;
  CHECK(all <= passed);  // nothing is counted twice
  CHECK(profile.print().find("exp, backward") != std::string::npos);
}

TEST_CASE("profile: time goes to the operation that it led to, there and back, and all of it goes somewhere") {
  static const Op slow_op{"test: slow", "y = x", "dx = dy, after a while"};
  Tape<double> tape;
  const Tensor<double> x{1};
  tape.watch(x);
  Profile profile;
  const auto start = std::chrono::steady_clock::now();
  wait();
  const auto y = record(slow_op, detach(x), wrt(x, [](const auto& dy) { return wait(), dy; }));
  tape.backward(exp(y));
  const double passed = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  profile.mark("rest");
  CHECK(find(profile, "test: slow", false).seconds >= 0.02);
  CHECK(find(profile, "test: slow", true).seconds >= 0.02);
  double all = 0;
  for (const auto& e : profile.entries()) all += e.seconds;
  CHECK(all >= passed);
}

TEST_CASE("profile: a pullback that throws, and the end of a profile, leave nothing behind") {
  static const Op op{"test: profile", "y = x", "throws"};
  Tape<double> tape;
  const Tensor<double> x{1};
  tape.watch(x);
  const auto y = record(op, x * 1, wrt(x, [](const auto&) -> Tensor<double> { throw ValueError("no"); }));
  {
    Profile profile;
    CHECK_THROWS_AS(tape.backward(y), GradientError);
    exp(x);
    CHECK(find(profile, "exp", false).calls == 1);  // the walk is over
    CHECK(message([] { Profile second; }) == "profile: another Profile lives on this thread; end it first"sv);
    exp(x);
    CHECK(find(profile, "exp", false).calls == 2);
  }
  exp(x);
  Profile profile;
  CHECK(profile.entries().empty());
}
