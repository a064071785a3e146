// What nearly every file of src/ reads, compiled once. Files name what they use all the same: PRECOMPILED=0
// shows it.
#include <cstddef>
#undef _GLIBCXX_USE_STD_SPEC_FUNCS  // <cmath>'s Bessel functions: g++ would compile them in every file

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tapehead/autograd/tape.hpp"
