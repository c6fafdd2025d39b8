// SPDX-License-Identifier: Apache-2.0
#include "kv/exchange/remote_blocks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace shmem::exchange {
namespace {

/// The one on this seat, or null.
std::shared_ptr<RemotePeer> find_remote(const RemotePeers& peers, std::uint32_t seat, std::uint64_t member) {
  const auto found = std::find_if(peers->begin(), peers->end(), [&](const auto& peer) {
    return peer->identity().seat == seat && peer->identity().member == member && peer->is_alive();
  });
  return found != peers->end() ? *found : nullptr;
}

Block block_of(const RemotePeer& peer, const FoundItem& item) {
  return {.member = peer.identity().member,
          .epoch = item.epoch,
          .bytes = item.bytes,
          .layout = item.layout,
          .seat = peer.identity().seat,
          .slot = item.slot,
          .lease = item.lease,
          .status = item.status};
}

/// Takes an answer for a key. Returns true if its lease is of no use, since another member has the key, too.
bool take_answer(const RemotePeer& peer, const FoundItem& item, Block& block) {
  const bool is_here = item.status == 0 || item.status == -EDQUOT;
  if (is_here && block.status != 0 && (item.status == 0 || block.status != -EDQUOT)) {
    block = block_of(peer, item);
    return false;
  }
  if (item.status == -EPROTOTYPE && block.status == -ENOENT) {
    block.status = -EPROTOTYPE;
  }
  return is_here && item.lease != 0;
}

void release_items(RemotePeer& peer, std::span<const ReleaseItem> items) {
  while (!items.empty()) {
    const auto part = items.first(std::min(items.size(), kMostReleased));
    BodyWriter body(part.size_bytes());
    body.add_bytes(part.data(), part.size_bytes());
    RemoteHead head;
    head.kind = RemoteKind::kRelease;
    head.count = static_cast<std::uint32_t>(part.size());
    peer.tell(head, body);
    items = items.subspan(part.size());
  }
}

}  // namespace

void RemoteMembers::find(std::span<const Key> keys, std::uint64_t layout, std::uint32_t lease_ms,
                         std::span<Block> blocks) {
  const RemotePeers all = peers();
  for (std::size_t begin = 0; begin < keys.size(); begin += kMostRemoteKeys) {
    const auto part = keys.subspan(begin, std::min(kMostRemoteKeys, keys.size() - begin));
    std::vector<std::unique_ptr<RemoteFind>> calls;
    for (const auto& peer : *all) {
      if (peer->is_alive()) {
        calls.push_back(std::make_unique<RemoteFind>(*peer, part, layout, lease_ms));
      }
    }
    // As on this node: those of which something could not be read come last.
    std::stable_partition(calls.begin(), calls.end(), [](const auto& call) { return call->peer().refusals() == 0; });
    for (const auto& call : calls) {
      const auto items = call->finish();
      std::vector<ReleaseItem> surplus;
      for (std::size_t i = 0; i < items.size(); ++i) {
        if (take_answer(call->peer(), items[i], blocks[begin + i])) {
          surplus.push_back({items[i].slot, items[i].lease});
        }
      }
      release_items(call->peer(), surplus);
    }
  }
}

void RemoteMembers::release(std::span<const Block> blocks) {
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::vector<ReleaseItem>> leases;
  for (const Block& block : blocks) {
    if (block.lease != 0 && block.seat >= kFirstRemoteSeat) {
      leases[{block.seat, block.member}].push_back({block.slot, block.lease});
    }
  }
  const RemotePeers all = leases.empty() ? nullptr : peers();
  for (const auto& [member, items] : leases) {
    if (const auto peer = find_remote(all, member.first, member.second); peer != nullptr) {
      release_items(*peer, items);
    }
  }
}

std::size_t RemoteMembers::describe(std::span<shmemx_exchange_member_t> members) {
  const RemotePeers all = peers();
  std::vector<std::unique_ptr<RemoteDescribe>> calls;
  std::size_t count = 0;
  for (const auto& peer : *all) {
    if (peer->is_alive() && count++ < members.size()) {
      calls.push_back(std::make_unique<RemoteDescribe>(*peer));
    }
  }
  for (std::size_t i = 0; i < calls.size(); ++i) {
    calls[i]->finish();  // a member that does not answer has 0 blocks
    const RemotePeer& peer = calls[i]->peer();
    members[i] = {.id = peer.identity().member,
                  .seat = peer.identity().seat,
                  .pid = peer.identity().pid,
                  .blocks = calls[i]->blocks(),
                  .bytes = calls[i]->bytes(),
                  .most_blocks = peer.identity().slots,
                  .refusals = peer.refusals()};
  }
  return count;
}

Result<int> RemoteMembers::list(std::uint32_t seat, std::uint64_t& cursor, std::span<shmemx_exchange_name_t> names,
                                Block* blocks) {
  const RemotePeers all = peers();
  const auto peer = std::find_if(all->begin(), all->end(),
                                 [&](const auto& one) { return one->identity().seat == seat && one->is_alive(); });
  if (peer == all->end()) {
    return fail(std::errc::no_such_file_or_directory, fmt::format("there is no member on seat {}", seat));
  }
  std::size_t count = 0;
  while (count < names.size()) {
    RemoteList call(**peer, cursor, names.size() - count);
    if (!call.finish()) {
      return fail(
          static_cast<std::errc>(-(*peer)->status()),
          fmt::format("the member on seat {} (at {}) has ended or does not answer", seat, (*peer)->identity().place));
    }
    if (call.blocks().empty()) {
      break;
    }
    cursor = call.cursor();
    for (const auto& [item, key] : call.blocks()) {
      names[count].bytes = key.bytes();
      std::memcpy(names[count].data, key.data(), sizeof names[count].data);
      blocks[count] = block_of(**peer, item);
      blocks[count].lease = 0;
      ++count;
    }
  }
  return static_cast<int>(count);
}

void RemotePulls::add(const Block& block, void* destination, std::size_t index) {
  OfMember& member = members_[{block.seat, block.member}];
  member.blocks.push_back(block);
  member.destinations.push_back(destination);
  member.indexes.push_back(index);
}

void RemotePulls::start() {
  for (auto& [key, member] : members_) {
    member.statuses.assign(member.blocks.size(), -EOWNERDEAD);
    auto peer = peers_ != nullptr ? find_remote(peers_, key.first, key.second) : nullptr;
    if (peer != nullptr) {
      member.pull = std::make_unique<RemotePull>(std::move(peer), member.blocks, member.destinations.data(),
                                                 member.statuses.data());
    }
  }
}

void RemotePulls::finish(std::int32_t* statuses) {
  for (auto& [key, member] : members_) {
    if (member.pull != nullptr) {
      member.pull->finish();
    }
    for (std::size_t i = 0; i < member.indexes.size(); ++i) {
      statuses[member.indexes[i]] = member.statuses[i];
    }
  }
}

}  // namespace shmem::exchange
