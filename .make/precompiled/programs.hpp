// What every program of the chapter reads, compiled once.
#include "tapehead/tapehead.hpp"
