// SPDX-License-Identifier: Apache-2.0
#include "python/shmem_torch/group_calls.hpp"

#include <algorithm>
#include <cerrno>
#include <exception>
#include <stdexcept>

#include "python/shmem_torch/without_python.hpp"

namespace shmem_torch {
namespace {

/// The store with its last exception, which no C interface lets through.
struct StoreContext {
  const Store& store;
  std::string failure;
};

template <typename Body>
int without_exceptions(void* context, Body body) {
  auto& store = *static_cast<StoreContext*>(context);
  try {
    return body(store.store);
  } catch (const std::exception& error) {
    store.failure = error.what();
    return -EIO;
  }
}

int store_set(void* context, const char* key, const void* value, std::size_t size) {
  return without_exceptions(context, [&](const Store& store) {
    const auto* bytes = static_cast<const std::uint8_t*>(value);
    store.set(key, {bytes, bytes + size});
    return 0;
  });
}

int store_get(void* context, const char* key, void* value, std::size_t size) {
  return without_exceptions(context, [&](const Store& store) {
    const std::vector<std::uint8_t> bytes = store.get(key);
    if (bytes.size() != size) {
      return -EBADMSG;
    }
    std::copy(bytes.begin(), bytes.end(), static_cast<std::uint8_t*>(value));
    return 0;
  });
}

}  // namespace

GroupHandle::GroupHandle(const Store& store, int rank, int size) {
  StoreContext context{store, {}};
  const shmemx_group_store_t calls{&context, &store_set, &store_get};
  if (shmemx_group_create(&calls, rank, size, &group_) != 0) {
    throw std::runtime_error(shmemx_error_text() + (context.failure.empty() ? "" : ": " + context.failure));
  }
}

GroupHandle::~GroupHandle() {
  const WithoutPython released;  // a thread of the group may be letting go of a tensor
  shmemx_group_destroy(group_);
}

std::string run(const GroupHandle& group, const Call& call) {
  const shmemx_group_call_t raw{
      call.kind,           call.type,      call.operation,
      call.root,           call.bytes,     static_cast<std::uint64_t>(std::chrono::nanoseconds(call.timeout).count()),
      call.from.data(),    call.to.data(), call.from_bytes.data(),
      call.to_bytes.data()};
  const int error = shmemx_group_run_signed(group.get(), &raw, call.signature);
  return error == 0 ? "" : failure_text(call.name, error, call.timeout);
}

std::string allocate(const GroupHandle& group, const char* name, std::size_t bytes, std::chrono::milliseconds timeout,
                     std::shared_ptr<GroupMemory>& memory) {
  shmemx_group_memory_t* made = nullptr;
  const auto limit = static_cast<std::uint64_t>(std::chrono::nanoseconds(timeout).count());
  if (const int error = shmemx_group_allocate(group.get(), bytes, limit, &made); error != 0) {
    return failure_text(name, error, timeout);
  }
  memory = std::make_shared<GroupMemory>(made);
  return "";
}

std::string failure_text(const char* name, int error, std::chrono::milliseconds timeout) {
  const std::string limit = error == -ETIMEDOUT ? " Timed out after " + std::to_string(timeout.count()) + " ms:" : "";
  return std::string(name) + ":" + limit + " " + shmemx_error_text();
}

}  // namespace shmem_torch
