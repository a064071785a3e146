#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace tapehead::detail {

/// Replaces the file at `path` by these pieces, one after the other. They are written to a new file beside it,
/// which is then renamed, so that the old file stays whole until the new one is. The old file's mode is kept,
/// and where `path` is a symbolic link, the file that it names is replaced. Throws FileError naming `op` where
/// `path` is not a regular file, or cannot be written.
void write_file(const char* op, const std::string& path, const std::vector<std::string_view>& pieces);

}  // namespace tapehead::detail
