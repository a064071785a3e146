#include "kernels/write_file.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

#include "kernels/require.hpp"

namespace tapehead::detail {

namespace fs = std::filesystem;

namespace {

// The file that a chain of symbolic links ends at. It need not exist.
fs::path followed(fs::path path) {
  std::error_code error;
  for (int links = 0; links < 40 && fs::is_symlink(fs::symlink_status(path, error)); ++links)
    path = path.parent_path() / fs::read_symlink(path, error);
  return path;
}

}  // namespace

void write_file(const char* op, const std::string& path, const std::vector<std::string_view>& pieces) {
  const auto fail = [&](const std::string& why) {
    raise<FileError>("{}: '{}': cannot be written: {}", op, path.c_str(), why);
  };
  const auto reason = [] {
    const int code = errno;
    return std::string(std::strerror(code)) + (code == ENOENT ? "; make its folder first" : "");
  };
  if (path.find('\0') != std::string::npos) fail("a path cannot contain a NUL character");
  const fs::path target = followed(path);
  std::error_code error;
  const fs::file_status old = fs::status(target, error);
  if (old.type() == fs::file_type::none) fail(error.message());
  if (fs::exists(old) && !fs::is_regular_file(old)) fail("it is not a regular file");
  if (fs::exists(old) && access(target.c_str(), W_OK) != 0) fail(reason());

  const fs::path beside = target.parent_path() / fmt::format(".tapehead-{:08x}.tmp", std::random_device{}());
  std::ofstream file(beside, std::ios::binary);
  if (!file) fail(reason());
  error.clear();
  if (fs::exists(old)) fs::permissions(beside, old.permissions(), error);
  for (const std::string_view piece : pieces) file.write(piece.data(), static_cast<std::streamsize>(piece.size()));
  file.close();
  if (file && !error) fs::rename(beside, target, error);
  if (file && !error) return;
  const std::string why = error ? error.message() : reason();
  fs::remove(beside, error);
  fail(why);
}

}  // namespace tapehead::detail
