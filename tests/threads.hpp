#pragma once
// OpenMP's own functions, for the tests that choose how many threads there are; where the compiler has none,
// nothing.
#ifdef _OPENMP
#include <omp.h>
#endif
