// Compiles an answer. exercise.sh defines ANSWER (the file), FUNCTIONS (what the answer has to define)
// and FORBIDDEN (a file that makes the compiler refuse the names that the task forbids).
#include "checker.hpp"
#include FORBIDDEN
#include ANSWER

#define TAPEHEAD_ANSWER(name) \
  { #name, &name }
const std::map<std::string, std::any>& exercise::Check::functions() {
  static const std::map<std::string, std::any> all{FUNCTIONS};
  return all;
}
