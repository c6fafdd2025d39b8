// SPDX-License-Identifier: Apache-2.0
#include "kv/exchange/holder_blocks.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace shmem::exchange {
namespace {

/// Blocks that are looked at before the next to go goes, although readers use it: they may set the bits of all.
constexpr int kMostLooks = 256;
/// Blocks that are evicted for one of `size` bytes, beside their neighbours.
constexpr std::uint64_t most_victims(std::uint64_t size) {
  constexpr std::uint64_t kFew = 64;
  constexpr std::uint64_t kSmallBytes = 2048;
  constexpr std::uint64_t kMost = 32'768;
  return std::min(kFew + size / kSmallBytes, kMost);
}
/// Blocks that each reader can have noted as used at once, whatever it sets.
constexpr std::size_t kMostNoted = 16'384;
/// Evicted at once by clear(): a moment, in which no put is answered.
constexpr int kClearedAtOnce = 1024;
/// No block is larger than this, or this part of the memory: room for it is made in a moment.
constexpr std::uint64_t kMostBlockBytes = std::uint64_t{128} << 20;
constexpr std::uint64_t kPartsOfMemory = 4;

}  // namespace

HeldBlocks::HeldBlocks(Exchange& exchange, std::uint32_t region, HolderMemory memory, HolderEvents events,
                       const std::vector<TenantLimit>& tenants)
    : exchange_(exchange),
      region_(region),
      memory_(memory),
      events_(std::move(events)),
      most_bytes_(std::min(memory.bytes() / kPartsOfMemory, kMostBlockBytes)) {
  for (const auto& [name, bytes] : tenants) {
    tenants_.push_back({.name = name, .limit = bytes});
  }
  tenant("");
}

std::uint32_t HeldBlocks::tenant(std::string_view name) {
  const auto named = [&](std::string_view wanted) {
    return static_cast<std::uint32_t>(
        std::find_if(tenants_.begin(), tenants_.end(), [&](const auto& one) { return one.name == wanted; }) -
        tenants_.begin());
  };
  if (const std::uint32_t number = named(name); number < tenants_.size()) {
    return number;
  }
  if (tenants_.size() >= kMostTenants) {
    return named("");
  }
  tenants_.push_back({.name = std::string(name), .limit = memory_.bytes()});
  return static_cast<std::uint32_t>(tenants_.size() - 1);
}

// ---- Storing ----

std::errc HeldBlocks::check(const Writing& writing) {
  if (const auto slot = exchange_.held(writing.key, writing.layout)) {
    touch(*slot);
    const bool same = held_[*slot].bytes == writing.bytes;
    there_already_ += same ? 1 : 0;
    return same ? std::errc::file_exists : std::errc::message_size;
  }
  const bool is_written = std::any_of(writing_.begin(), writing_.end(), [&](const Writing* other) {
    return other->layout == writing.layout && other->key.is(writing.key);
  });
  if (is_written) {
    return std::errc::device_or_resource_busy;
  }
  if (writing.bytes > most_bytes_ || HolderArena::rounded(writing.bytes) > tenants_[writing.tenant].limit) {
    return std::errc::message_size;
  }
  return writing.pin && pinned_bytes_ + writing.bytes > memory_.bytes() / 2 ? static_cast<std::errc>(EDQUOT)
                                                                            : std::errc{};
}

std::errc HeldBlocks::begin(Writing& writing) {
  std::errc error = check(writing);
  Tenant& tenant = tenants_[writing.tenant];
  if (error == std::errc{}) {
    writing_.reserve(writing_.size() + 1);
    error = make_room(tenant, HolderArena::rounded(writing.bytes), writing.begin);
  }
  if (error != std::errc{}) {
    refused_ += error == std::errc::file_exists ? 0 : 1;
    return error;
  }
  writing_.push_back(&writing);
  writing_bytes_ += writing.bytes;
  tenant.bytes += HolderArena::rounded(writing.bytes);
  return {};
}

void HeldBlocks::give_back(const Writing& writing) {
  if (std::erase(writing_, &writing) == 0) {
    return;
  }
  writing_bytes_ -= writing.bytes;
  const std::uint64_t size = HolderArena::rounded(writing.bytes);
  tenants_[writing.tenant].bytes -= size;
  arena_.give({writing.begin, writing.begin + size});
}

/// The directory may be full. If there is room in it, but not near the place of this key, evicting does not help.
std::errc HeldBlocks::publish_with_room(const Writing& writing, std::uint32_t& slot) {
  const BlockPlace place{region_, writing.begin, writing.bytes, writing.layout};
  std::errc error = exchange_.publish_held(writing.key, place, slot);
  const auto is_full = [this] { return ranges_.size() + leaving_.size() >= exchange_.settings().blocks; };
  for (std::uint64_t i = 0; i < most_victims(0) && error == std::errc::no_space_on_device && is_full(); ++i) {
    const auto next = victim(nullptr);
    if (!next) {
      break;
    }
    ++evicted_;
    evict(*next);
    error = exchange_.publish_held(writing.key, place, slot);
  }
  return error;
}

std::errc HeldBlocks::publish(const Writing& writing) {
  // What allocates comes first: a block is published with all that belongs to it, or not at all.
  Order place{0};
  std::map<std::uint64_t, std::uint32_t> made{{writing.begin, 0}};
  auto range = made.extract(made.begin());
  // The directory has no slots but those of blocks that are here, of blocks that leave, and of this one.
  held_.resize(std::max(held_.size(), ranges_.size() + leaving_.size() + 1));
  std::uint32_t slot = 0;
  const std::errc error = publish_with_room(writing, slot);
  if (error != std::errc{}) {
    give_back(writing);
    ++refused_;
    return error;
  }
  std::erase(writing_, &writing);
  writing_bytes_ -= writing.bytes;
  Tenant& tenant = tenants_[writing.tenant];
  place.front() = slot;
  Order& order = writing.pin ? tenant.pinned : tenant.recent;
  order.splice(order.end(), place);
  held_[slot] = {.layout = writing.layout,
                 .bytes = writing.bytes,
                 .begin = writing.begin,
                 .used = ++clock_,
                 .turn = turn_,
                 .tenant = writing.tenant,
                 .pinned = writing.pin,
                 .place = std::prev(order.end())};
  range.mapped() = slot;
  ranges_.insert(std::move(range));
  bytes_ += writing.bytes;
  pinned_bytes_ += writing.pin ? writing.bytes : 0;
  ++stored_;
  static_cast<void>(exchange_.take_use(slot));  // of the block that had the slot before
  events_.add(SHMEMX_EXCHANGE_STORED, writing.key, writing.layout, writing.bytes);
  return {};
}

// ---- Evicting ----

HeldBlocks::Order& HeldBlocks::list_of(const Held& held) {
  Tenant& tenant = tenants_[held.tenant];
  return held.pinned ? tenant.pinned : held.turn == turn_ ? tenant.recent : tenant.order;
}

/// An engine has used it now.
void HeldBlocks::touch(std::uint32_t slot) {
  Held& held = held_[slot];
  Order& from = list_of(held);
  held.used = ++clock_;
  held.turn = turn_;
  Order& to = list_of(held);
  to.splice(to.end(), from, held.place);
}

/// A reader has used it before the present turn of note_use() ends, or uses it now.
void HeldBlocks::defer(std::uint32_t slot) {
  Held& held = held_[slot];
  Order& list = list_of(held);
  list.splice(list.end(), list, held.place);
  held.used = std::max(held.used, turn_clock_);
}

void HeldBlocks::note_use() {
  for (const std::uint32_t slot : exchange_.take_used(static_cast<std::uint32_t>(held_.size()), kMostNoted)) {
    // What is recent was put later; a slot without a block has no range.
    if (slot < held_.size() && !held_[slot].pinned && held_[slot].turn != turn_ && is_here(slot)) {
      defer(slot);
    }
  }
  for (Tenant& tenant : tenants_) {
    tenant.order.splice(tenant.order.end(), tenant.recent);
  }
  ++turn_;
  turn_clock_ = ++clock_;
}

bool HeldBlocks::is_here(std::uint32_t slot) const {
  const auto range = ranges_.find(held_[slot].begin);
  return range != ranges_.end() && range->second == slot;
}

/// The one whose next block to go was used the longest time ago. Null: no tenant has one.
HeldBlocks::Tenant* HeldBlocks::oldest_tenant() {
  Tenant* oldest = nullptr;
  std::uint64_t used = 0;
  for (Tenant& one : tenants_) {
    const auto next = next_of(one);
    if (next && (oldest == nullptr || held_[*next].used < used)) {
      oldest = &one;
      used = held_[*next].used;
    }
  }
  return oldest;
}

std::optional<std::uint32_t> HeldBlocks::next_of(const Tenant& tenant) {
  const Order& order = tenant.order.empty() ? tenant.recent : tenant.order;
  return order.empty() ? std::nullopt : std::optional(order.front());
}

/// The block that is the next to go, of one tenant or of all. Nothing: readers have leased all.
std::optional<std::uint32_t> HeldBlocks::victim(Tenant* only) {
  for (int looks = 0; looks < 2 * kMostLooks; ++looks) {
    const Tenant* const tenant = only != nullptr ? only : oldest_tenant();
    const auto slot = tenant != nullptr ? next_of(*tenant) : std::nullopt;
    if (!slot) {
      return std::nullopt;
    }
    const bool is_used = exchange_.take_use(*slot) && looks < kMostLooks;
    if (!is_used && !exchange_.is_read(*slot)) {
      return slot;
    }
    defer(*slot);
  }
  return std::nullopt;
}

/// Withdraws a block. False: its memory is not free yet, since a reader has just leased it.
bool HeldBlocks::evict(std::uint32_t slot) {
  const Held held = held_[slot];
  Tenant& tenant = tenants_[held.tenant];
  leaving_.reserve(leaving_.size() + 1);
  const Key key = exchange_.held_key(slot);
  list_of(held).erase(held.place);
  ranges_.erase(held.begin);
  tenant.bytes -= held.size();
  bytes_ -= held.bytes;
  pinned_bytes_ -= held.pinned ? held.bytes : 0;
  const Leaving leaving{exchange_.withdraw_held(slot), {held.begin, held.begin + held.size()}};
  events_.add(SHMEMX_EXCHANGE_REMOVED, key, held.layout, held.bytes);
  if (!exchange_.remove_held(leaving.withdrawn)) {
    leaving_.push_back(leaving);
    return false;
  }
  arena_.give(leaving.part);
  return true;
}

void HeldBlocks::end_leaving() {
  std::erase_if(leaving_, [this](const Leaving& one) {
    if (!exchange_.remove_held(one.withdrawn)) {
      return false;
    }
    arena_.give(one.part);
    return true;
  });
}

/// It was put or read a moment ago.
bool HeldBlocks::is_recent(std::uint32_t slot) {
  if (exchange_.take_use(slot)) {
    defer(slot);
    return true;
  }
  return held_[slot].turn + 1 >= turn_ || held_[slot].used >= turn_clock_;
}

/// Evicts the block of a range, unless it is of use.
bool HeldBlocks::evict_at(std::map<std::uint64_t, std::uint32_t>::iterator range) {
  const std::uint32_t slot = range->second;
  if (held_[slot].pinned || is_recent(slot) || exchange_.is_read(slot)) {
    return false;
  }
  ++evicted_;
  return evict(slot);
}

/// Evicts neighbours of the free part at `place` until it has `size` bytes: a large block in place of small ones, which
/// are not next to each other in the order of use.
void HeldBlocks::evict_around(std::uint64_t place, std::uint64_t size) {
  while (const auto free = arena_.at(place)) {
    if (free->size() >= size) {
      return;
    }
    const auto next = ranges_.lower_bound(free->end);
    if (next != ranges_.end() && next->first == free->end && evict_at(next)) {
      continue;
    }
    const auto before = ranges_.lower_bound(free->begin);
    if (before == ranges_.begin()) {
      return;
    }
    const auto last = std::prev(before);
    if (last->first + held_[last->second].size() != free->begin || !evict_at(last)) {
      return;
    }
  }
}

/// Evicts blocks of a tenant until it may have `size` bytes more.
bool HeldBlocks::make_room_of(Tenant& tenant, std::uint64_t size) {
  // A tenant that may have all is limited by the memory: which of all blocks goes is decided elsewhere.
  if (tenant.limit == memory_.bytes()) {
    return true;
  }
  for (std::uint64_t victims = 0; tenant.bytes + size > tenant.limit; ++victims) {
    const auto next = victims < most_victims(size) ? victim(&tenant) : std::nullopt;
    if (!next) {
      return false;
    }
    ++evicted_;
    evict(*next);
  }
  return true;
}

std::errc HeldBlocks::make_room(Tenant& tenant, std::uint64_t size, std::uint64_t& begin) {
  if (!make_room_of(tenant, size)) {
    return static_cast<std::errc>(EDQUOT);
  }
  bool no_memory = false;
  std::uint64_t freed = 0;
  for (std::uint64_t victims = 0; victims < most_victims(size);) {
    if (const auto part = arena_.take(size)) {
      begin = *part;
      return {};
    }
    arena_.reserve();
    const auto more = no_memory ? std::nullopt : memory_.grow(size);
    if (more) {
      arena_.grow(*more);
      continue;
    }
    no_memory = true;
    const auto next = victim(nullptr);
    if (!next) {
      break;
    }
    const Held held = held_[*next];
    ++victims;
    ++evicted_;
    // In the order of use as long as that may leave room in a row.
    if (evict(*next) && (freed += held.size()) > size) {
      evict_around(held.begin, size);
    }
  }
  return memory_.grown() < memory_.bytes() ? std::errc::not_enough_memory : std::errc::no_space_on_device;
}

// ---- By key ----

std::errc HeldBlocks::discard(const Key& key, std::uint64_t layout) {
  std::errc error = std::errc::no_such_file_or_directory;
  while (const auto slot = layout != 0 ? exchange_.held(key, layout) : exchange_.held_in_any_layout(key)) {
    if (held_[*slot].pinned) {
      return std::errc::device_or_resource_busy;
    }
    evict(*slot);
    ++discarded_;
    error = {};
  }
  return error;
}

std::errc HeldBlocks::set_pinned(const Key& key, std::uint64_t layout, bool pinned) {
  const auto slot = exchange_.held(key, layout);
  if (!slot) {
    return std::errc::no_such_file_or_directory;
  }
  Held& held = held_[*slot];
  if (held.pinned == pinned) {
    return {};
  }
  if (pinned && pinned_bytes_ + held.bytes > memory_.bytes() / 2) {
    return static_cast<std::errc>(EDQUOT);
  }
  Order& from = list_of(held);
  held.pinned = pinned;
  held.used = ++clock_;
  held.turn = turn_;
  Order& to = list_of(held);
  to.splice(to.end(), from, held.place);
  pinned_bytes_ += pinned ? held.bytes : std::uint64_t{0} - held.bytes;
  return {};
}

bool HeldBlocks::clear(std::uint32_t tenant) {
  const Tenant& cleared = tenants_[tenant];
  for (int i = 0; i < kClearedAtOnce && next_of(cleared); ++i) {
    evict(*next_of(cleared));
    ++discarded_;
  }
  return next_of(cleared).has_value();
}

// ---- For people ----

void HeldBlocks::describe(shmemx_exchange_holder_stats_t& stats) const {
  stats.holder = exchange_.id();
  stats.capacity = memory_.bytes();
  stats.blocks = ranges_.size();
  stats.bytes = bytes_;
  stats.pinned_bytes = pinned_bytes_;
  stats.writing_bytes = writing_bytes_;
  for (const Leaving& one : leaving_) {
    stats.leaving_bytes += one.part.size();
  }
  stats.taken_bytes = memory_.grown();
  stats.stored = stored_;
  stats.there_already = there_already_;
  stats.evicted = evicted_;
  stats.discarded = discarded_;
  stats.refused = refused_;
}

std::vector<TenantUse> HeldBlocks::tenants() const {
  std::vector<TenantUse> all;
  for (const Tenant& one : tenants_) {
    all.push_back({one.name, one.bytes, one.limit});
  }
  return all;
}

}  // namespace shmem::exchange
