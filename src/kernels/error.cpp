#include "tapehead/kernels/error.hpp"

#include "kernels/require.hpp"

std::string tapehead::detail::formatted(fmt::string_view text, fmt::format_args arguments) {
  return fmt::vformat(text, arguments);
}
