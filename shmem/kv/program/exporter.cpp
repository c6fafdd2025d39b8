// SPDX-License-Identifier: Apache-2.0
#include "shmem/kv/program/exporter.hpp"

namespace kv_program {

using Kind = ReferenceFolder::Kind;

Exporter::Exporter(const Options& options, const Caches& caches, Agreement& agreement)
    : caches_(caches), agreement_(agreement) {
  if (!options.export_to.empty()) {
    folder_.emplace(options.export_to);
  }
}

Outcome Exporter::before(const RoundPlan& plan) {
  if (!folder_) {
    return std::nullopt;
  }
  auto written = folder_->create();
  if (written) {
    written = write_caches(*folder_, Kind::kInput, caches_);
  }
  if (written) {
    written = folder_->write_plan(plan.pairs, shmem_my_pe());
  }
  if (auto failed = agree(agreement_, written)) {
    return failed;
  }
  return agree(agreement_, write_golden(*folder_, caches_.shape(), plan.pairs));
}

Outcome Exporter::after() {
  return folder_ ? agree(agreement_, write_caches(*folder_, Kind::kOutput, caches_)) : std::nullopt;
}

}  // namespace kv_program
