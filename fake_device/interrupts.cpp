// SPDX-License-Identifier: Apache-2.0
#include "fake_device/interrupts.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <string>
#include <string_view>

#include "uapi/vfio_user.h"

namespace fake_device {

namespace {

constexpr std::uint32_t kData = VFIO_USER_IRQ_DATA_NONE | VFIO_USER_IRQ_DATA_BOOL | VFIO_USER_IRQ_DATA_EVENTFD;
constexpr std::uint32_t kAction =
    VFIO_USER_IRQ_ACTION_MASK | VFIO_USER_IRQ_ACTION_UNMASK | VFIO_USER_IRQ_ACTION_TRIGGER;

// A write to anything else (a pipe, a socket, a file) might block, and all clients with it.
bool is_eventfd(int fd) {
  std::array<char, 64> target{};
  const std::string link = fmt::format("/proc/self/fd/{}", fd);
  const auto size = ::readlink(link.c_str(), target.data(), target.size());
  return size > 0 && std::string_view(target.data(), static_cast<std::size_t>(size)) == "anon_inode:[eventfd]";
}

// The client's own reads then do not block either.
bool make_nonblocking(int fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  return flags >= 0 && ((flags & O_NONBLOCK) != 0 || ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0);
}

}  // namespace

IrqTable::IrqTable(unsigned msix_vectors, InterruptQueue& queue) : queue_(queue) {
  lines_[GBA_IRQ_MSIX] = std::vector<Line>(msix_vectors);
  lines_[GBA_IRQ_ERR] = std::vector<Line>(1);
  lines_[GBA_IRQ_REQ] = std::vector<Line>(1);
}

IrqTable::~IrqTable() {
  for (auto& lines : lines_) {
    for (auto& line : lines) {
      queue_.forget(line);
    }
  }
}

int IrqTable::set(unsigned index, std::uint32_t flags, std::uint32_t start, std::uint32_t count,
                  std::span<const std::byte> bools, std::vector<Given> fds) {
  const std::uint32_t data = flags & kData;
  const std::uint32_t action = flags & kAction;
  if (index >= GBA_NUM_IRQS || (flags & ~(kData | kAction)) != 0 || !std::has_single_bit(data) ||
      !std::has_single_bit(action)) {
    return EINVAL;
  }
  auto& lines = lines_[index];
  if (start >= lines.size() || count > lines.size() - start) {
    return EINVAL;
  }
  const bool with_fds = data == VFIO_USER_IRQ_DATA_EVENTFD;
  const bool sizes_fit = bools.size() == (data == VFIO_USER_IRQ_DATA_BOOL ? count : 0) &&
                         (fds.empty() || (with_fds && fds.size() == count));
  const bool only_trigger = index == GBA_IRQ_ERR || index == GBA_IRQ_REQ || with_fds;
  if (!sizes_fit || (only_trigger && action != VFIO_USER_IRQ_ACTION_TRIGGER)) {
    return EINVAL;
  }
  const auto chosen = std::span(lines).subspan(start, count);
  if (with_fds) {
    return arm(chosen, std::move(fds));
  }
  if (count == 0 && start == 0 && data == VFIO_USER_IRQ_DATA_NONE && action == VFIO_USER_IRQ_ACTION_TRIGGER) {
    return arm(lines, {});
  }
  for (std::size_t position = 0; position < chosen.size(); ++position) {
    if (bools.empty() || bools[position] != std::byte{0}) {
      apply(chosen[position], action);
    }
  }
  return 0;
}

// No descriptors: the lines are disarmed. An interrupt that waits for its turn goes to the new eventfd.
int IrqTable::arm(std::span<Line> lines, std::vector<Given> fds) {
  const auto usable = [&](const Given& fd) {
    return is_eventfd(fd.get()) && (queue_.never_waits() || make_nonblocking(fd.get()));
  };
  if (!std::all_of(fds.begin(), fds.end(), usable)) {
    return EINVAL;
  }
  for (std::size_t position = 0; position < lines.size(); ++position) {
    Line& line = lines[position];
    line.masked = false;
    line.pending = false;
    if (fds.empty()) {
      queue_.forget(line);
      line.eventfd = Given();
    } else {
      line.eventfd = std::move(fds[position]);
    }
  }
  return 0;
}

void IrqTable::apply(Line& line, std::uint32_t action) {
  if (action == VFIO_USER_IRQ_ACTION_TRIGGER) {
    fire(line);
    return;
  }
  line.masked = action == VFIO_USER_IRQ_ACTION_MASK;
  if (!line.masked && line.pending) {
    fire(line);
  }
}

void IrqTable::fire(Line& line) {
  line.pending = line.masked;
  if (!line.masked && line.eventfd) {
    queue_.signal(line);
  }
}

std::uint64_t IrqTable::pending(unsigned word) const {
  const auto& lines = lines_[GBA_IRQ_MSIX];
  std::uint64_t bits = 0;
  for (std::size_t vector = std::size_t{64} * word; vector < lines.size() && vector / 64 == word; ++vector) {
    bits |= std::uint64_t{lines[vector].pending} << (vector % 64);
  }
  return bits;
}

void IrqTable::raise(unsigned index, unsigned vector) {
  fire(lines_[index][vector]);
}

}  // namespace fake_device
