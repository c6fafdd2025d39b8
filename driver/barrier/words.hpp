// SPDX-License-Identifier: Apache-2.0
// What members publish about a barrier: a word of their own for each of the two that can be open (uapi rule
// 25).
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "gba/barrier.h"

namespace gba::barrier {

/// In a barrier of the device.
enum class Vote : std::uint64_t {
  kOn = 0,    // rings the device
  kOff = 1,   // does not
  kPull = 2,  // rang, and had trouble since
};

/// In a check round.
enum class CheckVote : std::uint64_t {
  kOff = 1,
  kOffer = 2,  // of member 0: a group can be joined
  kReady = 3,  // has joined it
};

/// Relaxed: it says only that words are to be read, which are acquired for themselves.
inline std::uint64_t load_alarm(const std::uint64_t* alarm) {
  return __atomic_load_n(alarm, __ATOMIC_RELAXED);
}

/// One member's view of all words.
class Words {
 public:
  explicit Words(const gba_barrier_config& config)
      : own_(config.word),
        first_(reinterpret_cast<const std::byte*>(config.words)),
        stride_(static_cast<std::ptrdiff_t>(config.stride)),
        elsewhere_(config.elsewhere),
        size_(config.members),
        me_(config.member),
        read_(config.read),
        context_(config.context) {}

  [[nodiscard]] std::uint32_t size() const { return size_; }
  /// Others' words can be read without a message.
  [[nodiscard]] bool mapped() const { return first_ != nullptr; }

  template <typename AnyVote>
  void publish(std::uint64_t k, AnyVote vote) {
    // Release: pairs with the acquire in read(), here or in another process. Where the doorbell is rung next, that
    // store is a release of its own, so a member that the device releases can see this word too.
    __atomic_store_n(&own_[k & 1], k << 2 | static_cast<std::uint64_t>(vote), __ATOMIC_RELEASE);
  }

  /// The vote of barrier k; for member size(), that of all members elsewhere. 0; -EAGAIN: the member has not arrived;
  /// another negative errno: it is lost. Compares sequences, never whole words (uapi rule 26).
  int read(std::uint32_t member, std::uint64_t k, std::uint64_t& vote) const {
    std::uint64_t word = 0;
    if (member != size_ && member != me_ && !mapped()) {
      if (const int error = read_(context_, member, k, &word); error != 0) {
        return error;
      }
    } else {
      // Acquire: pairs with publish(); what the member stored before it arrived is visible to a member that pulls.
      word = __atomic_load_n(&pair_of(member)[k & 1], __ATOMIC_ACQUIRE);
    }
    vote = word & 3;
    return word >> 2 == k ? 0 : -EAGAIN;
  }

  /// The member has voted so in barrier k.
  template <typename AnyVote>
  [[nodiscard]] bool voted(std::uint32_t member, std::uint64_t k, AnyVote vote) const {
    std::uint64_t found = 0;
    return read(member, k, found) == 0 && found == static_cast<std::uint64_t>(vote);
  }

  /// How many pairs of words make a barrier complete.
  [[nodiscard]] std::uint32_t pairs() const { return size_ + (elsewhere_ != nullptr ? 1 : 0); }

 private:
  [[nodiscard]] const std::uint64_t* pair_of(std::uint32_t member) const {
    if (member == size_) {
      return elsewhere_;
    }
    if (member == me_) {
      return own_;
    }
    return reinterpret_cast<const std::uint64_t*>(first_ + stride_ * static_cast<std::ptrdiff_t>(member));
  }

  std::uint64_t* own_;
  const std::byte* first_;
  std::ptrdiff_t stride_;
  const std::uint64_t* elsewhere_;
  std::uint32_t size_, me_;
  int (*read_)(void*, std::uint32_t, std::uint64_t, std::uint64_t*);
  void* context_;
};

}  // namespace gba::barrier
