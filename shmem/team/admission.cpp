// SPDX-License-Identifier: Apache-2.0
#include "shmem/team/admission.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "shmem/bootstrap/message_text.hpp"
#include "shmem/layout/peers.hpp"
#include "shmem/team/survivors.hpp"
#include "shmem/team/team.hpp"

namespace shmem {
namespace {

constexpr std::chrono::milliseconds kLongestSeatNap{2};
/// The interval in which members look for processes that wait: some system calls for each.
constexpr std::chrono::milliseconds kSeatLook{5};

/// PeMetadata::seat: what happens there, and the number that goes with it.
struct Seat {
  enum State : std::uint64_t { kEmpty, kWaits, kTold };
  State state = kEmpty;
  std::uint64_t number = 0;  // of the last admission before a process that waits; of the slot that it was told

  [[nodiscard]] std::uint64_t word() const { return number << 2 | state; }
  static Seat of(std::uint64_t word) { return {static_cast<State>(word & 3), word >> 2}; }
};

// TeamSync::admission.
constexpr std::uint64_t kNotMember = 0;
constexpr std::uint64_t kOldMember = 1;
constexpr std::uint64_t kAdmitted = 1;  // + the number of the admission, which is not 0

}  // namespace

void Admission::announce() const {
  PeMetadata& mine = job_.metadata(job_.me);
  mine.seat.store(Seat().word(), std::memory_order_relaxed);
  const std::uint64_t last = mine.admissions.load(std::memory_order_acquire);
  mine.admitted.store(kNotAdmitted + last, std::memory_order_seq_cst);  // before the process id: was_replaced()
}

Result<int> Admission::wait(std::chrono::milliseconds limit) const {
  PeMetadata& mine = job_.metadata(job_.me);
  const auto deadline = Clock::now() + limit;
  // Relaxed: announce() stored it, in this process.
  const std::uint64_t last = mine.admitted.load(std::memory_order_relaxed) - kNotAdmitted;
  std::uint64_t seen = Seat{Seat::kWaits, last}.word();
  mine.seat.store(seen, std::memory_order_release);
  const auto now = [&] { return Seat::of(mine.seat.load(std::memory_order_acquire)); };  // pairs with tell()
  const auto told = [&] { return now().state == Seat::kTold; };
  const auto check = [&] { return Clock::now() < deadline ? job_.ended() : std::errc::timed_out; };
  const std::errc error = wait_polling(job_.policy, kLongestSeatNap, told, check);
  // A member may tell this process at the last moment.
  if (error != std::errc{} && mine.seat.compare_exchange_strong(seen, Seat().word(), std::memory_order_acq_rel)) {
    return fail(error, fmt::format("shmem: PE {}: shmemx_team_grow: {}", job_.world_me(),
                                   error == std::errc::timed_out
                                       ? "the other PEs have not called it within " + seconds_text(limit)
                                       : "the job was ended: " + job_.bootstrap->aborted().value_or("")));
  }
  return static_cast<int>(now().number);
}

bool Admission::waits(int pe) const {
  const Seat seat = Seat::of(job_.metadata(pe).seat.load(std::memory_order_acquire));
  return seat.state == Seat::kWaits && !is_dead_or_zombie(job_, pe);
}

std::vector<int> Admission::waiting() const {
  std::vector<int> seats;
  for (int pe = 0; pe < job_.size; ++pe) {
    if (pe != job_.me && waits(pe)) {
      seats.push_back(pe);
    }
  }
  return seats;
}

Result<void> Admission::await(const Team& team, int processes, std::chrono::milliseconds limit) const {
  const auto deadline = Clock::now() + limit;
  auto next_look = Clock::now();
  bool enough = false;
  const auto ready = [&] {
    if (team.is_being_shrunk()) {
      return true;
    }
    if (const auto now = Clock::now(); !enough && now >= next_look) {
      next_look = now + kSeatLook;
      enough = static_cast<int>(waiting().size()) >= processes;
    }
    return enough;
  };
  const auto check = [&] { return Clock::now() < deadline ? job_.ended() : std::errc::timed_out; };
  const std::errc error = wait_polling(job_.policy, kLongestSeatNap, ready, check);
  if (error == std::errc{} || error == std::errc::timed_out) {
    return {};  // the members agree on what is there
  }
  return fail(error, fmt::format("shmem: PE {}: shmemx_team_grow: the job was ended: {}", job_.world_me(),
                                 job_.bootstrap->aborted().value_or("no reason is known")));
}

void Admission::give_up_late(Team& team) const {
  for (int i = 0; i < team.size(); ++i) {
    const int pe = team.map().pe(i);
    if (!team.survivors().has_left_out(i)) {
      continue;
    }
    // Acquire: a process that has taken the seat stores that it was not admitted before its id.
    const std::int32_t process = job_.metadata(pe).pid.load(std::memory_order_acquire);
    if (!is_gone(job_, pe, team.view().admissions())) {
      job_.bootstrap->leave_out(pe, process);
    }
  }
}

void Admission::write(int slot, const std::vector<int>& left, const std::vector<int>& admitted) const {
  for (int pe = 0; pe < job_.size; ++pe) {
    job_.team_sync(slot, pe).admission = kNotMember;
  }
  for (const int pe : left) {
    job_.team_sync(slot, pe).admission = kOldMember;
  }
  const std::uint64_t number = count_admission();
  for (const int pe : admitted) {
    job_.team_sync(slot, pe).admission = kAdmitted + number;
  }
}

/// Its number, which all PEs know afterwards. Members whose slot is not chosen have counted, too, without an effect.
std::uint64_t Admission::count_admission() const {
  std::uint64_t number = 1;
  for (int pe = 0; pe < job_.size; ++pe) {
    number = std::max(number, job_.metadata(pe).admissions.load(std::memory_order_acquire) + 1);
  }
  for (int pe = 0; pe < job_.size; ++pe) {
    auto& last = job_.metadata(pe).admissions;
    // Release: pairs with the views of new teams, which are made after this.
    for (std::uint64_t known = last.load(std::memory_order_relaxed);
         known < number && !last.compare_exchange_weak(known, number, std::memory_order_acq_rel);) {
    }
  }
  return number;
}

std::vector<int> Admission::read(int slot) const {
  std::vector<int> members;
  for (int pe = 0; pe < job_.size; ++pe) {
    if (job_.team_sync(slot, pe).admission != kNotMember) {
      members.push_back(pe);
    }
  }
  return members;
}

void Admission::tell(int slot) const {
  for (int pe = 0; pe < job_.size; ++pe) {
    const std::uint64_t admission = job_.team_sync(slot, pe).admission;
    if (admission <= kOldMember || pe == job_.me) {
      continue;
    }
    const std::uint64_t number = admission - kAdmitted;
    PeMetadata& theirs = job_.metadata(pe);
    std::uint64_t word = theirs.seat.load(std::memory_order_acquire);
    const Seat seat = Seat::of(word);
    // The process that was admitted may have been told by another member, have died, and another one may wait there.
    // That one knows of this admission; both words have the number, so it cannot come in between either.
    if (seat.state != Seat::kWaits || seat.number >= number) {
      continue;
    }
    std::uint64_t none = kNotAdmitted + seat.number;
    theirs.admitted.compare_exchange_strong(none, number, std::memory_order_acq_rel);
    theirs.seat.compare_exchange_strong(word, Seat{Seat::kTold, static_cast<std::uint64_t>(slot)}.word(),
                                        std::memory_order_acq_rel);
  }
}

}  // namespace shmem
