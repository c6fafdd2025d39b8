// SPDX-License-Identifier: Apache-2.0
#include "shmem/barrier/gba_agreement.hpp"

#include <algorithm>
#include <ranges>

namespace shmem {
namespace {

constexpr const char* kOnePort = "all its PEs are behind one port of the switch";

/// What a member says of the group that was offered. kOn: it will never join one.
void say(const SyncView& view, Vote vote) {
  // Relaxed, here and below: a sync of the team lies between the store and the loads.
  view.mine().arrival.joined.store(static_cast<std::uint64_t>(vote), std::memory_order_relaxed);
}

bool said(const SyncView& view, int member, Vote vote) {
  return view.member(member).arrival.joined.load(std::memory_order_relaxed) == static_cast<std::uint64_t>(vote);
}

/// Member 0. REQUIRES: it is wanted, and has a port.
std::optional<OwnedGroup> make_offer(const SyncView& view, const GbaMember& member, std::uint64_t sequence,
                                     std::string& reason) {
  auto owned = offer_group(view, member, sequence);
  view.mine().offer.kind = owned ? GroupOffer::kNow : GroupOffer::kLater;
  if (!owned) {
    reason = owned.error().text;
    return std::nullopt;
  }
  return *std::move(owned);
}

GbaMembership try_to_join(const SyncView& view, const GbaMember& member, bool able, std::string& reason) {
  if (!able) {
    reason = member.unavailable;
    say(view, Vote::kOn);
    return nullptr;
  }
  auto joined = join_offer(view, member);
  say(view, joined ? Vote::kReady : Vote::kOff);
  if (!joined) {
    reason = joined.error().text;
    return nullptr;
  }
  return *std::move(joined);
}

}  // namespace

Result<OwnedGroup> offer_group(const SyncView& view, const GbaMember& member, std::uint64_t sequence) {
  const GbaDevice device = member.port->well();
  if (device == nullptr) {
    return fail(std::errc::no_such_device, "the device is lost");
  }
  auto owned = OwnedGroup::make(device, static_cast<std::uint32_t>(view.size()), sequence);
  if (owned) {
    const gba_group_handle& handle = owned->handle();
    view.mine().offer = {GroupOffer::kNow, handle.group, handle.key, handle.member_count, handle.sequence};
  }
  return owned;
}

Result<GbaMembership> join_offer(const SyncView& view, const GbaMember& member) {
  const GbaDevice device = member.port->well();
  if (device == nullptr) {
    return fail(std::errc::no_such_device, "the device is lost");
  }
  const GroupOffer& offer = view.member(0).offer;
  const gba_group_handle handle{offer.group, offer.key, offer.member_count, 0, offer.sequence};
  gba_group* group = nullptr;
  if (const int error = gba_group_join(device.get(), &handle, static_cast<std::uint32_t>(view.me()), &group);
      error != 0) {
    return fail(std::errc{-error}, gba_error_text());
  }
  return GbaMembership(group);
}

Result<GbaAgreement> agree_on_gba(const SyncView& view, int openers, const GbaMember& member, std::uint64_t count,
                                  const std::function<Result<void>()>& sync) {
  GbaAgreement agreement;
  const bool opener = view.me() < openers;
  const bool able = member.wanted && (member.port != nullptr || !opener);
  std::optional<OwnedGroup> owned;
  if (view.me() == 0) {
    view.mine().offer = {};
    // The device's first barrier is the one after the two syncs of an agreement that comes about.
    if (able && openers == 1 && !member.needed) {
      agreement.reason = kOnePort;
    } else if (able) {
      owned = make_offer(view.prefix(openers), member, count + 2, agreement.reason);
    }
  }
  if (auto ok = sync(); !ok) {
    return tl::make_unexpected(ok.error());
  }
  const auto offered = view.member(0).offer.kind;
  if (offered != GroupOffer::kNow) {
    agreement.later = offered == GroupOffer::kLater;
    if (agreement.reason.empty()) {
      const char* const why =
          openers == 1 && !agreement.later ? kOnePort : "the team's first member has no group to offer";
      agreement.reason = able ? why : member.unavailable;
    }
    return agreement;
  }
  GbaMembership joined = opener ? try_to_join(view, member, able, agreement.reason) : nullptr;
  if (auto ok = sync(); !ok) {
    return tl::make_unexpected(ok.error());
  }
  const auto members = std::views::iota(0, openers);
  const auto absent = std::ranges::find_if(members, [&](int i) { return !said(view, i, Vote::kReady); });
  if (absent == members.end()) {
    agreement.group = GbaGroup{std::move(owned), std::move(joined)};
    return agreement;
  }
  agreement.later = std::ranges::none_of(members, [&](int i) { return said(view, i, Vote::kOn); });
  if (agreement.reason.empty()) {
    agreement.reason = "member " + std::to_string(*absent) + " of the team could not join the group";
  }
  joined.reset();
  if (auto ok = sync(); !ok) {
    return tl::make_unexpected(ok.error());
  }
  return agreement;
}

}  // namespace shmem
