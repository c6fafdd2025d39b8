// SPDX-License-Identifier: Apache-2.0
#include "shmem/barrier/partial.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/hash.hpp"
#include "base/size_text.hpp"
#include "shmem/layout/peers.hpp"
#include "shmem/net/messages.hpp"

namespace shmem {
namespace {

constexpr std::size_t kMostNamed = 16;

/// Two PEs take part in common barriers in an order that agrees with all their lists, so one tag is enough. Above the
/// tags of process groups (team/spanning_team.cpp).
constexpr std::uint64_t kPartialTag = std::uint64_t{3} << 46;

/// FNV-1a, folded.
std::uint64_t mark_of(const std::vector<int>& pes) {
  base::Fnv all;
  all.add(pes.data(), pes.size() * sizeof(int));
  const std::uint64_t hash = all.value();
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
    return refuse(fmt::format("the list has {}, the team {}", base::count(count, "PE"), team.size));
  }
  PeList list;
  list.pes_.reserve(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    if (members[i] >= static_cast<std::uint32_t>(team.size)) {
      return refuse(fmt::format("the list names PE {} of a team of {}", members[i], team.size));
    }
    list.pes_.push_back(team.pe(static_cast<int>(members[i])));
  }
  std::sort(list.pes_.begin(), list.pes_.end());
  const auto twice = std::adjacent_find(list.pes_.begin(), list.pes_.end());
  if (twice != list.pes_.end()) {
    return refuse(fmt::format("the list names PE {} of the team twice", team.member(*twice).value_or(-1)));
  }
  if (static_cast<std::size_t>(list.pes_.back()) >= kMostPartners) {
    return refuse(fmt::format("it is for the first {} PEs of a job", kMostPartners));
  }
  const auto own = std::lower_bound(list.pes_.begin(), list.pes_.end(), me);
  if (own == list.pes_.end() || *own != me) {
    return refuse(fmt::format("the list does not name this PE, {} of the team", team.member(me).value_or(-1)));
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

Result<void> list_barrier_by_messages(Network& network, const PeList& list) {
  for (int distance = 1; distance < list.size(); distance <<= 1) {
    const std::uint64_t mine = list.mark();
    std::uint64_t theirs = 0;
    const int from = list.to_the_right(-distance);
    Messages messages(network, kPartialTag);
    messages.receive(from, &theirs, sizeof theirs);
    messages.send(list.to_the_right(distance), &mine, sizeof mine);
    if (auto ok = messages.wait(); !ok) {
      return ok;
    }
    if (theirs != mine) {
      return fail(std::errc::invalid_argument,
                  fmt::format("PE {} arrived at a barrier of another list with this PE in it", from));
    }
  }
  return {};
}

std::errc ListMonitor::look() {
  for (int distance = 1; distance < list_.size(); ++distance) {
    const int pe = list_.to_the_right(-distance);  // PEs that wait for this one come first
    if (distance <= kMostZombieLooks ? is_dead_or_zombie(job(), pe) : is_dead(job(), pe)) {
      dead_ = pe;
      return std::errc::owner_dead;
    }
  }
  return {};
}

void ListMonitor::warn(std::chrono::seconds waited) const {
  if (waits_for_ >= 0) {
    WaitMonitor::warn(waited);
  }
}

std::string ListMonitor::subject() const {
  return fmt::format("{}the barrier of the {} {} of the world", prefix_, base::count(list_.size(), "PE"), list_.text());
}

std::string ListMonitor::awaited() const {
  return waits_for_ < 0 ? "the other cores of this PE" : describe_pe(job(), waits_for_);
}

std::string ListMonitor::explain(std::errc error) const {
  switch (error) {
    case std::errc::invalid_argument:
      return fmt::format("{} failed: {} arrived at a barrier of another list with this PE in it", subject(), awaited());
    case std::errc::owner_dead:
      return fmt::format("{} cannot complete: {} has died", subject(), describe_pe(job(), dead_));
    default:
      return WaitMonitor::explain(error);
  }
}

}  // namespace shmem
