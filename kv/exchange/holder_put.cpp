// SPDX-License-Identifier: Apache-2.0
// HolderClient::put: blocks go to the holder by way of the staging memory.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "kv/exchange/holder_client.hpp"
#include "kv/exchange/memory.hpp"

namespace shmem::exchange {
namespace {

constexpr std::uint64_t kLine = 64;
/// Bytes that a holder copies in a millisecond, if it does nothing but answer as late as it may.
constexpr std::uint64_t kSlowestPerMs = std::uint64_t{256} << 10;

}  // namespace

bool HolderClient::fill_item(HolderItem& item, const shmemx_exchange_key_t& key, std::uint64_t layout) {
  if (key.data == nullptr || key.bytes == 0 || key.bytes > kMostKeyBytes) {
    return false;
  }
  item = {};
  item.layout = layout;
  item.key_bytes = static_cast<std::uint32_t>(key.bytes);
  std::memcpy(item.key.data(), key.data, key.bytes);
  return true;
}

/// One call of put(): fills one half of the staging memory while the holder copies the other.
class HolderClient::Putting {
 public:
  Putting(HolderClient& client, std::span<shmemx_exchange_put_t> puts)
      : client_(client), puts_(puts), statuses_(puts.size(), -EINPROGRESS) {
    request_.head = holder_head(HolderKind::kPut, 0);
  }

  Result<void> execute() {
    for (std::size_t i = 0; i < puts_.size(); ++i) {
      if (auto added = add(i); !added) {
        return added;
      }
    }
    auto done = flush();
    for (std::size_t i = 0; i < client_.halves_.size() && done; ++i) {
      done = client_.finish(client_.halves_[i], statuses_.data());
    }
    return done;
  }
  /// `failure`: of those that the holder has not answered.
  void tell(std::int32_t failure) const {
    for (std::size_t i = 0; i < puts_.size(); ++i) {
      puts_[i].status = statuses_[i] == -EINPROGRESS ? failure : statuses_[i];
    }
  }

 private:
  [[nodiscard]] std::uint64_t half_bytes() const { return client_.staging_.size() / 2; }

  Result<void> add(std::size_t i) {
    const shmemx_exchange_put_t& put = puts_[i];
    HolderItem item;
    const auto key = Key::make(put.key.data, put.key.bytes);
    if (!key || put.source == nullptr || put.bytes == 0 || (put.flags & ~std::uint32_t{SHMEMX_EXCHANGE_PIN}) != 0 ||
        !fill_item(item, put.key, put.layout)) {
      statuses_[i] = -EINVAL;
      return {};
    }
    if (put.bytes > client_.most_bytes_) {
      statuses_[i] = -EMSGSIZE;
      return {};
    }
    item.bytes = put.bytes;
    item.flags = (put.flags & SHMEMX_EXCHANGE_PIN) != 0 ? kPinned : 0;
    if (client_.exchange_.has_published(client_.holder_, *key, put.layout, put.bytes)) {
      statuses_[i] = -EEXIST;  // nothing is copied
      return {};
    }
    return put.bytes <= half_bytes() ? add_whole(i, item) : add_parts(i, item);
  }

  Result<void> add_whole(std::size_t i, HolderItem& item) {
    const std::uint64_t unit = item.bytes < kPage ? kLine : kPage;
    if (count_ == kMostItems || (used_ + unit - 1) / unit * unit + item.bytes > half_bytes()) {
      if (auto flushed = flush(); !flushed) {
        return flushed;
      }
    }
    used_ = (used_ + unit - 1) / unit * unit;
    return add_part(i, item, 0, item.bytes);
  }

  /// A block that is larger than a half. It ends with the first part that fails.
  Result<void> add_parts(std::size_t i, HolderItem& item) {
    if (auto flushed = flush(); !flushed) {
      return flushed;
    }
    for (std::uint64_t at = 0; at < item.bytes; at += half_bytes()) {
      auto added = add_part(i, item, at, std::min(half_bytes(), item.bytes - at));
      added = added ? flush() : added;
      if (!added) {
        return added;
      }
      if (at == 0) {
        // Whether there is room, or the block is there, is worth knowing before the rest is copied.
        if (auto first = client_.finish(other_half(), statuses_.data()); !first) {
          return first;
        }
      }
      if (statuses_[i] != -EINPROGRESS) {
        return {};
      }
    }
    return {};
  }

  Result<void> add_part(std::size_t i, HolderItem& item, std::uint64_t at, std::uint64_t bytes) {
    if (count_ == 0) {
      if (auto free = client_.finish(half(), statuses_.data()); !free) {
        return free;
      }
    }
    item.at = at;
    item.part = bytes;
    item.offset = half_ * half_bytes() + used_;
    std::memcpy(client_.staging_.data() + item.offset, static_cast<const std::byte*>(puts_[i].source) + at, bytes);
    used_ += bytes;
    request_.items[count_++] = item;
    half().places.push_back({i, at + bytes == item.bytes});
    return {};
  }

  Result<void> flush() {
    if (count_ == 0) {
      return {};
    }
    request_.head.number = ++client_.last_request_;
    request_.head.count = static_cast<std::uint32_t>(count_);
    auto sent = client_.send(&request_, bytes_of_items(count_));
    if (sent) {
      half().request = request_.head.number;
      half().count = count_;
    }
    count_ = 0;
    used_ = 0;
    half_ = 1 - half_;
    return sent;
  }

  Half& half() { return client_.halves_[half_]; }
  Half& other_half() { return client_.halves_[1 - half_]; }

  HolderClient& client_;
  std::span<shmemx_exchange_put_t> puts_;
  std::vector<std::int32_t> statuses_;
  HolderItems request_;
  std::size_t count_ = 0;
  std::uint64_t used_ = 0;  // of the half
  std::size_t half_ = 0;
};

Result<void> HolderClient::put(std::span<shmemx_exchange_put_t> puts) {
  const std::lock_guard lock(mutex_);
  Putting putting(*this, puts);
  std::uint64_t bytes = 0;
  for (const auto& put : puts) {
    bytes += std::min(put.bytes, kMostMemoryBytes / (puts.size() + 1));
  }
  auto done = begin(std::chrono::milliseconds(bytes / kSlowestPerMs));
  done = done ? putting.execute() : done;
  for (Half& half : halves_) {
    half.places.clear();  // they are of this call
  }
  putting.tell(done ? -EPROTO : -static_cast<std::int32_t>(done.error().code));
  return done;
}

}  // namespace shmem::exchange
