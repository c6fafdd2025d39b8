// SPDX-License-Identifier: Apache-2.0
#include "shmem/barrier/gba_agreement.hpp"

namespace shmem {
namespace {

using Vote = GbaBarrier::Vote;

/// Member 0: takes a group and offers it, or offers nothing.
GbaAgreement make_offer(const SyncView& view, const GbaMember& member, std::uint64_t sequence) {
  GbaAgreement agreement;
  GroupOffer& offer = view.mine().offer;
  offer = {};
  if (!member.wanted || member.device == nullptr) {
    agreement.reason = member.unavailable;
    return agreement;
  }
  gba_group_handle handle{};
  if (gba_group_alloc(member.device, static_cast<std::uint32_t>(view.size()), sequence, &handle) != 0) {
    agreement.reason = gba_error_text();
    return agreement;
  }
  agreement.owned = handle;
  if (gba_group_enable(member.device, &handle) != 0) {
    agreement.reason = gba_error_text();
    return agreement;
  }
  offer = {1, handle.group, handle.key, handle.member_count, handle.sequence};
  return agreement;
}

/// Joins what was offered. nullptr with a reason if that cannot be.
GbaMembership join_offer(const SyncView& view, const GbaMember& member, std::string& reason) {
  const GroupOffer& offer = view.member(0).offer;
  if (member.device == nullptr || !member.wanted) {
    reason = member.unavailable;
    return nullptr;
  }
  const gba_group_handle handle{offer.group, offer.key, offer.member_count, 0, offer.sequence};
  gba_group* group = nullptr;
  if (gba_group_join(member.device, &handle, static_cast<std::uint32_t>(view.me()), &group) != 0) {
    reason = gba_error_text();
  }
  return GbaMembership(group);
}

std::optional<int> first_not_ready(const SyncView& view) {
  for (int i = 0; i < view.size(); ++i) {
    // Relaxed: a sync of the team lies between the store and this load.
    if (view.member(i).arrival.joined.load(std::memory_order_relaxed) != static_cast<std::uint64_t>(Vote::kReady)) {
      return i;
    }
  }
  return std::nullopt;
}

void free_owned(const GbaMember& member, GbaAgreement& agreement) {
  if (agreement.owned) {
    gba_group_free(member.device, &*agreement.owned);  // fails only with the device, and then it is free
    agreement.owned.reset();
  }
}

}  // namespace

Result<GbaAgreement> agree_on_gba(const SyncView& view, const GbaMember& member, std::uint64_t count,
                                  const std::function<Result<void>()>& sync) {
  // The device's first barrier is the one after the two syncs of an agreement that comes about.
  GbaAgreement agreement = view.me() == 0 ? make_offer(view, member, count + 2) : GbaAgreement{};
  if (auto ok = sync(); !ok) {
    return tl::make_unexpected(ok.error());
  }
  const GroupOffer& offer = view.member(0).offer;
  if (offer.offered == 0) {
    free_owned(member, agreement);
    if (agreement.reason.empty()) {
      agreement.reason =
          member.unavailable.empty() ? "the team's first member has no group to offer" : member.unavailable;
    }
    return agreement;
  }
  GbaMembership group = join_offer(view, member, agreement.reason);
  view.mine().arrival.joined.store(static_cast<std::uint64_t>(group ? Vote::kReady : Vote::kOff),
                                   std::memory_order_relaxed);
  if (auto ok = sync(); !ok) {
    return tl::make_unexpected(ok.error());
  }
  const auto absent = first_not_ready(view);
  if (!absent) {
    agreement.barrier = std::make_unique<GbaBarrier>(view, std::move(group), member.policy);
    return agreement;
  }
  if (agreement.reason.empty()) {
    agreement.reason = "member " + std::to_string(*absent) + " of the team could not join the group";
  }
  group.reset();
  if (auto ok = sync(); !ok) {
    return tl::make_unexpected(ok.error());
  }
  free_owned(member, agreement);
  return agreement;
}

}  // namespace shmem
