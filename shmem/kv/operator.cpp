// SPDX-License-Identifier: Apache-2.0
#include "shmem/kv/operator.hpp"

#include <string>

namespace shmem::kv {
namespace {

constexpr int kMostCores = 1024;  // a slip of the finger
static_assert(sizeof(Proposal) == sizeof(SyncWord));

}  // namespace

Result<void> Operator::check(const Settings& settings) {
  const int cores = settings.cores;
  if (cores < 1 || cores > kMostCores) {
    return fail(std::errc::invalid_argument, "kv_shuffle: cannot use " + std::to_string(cores) + " cores: 1 to " +
                                                 std::to_string(kMostCores) + " can copy");
  }
  if (settings.path != Path::kAuto && settings.path != Path::kDirect && settings.path != Path::kScratch) {
    return fail(std::errc::invalid_argument, "kv_shuffle: path " + std::to_string(static_cast<int>(settings.path)) +
                                                 " is none (SHMEMX_KV_PATH_AUTO, ...)");
  }
  return {};
}

Result<std::unique_ptr<Operator>> Operator::create(Site site, const Settings& settings, const WaitPolicy& policy,
                                                   std::byte* memory) {
  if (auto ok = check(settings); !ok) {
    return tl::make_unexpected(ok.error());
  }
  auto cores = CoreGroup::create(settings.cores, policy);
  if (!cores) {
    return tl::make_unexpected(cores.error());
  }
  auto copier = Copier::create(**cores, settings.path);
  if (!copier) {
    return tl::make_unexpected(copier.error());
  }
  return std::unique_ptr<Operator>{
      new Operator{std::move(site), settings, policy, *std::move(cores), *std::move(copier), memory}};
}

Operator::Operator(Site site, const Settings& settings, const WaitPolicy& policy, std::unique_ptr<CoreGroup> cores,
                   Copier copier, std::byte* memory)
    : site_(std::move(site)),
      policy_(policy),
      cores_(std::move(cores)),
      copier_(std::move(copier)),
      team_(site_, copier_, reinterpret_cast<Proposal*>(memory), settings.staging_room),
      pairs_(site_, copier_, policy_,
             reinterpret_cast<SyncWord*>(memory + TeamShuffle::kProposals * sizeof(Proposal))) {}

}  // namespace shmem::kv
