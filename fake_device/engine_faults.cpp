// SPDX-License-Identifier: Apache-2.0
// What the engine does when somebody asks for a fault.
#include "fake_device/engine.hpp"

namespace fake_device {

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
    case GBA_INJECT_STORM:
      faults_.storm(injection);
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
