// SPDX-License-Identifier: Apache-2.0
// OpenSHMEM 1.6, section 9.4: teams.
#include "shmem/api/check.hpp"
#include "shmem/api/kernel_core.hpp"
#include "shmem/layout/peers.hpp"
#include "shmem/team/survivors.hpp"

using shmem::Runtime;
using shmem::SplitRequest;
using shmem::Team;
using shmem::TeamCall;
using shmem::TeamMap;
namespace api = shmem::api;

namespace {

Team* find(const char* call, shmem_team_t team) {
  return api::find_team(api::running(call), team);
}

/// The program's settings for a new team besides its PEs.
struct Config {
  const shmem_team_config_t* values;
  long mask;

  [[nodiscard]] std::optional<std::string> mask_problem() const {
    if ((mask & ~SHMEM_TEAM_NUM_CONTEXTS) != 0) {
      return fmt::format("config_mask {} has unknown bits", mask);
    }
    if (mask != 0 && values == nullptr) {
      return fmt::format("config_mask is {}, but no config is given", mask);
    }
    return std::nullopt;
  }
  [[nodiscard]] std::optional<std::string> problem() const {
    auto problem = mask_problem();
    if (!problem && contexts() < 0) {
      problem = fmt::format("num_contexts {} is below 0", contexts());
    }
    return problem;
  }
  /// REQUIRES: a valid config.
  [[nodiscard]] int contexts() const { return mask != 0 ? values->num_contexts : 0; }
};

/// 0 and *new_team, or non-zero with a message and SHMEM_TEAM_INVALID. `new_team` may be NULL in a call that is
/// refused.
int split(Runtime& runtime, Team& parent, const SplitRequest& request, shmem_team_t* new_team) {
  auto slot = runtime.teams().split(parent, request);
  if (new_team != nullptr) {
    *new_team = shmemx_team_by_number(slot.value_or(-1));
  }
  return slot ? 0 : api::report_loudly(slot.error());
}

void set_invalid(shmem_team_t* team) {
  if (team != nullptr) {
    *team = SHMEM_TEAM_INVALID;
  }
}

/// OpenSHMEM 1.6 allows strides of both signs, and 0 for a team of one PE; Ascend's calls allow 1 or more.
enum class Strides { kAll, kPositive };

std::optional<std::string> strided_problem(const Team& parent, int start, int stride, int size, Strides allowed) {
  const std::int64_t last = start + (std::int64_t{size} - 1) * stride;
  const bool inside = start >= 0 && start < parent.size() && last >= 0 && last < parent.size();
  const bool strided = allowed == Strides::kPositive ? stride >= 1 : stride != 0 || size == 1;
  if (size >= 1 && inside && strided) {
    return std::nullopt;
  }
  return fmt::format(
      "start {}, stride {}, size {} name no PEs of the parent, which has {} ({})", start, stride, size, parent.size(),
      allowed == Strides::kPositive ? "start from 0, stride and size from 1, and no wrapping round"
                                    : "start from 0, size from 1, stride 0 with size 1 only, no wrapping round");
}

int split_strided(const char* call, shmem_team_t parent_team, int start, int stride, int size, const Config& config,
                  shmem_team_t* new_team, Strides allowed) {
  Runtime& runtime = api::running_on_host(call);
  set_invalid(new_team);
  Team* parent = api::find_team(runtime, parent_team);
  if (parent == nullptr) {
    return api::report_loudly(api::invalid(runtime, call, api::not_a_team(parent_team)));
  }
  if (runtime.checker() != nullptr) [[unlikely]] {
    api::check_team_call(runtime, *parent, call, fmt::format("start {}, stride {}, size {}", start, stride, size));
  }
  SplitRequest request{{TeamCall::kStrided, start, stride, size}};
  auto problem = strided_problem(*parent, start, stride, size, allowed);
  if (!problem) {
    problem = config.problem();
  }
  if (new_team == nullptr) {
    problem = "the new team has no destination: new_team is NULL";
  }
  if (problem) {
    request.refusal = api::invalid(runtime, call, *problem);
    return split(runtime, *parent, request, new_team);
  }
  const TeamMap map = runtime.teams().part_of(parent->map(), start, stride, size);
  if (map.member(runtime.my_pe())) {
    request.map = map;
  }
  request.contexts = config.contexts();
  return split(runtime, *parent, request, new_team);
}

int split_2d(const char* call, shmem_team_t parent_team, int xrange, const Config& x_config, shmem_team_t* xaxis_team,
             const Config& y_config, shmem_team_t* yaxis_team) {
  Runtime& runtime = api::running_on_host(call);
  set_invalid(xaxis_team);
  set_invalid(yaxis_team);
  Team* parent = api::find_team(runtime, parent_team);
  if (parent == nullptr) {
    return api::report_loudly(api::invalid(runtime, call, api::not_a_team(parent_team)));
  }
  if (runtime.checker() != nullptr) [[unlikely]] {
    api::check_team_call(runtime, *parent, call, fmt::format("xrange {}", xrange));
  }
  SplitRequest rows{{TeamCall::kRows, 0, 1, xrange}};
  SplitRequest columns{{TeamCall::kColumns, 0, 1, xrange}};
  auto problem = x_config.problem();
  if (!problem) {
    problem = y_config.problem();
  }
  if (xrange < 1) {
    problem = fmt::format("xrange {} is not above 0", xrange);
  }
  if (xaxis_team == nullptr || yaxis_team == nullptr) {
    problem = "a new team has no destination: xaxis_team or yaxis_team is NULL";
  }
  if (problem) {
    rows.refusal = api::invalid(runtime, call, *problem);
    return split(runtime, *parent, rows, xaxis_team);
  }
  // A row longer than the parent becomes the parent.
  const int width = std::min(xrange, parent->size());
  const int row = parent->me() / width * width;
  const int column = parent->me() % width;
  const TeamMap& all = parent->map();
  rows.map = runtime.teams().part_of(all, row, 1, std::min(width, parent->size() - row));
  rows.contexts = x_config.contexts();
  columns.map = runtime.teams().part_of(all, column, width, (parent->size() - column + width - 1) / width);
  columns.contexts = y_config.contexts();
  if (const int error = split(runtime, *parent, rows, xaxis_team); error != 0) {
    return error;
  }
  const int error = split(runtime, *parent, columns, yaxis_team);
  if (error != 0) {
    // Both teams or none, on all PEs alike: a failure of one PE is a failure of all.
    static_cast<void>(runtime.teams().destroy(shmemx_team_number(*xaxis_team)));  // the first failure is reported
    *xaxis_team = SHMEM_TEAM_INVALID;
  }
  return error;
}

/// By their numbers in the world.
std::vector<int> failed_members(const Runtime& runtime, Team& team) {
  const shmem::Survivors& survivors = team.survivors();
  std::vector<int> failed;
  for (int i = 0; i < team.size(); ++i) {
    const int pe = team.map().pe(i);
    const int here = runtime.job().nodes.number(pe);
    if (survivors.shrunk() ? survivors.has_left_out(i)
        : here >= 0        ? shmem::is_gone(runtime.job(), here, team.view().admissions())
                           : runtime.job().network->has_lost(pe)) {
      failed.push_back(pe);
    }
  }
  return failed;
}

int get_config(const char* call, shmem_team_t team, long mask, shmem_team_config_t* config) {
  const Runtime& runtime = api::running(call);
  const Team* found = find(call, team);
  if (found == nullptr) {
    // No message: programs ask this way whether they are in the team.
    return api::report(api::invalid(runtime, call, api::not_a_team(team)));
  }
  if (auto problem = Config{config, mask}.mask_problem()) {
    return api::report_loudly(api::invalid(runtime, call, *problem));
  }
  if (mask != 0) {
    config->num_contexts = found->contexts();
  }
  return 0;
}

}  // namespace

SHMEM_ROUTINE(int, team_my_pe, (shmem_team_t team)) try {
  const Team* found = find("shmem_team_my_pe", team);
  return found != nullptr ? found->me() : -1;
}
SHMEM_CATCH(int)

SHMEM_ROUTINE(int, team_n_pes, (shmem_team_t team)) try {
  const Team* found = find("shmem_team_n_pes", team);
  return found != nullptr ? found->size() : -1;
}
SHMEM_CATCH(int)

SHMEM_ROUTINE(int, team_translate_pe, (shmem_team_t src_team, int src_pe, shmem_team_t dest_team)) try {
  const Team* from = find("shmem_team_translate_pe", src_team);
  const Team* to = find("shmem_team_translate_pe", dest_team);
  if (from == nullptr || to == nullptr || src_pe < 0 || src_pe >= from->size()) {
    return -1;
  }
  return to->map().member(from->map().pe(src_pe)).value_or(-1);
}
SHMEM_CATCH(int)

SHMEM_ROUTINE(int, team_get_config, (shmem_team_t team, long config_mask, shmem_team_config_t* config)) try {
  return get_config("shmem_team_get_config", team, config_mask, config);
}
SHMEM_CATCH(int)

SHMEM_ROUTINE(int, team_split_strided,
              (shmem_team_t parent_team, int start, int stride, int size, const shmem_team_config_t* config,
               long config_mask, shmem_team_t* new_team))
try {
  return split_strided("shmem_team_split_strided", parent_team, start, stride, size, {config, config_mask}, new_team,
                       Strides::kAll);
}
SHMEM_CATCH(int)

SHMEM_ROUTINE(int, team_split_2d,
              (shmem_team_t parent_team, int xrange, const shmem_team_config_t* xaxis_config, long xaxis_mask,
               shmem_team_t* xaxis_team, const shmem_team_config_t* yaxis_config, long yaxis_mask,
               shmem_team_t* yaxis_team))
try {
  return split_2d("shmem_team_split_2d", parent_team, xrange, {xaxis_config, xaxis_mask}, xaxis_team,
                  {yaxis_config, yaxis_mask}, yaxis_team);
}
SHMEM_CATCH(int)

SHMEM_ROUTINE(void, team_destroy, (shmem_team_t team)) try {
  Runtime& runtime = api::running_on_host("shmem_team_destroy");
  if (team == SHMEM_TEAM_INVALID) {
    return;
  }
  const Team& found = api::valid_team(runtime, "shmem_team_destroy", team);
  if (team == SHMEM_TEAM_WORLD || team == SHMEM_TEAM_SHARED) {
    api::end_job(runtime, "shmem_team_destroy", "team {} is predefined", found.slot());
  }
  if (&found == &runtime.teams().home()) {
    api::end_job(runtime, "shmem_team_destroy", "team {} is what is left of SHMEM_TEAM_WORLD: shmem_finalize ends it",
                 found.slot());
  }
  api::check_call(runtime, found, "shmem_team_destroy");
  const int slot = found.slot();
  const shmem::CallSet members{slot, found.map_here()};
  runtime.ctxs().remove_all_of(slot);
  if (auto ok = runtime.teams().destroy(slot); !ok) {
    runtime.end_job(ok.error());
  }
  if (runtime.checker() != nullptr) [[unlikely]] {
    runtime.checker()->forget(members);
  }
}
SHMEM_CATCH(void)

extern "C" {

int shmemx_team_split_strided(shmem_team_t parent_team, int start, int stride, int size,
                              shmem_team_t* new_team) noexcept try {
  return split_strided("shmemx_team_split_strided", parent_team, start, stride, size, {nullptr, 0}, new_team,
                       Strides::kPositive);
}
SHMEM_CATCH(int)

int shmemx_team_split_2d(shmem_team_t parent_team, int xrange, shmem_team_t* xaxis_team,
                         shmem_team_t* yaxis_team) noexcept try {
  return split_2d("shmemx_team_split_2d", parent_team, xrange, {nullptr, 0}, xaxis_team, {nullptr, 0}, yaxis_team);
}
SHMEM_CATCH(int)

int shmemx_team_get_config(shmem_team_t team, shmem_team_config_t* config) noexcept try {
  return get_config("shmemx_team_get_config", team, SHMEM_TEAM_NUM_CONTEXTS, config);
}
SHMEM_CATCH(int)

int shmemx_team_set_barrier(shmem_team_t team, const char* algorithm) noexcept try {
  Runtime& runtime = api::running_on_host("shmemx_team_set_barrier");
  Team* found = api::find_team(runtime, team);
  if (found == nullptr) {
    return api::report({std::errc::invalid_argument, "shmemx_team_set_barrier: " + api::not_a_team(team)});
  }
  if (runtime.checker() != nullptr) [[unlikely]] {
    api::check_team_call(runtime, *found, "shmemx_team_set_barrier", algorithm != nullptr ? algorithm : "NULL");
  }
  auto ok = runtime.barriers().set_barrier(*found, algorithm);
  return ok ? 0 : api::report(ok.error());
}
SHMEM_CATCH(int)

int shmemx_team_shrink(shmem_team_t team, shmem_team_t* new_team) noexcept try {
  constexpr const char* kCall = "shmemx_team_shrink";
  Runtime& runtime = api::running_on_host(kCall);
  set_invalid(new_team);
  Team* found = api::find_team(runtime, team);
  if (found == nullptr || new_team == nullptr) {
    return api::report_loudly(
        api::invalid(runtime, kCall, found == nullptr ? api::not_a_team(team) : "new_team is NULL"));
  }
  const auto slot = runtime.survival().shrink(*found);
  if (!slot) {
    return api::report_loudly(slot.error());
  }
  *new_team = shmemx_team_by_number(*slot);
  return 0;
}
SHMEM_CATCH(int)

int shmemx_team_grow(shmem_team_t team, int processes, shmem_team_t* new_team) noexcept try {
  constexpr const char* kCall = "shmemx_team_grow";
  Runtime& runtime = api::running_on_host(kCall);
  set_invalid(new_team);
  Team* found = api::find_team(runtime, team);
  std::string problem = found == nullptr ? api::not_a_team(team) : new_team == nullptr ? "new_team is NULL" : "";
  if (problem.empty() && processes < 0) {
    problem = fmt::format("{} processes are less than 0", processes);
  }
  if (!problem.empty()) {
    return api::report_loudly(api::invalid(runtime, kCall, problem));
  }
  const auto slot = runtime.survival().grow(*found, processes);
  if (!slot) {
    return api::report_loudly(slot.error());
  }
  *new_team = shmemx_team_by_number(*slot);
  return 0;
}
SHMEM_CATCH(int)

int shmemx_is_replacement() noexcept try { return api::running("shmemx_is_replacement").survival().replaces() ? 1 : 0; }
SHMEM_CATCH(int)

int shmemx_team_failed(shmem_team_t team, int* pes, int n) noexcept try {
  constexpr const char* kCall = "shmemx_team_failed";
  Runtime& runtime = api::running_on_host(kCall);
  Team* found = api::find_team(runtime, team);
  if (found == nullptr || n < 0 || (pes == nullptr && n > 0)) {
    return api::report(
        api::invalid(runtime, kCall,
                     found == nullptr ? api::not_a_team(team) : fmt::format("there is no room for {} PEs at pes", n)));
  }
  int failed = 0;
  for (const int pe : failed_members(runtime, *found)) {
    if (failed < n) {
      pes[failed] = pe;
    }
    ++failed;
  }
  return failed;
}
SHMEM_CATCH(int)

int shmemx_team_info(shmem_team_t team, shmemx_team_info_t* info) noexcept try {
  const Runtime& runtime = api::running("shmemx_team_info");
  const Team* found = find("shmemx_team_info", team);
  if (found == nullptr || info == nullptr) {
    return api::report(
        api::invalid(runtime, "shmemx_team_info", found == nullptr ? api::not_a_team(team) : "info is NULL"));
  }
  *info = {};
  info->n_pes = found->size();
  info->my_pe = found->me();
  info->start = found->map().start;
  info->stride = found->map().stride;
  std::snprintf(info->algorithm, sizeof info->algorithm, "%s", found->algorithm());
  std::snprintf(info->reason, sizeof info->reason, "%s", found->reason().c_str());
  info->by_device = found->stats().by_device;
  info->by_software = found->stats().by_software;
  return 0;
}
SHMEM_CATCH(int)

int shmemx_barrier_stats(shmem_team_t team, shmemx_barrier_stats_t* stats) noexcept try {
  const Runtime& runtime = api::running("shmemx_barrier_stats");
  const Team* found = find("shmemx_barrier_stats", team);
  if (found == nullptr || stats == nullptr) {
    return api::report(
        api::invalid(runtime, "shmemx_barrier_stats", found == nullptr ? api::not_a_team(team) : "stats is NULL"));
  }
  const shmem::BarrierStats counts = found->stats();
  const shmem::BarrierStatistics& all = found->statistics();
  const shmem::BarrierTimes& times = all.times();
  const auto last = all.last();  // among the members on this node
  const int last_pe = last.member < 0 ? -1 : runtime.job().nodes.world(found->map_here().pe(last.member));
  *stats = {.barriers = counts.total(),
            .by_device = counts.by_device,
            .by_software = counts.by_software,
            .timed = times.timed,
            .wait_ns = times.wait,
            .max_wait_ns = times.longest_wait,
            .skew_ns = times.skew,
            .max_skew_ns = times.longest_skew,
            .my_last_count = all.was_last(found->view().me()),
            .most_last_count = last.often,
            .most_last_pe = last_pe < 0 ? -1 : found->map().member(last_pe).value_or(-1),
            .reserved = 0};
  return 0;
}
SHMEM_CATCH(int)
}
