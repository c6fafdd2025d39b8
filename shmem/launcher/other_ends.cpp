// SPDX-License-Identifier: Apache-2.0
#include "shmem/launcher/other_ends.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace shmem::launcher {
namespace {

/// The kinds of waits that a line names; the rest is counted together.
constexpr std::size_t kMostWaiters = 3;

struct Waiters {
  WaitReport first;
  int count = 0;
};

/// Those of most PEs first.
std::vector<Waiters> group(const std::vector<PeEnd>& others) {
  std::vector<Waiters> groups;
  for (const PeEnd& end : others) {
    if (end.kind != EndKind::kTold && end.kind != EndKind::kNoticed) {
      continue;
    }
    WaitReport report = wait_report(end);
    const auto same =
        std::ranges::find_if(groups, [&report](const Waiters& one) { return one.first.waiter == report.waiter; });
    if (same == groups.end()) {
      groups.push_back({std::move(report), 1});
    } else {
      ++same->count;
    }
  }
  std::ranges::stable_sort(groups, std::ranges::greater(), &Waiters::count);
  return groups;
}

std::string place_text(const Waiters& waiters) {
  return waiters.first.waiter.empty() ? fmt::format("{} in no call of the library", waiters.count == 1 ? "was" : "were")
                                      : "waited in " + waiters.first.waiter;
}

/// ", for PE 3 (pid 7 on kiwi)"
std::string awaited_text(const std::string& message) {
  constexpr std::string_view kBefore = "; it waited for ";
  const auto begin = message.rfind(kBefore);
  return begin == std::string::npos ? "" : ", for " + message.substr(begin + kBefore.size());
}

std::string waits_text(const std::vector<Waiters>& groups, const char* other, bool says_for_whom) {
  std::string text;
  int rest = 0;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (i >= kMostWaiters) {
      rest += groups[i].count;
      continue;
    }
    text += i == 0 ? fmt::format("{}{}PE{} ", groups[i].count, other, groups[i].count == 1 ? "" : "s")
                   : fmt::format(", {} ", groups[i].count);
    text += place_text(groups[i]);
    text += says_for_whom ? awaited_text(groups[i].first.message) : "";
  }
  return rest > 0 ? fmt::format("{}, {} elsewhere", text, rest) : text;
}

/// What a message says after "shmem: PE 3: ", without addresses: those of the stack differ.
std::string essence_of(std::string_view message) {
  constexpr std::string_view kStart = "shmem: PE ";
  const auto colon = message.starts_with(kStart) ? message.find(':') : std::string_view::npos;
  const auto second = colon == std::string_view::npos ? colon : message.find(':', colon + 1);
  message = second == std::string_view::npos ? message : message.substr(second);
  std::string text;
  for (auto at = message.find("0x"); at != std::string_view::npos; at = message.find("0x")) {
    text += message.substr(0, at);
    message.remove_prefix(at + 2);
    message.remove_prefix(std::min(message.find_first_not_of("0123456789abcdef"), message.size()));
  }
  return text + std::string(message);
}

std::string failures_text(const std::vector<PeEnd>& others, const std::string& cause) {
  int count = 0;
  bool are_same = true;
  const PeEnd* first = nullptr;
  for (const PeEnd& end : others) {
    if (end.kind != EndKind::kFailed && end.kind != EndKind::kSignal) {
      continue;
    }
    ++count;
    const bool is_same = essence_of(end.text) == essence_of(cause);
    first = first == nullptr || (are_same && !is_same) ? &end : first;
    are_same = are_same && is_same;
  }
  if (count == 0) {
    return "";
  }
  std::string text = fmt::format("{} other PE{} failed, too", count, count == 1 ? "" : "s");
  if (are_same && !cause.empty()) {
    return text + ", with the same message";
  }
  return first->kind == EndKind::kSignal ? text : fmt::format("{}: {}", text, first->text);
}

}  // namespace

WaitReport wait_report(const PeEnd& end) {
  const auto line = end.text.find('\n');
  return line == std::string::npos ? WaitReport{end.text, ""}
                                   : WaitReport{end.text.substr(0, line), end.text.substr(line + 1)};
}

std::vector<std::string> about_others(const std::vector<PeEnd>& others, const std::string& cause) {
  std::vector<std::string> lines;
  if (std::string text = failures_text(others, cause); !text.empty()) {
    lines.push_back(std::move(text));
  }
  const auto waiters = group(others);
  if (std::string text = waits_text(waiters, cause.empty() ? " " : " other ", cause.empty()); !text.empty()) {
    lines.push_back(std::move(text));
  }
  return lines;
}

}  // namespace shmem::launcher
