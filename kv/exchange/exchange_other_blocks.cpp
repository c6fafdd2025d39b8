// SPDX-License-Identifier: Apache-2.0
// Blocks of other members: they are found, leased, pulled and listed.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <vector>

#include "kv/exchange/exchange.hpp"

#include "base/size_text.hpp"
#include "kv/exchange/remote_blocks.hpp"

namespace shmem::exchange {
namespace {

std::int32_t find_on_node(const PeerList& peers, const shmemx_exchange_key_t& given, std::uint64_t layout,
                          std::uint32_t lease_ms, Block& block) {
  const auto key = Key::make(given.data, given.bytes);
  if (!key) {
    return -EINVAL;
  }
  std::int32_t status = -ENOENT;
  Block over{};  // found, over the quota of its owner
  // Members of which something could not be read come last: they must not hide the same key of another one.
  for (const bool had_refusals : {false, true}) {
    for (const auto& peer : peers) {
      if (!peer->is_alive() || (peer->refusals() > 0) != had_refusals) {
        continue;
      }
      const auto outcome = peer->find(*key, layout, lease_ms, block);
      if (outcome == DirectoryReader::Outcome::kFound && block.status == 0) {
        return 0;
      }
      if (outcome == DirectoryReader::Outcome::kFound && status != -EDQUOT) {
        over = block;
        status = -EDQUOT;
      } else if (outcome == DirectoryReader::Outcome::kOtherLayout && status == -ENOENT) {
        status = -EPROTOTYPE;
      }
    }
  }
  if (status == -EDQUOT) {
    block = over;
  }
  return status;
}

}  // namespace

int Exchange::find(std::span<const shmemx_exchange_key_t> keys, std::uint64_t layout, std::uint32_t lease_ms,
                   Block* blocks) {
  const Timer timer(times_ ? &times_->find : nullptr);
  const Peers peers = members_->peers();
  int found = 0;
  std::uint64_t over = 0;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    Block block{};
    const std::int32_t status = find_on_node(*peers, keys[i], layout, lease_ms, block);
    blocks[i] = status == 0 || status == -EDQUOT ? block : Block{};
    blocks[i].status = status;
    found += status == 0 ? 1 : 0;
    over += status == -EDQUOT ? 1 : 0;
  }
  if (remote() != nullptr && found + static_cast<int>(over) < static_cast<int>(keys.size())) {
    found += find_remote(keys, layout, lease_ms, blocks);
    over = static_cast<std::uint64_t>(
        std::count_if(blocks, blocks + keys.size(), [](const Block& block) { return block.status == -EDQUOT; }));
  }
  add(counters_.found, static_cast<std::uint64_t>(found));
  add(counters_.missed, keys.size() - static_cast<std::size_t>(found) - over);
  add(counters_.over_quota, over);
  return found;
}

/// Asks members on other nodes for the keys that no member of this node has. Returns the number found.
int Exchange::find_remote(std::span<const shmemx_exchange_key_t> keys, std::uint64_t layout, std::uint32_t lease_ms,
                          Block* blocks) {
  std::vector<Key> missing;
  std::vector<std::size_t> indexes;
  std::vector<Block> answers;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (blocks[i].status == -ENOENT || blocks[i].status == -EPROTOTYPE) {
      missing.push_back(*Key::make(keys[i].data, keys[i].bytes));
      indexes.push_back(i);
      answers.push_back(blocks[i]);
    }
  }
  remote()->find(missing, layout, lease_ms, answers);
  int found = 0;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    blocks[indexes[i]] = answers[i];
    found += answers[i].status == 0 ? 1 : 0;
  }
  return found;
}

void Exchange::release(std::span<Block> blocks) {
  if (remote() != nullptr) {
    remote()->release(blocks);
  }
  const Peers peers = members_->peers();
  for (Block& block : blocks) {
    LocalPeer* const peer = block.lease != 0 ? find_peer(peers, block.seat) : nullptr;
    if (peer != nullptr && peer->id() == block.member) {
      peer->release(block);
    }
    block.lease = 0;  // without the peer there is no lease
  }
}

void Exchange::count_failure(std::int32_t status) {
  auto& count = status == -ESTALE       ? counters_.failed_stale
                : status == -EOWNERDEAD ? counters_.failed_dead
                : status == -ETIMEDOUT  ? counters_.failed_timeout
                : status == -EBADMSG    ? counters_.failed_corrupt
                                        : counters_.failed_other;
  add(count);
}

Result<void> Exchange::pull(std::span<const Block> blocks, void* const* destinations, std::int32_t* statuses) {
  const Timer timer(times_ ? &times_->pull : nullptr);
  // A call for one block allocates nothing.
  std::int32_t only = 0;
  std::vector<std::int32_t> own;
  if (statuses == nullptr && blocks.size() == 1) {
    statuses = &only;
  } else if (statuses == nullptr) {
    own.resize(blocks.size());
    statuses = own.data();
  }
  try {
    pull_all(blocks, destinations, statuses);
  } catch (const std::bad_alloc&) {
    std::fill(statuses, statuses + blocks.size(), -ENOMEM);  // no block may count as arrived that has not
    throw;
  }
  return count_pulled(blocks, statuses);
}

void Exchange::pull_all(std::span<const Block> blocks, void* const* destinations, std::int32_t* statuses) {
  RemotePulls remote_pulls(remote() != nullptr ? remote()->peers() : nullptr);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (blocks[i].seat >= kFirstRemoteSeat) {
      remote_pulls.add(blocks[i], destinations[i], i);
    }
  }
  remote_pulls.start();
  const Peers peers = members_->peers();
  for (std::size_t begin = 0; begin < blocks.size();) {
    const Block& first = blocks[begin];
    std::size_t end = begin + 1;
    while (end < blocks.size() && blocks[end].member == first.member && blocks[end].seat == first.seat) {
      ++end;
    }
    LocalPeer* const peer = find_peer(peers, first.seat);
    if (first.seat >= kFirstRemoteSeat) {
      // Under way.
    } else if (peer != nullptr && peer->id() == first.member) {
      peer->pull(blocks.subspan(begin, end - begin), destinations + begin, statuses + begin);
    } else {
      std::fill(statuses + begin, statuses + end, first.member == 0 ? -EINVAL : -EOWNERDEAD);
    }
    begin = end;
  }
  remote_pulls.finish(statuses);
}

Result<void> Exchange::count_pulled(std::span<const Block> blocks, const std::int32_t* statuses) {
  std::size_t failed = 0;
  std::size_t first_failed = 0;
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (statuses[i] == 0) {
      bytes += blocks[i].bytes;
      continue;
    }
    first_failed = failed == 0 ? i : first_failed;
    ++failed;
    count_failure(statuses[i]);
  }
  add(counters_.pulled_blocks, blocks.size() - failed);
  add(counters_.pulled_bytes, bytes);
  if (failed == 0) {
    return {};
  }
  const auto code = static_cast<std::errc>(-statuses[first_failed]);
  return problem(code, fmt::format("{} of {} not arrived; the first is number {}, of the member on seat {}: {}", failed,
                                   base::count(blocks.size(), "block") + (failed == 1 ? " has" : " have"), first_failed,
                                   blocks[first_failed].seat, base::errno_text(static_cast<int>(code))));
}

Result<TransferPointer> Exchange::start_pull(std::span<const Block> blocks, void* const* destinations,
                                             std::int32_t* statuses) {
  auto transfer = std::make_shared<Transfer>(std::vector<Block>(blocks.begin(), blocks.end()),
                                             std::vector<void*>(destinations, destinations + blocks.size()), statuses);
  const bool of_others =
      std::any_of(blocks.begin(), blocks.end(), [](const Block& block) { return block.seat >= kFirstRemoteSeat; });
  if (auto added = (of_others ? remote_transfers_ : transfers_)->add(transfer); !added) {
    add(counters_.over_quota);
    return added.error();
  }
  return transfer;
}

bool Exchange::has_published(std::uint64_t member, const Key& key, std::uint64_t layout, std::uint64_t bytes) const {
  const Peers peers = members_->peers();
  for (const auto& peer : *peers) {
    if (peer->id() == member && peer->is_alive()) {
      Block block{};
      return peer->find(key, layout, 0, block) == DirectoryReader::Outcome::kFound && block.layout == layout &&
             block.bytes == bytes;
    }
  }
  return false;
}

Result<int> Exchange::list(std::uint32_t seat, std::uint64_t& cursor, std::span<shmemx_exchange_name_t> names,
                           Block* blocks) {
  if (seat >= kFirstRemoteSeat && remote() != nullptr) {
    auto listed = remote()->list(seat, cursor, names, blocks);
    return listed ? listed : problem(listed.error().code, listed.error().text);
  }
  const Peers peers = members_->peers();
  const LocalPeer* const peer = find_peer(peers, seat);
  if (peer == nullptr) {
    return problem(std::errc::no_such_file_or_directory, fmt::format("there is no member on seat {}", seat));
  }
  std::size_t count = 0;
  Found found;
  Key key;
  while (count < names.size() && cursor < peer->directory().slots() &&
         peer->directory().next(static_cast<std::uint32_t>(cursor), found, key)) {
    cursor = std::uint64_t{found.slot} + 1;
    names[count].bytes = key.bytes();
    std::memcpy(names[count].data, key.data(), sizeof names[count].data);
    peer->describe(found, blocks[count]);
    ++count;
  }
  return static_cast<int>(count);
}

}  // namespace shmem::exchange
