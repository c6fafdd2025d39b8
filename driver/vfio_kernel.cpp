// SPDX-License-Identifier: Apache-2.0
#include "driver/vfio_kernel.hpp"

#include <algorithm>
#include <cerrno>

namespace gba {

namespace {

/// More than any kernel reports. A caller that asks for more is not answered.
constexpr std::size_t kMostRoom = 1U << 20;

}  // namespace

std::span<const std::byte> VfioInfo::capability(std::uint32_t offset, std::uint16_t id) const {
  // A chain only leads forward, so it ends.
  for (std::uint32_t here = offset, last = 0; here > last;) {
    const auto header = at<vfio_info_cap_header>(bytes_, here);
    if (!header) {
      break;
    }
    if (header->id == id) {
      return std::span(bytes_).subspan(here);
    }
    last = here;
    here = header->next;
  }
  return {};
}

std::optional<VfioInfo> vfio_info(SystemCalls& system, int fd, unsigned long request,
                                  std::span<const std::byte> asked) {
  std::vector<std::byte> bytes(asked.begin(), asked.end());
  for (;;) {
    const auto room = static_cast<std::uint32_t>(bytes.size());
    std::copy(asked.begin(), asked.end(), bytes.begin());
    std::memcpy(bytes.data(), &room, sizeof(room));
    if (system.ioctl(fd, request, bytes.data()) < 0) {
      return std::nullopt;
    }
    std::uint32_t needed = 0;
    std::memcpy(&needed, bytes.data(), sizeof(needed));
    if (needed <= room) {
      return VfioInfo(std::move(bytes));
    }
    if (needed > kMostRoom) {
      errno = EMSGSIZE;
      return std::nullopt;
    }
    bytes.assign(needed, std::byte{0});
  }
}

}  // namespace gba
