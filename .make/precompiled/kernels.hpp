// What nearly every kernel reads, compiled once: the processor's vector instructions are a long header.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>  // no kernel reads it, but clang++ 14 must not meet it after a precompiled header
#include <vector>

#include "kernels/parallel.hpp"
#include "kernels/vec.hpp"
