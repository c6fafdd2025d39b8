// SPDX-License-Identifier: Apache-2.0
#include "base/kernel.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.hpp"

namespace base {

std::array<char, 40> boot_id() {
  std::array<char, 40> id{};
  const UniqueFd file(::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  if (file && ::read(file.get(), id.data(), id.size() - 1) < 0) {
    id = {};
  }
  return id;
}

std::uint64_t network_namespace() {
  struct stat status {};
  return ::stat("/proc/self/ns/net", &status) == 0 ? status.st_ino : 0;
}

}  // namespace base
