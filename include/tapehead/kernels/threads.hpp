#pragma once

namespace tapehead {

/// How many threads large operations may use, the calling thread included. If set_num_threads() was never
/// called, this is TAPEHEAD_NUM_THREADS or else OMP_NUM_THREADS from the environment, or else the number of
/// processors that this process may run on; the environment is read at the first call. Results do not depend on it.
int num_threads();

/// Sets that number for the whole process, from the next operation on. Throws ValueError if it is less than
/// 1. A forked child computes on one thread whatever was set.
void set_num_threads(int threads);

}  // namespace tapehead
