// SPDX-License-Identifier: Apache-2.0
#include "base/regular_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace base {

namespace {

Error failed(int error) {
  return fail(std::errc{error}, std::generic_category().message(error));
}

}  // namespace

Result<UniqueFd> open_regular_file(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat status {};
  if (!fd || ::fstat(fd.get(), &status) != 0) {
    return failed(errno);
  }
  if (S_ISDIR(status.st_mode)) {
    return fail(std::errc::is_a_directory, "it is a folder");
  }
  if (!S_ISREG(status.st_mode)) {
    return fail(std::errc::invalid_argument, "it is not a regular file");
  }
  return fd;
}

Result<std::string> read_text(const UniqueFd& fd, std::size_t most) {
  std::string text;
  std::array<char, 4096> part{};
  ssize_t got = 0;
  // Not by the size that the file has now: it may grow, and files in /proc report 0.
  while ((got = ::read(fd.get(), part.data(), part.size())) != 0) {
    if (got < 0 && errno != EINTR) {
      return failed(errno);
    }
    text.append(part.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
    if (text.size() > most) {
      return fail(std::errc::file_too_large, "it is too large, more than " + std::to_string(most) + " bytes");
    }
  }
  if (text.find('\0') != std::string::npos) {
    return fail(std::errc::invalid_argument, "it is not a text file");
  }
  return text;
}

Result<std::string> read_text_file(const std::string& path, std::size_t most) {
  const auto fd = open_regular_file(path);
  if (!fd) {
    return fd.error();
  }
  return read_text(*fd, most);
}

}  // namespace base
