// SPDX-License-Identifier: Apache-2.0
// top: what the members of an exchange do. On a terminal each look replaces the one before.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>

#include "tools/kv_exchange/commands.hpp"

namespace kv_exchange {
namespace {

using Clock = std::chrono::steady_clock;

struct Seen {
  shmemx_exchange_member_t member{};
  std::optional<shmemx_exchange_stats_t> stats;  // none of members on other nodes
};

struct Look {
  Clock::time_point time;
  std::map<std::uint64_t, Seen> members;  // by id
};

Look look_at(Member& here) {
  Look look{.time = Clock::now(), .members = {}};
  for (const auto& member : here.others()) {
    if (member.seat >= SHMEMX_EXCHANGE_MOST_MEMBERS) {
      look.members[member.id] = {.member = member, .stats = std::nullopt};
      continue;
    }
    // It may have ended since, and another one may have its seat.
    if (const auto stats = here.stats_of(member.seat); stats && stats->id == member.id) {
      look.members[member.id] = {.member = member, .stats = *stats};
    }
  }
  return look;
}

std::uint64_t failed(const shmemx_exchange_stats_t& stats) {
  return stats.failed_stale + stats.failed_dead + stats.failed_timeout + stats.failed_corrupt + stats.failed_other;
}

class View {
 public:
  explicit View(const Options& options) : options_(options), live_(::isatty(STDOUT_FILENO) != 0) {
    const char* const no_colour = std::getenv("NO_COLOR");
    colours_ = live_ && (no_colour == nullptr || *no_colour == '\0');
    if (live_) {
      say("\033[?1049h\033[?25l");  // a screen of its own, without a cursor
    }
  }
  View(const View&) = delete;
  View& operator=(const View&) = delete;
  ~View() {
    if (live_) {
      say("\033[?25h\033[?1049l");
      std::fflush(stdout);
    }
  }

  /// The members now, and what they have done since `before`.
  void show(const Look& before, const Look& now) {
    const double seconds = std::chrono::duration<double>(now.time - before.time).count();
    std::string text = live_ ? "\033[H\033[2J" : "";
    const auto remote =
        std::count_if(now.members.begin(), now.members.end(), [](const auto& member) { return !member.second.stats; });
    text += fmt::format("{}: {} member{}{}, rates of {:.1f} s\n", options_.exchange, now.members.size(),
                        now.members.size() == 1 ? "" : "s",
                        remote > 0 ? fmt::format(", {} of them on other nodes", remote) : "", seconds);
    text += coloured(
        "1", fmt::format("{:>4} {:>8} {:>9} {:>9} {:>10} {:>9} {:>9} {:>9} {:>8} {:>8} {:>8}\n", "seat", "pid",
                         "blocks", "MiB", "pulled/s", "MB/s", "found/s", "missed/s", "failed/s", "failed", "silent"));
    std::vector<Seen> rows;
    for (const auto& [id, seen] : now.members) {
      rows.push_back(seen);
    }
    std::sort(rows.begin(), rows.end(), [](const Seen& a, const Seen& b) { return a.member.seat < b.member.seat; });
    for (const Seen& seen : rows) {
      const auto had = before.members.find(seen.member.id);
      text += start_of_row(seen.member);
      // An id means a member, until someone else takes it.
      const auto& past = had != before.members.end() && had->second.stats ? had->second.stats : seen.stats;
      text += seen.stats
                  ? rates(*past, *seen.stats, seconds)
                  : fmt::format("{:>10} {:>9} {:>9} {:>9} {:>8} {:>8} {:>8}\n", "-", "-", "-", "-", "-", "-", "-");
    }
    if (now.members.empty() && (live_ || !explained_)) {
      text += no_members(options_).text + "\n";
      explained_ = true;
    }
    say("{}", text);
    std::fflush(stdout);
  }

 private:
  [[nodiscard]] std::string coloured(const char* code, const std::string& text) const {
    return colours_ ? fmt::format("\033[{}m{}\033[0m", code, text) : text;
  }

  static std::string start_of_row(const shmemx_exchange_member_t& member) {
    return fmt::format("{:>4} {:>8} {:>9} {:>9.1f} ", member.seat, member.pid, member.blocks,
                       static_cast<double>(member.bytes) / (1 << 20));
  }
  [[nodiscard]] std::string rates(const shmemx_exchange_stats_t& before, const shmemx_exchange_stats_t& stats,
                                  double seconds) const {
    // A member can write anything, also less than before.
    const auto rate = [&](std::uint64_t from, std::uint64_t to) {
      return to > from ? static_cast<double>(to - from) / seconds : 0.0;
    };
    const double failures = rate(failed(before), failed(stats));
    const std::string text =
        fmt::format("{:>10.0f} {:>9.1f} {:>9.0f} {:>9.0f} ", rate(before.pulled_blocks, stats.pulled_blocks),
                    rate(before.pulled_bytes, stats.pulled_bytes) / 1e6, rate(before.found, stats.found),
                    rate(before.missed, stats.missed));
    const std::string last = fmt::format("{:>8.0f} {:>8}", failures, failed(stats));
    const std::string silent = fmt::format(" {:>8}", stats.unreachable);
    return text + (failures > 0 ? coloured("31", last) : last) +
           (stats.unreachable > 0 ? coloured("31", silent) : silent) + "\n";
  }

  const Options options_;
  const bool live_;
  bool explained_ = false;
  bool colours_ = false;
};

}  // namespace

Result<void> top(const Options& options) {
  const EndSignals ends;
  auto member = Member::open(options, kVisitor);
  if (!member) {
    return member.error();
  }
  Look before = look_at(*member);
  View view(options);
  for (std::uint64_t round = 0; options.rounds == 0 || round < options.rounds; ++round) {
    if (ends.ended(options.interval) || std::ferror(stdout) != 0) {
      break;
    }
    Look now = look_at(*member);
    view.show(before, now);
    before = std::move(now);
  }
  return {};
}

}  // namespace kv_exchange
