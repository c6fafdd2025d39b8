// SPDX-License-Identifier: Apache-2.0
#include "shmem/net/leader_group.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <string>
#include <thread>
#include <utility>

#include "shmem/net/message_cost.hpp"

namespace shmem {
namespace {

using std::chrono::steady_clock;

constexpr const char* kBarrier = "barrier";
/// Messages of one call that are under way at once, where there are many.
constexpr std::size_t kUnderWay = 16;
/// Up to here a gather copies what it has got, rather than send two messages in the rounds that reach around the list.
constexpr std::size_t kGatheredInLine = std::size_t{16} << 10;

Deadline deadline_after(LeaderGroup::Limit limit) {
  // A longer limit than this is none, and would not fit into the clock.
  constexpr std::chrono::hours kForever{24 * 365};
  if (!limit || *limit > kForever) return {};
  return steady_clock::now() + *limit;
}

}  // namespace

LeaderGroup::LeaderGroup(Network& network, std::vector<int> pes, int me, std::uint32_t team)
    : network_(network), pes_(std::move(pes)), me_(me), team_(team) {}

Result<void> LeaderGroup::ready(const char* call) const {
  if (failed_) return tl::make_unexpected(*failed_);
  if (!open_) return {};
  return fail(std::errc::device_or_resource_busy,
              std::string("shmem: ") + call + " between nodes: a barrier in two phases is open: end it first");
}

Error LeaderGroup::explained(const char* call, Error error) const {
  error.text =
      std::string("shmem: ") + call + " among the first PEs of " + std::to_string(size()) + " nodes: " + error.text;
  return error;
}

tl::unexpected<Error> LeaderGroup::end(const char* call, const Error& error) {
  failed_ = explained(call, error);
  open_.reset();
  return tl::make_unexpected(*failed_);
}

/// Messages between two PEs that have the same tag stay in order, and both begin theirs in the same order: they need no
/// number within a call, and it does no harm that the numbers of calls begin anew. Numbers are for members that do not
/// make the same calls: they wait in vain, and do not take one call for another.
std::uint64_t LeaderGroup::tag(bool split, std::uint64_t number) const {
  constexpr std::uint64_t kSplit = 1 << 15;
  return std::uint64_t{team_} << 16 | (split ? kSplit : 0) | number % kSplit;
}

int LeaderGroup::pe_at(int distance) const {
  const int at = (me_ + distance) % size();
  return pes_[static_cast<std::size_t>(at < 0 ? at + size() : at)];
}

Result<void> LeaderGroup::begin_round(Messages& messages, int distance) {
  const int partner = pes_[static_cast<std::size_t>(in_pairs() ? me_ ^ distance : 0)];
  if (auto ok = messages.receive(in_pairs() ? partner : pe_at(-distance), nullptr, 0); !ok) return ok;
  return messages.send(in_pairs() ? partner : pe_at(distance), nullptr, 0);
}

Result<void> LeaderGroup::barrier(Limit limit) {
  return run(kBarrier, deadline_after(limit), [&](Messages& messages) -> Result<void> {
    for (int distance = 1; distance < size(); distance *= 2) {
      if (auto ok = begin_round(messages, distance); !ok) return ok;
      if (auto ok = messages.wait(); !ok) return ok;
    }
    return {};
  });
}

Result<void> LeaderGroup::start_barrier() {
  if (auto ok = ready(kBarrier); !ok) return ok;
  open_.emplace(network_, tag(true, ++split_barriers_));
  if (size() == 1) return {};
  const auto ok = begin_round(open_->messages, open_->distance);
  return ok ? ok : end(kBarrier, ok.error());
}

/// After all messages of the open barrier's round.
Result<void> LeaderGroup::next_round() {
  open_->distance *= 2;
  if (open_->distance < size()) return begin_round(open_->messages, open_->distance);
  open_.reset();
  return {};
}

Result<bool> LeaderGroup::test_barrier() {
  network_.advance();
  while (open_) {
    const auto done = open_->messages.test();
    if (!done) return end(kBarrier, done.error());
    if (!*done) return false;
    if (auto ok = next_round(); !ok) return end(kBarrier, ok.error());
  }
  return true;
}

/// A wait of the network would give up the messages at the limit.
Result<void> LeaderGroup::watch_barrier(std::chrono::nanoseconds limit) {
  constexpr int kSpins = 100;
  constexpr int kYields = 1000;
  constexpr std::chrono::nanoseconds kLongestNap = std::chrono::microseconds(500);
  const Deadline deadline = deadline_after(limit);
  for (int looks = 0;; ++looks) {
    const auto over = test_barrier();
    if (!over) return tl::make_unexpected(over.error());
    if (*over) return {};
    const auto left = deadline ? *deadline - steady_clock::now() : kLongestNap;
    if (left <= left.zero()) {
      return tl::make_unexpected(
          explained(kBarrier, {std::errc::timed_out, "no " + open_->messages.first() + " within the limit"}));
    }
    if (looks > kYields) {
      network_.nap(std::min(kLongestNap, left));
    } else if (looks > kSpins) {
      std::this_thread::yield();
    }
  }
}

Result<void> LeaderGroup::finish_barrier(Limit limit) {
  if (limit) return watch_barrier(*limit);
  while (open_) {
    if (auto ok = open_->messages.wait(); !ok) return end(kBarrier, ok.error());
    if (auto ok = next_round(); !ok) return end(kBarrier, ok.error());
  }
  return {};
}

Result<void> LeaderGroup::broadcast(void* data, std::size_t bytes, int root) {
  return run("broadcast", {}, [&](Messages& messages) -> Result<void> {
    auto* const at = static_cast<std::byte*>(data);
    if (bytes == 0 || size() == 1) return {};
    const std::size_t segment = message_cost::segment_of_broadcast(size(), bytes);
    return segment == 0 ? broadcast_by_tree(messages, at, bytes, root)
                        : broadcast_by_chain(messages, at, bytes, root, segment);
  });
}

Result<void> LeaderGroup::broadcast_by_tree(Messages& messages, std::byte* data, std::size_t bytes, int root) {
  const int place = (me_ - root + size()) % size();
  int distance = 1;
  while (distance < size() && (place & distance) == 0) distance *= 2;
  if (place != 0) {
    if (auto ok = messages.receive(pe_at(-distance), data, bytes); !ok) return ok;
    if (auto ok = messages.wait(); !ok) return ok;
  }
  for (distance /= 2; distance > 0; distance /= 2) {
    if (place + distance >= size()) continue;
    if (auto ok = messages.send(pe_at(distance), data, bytes); !ok) return ok;
  }
  return messages.wait();
}

Result<void> LeaderGroup::broadcast_by_chain(Messages& messages, std::byte* data, std::size_t bytes, int root,
                                             std::size_t segment) {
  const bool receives = me_ != root;
  const bool sends = (me_ + 1) % size() != root;
  const auto length = [&](std::size_t offset) { return std::min(segment, bytes - offset); };
  Messages incoming(network_, tag(false, calls_));
  std::size_t awaited = 0;
  for (std::size_t offset = 0; offset < bytes; offset += segment) {
    for (; receives && awaited < bytes && incoming.count() < kUnderWay; awaited += segment) {
      if (auto ok = incoming.receive(pe_at(-1), data + awaited, length(awaited)); !ok) return ok;
    }
    if (receives) {
      if (auto ok = incoming.wait_first(); !ok) return ok;
    }
    if (sends) {
      if (auto ok = messages.send(pe_at(1), data + offset, length(offset)); !ok) return ok;
      if (auto ok = messages.wait(kUnderWay); !ok) return ok;
    }
  }
  return messages.wait();
}

std::array<LeaderGroup::Range, 2> LeaderGroup::ranges(std::span<const std::size_t> offsets, int first,
                                                      int count) const {
  const auto range = [&](int begin, int end) {
    const std::size_t offset = offsets[static_cast<std::size_t>(begin)];
    return Range{offset, offsets[static_cast<std::size_t>(end)] - offset};
  };
  const int begin = (first + size()) % size();
  const int end = begin + count;
  return {range(begin, std::min(end, size())), range(0, std::max(end - size(), 0))};
}

std::byte* LeaderGroup::aside(std::size_t bytes) {
  if (aside_.size() < bytes) aside_.resize(bytes);
  return aside_.data();
}

/// After a round of distance d each has the pieces of 2 d members: its own and those before it, around the list.
/// `offsets` has one more than members: where all ends.
Result<void> LeaderGroup::gather(Messages& messages, std::span<const std::size_t> offsets, std::byte* all) {
  if (in_pairs()) return gather_in_pairs(messages, offsets, all);
  if (offsets.back() <= kGatheredInLine) return gather_in_line(messages, offsets, all);
  for (int distance = 1; distance < size(); distance *= 2) {
    const int count = std::min(distance, size() - distance);
    for (const Range& range : ranges(offsets, me_ - distance - count + 1, count)) {
      if (range.bytes == 0) continue;
      if (auto ok = messages.receive(pe_at(-distance), all + range.offset, range.bytes); !ok) return ok;
    }
    for (const Range& range : ranges(offsets, me_ - count + 1, count)) {
      if (range.bytes == 0) continue;
      if (auto ok = messages.send(pe_at(distance), all + range.offset, range.bytes); !ok) return ok;
    }
    if (auto ok = messages.wait(); !ok) return ok;
  }
  return {};
}

/// Before a round of distance d each has the pieces of the d members that differ from it in lower bits only.
Result<void> LeaderGroup::gather_in_pairs(Messages& messages, std::span<const std::size_t> offsets, std::byte* all) {
  for (int distance = 1; distance < size(); distance *= 2) {
    const int partner = me_ ^ distance;
    const int pe = pes_[static_cast<std::size_t>(partner)];
    const Range theirs = ranges(offsets, partner & -distance, distance).front();
    const Range mine = ranges(offsets, me_ & -distance, distance).front();
    if (theirs.bytes != 0) {
      if (auto ok = messages.receive(pe, all + theirs.offset, theirs.bytes); !ok) return ok;
    }
    if (mine.bytes != 0) {
      if (auto ok = messages.send(pe, all + mine.offset, mine.bytes); !ok) return ok;
    }
    if (auto ok = messages.wait(); !ok) return ok;
  }
  return {};
}

/// As gather() (Bruck et al., 1997): pieces stand in a line that ends with this member's, so that those of a round are
/// one message.
Result<void> LeaderGroup::gather_in_line(Messages& messages, std::span<const std::size_t> offsets, std::byte* all) {
  const std::size_t total = offsets.back();
  if (total == 0) return {};
  const auto bytes_of = [&](int first, int count) {
    const auto both = ranges(offsets, first, count);
    return both[0].bytes + both[1].bytes;
  };
  std::byte* const line = aside(total);
  std::size_t begin = total - bytes_of(me_, 1);
  const std::size_t own = offsets[static_cast<std::size_t>(me_)];
  std::copy_n(all + own, total - begin, line + begin);
  for (int distance = 1; distance < size(); distance *= 2) {
    const int count = std::min(distance, size() - distance);
    const std::size_t incoming = bytes_of(me_ - distance - count + 1, count);
    const std::size_t outgoing = bytes_of(me_ - count + 1, count);
    begin -= incoming;
    if (incoming != 0) {
      if (auto ok = messages.receive(pe_at(-distance), line + begin, incoming); !ok) return ok;
    }
    if (outgoing != 0) {
      if (auto ok = messages.send(pe_at(distance), line + total - outgoing, outgoing); !ok) return ok;
    }
    if (auto ok = messages.wait(); !ok) return ok;
  }
  const std::size_t up_to_me = offsets[static_cast<std::size_t>(me_) + 1];
  std::copy_n(line, total - up_to_me, all + up_to_me);
  std::copy_n(line + total - up_to_me, up_to_me, all);
  return {};
}

Result<void> LeaderGroup::allgather(std::span<const std::size_t> bytes_of_each, void* all) {
  std::vector<std::size_t> offsets(bytes_of_each.size() + 1);
  std::partial_sum(bytes_of_each.begin(), bytes_of_each.end(), offsets.begin() + 1);
  return run("allgather", {},
             [&](Messages& messages) { return gather(messages, offsets, static_cast<std::byte*>(all)); });
}

Result<void> LeaderGroup::exchange(Messages& messages, std::span<const std::span<const std::byte>> from,
                                   std::span<const std::span<std::byte>> to) {
  for (int distance = 1; distance < size(); ++distance) {
    const auto sender = static_cast<std::size_t>((me_ + size() - distance) % size());
    const auto receiver = static_cast<std::size_t>((me_ + distance) % size());
    if (!to[sender].empty()) {
      if (auto ok = messages.receive(pes_[sender], to[sender].data(), to[sender].size()); !ok) return ok;
    }
    if (!from[receiver].empty()) {
      if (auto ok = messages.send(pes_[receiver], from[receiver].data(), from[receiver].size()); !ok) return ok;
    }
    if (auto ok = messages.wait(kUnderWay); !ok) return ok;
  }
  return messages.wait();
}

Result<void> LeaderGroup::alltoall(std::span<const std::span<const std::byte>> from,
                                   std::span<const std::span<std::byte>> to) {
  return run("alltoall", {}, [&](Messages& messages) {
    const auto own = static_cast<std::size_t>(me_);
    std::copy(from[own].begin(), from[own].end(), to[own].begin());
    return exchange(messages, from, to);
  });
}

}  // namespace shmem
