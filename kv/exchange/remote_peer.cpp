// SPDX-License-Identifier: Apache-2.0
#include "kv/exchange/remote_peer.hpp"

#include <algorithm>
#include <cerrno>
#include <new>
#include <numeric>
#include <utility>

#include "kv/exchange/memory.hpp"
#include "shmem/memory/cached_copy.hpp"

namespace shmem::exchange {
namespace {

/// Requests of a pull under way.
constexpr std::size_t kAtOnce = 2;
/// For the thread that takes answers, after a caller that got no processor until the limit had passed.
constexpr std::chrono::seconds kLongestGrace{1};
/// The number of the probe; those of calls begin at 1.
constexpr std::uint64_t kProbe = 0;

/// What blocks may take, at most.
std::chrono::milliseconds time_of(std::uint64_t bytes) {
  return std::chrono::milliseconds(bytes / (kLeastBytesPerSecond / 1000));
}

}  // namespace

// ---- The peer ----

void RemotePeer::end(std::errc why) {
  const std::lock_guard lock(mutex_);
  end_locked(why);
}

void RemotePeer::end_locked(std::errc why) {
  int none = 0;
  ended_.compare_exchange_strong(none, static_cast<int>(why), std::memory_order_acq_rel);
  changed_.notify_all();
}

bool RemotePeer::receive(const RemoteHead& head, std::span<const std::byte> bytes) {
  if (head.number == kProbe && head.kind == RemoteKind::kDescribed) {
    proved_.store(true, std::memory_order_release);
    return true;
  }
  const std::lock_guard lock(mutex_);
  const auto found = calls_.find(head.number);
  if (found == calls_.end()) {
    return true;  // its caller has given up
  }
  heard_ = Clock::now();
  RemoteCall& call = *found->second;
  BodyReader body(bytes);
  if (call.over_ || head.kind != call.answer_ || !call.take(head, body) || !body.empty()) {
    add(refusals_);
    return false;
  }
  if (call.over_) {
    changed_.notify_all();
  }
  return true;
}

void RemotePeer::start(RemoteCall& call, RemoteHead head, BodyWriter& body) {
  {
    const std::lock_guard lock(mutex_);
    const auto now = Clock::now();
    if (calls_.empty()) {
      heard_ = now;  // it has not been asked anything since it was last heard
    }
    call.number_ = last_number_ + 1;
    call.deadline_ = now + limit_ + time_of(bytes_ + call.bytes_);
    calls_[call.number_] = &call;
    ++last_number_;
    bytes_ += call.bytes_;
  }
  head.number = call.number_;
  try {
    tell(head, body);
  } catch (...) {
    const std::lock_guard lock(mutex_);
    remove(call);
    throw;
  }
}

void RemotePeer::tell(RemoteHead head, BodyWriter& body) {
  head.session = identity_.requests;
  if (is_alive()) {
    send_(body.take(head));
  }
}

void RemotePeer::probe() {
  RemoteHead head;
  head.kind = RemoteKind::kDescribe;
  head.number = kProbe;
  BodyWriter body(1);
  tell(head, body);
}

void RemotePeer::remove(const RemoteCall& call) {
  bytes_ -= calls_.erase(call.number_) > 0 ? call.bytes_ : 0;
}

/// Until done(). False: the member has ended, has been silent for the limit, or needs too long. If this thread itself
/// comes too late, the answer may be there, and not taken yet: it waits once more, for the time by which it is late.
template <typename Done>
bool RemotePeer::wait(std::unique_lock<std::mutex>& lock, Clock::time_point deadline, Done done) {
  std::optional<Clock::time_point> grace;
  while (!done()) {
    if (!is_alive()) {
      return false;
    }
    auto end = std::min(heard_ + limit_, deadline);
    if (const auto now = Clock::now(); now >= end) {
      grace = grace.value_or(now + std::min<Clock::duration>(now - end, kLongestGrace));
      end = *grace;
      if (now >= end) {
        end_locked(std::errc::timed_out);
        silent_();
        return false;
      }
    }
    changed_.wait_until(lock, end);
  }
  return true;
}

bool RemotePeer::finish(RemoteCall& call) {
  std::unique_lock lock(mutex_);
  const bool answered = wait(lock, call.deadline_, [&] { return call.over_; });
  remove(call);
  return answered;
}

bool RemotePeer::try_turn() {
  const std::lock_guard lock(mutex_);
  if (turns_ == 0 || !is_alive()) {
    return false;
  }
  --turns_;
  return true;
}

bool RemotePeer::take_turn() {
  std::unique_lock lock(mutex_);
  // Those that have the turns wait no longer than their deadlines.
  if (!wait(lock, Clock::time_point::max(), [&] { return turns_ > 0; })) {
    return false;
  }
  --turns_;
  return true;
}

void RemotePeer::give_turn() {
  const std::lock_guard lock(mutex_);
  ++turns_;
  changed_.notify_all();
}

// ---- Calls ----

namespace {

RemoteHead request_head(RemoteKind kind, std::uint64_t first, std::uint64_t second, std::size_t count) {
  RemoteHead head;
  head.kind = kind;
  head.first = first;
  head.second = second;
  head.count = static_cast<std::uint32_t>(count);
  return head;
}

/// Whether an owner may say this about a block. The number of the lease is not checked: only the owner uses it.
bool makes_sense(const FoundItem& item) {
  switch (item.status) {
    case 0:
      return item.epoch != 0 && item.bytes != 0 && item.bytes <= kMostMemoryBytes;
    case -ENOENT:
    case -EPROTOTYPE:
    case -EDQUOT:
      return item.lease == 0;
    default:
      return false;
  }
}

}  // namespace

RemoteFind::RemoteFind(RemotePeer& peer, std::span<const Key> keys, std::uint64_t layout, std::uint32_t lease_ms)
    : RemoteCall(RemoteKind::kFound), peer_(peer), items_(keys.size()) {
  BodyWriter body(keys.size() * (sizeof(std::uint32_t) + kMostKeyBytes));
  for (const Key& key : keys) {
    body.add(key.bytes());
    body.add_bytes(key.data(), key.bytes());
  }
  peer_.start(*this, request_head(RemoteKind::kFind, layout, lease_ms, keys.size()), body);
}

bool RemoteFind::take(const RemoteHead& head, BodyReader& body) {
  if (head.count != items_.size()) {
    return false;
  }
  for (FoundItem& item : items_) {
    const auto next = body.take<FoundItem>();
    if (!next || !makes_sense(*next)) {
      return false;
    }
    item = *next;
  }
  set_over();
  return true;
}

RemoteList::RemoteList(RemotePeer& peer, std::uint64_t cursor, std::size_t most)
    : RemoteCall(RemoteKind::kListed), peer_(peer), most_(std::min(most, kMostListed)), cursor_(cursor) {
  BodyWriter body(1);
  peer_.start(*this, request_head(RemoteKind::kList, cursor, most_, 0), body);
}

bool RemoteList::take(const RemoteHead& head, BodyReader& body) {
  if (head.count > most_) {
    return false;
  }
  // Each slot once, in their order, up to the next cursor: anything else could make a list without an end.
  std::uint64_t next = cursor_;
  for (std::uint32_t i = 0; i < head.count; ++i) {
    const auto item = body.take<FoundItem>();
    const auto key = item && item->status == 0 && makes_sense(*item) ? take_key(body, item->key_bytes) : std::nullopt;
    if (!key || item->slot < next) {
      return false;
    }
    next = std::uint64_t{item->slot} + 1;
    blocks_.push_back({*item, *key});
  }
  if (head.count > 0 && (next > head.first || head.first > peer_.identity().slots)) {
    return false;
  }
  cursor_ = head.first;
  set_over();
  return true;
}

RemoteDescribe::RemoteDescribe(RemotePeer& peer) : RemoteCall(RemoteKind::kDescribed), peer_(peer) {
  BodyWriter body(1);
  peer_.start(*this, request_head(RemoteKind::kDescribe, 0, 0, 0), body);
}

bool RemoteDescribe::take(const RemoteHead& head, BodyReader& /*body*/) {
  blocks_ = head.first;
  bytes_ = head.second;
  set_over();
  return true;
}

// ---- Pulls ----

/// Up to kMostPullItems blocks.
class RemotePull::Request final : public RemoteCall {
 public:
  Request(RemotePeer& peer, std::span<const Block> blocks, void* const* destinations, std::int32_t* statuses)
      : RemoteCall(RemoteKind::kPieces, bytes_of(blocks)),
        peer_(peer),
        blocks_(blocks),
        destinations_(destinations),
        statuses_(statuses),
        left_(blocks.size()) {
    BodyWriter body(blocks.size() * sizeof(PullItem));
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      body.add(PullItem{blocks[i].epoch, blocks[i].bytes, blocks[i].slot, 0});
      statuses_[i] = -EINPROGRESS;
    }
    peer_.start(*this, request_head(RemoteKind::kPull, 0, 0, blocks.size()), body);
  }

  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;
  ~Request() override { peer_.finish(*this); }

  void finish() {
    if (!peer_.finish(*this)) {
      std::replace(statuses_, statuses_ + blocks_.size(), -EINPROGRESS, peer_.status());
    }
  }

 private:
  /// The caller can have given any number.
  static std::uint64_t bytes_of(std::span<const Block> blocks) {
    static constexpr std::uint64_t kMost = std::uint64_t{1} << 44;
    return std::accumulate(blocks.begin(), blocks.end(), std::uint64_t{0}, [](std::uint64_t sum, const Block& block) {
      return std::min(sum + std::min(block.bytes, kMost), kMost);
    });
  }

  bool take(const RemoteHead& head, BodyReader& body) override {
    if (head.count == 0) {
      return false;
    }
    for (std::uint32_t i = 0; i < head.count; ++i) {
      const auto item = body.take<PieceItem>();
      if (!item || item->index >= blocks_.size() || statuses_[item->index] != -EINPROGRESS || !take(*item, body)) {
        return false;
      }
    }
    if (left_ == 0) {
      set_over();
    }
    return true;
  }

  /// The owner sends the parts of a block in their order.
  bool take(const PieceItem& item, BodyReader& body) {
    std::uint64_t& done = done_[item.index];
    std::int32_t& status = statuses_[item.index];
    const std::uint64_t size = blocks_[item.index].bytes;
    if (item.status != 0) {
      status = item.status == -ESTALE || item.status == -EIO ? item.status : -EBADMSG;
      if (status != -ESTALE) {
        peer_.note_refusal();
      }
      --left_;
      return item.bytes == 0;
    }
    const auto bytes =
        item.offset == done && item.bytes > 0 && item.bytes <= size - done ? body.take_bytes(item.bytes) : std::nullopt;
    if (!bytes) {
      return false;
    }
    copy_cached(static_cast<std::byte*>(destinations_[item.index]) + done, bytes->data(), bytes->size());
    done += bytes->size();
    if (done == size) {
      status = 0;
      --left_;
    }
    return true;
  }

  RemotePeer& peer_;
  std::span<const Block> blocks_;
  void* const* destinations_;
  std::int32_t* statuses_;
  std::size_t left_;
  std::array<std::uint64_t, kMostPullItems> done_{};
};

RemotePull::RemotePull(std::shared_ptr<RemotePeer> peer, std::span<const Block> blocks, void* const* destinations,
                       std::int32_t* statuses)
    : peer_(std::move(peer)), left_(blocks), destinations_(destinations), statuses_(statuses) {
  requests_.reserve(kAtOnce);
  start_some(false);
}

/// The statuses are not read any more. Transfers under way write to the memory until they end, so this waits for them.
RemotePull::~RemotePull() {
  while (!requests_.empty()) {
    finish_oldest();
  }
}

/// Asks for the next blocks, or gives them a status if that is impossible.
void RemotePull::start_some(bool may_wait) {
  const auto is_wrong = [&](std::size_t i) { return destinations_[i] == nullptr || left_[i].bytes == 0; };
  std::size_t count = 0;
  while (count < left_.size() && count < kMostPullItems && !is_wrong(count)) {
    ++count;
  }
  if (count == 0 && !left_.empty()) {
    statuses_[count++] = -EINVAL;
  } else if (peer_->try_turn() || (may_wait && peer_->take_turn())) {
    try {
      requests_.push_back(std::make_unique<Request>(*peer_, left_.first(count), destinations_, statuses_));
    } catch (const std::bad_alloc&) {
      peer_->give_turn();
      throw;
    }
  } else if (!peer_->is_alive()) {
    std::fill_n(statuses_, count, peer_->status());
  } else {
    return;
  }
  left_ = left_.subspan(count);
  destinations_ += count;
  statuses_ += count;
}

void RemotePull::finish_oldest() {
  requests_.front()->finish();
  peer_->give_turn();
  requests_.erase(requests_.begin());
}

void RemotePull::finish() {
  while (!left_.empty() || !requests_.empty()) {
    if (!left_.empty() && requests_.size() < kAtOnce) {
      const std::size_t before = left_.size();
      start_some(requests_.empty());
      if (left_.size() < before) {
        continue;
      }
    }
    finish_oldest();
  }
}

}  // namespace shmem::exchange
