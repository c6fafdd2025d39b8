// SPDX-License-Identifier: Apache-2.0
#include "shmem/checking/call_meeting.hpp"

#include <algorithm>
#include <thread>
#include <vector>

#include "shmem/log.hpp"
#include "shmem/memory/parking.hpp"
#include "shmem/team/peers.hpp"

namespace shmem {
namespace {

/// How long who has found something wrong waits for who has found it first.
constexpr std::chrono::seconds kTimeToReport{5};

std::string text_of(const CallSet& set) {
  const auto number = [](int value) { return std::to_string(value); };
  if (set.slot == kActiveSet) {
    return "the active set of " + number(set.map.size) + " PEs (" + number(set.map.start) + ", stride " +
           number(set.map.stride) + ")";
  }
  return "team " + number(set.slot);
}

/// `pe`: its number in the job.
std::string who_is_where(int pe, const CallEntry& entry) {
  return "PE " + std::to_string(pe) + " is in " + entry.text_of(entry.count()) + " of " + text_of(entry.set());
}

}  // namespace

/// Looks after a PE that waits for the others to come to a meeting.
class CallMeeting::Watch {
 public:
  Watch(const CallMeeting& meeting, const Round& round, bool threads)
      : meeting_(meeting), round_(round), threads_(threads) {}

  std::errc operator()() {
    const Job& job = meeting_.job_;
    if (job.bootstrap->aborted()) {
      return std::errc::operation_canceled;
    }
    const int missing = round_.set.map.pe(round_.present);
    meeting_.mine_.waits_for.store(missing + 1, std::memory_order_release);
    if (is_dead_or_zombie(job, missing)) {
      return std::errc::owner_dead;
    }
    problem_ = threads_ ? std::nullopt : meeting_.circle_text(missing);
    if (problem_) {
      return std::errc::resource_deadlock_would_occur;
    }
    const auto waited = Clock::now() - began_;
    const auto limit = job.options.barrier_timeout;
    if (limit.count() > 0 && waited >= limit) {
      problem_ = "waited " + std::to_string(limit.count()) + " ms (SHMEM_BARRIER_TIMEOUT) for the others of " +
                 text_of(round_.set) + "; " + meeting_.state_of(missing);
      return std::errc::timed_out;
    }
    if (warning_.count() > 0 && waited >= warning_) {
      warning_ *= 2;
      const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(waited);
      log(LogLevel::kWarn, "shmem: PE %d: has waited %lld s: %s, %s", job.world_me(),
          static_cast<long long>(seconds.count()), meeting_.state_of(job.me).c_str(),
          meeting_.state_of(missing).c_str());
    }
    return {};
  }

  [[nodiscard]] const std::optional<std::string>& problem() const { return problem_; }

 private:
  const CallMeeting& meeting_;
  const Round& round_;
  const bool threads_;
  std::optional<std::string> problem_;
  Clock::time_point began_ = Clock::now();
  std::chrono::milliseconds warning_ = meeting_.job_.options.barrier_warning;
};

/// Of an entry, by a thread that waits in a meeting.
class CallMeeting::Use {
 public:
  Use(CallMeeting& meeting, const CallEntry& entry) : meeting_(meeting), entry_(entry) {
    const std::lock_guard lock(meeting_.mutex_);
    is_only_one_ = meeting_.in_use_.insert(&entry_).second;
  }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;
  ~Use() {
    const std::lock_guard lock(meeting_.mutex_);
    if (is_only_one_) meeting_.in_use_.erase(&entry_);
  }
  [[nodiscard]] bool is_only_one() const { return is_only_one_; }

 private:
  CallMeeting& meeting_;
  const CallEntry& entry_;
  bool is_only_one_;
};

std::optional<std::string> CallMeeting::meet(const CallSet& set, const std::string& text, bool threads) {
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
  // Release: pairs with circle_text() of the others. What this turn is about stands there before it begins.
  mine_.waits_for.store(0, std::memory_order_relaxed);
  mine_.entry.store(static_cast<std::uint32_t>(entry - mine_.entries.data()), std::memory_order_relaxed);
  Round round{set, entry->enter(text), 0};
  mine_.turn.fetch_add(1, std::memory_order_acq_rel);
  for (int member = 0; member < set.map.size; ++member) wake_parked(job_, set.map.pe(member));
  Watch watch(*this, round, threads);
  const std::errc error = wait_parked(
      job_, [&] { return all_present(round); }, [&] { return watch(); });
  mine_.turn.fetch_add(1, std::memory_order_acq_rel);
  auto problem = error == std::errc{} ? differing_text(round) : watch.problem();
  return problem ? std::optional(to_report(*problem)) : std::nullopt;
}

void CallMeeting::announce(const CallSet& set, const std::string& text) {
  CallEntry* entry = set.map.size > 1 ? own_entry(set) : nullptr;
  if (entry != nullptr) {
    entry->enter(text);
    for (int member = 0; member < set.map.size; ++member) wake_parked(job_, set.map.pe(member));
  }
}

void CallMeeting::forget(const CallSet& set) {
  const std::lock_guard lock(mutex_);
  for (std::uint32_t i = 0; i < mine_.used.load(std::memory_order_relaxed); ++i) {
    if (!mine_.entries[i].is_free() && mine_.entries[i].set() == set) {
      mine_.entries[i].free();
    }
  }
}

CallEntry* CallMeeting::own_entry(const CallSet& set) {
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
  // With more sets than that, those that come later are not compared: on all of their members alike.
  if (free == CallBoard::kMostSets) {
    return nullptr;
  }
  mine_.entries[free].use_for(set);
  // Release: pairs with count_of().
  mine_.used.store(std::max(used, free + 1), std::memory_order_release);
  return &mine_.entries[free];
}

std::uint64_t CallMeeting::count_of(int pe, const CallSet& set) const {
  const CallBoard& board = call_board(job_, pe);
  std::uint64_t count = 0;
  // Acquire: pairs with own_entry().
  for (std::uint32_t i = 0; count == 0 && i < board.used.load(std::memory_order_acquire); ++i) {
    count = board.entries[i].count_of(set);
  }
  return count;
}

bool CallMeeting::all_present(Round& round) const {
  while (round.present < round.set.map.size && count_of(round.set.map.pe(round.present), round.set) >= round.number) {
    ++round.present;
  }
  return round.present == round.set.map.size;
}

std::optional<std::string> CallMeeting::differing_text(const Round& round) const {
  const auto text_of_member = [&](int member) {
    const CallBoard& board = call_board(job_, round.set.map.pe(member));
    for (const CallEntry& entry : board.entries) {
      if (entry.count_of(round.set) != 0) return entry.text_of(round.number);
    }
    return std::string();
  };
  const auto says = [&](int member, const std::string& what) {
    return "PE " + std::to_string(job_.nodes.world(round.set.map.pe(member))) + " calls " + what;
  };
  const std::string first = text_of_member(0);
  for (int member = 1; member < round.set.map.size; ++member) {
    const std::string other = text_of_member(member);
    if (other == first) continue;
    std::string text = "the PEs of " + text_of(round.set) + " do not make the same call: ";
    text.append(says(0, first)).append(", ").append(says(member, other));
    return text + "; all make the same collective calls in the same order, with the same arguments";
  }
  return std::nullopt;
}

std::string CallMeeting::state_of(int pe) const {
  const CallBoard& board = call_board(job_, pe);
  // Acquire: pairs with meet() of that PE.
  if (board.turn.load(std::memory_order_acquire) % 2 == 0) {
    return "PE " + std::to_string(job_.nodes.world(pe)) + " is in no collective call";
  }
  return who_is_where(job_.nodes.world(pe),
                      board.entries[board.entry.load(std::memory_order_relaxed) % CallBoard::kMostSets]);
}

std::optional<std::string> CallMeeting::circle_text(int first) const {
  struct Edge {
    int from, to;
    std::uint64_t turn;
    const CallEntry* entry;
  };
  const auto edge_from = [this](int pe) {
    const CallBoard& board = call_board(job_, pe);
    // Acquire: pairs with meet() and Watch of that PE: what belongs to the turn is visible after it.
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
  // All of them have been seen waiting. They still are, and for each other, if that is so once more and no turn has
  // ended: then there was a moment at which all of it was true, and no PE in a circle ever goes on.
  for (const Edge& edge : circle) {
    if (count_of(edge.to, edge.entry->set()) >= edge.entry->count()) return std::nullopt;
  }
  for (const Edge& edge : circle) {
    if (call_board(job_, edge.from).turn.load(std::memory_order_acquire) != edge.turn) return std::nullopt;
  }
  std::string text = "the PEs wait for each other:";
  for (const Edge& edge : circle) {
    text.append(edge.from == job_.me ? " " : "; ");
    text.append(who_is_where(job_.nodes.world(edge.from), *edge.entry));
    text.append(" and waits for PE ").append(std::to_string(job_.nodes.world(edge.to)));
  }
  return text + "; PEs make the collective calls that they have in common in the same order";
}

std::string CallMeeting::to_report(const std::string& problem) const {
  // Relaxed: there is nothing else to see.
  if (call_board(job_, 0).reported.exchange(1, std::memory_order_relaxed) == 0) {
    return problem;
  }
  const auto deadline = Clock::now() + kTimeToReport;
  while (!job_.bootstrap->aborted() && Clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
  return job_.bootstrap->aborted() ? "" : problem;  // the first has died before it could say it
}

}  // namespace shmem
