// SPDX-License-Identifier: Apache-2.0
// OpenSHMEM 1.6, section 9.4: teams.
#include "shmem/api/entry.hpp"

using shmem::Context;
using shmem::Team;
using shmem::TeamMap;
namespace api = shmem::api;

namespace {

Team* find(const char* call, shmem_team_t team) {
  return api::running(call).teams().find(team);
}

/// 0 and *new_team, or non-zero with a message and SHMEM_TEAM_INVALID.
int split(Context& context, Team& parent, const std::optional<TeamMap>& map, shmem_team_t* new_team) {
  auto handle = context.teams().split(parent, map);
  *new_team = handle.value_or(SHMEM_TEAM_INVALID);
  return handle ? 0 : api::report_loudly(handle.error());
}

int refuse(const Context& context, const char* call, const std::string& problem) {
  return api::report_loudly(
      {std::errc::invalid_argument, "shmem: PE " + std::to_string(context.my_pe()) + ": " + call + ": " + problem});
}

std::string invalid_team(shmem_team_t team) {
  return std::to_string(team) + " is not a team of this PE";
}

int split_strided(const char* call, shmem_team_t parent_team, int start, int stride, int size, shmem_team_t* new_team) {
  Context& context = api::running(call);
  *new_team = SHMEM_TEAM_INVALID;
  Team* parent = context.teams().find(parent_team);
  if (parent == nullptr) {
    return refuse(context, call, invalid_team(parent_team));
  }
  const std::int64_t last = start + (std::int64_t{size} - 1) * stride;
  if (start < 0 || stride < 1 || size < 1 || last >= parent->size()) {
    return refuse(context, call,
                  "start " + std::to_string(start) + ", stride " + std::to_string(stride) + ", size " +
                      std::to_string(size) + " name no PEs of the parent, which has " + std::to_string(parent->size()));
  }
  const TeamMap map{parent->map().pe(start), parent->map().stride * stride, size};
  return split(context, *parent, map.member(context.my_pe()) ? std::optional(map) : std::nullopt, new_team);
}

int split_2d(const char* call, shmem_team_t parent_team, int xrange, shmem_team_t* xaxis_team,
             shmem_team_t* yaxis_team) {
  Context& context = api::running(call);
  *xaxis_team = *yaxis_team = SHMEM_TEAM_INVALID;
  Team* parent = context.teams().find(parent_team);
  if (parent == nullptr) {
    return refuse(context, call, invalid_team(parent_team));
  }
  if (xrange < 1) {
    return refuse(context, call, "xrange " + std::to_string(xrange) + " is not above 0");
  }
  // A row longer than the parent is the parent.
  const int width = std::min(xrange, parent->size());
  const int row = parent->me() / width * width;
  const int column = parent->me() % width;
  const TeamMap& all = parent->map();
  const TeamMap x{all.pe(row), all.stride, std::min(width, parent->size() - row)};
  const TeamMap y{all.pe(column), all.stride * width, (parent->size() - column + width - 1) / width};
  const int error = split(context, *parent, x, xaxis_team);
  return error != 0 ? error : split(context, *parent, y, yaxis_team);
}

int get_config(const char* call, shmem_team_t team, long mask, shmem_team_config_t* config) {
  if (find(call, team) == nullptr) {
    return -1;
  }
  if ((mask & SHMEM_TEAM_NUM_CONTEXTS) != 0) {
    config->num_contexts = 0;
  }
  return 0;
}

}  // namespace

SHMEM_ROUTINE(int, team_my_pe, (shmem_team_t team)) {
  const Team* found = find("shmem_team_my_pe", team);
  return found != nullptr ? found->me() : -1;
}

SHMEM_ROUTINE(int, team_n_pes, (shmem_team_t team)) {
  const Team* found = find("shmem_team_n_pes", team);
  return found != nullptr ? found->size() : -1;
}

SHMEM_ROUTINE(int, team_translate_pe, (shmem_team_t src_team, int src_pe, shmem_team_t dest_team)) {
  const Team* from = find("shmem_team_translate_pe", src_team);
  const Team* to = find("shmem_team_translate_pe", dest_team);
  if (from == nullptr || to == nullptr || src_pe < 0 || src_pe >= from->size()) {
    return -1;
  }
  return to->map().member(from->map().pe(src_pe)).value_or(-1);
}

SHMEM_ROUTINE(int, team_get_config, (shmem_team_t team, long config_mask, shmem_team_config_t* config)) {
  return get_config("shmem_team_get_config", team, config_mask, config);
}

SHMEM_ROUTINE(int, team_split_strided,
              (shmem_team_t parent_team, int start, int stride, int size, const shmem_team_config_t* /*config*/,
               long /*config_mask*/, shmem_team_t* new_team)) {
  return split_strided("shmem_team_split_strided", parent_team, start, stride, size, new_team);
}

SHMEM_ROUTINE(int, team_split_2d,
              (shmem_team_t parent_team, int xrange, const shmem_team_config_t* /*xaxis_config*/, long /*xaxis_mask*/,
               shmem_team_t* xaxis_team, const shmem_team_config_t* /*yaxis_config*/, long /*yaxis_mask*/,
               shmem_team_t* yaxis_team)) {
  return split_2d("shmem_team_split_2d", parent_team, xrange, xaxis_team, yaxis_team);
}

SHMEM_ROUTINE(void, team_destroy, (shmem_team_t team)) {
  Context& context = api::running("shmem_team_destroy");
  if (team == SHMEM_TEAM_INVALID) {
    return;
  }
  api::valid_team(context, "shmem_team_destroy", team);
  if (team == SHMEM_TEAM_WORLD || team == SHMEM_TEAM_SHARED) {
    api::end_job(context, "shmem_team_destroy", "team " + std::to_string(team) + " is predefined");
  }
  if (auto ok = context.teams().destroy(team, context.gba()); !ok) {
    context.end_job(EXIT_FAILURE, ok.error().text);
  }
}

extern "C" {

int shmemx_team_split_strided(shmem_team_t parent_team, int start, int stride, int size,
                              shmem_team_t* new_team) noexcept {
  return split_strided("shmemx_team_split_strided", parent_team, start, stride, size, new_team);
}

int shmemx_team_split_2d(shmem_team_t parent_team, int xrange, shmem_team_t* xaxis_team,
                         shmem_team_t* yaxis_team) noexcept {
  return split_2d("shmemx_team_split_2d", parent_team, xrange, xaxis_team, yaxis_team);
}

int shmemx_team_get_config(shmem_team_t team, shmem_team_config_t* config) noexcept {
  return get_config("shmemx_team_get_config", team, SHMEM_TEAM_NUM_CONTEXTS, config);
}

int shmemx_team_set_barrier(shmem_team_t team, const char* algorithm) noexcept {
  Context& context = api::running("shmemx_team_set_barrier");
  Team* found = context.teams().find(team);
  if (found == nullptr) {
    return api::report({std::errc::invalid_argument, "shmemx_team_set_barrier: " + invalid_team(team)});
  }
  auto ok = context.set_barrier(*found, algorithm);
  return ok ? 0 : api::report(ok.error());
}

int shmemx_team_barrier_stats(shmem_team_t team, shmemx_team_barrier_stats_t* stats) noexcept {
  const Team* found = find("shmemx_team_barrier_stats", team);
  if (found == nullptr) {
    return api::report({std::errc::invalid_argument, "shmemx_team_barrier_stats: " + invalid_team(team)});
  }
  *stats = {};
  std::snprintf(stats->algorithm, sizeof stats->algorithm, "%s", found->algorithm());
  std::snprintf(stats->reason, sizeof stats->reason, "%s", found->gba_reason().c_str());
  stats->by_device = found->stats().by_device;
  stats->by_software = found->stats().by_software;
  return 0;
}
}
