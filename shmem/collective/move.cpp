// SPDX-License-Identifier: Apache-2.0
#include "shmem/collective/move.hpp"

#include <array>
#include <cstring>
#include <numeric>
#include <vector>

#include "shmem/collective/on_nodes.hpp"

namespace shmem {
namespace {

/// Through the cache: what is fetched is for this PE to use.
void fetch(std::byte* to, const std::byte* from, std::size_t size) {
  if (size != 0) {
    std::memmove(to, from, size);  // a member's own part may be in place
  }
}

void fetch(std::byte* to, const std::byte* from, const Strided& block) {
  if (block.to_step == block.element && block.from_step == block.element) {
    fetch(to, from, block.element * block.count);
    return;
  }
  for (std::size_t i = 0; i < block.count; ++i) {
    std::memcpy(to + i * block.to_step, from + i * block.from_step, block.element);
  }
}

/// Meets, calls work(member) for all members, and meets again. Everybody begins with his own part, then goes to the
/// right: so not all read the same member's memory at once.
template <typename Work>
Result<void> between_meetings(const Members& members, Work work) {
  auto ok = members.meet();
  for (int distance = 0; ok && distance < members.size(); ++distance) {
    ok = work((members.me + distance) % members.size());
  }
  return ok ? members.meet() : ok;
}

}  // namespace

namespace {

Result<void> broadcast_carried(const Members& members, void* dest, const void* source, std::size_t size, int root,
                               bool root_too) {
  Carrier& carrier = *members.carrier;
  if (auto ok = carrier.begin(); !ok) {
    return ok;
  }
  if (members.me == root) {
    if (auto ok = carrier.give(source, size); !ok) {
      return ok;
    }
    if (root_too) {
      fetch(static_cast<std::byte*>(dest), static_cast<const std::byte*>(source), size);
    }
  } else {
    const auto given = carrier.take(root);
    if (!given) {
      return tl::make_unexpected(given.error());
    }
    fetch(static_cast<std::byte*>(dest), given->data, size);
  }
  carrier.end(false);
  return {};
}

/// Each member but the root reads a share of the root's, and then the others' shares where they have put them.
Result<void> broadcast_split(const Members& members, std::byte* dest, const void* source, std::size_t size, int root,
                             bool root_too) {
  const int shares = members.size() - 1;
  const auto share_number = [&](int member) { return (member - root + members.size()) % members.size() - 1; };
  if (auto ok = members.meet(); !ok) {
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
    ok = members.meet();
  }
  for (int distance = 1; ok && distance < members.size() && !at_root; ++distance) {
    const int member = (members.me + distance) % members.size();
    if (member != root) {
      const Share theirs = share_of(share_number(member), shares, size);
      ok = members.fetch(dest + theirs.begin, dest, theirs.begin, theirs.size, member);
    }
  }
  return ok ? members.meet() : ok;
}

}  // namespace

Result<void> broadcast(const Members& members, void* dest, const void* source, std::size_t size, int root,
                       bool root_too) {
  if (members.span != nullptr && root_too) {
    return on_nodes::broadcast(members, dest, source, size, root);
  }
  if (members.carries(Collective::kBroadcast, size)) {
    return broadcast_carried(members, dest, source, size, root, root_too);
  }
  if (members.splits(Collective::kBroadcast, size) && members.size() > 2 && size != 0) {
    return broadcast_split(members, static_cast<std::byte*>(dest), source, size, root, root_too);
  }
  if (auto ok = members.meet(); !ok) {
    return ok;
  }
  if (members.me != root || root_too) {
    if (auto ok = members.fetch(static_cast<std::byte*>(dest), source, 0, size, root); !ok) {
      return ok;
    }
  }
  return members.meet();
}

Result<void> fcollect(const Members& members, void* dest, const void* source, std::size_t size) {
  if (members.span != nullptr) {
    return on_nodes::fcollect(members, dest, source, size);
  }
  auto* to = static_cast<std::byte*>(dest);
  if (members.carries(Collective::kFcollect, size)) {
    return exchange(members, source, size, [&](int member, const Carrier::Given& given) {
      fetch(to + static_cast<std::size_t>(member) * size, given.data, size);
    });
  }
  return between_meetings(members, [&](int member) {
    return members.fetch(to + static_cast<std::size_t>(member) * size, source, 0, size, member);
  });
}

namespace {

/// The lengths are carried, and with them what is short; what is longer is read from its member when all are known.
Result<void> collect_carried(const Members& members, void* dest, const void* source, std::size_t size,
                             const std::function<Result<void>(std::size_t total)>& check) {
  Carrier& carrier = *members.carrier;
  std::size_t total = 0;
  bool all_carried = true;
  Result<void> fits;
  auto* to = static_cast<std::byte*>(dest);
  // Nothing is written before all is known: twice over the members, and the second time all have given.
  auto ok = exchange(members, source, size, [&](int member, const Carrier::Given& given) {
    total += given.size;
    all_carried = all_carried && members.carries(Collective::kCollect, given.size);
    if (member + 1 < members.size()) {
      return;
    }
    fits = check(total);
    for (int from = 0; fits && from < members.size(); ++from) {
      const Carrier::Given piece = carrier.take(from).value();
      fetch(to, members.carries(Collective::kCollect, piece.size) ? piece.data : members.at(source, from), piece.size);
      to += piece.size;
    }
  });
  if (ok && !all_carried) {
    ok = members.meet();  // nobody reads the others' memory any more
  }
  return ok ? fits : ok;
}

}  // namespace

Result<void> collect(const Members& members, void* dest, const void* source, std::size_t size,
                     const std::function<Result<void>(std::size_t total)>& check) {
  if (members.span != nullptr) {
    return on_nodes::collect(members, dest, source, size, check);
  }
  if (members.carries(Collective::kCollect, 1)) {
    return collect_carried(members, dest, source, size, check);
  }
  const auto lengths = members.tell(size);
  if (!lengths) {
    return tl::make_unexpected(lengths.error());
  }
  Result<void> fits = check(std::accumulate(lengths->begin(), lengths->end(), std::size_t{0}));
  auto* to = static_cast<std::byte*>(dest);
  for (int member = 0; fits && member < members.size(); ++member) {
    const std::size_t length = (*lengths)[static_cast<std::size_t>(member)];
    fits = members.fetch(to, source, 0, length, member);
    to += length;
  }
  auto ok = members.meet();
  return ok ? fits : ok;
}

Result<void> alltoall(const Members& members, void* dest, const void* source, const Strided& block) {
  if (members.span != nullptr && on_nodes::takes_alltoall(block)) {
    return on_nodes::alltoall(members, dest, source, block);
  }
  auto* to = static_cast<std::byte*>(dest);
  const std::size_t to_block = block.to_step * block.count;
  const std::size_t from_block = block.from_step * block.count;
  const std::size_t packed = block.element * block.count;
  if (members.carries(Collective::kAlltoall, packed * static_cast<std::size_t>(members.size()))) {
    std::array<std::byte, kMostCarried> all;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled below
    const Strided pack{block.element, block.from_step, block.element,
                       block.count * static_cast<std::size_t>(members.size())};
    fetch(all.data(), static_cast<const std::byte*>(source), pack);
    const Strided unpack{block.to_step, block.element, block.element, block.count};
    return exchange(members, all.data(), packed * static_cast<std::size_t>(members.size()),
                    [&](int member, const Carrier::Given& given) {
                      fetch(to + static_cast<std::size_t>(member) * to_block,
                            given.data + static_cast<std::size_t>(members.me) * packed, unpack);
                    });
  }
  std::vector<std::byte> room;  // for what comes from other nodes
  return between_meetings(members, [&](int member) -> Result<void> {
    std::byte* const theirs = to + static_cast<std::size_t>(member) * to_block;
    const std::size_t offset = static_cast<std::size_t>(members.me) * from_block;
    if (!members.is_far(member)) {
      fetch(theirs, members.at(source, member) + offset, block);
      return {};
    }
    const std::size_t extent = from_block != 0 ? from_block - block.from_step + block.element : 0;
    room.resize(extent);
    auto ok = members.fetch(room.data(), source, offset, extent, member);
    if (ok) {
      fetch(theirs, room.data(), block);
    }
    return ok;
  });
}

}  // namespace shmem
