// SPDX-License-Identifier: Apache-2.0
#include "shmem/launcher/program_path.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <sstream>

namespace shmem::launcher {

namespace {

/// 0, or why `name` cannot be executed by a process that is in `folder`.
int execution_error(const std::string& name, const std::string& folder) {
  const bool is_elsewhere = !folder.empty() && name.front() != '/';
  const std::string file = is_elsewhere ? folder + "/" + name : name;
  struct stat status {};
  if (::stat(file.c_str(), &status) != 0) return errno;
  if (S_ISDIR(status.st_mode)) return EISDIR;
  return ::access(file.c_str(), X_OK) == 0 ? 0 : errno;
}

}  // namespace

Result<std::string> find_program(const std::string& name, const std::string& path, const std::string& folder) {
  if (name.find('/') != std::string::npos) {
    const int error = execution_error(name, folder);
    if (error == 0) return name;
    return fail_errno(error, "cannot run " + name);
  }
  int refusal = 0;
  std::istringstream folders(path);
  std::string entry;
  while (std::getline(folders, entry, ':')) {
    std::string file = entry.empty() ? "." : entry;  // an empty entry is the current folder
    file.append("/").append(name);
    const int error = execution_error(file, folder);
    if (error == 0) return file;
    if (error == EACCES) refusal = error;
  }
  if (refusal != 0) return fail_errno(refusal, "cannot run " + name);
  return fail(std::errc::no_such_file_or_directory, "cannot run " + name + ": no such program in PATH");
}

std::string own_folder() {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? std::string() : self.parent_path().string();
}

}  // namespace shmem::launcher
