// The one file that carries doctest's implementation and main(). It also keeps a log of finished test cases,
// one line each, for tests/run.sh to count: a log survives a crash, which a closing summary does not.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#define DOCTEST_CONFIG_IMPLEMENT  // follows from it, but not where doctest.h was read before, precompiled
#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>

namespace {

class CaseLog : public doctest::IReporter {
 public:
  explicit CaseLog(const doctest::ContextOptions&) {
    if (const char* path = std::getenv("TAPEHEAD_TEST_LOG")) log_ = std::fopen(path, "w");
  }
  ~CaseLog() override {
    if (log_) std::fclose(log_);
  }
  CaseLog(const CaseLog&) = delete;
  CaseLog& operator=(const CaseLog&) = delete;

  void test_case_start(const doctest::TestCaseData& test) override { name_ = test.m_name; }
  void test_case_end(const doctest::CurrentTestCaseStats& stats) override {
    write(stats.testCaseSuccess ? "passed" : "failed", name_);
  }
  void test_run_end(const doctest::TestRunStats&) override { write("end", ""); }

  void report_query(const doctest::QueryData&) override {}
  void test_run_start() override {}
  void test_case_reenter(const doctest::TestCaseData&) override {}
  void test_case_exception(const doctest::TestCaseException&) override {}
  void subcase_start(const doctest::SubcaseSignature&) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData&) override {}
  void log_message(const doctest::MessageData&) override {}
  void test_case_skipped(const doctest::TestCaseData&) override {}

 private:
  void write(const char* what, const char* name) {
    if (!log_) return;
    std::fprintf(log_, "%s %s\n", what, name);
    std::fflush(log_);
  }

  std::FILE* log_ = nullptr;
  const char* name_ = "";
};

REGISTER_LISTENER("case log", 1, CaseLog);

}  // namespace
