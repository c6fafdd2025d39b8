// SPDX-License-Identifier: Apache-2.0
#include "fake_device/engine.hpp"

#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <system_error>

#include "fake_device/shared_memory.hpp"

namespace fake_device {

// Without faults the model speaks to the world directly.
Engine::Engine(const Profile& profile, unsigned ports, FaultInjection injection)
    : profile_(profile),
      groups_(profile.groups),
      attachments_(ports + 1),
      flags_(std::size_t{ports + 1} * profile.groups),
      open_(profile.groups, false),
      joined_(ports + 1, false),
      injection_(injection),
      faults_(*this, ports + 1, [this](unsigned port, unsigned group) { return model_.member_of(port, group); }),
      model_(profile.dimensions(ports), profile.layout,
             injection == FaultInjection::kNone ? static_cast<Effects&>(*this) : faults_,
             injection == FaultInjection::kByClients ? GBA_CAPS_DEBUG : 0) {
  slots_.reserve(flags_.size());
  closed_.reserve(flags_.size());
}

void Engine::attach(unsigned port, PortLink& link) {
  attachments_[port] = {.link = &link, .decoding = true};
  forget_memory(port);
  model_.connect(port);
}

// What was rung before a port goes still counts, the other members' too: a barrier that is complete is released.
void Engine::reset(unsigned port, Time now) {
  scan(now);
  sweep(port, now);
  model_.reset_port(port);
}

void Engine::detach(unsigned port, Time now) {
  scan(now);
  sweep(port, now);
  model_.disconnect(port);
  faults_.forget(port);
  forget_memory(port);
  attachments_[port] = {};
}

template <typename Condition>
void Engine::remove_slots(Condition condition) {
  std::erase_if(slots_, condition);
  std::erase_if(closed_, condition);
  count_joined_ports();
}

void Engine::set_decoding(unsigned port, bool decoding) {
  if (attachments_[port].decoding == decoding || attachments_[port].removed) {
    return;
  }
  attachments_[port].decoding = decoding;
  remove_slots([&](const Slot& slot) { return slot.port == port; });
  if (decoding) {
    clear_slots(port);  // what was written meanwhile is dropped
    for (unsigned group = 0; group < groups_; ++group) {
      if (model_.is_member(port, group)) {
        add_slot(port, group);
      }
    }
  }
}

void Engine::forget_memory(unsigned port) {
  for (unsigned group = 0; group < groups_; ++group) {
    flag(port, group) = {};
  }
}

void Engine::flag_store_failed(unsigned port, unsigned group, std::uint64_t iova) {
  model_.flag_store_failed(port, group, iova);
}

std::uint64_t Engine::read(unsigned port, std::uint64_t offset, std::uint64_t size, Time now) {
  faults_.set_time(now);
  sweep(port, now);
  return model_.read(port, offset, size, now);
}

void Engine::write(unsigned port, std::uint64_t offset, std::uint64_t size, std::uint64_t value, Time now) {
  faults_.set_time(now);
  sweep(port, now);
  take_all(closed_, now);  // before the write that lets arrivals in
  model_.write(port, offset, size, value);
}

void Engine::ring(unsigned port, unsigned slot, std::uint64_t word, Time now) {
  faults_.set_time(now);
  sweep(port, now);
  if (faults_.stalled(slot)) {  // it waits where doorbells wait
    attachments_[port].link->doorbells().at<std::uint64_t>(GBA_DOORBELL_SLOT(slot))->store(word);
  } else {
    deliver(port, slot, word, now);
  }
}

void Engine::sweep(unsigned port, Time now) {
  const Attachment& attachment = attachments_[port];
  if (attachment.link == nullptr || !attachment.decoding) {
    return;
  }
  for (unsigned group = 0; group < groups_; ++group) {
    auto* const word = attachment.link->doorbells().at<std::uint64_t>(GBA_DOORBELL_SLOT(group));
    take({.word = word, .port = static_cast<std::uint16_t>(port), .group = static_cast<std::uint16_t>(group)}, now);
  }
}

// Uapi rule 19. The plain load keeps the line shared while nothing comes. The exchange takes the word and leaves 0 in
// one step, so that no arrival falls between; its acquire order pairs with the member's release store of the doorbell,
// and carries on, through the release store of the flag, what the member stored before it arrived.
inline bool Engine::take(const Slot& slot, Time now) {
  if (slot.word->load(std::memory_order_relaxed) == 0) {
    return false;
  }
  if (faults_.touches_arrivals() && faults_.stalled(slot.group)) [[unlikely]] {
    return false;
  }
  const auto word = slot.word->exchange(0, std::memory_order_acquire);
  if (word == 0) {
    return false;
  }
  deliver(slot.port, slot.group, word, now);
  return true;
}

inline void Engine::deliver(unsigned port, unsigned group, std::uint64_t word, Time now) {
  if (faults_.touches_arrivals() && faults_.drops_arrival(port, group)) [[unlikely]] {
    return;
  }
  model_.arrive(port, group, word, now);
}

bool Engine::scan(Time now) {
  faults_.set_time(now);
  return take_all(slots_, now);
}

inline bool Engine::take_all(const std::vector<Slot>& slots, Time now) {
  bool any = false;
  for (const Slot& slot : slots) {  // an arrival neither joins nor leaves, so the list stays as it is
    any |= take(slot, now);
  }
  return any;
}

bool Engine::fall_asleep(Time now) {
  set_wakeup(GBA_WAKEUP_SLEEPING);
  fence_before_last_scan();
  return !scan(now);
}

void Engine::awake() {
  set_wakeup(0);
}

void Engine::set_wakeup(std::uint32_t value) {
  for (const Attachment& attachment : attachments_) {
    if (attachment.link != nullptr && !attachment.removed) {
      // Ordered against the slots by the fence in fall_asleep, on the client's side by its own.
      attachment.link->doorbells().at<std::uint32_t>(GBA_DOORBELL_WAKEUP)->store(value, std::memory_order_relaxed);
    }
  }
}

bool Engine::store_flag(unsigned port, unsigned group, std::uint64_t address, std::uint64_t word) {
  const Flag& known = flag(port, group);
  if (known.target.word == nullptr || known.address != address) [[unlikely]] {
    return store_slowly(port, group, address, word);
  }
  if (!guarded_store(known.target, word)) [[unlikely]] {
    forget_memory(port);
    attachments_[port].link->memory_lost();
    return false;
  }
  return true;
}

bool Engine::store_slowly(unsigned port, unsigned group, std::uint64_t address, std::uint64_t word) {
  PortLink* const link = attachments_[port].link;
  if (link == nullptr) {
    return false;
  }
  const auto target = address == GBA_RELEASE_ADDR_BAR_FLAGS ? bar_flag(*link, group) : link->resolve(address);
  if (!target) {
    return link->send_store(group, address, word);
  }
  flag(port, group) = {.address = address, .target = *target};
  return store_flag(port, group, address, word);
}

std::optional<GuardedWord> Engine::bar_flag(const PortLink& link, unsigned group) {
  const SharedPages& pages = link.flags();
  const auto offset = std::size_t{group} * GBA_FLAG_STRIDE;
  return GuardedWord{.word = pages.at<std::uint64_t>(offset), .page = pages.data(), .size = 0};
}

void Engine::raise(unsigned port, unsigned vector) {
  if (attachments_[port].link != nullptr) {
    attachments_[port].link->raise(vector);
  }
}

void Engine::joined(unsigned port, unsigned group) {
  const PortLink* const link = attachments_[port].link;
  if (link == nullptr) {
    return;
  }
  // Before the port learns that it has joined: nothing of its own can be lost here.
  link->doorbells().at<std::uint64_t>(GBA_DOORBELL_SLOT(group))->store(0, std::memory_order_relaxed);
  link->flags().at<std::uint64_t>(std::size_t{group} * GBA_FLAG_STRIDE)->store(0, std::memory_order_relaxed);
  flag(port, group) = {};
  if (attachments_[port].decoding) {
    add_slot(port, group);
  }
}

void Engine::opened(unsigned group, bool open) {
  open_[group] = open;
  const auto of_group = [&](const Slot& slot) { return slot.group == group; };
  auto& from = open ? closed_ : slots_;
  auto& to = open ? slots_ : closed_;
  std::copy_if(from.begin(), from.end(), std::back_inserter(to), of_group);
  std::erase_if(from, of_group);
  count_joined_ports();
}

void Engine::left(unsigned port, unsigned group) {
  remove_slots([&](const Slot& slot) { return slot.port == port && slot.group == group; });
}

void Engine::add_slot(unsigned port, unsigned group) {
  auto* const word = attachments_[port].link->doorbells().at<std::uint64_t>(GBA_DOORBELL_SLOT(group));
  (open_[group] ? slots_ : closed_)
      .push_back({.word = word, .port = static_cast<std::uint16_t>(port), .group = static_cast<std::uint16_t>(group)});
  count_joined_ports();
}

void Engine::count_joined_ports() {
  joined_.assign(attachments_.size(), false);
  for (const Slot& slot : slots_) {
    joined_[slot.port] = true;
  }
  joined_ports_ = static_cast<std::size_t>(std::count(joined_.begin(), joined_.end(), true));
}

void Engine::clear_slots(unsigned port) {
  for (unsigned group = 0; group < groups_; ++group) {
    attachments_[port]
        .link->doorbells()
        .at<std::uint64_t>(GBA_DOORBELL_SLOT(group))
        ->store(0, std::memory_order_relaxed);
  }
}

std::uint32_t Engine::random_key() {
  std::uint32_t key = 0;
  if (::getrandom(&key, sizeof key, 0) != static_cast<ssize_t>(sizeof key)) {
    throw std::system_error(errno, std::generic_category(), "getrandom");
  }
  return key;
}

// ---- Faults on request ----

Result<void> Engine::inject(const Injection& injection, Time now) {
  if (auto checked = check(injection, dimensions()); !checked) {
    return checked;
  }
  happen(injection, now);
  return {};
}

Time Engine::next_fault() const {
  return scheduled_.empty() ? faults_.next_deadline() : std::min(scheduled_.begin()->first, faults_.next_deadline());
}

void Engine::expire(Time now) {
  faults_.set_time(now);
  while (!scheduled_.empty() && scheduled_.begin()->first <= now) {
    happen(scheduled_.extract(scheduled_.begin()).mapped(), now);
  }
  for (const auto& failed : faults_.run()) {
    model_.flag_store_failed(failed.port, failed.group, failed.address);
  }
  model_.expire(now);
}

void Engine::happen(const Injection& injection, Time now) {
  faults_.set_time(now);
  if (waits_for_occasion(injection.kind)) {
    faults_.arm(injection);
    return;
  }
  const auto group = static_cast<unsigned>(injection.group.value_or(0));
  const auto port = static_cast<unsigned>(injection.port.value_or(0));
  switch (injection.kind) {
    case GBA_INJECT_STALL_GROUP:
      faults_.stall(group, injection.time == 0 ? kNever : now + injection.time);
      return;
    case GBA_INJECT_LATENCY:
      faults_.set_latency(injection.time, injection.spread);
      return;
    case GBA_INJECT_START_SEQUENCE:
      model_.start_sequences_at(injection.value);
      break;
    case GBA_INJECT_FORGE_ARRIVAL:
      forge_arrival(injection, now);
      break;
    case GBA_INJECT_LINK_DOWN:
    case GBA_INJECT_LINK_UP:
      model_.set_link(port, injection.kind == GBA_INJECT_LINK_UP);
      break;
    case GBA_INJECT_RESET_GROUP:
      model_.reset_group(group);
      break;
    case GBA_INJECT_RESET_DEVICE:
      model_.reset_device();
      break;
    case GBA_INJECT_FATAL:
      model_.break_down();
      break;
    case GBA_INJECT_REMOVE:
      for (unsigned each = 0; each < attachments_.size(); ++each) {
        if (!injection.port || each == port) {
          remove_port(each, now);
        }
      }
      break;
    default:
      break;
  }
  faults_.count_strike();
}

// A word such as a port might send that has lost count, or whose switch has kept an old message.
void Engine::forge_arrival(const Injection& injection, Time now) {
  const auto group = static_cast<unsigned>(*injection.group);
  const auto member = static_cast<unsigned>(*injection.member);
  const int port = model_.port_of(group, member);
  if (port != kNoPort) {
    const auto word = GBA_FIELD_PUT(GBA_ARRIVAL_SEQUENCE, model_.sequence(group) + injection.value) |
                      GBA_FIELD_PUT(GBA_ARRIVAL_MEMBER, member) | GBA_FIELD_PUT(GBA_ARRIVAL_VALID, 1);
    model_.arrive(static_cast<unsigned>(port), group, word, now);
  }
}

void Engine::remove_port(unsigned port, Time now) {
  Attachment& attachment = attachments_[port];
  if (attachment.link == nullptr || attachment.removed) {
    return;
  }
  scan(now);
  model_.reset_port(port);
  faults_.forget(port);
  forget_memory(port);
  attachment.decoding = false;
  attachment.removed = true;
  attachment.link->removed();
}

}  // namespace fake_device
