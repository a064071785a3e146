// What nearly every kernel reads, compiled once: the processor's vector instructions are a long header.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/parallel.hpp"
#include "kernels/vec.hpp"
