// SPDX-License-Identifier: Apache-2.0
#include "driver/tool/sysfs.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

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

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    names.push_back(entry->path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::optional<std::string> first_line(const std::string& file) {
  std::ifstream in(file);
  std::string line;
  if (!std::getline(in, line)) return std::nullopt;
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

}  // namespace tool
