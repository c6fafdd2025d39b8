// SPDX-License-Identifier: Apache-2.0
#include "kv/exchange/holder_session.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <new>
#include <utility>

#include "base/memfd.hpp"
#include "shmem/memory/copy.hpp"

namespace shmem::exchange {
namespace {

/// Each engine fills one half while the holder copies the other, both in the processor's cache.
constexpr std::size_t kStagingBytes = std::size_t{2} << 20;
/// The longest time between two parts of a block.
constexpr std::chrono::seconds kLongestPause{1};
/// What counts: most messages take less.
constexpr std::chrono::milliseconds kLongTurn{2};
/// The longest pause for what counted: less than engines wait for an answer.
constexpr std::chrono::milliseconds kLongestTurnAway{50};
constexpr auto kLeaseIsOver = static_cast<std::errc>(ESTALE);

std::optional<Key> key_of(const HolderItem& item) {
  return item.key_bytes <= kMostKeyBytes ? Key::make(item.key.data(), item.key_bytes) : std::nullopt;
}

/// That the thread has used: the time for which other processes had the processor does not count.
std::chrono::nanoseconds processor_time() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace

void HolderSession::abandon() {
  if (writing_ != nullptr) {
    blocks_.give_back(writing_->writing);
    writing_.reset();
  }
}

void HolderSession::end_late_writing(std::chrono::steady_clock::time_point now) {
  if (writing_ != nullptr && now >= writing_->deadline) {
    abandon();
  }
}

bool HolderSession::serve(const shmemx_exchange_holder_stats_t& stats) try {
  const std::errc error = socket_.receive(buffer_);
  if (error == std::errc::resource_unavailable_try_again) {
    return true;
  }
  const auto* const head = buffer_.as<HolderHead>();
  if (error != std::errc{} || head == nullptr) {
    return false;
  }
  if (head->protocol != kHolderProtocol && head->protocol >> 8 == kHolderProtocol >> 8) {
    const HolderHead mine = holder_head(HolderKind::kRefused, 0);
    return refuse(-EPROTONOSUPPORT, fmt::format("the holder has version {} of libshmem, and this process has {}",
                                                text_in(mine.version), text_in(head->version)));
  }
  if (head->protocol != kHolderProtocol) {
    return false;
  }
  if (!is_attached()) {
    const auto* const request = buffer_.as<HolderAttach>();
    return head->kind == HolderKind::kAttach && request != nullptr && attach(*request);
  }
  HolderHead answer = holder_head(HolderKind::kCleared, head->number);
  switch (head->kind) {
    case HolderKind::kPut:
    case HolderKind::kDiscard:
    case HolderKind::kPin:
    case HolderKind::kUnpin: {
      const auto* const request =
          head->count <= kMostItems ? buffer_.as<HolderItems>(bytes_of_items(head->count)) : nullptr;
      return request != nullptr && (head->kind != HolderKind::kPut || is_modest(*request)) && answer_items(*request);
    }
    case HolderKind::kClear:
      answer.count = blocks_.clear(tenant_) ? 1 : 0;
      return send(&answer, sizeof answer);
    case HolderKind::kAskStats: {
      const HolderStatsAnswer told{holder_head(HolderKind::kStats, head->number), stats};
      return send(&told, sizeof told);
    }
    default:
      return false;
  }
} catch (const std::bad_alloc&) {
  return false;  // the engine connects again
}

bool HolderSession::serve_in_turn(const shmemx_exchange_holder_stats_t& stats, std::size_t engines) {
  if (std::chrono::steady_clock::now() < next_turn_) {
    return true;
  }
  const auto begin = processor_time();
  const bool goes_on = serve(stats);
  if (const auto took = processor_time() - begin; took > kLongTurn) {
    next_turn_ = std::chrono::steady_clock::now() +
                 std::min<std::chrono::nanoseconds>(static_cast<int>(engines) * took, kLongestTurnAway);
  }
  return goes_on;
}

// ---- Attaching ----

bool HolderSession::refuse(int code, const std::string& text) {
  HolderRefused answer{.head = holder_head(HolderKind::kRefused, 0)};
  answer.head.code = code;
  set_text(answer.text, text);
  send(&answer, sizeof answer);
  return false;
}

bool HolderSession::attach(const HolderAttach& request) {
  const std::string_view name = text_in(request.tenant);
  if (!is_plain_name(name)) {
    return refuse(-EINVAL,
                  fmt::format("a tenant's name has up to {} letters, digits, '.', '_' or '-'", kMostNameBytes));
  }
  auto file = base::create_memfd("shmem-exchange-staging", kStagingBytes);
  auto mapped = file ? base::Mapping::read_only(file->get(), kStagingBytes) : Result<base::Mapping>(file.error());
  // Its memory is the holder's, whose control group pays for it, and not the engine's.
  if (!mapped || ::fallocate(file->get(), 0, 0, kStagingBytes) != 0) {
    return refuse(-ENOMEM, "the holder has no memory, or no file descriptors, for a further engine");
  }
  tenant_ = blocks_.tenant(name);
  HolderAttached answer{.head = holder_head(HolderKind::kAttached, request.head.number)};
  answer.member = holder_;
  answer.staging_bytes = kStagingBytes;
  answer.most_bytes = blocks_.most_bytes();
  // The only descriptor by which it can be written: the engine has it alone.
  const std::array<int, 2> files{file->get(), blocks_.events()};
  staging_ = *std::move(mapped);
  return socket_.send(&answer, sizeof answer, files) == std::errc{};
}

// ---- Blocks ----

/// What an engine asks for at once takes a moment: as many bytes as it has staging memory, room for one large block.
bool HolderSession::is_modest(const HolderItems& request) const {
  std::uint64_t bytes = 0;
  bool has_parts = false;
  for (std::uint32_t i = 0; i < request.head.count; ++i) {
    const HolderItem& item = request.items[i];
    has_parts = has_parts || item.part != item.bytes;
    bytes += item.part <= staging_.size() ? item.part : 0;  // else nothing is copied
  }
  return bytes <= staging_.size() && (!has_parts || request.head.count == 1);
}

bool HolderSession::answer_items(const HolderItems& request) {
  HolderStatuses answer{.head = holder_head(HolderKind::kStatuses, request.head.number, request.head.count)};
  for (std::uint32_t i = 0; i < request.head.count; ++i) {
    const HolderItem& item = request.items[i];
    const std::errc status = request.head.kind == HolderKind::kPut ? put(item) : change(request.head.kind, item);
    answer.statuses[i] = -static_cast<std::int32_t>(status);
  }
  return send(&answer, bytes_of_statuses(request.head.count));
}

std::errc HolderSession::put(const HolderItem& item) {
  const auto key = key_of(item);
  if (!key || item.bytes == 0 || item.part == 0 || item.at > item.bytes || item.part > item.bytes - item.at ||
      item.offset > staging_.size() || item.part > staging_.size() - item.offset) {
    return std::errc::invalid_argument;
  }
  return item.part == item.bytes ? put_whole(item, *key) : put_part(item, *key);
}

std::errc HolderSession::put_whole(const HolderItem& item, const Key& key) {
  HeldBlocks::Writing writing{
      .key = key, .layout = item.layout, .bytes = item.bytes, .tenant = tenant_, .pin = (item.flags & kPinned) != 0};
  if (const auto error = blocks_.begin(writing); error != std::errc{}) {
    return error;
  }
  copy_bytes(blocks_.memory_of(writing), staging_.data() + item.offset, item.bytes);
  return publish(writing);
}

/// Without memory for what belongs to a block, its range is free again.
std::errc HolderSession::publish(const HeldBlocks::Writing& writing) try {
  return blocks_.publish(writing);
} catch (const std::bad_alloc&) {
  blocks_.give_back(writing);
  throw;
}

std::errc HolderSession::put_part(const HolderItem& item, const Key& key) {
  if (item.at == 0) {
    abandon();
    auto opened = std::make_unique<Open>();
    opened->writing = {
        .key = key, .layout = item.layout, .bytes = item.bytes, .tenant = tenant_, .pin = (item.flags & kPinned) != 0};
    if (const auto error = blocks_.begin(opened->writing); error != std::errc{}) {
      return error;
    }
    writing_ = std::move(opened);
  }
  if (writing_ == nullptr || item.at != writing_->done || item.bytes != writing_->writing.bytes ||
      item.layout != writing_->writing.layout || !key.is(writing_->writing.key)) {
    return kLeaseIsOver;
  }
  copy_bytes(blocks_.memory_of(writing_->writing) + item.at, staging_.data() + item.offset, item.part);
  writing_->done += item.part;
  writing_->deadline = std::chrono::steady_clock::now() + kLongestPause;
  if (writing_->done < item.bytes) {
    return {};
  }
  const auto whole = std::move(writing_);
  return publish(whole->writing);
}

std::errc HolderSession::change(HolderKind kind, const HolderItem& item) {
  const auto key = key_of(item);
  if (!key) {
    return std::errc::invalid_argument;
  }
  return kind == HolderKind::kDiscard ? blocks_.discard(*key, item.layout)
                                      : blocks_.set_pinned(*key, item.layout, kind == HolderKind::kPin);
}

}  // namespace shmem::exchange
