// SPDX-License-Identifier: Apache-2.0
// The seam between the driver and the ways to reach a device: a VFIO device's regions, interrupts and DMA mappings; and
// the ways in which a device can be lost.
#pragma once

#include <poll.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/fd.hpp"
#include "driver/result.hpp"
#include "driver/system_calls.hpp"

namespace gba {

class IovaSpace;

enum class Loss : std::uint8_t {
  kNone,
  kRemoved,   // it reads all ones
  kUnmapped,  // an access to its memory was answered with SIGBUS
  kPciError,  // VFIO's ERR
  kWanted,    // VFIO's REQ
  kClosed,    // the connection to its process has ended
  kSilent,    // it does not answer
  kGarbled,   // its answers break the protocol
  kForked,    // it belongs to the process that this one was forked from
};

/// The errno that gba.h has for it. REQUIRES: not kNone.
std::errc code_of(Loss loss);
/// A description of what happened.
const char* text_of(Loss loss);
/// The failure of every call on a lost device.
Error loss_error(Loss loss, const std::string& path);

struct RegionInfo {
  std::uint64_t size = 0;   // 0: the device has no such region
  bool mappable = false;    // as a whole
  std::uint64_t front = 0;  // bytes from its start that can be mapped; `size` if it is mappable
};

/// Memory of this process that the device may write to. The caller owns both ends.
struct DmaBuffer {
  int fd;  // of the shared memory that holds it, from its first byte
  std::span<std::byte> memory;
};

/// Addresses first..last, both included.
struct IovaRange {
  std::uint64_t first;
  std::uint64_t last;
  friend bool operator==(const IovaRange&, const IovaRange&) = default;
};

/// What the IOMMU in front of the device can map.
struct DmaLimits {
  std::vector<IovaRange> ranges{{.first = 0, .last = UINT64_MAX}};  // ascending
  std::uint64_t page = 4096;                                        // the smallest; maps are multiples of it
};

/// One opened device function. Thread-safe. Region and interrupt indices are VFIO's. A call on a device that is gone
/// fails with loss_error(), and soon; from then on lost() is true and stays so. What was mapped stays mapped until the
/// base::Mapping is destroyed.
class Backend {
 public:
  Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
  virtual ~Backend() = default;

  /// "vfio-user", and the name of what was opened, for messages.
  [[nodiscard]] virtual std::string name() const = 0;
  [[nodiscard]] virtual std::string path() const = 0;

  virtual Result<RegionInfo> region_info(std::uint32_t region) = 0;
  /// One access of the size of `data`, to a region that need not be mappable.
  virtual Result<void> read(std::uint32_t region, std::uint64_t offset, std::span<std::byte> data) = 0;
  virtual Result<void> write(std::uint32_t region, std::uint64_t offset, std::span<const std::byte> data) = 0;
  /// A posted write; its failure may stay unknown.
  virtual Result<void> post(std::uint32_t region, std::uint64_t offset, std::span<const std::byte> data) = 0;
  /// The part of the region that RegionInfo::front says. REQUIRES: there is one.
  virtual Result<base::Mapping> map(std::uint32_t region) = 0;
  /// An eventfd that stands for a write to the register at `offset`; an empty one if the device has none.
  virtual Result<base::UniqueFd> doorbell_eventfd(std::uint32_t region, std::uint64_t offset) = 0;

  virtual Result<std::uint32_t> irq_count(std::uint32_t index) = 0;
  /// From now on the interrupt adds 1 to `eventfd`, which the caller owns and may close after disarm_irq.
  virtual Result<void> arm_irq(std::uint32_t index, std::uint32_t vector, int eventfd) = 0;
  virtual Result<void> disarm_irq(std::uint32_t index, std::uint32_t vector) = 0;

  virtual Result<DmaLimits> dma_limits() { return DmaLimits{}; }
  /// The addresses to map memory at, within `limits`; devices that share an IOMMU group share them.
  virtual Result<std::shared_ptr<IovaSpace>> iova_space(const DmaLimits& limits);
  /// The NUMA node that the device is attached to; below 0: none in particular.
  [[nodiscard]] virtual int numa_node() const { return -1; }
  /// Its addresses are translated, and large pages spare look-ups.
  [[nodiscard]] virtual bool behind_iommu() const { return false; }
  virtual Result<void> dma_map(const DmaBuffer& buffer, std::uint64_t iova) = 0;
  /// After this the device cannot reach the memory. REQUIRES: the range of an earlier dma_map.
  virtual Result<void> dma_unmap(std::uint64_t iova, std::size_t size) = 0;

  /// Does closing it reset the function (uapi rule 2)?
  [[nodiscard]] virtual bool resets_on_close() const { return true; }
  /// Function reset: this port leaves all its groups (uapi rule 24).
  virtual Result<void> reset() = 0;

  /// The descriptor to poll for the loss of the device: any event means that it is lost.
  [[nodiscard]] virtual pollfd loss_event() const = 0;
  /// The loss that the event means.
  [[nodiscard]] virtual Loss loss_seen() const = 0;
  [[nodiscard]] Loss loss() const { return loss_.load(std::memory_order_relaxed); }
  [[nodiscard]] bool lost() const { return loss() != Loss::kNone; }
  [[nodiscard]] Error loss_error() const { return gba::loss_error(loss(), path()); }
  /// Checks whether the device is lost, without waiting.
  bool check_lost() {
    pollfd event = loss_event();
    if (lost()) {
      declare_lost(loss());  // a signal handler could not
    } else if (::poll(&event, 1, 0) > 0 && event.revents != 0) {
      const Loss seen = loss_seen();
      if (seen == Loss::kWanted) {
        say_farewell();
      }
      declare_lost(seen);
    }
    return lost();
  }
  /// Declares the device lost to all users and waiters. The first reason stays.
  void declare_lost(Loss why) {
    mark_lost(why);
    if (!told_.exchange(true, std::memory_order_relaxed)) {
      on_loss();
    }
  }
  /// The same without notifying waiters, as a signal handler must. loss_event() may not fire.
  void mark_lost(Loss why) {
    Loss none = Loss::kNone;
    loss_.compare_exchange_strong(none, why, std::memory_order_relaxed);
  }
  /// The same in a forked child, which must not send anything: it would reach the parent's device.
  void mark_forked() {
    told_.store(true, std::memory_order_relaxed);
    mark_lost(Loss::kForked);
  }

  /// Sets what to do with a device that the kernel wants back and that still works. Called at most once, by
  /// check_lost(), before the device is lost. Set before other threads know the backend.
  void set_farewell(std::function<void()> farewell) { farewell_ = std::move(farewell); }

 protected:
  /// Makes loss_event() fire and all further calls fail. Called once, by any thread.
  virtual void on_loss() {}

 private:
  /// A second caller waits until it is done. If it throws, the next one tries again. Not by std::call_once(): based on
  /// pthread_once() it may leave the next caller waiting for ever, as ThreadSanitizer's does.
  void say_farewell() {
    const std::lock_guard lock(farewell_mutex_);
    if (farewell_) {
      farewell_();
      farewell_ = nullptr;
    }
  }

  std::mutex farewell_mutex_;  // guards farewell_
  std::function<void()> farewell_;
  // Relaxed: nothing else is published by them.
  std::atomic<Loss> loss_{Loss::kNone};
  std::atomic<bool> told_{false};  // on_loss() has been called, or never will be
};

}  // namespace gba
