// SPDX-License-Identifier: Apache-2.0
#include "driver/backend_vfio_user.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "driver/vfio_user_channel.hpp"
#include "uapi/vfio_user.h"

namespace gba {

namespace {

std::vector<std::byte> access_message(std::uint32_t region, std::uint64_t offset, std::size_t count,
                                      std::span<const std::byte> data) {
  const vfio_user_region_access access{.offset = offset, .region = region, .count = static_cast<std::uint32_t>(count)};
  std::vector<std::byte> message(sizeof(access) + data.size());
  std::memcpy(message.data(), &access, sizeof(access));
  std::copy(data.begin(), data.end(), message.begin() + sizeof(access));
  return message;
}

/// For a call whose reply carries nothing.
Result<void> ignore_reply(const Result<Reply>& reply) {
  if (!reply) {
    return reply.error();
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Backend>> VfioUserBackend::open(const std::string& name, const std::string& shown) {
  auto socket = connect_unix(name, shown, Deadline::after(VfioUserChannel::kReplyTimeout));
  if (!socket) {
    return socket.error();
  }
  auto channel = std::make_unique<VfioUserChannel>(*std::move(socket), shown);
  if (auto ready = channel->negotiate(); !ready) {
    return ready.error();
  }
  return std::make_unique<VfioUserBackend>(std::move(channel));
}

Result<Reply> VfioUserBackend::request(vfio_user_command command, std::span<const std::byte> payload,
                                       std::size_t reply_size, std::span<const int> fds) {
  // A forked child holds the same socket: its messages would look like its parent's.
  if (lost()) {
    return loss_error();
  }
  auto reply = channel_->request(command, payload, reply_size, fds);
  if (channel_->broken() != Loss::kNone) {
    declare_lost(channel_->broken());
  }
  return reply;
}

Result<Reply> VfioUserBackend::query_region(std::uint32_t region) {
  vfio_user_region_info info{};
  // No room for capabilities: a mapped region is mapped whole.
  info.argsz = sizeof(info);
  info.index = region;
  return request(VFIO_USER_DEVICE_GET_REGION_INFO, wire_bytes(info), sizeof(info));
}

Result<RegionInfo> VfioUserBackend::region_info(std::uint32_t region) {
  const auto reply = query_region(region);
  if (!reply) {
    return reply.error();
  }
  const auto info = reply->get<vfio_user_region_info>();
  const bool mappable = (info.flags & VFIO_USER_REGION_MMAP) != 0;
  return RegionInfo{.size = info.size, .mappable = mappable, .front = mappable ? info.size : 0};
}

Result<base::Mapping> VfioUserBackend::map(std::uint32_t region) {
  const auto reply = query_region(region);
  if (!reply) {
    return reply.error();
  }
  const auto info = reply->get<vfio_user_region_info>();
  const std::string what = fmt::format("region {} of {}", region, path());
  if ((info.flags & VFIO_USER_REGION_MMAP) == 0 || reply->fds.size() != 1 || info.size == 0) {
    return fail(std::errc::protocol_error, fmt::format("gba: cannot map {}: the server gives no file for it", what));
  }
  return map_shared(reply->fds.front().get(), info.offset, info.size, what);
}

Result<void> VfioUserBackend::read(std::uint32_t region, std::uint64_t offset, std::span<std::byte> data) {
  const auto message = access_message(region, offset, data.size(), {});
  const auto reply = request(VFIO_USER_REGION_READ, message, sizeof(vfio_user_region_access) + data.size());
  if (!reply) {
    return reply.error();
  }
  std::memcpy(data.data(), reply->payload.data() + sizeof(vfio_user_region_access), data.size());
  return {};
}

Result<void> VfioUserBackend::write(std::uint32_t region, std::uint64_t offset, std::span<const std::byte> data) {
  return ignore_reply(request(VFIO_USER_REGION_WRITE, access_message(region, offset, data.size(), data)));
}

Result<void> VfioUserBackend::post(std::uint32_t region, std::uint64_t offset, std::span<const std::byte> data) {
  if (lost()) {
    return loss_error();
  }
  auto sent = channel_->post(VFIO_USER_REGION_WRITE, access_message(region, offset, data.size(), data));
  if (channel_->broken() != Loss::kNone) {
    declare_lost(channel_->broken());
  }
  return sent;
}

Result<base::UniqueFd> VfioUserBackend::doorbell_eventfd(std::uint32_t region, std::uint64_t offset) {
  vfio_user_region_io_fds asked{};
  asked.argsz = static_cast<std::uint32_t>(sizeof(asked) + kMaxMessageFds * sizeof(vfio_user_ioeventfd));
  asked.index = region;
  auto reply = request(VFIO_USER_DEVICE_GET_REGION_IO_FDS, wire_bytes(asked), sizeof(asked));
  if (!reply) {
    if (lost()) {
      return reply.error();
    }
    return base::UniqueFd{};  // an optional command: there is a register for the same purpose
  }
  const std::size_t room = (reply->payload.size() - sizeof(asked)) / sizeof(vfio_user_ioeventfd);
  const std::size_t count = std::min<std::size_t>(reply->get<vfio_user_region_io_fds>().count, room);
  for (std::size_t i = 0; i < count; ++i) {
    const auto entry = reply->get<vfio_user_ioeventfd>(sizeof(asked) + i * sizeof(vfio_user_ioeventfd));
    if (entry.type == VFIO_USER_IO_FD_TYPE_IOEVENTFD && entry.offset == offset && entry.fd_index < reply->fds.size()) {
      return std::move(reply->fds[entry.fd_index]);
    }
  }
  return base::UniqueFd{};
}

Result<std::uint32_t> VfioUserBackend::irq_count(std::uint32_t index) {
  const vfio_user_irq_info asked{.argsz = sizeof(asked), .flags = 0, .index = index, .count = 0};
  const auto reply = request(VFIO_USER_DEVICE_GET_IRQ_INFO, wire_bytes(asked), sizeof(asked));
  if (!reply) {
    return reply.error();
  }
  const auto info = reply->get<vfio_user_irq_info>();
  return (info.flags & VFIO_USER_IRQ_INFO_EVENTFD) != 0 ? info.count : 0;
}

Result<void> VfioUserBackend::set_irqs(std::uint32_t index, std::uint32_t vector, std::span<const int> eventfds) {
  const vfio_user_irq_set set{.argsz = sizeof(set),
                              .flags = VFIO_USER_IRQ_DATA_EVENTFD | VFIO_USER_IRQ_ACTION_TRIGGER,
                              .index = index,
                              .start = vector,
                              .count = 1};
  return ignore_reply(request(VFIO_USER_DEVICE_SET_IRQS, wire_bytes(set), 0, eventfds));
}

Result<void> VfioUserBackend::arm_irq(std::uint32_t index, std::uint32_t vector, int eventfd) {
  return set_irqs(index, vector, std::span(&eventfd, 1));
}

Result<void> VfioUserBackend::disarm_irq(std::uint32_t index, std::uint32_t vector) {
  return set_irqs(index, vector, {});
}

Result<void> VfioUserBackend::dma_map(const DmaBuffer& buffer, std::uint64_t iova) {
  const vfio_user_dma_map map{.argsz = sizeof(map),
                              .flags = VFIO_USER_DMA_READABLE | VFIO_USER_DMA_WRITABLE,
                              .offset = 0,
                              .address = iova,
                              .size = buffer.memory.size()};
  return ignore_reply(request(VFIO_USER_DMA_MAP, wire_bytes(map), 0, std::span(&buffer.fd, 1)));
}

Result<void> VfioUserBackend::dma_unmap(std::uint64_t iova, std::size_t size) {
  const vfio_user_dma_unmap unmap{.argsz = sizeof(unmap), .flags = 0, .address = iova, .size = size};
  return ignore_reply(request(VFIO_USER_DMA_UNMAP, wire_bytes(unmap)));
}

Result<void> VfioUserBackend::reset() {
  return ignore_reply(request(VFIO_USER_DEVICE_RESET, {}));
}

pollfd VfioUserBackend::loss_event() const {
  // Not POLLIN: a reply belongs to the thread that asked.
  return {.fd = channel_->socket(), .events = POLLRDHUP, .revents = 0};
}

}  // namespace gba
