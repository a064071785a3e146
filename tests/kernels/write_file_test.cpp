// How every save function replaces a file.
#include "kernels/write_file.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include "files.hpp"
#include "tapehead/figures/plot.hpp"
#include "tapehead/files/npy.hpp"
#include "tapehead/files/safetensors.hpp"

using namespace tapehead;
using namespace std::string_literals;
using testing::Folder;
using testing::message;
namespace fs = std::filesystem;

namespace {

struct Save {
  const char* name;
  void (*save)(const std::string& path);
};
const Save saves[] = {{"save_npy", [](const std::string& path) { save_npy(path, scalar(1.0)); }},
                      {"save_npz",
                       [](const std::string& path) {
                         save_npz(path, {{"x", scalar(1.0)}});
                       }},
                      {"save_safetensors",
                       [](const std::string& path) {
                         save_safetensors(path, {{"x", scalar(1.0)}});
                       }},
                      {"save_svg", [](const std::string& path) { save_svg(path, "<svg/>"); }}};

int mode(const std::string& path) {
  struct stat s {};
  REQUIRE(stat(path.c_str(), &s) == 0);
  return static_cast<int>(s.st_mode & 07777);
}

}  // namespace

TEST_CASE("write_file: the mode of the file that is replaced stays") {
  for (const Save& each : saves) {
    INFO(each.name);
    const Folder folder;
    const std::string path = folder.write("x", "old");
    for (const int m : {0640, 0600, 0755, 0666}) {
      chmod(path.c_str(), static_cast<mode_t>(m));
      each.save(path);
      CHECK(mode(path) == m);
    }
    CHECK(testing::read_bytes(path) != "old"sv);
    CHECK(folder.files() == 1);
    const mode_t before = umask(027);
    each.save(folder.path("new"));
    umask(before);
    CHECK(mode(folder.path("new")) == 0640);
  }
}

TEST_CASE("write_file: a symbolic link stays, and the file that it names is replaced") {
  for (const Save& each : saves) {
    INFO(each.name);
    const Folder folder;
    fs::create_directory(folder.path("data"));
    std::ofstream(folder.path("data/target")) << "old";
    fs::create_symlink("data/target", folder.path("relative"));
    fs::create_symlink(folder.path("relative"), folder.path("chain"));
    each.save(folder.path("chain"));
    CHECK(fs::is_symlink(folder.path("chain")));
    CHECK(fs::is_symlink(folder.path("relative")));
    CHECK_FALSE(fs::is_symlink(folder.path("data/target")));
    CHECK(testing::read_bytes(folder.path("data/target")) != "old"sv);
    fs::create_symlink("data/new", folder.path("dangling"));
    each.save(folder.path("dangling"));
    CHECK(fs::is_symlink(folder.path("dangling")));
    CHECK(fs::is_regular_file(folder.path("data/new")));
    CHECK(std::distance(fs::directory_iterator(folder.path("data")), fs::directory_iterator()) == 2);
  }
}

TEST_CASE("write_file: only a regular file is replaced") {
  for (const Save& each : saves) {
    INFO(each.name);
    const Folder folder;
    fs::create_directory(folder.path("folder"));
    REQUIRE(mkfifo(folder.path("pipe").c_str(), 0600) == 0);
    fs::create_symlink("/dev/null", folder.path("device"));
    for (const char* name : {"folder", "pipe", "device"}) {
      const std::string path = folder.path(name);
      CHECK(message<FileError>([&] { each.save(path); }) ==
            each.name + (": '" + path) + "': cannot be written: it is not a regular file");
    }
    fs::create_symlink("b", folder.path("a"));
    fs::create_symlink("a", folder.path("b"));
    CHECK(message<FileError>([&] { each.save(folder.path("a")); }).find("Too many levels of symbolic links") !=
          std::string::npos);
    const std::string nul = folder.path("x\0y"s);
    CHECK(message<FileError>([&] { each.save(nul); }).find("a path cannot contain a NUL character") !=
          std::string::npos);
    CHECK(message<FileError>([&] { each.save(folder.path("no/x")); }) ==
          each.name + (": '" + folder.path("no/x")) +
              "': cannot be written: No such file or directory; make its folder first");
    CHECK(folder.files() == 5);
  }
}

TEST_CASE("write_file: a file that may not be written is left as it is") {
  if (geteuid() == 0) return;  // the superuser may write everything
  const Folder folder;
  const std::string path = folder.write("x", "old");
  chmod(path.c_str(), 0444);
  CHECK(message<FileError>([&] { save_npy(path, scalar(1.0)); }).find("Permission denied") != std::string::npos);
  CHECK(testing::read_bytes(path) == "old"sv);
}
