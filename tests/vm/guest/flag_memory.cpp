// SPDX-License-Identifier: Apache-2.0
#include "tests/vm/guest/flag_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.hpp"
#include "tests/vm/guest/require.hpp"

namespace guest {
namespace {

constexpr std::size_t kPage = 4096;
// Fields of an entry of /proc/self/pagemap.
constexpr std::uint64_t kPresent = std::uint64_t{1} << 63;
constexpr std::uint64_t kFrameMask = (std::uint64_t{1} << 55) - 1;

}  // namespace

FlagMemory::FlagMemory(std::size_t size) {
  void* page =
      ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_LOCKED | MAP_POPULATE, -1, 0);
  require(page != MAP_FAILED, "cannot lock memory");
  bytes_ = {static_cast<std::byte*>(page), size};
}

FlagMemory::~FlagMemory() {
  ::munmap(bytes_.data(), bytes_.size());
}

std::uint64_t FlagMemory::physical_address() const {
  const base::UniqueFd fd(require_call(::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC), "open pagemap"));
  const auto page = reinterpret_cast<std::uintptr_t>(bytes_.data()) / kPage;
  std::uint64_t entry = 0;
  require(::pread(fd.get(), &entry, sizeof entry, static_cast<off_t>(page * sizeof entry)) == sizeof entry &&
              (entry & kPresent) != 0 && (entry & kFrameMask) != 0,
          "the kernel does not give the address of a page");
  return (entry & kFrameMask) * kPage;
}

}  // namespace guest
