#pragma once
#include <set>
#include <string>

/// The names of the operations that the golden cases have met, on the tape or in a backward pass; checks
/// those cases.
const std::set<std::string>& golden_operations();
