// What nearly every test reads, compiled once.
#include <functional>
#include <map>

#include "tapehead/tapehead.hpp"
#include "testing.hpp"
