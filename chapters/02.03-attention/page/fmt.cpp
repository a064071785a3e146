// The library fmt as WebAssembly. Packages of fmt hold machine code for one processor, so the engine needs fmt's
// header-only form. It is compiled in this file alone: in every file it would take longer than the engine itself.
#define FMT_HEADER_ONLY
#include <fmt/format.h>

// vformat calls all other functions of fmt that the engine needs.
[[gnu::used]] static const auto format =
    static_cast<std::string (*)(fmt::string_view, fmt::format_args)>(fmt::vformat);
