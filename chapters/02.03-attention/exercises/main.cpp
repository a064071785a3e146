// The program that checks one answer. exercise.sh defines ANSWER (the reader's file), NAME (the exercise),
// FUNCTIONS (what the answer defines) and TITLE.
#include ANSWER

#include "checks.hpp"

int main() {
  return exercise::run(TITLE, [](exercise::Checker& check) { exercise::NAME(check, FUNCTIONS); });
}
