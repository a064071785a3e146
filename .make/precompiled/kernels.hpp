// What nearly every kernel reads, compiled once: the processor's vector instructions are a long header. No more than
// that, since each kernel pays for all of it.
#include <cstddef>
#undef _GLIBCXX_USE_STD_SPEC_FUNCS  // <cmath>'s Bessel functions: g++ would compile them in every file

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/parallel.hpp"
#include "kernels/vec.hpp"

#ifdef __clang__  // clang++ 14 must not meet this one for the first time behind a precompiled header
#include <string>
#endif
