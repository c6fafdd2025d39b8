// SPDX-License-Identifier: Apache-2.0
#include "base/folder.hpp"

#include <dirent.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <memory>
#include <string_view>

#include "base/fd.hpp"
#include "base/unix_address.hpp"

namespace base {

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir(folder.c_str()), ::closedir);
  // No other thread has this DIR.
  while (const dirent* const entry = entries ? ::readdir(entries.get()) : nullptr) {  // NOLINT(concurrency-mt-unsafe)
    if (const std::string_view name = entry->d_name; name != "." && name != "..") {
      names.emplace_back(name);
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

namespace {

/// True if no process has this socket any more. A young one may belong to a process that has not called listen yet.
bool is_left_behind(const std::string& path) {
  constexpr std::time_t kYoung = 60;
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || !S_ISSOCK(status.st_mode) ||
      std::time(nullptr) < status.st_mtime + kYoung) {
    return false;
  }
  const UnixAddress address(path);
  const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  return socket && ::connect(socket.get(), address.get(), address.size) != 0 && errno == ECONNREFUSED;
}

}  // namespace

Result<void> check_own_folder(const std::string& folder, const char* whose) {
  if (::mkdir(folder.c_str(), S_IRWXU) != 0 && errno != EEXIST) {
    return fail_errno(errno, fmt::format("cannot make the folder {} of {}", folder, whose));
  }
  struct stat status {};
  if (::stat(folder.c_str(), &status) != 0) {
    return fail_errno(errno, fmt::format("cannot use the folder {} of {}", folder, whose));
  }
  if (!S_ISDIR(status.st_mode)) {
    return fail(std::errc::not_a_directory, fmt::format("{}, where {} are to meet, is no folder", folder, whose));
  }
  if (status.st_uid != ::geteuid() || (status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return fail(
        std::errc::permission_denied,
        fmt::format("the folder {} of {} belongs to user {} and has mode {:o}: it must belong to user {}, and no "
                    "other user may write to it",
                    folder, whose, status.st_uid, status.st_mode & 07777U, ::geteuid()));
  }
  return {};
}

Result<void> prepare_for_sockets(const std::string& folder, const char* whose) {
  constexpr std::size_t kMost = sizeof(sockaddr_un::sun_path) - sizeof("/shmem-0123456789abcdef0123456789abcdef");
  if (folder.size() > kMost) {
    return fail(std::errc::filename_too_long,
                fmt::format("the folder {} of {} has a path of {} characters: sockets in it allow {}", folder, whose,
                            folder.size(), kMost));
  }
  if (auto ok = check_own_folder(folder, whose); !ok) {
    return ok;
  }
  for (const std::string& name : names_in(folder)) {
    const std::string path = fmt::format("{}/{}", folder, name);
    if (name.starts_with("shmem-") && is_left_behind(path)) {
      ::unlink(path.c_str());
    }
  }
  return {};
}

}  // namespace base
