// SPDX-License-Identifier: Apache-2.0
#include "shmem/collective/on_nodes.hpp"

#include <algorithm>
#include <numeric>
#include <span>
#include <vector>

#include "shmem/collective/multi_leader.hpp"
#include "shmem/memory/scratch_buffer.hpp"
#include "shmem/team/spanning_team.hpp"

namespace shmem::on_nodes {
namespace {

/// While a piece travels between nodes, the previous one is copied on them.
constexpr std::size_t kPiece = std::size_t{1} << 20;
/// What a node's first member takes of its own memory for blocks that are not in the order of the members.
constexpr std::size_t kPutInOrder = std::size_t{8} << 20;
/// Up to this size, for all members of a node, its first member writes the others' results, without another sync.
constexpr std::size_t kWrittenByFirst = std::size_t{32} << 10;
/// From one member to another: longer blocks are not worth two more copies.
constexpr std::size_t kLongestPacked = std::size_t{4} << 10;

int first_here(const Members& members) {
  return *members.map.member(members.spanning->firsts()[static_cast<std::size_t>(members.spanning->my_node())]);
}

template <typename Use>
void for_others_here(const Members& members, Use use) {
  for (int i = 1; i < members.here->size; ++i) {
    use(*members.map.member(members.job.nodes.world(members.here->pe(i))));
  }
}

/// Copies what is, or will be, in `dest` of the node's first member to the other members there.
class NodeBroadcast {
 public:
  NodeBroadcast(const Members& members, void* dest, std::size_t size)
      : members_(members),
        team_(*members.spanning),
        dest_(static_cast<std::byte*>(dest)),
        by_first_(size * static_cast<std::size_t>(members.here->size) <= kWrittenByFirst) {}

  /// After the first member's work: a part is there.
  Result<void> broadcast(const Result<void>& done, std::size_t begin, std::size_t size) {
    if (done && by_first_ && team_.leads()) {
      for_others_here(members_,
                      [&](int member) { move_bytes(members_.at(dest_, member) + begin, dest_ + begin, size); });
    }
    const auto released = team_.release_here(done);
    if (!released) {
      return released.error();
    }
    fetch(begin, size);
    return {};
  }
  void fetch(std::size_t begin, std::size_t size) {
    if (!by_first_ && !team_.leads()) {
      move_bytes(dest_ + begin, members_.at(dest_, first_here(members_)) + begin, size);
    }
  }
  /// The first member does not write there again before the others have read it.
  Result<void> end() { return by_first_ ? Result<void>{} : team_.gather_here(); }

 private:
  const Members& members_;
  SpanningTeam& team_;
  std::byte* dest_;
  bool by_first_;
};

/// All arrive; then, for each piece, the node's first member does work(begin, size), and the others copy the result.
template <typename Work>
Result<void> by_pieces(const Members& members, void* dest, std::size_t size, std::size_t piece, Work work) {
  if (auto ok = members.spanning->gather_here(); !ok) {
    return ok;
  }
  NodeBroadcast to_node(members, dest, size);
  std::size_t begin = 0;
  do {
    const std::size_t some = std::min(piece, size - begin);
    if (auto ok = to_node.broadcast(members.spanning->leads() ? work(begin, some) : Result<void>{}, begin, some); !ok) {
      return ok;
    }
    begin += some;
  } while (begin < size);
  return to_node.end();
}

/// The pieces of all members, and their places: those of a node are contiguous.
struct Blocks {
  std::vector<std::size_t> of_nodes;  // bytes
  std::vector<std::size_t> begins;    // by member
  bool in_order = true;               // in the order of the members

  Blocks(const std::vector<std::vector<int>>& nodes, const std::vector<std::uint64_t>& sizes) : begins(sizes.size()) {
    std::size_t end = 0;
    int last = -1;
    for (const auto& node : nodes) {
      const std::size_t begin = end;
      for (const int member : node) {
        in_order = in_order && member == ++last;
        begins[static_cast<std::size_t>(member)] = end;
        end += sizes[static_cast<std::size_t>(member)];
      }
      of_nodes.push_back(end - begin);
    }
  }
};

/// On a node's first member: copies each member's piece of `source`, from `offset` on, to `all`.
Result<void> gather_blocks(const Members& members, const std::vector<std::vector<int>>& nodes, const Blocks& blocks,
                           const std::vector<std::uint64_t>& sizes, const void* source, std::size_t offset,
                           std::byte* all) {
  for (const int member : nodes[static_cast<std::size_t>(members.spanning->my_node())]) {
    const auto i = static_cast<std::size_t>(member);
    if (sizes[i] != 0) {
      move_bytes(all + blocks.begins[i], members.at(source, member) + offset, sizes[i]);
    }
  }
  return members.spanning->leaders().allgather(blocks.of_nodes, all);
}

/// Up to `most` bytes of each size, from `offset` on.
std::vector<std::uint64_t> part_of(const std::vector<std::uint64_t>& sizes, std::size_t offset, std::size_t most) {
  std::vector<std::uint64_t> parts;
  parts.reserve(sizes.size());
  for (const std::uint64_t size : sizes) {
    parts.push_back(piece_of(size, offset, most));
  }
  return parts;
}

/// The same to `dest`, in the order of the members. All nodes gather the same pieces.
Result<void> gather_in_order(const Members& members, const std::vector<std::vector<int>>& nodes,
                             const std::vector<std::uint64_t>& sizes, const void* source, std::byte* dest,
                             std::size_t total) {
  const Blocks blocks(nodes, sizes);
  if (blocks.in_order) {
    return gather_blocks(members, nodes, blocks, sizes, source, 0, dest);
  }
  const std::size_t each = std::max<std::size_t>(kPutInOrder / sizes.size(), 1);
  const std::uint64_t longest = *std::max_element(sizes.begin(), sizes.end());
  const auto all = ScratchBuffer::allocate(std::min(total, each * sizes.size()), "that put the PEs' blocks in order");
  if (!all) {
    return all.error();
  }
  Result<void> ok;
  for (std::size_t offset = 0; ok && offset < longest; offset += each) {
    const std::vector<std::uint64_t> parts = part_of(sizes, offset, each);
    const Blocks places(nodes, parts);
    ok = gather_blocks(members, nodes, places, parts, source, offset, all->data());
    std::byte* to = dest + offset;
    for (std::size_t member = 0; ok && member < sizes.size(); ++member) {
      move_bytes(to, all->data() + places.begins[member], parts[member]);
      to += sizes[member];
    }
  }
  return ok;
}

/// On a node's first member: the number of each member of the team, gathered from those on this node.
Result<std::vector<std::uint64_t>> allgather(const Members& members, const std::vector<std::vector<int>>& nodes,
                                             const std::vector<std::uint64_t>& here) {
  const std::vector<std::uint64_t> words(static_cast<std::size_t>(members.size()), sizeof(std::uint64_t));
  const Blocks blocks(nodes, words);
  std::vector<std::uint64_t> all(words.size());
  const auto own = static_cast<std::size_t>(members.spanning->my_node());
  const std::size_t begin = blocks.begins[static_cast<std::size_t>(nodes[own].front())] / sizeof(std::uint64_t);
  std::copy(here.begin(), here.end(), all.begin() + static_cast<std::ptrdiff_t>(begin));
  if (auto ok = members.spanning->leaders().allgather(blocks.of_nodes, all.data()); !ok) {
    return ok.error();
  }
  std::vector<std::uint64_t> in_order;
  for (const std::size_t place : blocks.begins) {
    in_order.push_back(all[place / sizeof(std::uint64_t)]);
  }
  return in_order;
}

}  // namespace

Result<void> broadcast(const Members& members, void* dest, const void* source, std::size_t size, int root) {
  const int root_node = members.spanning->node_of(root);
  auto* const to = static_cast<std::byte*>(dest);
  if (multi_leader::pays(members, size)) {
    return multi_leader::broadcast(members, to, source, size, root, root_node, to);
  }
  return by_pieces(members, dest, size, kPiece, [&](std::size_t begin, std::size_t some) {
    if (root_node == members.spanning->my_node() && some != 0) {
      move_bytes(to + begin, members.at(source, root) + begin, some);
    }
    return members.spanning->leaders().broadcast(to + begin, some, root_node);
  });
}

Result<void> fcollect(const Members& members, void* dest, const void* source, std::size_t size) {
  const std::size_t total = size * static_cast<std::size_t>(members.size());
  return by_pieces(members, dest, total, std::max<std::size_t>(total, 1), [&](std::size_t, std::size_t) {
    const std::vector<std::uint64_t> sizes(static_cast<std::size_t>(members.size()), size);
    return gather_in_order(members, members.spanning->by_node(), sizes, source, static_cast<std::byte*>(dest), total);
  });
}

Result<void> collect(const Members& members, void* dest, const void* source, std::size_t size,
                     const CheckTotal& check) {
  SpanningTeam& team = *members.spanning;
  std::vector<std::uint64_t> sizes(static_cast<std::size_t>(members.here->size));
  auto ok = team.gather_here(size, sizes);
  if (!ok) {
    return ok;
  }
  std::size_t total = 0;
  if (team.leads()) {
    const auto& nodes = members.spanning->by_node();
    const auto all = allgather(members, nodes, sizes);
    ok = all ? Result<void>{} : all.error();
    if (ok) {
      total = std::accumulate(all->begin(), all->end(), std::size_t{0});
      ok = check(total);
    }
    if (ok) {
      ok = gather_in_order(members, nodes, *all, source, static_cast<std::byte*>(dest), total);
    }
  }
  const auto over = team.release_here(ok, total);  // the others learn the total
  if (!over) {
    return over.error();
  }
  NodeBroadcast to_node(members, dest, kWrittenByFirst + 1);
  to_node.fetch(0, *over);
  return to_node.end();
}

namespace {

bool has_gaps(const Strided& block) {
  return block.to_step != block.element || block.from_step != block.element;
}

}  // namespace

bool takes_alltoall(const Strided& block) {
  return block.element * block.count <= kLongestPacked || !has_gaps(block);
}

namespace {

void copy_block(std::byte* to, std::size_t to_step, const std::byte* from, std::size_t from_step,
                const Strided& block) {
  for (std::size_t i = 0; i < block.count; ++i) {
    copy_cached(to + i * to_step, from + i * from_step, block.element);
  }
}

/// On a node's first member: what its members send to those of each node, and receive from them.
Result<void> exchange_blocks(const Members& members, void* dest, const void* source, const Strided& block) {
  const auto& nodes = members.spanning->by_node();
  const auto& here = nodes[static_cast<std::size_t>(members.spanning->my_node())];
  const std::size_t packed = block.element * block.count;
  const std::size_t each_way = here.size() * static_cast<std::size_t>(members.size()) * packed;
  const auto scratch = ScratchBuffer::allocate(2 * each_way, "in which the blocks of a node's PEs go to other nodes");
  if (!scratch) {
    return scratch.error();
  }
  std::vector<std::span<const std::byte>> from;
  std::vector<std::span<std::byte>> to;
  std::byte* at = scratch->data();
  for (const auto& there : nodes) {
    from.emplace_back(at, here.size() * there.size() * packed);
    to.emplace_back(at + each_way, from.back().size());
    for (const int mine : here) {
      for (const int theirs : there) {
        const std::size_t begin = static_cast<std::size_t>(theirs) * block.from_step * block.count;
        copy_block(at, block.element, members.at(source, mine) + begin, block.from_step, block);
        at += packed;
      }
    }
  }
  if (auto ok = members.spanning->leaders().alltoall(from, to); !ok) {
    return ok;
  }
  at = scratch->data() + each_way;
  for (const auto& there : nodes) {
    for (const int theirs : there) {
      for (const int mine : here) {
        const std::size_t begin = static_cast<std::size_t>(theirs) * block.to_step * block.count;
        copy_block(members.at(dest, mine) + begin, block.to_step, at, block.element, block);
        at += packed;
      }
    }
  }
  return {};
}  // NOLINT(clang-analyzer-cplusplus.NewDeleteLeaks): the Result owns it

}  // namespace

Result<void> alltoall(const Members& members, void* dest, const void* source, const Strided& block) {
  const std::size_t packed = block.element * block.count;
  const bool nothing_to_pack = members.spanning->nodes() == members.size() || packed > kLongestPacked;
  if (nothing_to_pack && !has_gaps(block)) {
    return multi_leader::alltoall(members, dest, source, packed);
  }
  return members.spanning->sync_around(
      [&] { return block.count == 0 ? Result<void>{} : exchange_blocks(members, dest, source, block); });
}

Result<void> reduce(const Members& members, const Reduction& reduction, void* dest, const void* source,
                    std::size_t count) {
  auto* const to = static_cast<std::byte*>(dest);
  if (multi_leader::pays(members, count * reduction.element)) {
    return multi_leader::reduce(members, reduction, to, source, count);
  }
  return by_pieces(members, dest, count * reduction.element, kPiece, [&](std::size_t begin, std::size_t some) {
    // In place too: no other member reads the first member's source, which reads a piece of the others before they
    // receive it.
    move_bytes(to + begin, static_cast<const std::byte*>(source) + begin, some);
    const std::size_t elements = some / reduction.element;
    for_others_here(members, [&](int member) {
      if (elements != 0) {
        reduction.combine(to + begin, members.at(source, member) + begin, elements);
      }
    });
    return members.spanning->leaders().allreduce(to + begin, elements, reduction);
  });
}

namespace {

/// On a node's first member: its members' blocks for those of each node, and the sums of the nodes' for its own.
Result<void> exchange_sums(const Members& members, const Reduction& reduction, std::byte* blocks, std::size_t size) {
  const auto& nodes = members.spanning->by_node();
  const auto mine = static_cast<std::size_t>(members.spanning->my_node());
  const auto& here = nodes[mine];
  const std::size_t taken = here.size() * size;
  const auto scratch =
      ScratchBuffer::allocate(nodes.size() * taken, "in which the blocks of a node's PEs are combined");
  if (!scratch) {
    return scratch.error();
  }
  for_others_here(members, [&](int member) {
    const std::size_t all = static_cast<std::size_t>(members.size()) * size;
    reduction.combine(blocks, members.at(blocks, member), all / reduction.element);
  });
  std::vector<std::span<const std::byte>> from;
  std::vector<std::span<std::byte>> to;
  std::byte* at = blocks;
  for (const auto& there : nodes) {
    from.emplace_back(at, there.size() * size);
    to.emplace_back(scratch->data() + to.size() * taken, taken);
    at += from.back().size();
  }
  if (auto ok = members.spanning->leaders().alltoall(from, to); !ok) {
    return ok;
  }
  std::byte* const sums = scratch->data();
  for (std::size_t node = 1; node < nodes.size(); ++node) {
    reduction.combine(sums, to[node].data(), taken / reduction.element);
  }
  for (std::size_t i = 0; i < here.size(); ++i) {
    move_bytes(members.at(from[mine].data() + i * size, here[i]), sums + i * size, size);
  }
  return {};
}  // NOLINT(clang-analyzer-cplusplus.NewDeleteLeaks): the Result owns it

}  // namespace

Result<void> reduce_scatter(const Members& members, const Reduction& reduction, std::byte* blocks, std::size_t size) {
  return members.spanning->sync_around([&] { return exchange_sums(members, reduction, blocks, size); });
}

namespace {

/// On a node's first member: one piece of its members' results, computed from all members, so that nodes may alternate
/// among the members. In place too: nothing is written before all has been read.
Result<void> scan_piece(const Members& members, const Reduction& reduction, std::byte* dest, const void* source,
                        std::size_t begin, std::size_t size, bool inclusive) {
  const auto& nodes = members.spanning->by_node();
  const std::vector<std::uint64_t> sizes(static_cast<std::size_t>(members.size()), size);
  const Blocks blocks(nodes, sizes);
  const auto scratch =
      ScratchBuffer::allocate(size * (sizes.size() + 1), "in which a scan combines the values of all PEs");
  if (!scratch) {
    return scratch.error();
  }
  std::byte* const all = scratch->data();
  std::byte* const before = all + size * sizes.size();
  if (auto ok = gather_blocks(members, nodes, blocks, sizes, source, begin, all); !ok) {
    return ok;
  }
  std::fill_n(before, size, std::byte{});
  const auto is_here = [&](int member) { return members.spanning->node_of(member) == members.spanning->my_node(); };
  for (int member = 0; member < members.size(); ++member) {
    const std::byte* theirs = all + blocks.begins[static_cast<std::size_t>(member)];
    if (!inclusive && is_here(member)) {
      move_bytes(members.at(dest, member) + begin, before, size);
    }
    if (member == 0) {
      move_bytes(before, theirs, size);
    } else {
      reduction.combine(before, theirs, size / reduction.element);
    }
    if (inclusive && is_here(member)) {
      move_bytes(members.at(dest, member) + begin, before, size);
    }
  }
  return {};
}

}  // namespace

Result<void> scan(const Members& members, const Reduction& reduction, void* dest, const void* source, std::size_t count,
                  bool inclusive) {
  const std::size_t size = count * reduction.element;
  const std::size_t elements =
      std::max<std::size_t>(kPiece / static_cast<std::size_t>(members.size()) / reduction.element, 1);
  const std::size_t piece = elements * reduction.element;
  return members.spanning->sync_around([&]() -> Result<void> {
    Result<void> ok;
    for (std::size_t begin = 0; ok && begin < size; begin += piece) {
      ok = scan_piece(members, reduction, static_cast<std::byte*>(dest), source, begin, std::min(piece, size - begin),
                      inclusive);
    }
    return ok;
  });
}

}  // namespace shmem::on_nodes
