// SPDX-License-Identifier: Apache-2.0
#include "shmem/profile/table.hpp"

#include <time.h>

#include <fstream>
#include <string>

#include "base/memfd.hpp"

namespace shmem::profile {
namespace {

constexpr std::size_t kAlignment = 4096;

std::size_t round_up(std::size_t size) {
  return (size + kAlignment - 1) / kAlignment * kAlignment;
}

/// The bytes of one PE's table: whole pages, because each PE counts on a processor of its own.
std::size_t stride_for(int total) {
  return round_up(sizeof(PeTable) + static_cast<std::size_t>(total) * sizeof(Target));
}

std::size_t size_for(int count, int total) {
  return kAlignment + static_cast<std::size_t>(count) * stride_for(total);
}

/// True if the kernel keeps time by the counter, as it does if all processors have the same.
bool has_counter() {
#if defined(__x86_64__)
  std::ifstream file("/sys/devices/system/clocksource/clocksource0/current_clocksource");
  std::string name;
  return std::getline(file, name) && name == "tsc";
#elif defined(__aarch64__)
  return true;
#else
  return false;
#endif
}

}  // namespace

std::uint64_t nanoseconds() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

Result<Memory> Memory::create(int first, int count, int total) {
  const std::size_t size = size_for(count, total);
  auto fd = base::create_memfd("oshrun-profile", size);
  if (!fd) {
    return fd.error();
  }
  auto mapping = base::Mapping::share(fd->get(), size);
  if (!mapping) {
    return mapping.error();
  }
  *reinterpret_cast<Header*>(mapping->data()) = {kMagic, kVersion, first, count, total, has_counter() ? 1U : 0U};
  return Memory(std::move(*fd), std::move(*mapping));
}

Result<Memory> Memory::attach(int fd) {
  if (auto sound = base::check_memfd(fd, kAlignment); !sound) {
    return sound.error();
  }
  auto head = base::Mapping::share(fd, kAlignment);
  if (!head) {
    return head.error();
  }
  const Header header = *reinterpret_cast<const Header*>(head->data());
  if (header.magic != kMagic || header.version != kVersion || header.count < 1 || header.total < header.count) {
    return fail(std::errc::protocol_not_supported, "it is not the memory of this version's oshrun --profile");
  }
  const std::size_t size = size_for(header.count, header.total);
  if (auto sound = base::check_memfd(fd, size); !sound) {
    return sound.error();
  }
  auto mapping = base::Mapping::share(fd, size);
  if (!mapping) {
    return mapping.error();
  }
  return Memory(base::UniqueFd(), std::move(*mapping));
}

PeTable& Memory::table(int index) const {
  const std::size_t offset = kAlignment + static_cast<std::size_t>(index) * stride_for(header().total);
  return *reinterpret_cast<PeTable*>(mapping_.data() + offset);
}

}  // namespace shmem::profile
