// SPDX-License-Identifier: Apache-2.0
#include "kv/operator/operator.hpp"

#include <fmt/format.h>

namespace shmem::kv {
namespace {

constexpr int kMostCores = 1024;  // more is a mistake
static_assert(sizeof(Proposal) == sizeof(SyncWord));

}  // namespace

Result<void> Operator::check(const OperatorSettings& settings) {
  const int cores = settings.cores;
  if (cores < 1 || cores > kMostCores) {
    return fail(std::errc::invalid_argument,
                fmt::format("kv_shuffle: cannot use {} cores: 1 to {} can copy", cores, kMostCores));
  }
  if (settings.path != Path::kAuto && settings.path != Path::kDirect && settings.path != Path::kScratch) {
    return fail(std::errc::invalid_argument, fmt::format("kv_shuffle: path {} is invalid (SHMEMX_KV_PATH_AUTO, ...)",
                                                         static_cast<int>(settings.path)));
  }
  return {};
}

Result<std::unique_ptr<Operator>> Operator::create(std::unique_ptr<OperatorTeam> team, const OperatorSettings& settings,
                                                   const WaitPolicy& policy, std::byte* memory) {
  if (auto ok = check(settings); !ok) {
    return ok.error();
  }
  auto cores = CoreGroup::create(settings.cores, policy);
  if (!cores) {
    return cores.error();
  }
  auto copier = Copier::create(**cores, settings.path);
  if (!copier) {
    return copier.error();
  }
  return std::unique_ptr<Operator>{
      new Operator{std::move(team), settings, policy, *std::move(cores), *std::move(copier), memory}};
}

Operator::Operator(std::unique_ptr<OperatorTeam> team, const OperatorSettings& settings, const WaitPolicy& policy,
                   std::unique_ptr<CoreGroup> cores, Copier copier, std::byte* memory)
    : team_(std::move(team)),
      policy_(policy),
      cores_(std::move(cores)),
      copier_(std::move(copier)),
      team_shuffle_(*team_, copier_, reinterpret_cast<Proposal*>(memory), settings.staging_room),
      pair_shuffle_(*team_, copier_, policy_,
                    reinterpret_cast<SyncWord*>(memory + TeamShuffle::kProposals * sizeof(Proposal))) {}

}  // namespace shmem::kv
