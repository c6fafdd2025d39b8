// SPDX-License-Identifier: Apache-2.0
#include "shmem/checking/call_rendezvous.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "base/size_text.hpp"
#include "shmem/barrier/wait_monitor.hpp"
#include "shmem/config/log.hpp"
#include "shmem/layout/parking.hpp"
#include "shmem/layout/peers.hpp"

namespace shmem {
namespace {

/// How long a PE that has found a problem waits for the PE that found it first.
constexpr std::chrono::seconds kTimeToReport{5};

std::string text_of(const CallSet& set) {
  if (set.slot == kActiveSet) {
    return fmt::format("the active set of {} ({}, stride {})", base::count(set.map.size, "PE"), set.map.start,
                       set.map.stride);
  }
  return fmt::format("team {}", set.slot);
}

/// `pe`: its number in the job.
std::string position_of(int pe, const CallEntry& entry) {
  return fmt::format("PE {} is in {} of {}", pe, entry.text_of(entry.count()), text_of(entry.set()));
}

}  // namespace

/// A wait for the other members. More errors: owner_dead, resource_deadlock_would_occur.
class CallRendezvous::Monitor final : public WaitMonitor {
 public:
  Monitor(const CallRendezvous& rendezvous, const Round& round, bool threads)
      : WaitMonitor(rendezvous.job_, std::chrono::nanoseconds{0}),
        rendezvous_(rendezvous),
        round_(round),
        threads_(threads) {}

  /// Nothing if the call itself will detect it.
  [[nodiscard]] std::optional<std::string> problem(std::errc error) const {
    if (error != std::errc::timed_out) {
      return circle_;
    }
    return fmt::format("waited {} ms (SHMEM_BARRIER_TIMEOUT) for the others of {}; {}",
                       job().options.barrier_timeout.count(), text_of(round_.set), rendezvous_.state_of(missing()));
  }

 private:
  [[nodiscard]] int missing() const { return round_.set.map.pe(round_.present); }

  std::errc look() override {
    rendezvous_.mine_.waits_for.store(missing() + 1, std::memory_order_release);
    if (is_dead_or_zombie(job(), missing())) {
      return std::errc::owner_dead;
    }
    circle_ = threads_ ? std::nullopt : rendezvous_.circle_text(missing());
    return circle_ ? std::errc::resource_deadlock_would_occur : std::errc{};
  }

  void warn(std::chrono::seconds waited) const override {
    const std::string text = fmt::format("shmem: PE {}: has waited {} s: {}, {}", job().world_me(), waited.count(),
                                         rendezvous_.state_of(job().me), rendezvous_.state_of(missing()));
    log(LogLevel::kWarn, "%s", text.c_str());
  }

  const CallRendezvous& rendezvous_;
  const Round& round_;
  const bool threads_;
  std::optional<std::string> circle_;
};

/// For an entry, by a thread that waits in a rendezvous.
class CallRendezvous::Use {
 public:
  Use(CallRendezvous& rendezvous, const CallEntry& entry) : rendezvous_(rendezvous), entry_(entry) {
    const std::lock_guard lock(rendezvous_.mutex_);
    is_only_one_ = rendezvous_.in_use_.insert(&entry_).second;
  }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;
  ~Use() {
    const std::lock_guard lock(rendezvous_.mutex_);
    if (is_only_one_) {
      rendezvous_.in_use_.erase(&entry_);
    }
  }
  [[nodiscard]] bool is_only_one() const { return is_only_one_; }

 private:
  CallRendezvous& rendezvous_;
  const CallEntry& entry_;
  bool is_only_one_;
};

std::optional<std::string> CallRendezvous::compare(const CallSet& set, const std::string& text, bool threads) {
  if (set.map.size == 1) {
    return std::nullopt;
  }
  CallEntry* entry = own_entry(set);
  if (entry == nullptr) {
    return std::nullopt;
  }
  const Use use(*this, *entry);
  if (!use.is_only_one()) {
    return "another thread of this PE is in a collective call of " + text_of(set) + ": one at a time may be";
  }
  mine_.threads.store(threads ? 1 : 0, std::memory_order_relaxed);
  // Release: pairs with circle_text() of other PEs. The subject of this turn is written before the turn begins.
  mine_.waits_for.store(0, std::memory_order_relaxed);
  mine_.entry.store(static_cast<std::uint32_t>(entry - mine_.entries.data()), std::memory_order_relaxed);
  Round round{set, entry->enter(text), 0};
  mine_.turn.fetch_add(1, std::memory_order_acq_rel);
  for (int member = 0; member < set.map.size; ++member) {
    wake_parked(job_, set.map.pe(member));
  }
  Monitor monitor(*this, round, threads);
  const std::errc error = wait_parked(
      job_, [&] { return all_present(round); }, [&] { return monitor(); });
  mine_.turn.fetch_add(1, std::memory_order_acq_rel);
  auto problem = error == std::errc{} ? differing_text(round) : monitor.problem(error);
  return problem ? std::optional(to_report(*problem)) : std::nullopt;
}

void CallRendezvous::announce(const CallSet& set, const std::string& text) {
  CallEntry* entry = set.map.size > 1 ? own_entry(set) : nullptr;
  if (entry != nullptr) {
    entry->enter(text);
    for (int member = 0; member < set.map.size; ++member) {
      wake_parked(job_, set.map.pe(member));
    }
  }
}

void CallRendezvous::forget(const CallSet& set) {
  const std::lock_guard lock(mutex_);
  for (std::uint32_t i = 0; i < mine_.used.load(std::memory_order_relaxed); ++i) {
    if (!mine_.entries[i].is_free() && mine_.entries[i].set() == set) {
      mine_.entries[i].free();
    }
  }
}

CallEntry* CallRendezvous::own_entry(const CallSet& set) {
  const std::lock_guard lock(mutex_);
  const std::uint32_t used = mine_.used.load(std::memory_order_relaxed);
  std::uint32_t free = used;
  for (std::uint32_t i = 0; i < used; ++i) {
    if (mine_.entries[i].is_free()) {
      free = std::min(free, i);
    } else if (mine_.entries[i].set() == set) {
      return &mine_.entries[i];
    }
  }
  // With more sets than entries, later ones are not compared, on all of their members alike.
  if (free == CallBoard::kMostSets) {
    return nullptr;
  }
  mine_.entries[free].use_for(set);
  // Release: pairs with count_of().
  mine_.used.store(std::max(used, free + 1), std::memory_order_release);
  return &mine_.entries[free];
}

std::uint64_t CallRendezvous::count_of(int pe, const CallSet& set) const {
  const CallBoard& board = call_board(job_, pe);
  std::uint64_t count = 0;
  // Acquire: pairs with own_entry().
  for (std::uint32_t i = 0; count == 0 && i < board.used.load(std::memory_order_acquire); ++i) {
    count = board.entries[i].count_of(set);
  }
  return count;
}

bool CallRendezvous::all_present(Round& round) const {
  while (round.present < round.set.map.size && count_of(round.set.map.pe(round.present), round.set) >= round.number) {
    ++round.present;
  }
  return round.present == round.set.map.size;
}

std::optional<std::string> CallRendezvous::differing_text(const Round& round) const {
  const auto text_of_member = [&](int member) {
    const CallBoard& board = call_board(job_, round.set.map.pe(member));
    for (const CallEntry& entry : board.entries) {
      if (entry.count_of(round.set) != 0) {
        return entry.text_of(round.number);
      }
    }
    return std::string();
  };
  const auto says = [&](int member, const std::string& what) {
    return fmt::format("PE {} calls {}", job_.nodes.world(round.set.map.pe(member)), what);
  };
  const std::string first = text_of_member(0);
  for (int member = 1; member < round.set.map.size; ++member) {
    const std::string other = text_of_member(member);
    if (other == first) {
      continue;
    }
    std::string text = "the PEs of " + text_of(round.set) + " do not make the same call: ";
    text.append(says(0, first)).append(", ").append(says(member, other));
    return text + "; all make the same collective calls in the same order, with the same arguments";
  }
  return std::nullopt;
}

std::string CallRendezvous::state_of(int pe) const {
  const CallBoard& board = call_board(job_, pe);
  // Acquire: pairs with compare() of that PE.
  if (board.turn.load(std::memory_order_acquire) % 2 == 0) {
    return fmt::format("PE {} is in no collective call", job_.nodes.world(pe));
  }
  return position_of(job_.nodes.world(pe),
                     board.entries[board.entry.load(std::memory_order_relaxed) % CallBoard::kMostSets]);
}

std::optional<std::string> CallRendezvous::circle_text(int first) const {
  struct Edge {
    int from, to;
    std::uint64_t turn;
    const CallEntry* entry;
  };
  const auto edge_from = [this](int pe) {
    const CallBoard& board = call_board(job_, pe);
    // Acquire: pairs with compare() and Monitor of that PE: what belongs to the turn is visible after it.
    const std::uint64_t turn = board.turn.load(std::memory_order_acquire);
    const int to = board.waits_for.load(std::memory_order_acquire) - 1;
    return Edge{pe, to, turn, &board.entries[board.entry.load(std::memory_order_relaxed) % CallBoard::kMostSets]};
  };
  std::vector<Edge> circle{edge_from(job_.me)};
  for (int pe = first; pe != job_.me; pe = circle.back().to) {
    circle.push_back(edge_from(pe));
    if (call_board(job_, pe).threads.load(std::memory_order_relaxed) != 0 || circle.back().turn % 2 == 0 ||
        circle.back().to < 0 || circle.size() > static_cast<std::size_t>(job_.size)) {
      return std::nullopt;
    }
  }
  // All of them have been seen waiting. If they still wait for each other and no turn has ended, then there was a
  // moment at which all of it was true, and no PE in a circle ever continues.
  for (const Edge& edge : circle) {
    if (count_of(edge.to, edge.entry->set()) >= edge.entry->count()) {
      return std::nullopt;
    }
  }
  for (const Edge& edge : circle) {
    if (call_board(job_, edge.from).turn.load(std::memory_order_acquire) != edge.turn) {
      return std::nullopt;
    }
  }
  std::string text = "the PEs wait for each other:";
  for (const Edge& edge : circle) {
    text.append(edge.from == job_.me ? " " : "; ");
    text.append(position_of(job_.nodes.world(edge.from), *edge.entry));
    text.append(" and waits for PE ").append(std::to_string(job_.nodes.world(edge.to)));
  }
  return text + "; PEs make the collective calls that they have in common in the same order";
}

std::string CallRendezvous::to_report(const std::string& problem) const {
  // Relaxed: no other data depends on it.
  if (call_board(job_, 0).reported.exchange(1, std::memory_order_relaxed) == 0) {
    return problem;
  }
  const auto deadline = Clock::now() + kTimeToReport;
  while (!job_.bootstrap->aborted() && Clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
  return job_.bootstrap->aborted() ? "" : problem;  // the first PE has died before it could report
}

}  // namespace shmem
