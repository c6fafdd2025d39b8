// SPDX-License-Identifier: Apache-2.0
#include "shmem/net/process_group.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <thread>
#include <utility>

#include "shmem/memory/cached_copy.hpp"
#include "shmem/net/message_cost.hpp"

namespace shmem {
namespace {

using std::chrono::steady_clock;

constexpr const char* kBarrier = "barrier";
/// The most messages of one call that are under way at once.
constexpr std::size_t kUnderWay = 16;
/// Up to this size a gather copies the pieces, instead of sending two messages in rounds that wrap around the list.
constexpr std::size_t kGatheredInLine = std::size_t{16} << 10;

}  // namespace

ProcessGroup::ProcessGroup(Network& network, std::vector<int> pes, int me, std::uint32_t team)
    : network_(network), pes_(std::move(pes)), me_(me), team_(team), steps_(message_steps(choice_, size(), me_)) {}

Deadline ProcessGroup::deadline_after(Limit limit) {
  // A longer limit would not fit into the clock, and counts as no limit.
  constexpr std::chrono::hours kForever{24 * 365};
  if (!limit || *limit > kForever) {
    return {};
  }
  return steady_clock::now() + *limit;
}

Result<void> ProcessGroup::ready(const char* call) const {
  if (failed_) {
    return *failed_;
  }
  if (!open_) {
    return {};
  }
  return fail(std::errc::device_or_resource_busy,
              fmt::format("shmem: {} between nodes: a barrier in two phases is open: end it first", call));
}

Error ProcessGroup::explained(const char* call, Error error) const {
  error.text = fmt::format("shmem: {} among {} PEs: {}", call, size(), error.text);
  return error;
}

Error ProcessGroup::end(const char* call, const Error& error) {
  failed_ = explained(call, error);
  open_.reset();
  return *failed_;
}

/// Messages of one tag between two PEs stay in order, and both begin theirs in the same order. So messages need no
/// number within a call, and the numbers of calls may wrap. With the numbers, members that make different calls time
/// out instead of taking one call for another.
std::uint64_t ProcessGroup::tag(bool split, std::uint64_t number) const {
  constexpr std::uint64_t kSplit = 1 << 15;
  return std::uint64_t{team_} << 16 | (split ? kSplit : 0) | number % kSplit;
}

int ProcessGroup::pe_at(int distance) const {
  const int at = (me_ + distance) % size();
  return pes_[static_cast<std::size_t>(at < 0 ? at + size() : at)];
}

void ProcessGroup::set_barrier(const NodesChoice& choice) {
  choice_ = choice;
  steps_ = message_steps(choice_, size(), me_);
}

void ProcessGroup::begin_step(Messages& messages, const MessageStep& step) const {
  for (const int member : step.from) {
    messages.receive(pes_[static_cast<std::size_t>(member)], nullptr, 0);
  }
  for (const int member : step.to) {
    messages.send(pes_[static_cast<std::size_t>(member)], nullptr, 0);
  }
}

Result<void> ProcessGroup::barrier(Limit limit) {
  return run(kBarrier, limit, [&](Messages& messages) -> Result<void> {
    for (const MessageStep& step : steps_) {
      begin_step(messages, step);
      if (auto ok = messages.wait(); !ok) {
        return ok;
      }
    }
    return {};
  });
}

Result<void> ProcessGroup::start_barrier() {
  if (auto ok = ready(kBarrier); !ok) {
    return ok;
  }
  open_.emplace(network_, tag(true, ++split_barriers_));
  if (steps_.empty()) {
    return {};
  }
  begin_step(open_->messages, steps_.front());
  const auto ok = open_->messages.outcome();
  return ok ? ok : end(kBarrier, ok.error());
}

/// Once all messages of the open barrier's step are done.
void ProcessGroup::next_step() {
  if (++open_->step < steps_.size()) {
    begin_step(open_->messages, steps_[open_->step]);
  } else {
    open_.reset();
  }
}

Result<bool> ProcessGroup::test_barrier() {
  network_.advance();
  while (open_) {
    const auto done = open_->messages.test();
    if (!done) {
      return end(kBarrier, done.error());
    }
    if (!*done) {
      return false;
    }
    next_step();
  }
  return true;
}

/// Polls, because a wait of the network would give up the messages at the limit.
Result<void> ProcessGroup::watch_barrier(std::chrono::nanoseconds limit) {
  constexpr int kSpins = 100;
  constexpr int kYields = 1000;
  constexpr std::chrono::nanoseconds kLongestPause = std::chrono::microseconds(500);
  const Deadline deadline = deadline_after(limit);
  for (int looks = 0;; ++looks) {
    const auto over = test_barrier();
    if (!over) {
      return over.error();
    }
    if (*over) {
      return {};
    }
    const auto left = deadline ? *deadline - steady_clock::now() : kLongestPause;
    if (left <= left.zero()) {
      return explained(kBarrier, {std::errc::timed_out, "no " + open_->messages.first() + " within the limit"});
    }
    if (looks > kYields) {
      network_.sleep(std::min(kLongestPause, left));
    } else if (looks > kSpins) {
      std::this_thread::yield();
    }
  }
}

Result<void> ProcessGroup::finish_barrier(Limit limit) {
  if (limit) {
    return watch_barrier(*limit);
  }
  while (open_) {
    if (auto ok = open_->messages.wait(); !ok) {
      return end(kBarrier, ok.error());
    }
    next_step();
  }
  return {};
}

Result<void> ProcessGroup::broadcast(void* data, std::size_t bytes, int root) {
  return run("broadcast", {}, [&](Messages& messages) -> Result<void> {
    auto* const at = static_cast<std::byte*>(data);
    if (bytes == 0 || size() == 1) {
      return {};
    }
    const std::size_t segment = message_cost::segment_of_broadcast(size(), bytes);
    return segment == 0 ? broadcast_by_tree(messages, at, bytes, root)
                        : broadcast_by_chain(messages, at, bytes, root, segment);
  });
}

Result<void> ProcessGroup::broadcast_by_tree(Messages& messages, std::byte* data, std::size_t bytes, int root) {
  const int place = (me_ - root + size()) % size();
  int distance = 1;
  while (distance < size() && (place & distance) == 0) {
    distance *= 2;
  }
  if (place != 0) {
    messages.receive(pe_at(-distance), data, bytes);
    if (auto ok = messages.wait(); !ok) {
      return ok;
    }
  }
  for (distance /= 2; distance > 0; distance /= 2) {
    if (place + distance < size()) {
      messages.send(pe_at(distance), data, bytes);
    }
  }
  return messages.wait();
}

Result<void> ProcessGroup::broadcast_by_chain(Messages& messages, std::byte* data, std::size_t bytes, int root,
                                              std::size_t segment) {
  const bool receives = me_ != root;
  const bool sends = (me_ + 1) % size() != root;
  const auto length = [&](std::size_t offset) { return std::min(segment, bytes - offset); };
  Messages incoming(network_, tag(false, calls_), messages.deadline());
  std::size_t awaited = 0;
  for (std::size_t offset = 0; offset < bytes; offset += segment) {
    for (; receives && awaited < bytes && incoming.count() < kUnderWay; awaited += segment) {
      incoming.receive(pe_at(-1), data + awaited, length(awaited));
    }
    if (receives) {
      if (auto ok = incoming.wait_first(); !ok) {
        return ok;
      }
    }
    if (sends) {
      messages.send(pe_at(1), data + offset, length(offset));
      if (auto ok = messages.wait(kUnderWay); !ok) {
        return ok;
      }
    }
  }
  return messages.wait();
}

std::array<ProcessGroup::Range, 2> ProcessGroup::ranges(std::span<const std::size_t> offsets, int first,
                                                        int count) const {
  const auto range = [&](int begin, int end) {
    const std::size_t offset = offsets[static_cast<std::size_t>(begin)];
    return Range{offset, offsets[static_cast<std::size_t>(end)] - offset};
  };
  const int begin = (first + size()) % size();
  const int end = begin + count;
  return {range(begin, std::min(end, size())), range(0, std::max(end - size(), 0))};
}

Result<std::byte*> ProcessGroup::scratch(std::size_t bytes) {
  if (scratch_.size() < bytes) {
    auto scratch = ScratchBuffer::allocate(bytes, "of a collective call between nodes");
    if (!scratch) {
      return scratch.error();
    }
    scratch_ = *std::move(scratch);
  }
  return scratch_.data();
}

/// After a round of distance d each member has the pieces of 2 d members: its own and those before it, wrapping around
/// the list. `offsets` has one more entry than there are members: the end.
Result<void> ProcessGroup::gather(Messages& messages, std::span<const std::size_t> offsets, std::byte* all) {
  if (in_pairs()) {
    return gather_in_pairs(messages, offsets, all);
  }
  if (offsets.back() <= kGatheredInLine) {
    return gather_in_line(messages, offsets, all);
  }
  for (int distance = 1; distance < size(); distance *= 2) {
    const int count = std::min(distance, size() - distance);
    for (const Range& range : ranges(offsets, me_ - distance - count + 1, count)) {
      if (range.bytes != 0) {
        messages.receive(pe_at(-distance), all + range.offset, range.bytes);
      }
    }
    for (const Range& range : ranges(offsets, me_ - count + 1, count)) {
      if (range.bytes != 0) {
        messages.send(pe_at(distance), all + range.offset, range.bytes);
      }
    }
    if (auto ok = messages.wait(); !ok) {
      return ok;
    }
  }
  return {};
}

/// Before a round of distance d each member has the pieces of the d members that differ from it in lower bits only.
Result<void> ProcessGroup::gather_in_pairs(Messages& messages, std::span<const std::size_t> offsets, std::byte* all) {
  for (int distance = 1; distance < size(); distance *= 2) {
    const int partner = me_ ^ distance;
    const int pe = pes_[static_cast<std::size_t>(partner)];
    const Range theirs = ranges(offsets, partner & -distance, distance).front();
    const Range mine = ranges(offsets, me_ & -distance, distance).front();
    if (theirs.bytes != 0) {
      messages.receive(pe, all + theirs.offset, theirs.bytes);
    }
    if (mine.bytes != 0) {
      messages.send(pe, all + mine.offset, mine.bytes);
    }
    if (auto ok = messages.wait(); !ok) {
      return ok;
    }
  }
  return {};
}

/// As gather() (Bruck et al., 1997), but the pieces are in a line that ends with this member's, so that each round
/// sends one message.
Result<void> ProcessGroup::gather_in_line(Messages& messages, std::span<const std::size_t> offsets, std::byte* all) {
  const std::size_t total = offsets.back();
  if (total == 0) {
    return {};
  }
  const auto bytes_of = [&](int first, int count) {
    const auto both = ranges(offsets, first, count);
    return both[0].bytes + both[1].bytes;
  };
  const auto given = scratch(total);
  if (!given) {
    return given.error();
  }
  std::byte* const line = *given;
  std::size_t begin = total - bytes_of(me_, 1);
  const std::size_t own = offsets[static_cast<std::size_t>(me_)];
  copy_cached(line + begin, all + own, total - begin);
  for (int distance = 1; distance < size(); distance *= 2) {
    const int count = std::min(distance, size() - distance);
    const std::size_t incoming = bytes_of(me_ - distance - count + 1, count);
    const std::size_t outgoing = bytes_of(me_ - count + 1, count);
    begin -= incoming;
    if (incoming != 0) {
      messages.receive(pe_at(-distance), line + begin, incoming);
    }
    if (outgoing != 0) {
      messages.send(pe_at(distance), line + total - outgoing, outgoing);
    }
    if (auto ok = messages.wait(); !ok) {
      return ok;
    }
  }
  const std::size_t up_to_me = offsets[static_cast<std::size_t>(me_) + 1];
  copy_cached(all + up_to_me, line, total - up_to_me);
  copy_cached(all, line + total - up_to_me, up_to_me);
  return {};
}

Result<void> ProcessGroup::allgather(std::span<const std::size_t> bytes_of_each, void* all) {
  std::vector<std::size_t> offsets(bytes_of_each.size() + 1);
  std::partial_sum(bytes_of_each.begin(), bytes_of_each.end(), offsets.begin() + 1);
  return run("allgather", {},
             [&](Messages& messages) { return gather(messages, offsets, static_cast<std::byte*>(all)); });
}

Result<void> ProcessGroup::exchange(Messages& messages, std::span<const std::span<const std::byte>> from,
                                    std::span<const std::span<std::byte>> to) {
  for (int distance = 1; distance < size(); ++distance) {
    const auto sender = static_cast<std::size_t>((me_ + size() - distance) % size());
    const auto receiver = static_cast<std::size_t>((me_ + distance) % size());
    if (!to[sender].empty()) {
      messages.receive(pes_[sender], to[sender].data(), to[sender].size());
    }
    if (!from[receiver].empty()) {
      messages.send(pes_[receiver], from[receiver].data(), from[receiver].size());
    }
    if (auto ok = messages.wait(kUnderWay); !ok) {
      return ok;
    }
  }
  return messages.wait();
}

Result<void> ProcessGroup::alltoall(std::span<const std::span<const std::byte>> from,
                                    std::span<const std::span<std::byte>> to) {
  return run("alltoall", {}, [&](Messages& messages) {
    const auto own = static_cast<std::size_t>(me_);
    move_cached(to[own].data(), from[own].data(), from[own].size());
    return exchange(messages, from, to);
  });
}

}  // namespace shmem
