// SPDX-License-Identifier: Apache-2.0
#include "kv/exchange/local_peer.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <new>
#include <thread>

#include "shmem/memory/copy.hpp"
#include "shmem/memory/ordering.hpp"

namespace shmem::exchange {
namespace {

/// Blocks under one fence: few enough for the quota, enough to make its cost small.
constexpr std::size_t kBatch = 32;
static_assert(kBatch <= kPullWords);
constexpr std::uint32_t kMostLeaseMs = 60'000;
constexpr auto kStale = static_cast<std::errc>(ESTALE);
/// Messages taken in a row: a member that floods this one must not keep a thread.
constexpr int kMostMessages = 256;
/// A pull with two full batches of other threads before it waits, for much longer than this.
constexpr std::chrono::microseconds kWordPause{20};

/// REQUIRES: the number of slots has been checked, where memory is looked at.
std::uint32_t slots_of_use(const ChannelMessage& welcome) {
  return (welcome.flags & kWantsUse) != 0 ? welcome.number : 0;
}

std::int32_t status_of(std::errc error) {
  return -static_cast<std::int32_t>(error);
}

}  // namespace

Result<std::shared_ptr<LocalPeer>> LocalPeer::open(Offer& offer, Disposal& disposal) {
  const ChannelMessage& message = offer.welcome.message;
  const auto& files = offer.welcome.files;
  const auto refused = [&] {
    return fail(std::errc::protocol_error,
                fmt::format("the member on seat {} does not follow the protocol", offer.seat));
  };
  if (message.kind != Kind::kWelcome || !files[0] || !files[1] || message.quota > kMostLeases) {
    return refused();
  }
  auto directory = DirectoryReader::open(files[0].get(), message.number);
  if (!directory) {
    return directory.error();
  }
  const int leases = files[1].get();
  const std::size_t size = lease_bytes(message.quota, slots_of_use(message));
  if (auto shared = check_shared(leases, size); !shared) {
    return shared.error();
  }
  // Stores to it wait while its owner punches holes: no longer than that takes in so small a file.
  struct stat status {};
  if (::fstat(leases, &status) != 0 || static_cast<std::size_t>(status.st_size) != size) {
    return refused();
  }
  auto memory = base::Mapping::share(leases, size);
  if (!memory) {
    return memory.error();
  }
  std::shared_ptr<LocalPeer> peer(new LocalPeer(offer, *std::move(directory), *std::move(memory), disposal));
  for (Received& region : offer.regions) {
    if (peer->take(region) != std::errc{}) {
      peer->end();
      disposal.add(std::move(peer));
      return refused();
    }
  }
  return peer;
}

LocalPeer::LocalPeer(Offer& offer, DirectoryReader directory, base::Mapping leases, Disposal& disposal)
    : id_(offer.welcome.message.member),
      seat_(offer.seat),
      pid_(offer.channel.peer()),
      lease_ms_(std::min(offer.welcome.message.lease_ms, kMostLeaseMs)),
      directory_(std::move(directory)),
      leases_(std::move(leases), offer.welcome.message.quota, slots_of_use(offer.welcome.message)),
      disposal_(disposal),
      channel_(std::move(offer.channel)) {}

/// Leaves what it does not need.
std::errc LocalPeer::take(Received& received) try {
  const ChannelMessage& message = received.message;
  if (message.member != id_) {
    return std::errc::protocol_error;
  }
  if (message.kind == Kind::kGone && !received.has_files()) {
    if (auto gone = memories_.extract(message.number)) {
      disposal_.add(std::move(gone.mapped()));
    }
    return {};
  }
  if (message.kind != Kind::kRegion || memories_.size() >= kMostRegions || !received.files[0] ||
      memories_.contains(message.number)) {
    return std::errc::protocol_error;
  }
  auto memory = PeerMemory::open(std::move(received.files[0]), {message.offset, message.bytes}, room_.get());
  if (memory) {
    memories_[message.number] = std::make_shared<const PeerMemory>(*std::move(memory));
    received.files[0].reset();  // it is mapped, and a file in memory: that does not wait
    return {};
  }
  refuse();  // pulls of its blocks fail, others go on
  return ++refused_regions_ <= kMostRegions ? std::errc{} : std::errc::protocol_error;
} catch (const std::bad_alloc&) {
  return std::errc::not_enough_memory;
}

std::errc LocalPeer::receive() {
  const std::lock_guard lock(mutex_);
  for (int i = 0; i < kMostMessages; ++i) {
    std::optional<Received> received;
    // What comes may have to be closed. If much waits for that, only its end matters, and what takes nothing.
    std::errc error = channel_.receive(received, disposal_.is_behind() ? kLeaveMessagesWithFds : kMostMessageFds);
    if (!received && error == std::errc{}) {
      break;
    }
    if (error == std::errc{}) {
      error = take(*received);
    }
    if (received && received->has_files()) {
      disposal_.take(*std::move(received));
    }
    if (error == std::errc::too_many_files_open) {
      return error;
    }
    if (error != std::errc{}) {
      end();
      return error;
    }
  }
  return {};
}

void LocalPeer::describe(const Found& found, Block& block) const {
  block = {.member = id_,
           .epoch = found.epoch,
           .bytes = found.place.bytes,
           .layout = found.place.layout,
           .seat = seat_,
           .slot = found.slot,
           .lease = 0,
           .status = 0};
}

/// False: the block is not what was found any more.
bool LocalPeer::lease(Block& block, std::uint32_t lease_ms) {
  const auto word = leases_.hold(block.slot);
  if (!word) {
    block.status = -EDQUOT;
    return true;
  }
  leases_.set(*word, block.slot, lease_clock() + std::min(lease_ms, lease_ms_));
  // The owner sees the lease, or this member sees the changed epoch: DirectoryWriter::withdraw.
  quiet();
  if (!directory_.still(block.slot, block.epoch)) {
    block.lease = *word + 1;
    release(block);
    return false;
  }
  block.lease = *word + 1;
  return true;
}

DirectoryReader::Outcome LocalPeer::find(const Key& key, std::uint64_t layout, std::uint32_t lease_ms, Block& block) {
  Found found;
  const auto outcome = directory_.find(key, layout, found);
  if (outcome == DirectoryReader::Outcome::kFound) {
    describe(found, block);
    leases_.use(block.slot);
    if (lease_ms > 0 && !lease(block, lease_ms)) {
      return DirectoryReader::Outcome::kMissing;
    }
  } else if (outcome == DirectoryReader::Outcome::kCorrupt) {
    refuse();
  }
  return outcome;
}

void LocalPeer::release(Block& block) {
  const std::uint32_t word = block.lease - 1;
  if (leases_.end_lease(word, block.slot)) {
    leases_.give(Leases::Use::kHeld, {&word, 1});
  }
  block.lease = 0;
}

LocalPeer::Memory LocalPeer::memory(std::uint32_t region, std::errc& error) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = memories_.find(region); found != memories_.end()) {
      return found->second;
    }
  }
  // Its owner sent the message before it published the block, so that it waits here.
  error = receive();
  const std::lock_guard lock(mutex_);
  const auto found = memories_.find(region);
  return found != memories_.end() ? found->second : nullptr;
}

/// The blocks that are copied between two fences.
class LocalPeer::Batch {
 public:
  Batch(LocalPeer& peer, std::span<const Block> blocks, void* const* destinations, std::int32_t* statuses)
      : peer_(peer), blocks_(blocks), destinations_(destinations), statuses_(statuses) {
    // Other threads give their words back as soon as they have copied. They may have a lower priority on this
    // processor: a yield would keep it from them.
    while ((count_ = peer_.leases_.take(Leases::Use::kPull, std::span(words_).first(wanted()))) == 0) {
      std::this_thread::sleep_for(kWordPause);
    }
  }
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;
  ~Batch() { peer_.leases_.give(Leases::Use::kPull, std::span(words_).first(count_)); }

  /// Returns the number of blocks that have a status now.
  std::size_t pull() {
    const std::uint32_t end = lease_clock() + peer_.lease_ms_;
    for (std::size_t i = 0; i < count_; ++i) {
      peer_.leases_.set(words_[i], blocks_[i].slot, end);
    }
    // As in LocalPeer::lease.
    quiet();
    for (std::size_t i = 0; i < count_; ++i) {
      statuses_[i] = status_of(begin(i));
    }
    copies_.finish();
    // What was copied is what the epoch says, unless that has changed by now.
    after_reads();
    for (std::size_t i = 0; i < count_; ++i) {
      if (statuses_[i] == 0 && !peer_.directory_.still(blocks_[i].slot, blocks_[i].epoch)) {
        statuses_[i] = status_of(kStale);
      } else if (statuses_[i] == 0) {
        peer_.leases_.use(blocks_[i].slot);
      }
    }
    return count_;
  }

 private:
  [[nodiscard]] std::size_t wanted() const { return std::min(kBatch, blocks_.size()); }

  std::errc begin(std::size_t i) {
    const Block& block = blocks_[i];
    if (destinations_[i] == nullptr) {
      return std::errc::invalid_argument;
    }
    if (!peer_.is_alive()) {
      return std::errc::owner_dead;
    }
    BlockPlace place;
    if (const auto error = peer_.directory_.read(block.slot, block.epoch, place); error != std::errc{}) {
      return error == std::errc::bad_message ? peer_.refuse() : error;
    }
    if (place.bytes != block.bytes) {
      // The owner changed an entry that it said to be valid, or the caller the block.
      return peer_.refuse();
    }
    std::errc error{};
    const PeerMemory* const memory = memory_of(place.region, error);
    if (memory == nullptr && error == std::errc::too_many_files_open) {
      return error;
    }
    if (memory == nullptr || !memory->has(place.offset, place.bytes)) {
      return peer_.is_alive() ? peer_.refuse() : std::errc::owner_dead;
    }
    auto* const to = static_cast<std::byte*>(destinations_[i]);
    const std::byte* const from = memory->at(place.offset);
    if (from == nullptr) {
      error = memory->read(place.offset, to, place.bytes);
      if (error != std::errc{}) {
        add(peer_.refusals_);
      }
      return error;
    }
    if (blocks_.size() == 1) {
      copy_bytes(to, from, place.bytes);  // a batch of one has nothing to learn from
    } else {
      copies_.add(to, from, place.bytes);
    }
    return {};
  }

  /// Kept until the end of the batch.
  const PeerMemory* memory_of(std::uint32_t region, std::errc& error) {
    if (memory_count_ == 0 || region != region_) {
      Memory found = peer_.memory(region, error);
      if (found == nullptr) {
        return nullptr;
      }
      region_ = region;
      memories_[memory_count_++] = std::move(found);
    }
    return memories_[memory_count_ - 1].get();
  }

  LocalPeer& peer_;
  std::span<const Block> blocks_;
  void* const* destinations_;
  std::int32_t* statuses_;
  std::array<std::uint32_t, kBatch> words_{};
  std::size_t count_ = 0;
  BatchCopy copies_;
  std::array<Memory, kBatch> memories_;
  std::size_t memory_count_ = 0;
  std::uint32_t region_ = 0;
};

void LocalPeer::pull(std::span<const Block> blocks, void* const* destinations, std::int32_t* statuses) {
  while (!blocks.empty()) {
    const std::size_t done = Batch(*this, blocks, destinations, statuses).pull();
    blocks = blocks.subspan(done);
    destinations += done;
    statuses += done;
  }
}

}  // namespace shmem::exchange
