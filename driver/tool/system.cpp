// SPDX-License-Identifier: Apache-2.0
#include "driver/tool/system.hpp"

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace tool {

namespace {

std::string root(const char* variable, const char* usual) {
  const char* const value = std::getenv(variable);
  return value != nullptr && *value != '\0' ? value : usual;
}

}  // namespace

std::string sys_path(const std::string& path) {
  return root("GBA_SYSFS", "/sys") + "/" + path;
}

std::string dev_path(const std::string& path) {
  return root("GBA_DEVFS", "/dev") + "/" + path;
}

bool is_this_machine() {
  return sys_path("") == "/sys/" && dev_path("") == "/dev/";
}

std::optional<std::string> first_line(const std::string& file) {
  std::ifstream in(file);
  std::string line;
  if (!std::getline(in, line)) {
    return std::nullopt;
  }
  return line;
}

std::string link_name(const std::string& link) {
  std::error_code error;
  return std::filesystem::read_symlink(link, error).filename();
}

bool exists(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

bool is_same(const std::string& path, const std::string& other) {
  struct stat one {};
  struct stat two {};
  return ::stat(path.c_str(), &one) == 0 && ::stat(other.c_str(), &two) == 0 && one.st_dev == two.st_dev &&
         one.st_ino == two.st_ino;
}

std::vector<int> open_eventfds() {
  const std::string folder = "/proc/self/fd/";
  std::vector<int> found;
  for (const auto& name : names_in(folder)) {
    if (link_name(folder + name) == "anon_inode:[eventfd]") {
      found.push_back(std::stoi(name));
    }
  }
  return found;
}

int new_eventfd(const std::vector<int>& before) {
  for (const int eventfd : open_eventfds()) {
    if (std::find(before.begin(), before.end(), eventfd) == before.end()) {
      return eventfd;
    }
  }
  return -1;
}

void drain(int eventfd) {
  std::uint64_t count = 0;
  if (::read(eventfd, &count, sizeof count) < 0) {
    return;  // there was no event
  }
}

bool comes(int eventfd, std::uint64_t limit_ns) {
  constexpr std::uint64_t kNsPerMs = 1'000'000;
  pollfd event{.fd = eventfd, .events = POLLIN, .revents = 0};
  return ::poll(&event, 1, static_cast<int>(limit_ns / kNsPerMs)) == 1;
}

}  // namespace tool
