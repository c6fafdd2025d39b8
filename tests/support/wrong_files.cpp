// SPDX-License-Identifier: Apache-2.0
#include "tests/support/wrong_files.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

namespace test_support {

std::vector<WrongFile> make_wrong_files(const std::string& folder, const std::string& begin) {
  const std::string fifo = folder + "/fifo";
  const std::string binary = folder + "/binary";
  const std::string large = folder + "/large";
  const std::string closed = folder + "/closed";
  std::ofstream(binary) << begin << std::string("\0\1\2", 3);
  std::ofstream(large) << begin;
  std::ofstream(closed) << begin;
  if (::mkfifo(fifo.c_str(), 0600) != 0 || ::truncate(large.c_str(), off_t{1} << 40) != 0 ||
      ::chmod(closed.c_str(), 0) != 0) {
    std::abort();
  }
  std::vector<WrongFile> files{{folder, "it is a folder"},
                               {fifo, "it is not a regular file"},
                               {"/dev/zero", "it is not a regular file"},
                               {binary, "it is not a text file"},
                               {large, "it is too large"},
                               {folder + "/none", "No such file or directory"}};
  if (::geteuid() != 0) {
    files.push_back({closed, "Permission denied"});
  }
  return files;
}

}  // namespace test_support
