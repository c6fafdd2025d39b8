// SPDX-License-Identifier: Apache-2.0
// The caches of this PE, of one layer and apart, and the files of Ascend SHMEM's example.
#pragma once

#include "shmem/kv/program/caches.hpp"
#include "shmem/kv/program/reference_files.hpp"

namespace kv_program {

shmem::Result<void> read_inputs(const ReferenceFolder& folder, const Caches& caches);
shmem::Result<void> write_caches(const ReferenceFolder& folder, ReferenceFolder::Kind kind, const Caches& caches);
/// By inputs and tables, also the partner's: they are there.
shmem::Result<void> write_golden(const ReferenceFolder& folder, const Shape& shape, const shmem::kv::PairPlan& plan);
/// Error: the first byte that is not as in the golden files, or, where there are none, as inputs and tables say.
shmem::Result<void> compare_with_golden(const ReferenceFolder& folder, const Caches& caches,
                                        const shmem::kv::PairPlan& plan);

}  // namespace kv_program
