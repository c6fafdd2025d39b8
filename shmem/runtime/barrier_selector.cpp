// SPDX-License-Identifier: Apache-2.0
#include "shmem/runtime/barrier_selector.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/folder.hpp"
#include "base/size_text.hpp"
#include "shmem/config/log.hpp"
#include "shmem/team/team_table.hpp"

namespace shmem {
namespace {

bool is_set(const char* variable) {
  // As everywhere in the library, the program does not change its environment in another thread.
  const char* value = std::getenv(variable);  // NOLINT(concurrency-mt-unsafe)
  return value != nullptr && *value != '\0';
}

/// A GBA that the kernel or udev shows.
bool is_device_here() {
  std::uint32_t functions = 0;
  if (gba_list(nullptr, 0, &functions) == 0 && functions > 0) {
    return true;
  }
  return std::ranges::any_of(base::names_in("/dev"), [](const std::string& name) {
    return name.size() > 3 && name.starts_with("gba") && name.find_first_not_of("0123456789", 3) == std::string::npos;
  });
}

/// On a node's first PE: the user has said which device to use, or how, or there is one, and it cannot be used. PEs
/// after the first one may be without a port because the device has fewer. With SHMEM_GBA=require the start fails with
/// the same reason.
void warn_of_wrong_device(const Job& job, const Result<void>& opened) {
  if (opened || job.me != 0 || job.options.gba != GbaUse::kAuto) {
    return;
  }
  const bool wrong_flags = is_set("GBA_FLAGS") && opened.error().code == std::errc::invalid_argument;
  if (is_set("GBA_DEVICE") || wrong_flags) {
    log(LogLevel::kWarn, "shmem: PE %d: barriers are made in software, because the device cannot be used: %s",
        job.world_me(), opened.error().text.c_str());
  } else if (is_device_here()) {
    log(LogLevel::kWarn,
        "shmem: PE %d: barriers are made in software, because the GBA of this node cannot be used: %s (gba check says "
        "what to do; SHMEM_GBA=off: nothing)",
        job.world_me(), opened.error().text.c_str());
  }
}

}  // namespace

Result<void> BarrierSelector::load_tables() {
  auto table = TuningTable::in_force(job_.options.barrier_tuning);
  if (!table) {
    return table.error();
  }
  tuning_ = *std::move(table);
  auto collectives = CollectiveTable::in_force(job_.options.collective_tuning);
  if (!collectives) {
    return collectives.error();
  }
  collective_tuning_ = *std::move(collectives);
  return {};
}

void BarrierSelector::open_port() {
  if (job_.options.gba == GbaUse::kOff) {
    return;
  }
  const auto opened = try_port(job_, port_);
  no_gba_ = opened ? "" : opened.error().text;
  warn_of_wrong_device(job_, opened);
  if (opened) {
    const auto info = port_.info();
    // An emulated device needs processor time like one more PE.
    gba_policy_ = job_.policy_for(job_.size + (info && info->is_process != 0 ? 1 : 0));
  }
}

Result<void> BarrierSelector::settle_ports() {
  const auto ports = shmem::settle_ports(job_, port_);
  if (!ports) {
    return ports.error();
  }
  ports_ = *ports;
  return {};
}

bool BarrierSelector::oversubscribed() const {
  return job_.size > job_.processors || job_.nodes.oversubscribed(job_.size);
}

bool BarrierSelector::needs_gba() const {
  return job_.options.gba == GbaUse::kRequire || job_.options.barrier_algorithm == "gba";
}

GbaMember BarrierSelector::gba_member(const Team& team, bool asked) {
  const Options& options = job_.options;
  GbaMember member{job_.me < ports_ ? &port_ : nullptr, no_gba_, asked, gba_policy_};
  member.needed = needs_gba();
  if (!asked) {
    member.unavailable =
        options.gba == GbaUse::kOff ? "SHMEM_GBA=off" : "SHMEM_BARRIER_ALGORITHM=" + options.barrier_algorithm;
  } else if (team.size() < options.gba_min_pes) {
    member.wanted = false;
    member.unavailable = fmt::format("the team has fewer members than SHMEM_GBA_MIN_PES={}", options.gba_min_pes);
  } else if (team.divides_a_node()) {
    member.wanted = false;
    member.unavailable = "its members are not evenly spaced among the PEs of a node";
  }
  return member;
}

const TuningRow& BarrierSelector::fitting_row(const Team& team) const {
  return tuning_.choose(team.map_here().size, oversubscribed());
}

NodesChoice BarrierSelector::choose_between(const Team& team, const std::string& algorithm) const {
  NodesChoice choice{.tuning = {.radix = job_.options.barrier_radix,
                                .group = job_.options.barrier_group,
                                .oversubscribed = oversubscribed()}};
  if (const auto asked = find_algorithm(algorithm)) {
    choice.algorithm = *asked;
    return choice;
  }
  const TuningRow row = tuning_.choose_between(team.nodes());
  choice.algorithm = row.algorithm;
  choice.tuning.radix = row.radix.value_or(choice.tuning.radix);
  return choice;
}

BarrierChoice BarrierSelector::choose(const Team& team, const std::string& algorithm) const {
  BarrierChoice choice{.tuning = {.radix = job_.options.barrier_radix,
                                  .group = job_.options.barrier_group,
                                  .oversubscribed = oversubscribed()}};
  if (team.nodes() > 1) {
    choice.nodes = choose_between(team, algorithm);
  }
  if (const auto asked = find_algorithm(algorithm)) {
    choice.algorithm = *asked;
    return choice;
  }
  const TuningRow& row = fitting_row(team);
  choice.algorithm = row.algorithm;
  choice.tuning.radix = row.radix.value_or(choice.tuning.radix);
  choice.tuning.group = row.group.value_or(choice.tuning.group);
  if (const auto known = measures(team, algorithm) ? measured(team).load() : std::nullopt) {
    choice.algorithm = known->algorithm;
  }
  return choice;
}

bool BarrierSelector::measures(const std::string& algorithm) const {
  return !find_algorithm(algorithm) && job_.options.barrier_tuning.empty() && !oversubscribed();
}

bool BarrierSelector::measures(const Team& team, const std::string& algorithm) const {
  const bool by_device = job_.options.gba != GbaUse::kOff && ports_ > 0 && team.size() >= job_.options.gba_min_pes;
  return measures(algorithm) && !by_device && team.map_here().size > 1;
}

MeasuredBarrier BarrierSelector::measured(const Team& team) const {
  return MeasuredBarrier(job_.metadata(0).measured_barriers[MeasuredBarrier::index(team.map_here().size)]);
}

BarrierTrials BarrierSelector::trials(const Team& team, const std::string& algorithm) const {
  const BarrierChoice choice = choose(team, algorithm);
  const bool wanted = measures(team, algorithm) && !measured(team).load();
  return wanted ? BarrierTrials::among(choice, team.map_here().size) : BarrierTrials(choice);
}

Result<void> BarrierSelector::choose_for(Team& team, const std::string& algorithm) const {
  const CollectiveChoice collectives = collective_tuning_.choose(team.size(), oversubscribed());
  // The other members follow the first one: what they would choose, and their clocks, do not count.
  BarrierTrials trials = this->trials(team, algorithm);
  const int barriers = BarrierTrials::barriers(team.map_here().size);
  const auto first = Clock::now();
  for (;;) {
    if (auto ok = team.agree_on_algorithm(trials.next(), collectives); !ok || !team.barrier_choice().trial) {
      return ok;
    }
    const auto begin = Clock::now();
    if (auto ok = team.try_software(barriers); !ok) {
      return ok;
    }
    const auto end = Clock::now();
    trials.note(end - begin, end - first);
    const auto found = trials.result();
    if (found && team.map_here().member(job_.me) == 0 && !trials.next().trial) {
      measured(team).store({found->choice.algorithm, found->trial / barriers});
    }
  }
}

Result<void> BarrierSelector::equip(Team& team) {
  const Options& options = job_.options;
  if (auto ok = choose_for(team, options.barrier_algorithm); !ok) {
    return ok;
  }
  const bool asked = !find_algorithm(options.barrier_algorithm) && options.gba != GbaUse::kOff;
  if (auto ok = team.use_gba(gba_member(team, asked), ports_); !ok) {
    return ok;
  }
  if (needs_gba() && team.slot() == kWorldTeam && team.size() > 1 && std::string_view(team.algorithm()) != "gba") {
    return fail(std::errc::no_such_device,
                fmt::format("shmem: PE {}: SHMEM_GBA=require, but the world team cannot use a GBA: {}", job_.world_me(),
                            team.gba_reason()));
  }
  if (options.info && team.me() == 0) {
    report(team);
  }
  return {};
}

Result<void> BarrierSelector::equip_set(Team& team) {
  team.explain_no_gba("it is for an active set");
  auto ok = choose_for(team, job_.options.barrier_algorithm);
  if (ok && job_.options.info && team.me() == 0) {
    report(team);
  }
  return ok;
}

std::string BarrierSelector::reason_of(const Team& team) const {
  if (job_.options.barrier_algorithm != "auto") {
    return "SHMEM_BARRIER_ALGORITHM";
  }
  std::string where =
      fmt::format("{} in all on {}", base::count(job_.size, "PE"), base::count(job_.processors, "processor"));
  if (team.nodes() > 1) {
    const TuningRow row = tuning_.choose_between(team.nodes());
    where = fmt::format("{} nodes: {}; on this node, {}", team.nodes(),
                        row.line == 0 ? "the built-in table" : fmt::format("line {} of {}", row.line, tuning_.name()),
                        where);
  }
  if (const auto known = measures(team, "auto") ? measured(team).load() : std::nullopt) {
    return fmt::format("{}: the fastest of those measured, {} ns", where, known->each.count());
  }
  return fmt::format("{}: line {} of {}", where, fitting_row(team).line, tuning_.name());
}

void BarrierSelector::report(const Team& team) const {
  // The program has not made these: SHMEM_TEAM_SHARED if it is the world, and those behind calls of active sets.
  const bool is_internal = (team.slot() == kSharedTeam && team.size() == job_.world_size()) || team.slot() >= kMaxTeams;
  if (is_internal && !job_.options.info_json) {
    return;
  }
  const std::string why = team.gba_text(reason_of(team));
  log_info(job_.options.info_json,
           {"barrier", team.slot(),
            fmt::format("team {} ({}: {}, stride {}): barrier {}{}", team.slot(), base::count(team.size(), "PE"),
                        team.map().start, team.map().stride, team.algorithm(), why)});
}

Result<void> BarrierSelector::set_barrier(Team& team, const char* name) {
  if (auto ok = team.ready(); !ok) {
    return ok;
  }
  const std::string algorithm = name != nullptr ? name : "";
  const int number = number_of_barrier(algorithm);
  // A wrong name too is compared first: the other PEs wait for this one.
  auto same = team.agree_on_call({TeamCall::kBarrier, 0, 0, number});
  if (number < 0 && (same || same.error().code == std::errc::invalid_argument)) {
    const std::string wrong = name != nullptr ? fmt::format("\"{}\"", algorithm) : "NULL";
    return fail(std::errc::invalid_argument,
                fmt::format("shmem: PE {}: no barrier algorithm {} (auto, gba, or one that shmem_info lists)",
                            job_.world_me(), wrong));
  }
  if (!same) {
    return same;
  }
  if (find_algorithm(algorithm)) {
    auto ok = team.use_software(algorithm + " was asked for");
    return ok ? choose_for(team, algorithm) : ok;
  }
  if (auto ok = team.use_software(""); !ok) {
    return ok;
  }
  if (auto ok = choose_for(team, algorithm); !ok) {
    return ok;
  }
  GbaMember member = gba_member(team, true);
  member.needed = member.needed || algorithm == "gba";
  if (auto ok = team.use_gba(member, ports_); !ok) {
    return ok;
  }
  if (algorithm == "gba" && team.size() > 1 && std::string_view(team.algorithm()) != "gba") {
    return fail(std::errc::no_such_device,
                fmt::format("shmem: team {} cannot use a GBA: {}", team.slot(), team.gba_reason()));
  }
  return {};
}

}  // namespace shmem
