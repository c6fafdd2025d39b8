// SPDX-License-Identifier: Apache-2.0
// The last lines of a job that ends early: the cause once, where that PE was, and how many others only waited.
#include <fmt/format.h>
#include <signal.h>

#include <cstring>

#include "shmem/launcher/job.hpp"
#include "shmem/launcher/other_ends.hpp"
#include "shmem/launcher/source_lines.hpp"

namespace shmem::launcher {

namespace {

bool is_cause(const PeEnd& end) {
  return end.kind == EndKind::kFailed || end.kind == EndKind::kSignal;
}

}  // namespace

std::string Job::text_of(int pe, const PeEnd& end) const {
  if (end.kind != EndKind::kSignal) {
    return fmt::format("{} ended the job with status {}: {}", full_name_of(pe), job_status().value_or(1),
                       is_cause(end) ? end.text : wait_report(end).message);
  }
  return fmt::format("{} was killed by signal {} ({}){}", full_name_of(pe), end.signal, ::strsignal(end.signal),
                     end.address != 0 ? fmt::format(" at address {:#x}", end.address) : "");
}

void Job::say_calls(int pe, const PeEnd& end) {
  if (const std::string calls = source_lines(end.frames); !calls.empty()) {
    say(fmt::format("PE {} was in {}", tools_.options.number(pe), calls));
  }
}

int Job::first_cause(const Cause& cause) const {
  const int found = cause.pe.value_or(-1);
  if (cause.is_killed || (found >= 0 && is_cause(parts_.ends.of(found)))) {
    return found;
  }
  int first = found;
  std::uint32_t order = 0;
  for (int pe = 0; pe < tools_.options.pes(); ++pe) {
    const PeEnd end = parts_.ends.of(pe);
    if (is_cause(end) && (order == 0 || end.order < order)) {
      first = pe;
      order = end.order;
    }
  }
  return first;
}

bool Job::is_told() const {
  for (int pe = 0; pe < tools_.options.pes(); ++pe) {
    if (parts_.ends.of(pe).kind == EndKind::kTold) {
      return true;
    }
  }
  return false;
}

void Job::look_for_reports() {
  const std::uint32_t reports = parts_.ends.count();
  if (ending() != Ending::kNo || reports == reports_seen_) {
    unseen_since_.reset();
    return;
  }
  unseen_since_ = unseen_since_.value_or(Clock::now());
  if (Clock::now() < *unseen_since_ + 2 * kLook + kDying) {
    return;  // a PE that has reported ends, most often, and then show_cause() tells
  }
  reports_seen_ = reports;
  for (int pe = 0; pe < tools_.options.pes(); ++pe) {
    const PeEnd end = parts_.ends.of(pe);
    if (is_cause(end) && !told_[static_cast<std::size_t>(pe)]) {
      told_[static_cast<std::size_t>(pe)] = true;
      say(end.kind == EndKind::kSignal ? text_of(pe, end) : end.text);
      say_calls(pe, end);
    }
  }
}

void Job::show_cause() {
  const bool is_timeout = !cause_ && job_status() == kTimeoutStatus;
  if (!cause_ && !is_timeout) {
    for (int pe = 0; pe < tools_.options.pes() && ending() == Ending::kNo; ++pe) {
      const PeEnd end = parts_.ends.of(pe);
      if (is_cause(end) && !told_[static_cast<std::size_t>(pe)]) {
        say(end.text);
        say_calls(pe, end);
      }
    }
    return;
  }
  const int cause = cause_ ? first_cause(*cause_) : -1;
  PeEnd first;
  if (cause >= 0) {
    first = parts_.ends.of(cause);
    if (tools_.options.part && !is_cause(first) && !cause_->is_killed && is_told()) {
      return;  // the oshrun of another node tells
    }
  }
  if (cause_) {
    const bool is_known = is_cause(first) || (tools_.options.part && first.kind == EndKind::kNoticed);
    say(is_known && !(cause_->is_killed && first.kind != EndKind::kSignal) ? text_of(cause, first) : cause_->text);
    if (is_cause(first)) {
      say_calls(cause, first);
    }
  }
  std::vector<PeEnd> others;
  for (int pe = 0; pe < tools_.options.pes(); ++pe) {
    if (pe != cause && !told_[static_cast<std::size_t>(pe)]) {
      others.push_back(parts_.ends.of(pe));
    }
  }
  const std::string cause_text = first.text.empty() && cause_ ? cause_->text : first.text;
  for (const std::string& line : about_others(others, cause_text)) {
    say(line);
  }
  drain_output();
}

}  // namespace shmem::launcher
