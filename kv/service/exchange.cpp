// SPDX-License-Identifier: Apache-2.0
#include "kv/service/exchange.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <thread>
#include <vector>

#include "base/memfd.hpp"

namespace shmem::exchange {
namespace {

using Clock = std::chrono::steady_clock;

/// Between two looks at the leases of readers.
constexpr std::chrono::microseconds kLook{50};

bool is_name(const std::string& name) {
  constexpr const char* kAllowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  return !name.empty() && name.size() <= kMostNameBytes && name.find_first_not_of(kAllowed) == std::string::npos;
}

Result<std::uint64_t> new_id() {
  std::uint64_t id = 0;
  while (id == 0) {
    if (::getrandom(&id, sizeof id, 0) != static_cast<ssize_t>(sizeof id)) {
      return fail_errno(errno, "cannot get random bits for a member of an exchange: getrandom");
    }
  }
  return id;
}

std::int32_t status_of(std::errc error) {
  return -static_cast<std::int32_t>(error);
}

Error problem(std::errc code, std::string text) {
  return fail(code, "shmem: " + std::move(text));
}

}  // namespace

Result<std::unique_ptr<Exchange>> Exchange::open(const std::string& name, const Settings& settings) {
  if (!is_name(name)) {
    return problem(
        std::errc::invalid_argument,
        fmt::format("an exchange cannot have this name of {} bytes: it has 1 to {} letters, digits, '.', '_' or '-'",
                    name.size(), kMostNameBytes));
  }
  auto directory = DirectoryWriter::create(settings.blocks);
  auto id = new_id();
  if (!directory || !id) {
    return directory ? id.error() : directory.error();
  }
  std::unique_ptr<Exchange> exchange(new Exchange(*id, settings, *std::move(directory)));
  const Self self{.id = *id,
                  .directory = exchange->directory_.file(),
                  .slots = settings.blocks,
                  .quota = settings.leases,
                  .lease_ms = settings.lease_ms};
  auto members = Members::open(name, self, std::chrono::milliseconds(settings.join_ms), exchange->counters_);
  if (!members) {
    return problem(members.error().code, members.error().text);
  }
  exchange->members_ = *std::move(members);
  exchange->transfers_ = std::make_unique<Transfers>(settings.transfers, [&here = *exchange](const Transfer& transfer) {
    return here.pull(transfer.blocks(), transfer.destinations(), transfer.statuses());
  });
  return exchange;
}

Exchange::Exchange(std::uint64_t id, const Settings& settings, DirectoryWriter directory)
    : id_(id), settings_(settings), directory_(std::move(directory)) {}

// ---- Blocks of this member ----

Result<std::uint32_t> Exchange::register_memory(shmemx_memory_t& memory) {
  const bool make = memory.fd < 0;
  if (make && (memory.address != nullptr || memory.offset != 0 || memory.bytes == 0)) {
    return problem(
        std::errc::invalid_argument,
        "memory without a file descriptor cannot be registered; pass the memfd that it is mapped from, or no "
        "address for new memory of at least 1 byte");
  }
  if (memory.offset < 0) {
    return problem(std::errc::invalid_argument, fmt::format("the offset of memory is {}", memory.offset));
  }
  Region region{.range = {static_cast<std::uint64_t>(memory.offset), memory.bytes}, .made = {}};
  base::UniqueFd file;
  if (make) {
    auto made =
        base::create_memfd("shmem-exchange-blocks", memory.bytes, base::MemfdPages::kUsual, base::MemfdSeals::kOpen);
    auto mapped = made ? base::Mapping::share(made->get(), memory.bytes) : Result<base::Mapping>(made.error());
    // Readers need not trust each other: only this process can write it.
    const auto sealed = mapped ? base::keep_pages(made->get()) : Result<void>(mapped.error());
    if (!sealed) {
      return problem(sealed.error().code, sealed.error().text);
    }
    file = *std::move(made);
    region.made = *std::move(mapped);
  } else {
    if (auto fits = check_memory(memory.fd, region.range); !fits) {
      return problem(fits.error().code, fits.error().text);
    }
    file.reset(::fcntl(memory.fd, F_DUPFD_CLOEXEC, 0));
    if (!file) {
      return problem(static_cast<std::errc>(errno), fmt::format("cannot duplicate file descriptor {}", memory.fd));
    }
  }
  const std::lock_guard lock(mutex_);
  if (regions_.size() == kMostRegions) {
    return problem(std::errc::no_space_on_device,
                   fmt::format("{} regions are registered, the most there may be; unregister one", kMostRegions));
  }
  const std::uint32_t number = ++last_region_;
  const Range range = region.range;
  memory.address = make ? region.made.data() : memory.address;
  regions_.emplace(number, std::move(region));
  members_->add_region(number, std::move(file), range);
  return number;
}

Result<void> Exchange::unregister_memory(std::uint32_t region) {
  const std::lock_guard lock(mutex_);
  if (!regions_.contains(region)) {
    return problem(std::errc::no_such_file_or_directory, fmt::format("there is no region {}", region));
  }
  if (directory_.uses(region)) {
    return problem(std::errc::device_or_resource_busy,
                   fmt::format("blocks of region {} are published; withdraw them first", region));
  }
  members_->remove_region(region);
  regions_.erase(region);
  return {};
}

std::errc Exchange::publish_one(const shmemx_exchange_entry_t& entry) {
  const auto key = Key::make(entry.key.data, entry.key.bytes);
  const auto region = regions_.find(entry.region);
  if (region == regions_.end()) {
    return std::errc::no_such_file_or_directory;
  }
  const std::uint64_t room = region->second.range.bytes;
  if (!key || entry.bytes == 0 || entry.offset > room || entry.bytes > room - entry.offset) {
    return std::errc::invalid_argument;
  }
  return directory_.publish(*key, {entry.region, entry.offset, entry.bytes, entry.layout});
}

int Exchange::publish(std::span<shmemx_exchange_entry_t> entries) {
  int published = 0;
  const std::lock_guard lock(mutex_);
  for (auto& entry : entries) {
    entry.status = status_of(publish_one(entry));
    published += entry.status == 0 ? 1 : 0;
  }
  add(counters_.published, static_cast<std::uint64_t>(published));
  return published;
}

bool Exchange::withdraw_one(const Key& key, std::size_t& missing) {
  const auto withdrawn = directory_.withdraw(key);
  if (!withdrawn) {
    ++missing;
    return false;
  }
  if (members_->is_leased(withdrawn->slot, lease_clock())) {
    // Whatever the reader says: no lease that was taken before lasts longer.
    if (Clock::now() - withdrawn->since < std::chrono::milliseconds(settings_.lease_ms)) {
      return false;
    }
    add(counters_.leases_expired);
  }
  directory_.remove(key);
  add(counters_.withdrawn);
  return true;
}

Result<void> Exchange::withdraw(std::span<const shmemx_exchange_key_t> keys, std::chrono::nanoseconds limit) {
  std::vector<Key> left;
  for (const auto& given : keys) {
    const auto key = Key::make(given.data, given.bytes);
    if (!key) {
      return problem(std::errc::invalid_argument,
                     fmt::format("a key of {} bytes; keys have 1 to {}", given.bytes, kMostKeyBytes));
    }
    left.push_back(*key);
  }
  const auto deadline = Clock::now() + limit;
  std::size_t missing = 0;
  while (true) {
    {
      const std::lock_guard lock(mutex_);
      std::erase_if(left, [&](const Key& key) {
        const std::size_t before = missing;
        return withdraw_one(key, missing) || missing > before;
      });
    }
    if (left.empty()) {
      break;
    }
    if (Clock::now() >= deadline) {
      return problem(
          std::errc::device_or_resource_busy,
          fmt::format("{} of {} blocks are leased by readers; withdraw them again before their memory is used",
                      left.size(), keys.size()));
    }
    std::this_thread::sleep_for(kLook);
  }
  return missing == 0 ? Result<void>()
                      : problem(std::errc::no_such_file_or_directory,
                                fmt::format("{} of {} keys are not published", missing, keys.size()));
}

// ---- Blocks of others ----

namespace {

std::int32_t find_one(const PeerList& peers, const shmemx_exchange_key_t& given, std::uint64_t layout,
                      std::uint32_t lease_ms, Block& block) {
  const auto key = Key::make(given.data, given.bytes);
  if (!key) {
    return -EINVAL;
  }
  std::int32_t status = -ENOENT;
  for (const auto& peer : peers) {
    const auto outcome =
        peer->is_alive() ? peer->find(*key, layout, lease_ms, block) : DirectoryReader::Outcome::kMissing;
    if (outcome == DirectoryReader::Outcome::kFound) {
      return block.status;
    }
    if (outcome == DirectoryReader::Outcome::kOtherLayout) {
      status = -EPROTOTYPE;
    }
  }
  return status;
}

}  // namespace

int Exchange::find(std::span<const shmemx_exchange_key_t> keys, std::uint64_t layout, std::uint32_t lease_ms,
                   Block* blocks) {
  const Peers peers = members_->peers();
  int found = 0;
  std::uint64_t over = 0;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    Block block{};
    const std::int32_t status = find_one(*peers, keys[i], layout, lease_ms, block);
    blocks[i] = status == 0 || status == -EDQUOT ? block : Block{};
    blocks[i].status = status;
    found += status == 0 ? 1 : 0;
    over += status == -EDQUOT ? 1 : 0;
  }
  add(counters_.found, static_cast<std::uint64_t>(found));
  add(counters_.missed, keys.size() - static_cast<std::size_t>(found) - over);
  add(counters_.over_quota, over);
  return found;
}

void Exchange::release(std::span<Block> blocks) {
  const Peers peers = members_->peers();
  for (Block& block : blocks) {
    Peer* const peer = block.lease != 0 ? find_peer(peers, block.seat) : nullptr;
    if (peer != nullptr && peer->id() == block.member) {
      peer->release(block);
    }
    block.lease = 0;  // without the peer there is no lease
  }
}

void Exchange::count_failure(std::int32_t status) {
  auto& count = status == -ESTALE       ? counters_.failed_stale
                : status == -EOWNERDEAD ? counters_.failed_dead
                : status == -EBADMSG    ? counters_.failed_corrupt
                                        : counters_.failed_other;
  add(count);
}

Result<void> Exchange::pull(std::span<const Block> blocks, void* const* destinations, std::int32_t* statuses) {
  std::vector<std::int32_t> own;
  if (statuses == nullptr) {
    own.resize(blocks.size());
    statuses = own.data();
  }
  const Peers peers = members_->peers();
  for (std::size_t begin = 0; begin < blocks.size();) {
    const Block& first = blocks[begin];
    std::size_t end = begin + 1;
    while (end < blocks.size() && blocks[end].member == first.member && blocks[end].seat == first.seat) {
      ++end;
    }
    Peer* const peer = find_peer(peers, first.seat);
    if (peer != nullptr && peer->id() == first.member) {
      peer->pull(blocks.subspan(begin, end - begin), destinations + begin, statuses + begin);
    } else {
      std::fill(statuses + begin, statuses + end, first.member == 0 ? -EINVAL : -EOWNERDEAD);
    }
    begin = end;
  }
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
  return problem(
      code,
      fmt::format("{} of {} blocks have not arrived; the first is number {}, of the member on seat {}: {}", failed,
                  blocks.size(), first_failed, blocks[first_failed].seat, base::errno_text(static_cast<int>(code))));
}

Result<TransferPointer> Exchange::start_pull(std::span<const Block> blocks, void* const* destinations,
                                             std::int32_t* statuses) {
  auto transfer = std::make_shared<Transfer>(std::vector<Block>(blocks.begin(), blocks.end()),
                                             std::vector<void*>(destinations, destinations + blocks.size()), statuses);
  if (auto added = transfers_->add(transfer); !added) {
    add(counters_.over_quota);
    return added.error();
  }
  return transfer;
}

int Exchange::members(std::span<shmemx_exchange_member_t> members) const {
  std::size_t count = 0;
  const Peers peers = members_->peers();
  for (const auto& peer : *peers) {
    if (!peer->is_alive()) {
      continue;
    }
    if (count < members.size()) {
      members[count] = {.id = peer->id(),
                        .seat = peer->seat(),
                        .pid = static_cast<std::uint32_t>(peer->pid()),
                        .blocks = peer->directory().blocks(),
                        .bytes = peer->directory().bytes(),
                        .most_blocks = peer->directory().slots(),
                        .refusals = peer->refusals()};
    }
    ++count;
  }
  return static_cast<int>(count);
}

Result<int> Exchange::list(std::uint32_t seat, std::uint64_t& cursor, std::span<shmemx_exchange_name_t> names,
                           Block* blocks) {
  const Peers peers = members_->peers();
  const Peer* const peer = find_peer(peers, seat);
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

void Exchange::stats(shmemx_exchange_stats_t& stats) const {
  const auto get = [](const Counters::Count& count) { return count.load(std::memory_order_relaxed); };
  stats = {};
  stats.members = static_cast<std::uint64_t>(members({}));
  stats.readers = members_->reader_count();
  stats.seat = members_->seat();
  stats.id = id_;
  {
    const std::lock_guard lock(mutex_);
    stats.blocks = directory_.blocks();
    stats.bytes = directory_.bytes();
  }
  stats.published = get(counters_.published);
  stats.withdrawn = get(counters_.withdrawn);
  stats.leases_expired = get(counters_.leases_expired);
  stats.refused = get(counters_.refused);
  stats.found = get(counters_.found);
  stats.missed = get(counters_.missed);
  stats.pulled_blocks = get(counters_.pulled_blocks);
  stats.pulled_bytes = get(counters_.pulled_bytes);
  stats.failed_stale = get(counters_.failed_stale);
  stats.failed_dead = get(counters_.failed_dead);
  stats.failed_corrupt = get(counters_.failed_corrupt);
  stats.failed_other = get(counters_.failed_other);
  stats.over_quota = get(counters_.over_quota);
}

}  // namespace shmem::exchange
