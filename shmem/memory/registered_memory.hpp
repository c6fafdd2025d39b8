// SPDX-License-Identifier: Apache-2.0
// The memory that the program has registered (shmemx_memory_register): by address, and where it is in the other PEs of
// this node.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/mapping.hpp"
#include "base/versioned.hpp"
#include "shmem/memory/memory_range.hpp"
#include "shmem/memory/process_memory.hpp"

namespace shmem {

/// How many there can be at a time.
constexpr std::size_t kMostRegistered = 240;

/// One memory of this PE, and the same memory of other PEs.
struct Registration {
  struct Copy {
    std::byte* mapped = nullptr;                // loads and stores reach it here
    std::optional<ProcessMemory> process = {};  // else only copies by the kernel do, in that process
    std::uint64_t address = 0;                  // there
  };

  std::span<std::byte> mine;
  std::vector<Copy> copies = {};  // by PE of this node; of this PE, `mapped` is where the program has it
  /// By PE of the world: its memory is private to its process, so that other PEs of its node reach it only by copies of
  /// the kernel. Empty: no PE's is. The same on all PEs.
  std::vector<bool> private_pes = {};
  std::vector<base::Mapping> windows = {};
};

/// Any thread may find memory while another one adds and removes some. The caller of remove() ensures that no thread
/// uses that memory; nothing else has to stop for it.
class RegisteredMemory {
 public:
  RegisteredMemory() = default;
  RegisteredMemory(const RegisteredMemory&) = delete;
  RegisteredMemory& operator=(const RegisteredMemory&) = delete;
  ~RegisteredMemory() = default;

  /// A byte of a registered memory of this PE.
  struct Found {
    std::size_t slot;
    std::size_t offset;
    std::size_t room;  // bytes from there on
  };
  /// Takes one load if nothing is registered.
  [[nodiscard]] std::optional<Found> find(const void* mine) const {
    // Acquire: as in search().
    return count_.load(std::memory_order_acquire) == 0 ? std::nullopt : search(mine);
  }
  /// Where loads and stores reach the same byte of `pe`, a PE of this node; nothing if they do not.
  [[nodiscard]] MemoryRange locate(const void* mine, int pe) const {
    const auto found = find(mine);
    return found ? place_in(*found, pe) : MemoryRange{};
  }
  /// That PE's memory, if only copies by the kernel reach it; else nullptr.
  [[nodiscard]] const Registration::Copy* copied(const Found& found, int pe) const {
    const Registration::Copy& copy = table_->slots[found.slot]->copies[static_cast<std::size_t>(pe)];
    return copy.mapped == nullptr && copy.process ? &copy : nullptr;
  }
  /// No PE of the job has it as private memory. The same on all PEs.
  [[nodiscard]] bool is_mapped(const Found& found) const { return table_->slots[found.slot]->private_pes.empty(); }
  /// PE `pe` of the world has it as private memory. The same on all PEs.
  [[nodiscard]] bool is_private(const Found& found, int pe) const {
    const auto& all = table_->slots[found.slot]->private_pes;
    return !all.empty() && all[static_cast<std::size_t>(pe)];
  }

  // By one thread at a time.
  /// nullptr: none is there.
  [[nodiscard]] const Registration* at(std::size_t slot) const {
    return table_ != nullptr ? table_->slots[slot].get() : nullptr;
  }
  /// The one that begins at this address.
  [[nodiscard]] std::optional<std::size_t> slot_of(const void* begin) const;
  /// True if `memory` has bytes of one of them, or of what this PE maps of other PEs' memory.
  [[nodiscard]] bool overlaps(std::span<const std::byte> memory) const;
  /// REQUIRES: the slot is free, and the memory overlaps none that is registered.
  void add(std::size_t slot, std::unique_ptr<Registration> registration);
  void remove(std::size_t slot);

 private:
  /// By address, for find(). Changed as a whole.
  struct Line {
    std::atomic<std::uintptr_t> begin{0};
    std::atomic<std::size_t> size{0};
    std::atomic<std::size_t> slot{0};
  };
  struct Table {
    std::array<Line, kMostRegistered> lines;
    std::array<std::unique_ptr<Registration>, kMostRegistered> slots;
  };
  [[nodiscard]] std::optional<Found> search(const void* mine) const;
  [[nodiscard]] MemoryRange place_in(const Found& found, int pe) const;
  void write_lines();

  std::atomic<std::size_t> count_{0};
  base::Version version_{};       // of count_ and the lines
  std::unique_ptr<Table> table_;  // made for the first memory: most jobs register none
};

}  // namespace shmem
