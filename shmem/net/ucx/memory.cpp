// SPDX-License-Identifier: Apache-2.0
#include "shmem/net/ucx/memory.hpp"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>

namespace shmem {

UcxMemory::~UcxMemory() {
  for (ucp_mem_h handle : handles_) {
    if (handle != nullptr) {
      worker_->calls().mem_unmap(worker_->context(), handle);
    }
  }
}

Result<void> UcxMemory::add(const UcxWorker& worker, const std::vector<std::span<std::byte>>& segments) {
  worker_ = &worker;
  for (std::size_t segment = 0; segment < segments.size(); ++segment) {
    if (segments[segment].empty()) {
      continue;
    }
    auto key = add_segment(segment, segments[segment]);
    if (!key) {
      return key.error();
    }
    keys_[segment] = *std::move(key);
  }
  return {};
}

Result<std::vector<std::byte>> UcxMemory::add(Segment segment, std::span<std::byte> memory) {
  auto key = add_segment(static_cast<std::size_t>(segment), memory);
  if (!key) {
    remove(segment);
  }
  return key;
}

void UcxMemory::remove(Segment segment) {
  ucp_mem_h& handle = handles_[static_cast<std::size_t>(segment)];
  if (handle != nullptr) {
    worker_->calls().mem_unmap(worker_->context(), std::exchange(handle, nullptr));
  }
}

Result<std::vector<std::byte>> UcxMemory::add_segment(std::size_t segment, std::span<std::byte> memory) {
  if (!worker_->one_sided()) {
    return std::vector<std::byte>();
  }
  const UcxCalls& calls = worker_->calls();
  ucp_mem_map_params_t parameters{};
  parameters.field_mask =
      UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_FLAGS;
  parameters.address = memory.data();
  parameters.length = memory.size();
  // A heap is sparse: if the adapter supports it, pages are allocated when they are used.
  parameters.flags = UCP_MEM_MAP_NONBLOCK;
  const std::string what = fmt::format("{} bytes of symmetric memory", memory.size());
  if (const auto mapped = calls.mem_map(worker_->context(), &parameters, &handles_[segment]); mapped != UCS_OK) {
    handles_[segment] = nullptr;
    return ucx_failure(calls, mapped, what + " cannot be registered (is `ulimit -l` large enough?)");
  }
  void* key = nullptr;
  std::size_t size = 0;
  if (const auto packed = calls.rkey_pack(worker_->context(), handles_[segment], &key, &size); packed != UCS_OK) {
    return ucx_failure(calls, packed, "the key of " + what + " cannot be packed");
  }
  const std::unique_ptr<void, decltype(calls.rkey_buffer_release)> owned(key, calls.rkey_buffer_release);
  const auto* bytes = static_cast<const std::byte*>(key);
  return std::vector<std::byte>(bytes, bytes + size);
}

}  // namespace shmem
