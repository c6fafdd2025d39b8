// SPDX-License-Identifier: Apache-2.0
#include "shmem/net/ucx_memory.hpp"

namespace shmem {

UcxMemory::~UcxMemory() {
  for (ucp_mem_h handle : handles_) {
    if (handle != nullptr) worker_->calls().mem_unmap(worker_->context(), handle);
  }
}

Result<void> UcxMemory::add(const UcxWorker& worker, const std::vector<std::span<std::byte>>& segments) {
  worker_ = &worker;
  for (std::size_t segment = 0; segment < segments.size(); ++segment) {
    if (segments[segment].empty()) continue;
    if (auto added = add_segment(segment, segments[segment]); !added) return added;
  }
  return {};
}

Result<void> UcxMemory::add_segment(std::size_t segment, std::span<std::byte> memory) {
  const UcxCalls& calls = worker_->calls();
  ucp_mem_map_params_t parameters{};
  parameters.field_mask =
      UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_FLAGS;
  parameters.address = memory.data();
  parameters.length = memory.size();
  // A heap is sparse: its pages come when they are used, where the adapter can do that.
  parameters.flags = UCP_MEM_MAP_NONBLOCK;
  const std::string what = std::to_string(memory.size()) + " bytes of symmetric memory";
  if (const auto mapped = calls.mem_map(worker_->context(), &parameters, &handles_[segment]); mapped != UCS_OK) {
    handles_[segment] = nullptr;
    return ucx_failure(calls, mapped, what + " cannot be registered (is `ulimit -l` large enough?)");
  }
  void* key = nullptr;
  std::size_t size = 0;
  if (const auto packed = calls.rkey_pack(worker_->context(), handles_[segment], &key, &size); packed != UCS_OK) {
    return ucx_failure(calls, packed, "the key of " + what + " cannot be had");
  }
  const auto* bytes = static_cast<const std::byte*>(key);
  keys_[segment].assign(bytes, bytes + size);
  calls.rkey_buffer_release(key);
  return {};
}

}  // namespace shmem
