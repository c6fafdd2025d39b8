// SPDX-License-Identifier: Apache-2.0
// Reductions and scans between nodes. All combine neighbours in the list, lower member first.
#include <algorithm>
#include <bit>

#include "shmem/collective/reduce.hpp"
#include "shmem/memory/cached_copy.hpp"
#include "shmem/net/message_cost.hpp"
#include "shmem/net/process_group.hpp"

namespace shmem {
namespace {

/// The most scratch that a reduction uses at a time.
constexpr std::size_t kMostAside = std::size_t{16} << 20;

/// Where the elements of `member` begin if `members` share them.
std::size_t first_element(int member, int members, std::size_t count) {
  const auto all = static_cast<std::size_t>(members);
  const auto which = static_cast<std::size_t>(member);
  return count / all * which + std::min(which, count % all);
}

}  // namespace

Result<void> ProcessGroup::allreduce(void* data, std::size_t count, const Reduction& reduction) {
  return run("reduction", {}, [&](Messages& messages) -> Result<void> {
    const bool share = message_cost::shares_reduction(size(), count * reduction.element);
    const std::size_t most = std::max(kMostAside / reduction.element, std::size_t{1});
    for (std::size_t i = 0; i < count; i += most) {
      auto* const at = static_cast<std::byte*>(data) + i * reduction.element;
      const std::size_t some = std::min(most, count - i);
      auto ok =
          share ? reduce_by_shares(messages, at, some, reduction) : reduce_by_doubling(messages, at, some, reduction);
      if (!ok) {
        return ok;
      }
    }
    return {};
  });
}

/// With n = 2^k + r members the first 2 r form r pairs, each of which takes one of 2^k places: neighbours in the list
/// are neighbours there, and a round of distance d joins two adjacent runs of d places.
Result<void> ProcessGroup::reduce_by_doubling(Messages& messages, std::byte* data, std::size_t count,
                                              const Reduction& reduction) {
  const std::size_t bytes = count * reduction.element;
  const int places = static_cast<int>(std::bit_floor(static_cast<unsigned>(size())));
  const int pairs = size() - places;
  const bool paired = me_ < 2 * pairs;
  if (paired && me_ % 2 != 0) {
    messages.send(pe_at(-1), data, bytes);
    if (auto ok = messages.wait(); !ok) {
      return ok;
    }
    messages.receive(pe_at(-1), data, bytes);
    return messages.wait();
  }
  std::byte* mine = data;
  const auto given = scratch(bytes);
  if (!given) {
    return given.error();
  }
  std::byte* theirs = *given;
  const auto swap_with = [&](int member) -> Result<void> {
    const int pe = pes_[static_cast<std::size_t>(member)];
    messages.receive(pe, theirs, bytes);
    messages.send(pe, mine, bytes);
    return messages.wait();
  };
  if (paired) {
    messages.receive(pe_at(1), theirs, bytes);
    if (auto ok = messages.wait(); !ok) {
      return ok;
    }
    reduction.combine(mine, theirs, count);
  }
  const int place = paired ? me_ / 2 : me_ - pairs;
  for (int distance = 1; distance < places; distance *= 2) {
    const int partner = place ^ distance;
    if (auto ok = swap_with(partner < pairs ? 2 * partner : partner + pairs); !ok) {
      return ok;
    }
    if (partner < place) {
      std::swap(mine, theirs);
    }
    reduction.combine(mine, theirs, count);
  }
  if (mine != data) {
    copy_cached(data, mine, bytes);
  }
  if (!paired) {
    return {};
  }
  messages.send(pe_at(1), data, bytes);
  return messages.wait();
}

Result<void> ProcessGroup::reduce_by_shares(Messages& messages, std::byte* data, std::size_t count,
                                            const Reduction& reduction) {
  const auto members = static_cast<std::size_t>(size());
  const auto own = static_cast<std::size_t>(me_);
  std::vector<std::size_t> offsets;
  for (int member = 0; member <= size(); ++member) {
    offsets.push_back(first_element(member, size(), count) * reduction.element);
  }
  const std::size_t bytes = offsets[own + 1] - offsets[own];
  const auto given = scratch(bytes * members);
  if (!given) {
    return given.error();
  }
  std::byte* const shares = *given;
  std::vector<std::span<const std::byte>> from(members);
  std::vector<std::span<std::byte>> to(members);
  for (std::size_t member = 0; member < members; ++member) {
    from[member] = {data + offsets[member], offsets[member + 1] - offsets[member]};
    to[member] = {shares + member * bytes, bytes};
  }
  if (auto ok = exchange(messages, from, to); !ok) {
    return ok;
  }
  std::byte* const share = data + offsets[own];
  copy_cached(to[own].data(), share, bytes);
  for (std::size_t member = 1; member < members; ++member) {
    reduction.combine(shares, to[member].data(), bytes / reduction.element);
  }
  copy_cached(share, shares, bytes);
  return gather(messages, offsets, data);
}

Result<void> ProcessGroup::exclusive_scan(void* data, std::size_t count, const Reduction& reduction) {
  return run("scan", {}, [&](Messages& messages) -> Result<void> {
    if (count == 0) {
      return {};
    }
    return scan(messages, static_cast<std::byte*>(data), count, reduction);
  });
}

/// Before the round of distance d, `total` combines up to d members: this one and those before it. The member at
/// distance d lacks exactly that.
Result<void> ProcessGroup::scan(Messages& messages, std::byte* data, std::size_t count, const Reduction& reduction) {
  const std::size_t bytes = count * reduction.element;
  std::vector<std::byte> total(data, data + bytes);
  std::vector<std::byte> theirs(bytes);
  std::vector<std::byte> before;
  for (int distance = 1; distance < size(); distance *= 2) {
    const bool receives = me_ >= distance;
    if (receives) {
      messages.receive(pe_at(-distance), theirs.data(), bytes);
    }
    if (me_ + distance < size()) {
      messages.send(pe_at(distance), total.data(), bytes);
    }
    if (auto ok = messages.wait(); !ok) {
      return ok;
    }
    if (!receives) {
      continue;
    }
    std::vector<std::byte> joined = theirs;
    if (!before.empty()) {
      reduction.combine(joined.data(), before.data(), count);
    }
    before.swap(joined);
    reduction.combine(theirs.data(), total.data(), count);
    total.swap(theirs);
  }
  if (before.empty()) {
    before.resize(bytes);
  }
  copy_cached(data, before.data(), bytes);
  return {};
}

}  // namespace shmem
