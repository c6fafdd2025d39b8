// SPDX-License-Identifier: Apache-2.0
#include "fake_device/device_group.hpp"

namespace fake_device {
namespace {

Time add(Time begin, Time duration) {
  return begin > kNever - duration ? kNever : begin + duration;
}

}  // namespace

DeviceGroup::DeviceGroup(unsigned id, const Dimensions& dimensions, Ports& ports)
    : id_(id), max_members_(dimensions.members), ports_(ports), places_(dimensions.members) {}

void DeviceGroup::allocate(unsigned owner, std::uint32_t key, std::uint64_t sequence) {
  allocated_ = true;
  owner_ = static_cast<int>(owner);
  holder_ = owner;
  key_ = key;
  member_count_ = 0;
  mask_.clear();
  control_ = 0;
  timeout_ = 0;
  network_address_ = 0;
  released_ = sequence;
  notify_.clear();
  close_round();
  ever_enabled_ = false;
  ever_released_ = false;
  error_ = GBA_ERROR_NONE;
  error_member_ = 0;
}

void DeviceGroup::free() {
  if (ever_enabled_ && !joined_.empty()) {
    fail(GBA_ERROR_LEAVE, kNobody);
  }
  const MemberSet members = joined_;
  members.for_each([&](unsigned member) { unbind(member); });
  if (ever_enabled_) {
    ports_.open(id_, false);
  }
  allocated_ = false;
  owner_ = kNoPort;
  control_ = 0;
  close_round();
}

void DeviceGroup::lose_owner() {
  if (!ever_enabled_ || joined_.empty()) {
    free();
    return;
  }
  owner_ = kNoPort;
  fail(GBA_ERROR_LEAVE, kNobody);
}

void DeviceGroup::join(unsigned port, unsigned member) {
  places_[member] = {.port = static_cast<int>(port), .address = GBA_RELEASE_ADDR_BAR_FLAGS};
  joined_.insert(member);
  ports_.join(port, id_, member);
}

void DeviceGroup::leave(unsigned member) {
  unbind(member);
  if (enabled()) {
    fail(GBA_ERROR_LEAVE, member);
  }
  if (orphaned() && joined_.empty()) {
    free();
  }
}

void DeviceGroup::unbind(unsigned member) {
  const unsigned port = port_of(member);
  places_[member].port = kNoPort;
  joined_.erase(member);
  notify_.erase(member);
  ports_.leave(port, id_);
}

bool DeviceGroup::set_member_count(std::uint64_t count) {
  if (!configurable() || count == 0 || count > max_members_) {
    return false;
  }
  member_count_ = count;
  return true;
}

bool DeviceGroup::set_member_mask(unsigned index, std::uint64_t word) {
  if (!configurable() || (joined_.word(index) & ~word) != 0) {
    return false;
  }
  const unsigned first = index * 64;
  const unsigned bits = max_members_ > first ? max_members_ - first : 0;
  if (bits < 64 && (word >> bits) != 0) {
    return false;
  }
  mask_.set_word(index, word);
  return true;
}

bool DeviceGroup::set_sequence(std::uint64_t sequence) {
  if (!configurable() || sequence > GBA_SEQUENCE_MAX) {
    return false;
  }
  released_ = sequence;
  return true;
}

bool DeviceGroup::set_control(std::uint64_t control) {
  control_ = (control_ & GBA_CONTROL_ENABLE) | (control & (GBA_CONTROL_ARM | GBA_CONTROL_IRQ_EN));
  if ((control & GBA_CONTROL_RESET) != 0) {
    reset();
    return true;
  }
  if ((control & GBA_CONTROL_ENABLE) != 0) {
    return enable();
  }
  control_ &= ~GBA_CONTROL_ENABLE;
  if (!failed()) {
    close_round();
  }
  return true;
}

void DeviceGroup::reset() {
  ports_.count(Counter::kResets);
  fail(GBA_ERROR_RESET, kNobody);
}

void DeviceGroup::lose_link(unsigned member) {
  if (enabled()) {
    fail(GBA_ERROR_LINK_DOWN, member);
  }
}

bool DeviceGroup::enable() {
  if (enabled()) {
    return true;
  }
  if (failed() || member_count_ == 0 || member_count_ != mask_.size()) {
    return false;
  }
  control_ |= GBA_CONTROL_ENABLE;
  if (!ever_enabled_) {
    ports_.open(id_, true);
  }
  ever_enabled_ = true;
  return true;
}

void DeviceGroup::set_timeout(Time timeout) {
  timeout_ = timeout;
  start_timer();
}

void DeviceGroup::start_timer() {
  const bool running = !failed() && arrivals_ > 0 && timeout_ != 0;
  deadline_ = running ? add(opened_, timeout_) : kNever;
}

bool DeviceGroup::set_release_address(unsigned member, std::uint64_t address) {
  if (address != GBA_RELEASE_ADDR_BAR_FLAGS && address % 8 != 0) {
    return false;
  }
  places_[member].address = address;
  return true;
}

bool DeviceGroup::set_network_address(std::uint64_t address) {
  if (!configurable()) {
    return false;
  }
  network_address_ = address;
  return true;
}

std::uint64_t DeviceGroup::member_ports(unsigned index, unsigned bits) const {
  const std::uint64_t no_port = (std::uint64_t{1} << bits) - 1;
  std::uint64_t ports = 0;
  for (unsigned place = 0; place < 64 / bits; ++place) {
    const int port = find_port(64 / bits * index + place);
    ports |= (port == kNoPort ? no_port : static_cast<std::uint64_t>(port) & no_port) << (bits * place);
  }
  return ports;
}

std::uint64_t DeviceGroup::status() const {  // uapi rule 8
  if (failed()) {
    return GBA_STATUS_ERROR;
  }
  if (arrivals_ > 0) {
    return GBA_STATUS_ACTIVE;
  }
  return (enabled() ? GBA_STATUS_READY : 0) | (ever_released_ ? GBA_STATUS_COMPLETE : 0);
}

std::uint64_t DeviceGroup::error_code() const {
  return GBA_FIELD_PUT(GBA_ERROR_CODE_CODE, error_) | GBA_FIELD_PUT(GBA_ERROR_CODE_MEMBER, error_member_);
}

std::uint64_t DeviceGroup::release_word() const {
  return GBA_FIELD_PUT(GBA_FLAG_SEQUENCE, released_);
}

std::uint64_t DeviceGroup::error_word() const {  // uapi rules 16 and 17
  return release_word() | GBA_FIELD_PUT(GBA_FLAG_CODE, error_) | GBA_FIELD_PUT(GBA_FLAG_ERROR, 1);
}

void DeviceGroup::arrive(unsigned member, std::uint32_t sequence, bool notify, Time now) {
  if (failed()) {
    ports_.count(Counter::kArrivals);
    answer(member, error_word(), notify);
    return;
  }
  const auto ahead = static_cast<std::int32_t>(sequence - static_cast<std::uint32_t>(released_));  // uapi rule 9
  if (ahead == 1 && enabled()) [[likely]] {
    ports_.count(Counter::kArrivals);
    mark(member, notify, now);
  } else if (ahead <= 0 && ever_enabled_) {
    ports_.count(Counter::kArrivals);
    ports_.count(Counter::kStale);
    answer(member, release_word(), notify);
  } else if (!enabled()) {
    ports_.reject(port_of(member), {.kind = GBA_FAULT_NOT_ENABLED, .group = id_, .member = member, .value = sequence});
  } else {  // uapi rule 13
    ports_.reject(port_of(member), {.kind = GBA_FAULT_PROTOCOL, .group = id_, .member = member, .value = sequence});
    if (notify) {
      notify_.insert(member);
    }
    fail(GBA_ERROR_PROTOCOL, member);
  }
}

void DeviceGroup::mark(unsigned member, bool notify, Time now) {
  if (notify) {
    notify_.insert(member);
  }
  if (arrived_.contains(member)) {
    return;
  }
  arrived_.insert(member);
  if (++arrivals_ == member_count_) {
    release();
  } else if (arrivals_ == 1) {
    opened_ = now;
    start_timer();
  }
}

// All flags first, then the interrupts: a raise is slow, and must not hold up the next member's release.
void DeviceGroup::release() {
  ports_.count(Counter::kReleases);
  ++released_;
  ever_released_ = true;
  close_round();
  if ((control_ & GBA_CONTROL_ARM) == 0) {
    control_ &= ~GBA_CONTROL_ENABLE;
  }
  unsigned unreachable = kNobody;
  const auto word = release_word();
  joined_.for_each([&](unsigned member) {
    if (!store(member, word)) {
      unreachable = member;
    }
  });
  raise_notified();
  if (unreachable != kNobody) {  // uapi rule 21
    fail(GBA_ERROR_DMA_FAULT, unreachable);
  }
}

void DeviceGroup::close_round() {
  arrived_.clear();
  arrivals_ = 0;
  deadline_ = kNever;
}

// An answer out of turn neither needs nor uses up a NOTIFY that the member left for the round itself.
void DeviceGroup::answer(unsigned member, std::uint64_t word, bool notify) {
  const bool stored = store(member, word);
  if (notify && (control_ & GBA_CONTROL_IRQ_EN) != 0) {
    ports_.raise(port_of(member), id_);
  }
  if (!stored) {
    fail(GBA_ERROR_DMA_FAULT, member);
  }
}

void DeviceGroup::raise_notified() {  // uapi rule 15
  const MemberSet waiting = notify_;
  notify_.clear();
  if ((control_ & GBA_CONTROL_IRQ_EN) != 0) {
    waiting.for_each([&](unsigned member) { ports_.raise(port_of(member), id_); });
  }
}

void DeviceGroup::expire() {
  ports_.count(Counter::kTimeouts);
  const unsigned missing = mask_.without(arrived_).first(kNobody);
  ports_.fault(static_cast<unsigned>(owner_),
               {.kind = GBA_FAULT_TIMEOUT, .group = id_, .member = missing, .value = released_ + 1});
  fail(GBA_ERROR_TIMEOUT, missing);
}

void DeviceGroup::fail(unsigned code, unsigned member) {
  if (failed()) {
    return;
  }
  ports_.count(Counter::kErrors);
  error_ = code;
  error_member_ = member;
  control_ &= ~GBA_CONTROL_ENABLE;
  deadline_ = kNever;
  const auto word = error_word();
  // A flag that cannot be stored has its fault; the group can fall no deeper.
  joined_.for_each([&](unsigned joined) { store(joined, word); });
  raise_notified();
  joined_.for_each([&](unsigned joined) { ports_.raise(port_of(joined), ports_.error_vector()); });
}

}  // namespace fake_device
