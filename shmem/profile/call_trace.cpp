// SPDX-License-Identifier: Apache-2.0
#include "shmem/profile/call_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>

#include "base/number.hpp"

namespace shmem::profile {
namespace {

constexpr int kMostNodes = 4096;
constexpr std::size_t kMostKept = std::size_t{64} << 10;
constexpr std::uint64_t kLongestKept = 1'000'000'000;
/// Threads of calls: the file has the barriers of teams in threads with the numbers of the teams.
constexpr int kFirstThread = 1'000'000;
/// In the order of Kind.
constexpr std::array<const char*, kKinds> kKindNames = {"put",        "get",  "atomic", "order", "barrier",
                                                        "collective", "wait", "memory", "other"};

/// "PID-ZERO" of the job that a file belongs to; "" if it is not a trace.
std::string job_of(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  std::getline(file, line);
  constexpr std::string_view kBegin = R"({"name":"job","ph":"M","pid":0,"tid":0,"args":{"name":")";
  const std::size_t end = line.find('"', kBegin.size());
  return line.starts_with(kBegin) && end != std::string::npos ? line.substr(kBegin.size(), end - kBegin.size()) : "";
}

std::string microseconds(std::uint64_t nanoseconds) {
  return fmt::format("{}.{:03}", nanoseconds / 1000, nanoseconds % 1000);
}

int number_of_thread() {
  static std::atomic<int> next{0};
  static thread_local const int mine = next.fetch_add(1, std::memory_order_relaxed);
  return mine;
}

}  // namespace

std::unique_ptr<CallTrace> CallTrace::open(const std::string& path, int first, int pe) {
  const std::string begin = std::to_string(first) + "-";
  for (int node = 0; node < kMostNodes; ++node) {
    const std::string name = node == 0 ? path : fmt::format("{}.{}", path, node);
    const std::string job = job_of(name);
    if (job.starts_with(begin)) {
      const auto zero = base::number<std::uint64_t>(job.substr(begin.size())).value_or(0);
      auto file = TraceFile::open(name, job);
      return file ? std::unique_ptr<CallTrace>(new CallTrace(*std::move(file), pe, zero)) : nullptr;
    }
    if (job.empty() && node > 0) {
      break;
    }
  }
  return nullptr;
}

CallTrace::CallTrace(TraceFile file, int pe, std::uint64_t zero)
    : file_(std::move(file)), pe_(pe), zero_(zero), written_(nanoseconds()) {}

void CallTrace::add(const Event& event) {
  const int thread = number_of_thread();
  static thread_local bool is_named = false;
  std::string text;
  if (!is_named) {
    is_named = true;
    text = fmt::format(R"({{"name":"thread_name","ph":"M","pid":{},"tid":{},"args":{{"name":"calls of thread {}"}}}},)",
                       pe_, kFirstThread + thread, thread) +
           "\n";
  }
  text +=
      fmt::format(R"({{"name":"{}","cat":"{}","ph":"X","ts":{},"dur":{},"pid":{},"tid":{},"args":{{)", event.routine,
                  kKindNames[static_cast<std::size_t>(event.kind)], microseconds(std::max(event.begin, zero_) - zero_),
                  microseconds(event.end - event.begin), pe_, kFirstThread + thread);
  text += event.bytes != 0 ? fmt::format(R"("bytes":{})", event.bytes) : "";
  text += event.target >= 0 ? fmt::format(R"({}"pe":{})", event.bytes != 0 ? "," : "", event.target) : "";
  text += "}}";
  const std::scoped_lock lock(mutex_);
  events_ += (events_.empty() ? "" : ",\n") + text;
  if (events_.size() >= kMostKept || event.end - written_ >= kLongestKept) {
    write();
  }
}

void CallTrace::flush() {
  const std::scoped_lock lock(mutex_);
  write();
}

void CallTrace::write() {
  written_ = nanoseconds();
  if (!events_.empty()) {
    // libshmem says so if the file cannot be written.
    static_cast<void>(file_.append(events_));
    events_.clear();
  }
}

}  // namespace shmem::profile
