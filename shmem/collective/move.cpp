// SPDX-License-Identifier: Apache-2.0
#include "shmem/collective/move.hpp"

#include <numeric>

#include "shmem/collective/neighbours.hpp"
#include "shmem/collective/on_nodes.hpp"
#include "shmem/memory/cached_copy.hpp"
#include "shmem/memory/scratch_buffer.hpp"

namespace shmem {
namespace {

/// Through the cache: this PE is about to use it.
void fetch(std::byte* to, const std::byte* from, std::size_t size) {
  if (size < kLeastChosen) {
    copy_small(to, from, size);
  } else {
    move_cached(to, from, size);
  }
}

void fetch(std::byte* to, const std::byte* from, const Strided& block) {
  if (block.to_step == block.element && block.from_step == block.element) {
    fetch(to, from, block.element * block.count);
    return;
  }
  for (std::size_t i = 0; i < block.count; ++i) {
    copy_cached(to + i * block.to_step, from + i * block.from_step, block.element);
  }
}

/// Synchronises, calls work(member) for all members, its own first, and synchronises again.
template <typename Work>
Result<void> between_meetings(const Members& members, Work work) {
  auto ok = members.sync();
  if (ok) {
    ok = to_the_right(members.me, members.size(), 0, work);
  }
  return ok ? members.sync() : ok;
}

Result<void> broadcast_eager(const Members& members, void* dest, const void* source, std::size_t size, int root,
                             bool root_too) {
  EagerChannel& eager = *members.eager;
  if (!eager.begin()) [[unlikely]] {
    return eager.error();
  }
  if (members.me == root) {
    if (!eager.give<EagerChannel::Givers::kOne>(source, size)) [[unlikely]] {
      return eager.error();
    }
    members.job.gave_data->store(true, std::memory_order_relaxed);
    if (root_too) {
      copy_small(static_cast<std::byte*>(dest), source, size);
    }
    eager.end(EagerChannel::Begun::kUnknown);
    return {};
  }
  const auto given = eager.take<EagerChannel::Givers::kOne>(root);
  if (!given) [[unlikely]] {
    return eager.error();
  }
  copy_small(static_cast<std::byte*>(dest), given.data, size);
  // The root has begun this call: with two members, all have.
  eager.end(members.size() == 2 ? EagerChannel::Begun::kThis : EagerChannel::Begun::kUnknown);
  return {};
}

/// Members read the root's data when it has begun the call, and go on; only the root waits, until all have read. So a
/// member waits once, not in two barriers.
Result<void> broadcast_read(const Members& members, std::byte* dest, const void* source, std::size_t size, int root,
                            bool root_too) {
  EagerChannel& eager = *members.eager;
  if (!eager.begin()) {
    return eager.error();
  }
  if (members.me != root) {
    if (!eager.take(root)) {
      return eager.error();
    }
    auto ok = members.fetch(dest, source, 0, size, root);
    eager.end(EagerChannel::Begun::kUnknown, /*tell=*/true);
    return ok;
  }
  if (!eager.give(nullptr, 0)) {
    return eager.error();
  }
  auto ok = root_too ? members.fetch(dest, source, 0, size, root) : Result<void>();
  if (!eager.wait_for_readers()) {
    return eager.error();
  }
  eager.end(EagerChannel::Begun::kThis, /*tell=*/true);
  return ok;
}

/// Each member except the root reads a share of the root's data, then the other shares from the members that have read
/// them.
Result<void> broadcast_split(const Members& members, std::byte* dest, const void* source, std::size_t size, int root,
                             bool root_too) {
  const int shares = members.size() - 1;
  const auto share_number = [&](int member) { return (member - root + members.size()) % members.size() - 1; };
  if (auto ok = members.sync(); !ok) {
    return ok;
  }
  const bool at_root = members.me == root;
  Result<void> ok;
  if (!at_root) {
    const Share mine = share_of(share_number(members.me), shares, size);
    ok = members.fetch(dest + mine.begin, source, mine.begin, mine.size, root);
  } else if (root_too) {
    fetch(dest, static_cast<const std::byte*>(source), size);
  }
  if (ok) {
    ok = members.sync();
  }
  if (ok && !at_root) {
    ok = fetch_shares(share_number(members.me), shares, size, [&](int share, const Share& theirs) {
      return members.fetch(dest + theirs.begin, dest, theirs.begin, theirs.size, (root + 1 + share) % members.size());
    });
  }
  return ok ? members.sync() : ok;
}

}  // namespace

Result<void> broadcast(const Members& members, void* dest, const void* source, std::size_t size, int root,
                       bool root_too) {
  if (members.has_nothing_to_do(size)) {
    return {};
  }
  if (members.spanning != nullptr && root_too) {
    return on_nodes::broadcast(members, dest, source, size, root);
  }
  if (members.is_eager(Collective::kBroadcast, size)) {
    return broadcast_eager(members, dest, source, size, root, root_too);
  }
  if (members.splits(Collective::kBroadcast, size) && members.size() > 2 && size != 0) {
    return broadcast_split(members, static_cast<std::byte*>(dest), source, size, root, root_too);
  }
  // In a large team the root would read the words of many members.
  if (members.eager != nullptr && members.size() <= kMostOneStep) {
    return broadcast_read(members, static_cast<std::byte*>(dest), source, size, root, root_too);
  }
  if (auto ok = members.sync(); !ok) {
    return ok;
  }
  if (members.me != root || root_too) {
    if (auto ok = members.fetch(static_cast<std::byte*>(dest), source, 0, size, root); !ok) {
      return ok;
    }
  }
  return members.sync();
}

Result<void> fcollect(const Members& members, void* dest, const void* source, std::size_t size) {
  if (members.has_nothing_to_do(size)) {
    return {};
  }
  if (members.spanning != nullptr) {
    return on_nodes::fcollect(members, dest, source, size);
  }
  auto* to = static_cast<std::byte*>(dest);
  if (members.is_eager(Collective::kFcollect, size)) {
    if (members.eager->levels() != nullptr && by_neighbours::takes_fcollect(members, size)) {
      return by_neighbours::fcollect(members, to, source, size);
    }
    return exchange(members, source, size, [&](int member, const EagerChannel::Given& given) {
      fetch(to + static_cast<std::size_t>(member) * size, given.data, size);
    });
  }
  return between_meetings(members, [&](int member) {
    return members.fetch(to + static_cast<std::size_t>(member) * size, source, 0, size, member);
  });
}

namespace {

/// The lengths are sent eagerly, with short contents; longer contents are read from their members when all lengths are
/// known.
Result<void> collect_eager(const Members& members, void* dest, const void* source, std::size_t size,
                           const CheckTotal& check) {
  EagerChannel& eager = *members.eager;
  std::size_t total = 0;
  bool all_eager = true;
  Result<void> fits;
  auto* to = static_cast<std::byte*>(dest);
  // Nothing is written before all is known: two passes over the members, and by the second all have given.
  const auto write = [&](std::byte* gift) {
    if (members.is_eager(Collective::kCollect, size)) {
      copy_small(gift, source, size);
    }
  };
  auto ok = exchange(members, size, write, members.size() - 1, [&](int member, const EagerChannel::Given& given) {
    total += given.size;
    all_eager = all_eager && members.is_eager(Collective::kCollect, given.size);
    if (member + 1 < members.size()) {
      return;
    }
    fits = check(total);
    for (int from = 0; fits && from < members.size(); ++from) {
      const EagerChannel::Given piece = eager.take(from);
      fetch(to, members.is_eager(Collective::kCollect, piece.size) ? piece.data : members.at(source, from), piece.size);
      to += piece.size;
    }
  });
  if (ok && !all_eager) {
    ok = members.sync();  // no member reads another member's memory any more
  }
  return ok ? fits : ok;
}

}  // namespace

Result<void> collect(const Members& members, void* dest, const void* source, std::size_t size,
                     const CheckTotal& check) {
  if (members.spanning != nullptr) {
    return on_nodes::collect(members, dest, source, size, check);
  }
  if (members.is_eager(Collective::kCollect, 1)) {
    return members.eager->levels() == nullptr
               ? collect_eager(members, dest, source, size, check)
               : by_neighbours::collect(members, static_cast<std::byte*>(dest), source, size, check);
  }
  const auto lengths = members.allgather(size);
  if (!lengths) {
    return lengths.error();
  }
  Result<void> fits = check(std::accumulate(lengths->begin(), lengths->end(), std::size_t{0}));
  auto* to = static_cast<std::byte*>(dest);
  for (int member = 0; fits && member < members.size(); ++member) {
    const std::size_t length = (*lengths)[static_cast<std::size_t>(member)];
    fits = members.fetch(to, source, 0, length, member);
    to += length;
  }
  auto ok = members.sync();
  return ok ? fits : ok;
}

namespace {

/// A member gives its blocks for the others, without gaps, in the order of the members; its own it copies.
Result<void> alltoall_eager(const Members& members, std::byte* to, const std::byte* from, const Strided& block) {
  const std::size_t packed = block.element * block.count;
  const auto own = static_cast<std::size_t>(members.me);
  const Strided pack{block.element, block.from_step, block.element, block.count};
  const Strided unpack{block.to_step, block.element, block.element, block.count};
  const auto write = [&](std::byte* gift) {
    for (std::size_t member = 0; member < static_cast<std::size_t>(members.size()); ++member) {
      if (member != own) {
        fetch(gift, from + member * block.from_step * block.count, pack);
        gift += packed;
      }
    }
  };
  return exchange<EagerChannel::Givers::kEach>(members, packed * static_cast<std::size_t>(members.size() - 1), write,
                                               members.size() - 1, [&](int giver, const EagerChannel::Given& given) {
                                                 const auto member = static_cast<std::size_t>(giver);
                                                 std::byte* const theirs = to + member * block.to_step * block.count;
                                                 if (member == own) {
                                                   fetch(theirs, from + own * block.from_step * block.count, block);
                                                 } else {
                                                   fetch(theirs, given.data + (own < member ? own : own - 1) * packed,
                                                         unpack);
                                                 }
                                               });
}

}  // namespace

Result<void> alltoall(const Members& members, void* dest, const void* source, const Strided& block) {
  if (members.has_nothing_to_do(block.element * block.count)) {
    return {};
  }
  if (members.spanning != nullptr && on_nodes::takes_alltoall(block)) {
    return on_nodes::alltoall(members, dest, source, block);
  }
  auto* to = static_cast<std::byte*>(dest);
  const std::size_t to_block = block.to_step * block.count;
  const std::size_t from_block = block.from_step * block.count;
  const std::size_t packed = block.element * block.count;
  const std::size_t for_others = packed * static_cast<std::size_t>(members.size() - 1);
  if (members.is_eager(Collective::kAlltoall, for_others) && for_others <= members.eager->most_to_each()) {
    return alltoall_eager(members, to, static_cast<const std::byte*>(source), block);
  }
  const std::size_t extent = from_block != 0 ? from_block - block.from_step + block.element : 0;
  const bool fetches = members.spanning != nullptr || !members.here;
  const auto scratch = fetches ? ScratchBuffer::allocate(extent, "of a block of another node's PE, with its gaps")
                               : Result<ScratchBuffer>(ScratchBuffer());
  return between_meetings(members, [&](int member) -> Result<void> {
    std::byte* const theirs = to + static_cast<std::size_t>(member) * to_block;
    const std::size_t offset = static_cast<std::size_t>(members.me) * from_block;
    if (!members.is_remote(member)) {
      fetch(theirs, members.at(source, member) + offset, block);
      return {};
    }
    if (!scratch) {
      return scratch.error();
    }
    auto ok = members.fetch(scratch->data(), source, offset, extent, member);
    if (ok) {
      fetch(theirs, scratch->data(), block);
    }
    return ok;
  });
}

}  // namespace shmem
