// What nearly every test reads, compiled once.
#include <functional>
#include <map>

#include "testing.hpp"
#include "tapehead/tapehead.hpp"
