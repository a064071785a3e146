// What every file of the exercises includes first, precompiled. Exercises run with the standard library's
// assertions: libstdc++ has them by a flag, libc++ by a macro that changed its name.
#if defined(__clang_major__) && __clang_major__ < 16
#define _LIBCPP_DEBUG 0
#elif defined(__clang_major__) && __clang_major__ < 18
#define _LIBCPP_ENABLE_ASSERTIONS 1
#else
#define _LIBCPP_HARDENING_MODE _LIBCPP_HARDENING_MODE_EXTENSIVE
#endif
#include "checker.hpp"
