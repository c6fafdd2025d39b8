// SPDX-License-Identifier: Apache-2.0
// A fake GBA behind the Backend interface: registers in a map, doorbells and flags in memory, and a log of all calls.
#pragma once

#include <sys/eventfd.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "driver/backend.hpp"
#include "driver/mmio.hpp"
#include "uapi/gba_device.h"
#include "uapi/gba_regs.h"

namespace gba::test {

/// Memory mapped for the device. A device reaches it by its file; the tests use the driver's own addresses, because
/// ThreadSanitizer does not see that two mappings of one file are the same memory.
struct DmaRange {
  base::Mapping by_file;
  std::span<std::byte> memory;
};

/// The state of the device, shared by the test, which sets it, and by the backend that the Device owns.
struct FakeState {
  FakeState();

  /// Stores `word` at the RELEASE_ADDR that the driver set for (group, member).
  void store_flag(std::uint32_t group, std::uint32_t member, std::uint64_t word);
  [[nodiscard]] MmioWord<std::uint64_t> flag(std::uint32_t group, std::uint32_t member);
  [[nodiscard]] MmioWord<std::uint64_t> flag_by_file(std::uint32_t group, std::uint32_t member);
  [[nodiscard]] MmioWord<std::uint64_t> doorbell(std::uint32_t group) const;
  /// The value that the driver wrote to RELEASE_ADDR.
  [[nodiscard]] std::uint64_t release_address(std::uint32_t group, std::uint32_t member);
  void set_wakeup(std::uint32_t value) const;
  void interrupt(std::uint32_t vector);
  /// Makes the device lost: fires loss_event().
  void lose() const;
  [[nodiscard]] std::size_t count(const std::string& call) const;

  // Properties of the device.
  std::map<std::uint64_t, std::uint64_t> config;
  std::map<std::uint64_t, std::uint64_t> control;
  std::map<std::uint32_t, RegionInfo> regions;
  std::uint32_t vectors = GBA_MSIX_VECTORS;
  base::UniqueFd doorbell_file;
  base::Mapping doorbells;
  base::UniqueFd control_file;  // if set, the control region can be mapped from it
  base::UniqueFd kick;          // if set, offered as the ioeventfd
  base::UniqueFd loss;
  std::atomic<Loss> loss_seen{Loss::kRemoved};  // the reason behind loss_event(); set while other threads wait for it
  bool gives_dma = true;
  std::size_t largest_dma = SIZE_MAX;
  bool behind_iommu = false;
  int numa_node = -1;
  bool resets_on_close = true;

  bool out_of_memory = false;       // every call throws
  bool out_of_vectors = false;      // arm_irq finds none
  std::function<void()> when_lost;  // called when the backend declares the loss

  // Its answers to commands: CMD_STATUS by opcode, and the result of ALLOC.
  std::map<std::uint64_t, std::uint64_t> command_status;
  std::uint64_t alloc_result = GBA_FIELD_PUT(GBA_CMD_RESULT_GROUP, 3) | GBA_FIELD_PUT(GBA_CMD_RESULT_KEY, 0xbeef);
  bool privileged = false;  // accepts writes to DEV_CONTROL
  bool removed = false;     // reads all ones
  unsigned busy_reads = 0;  // how often CMD_STATUS reads busy before the result

  // The call that fails, counted from 0, and its error.
  std::optional<unsigned> failing_call;
  std::errc failure = std::errc::io_error;

  // A record of what the driver did.
  mutable std::mutex mutex;
  unsigned calls = 0;
  std::vector<std::string> log;
  std::vector<std::uint64_t> commands;
  std::map<std::uint64_t, DmaRange> dma;  // by IOVA
  std::map<std::uint32_t, int> armed;     // vector -> eventfd
};

class FakeBackend final : public Backend {
 public:
  explicit FakeBackend(std::shared_ptr<FakeState> state) : state_(std::move(state)) {}

  [[nodiscard]] std::string name() const override { return "fake"; }
  [[nodiscard]] std::string path() const override { return "fake:0"; }
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
  [[nodiscard]] bool behind_iommu() const override { return state_->behind_iommu; }
  [[nodiscard]] bool resets_on_close() const override { return state_->resets_on_close; }
  [[nodiscard]] int numa_node() const override { return state_->numa_node; }
  [[nodiscard]] pollfd loss_event() const override {
    return {.fd = state_->loss.get(), .events = POLLIN, .revents = 0};
  }
  [[nodiscard]] Loss loss_seen() const override { return state_->loss_seen; }

 private:
  void on_loss() override {
    state_->lose();
    if (state_->when_lost) {
      state_->when_lost();
    }
  }
  /// Logs the call. Fails if it is the call that is set to fail.
  Result<void> enter(const std::string& call);
  void run_command(std::uint64_t word);

  std::shared_ptr<FakeState> state_;
};

}  // namespace gba::test
