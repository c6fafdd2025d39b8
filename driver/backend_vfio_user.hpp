// SPDX-License-Identifier: Apache-2.0
// A device behind a vfio-user server: gba-fake-device, or any other.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "driver/backend.hpp"
#include "driver/vfio_user_channel.hpp"

namespace gba {

class VfioUserBackend final : public Backend {
 public:
  /// Connects to the socket `name` ('@...': an abstract one); `shown` is its name for people.
  static Result<std::unique_ptr<Backend>> open(const std::string& name, const std::string& shown);

  /// REQUIRES: VERSION has been negotiated on `socket`.
  explicit VfioUserBackend(std::unique_ptr<VfioUserChannel> channel) : channel_(std::move(channel)) {}

  [[nodiscard]] std::string name() const override { return "vfio-user"; }
  [[nodiscard]] std::string path() const override { return channel_->peer(); }

  Result<RegionInfo> region_info(std::uint32_t region) override;
  Result<void> read(std::uint32_t region, std::uint64_t offset, std::span<std::byte> data) override;
  Result<void> write(std::uint32_t region, std::uint64_t offset, std::span<const std::byte> data) override;
  Result<void> post(std::uint32_t region, std::uint64_t offset, std::span<const std::byte> data) override;
  Result<base::Mapping> map(std::uint32_t region) override;
  Result<base::UniqueFd> doorbell_eventfd(std::uint32_t region, std::uint64_t offset) override;

  Result<std::uint32_t> irq_count(std::uint32_t index) override;
  Result<void> arm_irq(std::uint32_t index, std::uint32_t vector, int eventfd) override;
  Result<void> disarm_irq(std::uint32_t index, std::uint32_t vector) override;

  Result<void> dma_map(const DmaBuffer& buffer, std::uint64_t iova) override;
  Result<void> dma_unmap(std::uint64_t iova, std::size_t size) override;

  Result<void> reset() override;

  [[nodiscard]] pollfd loss_event() const override;
  [[nodiscard]] Loss loss_seen() const override { return Loss::kClosed; }

 private:
  void on_loss() override { channel_->shut_down(loss()); }
  Result<Reply> request(vfio_user_command command, std::span<const std::byte> payload, std::size_t reply_size = 0,
                        std::span<const int> fds = {});
  Result<Reply> query_region(std::uint32_t region);
  Result<void> set_irqs(std::uint32_t index, std::uint32_t vector, std::span<const int> eventfds);

  const std::unique_ptr<VfioUserChannel> channel_;
};

}  // namespace gba
