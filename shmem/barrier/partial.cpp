// SPDX-License-Identifier: Apache-2.0
#include "shmem/barrier/partial.hpp"

#include <algorithm>

#include "shmem/log.hpp"
#include "shmem/net/messages.hpp"
#include "shmem/team/peers.hpp"

namespace shmem {
namespace {

constexpr std::chrono::milliseconds kLookAtPeers{500};
constexpr std::size_t kMostNamed = 16;
// The longer way to find out that a process has ended is for so many PEs of a list.
constexpr int kMostZombieLooks = 16;

/// Two PEs meet in an order that agrees with all their lists, so that one tag does. Above those of groups
/// (team/span.cpp).
constexpr std::uint64_t kPartialTag = std::uint64_t{3} << 46;

/// FNV-1a, folded.
std::uint64_t mark_of(const std::vector<int>& pes) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const int pe : pes) {
    for (unsigned byte = 0; byte < sizeof pe; ++byte) {
      hash = (hash ^ (static_cast<unsigned>(pe) >> (8 * byte) & 0xff)) * 0x100000001b3;
    }
  }
  return (hash ^ hash >> 16 ^ hash >> 32 ^ hash >> 48) & ((1U << kMarkBits) - 1);
}

Result<PeList> refuse(const std::string& problem) {
  return fail(std::errc::invalid_argument, problem);
}

}  // namespace

Result<PeList> PeList::create(int me, const TeamMap& team, const std::uint32_t* members, std::uint32_t count) {
  if (members == nullptr || count == 0) {
    return refuse(members == nullptr ? "the list of PEs is NULL" : "the list of PEs is empty");
  }
  if (count > static_cast<std::uint32_t>(team.size)) {
    return refuse("the list has " + std::to_string(count) + " PEs, the team " + std::to_string(team.size));
  }
  PeList list;
  list.pes_.reserve(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    if (members[i] >= static_cast<std::uint32_t>(team.size)) {
      return refuse("the list names PE " + std::to_string(members[i]) + " of a team of " + std::to_string(team.size));
    }
    list.pes_.push_back(team.pe(static_cast<int>(members[i])));
  }
  std::sort(list.pes_.begin(), list.pes_.end());
  const auto twice = std::adjacent_find(list.pes_.begin(), list.pes_.end());
  if (twice != list.pes_.end()) {
    return refuse("the list names PE " + std::to_string(team.member(*twice).value_or(-1)) + " of the team twice");
  }
  if (static_cast<std::size_t>(list.pes_.back()) >= kMostPartners) {
    return refuse("it is for the first " + std::to_string(kMostPartners) + " PEs of a job");
  }
  const auto own = std::lower_bound(list.pes_.begin(), list.pes_.end(), me);
  if (own == list.pes_.end() || *own != me) {
    return refuse("the list does not name this PE, " + std::to_string(team.member(me).value_or(-1)) + " of the team");
  }
  list.me_ = static_cast<int>(own - list.pes_.begin());
  list.mark_ = mark_of(list.pes_);
  return list;
}

std::string PeList::text() const {
  std::string text;
  for (std::size_t i = 0; i < pes_.size() && i < kMostNamed; ++i) {
    text += (i > 0 ? ", " : "") + std::to_string(pes_[i]);
  }
  return pes_.size() > kMostNamed ? text + ", ..." : text;
}

Result<void> meet_by_messages(Network& network, const PeList& list) {
  for (int distance = 1; distance < list.size(); distance <<= 1) {
    const std::uint64_t mine = list.mark();
    std::uint64_t theirs = 0;
    const int from = list.to_the_right(-distance);
    Messages messages(network, kPartialTag);
    auto ok = messages.receive(from, &theirs, sizeof theirs);
    if (ok) ok = messages.send(list.to_the_right(distance), &mine, sizeof mine);
    if (ok) ok = messages.wait();
    if (!ok) return ok;
    if (theirs != mine) {
      return fail(std::errc::invalid_argument,
                  "PE " + std::to_string(from) + " came to a barrier of another list with this PE in it");
    }
  }
  return {};
}

std::errc ListWatch::operator()() {
  if (const std::errc error = time_(); error != std::errc{}) {
    return error;
  }
  const auto now = Clock::now();
  if (began_ == Clock::time_point{}) {
    began_ = now;
    next_look_ = now + kLookAtPeers;
    next_warning_ = now + job_.options.barrier_warning;
  }
  if (waits_for_ >= 0 && job_.options.barrier_warning.count() > 0 && now >= next_warning_) {
    warn(now);
  }
  if (now < next_look_) {
    return {};
  }
  next_look_ = now + kLookAtPeers;
  for (int distance = 1; distance < list_.size(); ++distance) {
    const int pe = list_.to_the_right(-distance);  // those that this one waits for come first
    if (distance <= kMostZombieLooks ? is_dead_or_zombie(job_, pe) : is_dead(job_, pe)) {
      dead_ = pe;
      return std::errc::owner_dead;
    }
  }
  return {};
}

void ListWatch::warn(Clock::time_point now) {
  next_warning_ = now + 2 * job_.options.barrier_warning;
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - began_);
  log(LogLevel::kWarn, "%s has taken %lld s; it waits for %s", subject().c_str(),
      static_cast<long long>(seconds.count()), awaited().c_str());
}

std::string ListWatch::subject() const {
  return who_ + "the barrier of the " + std::to_string(list_.size()) + " PEs " + list_.text() + " of the world";
}

std::string ListWatch::awaited() const {
  return waits_for_ < 0 ? "the other cores of this PE" : describe_pe(job_, waits_for_);
}

std::string ListWatch::explain(std::errc error) const {
  switch (error) {
    case std::errc::invalid_argument:
      return subject() + " failed: " + awaited() + " came to a barrier of another list with this PE in it";
    case std::errc::owner_dead:
      return subject() + " cannot complete: " + describe_pe(job_, dead_) + " has died";
    default:
      return subject() + " " + time_.explain(error) + "; it waited for " + awaited();
  }
}

}  // namespace shmem
