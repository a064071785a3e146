// The library fmt, compiled once. Debian has it for this machine alone; its headers can stand in for it, but then every
// file of the engine would compile all of it again, which takes twice as long as the engine itself.
#define FMT_HEADER_ONLY
#include <fmt/format.h>

// Everything else that the engine calls is reached from here.
[[gnu::used]] static const auto format = static_cast<std::string (*)(fmt::string_view, fmt::format_args)>(fmt::vformat);
