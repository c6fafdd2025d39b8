// SPDX-License-Identifier: Apache-2.0
#include "fake_device/faults.hpp"

#include <algorithm>
#include <cmath>

namespace fake_device {

Faults::Faults(Effects& world, unsigned ports, MemberOf member_of)
    : world_(world), member_of_(std::move(member_of)), lines_(ports) {}

void Faults::arm(const Injection& injection) {
  if (injection.count != 0) {
    armed_.push_back(injection);
    note_arrival_faults();
  }
}

void Faults::stall(unsigned group, Time until) {
  ++struck_;
  stalls_.push_back({.group = group, .until = until});
  note_arrival_faults();
}

void Faults::set_latency(Time mean, Time deviation) {
  latency_ = mean;
  deviation_ = deviation;
}

void Faults::clear() {
  armed_.clear();
  stalls_.clear();
  set_latency(0, 0);
  note_arrival_faults();
}

void Faults::note_arrival_faults() {
  touches_arrivals_ = !stalls_.empty() || std::any_of(armed_.begin(), armed_.end(), [](const Injection& injection) {
    return injection.kind == GBA_INJECT_DROP_ARRIVAL;
  });
}

Time Faults::next_deadline() const {
  Time next = delayed_.empty() ? kNever : delayed_.begin()->first.first;
  for (const Stall& stall : stalls_) {
    next = std::min(next, stall.until);
  }
  return next;
}

std::vector<Faults::FailedStore> Faults::run() {
  std::vector<FailedStore> failed;
  while (!delayed_.empty() && delayed_.begin()->first.first <= now_) {
    const Delayed operation = delayed_.extract(delayed_.begin()).mapped();
    --lines_[operation.port].waiting;
    if (!perform(operation)) {
      failed.push_back({.port = operation.port, .group = operation.target, .address = operation.address});
    }
  }
  if (std::erase_if(stalls_, [&](const Stall& stall) { return stall.until <= now_; }) != 0) {
    note_arrival_faults();
  }
  return failed;
}

void Faults::forget(unsigned port) {
  std::erase_if(delayed_, [&](const auto& entry) { return entry.second.port == port; });
  lines_[port] = {};
}

bool Faults::stalled(unsigned group) const {
  return std::any_of(stalls_.begin(), stalls_.end(), [&](const Stall& stall) { return stall.group == group; });
}

bool Faults::matches(const Injection& injection, unsigned port, unsigned group) const {
  if ((injection.group && *injection.group != group) || (injection.port && *injection.port != port)) {
    return false;
  }
  return !injection.member || member_of_(port, group) == static_cast<int>(*injection.member);
}

std::optional<Injection> Faults::strike(unsigned kind, unsigned port, unsigned group) {
  for (auto armed = armed_.begin(); armed != armed_.end(); ++armed) {
    if (armed->kind != kind || !matches(*armed, port, group)) {
      continue;
    }
    if (armed->after > 0) {
      --armed->after;
      continue;
    }
    const Injection struck = *armed;
    ++struck_;
    if (armed->count != kAlways && --armed->count == 0) {
      armed_.erase(armed);
      note_arrival_faults();
    }
    return struck;
  }
  return std::nullopt;
}

Time Faults::command_done(unsigned port) {
  const auto slow = strike(GBA_INJECT_SLOW_COMMAND, port, 0);
  return slow ? later(slow->time) : 0;
}

Time Faults::sample_latency() {
  if (deviation_ == 0) {
    return latency_;
  }
  std::normal_distribution<double> distribution(static_cast<double>(latency_), static_cast<double>(deviation_));
  return static_cast<Time>(std::llround(std::max(0.0, distribution(random_))));
}

bool Faults::store_flag(unsigned port, unsigned group, std::uint64_t address, std::uint64_t word) {
  if (strike(GBA_INJECT_DMA_FAULT, port, group)) {
    return false;
  }
  if (strike(GBA_INJECT_DROP_RELEASE, port, group)) {
    return true;
  }
  const auto late = strike(GBA_INJECT_DELAY_RELEASE, port, group);
  const bool twice = strike(GBA_INJECT_DUPLICATE_RELEASE, port, group).has_value();
  const Time by = sample_latency() + (late ? late->time : 0);
  const Delayed operation{.port = port, .interrupt = false, .target = group, .address = address, .word = word};
  if (by != 0 || lines_[port].waiting != 0) {
    delay(operation, by);
    if (twice) {
      delay(operation, by);
    }
    return true;
  }
  return perform(operation) && (!twice || perform(operation));
}

void Faults::raise(unsigned port, unsigned vector) {
  if (strike(GBA_INJECT_DROP_INTERRUPT, port, vector)) {
    return;
  }
  if (lines_[port].waiting != 0) {
    delay({.port = port, .interrupt = true, .target = vector, .address = 0, .word = 0}, 0);
  } else {
    world_.raise(port, vector);
  }
}

void Faults::delay(const Delayed& operation, Time by) {
  Line& line = lines_[operation.port];
  line.last_due = std::max(line.last_due, later(by));
  ++line.waiting;
  delayed_.emplace(std::pair(line.last_due, next_number_++), operation);
}

bool Faults::perform(const Delayed& operation) {
  if (operation.interrupt) {
    world_.raise(operation.port, operation.target);
    return true;
  }
  return world_.store_flag(operation.port, operation.target, operation.address, operation.word);
}

// What was on its way to a member that leaves comes before it has left, as the answer to its command pushes it along:
// later it would strike the next user of that memory.
void Faults::left(unsigned port, unsigned group) {
  for (auto next = delayed_.begin(); next != delayed_.end();) {
    if (next->second.port != port) {
      ++next;
      continue;
    }
    perform(next->second);
    --lines_[port].waiting;
    next = delayed_.erase(next);
  }
  world_.left(port, group);
}

}  // namespace fake_device
