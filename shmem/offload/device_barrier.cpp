// SPDX-License-Identifier: Apache-2.0
#include "shmem/offload/device_barrier.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <new>

namespace shmem {
namespace {

constexpr const char* kOnePort = "all its PEs are behind one port of the switch";

/// A member's answer to the group that was offered.
enum class Answer : std::uint64_t {
  kNever,  // it has no port and cannot join
  kFailed,
  kJoined,
};

void publish_answer(const SyncView& view, Answer answer) {
  // Relaxed, here and below: a sync of the team lies between the store and the loads.
  view.mine().arrival.joined.store(static_cast<std::uint64_t>(answer), std::memory_order_relaxed);
}

bool has_answered(const SyncView& view, int member, Answer answer) {
  return view.member(member).arrival.joined.load(std::memory_order_relaxed) == static_cast<std::uint64_t>(answer);
}

std::uint64_t* words_of(TeamSync& member) {
  static_assert(sizeof(member.arrival.word) == 2 * sizeof(std::uint64_t));
  return reinterpret_cast<std::uint64_t*>(member.arrival.word.data());
}

BarrierHandle make_barrier(const SyncView& view, const GbaMember& member) {
  gba_barrier_config config{};
  config.size = sizeof config;
  config.members = static_cast<std::uint32_t>(view.size());
  config.member = static_cast<std::uint32_t>(view.me());
  config.word = words_of(view.mine());
  config.words = words_of(view.member(0));
  if (view.size() > 1) {
    config.stride = reinterpret_cast<std::byte*>(&view.member(1)) - reinterpret_cast<std::byte*>(&view.member(0));
  }
  config.port = member.port->get();
  config.offer = &view.member(0).offer.handle;
  config.retry_ns = static_cast<std::uint64_t>(std::chrono::nanoseconds{member.retry}.count());
  gba_barrier* barrier = nullptr;
  if (gba_barrier_create(&config, &barrier) != 0) {
    throw std::bad_alloc();  // the config is sound
  }
  return BarrierHandle(barrier);
}

Result<void> result_of(int error) {
  return error == 0 ? Result<void>{} : fail(std::errc{-error}, gba_error_text());
}

/// Called by member 0.
void make_offer(const SyncView& view, std::uint64_t sequence, DeviceBarrier& barrier, std::string& reason) {
  const auto ok = barrier.offer(sequence);
  view.mine().offer.kind = ok ? GroupOffer::Kind::kNow : GroupOffer::Kind::kLater;
  if (!ok) {
    reason = ok.error().text;
  }
}

/// Called by an opener, which can join if it has a `barrier`.
void try_to_join(const SyncView& view, const GbaMember& member, std::optional<DeviceBarrier>& barrier,
                 std::string& reason) {
  if (!barrier) {
    reason = member.unavailable;
    publish_answer(view, Answer::kNever);
    return;
  }
  const auto joined = barrier->join();
  publish_answer(view, joined ? Answer::kJoined : Answer::kFailed);
  if (!joined) {
    reason = joined.error().text;
  }
}

}  // namespace

DeviceBarrier::DeviceBarrier(const SyncView& view, const GbaMember& member)
    : BarrierWaiter(member.policy), barrier_(make_barrier(view, member)) {}

Result<void> DeviceBarrier::offer(std::uint64_t sequence) {
  return result_of(gba_barrier_offer(barrier_.get(), sequence, nullptr));
}

Result<void> DeviceBarrier::join() {
  return result_of(gba_barrier_join(barrier_.get(), nullptr));
}

void DeviceBarrier::begin(std::uint64_t sequence) {
  gba_barrier_begin(barrier_.get(), sequence);
  note_use();
}

void DeviceBarrier::disable() {
  gba_barrier_disable(barrier_.get());
  note_use();
}

void DeviceBarrier::conclude() {
  gba_barrier_conclude(barrier_.get());
  note_use();
}

gba_barrier_status DeviceBarrier::status() const {
  gba_barrier_status status{};
  gba_barrier_get_status(barrier_.get(), &status);
  return status;
}

bool DeviceBarrier::arrive(std::uint64_t k) {
  open_ = uses_device_;
  if (open_ || is_check(k)) {
    gba_barrier_arrive(barrier_.get(), k);
  }
  return open_;
}

void DeviceBarrier::note(int result) {
  open_ = result < 0;
  by_device_ = result == GBA_BARRIER_RELEASED;
  if (!by_device_) {
    note_use();
  }
}

bool DeviceBarrier::test() {
  if (open_) {
    note(gba_barrier_poll(barrier_.get()));
  }
  return !open_;
}

std::errc DeviceBarrier::finish(BarrierMonitor& watch) {
  if (!open_) {
    return {};
  }
  watch_ = &watch;
  const int result = wait(barrier_.get());
  note(result);
  return result < 0 ? std::errc{-result} : std::errc{};
}

std::errc DeviceBarrier::check(std::chrono::nanoseconds& longest) {
  const std::errc error = (*watch_)();
  longest = policy().limit_nap(std::min(longest, watch_->longest_sleep()));
  return error;
}

Result<GbaAgreement> agree_on_gba(const SyncView& view, int openers, const GbaMember& member, std::uint64_t count,
                                  std::optional<DeviceBarrier>& barrier, const std::function<Result<void>()>& sync) {
  GbaAgreement agreement;
  const bool opener = view.me() < openers;
  const bool able = member.wanted && (member.port != nullptr || !opener);
  // The device's first barrier follows the two syncs of a successful agreement.
  const std::uint64_t sequence = count + 2;
  const bool one_port = openers == 1 && !member.needed;
  if (able && opener && !one_port) {
    barrier.emplace(view.prefix(openers), member);
  }
  if (view.me() == 0) {
    view.mine().offer.kind = GroupOffer::Kind::kUnavailable;
    if (barrier) {
      make_offer(view, sequence, *barrier, agreement.reason);
    } else if (able) {
      agreement.reason = kOnePort;
    }
  }
  if (auto ok = sync(); !ok) {
    return ok.error();
  }
  const auto offered = view.member(0).offer.kind;
  if (offered != GroupOffer::Kind::kNow) {
    agreement.later = offered == GroupOffer::Kind::kLater;
    if (agreement.reason.empty()) {
      const char* const why =
          openers == 1 && !agreement.later ? kOnePort : "the team's first member has no group to offer";
      agreement.reason = able ? why : member.unavailable;
    }
    return agreement;
  }
  if (opener) {
    try_to_join(view, member, barrier, agreement.reason);
  }
  if (auto ok = sync(); !ok) {
    return ok.error();
  }
  int absent = 0;
  while (absent < openers && has_answered(view, absent, Answer::kJoined)) {
    ++absent;
  }
  if (absent == openers) {
    agreement.used = true;
    if (barrier) {
      barrier->begin(sequence);
    }
    return agreement;
  }
  agreement.later = true;
  for (int i = 0; i < openers; ++i) {
    agreement.later = agreement.later && !has_answered(view, i, Answer::kNever);
  }
  if (agreement.reason.empty()) {
    agreement.reason = fmt::format("member {} of the team could not join the group", absent);
  }
  if (barrier) {
    barrier->leave();
  }
  if (auto ok = sync(); !ok) {
    return ok.error();
  }
  if (barrier) {
    barrier->free();
  }
  return agreement;
}

}  // namespace shmem
