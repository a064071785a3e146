// What nearly every test reads, compiled once.
#include <cstddef>
#undef _GLIBCXX_USE_STD_SPEC_FUNCS  // <cmath>'s Bessel functions: g++ would compile them in every file

#include <functional>
#include <map>

#include "tapehead/tapehead.hpp"
#include "testing.hpp"
