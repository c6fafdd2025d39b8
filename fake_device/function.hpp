// SPDX-License-Identifier: Apache-2.0
// One PCI function of the device as its client sees it: regions, interrupts, DMA. A port, from outside.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fake_device/config_space.hpp"
#include "fake_device/debug_region.hpp"
#include "fake_device/dma_table.hpp"
#include "fake_device/engine.hpp"
#include "fake_device/interrupts.hpp"
#include "fake_device/result.hpp"

namespace fake_device {

/// What a function asks of the connection that it belongs to. Not to call back into the function.
class FunctionClient {
 public:
  FunctionClient() = default;
  FunctionClient(const FunctionClient&) = delete;
  FunctionClient& operator=(const FunctionClient&) = delete;

  virtual void send_store(unsigned group, std::uint64_t iova, std::uint64_t word) = 0;
  /// True: a store that was sent is not answered yet; the connection calls Function::fire(vector) later.
  virtual bool hold_interrupt(unsigned vector) = 0;
  /// Drop the connection, later.
  virtual void doom() = 0;
  /// Something for the log; the second at its default level.
  virtual void note(const std::string& text) = 0;
  virtual void warn(const std::string& text) = 0;

 protected:
  ~FunctionClient() = default;
};

/// Knows no messages: arguments come decoded and checked only for what the wire format itself says. Errors are
/// positive errno values; 0 is success. Used by one thread. The port is the function's own from open() to the end.
class Function final : public PortLink {
 public:
  /// What is passed must outlive the function; the end of it is the loss of the port: uapi rule 24.
  static Result<std::unique_ptr<Function>> open(Engine& engine, unsigned port, FunctionClient& client,
                                                InterruptQueue& interrupts, DmaPool& pool);
  ~Function();

  [[nodiscard]] unsigned port() const { return port_; }

  // ---- Regions
  struct Region {
    std::uint64_t size = 0;
    bool exists = false;
    int fd = -1;             // of a region that may be mapped
    std::uint32_t type = 0;  // of one that is not PCI's
    std::uint32_t subtype = 0;
  };
  [[nodiscard]] unsigned num_regions() const { return debug_ ? GBA_REGION_DEBUG + 1 : GBA_NUM_REGIONS; }
  [[nodiscard]] Region region(unsigned index) const;
  /// EINVAL: no such region, or not within it.
  int read(unsigned index, std::uint64_t offset, std::span<std::byte> out, Time now);
  int write(unsigned index, std::uint64_t offset, std::span<const std::byte> data, Time now);
  /// The eventfd that wakes a sleeping device, made when first asked for; -1 if it cannot be made: uapi rule 14. Nobody
  /// here reads it, so it is to be watched for edges.
  int kick_fd();
  /// That eventfd was signalled.
  void kicked(Time now);
  void reset(Time now);

  // ---- DMA and interrupts
  int map(std::uint64_t address, std::uint64_t size, std::uint64_t offset, std::uint32_t flags, Given file);
  int unmap(std::uint64_t address, std::uint64_t size);
  void unmap_all();
  [[nodiscard]] unsigned irq_count(unsigned index) const { return irqs_.count(index); }
  int set_irqs(unsigned index, std::uint32_t flags, std::uint32_t start, std::uint32_t count,
               std::span<const std::byte> bools, std::vector<Given> fds) {
    return irqs_.set(index, flags, start, count, bools, std::move(fds));
  }
  void fire(unsigned vector) { irqs_.raise(GBA_IRQ_MSIX, vector); }
  /// The device is about to go.
  void warn_of_removal() { irqs_.raise(GBA_IRQ_ERR, 0); }

  // ---- PortLink
  [[nodiscard]] const SharedPages& doorbells() const override { return doorbells_; }
  [[nodiscard]] const SharedPages& flags() const override { return flags_; }
  std::optional<GuardedWord> resolve(std::uint64_t iova) override;
  bool send_store(unsigned group, std::uint64_t iova, std::uint64_t word) override;
  void raise(unsigned vector) override;
  void memory_lost() override { client_.doom(); }
  void removed() override;

 private:
  Function(Engine& engine, unsigned port, FunctionClient& client, InterruptQueue& interrupts, DmaPool& pool,
           SharedPages doorbells, SharedPages flags);
  void read_control(std::uint64_t offset, std::span<std::byte> out, Time now);
  void write_control(std::uint64_t offset, std::span<const std::byte> data, Time now);
  void write_doorbell(std::uint64_t offset, std::span<const std::byte> data, Time now);
  void write_debug(std::uint64_t offset, std::span<const std::byte> data, Time now);
  void write_config(std::uint64_t offset, std::span<const std::byte> data, Time now);
  void explain_lost_store(unsigned group, std::uint64_t iova);
  [[nodiscard]] std::span<std::byte> msix_table(std::uint64_t offset, std::size_t size);
  [[nodiscard]] bool is_pending_word(std::uint64_t offset, std::size_t size) const;

  Engine& engine_;
  const unsigned port_;
  FunctionClient& client_;
  SharedPages doorbells_;
  SharedPages flags_;
  ConfigSpace config_;
  DmaTable dma_;
  IrqTable irqs_;
  // Kept so that it can be read back; what raises an interrupt is its eventfd.
  std::vector<std::byte> msix_table_;
  base::UniqueFd kick_;
  std::optional<DebugRegion> debug_;
  bool removed_ = false;
  bool explained_lost_store_ = false;
};

}  // namespace fake_device
