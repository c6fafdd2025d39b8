// SPDX-License-Identifier: Apache-2.0
// How the context chooses the barriers of teams, and gives them the device.
#include <string>

#include "shmem/barrier/port_agreement.hpp"
#include "shmem/context.hpp"
#include "shmem/log.hpp"

namespace shmem {

void Context::open_gba_port() {
  if (job_.options.gba == GbaUse::kOff) {
    return;
  }
  const auto opened = try_port(job_, port_);
  no_gba_ = opened ? "" : opened.error().text;
  if (opened) {
    gba_device_info info{};
    gba_device_get_info(port_.well().get(), &info);
    // A device that is a process takes its turn on the processors like one PE more.
    gba_policy_ = job_.policy_for(job_.size + (info.is_process != 0 ? 1 : 0));
  }
}

GbaMember Context::gba_member(const Team& team, bool asked) {
  const Options& options = job_.options;
  GbaMember member{job_.me < ports_ ? &port_ : nullptr, no_gba_, asked, gba_policy_};
  member.needed = needs_gba();
  if (!asked) {
    member.unavailable =
        options.gba == GbaUse::kOff ? "SHMEM_GBA=off" : "SHMEM_BARRIER_ALGORITHM=" + options.barrier_algorithm;
  } else if (team.size() < options.gba_min_pes) {
    member.wanted = false;
    member.unavailable = "the team has fewer members than SHMEM_GBA_MIN_PES=" + std::to_string(options.gba_min_pes);
  }
  return member;
}

const TuningRow& Context::fitting_row(const Team& team) const {
  return tuning_.choose(team.size(), crowded());
}

BarrierChoice Context::choose(const Team& team, const std::string& algorithm) const {
  BarrierChoice choice{.tuning = {job_.options.barrier_radix, job_.options.barrier_group, crowded()}};
  if (const auto asked = find_algorithm(algorithm)) {
    choice.algorithm = *asked;
    return choice;
  }
  const TuningRow& row = fitting_row(team);
  choice.algorithm = row.algorithm;
  choice.tuning.radix = row.radix.value_or(choice.tuning.radix);
  choice.tuning.group = row.group.value_or(choice.tuning.group);
  return choice;
}

Result<void> Context::equip(Team& team) {
  const TeamMap& map = team.map();
  debug("is member " + std::to_string(team.me()) + " of team " + std::to_string(team.slot()) + ": " +
        std::to_string(map.size) + " PEs from " + std::to_string(map.start) + " in steps of " +
        std::to_string(map.stride));
  const Options& options = job_.options;
  const auto software = find_algorithm(options.barrier_algorithm);
  if (auto ok = choose_for(team, options.barrier_algorithm); !ok) {
    return ok;
  }
  const bool asked = !software && options.gba != GbaUse::kOff;
  if (auto ok = team.use_gba(gba_member(team, asked), ports_); !ok) {
    return ok;
  }
  if (needs_gba() && team.slot() == kWorldTeam && team.size() > 1 && std::string(team.algorithm()) != "gba") {
    return fail(std::errc::no_such_device,
                "shmem: PE " + std::to_string(job_.world_me()) +
                    ": SHMEM_GBA=require, but the world team cannot use a GBA: " + team.gba_reason());
  }
  if (options.info && team.me() == 0) {
    report_team(team);
  }
  return {};
}

std::string Context::reason_of(const Team& team) const {
  if (job_.options.barrier_algorithm != "auto") {
    return "SHMEM_BARRIER_ALGORITHM";
  }
  return std::to_string(job_.size) + " PEs in all on " + std::to_string(job_.processors) + " processors: line " +
         std::to_string(fitting_row(team).line) + " of " + tuning_.name();
}

void Context::report_team(const Team& team) const {
  const std::string& no_gba = team.gba_reason();
  const std::string nodes =
      team.span() != nullptr ? "its " + std::to_string(team.span()->nodes()) + " nodes meet " : "";
  std::string why = nodes.empty() ? "" : "; " + nodes + "through it";
  if (!nodes.empty() && team.span()->gba_groups() > 1) {
    why += ", in " + std::to_string(team.span()->gba_groups()) + " groups";
  }
  if (!no_gba.empty()) {
    why = " (" + reason_of(team) + "); " + (nodes.empty() ? "" : nodes + "by messages, ") +
          "not through a GBA: " + no_gba;
  }
  log(LogLevel::kInfo, "shmem: team %d (%d PEs: %d, stride %d): barrier %s%s", team.slot(), team.size(),
      team.map().start, team.map().stride, team.algorithm(), why.c_str());
}

Result<void> Context::set_barrier(Team& team, const std::string& algorithm) {
  if (auto ok = team.ready(); !ok) {
    return ok;
  }
  if (find_algorithm(algorithm)) {
    auto ok = team.use_software(algorithm + " was asked for");
    return ok ? choose_for(team, algorithm) : ok;
  }
  if (algorithm != "gba" && algorithm != "auto") {
    return fail(std::errc::invalid_argument,
                "shmem: no barrier algorithm \"" + algorithm + "\" (auto, gba, or one that shmem_info lists)");
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
  if (algorithm == "gba" && team.size() > 1 && std::string(team.algorithm()) != "gba") {
    return fail(std::errc::no_such_device,
                "shmem: team " + std::to_string(team.slot()) + " cannot use a GBA: " + team.gba_reason());
  }
  return {};
}

}  // namespace shmem
