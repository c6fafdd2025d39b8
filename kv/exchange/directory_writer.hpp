// SPDX-License-Identifier: Apache-2.0
// The directory of this member.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/fd.hpp"
#include "base/mapping.hpp"
#include "kv/exchange/directory_layout.hpp"
#include "shmem/result.hpp"

namespace shmem::exchange {

/// Where a block is, and what it is.
struct BlockPlace {
  std::uint32_t region = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint64_t layout = 0;
};

/// What makes two entries of one directory different: their keys, or their keys and layouts.
enum class Identity { kKey, kKeyAndLayout };

/// Owns the memory. Used by one thread at a time; readers of other processes at any time.
class DirectoryWriter {
 public:
  using Time = std::chrono::steady_clock::time_point;

  static Result<DirectoryWriter> create(std::uint32_t slots, Identity identity = Identity::kKey);

  [[nodiscard]] int file() const { return file_.get(); }
  /// directory_size(slots()) bytes, for readers of this process.
  [[nodiscard]] const std::byte* memory() const { return memory_.data(); }
  [[nodiscard]] std::uint32_t slots() const { return slots_; }

  /// For the whole process: any thread may add to them.
  [[nodiscard]] Counters& counters() const { return reinterpret_cast<DirectoryHeader*>(memory_.data())->counters; }

  /// The entry of the key, and with kKeyAndLayout of the layout, also if it was withdrawn and not removed.
  [[nodiscard]] std::optional<std::uint32_t> find(const Key& key, std::uint64_t layout) const;
  [[nodiscard]] bool is_published(std::uint32_t slot) const {
    return is_valid(entry(slot).epoch.load(std::memory_order_relaxed));
  }
  /// What is in the slot. REQUIRES: find() or publish() has returned it, and it was not removed since.
  [[nodiscard]] Key key_at(std::uint32_t slot) const;

  /// Errors, without a text: EEXIST the key has an entry; EBUSY it was withdrawn and not removed; ENOSPC. `at`, if not
  /// null, gets the slot.
  std::errc publish(const Key& key, const BlockPlace& place, std::uint32_t* at = nullptr);

  struct Withdrawn {
    std::uint32_t slot = 0;
    std::uint64_t epoch = 0;  // since then
    Time since;
  };
  /// Makes the entry invalid, if it is not yet; readers that come later see that, and what they wrote earlier is
  /// visible here. Nothing if there is no such entry.
  std::optional<Withdrawn> withdraw(const Key& key, std::uint64_t layout = 0);
  /// The same. REQUIRES: find() or publish() has returned the slot, and it was not removed since.
  Withdrawn withdraw_at(std::uint32_t slot);
  /// False: the entry has been removed, and perhaps the key published again.
  [[nodiscard]] bool is_withdrawn(const Withdrawn& withdrawn) const {
    return used_[withdrawn.slot].is_withdrawn &&
           entry(withdrawn.slot).epoch.load(std::memory_order_relaxed) == withdrawn.epoch;
  }
  /// Forgets a withdrawn entry. REQUIRES: is_withdrawn(), and no reader has a lease of it.
  void remove(const Withdrawn& withdrawn);

  [[nodiscard]] std::uint64_t blocks() const { return blocks_; }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  /// Entries of this region, withdrawn ones among them.
  [[nodiscard]] bool uses(std::uint32_t region) const {
    const auto found = uses_.find(region);
    return found != uses_.end() && found->second > 0;
  }

 private:
  struct Slot {
    std::size_t index = 0;  // of its word
    Time withdrawn{};
    bool is_withdrawn = false;  // and not removed
  };

  DirectoryWriter(base::UniqueFd file, base::Mapping memory, std::uint32_t slots, Identity identity);
  [[nodiscard]] std::atomic<std::uint64_t>& word(std::size_t i) const {
    return reinterpret_cast<std::atomic<std::uint64_t>*>(memory_.data() + kIndexOffset)[i & (words_ - 1)];
  }
  [[nodiscard]] Entry& entry(std::uint32_t slot) const {
    return reinterpret_cast<Entry*>(memory_.data() + entries_offset(slots_))[slot];
  }
  [[nodiscard]] std::optional<std::size_t> free_word(const Key& key) const;
  std::optional<std::uint32_t> take_slot();
  void clear_word(std::size_t at);
  void count(std::int64_t blocks, std::uint64_t bytes);

  base::UniqueFd file_;
  base::Mapping memory_;
  std::uint32_t slots_;
  Identity identity_;
  std::size_t words_;
  std::vector<Slot> used_;           // by slot, as far as slots have been used
  std::vector<std::uint32_t> free_;  // of those
  std::unordered_map<std::uint32_t, std::uint64_t> uses_;
  std::uint64_t blocks_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace shmem::exchange
