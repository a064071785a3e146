// What nearly every file of src/ reads, compiled once. Files name what they use all the same: PRECOMPILED=0
// shows it.
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
