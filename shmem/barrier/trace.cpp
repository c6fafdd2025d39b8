// SPDX-License-Identifier: Apache-2.0
#include "shmem/barrier/trace.hpp"

#include <unistd.h>

#include "shmem/log.hpp"

namespace shmem {
namespace {

constexpr std::size_t kMostKept = std::size_t{64} << 10;
constexpr std::chrono::seconds kLongestKept{1};

/// The file has microseconds. By hand, because printf asks the locale for the point.
std::string microseconds(std::uint64_t nanoseconds) {
  const std::string rest = std::to_string(1000 + nanoseconds % 1000);
  return std::to_string(nanoseconds / 1000) + "." + rest.substr(1);
}

std::string field(const char* name, const std::string& value) {
  return std::string(",\"") + name + "\":" + value;
}

std::string quoted(const std::string& text) {
  return "\"" + text + "\"";  // nothing that is written here needs more
}

std::string metadata(const char* name, int pe, int thread, const std::string& value) {
  return "{\"name\":" + quoted(name) + ",\"ph\":\"M\"" + field("pid", std::to_string(pe)) +
         field("tid", std::to_string(thread)) + ",\"args\":{\"name\":" + quoted(value) + "}}";
}

}  // namespace

Trace::Trace(TraceFile file, int pe, std::uint64_t zero)
    : file_(std::move(file)), pe_(pe), zero_(zero), written_(std::chrono::steady_clock::now()) {
  keep(metadata("process_name", pe, 0, "PE " + std::to_string(pe) + " (pid " + std::to_string(::getpid()) + ")"));
}

void Trace::name_team(int team, int size) {
  const std::scoped_lock lock(mutex_);
  keep(metadata("thread_name", pe_, team, "team " + std::to_string(team) + " (" + std::to_string(size) + " PEs)"));
}

void Trace::add(const BarrierEvent& event) {
  const std::string text =
      "{\"name\":\"barrier\",\"cat\":\"barrier\",\"ph\":\"X\"" + field("ts", microseconds(event.arrived - zero_)) +
      field("dur", microseconds(event.left - event.arrived)) + field("pid", std::to_string(pe_)) +
      field("tid", std::to_string(event.team)) + ",\"args\":{\"team\":" + std::to_string(event.team) +
      field("number", std::to_string(event.number)) + field("path", quoted(event.path)) +
      field("last", std::to_string(event.last)) + field("skew_us", microseconds(event.skew)) + "}}";
  const std::scoped_lock lock(mutex_);
  keep(text);
}

void Trace::flush() {
  const std::scoped_lock lock(mutex_);
  write();
}

void Trace::keep(const std::string& text) {
  if (failed_) {
    return;
  }
  events_ += (events_.empty() ? "" : ",\n") + text;
  if (events_.size() >= kMostKept || std::chrono::steady_clock::now() - written_ >= kLongestKept) {
    write();
  }
}

void Trace::write() {
  written_ = std::chrono::steady_clock::now();
  if (events_.empty() || failed_) {
    return;
  }
  if (auto ok = file_.append(events_); !ok) {
    failed_ = true;
    log(LogLevel::kWarn, "shmem: PE %d writes no more into its trace: %s", pe_, ok.error().text.c_str());
  }
  events_.clear();
}

}  // namespace shmem
