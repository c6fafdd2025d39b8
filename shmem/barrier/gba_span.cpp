// SPDX-License-Identifier: Apache-2.0
#include "shmem/barrier/gba_span.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <utility>

namespace shmem {
namespace {

constexpr std::chrono::nanoseconds kLongestNap = kLongestBackgroundNap;

constexpr const char* kLost = "the device is lost";

using Text = std::array<char, 160>;

Text text_of(const std::string& words) {
  Text text{};
  words.copy(text.data(), text.size() - 1);
  return text;
}

}  // namespace

/// What a leader says of itself, once before a group is offered and once after it has tried to join it.
struct GbaSpan::Bid {
  std::uint64_t last;
  std::uint32_t slot;
  std::uint32_t willing;
  Text reason;
};

/// Of the first leader.
struct GbaSpan::Offer {
  gba_group_handle handle;
  std::uint32_t there;
  Text reason;
};

GbaSpan::GbaSpan(Means means) : means_(std::move(means)) {}

GbaSpan::Bid GbaSpan::make_bid(const GbaMember& member) const {
  Bid bid{.last = 0, .slot = static_cast<std::uint32_t>(means_.slot), .willing = 0, .reason = {}};
  if (static_cast<std::size_t>(means_.slot) >= means_.board.size()) {
    bid.reason = text_of("it is in more than " + std::to_string(means_.board.size()) + " teams");
    return bid;
  }
  bid.last = mine().last;
  if (!member.wanted || member.port == nullptr) {
    bid.reason = text_of(member.unavailable.empty() ? "it has no port of its own" : member.unavailable);
    return bid;
  }
  // One that another team has lost may be back.
  member.port->mend();
  member.port->await_mended(member.retry);
  if (member.port->well() == nullptr) {
    bid.reason = text_of(kLost);
  } else {
    bid.willing = 1;
  }
  return bid;
}

Result<bool> GbaSpan::all_willing(const Bid& mine) {
  const auto bids = means_.leaders.tell_all(mine);
  if (!bids) return tl::make_unexpected(bids.error());
  slots_.clear();
  reason_.clear();
  for (std::size_t leader = 0; leader < bids->size(); ++leader) {
    const Bid& bid = (*bids)[leader];
    base_ = std::max(base_, bid.last + 1);
    slots_.push_back(bid.slot);
    if (bid.willing == 0 && reason_.empty()) {
      reason_ = means_.name(means_.pes[leader]) + ": " + bid.reason.data();
    }
  }
  return reason_.empty();
}

GbaSpan::Offer GbaSpan::make_offer(const GbaMember& member, std::optional<OwnedGroup>& owned) const {
  Offer offer{};
  const GbaDevice device = member.port->well();
  if (device == nullptr) {
    offer.reason = text_of(kLost);
    return offer;
  }
  auto made = OwnedGroup::make(device, static_cast<std::uint32_t>(means_.pes.size()), base_);
  if (!made) {
    offer.reason = text_of(made.error().text);
    return offer;
  }
  offer.there = 1;
  offer.handle = made->handle();
  owned = *std::move(made);
  return offer;
}

Result<GbaMembership> GbaSpan::join_group(const GbaMember& member, const Offer& offer) const {
  const GbaDevice device = member.port->well();
  if (device == nullptr) return fail(std::errc::no_such_device, kLost);
  gba_group* group = nullptr;
  const auto me = static_cast<std::uint32_t>(means_.leaders.me());
  if (const int error = gba_group_join(device.get(), &offer.handle, me, &group); error != 0) {
    return fail(std::errc{-error}, gba_error_text());
  }
  return GbaMembership(group);
}

Result<void> GbaSpan::join(const GbaMember& member) {
  base_ = 0;
  Bid bid = make_bid(member);
  const auto willing = all_willing(bid);
  if (!willing) return tl::make_unexpected(willing.error());
  if (!*willing) return {};
  sequence_ = mine().last = base_;

  std::optional<OwnedGroup> owned;
  Offer offer = means_.leaders.me() == 0 ? make_offer(member, owned) : Offer{};
  if (auto ok = means_.leaders.broadcast(&offer, sizeof offer, 0); !ok) return ok;
  if (offer.there == 0) {
    reason_ = means_.name(means_.pes[0]) + ": " + offer.reason.data();
    return {};
  }
  auto joined = join_group(member, offer);
  bid.willing = joined ? 1 : 0;
  bid.last = 0;
  bid.reason = text_of(joined ? "" : joined.error().text);
  const auto all = all_willing(bid);
  if (!all) return tl::make_unexpected(all.error());
  if (!*all) return {};  // who has joined leaves
  port_ = member.port;
  owned_ = std::move(owned);
  membership_ = *std::move(joined);
  off_ = false;
  served_ = 0;
  active_ = true;
  return {};
}

FarPlace GbaSpan::place(std::size_t leader, std::size_t offset) const {
  return {means_.pes[leader], Segment::kBoard, slots_[leader] * sizeof(FarArrival) + offset};
}

bool GbaSpan::alarmed() const {
  // Relaxed: the alarm says only that words are to be read, and those are read with an order of their own.
  return mine().alarm.load(std::memory_order_relaxed) > base_;
}

Result<void> GbaSpan::meet() {
  mine().last = ++sequence_;
  began_ = {};
  const Vote vote = off_ ? Vote::kOff : Vote::kOn;
  // Release: whoever reads the word by the network finds what was stored here before it. The doorbell's store is a
  // release of its own.
  mine().word[sequence_ & 1].store(sequence_ << 2 | static_cast<std::uint64_t>(vote), std::memory_order_release);
  by_device_ = false;
  if (!off_) {
    gba_group_arrive(membership_.get(), sequence_);
    const auto released = await_release();
    if (!released) return tl::make_unexpected(released.error());
    if (*released) {
      by_device_ = true;
      ++served_;
      return {};
    }
    off_ = true;
    if (auto ok = raise_alarms(); !ok) return ok;
  }
  return pull();
}

Result<bool> GbaSpan::await_release() {
  int status = -EAGAIN;
  const auto over = [&] {
    status = gba_group_test(membership_.get(), sequence_);
    return status != -EAGAIN || alarmed();
  };
  if (!spin_until(means_.policy, over)) {
    while (!over()) {
      if (auto ok = look_after("through the GBA", [this] { return missing_text(); }); !ok) {
        return tl::make_unexpected(ok.error());
      }
      means_.policy.advance();
      // It repeats the arrival, should that be lost. Short: nothing ends this sleep when the network has something.
      status = gba_group_sleep(membership_.get(), sequence_, static_cast<std::uint64_t>(kLongestNap.count()));
      if (status != -EAGAIN) break;
    }
  }
  if (status == 0) return true;
  trouble_ = status == -EAGAIN ? "another node lost the device" : gba_error_text();
  return false;
}

Result<void> GbaSpan::look_after(const std::string& way, const std::function<std::string()>& missing) {
  auto ok = means_.check();
  const auto now = Clock::now();
  if (began_ == Clock::time_point{}) began_ = now;
  if (ok && means_.limit.count() != 0 && now - began_ >= means_.limit) {
    ok = fail(std::errc::timed_out, "it is not over after " + std::to_string(means_.limit.count()) +
                                        " ms (SHMEM_BARRIER_TIMEOUT, SHMEM_NETWORK_TIMEOUT)");
  }
  if (ok) return ok;
  const std::string names = missing();
  return fail(ok.error().code, "shmem: barrier among the first PEs of " + std::to_string(means_.pes.size()) +
                                   " nodes, " + way + ": " + ok.error().text +
                                   (names.empty() ? "" : "; still missing: " + names));
}

std::string GbaSpan::missing_text() const {
  std::array<std::uint64_t, GBA_GROUP_MASK_WORDS> mask{};
  if (gba_group_missing(membership_.get(), mask.data()) != 0) return "";
  std::string text;
  for (std::size_t leader = 0; leader < means_.pes.size(); ++leader) {
    if ((mask[leader / 64] >> (leader % 64) & 1) == 0) continue;
    text += (text.empty() ? "" : ", ") + means_.name(means_.pes[leader]);
  }
  return text;
}

Result<void> GbaSpan::raise_alarms() {
  for (std::size_t leader = 0; leader < means_.pes.size(); ++leader) {
    if (static_cast<int>(leader) == means_.leaders.me()) continue;
    auto ok = means_.network.post_atomic(place(leader, offsetof(FarArrival, alarm)), sizeof(std::uint64_t),
                                         AtomicOperation::kSet, sequence_);
    if (!ok) return ok;
  }
  return means_.network.quiet();
}

Result<std::uint64_t> GbaSpan::await_word(std::size_t leader) {
  const FarPlace there =
      place(leader, offsetof(FarArrival, word) + static_cast<std::size_t>(sequence_ & 1) * sizeof(std::uint64_t));
  for (;;) {
    auto word = means_.network.fetch_atomic(there, sizeof(std::uint64_t), AtomicOperation::kFetch, 0);
    // Pairs with meet(): the word was loaded with acquire at its owner, or by his adapter, whose reads are in order.
    // What he stored before is there for the network's next reads, and in this PE's memory nothing of it is read early.
    if (!word || *word >> 2 == sequence_) return word;
    const auto ok = look_after("without the GBA (" + trouble_ + ")", [&] { return means_.name(means_.pes[leader]); });
    if (!ok) return tl::make_unexpected(ok.error());
    means_.network.nap(kLongestNap);
    means_.policy.advance();
  }
}

Result<void> GbaSpan::pull() {
  bool off = false;
  for (std::size_t leader = 0; leader < means_.pes.size(); ++leader) {
    const auto word = static_cast<int>(leader) == means_.leaders.me()
                          ? Result<std::uint64_t>(mine().word[sequence_ & 1].load(std::memory_order_relaxed))
                          : await_word(leader);
    if (!word) return tl::make_unexpected(word.error());
    off = off || (*word & 3) == static_cast<std::uint64_t>(Vote::kOff);
  }
  if (off) lose();
  return {};
}

void GbaSpan::lose() {
  active_ = false;
  reason_ = trouble_;
  membership_.reset();
  owned_.reset();
  port_->doubt();
  port_->mend();  // for teams that are made later
}

Result<void> GbaSpan::dissolve() {
  by_device_ = false;
  if (!active_) return {};
  active_ = false;
  // Disabled, left by all, freed. Each step fails only with the device, and then there is nothing to end.
  if (owned_) owned_->disable();
  auto ok = means_.leaders.barrier();
  membership_.reset();
  if (ok) ok = means_.leaders.barrier();
  owned_.reset();
  return ok;
}

}  // namespace shmem
