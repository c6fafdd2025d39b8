// SPDX-License-Identifier: Apache-2.0
#include "shmem/offload/inter_node_barrier.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <new>
#include <utility>

namespace shmem {
namespace {

using Text = std::array<char, 160>;

Text text_of(const std::string& words) {
  Text text{};
  words.copy(text.data(), text.size() - 1);
  return text;
}

}  // namespace

/// What a leader tells the others: once before a group is offered, and once after it has tried to join the group.
struct InterNodeBarrier::Bid {
  std::uint64_t last;
  std::uint32_t slot;
  std::uint32_t willing;
  std::uint32_t pause;
  Text reason;
};

/// What the first leader sends.
struct InterNodeBarrier::Offer {
  gba_group_handle handle;
  std::uint32_t made;
  Text reason;
};

/// Watches the wait of one barrier. The network, not look(), reports the loss of a leader; look() finds that the team
/// is shrunk.
class InterNodeBarrier::Monitor final : public WaitMonitor {
 public:
  explicit Monitor(const InterNodeBarrier& barrier) : WaitMonitor(barrier.means_.job), barrier_(barrier) {
    const Options& options = job().options;
    const auto shorter = std::min(options.barrier_timeout, options.network_timeout);
    limit_ = shorter.count() != 0 ? shorter : std::max(options.barrier_timeout, options.network_timeout);
    if (limit_.count() != 0) {
      limit_to(limit_);
    }
  }

 protected:
  std::errc look() override { return barrier_.means_.interrupted() ? std::errc::owner_dead : std::errc{}; }
  [[nodiscard]] std::string subject() const override {
    gba_barrier_status status{};
    gba_barrier_get_status(barrier_.barrier_.get(), &status);
    return fmt::format("shmem: barrier of {} PEs on different nodes, {}", barrier_.means_.pes.size(),
                       status.pulled != 0 ? fmt::format("without the GBA ({})", status.trouble) : "through the GBA");
  }
  void warn(std::chrono::seconds waited) const override {
    Mask mask{};
    gba_barrier_missing(barrier_.barrier_.get(), mask.data());
    std::size_t first_arrived = 0;
    while (first_arrived < barrier_.means_.pes.size() && is_in(mask, first_arrived)) {
      ++first_arrived;
    }
    if (static_cast<int>(first_arrived) == barrier_.means_.leaders.me()) {  // one warning is enough
      WaitMonitor::warn(waited);
    }
  }
  [[nodiscard]] std::string awaited() const override {
    Mask mask{};
    if (gba_barrier_missing(barrier_.barrier_.get(), mask.data()) != 0) {
      return "PEs that cannot be named, because the device or the network fails";
    }
    std::string text;
    for (std::size_t leader = 0; leader < barrier_.means_.pes.size(); ++leader) {
      if (is_in(mask, leader)) {
        text += (text.empty() ? "" : ", ") + barrier_.means_.name(barrier_.means_.pes[leader]);
      }
    }
    return text.empty() ? "none: all have arrived" : text;
  }
  [[nodiscard]] std::string ending(std::errc error) const override {
    if (error == std::errc::owner_dead) {
      return "cannot complete: a PE has lost a member of the team, or has called shmemx_team_shrink";
    }
    return error == std::errc::timed_out
               ? fmt::format("timed out after {} ms (SHMEM_BARRIER_TIMEOUT, SHMEM_NETWORK_TIMEOUT)", limit_.count())
               : WaitMonitor::ending(error);
  }

 private:
  using Mask = std::array<std::uint64_t, GBA_GROUP_MASK_WORDS>;
  static bool is_in(const Mask& mask, std::size_t leader) { return (mask[leader / 64] >> (leader % 64) & 1) != 0; }

  const InterNodeBarrier& barrier_;
  std::chrono::milliseconds limit_{0};
};

InterNodeBarrier::InterNodeBarrier(Means means) : BarrierWaiter(means.policy), means_(std::move(means)) {}

InterNodeBarrier::Bid InterNodeBarrier::make_bid(const GbaMember& member, const Retry& retry) const {
  Bid bid{.last = 0, .slot = static_cast<std::uint32_t>(means_.slot), .willing = 0, .pause = retry.pause, .reason = {}};
  if (static_cast<std::size_t>(means_.slot) >= means_.board.size()) {
    bid.reason = text_of(fmt::format("it is in more than {} teams", means_.board.size()));
    return bid;
  }
  bid.last = mine().last;
  if (!member.wanted || member.port == nullptr) {
    bid.reason = text_of(member.unavailable.empty() ? "it has no port of its own" : member.unavailable);
    return bid;
  }
  if (!means_.job.options.progress_thread) {
    // Another leader that has lost the device must be able to read this one's words while the program computes.
    bid.reason = text_of("its progress thread is switched off (SHMEM_PROGRESS_THREAD=0)");
    return bid;
  }
  if (!retry.due) {
    return bid;
  }
  // A port that another team has lost may be available again.
  gba_barrier_port_reopen(member.port->get());
  const auto limit = static_cast<std::uint64_t>(std::chrono::nanoseconds{member.retry}.count());
  if (gba_barrier_port_await(member.port->get(), limit) != 0) {
    bid.reason = text_of("the device is lost");
  } else {
    bid.willing = 1;
  }
  return bid;
}

Result<bool> InterNodeBarrier::all_willing(const Bid& mine, std::uint32_t& pause) {
  const auto bids = means_.leaders.allgather(mine);
  if (!bids) {
    return bids.error();
  }
  slots_.clear();
  pause = bids->front().pause;
  bool all = true;
  for (std::size_t leader = 0; leader < bids->size(); ++leader) {
    const Bid& bid = (*bids)[leader];
    sequence_ = std::max(sequence_, bid.last + 1);
    slots_.push_back(bid.slot);
    if (bid.willing == 0 && all) {
      all = false;
      reason_ =
          bid.reason[0] == '\0' ? reason_ : fmt::format("{}: {}", means_.name(means_.pes[leader]), bid.reason.data());
    }
  }
  if (all) {
    reason_.clear();
  }
  return all;
}

BarrierHandle InterNodeBarrier::make_barrier(const GbaMember& member) {
  gba_barrier_config config{};
  config.size = sizeof config;
  config.members = static_cast<std::uint32_t>(means_.pes.size());
  config.member = static_cast<std::uint32_t>(means_.leaders.me());
  static_assert(sizeof(mine().word) == 2 * sizeof(std::uint64_t));
  config.word = reinterpret_cast<std::uint64_t*>(mine().word.data());
  config.alarm = reinterpret_cast<std::uint64_t*>(&mine().alarm);
  config.read = [](void* context, std::uint32_t leader, std::uint64_t k, std::uint64_t* word) {
    return static_cast<InterNodeBarrier*>(context)->read_word(leader, k, *word);
  };
  config.raise = [](void* context, std::uint64_t k) {
    auto& barrier = *static_cast<InterNodeBarrier*>(context);
    return barrier.note(barrier.raise_alarms(k));
  };
  config.port = member.port->get();
  config.context = this;
  gba_barrier* barrier = nullptr;
  if (gba_barrier_create(&config, &barrier) != 0) {
    throw std::bad_alloc();  // the config is valid
  }
  return BarrierHandle(barrier);
}

InterNodeBarrier::Offer InterNodeBarrier::make_offer() const {
  Offer offer{};
  if (gba_barrier_offer(barrier_.get(), sequence_, &offer.handle) == 0) {
    offer.made = 1;
  } else {
    offer.reason = text_of(gba_error_text());
  }
  return offer;
}

Result<void> InterNodeBarrier::join(const GbaMember& member, Retry& retry) {
  sequence_ = 0;
  barrier_.reset();
  Bid bid = make_bid(member, retry);
  const auto willing = all_willing(bid, retry.pause);
  if (!willing) {
    return willing.error();
  }
  if (!*willing) {
    return {};
  }
  retry.tried = true;
  mine().last = sequence_;
  port_ = member.port;
  barrier_ = make_barrier(member);

  Offer offer = means_.leaders.me() == 0 ? make_offer() : Offer{};
  if (auto ok = means_.leaders.broadcast(&offer, sizeof offer, 0); !ok) {
    return ok;
  }
  if (offer.made == 0) {
    reason_ = fmt::format("{}: {}", means_.name(means_.pes[0]), offer.reason.data());
    drop_group();
    return {};
  }
  const bool joined = gba_barrier_join(barrier_.get(), &offer.handle) == 0;
  bid = {.last = 0,
         .slot = bid.slot,
         .willing = joined ? 1U : 0U,
         .pause = retry.pause,
         .reason = text_of(joined ? "" : gba_error_text())};
  const auto all = all_willing(bid, retry.pause);
  if (!all) {
    return all.error();
  }
  if (*all) {
    gba_barrier_begin(barrier_.get(), sequence_);
  } else {
    drop_group();
  }
  return {};
}

/// Any leader's port may have lost the device since it was found to be healthy, and only a use of it shows that.
void InterNodeBarrier::drop_group() {
  barrier_.reset();
  check_port();
}

void InterNodeBarrier::check_port() {
  gba_barrier_port_mark_suspect(port_->get());
  gba_barrier_port_reopen(port_->get());
}

RemotePlace InterNodeBarrier::place(std::size_t leader, std::size_t offset) const {
  return {means_.pes[leader], Segment::kBoard, slots_[leader] * sizeof(RemoteArrival) + offset};
}

Result<void> InterNodeBarrier::arrive_and_wait() {
  mine().last = ++sequence_;
  error_.reset();
  gba_barrier_arrive(barrier_.get(), sequence_);
  Monitor monitor(*this);
  monitor_ = &monitor;
  const int result = wait(barrier_.get());
  by_device_ = result == GBA_BARRIER_RELEASED;
  if (result < 0) {
    return error_ ? *std::exchange(error_, std::nullopt) : fail_errno(-result, "shmem: barrier between nodes");
  }
  if (!by_device_ && !active()) {
    gba_barrier_status status{};
    gba_barrier_get_status(barrier_.get(), &status);
    reason_ = status.trouble;
    check_port();
  }
  return {};
}

std::uint64_t InterNodeBarrier::served() const {
  gba_barrier_status status{};
  gba_barrier_get_status(barrier_.get(), &status);
  return status.served;
}

int InterNodeBarrier::note(const Result<void>& result) {
  if (result) {
    return 0;
  }
  error_ = result.error();
  return -static_cast<int>(result.error().code);
}

int InterNodeBarrier::read_word(std::size_t leader, std::uint64_t k, std::uint64_t& word) {
  const std::size_t offset = offsetof(RemoteArrival, word) + static_cast<std::size_t>(k & 1) * sizeof(std::uint64_t);
  // Pairs with the library's release of the word: the owner loads it with acquire, or its adapter reads in order. Later
  // reads over the network find what the owner stored before the word.
  const auto fetched =
      means_.network.fetch_atomic(place(leader, offset), sizeof(std::uint64_t), AtomicOperation::kFetch, 0);
  if (!fetched) {
    return note(fetched.error());
  }
  word = *fetched;
  return 0;
}

Result<void> InterNodeBarrier::raise_alarms(std::uint64_t k) {
  for (std::size_t leader = 0; leader < means_.pes.size(); ++leader) {
    if (static_cast<int>(leader) == means_.leaders.me()) {
      continue;
    }
    auto ok = means_.network.post_atomic(place(leader, offsetof(RemoteArrival, alarm)), sizeof(std::uint64_t),
                                         AtomicOperation::kSet, k);
    if (!ok) {
      return ok;
    }
  }
  return means_.network.quiet();
}

std::errc InterNodeBarrier::check(std::chrono::nanoseconds& longest) {
  // Alarms do not end this sleep: a waiter that hears nothing from the device looks for them after each, as on a node.
  longest = policy().limit_nap(std::min(longest, monitor_->longest_sleep()));
  policy().advance();
  const std::errc error = (*monitor_)();
  if (error != std::errc{}) {
    error_ = fail(error, monitor_->explain(error));
  }
  return error;
}

void InterNodeBarrier::sleep(std::chrono::nanoseconds time) {
  means_.network.sleep(std::min<std::chrono::nanoseconds>(time, kLongestBackgroundNap));
}

Result<void> InterNodeBarrier::dissolve() {
  by_device_ = false;
  if (!active()) {
    return {};
  }
  // In this order: disabled, left by all, freed.
  gba_barrier_disable(barrier_.get());
  auto ok = means_.leaders.barrier();
  gba_barrier_leave(barrier_.get());
  if (ok) {
    ok = means_.leaders.barrier();
  }
  barrier_.reset();
  return ok;
}

}  // namespace shmem
