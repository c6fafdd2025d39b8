// SPDX-License-Identifier: Apache-2.0
#include "fake_device/shared_pages.hpp"

#include <fcntl.h>

#include <cerrno>
#include <string>

namespace fake_device {

Result<SharedPages> SharedPages::create(const char* name, std::size_t size) {
  const auto failed = [&](const char* doing) {
    return failure(std::string("cannot ") + doing + " device memory " + name + " of " + std::to_string(size) +
                       " bytes (is memory, or the limit of open files, used up?)",
                   errno);
  };
  UniqueFd fd(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd || ::ftruncate(fd.get(), static_cast<off_t>(size)) != 0) {
    return failed("create");
  }
  if (::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return failed("seal");
  }
  Mapping pages(::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0), size);
  if (!pages) {
    return failed("map");
  }
  return SharedPages(std::move(fd), std::move(pages));
}

}  // namespace fake_device
