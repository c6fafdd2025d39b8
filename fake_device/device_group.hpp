// SPDX-License-Identifier: Apache-2.0
// One barrier group: which members may arrive, which have, and which are told.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "fake_device/effects.hpp"
#include "fake_device/ports.hpp"
#include "uapi/gba_device.h"

namespace fake_device {

class MemberSet {
 public:
  [[nodiscard]] bool contains(unsigned member) const { return (words_[member / 64] >> (member % 64) & 1) != 0; }
  void insert(unsigned member) { words_[member / 64] |= std::uint64_t{1} << (member % 64); }
  void erase(unsigned member) { words_[member / 64] &= ~(std::uint64_t{1} << (member % 64)); }
  void clear() { words_ = {}; }

  [[nodiscard]] std::uint64_t word(unsigned index) const { return words_[index]; }
  void set_word(unsigned index, std::uint64_t value) { words_[index] = value; }

  [[nodiscard]] bool empty() const { return words_ == std::array<std::uint64_t, GBA_MASK_WORDS>{}; }
  [[nodiscard]] unsigned size() const {
    unsigned count = 0;
    for (const auto word : words_) {
      count += static_cast<unsigned>(std::popcount(word));
    }
    return count;
  }

  [[nodiscard]] MemberSet without(const MemberSet& other) const {
    MemberSet result;
    for (unsigned index = 0; index < GBA_MASK_WORDS; ++index) {
      result.words_[index] = words_[index] & ~other.words_[index];
    }
    return result;
  }

  /// Calls visit(member) for each member, in order. `visit` must not change this set.
  template <typename Visit>
  void for_each(Visit visit) const {
    for (unsigned index = 0; index < GBA_MASK_WORDS; ++index) {
      for (auto rest = words_[index]; rest != 0; rest &= rest - 1) {
        visit(index * 64 + static_cast<unsigned>(std::countr_zero(rest)));
      }
    }
  }

  /// The lowest member, or `none` of an empty set.
  [[nodiscard]] unsigned first(unsigned none) const {
    for (unsigned index = 0; index < GBA_MASK_WORDS; ++index) {
      if (words_[index] != 0) {
        return index * 64 + static_cast<unsigned>(std::countr_zero(words_[index]));
      }
    }
    return none;
  }

 private:
  std::array<std::uint64_t, GBA_MASK_WORDS> words_{};
};

/// In ERROR_CODE if no single member is meant.
inline constexpr unsigned kNobody = 0xffff;
inline constexpr int kNoPort = -1;

/// State machine of a group, uapi rules 6 to 24. Pure; used by one thread. It tells members through Ports, which must
/// outlive it. The caller has checked the sender: the owner for the setters, the member itself for an arrival.
class DeviceGroup {
 public:
  DeviceGroup(unsigned id, const Dimensions& dimensions, Ports& ports);

  // ---- Life and membership
  /// `sequence`: what the group counts as released when it is new.
  void allocate(unsigned owner, std::uint32_t key, std::uint64_t sequence);
  /// FREE and RECLAIM: uapi rule 4.
  void free();
  /// The owner's connection is lost, its own membership has ended already: uapi rule 24.
  void lose_owner();
  void join(unsigned port, unsigned member);
  void leave(unsigned member);
  [[nodiscard]] bool allocated() const { return allocated_; }
  [[nodiscard]] bool owned_by(unsigned port) const { return allocated_ && owner_ == static_cast<int>(port); }
  [[nodiscard]] bool orphaned() const { return owner_ == kNoPort; }
  /// The port has allocated it, and may be its owner no longer: uapi rule 37.
  [[nodiscard]] bool held_by(unsigned port) const { return allocated_ && holder_ == port; }
  [[nodiscard]] std::uint32_t key() const { return key_; }
  [[nodiscard]] bool has_place(unsigned member) const { return member < max_members_ && mask_.contains(member); }
  [[nodiscard]] bool taken(unsigned member) const { return joined_.contains(member); }
  [[nodiscard]] int find_port(unsigned member) const {
    return member < max_members_ && taken(member) ? places_[member].port : kNoPort;
  }

  // ---- Owner's registers: false if the value is refused (BAD_CONFIG), uapi rules 6 and 7
  bool set_member_count(std::uint64_t count);
  bool set_member_mask(unsigned index, std::uint64_t word);
  bool set_sequence(std::uint64_t sequence);
  bool set_control(std::uint64_t control);
  void set_timeout(Time timeout);
  bool set_release_address(unsigned member, std::uint64_t address);
  bool set_network_address(std::uint64_t address);

  // ---- Readable registers
  [[nodiscard]] std::uint64_t member_count() const { return member_count_; }
  [[nodiscard]] std::uint64_t arrival_count() const { return arrivals_; }
  [[nodiscard]] std::uint64_t member_mask(unsigned index) const { return mask_.word(index); }
  [[nodiscard]] std::uint64_t arrived_mask(unsigned index) const { return arrived_.word(index); }
  [[nodiscard]] std::uint64_t control() const { return control_; }
  [[nodiscard]] std::uint64_t status() const;
  [[nodiscard]] std::uint64_t sequence() const { return released_; }
  [[nodiscard]] std::uint64_t error_code() const;
  [[nodiscard]] Time timeout() const { return timeout_; }
  [[nodiscard]] Time round_age(Time now) const {
    return arrivals_ > 0 && !failed() ? std::max<Time>(now - std::min(now, opened_), 1) : 0;
  }
  /// The ports of the members 64 / bits * index and following, `bits` each; all ones: not joined.
  [[nodiscard]] std::uint64_t member_ports(unsigned index, unsigned bits) const;
  [[nodiscard]] std::uint64_t network_address() const { return network_address_; }

  // ---- What happens to it
  void arrive(unsigned member, std::uint32_t sequence, bool notify, Time now);
  /// When the open round runs into TIMEOUT; kNever.
  [[nodiscard]] Time deadline() const { return deadline_; }
  void expire();
  /// The link of a member goes down: uapi rule 34.
  void lose_link(unsigned member);
  /// CONTROL.RESET.
  void reset();
  /// Into ERROR, once: uapi rule 16.
  void fail(unsigned code, unsigned member);

 private:
  [[nodiscard]] bool enabled() const { return (control_ & GBA_CONTROL_ENABLE) != 0; }
  [[nodiscard]] bool failed() const { return error_ != GBA_ERROR_NONE; }
  [[nodiscard]] unsigned port_of(unsigned member) const { return static_cast<unsigned>(places_[member].port); }
  [[nodiscard]] bool configurable() const { return !enabled() && !failed(); }
  bool enable();
  void start_timer();
  void close_round();
  void unbind(unsigned member);
  void mark(unsigned member, bool notify, Time now);
  void release();
  void answer(unsigned member, std::uint64_t word, bool notify);
  bool store(unsigned member, std::uint64_t word) {
    return ports_.store_flag(port_of(member), id_, places_[member].address, word);
  }
  void raise_notified();
  [[nodiscard]] std::uint64_t release_word() const;
  [[nodiscard]] std::uint64_t error_word() const;

  struct MemberFlag {
    int port = kNoPort;
    std::uint64_t address = GBA_RELEASE_ADDR_BAR_FLAGS;
  };

  const unsigned id_;
  const unsigned max_members_;
  Ports& ports_;

  bool allocated_ = false;
  int owner_ = kNoPort;
  unsigned holder_ = 0;
  std::uint32_t key_ = 0;
  std::uint64_t member_count_ = 0;
  MemberSet mask_;
  std::uint64_t control_ = 0;
  Time timeout_ = 0;
  std::uint64_t network_address_ = 0;

  std::vector<MemberFlag> places_;
  MemberSet joined_;

  std::uint64_t released_ = 0;
  MemberSet arrived_;
  std::uint64_t arrivals_ = 0;
  MemberSet notify_;
  Time opened_ = 0;
  Time deadline_ = kNever;
  bool ever_enabled_ = false;
  bool ever_released_ = false;
  unsigned error_ = GBA_ERROR_NONE;
  unsigned error_member_ = 0;
};

}  // namespace fake_device
