// SPDX-License-Identifier: Apache-2.0
// The calls of a process group on several tensors at once, and several calls as one work.
#include <exception>
#include <string>
#include <utility>

#include "python/shmem_torch/arguments.hpp"
#include "python/shmem_torch/process_group.hpp"

namespace shmem_torch {

WorkPointer ProcessGroupShmem::allreduce_coalesced(Tensors& tensors,
                                                   const c10d::AllreduceCoalescedOptions& options) try {
  constexpr const char* kName = "shmem:all_reduce";
  TensorCall call(kName, SHMEMX_GROUP_ALLREDUCE, options.timeout);
  if (tensors.empty()) {
    refuse(kName, "got no tensors");
  }
  Tensors parts;
  for (const at::Tensor& tensor : tensors) {
    if (tensor.scalar_type() != tensors[0].scalar_type()) {
      refuse(kName, "the tensors differ in dtype");
    }
    check_tensor(kName, tensor);
    parts.push_back(as_real(tensor));
  }
  call.combine(tensors, operation_of(kName, options.reduceOp));
  call.update_all(parts);
  return give(c10d::OpType::ALLREDUCE_COALESCED, kName, tensors, tensors, std::move(call));
} catch (...) {
  tell_refused("shmem:all_reduce", options.timeout);
  throw;
}

WorkPointer ProcessGroupShmem::allgather_coalesced(std::vector<Tensors>& outputs, Tensors& inputs,
                                                   const c10d::AllgatherOptions& options) try {
  constexpr const char* kName = "shmem:all_gather";
  TensorCall call(kName, SHMEMX_GROUP_ALLGATHER, options.timeout);
  if (static_cast<int>(outputs.size()) != size_) {
    refuse(kName,
           "got " + std::to_string(outputs.size()) + " lists of tensors for " + std::to_string(size_) + " ranks");
  }
  for (const Tensors& list : outputs) {
    if (list.size() != inputs.size()) {
      refuse(kName, "a list of output tensors is not as long as that of the input tensors");
    }
    for (std::size_t i = 0; i < list.size(); ++i) {
      check_list(kName, {list[i]}, 1, inputs[i]);
    }
    call.write_all(list);
  }
  call.expect(inputs);
  call.read_all(inputs);
  Tensors results;
  for (const Tensors& list : outputs) {
    results.insert(results.end(), list.begin(), list.end());
  }
  return give(c10d::OpType::ALLGATHER_COALESCED, kName, inputs, std::move(results), std::move(call));
} catch (...) {
  tell_refused("shmem:all_gather", options.timeout);
  throw;
}

WorkPointer ProcessGroupShmem::noted(WorkPointer work) {
  const std::scoped_lock lock(coalescing_);
  if (coalesced_) {
    coalesced_->push_back(work);
  }
  return work;
}

void ProcessGroupShmem::startCoalescing() {
  const std::scoped_lock lock(coalescing_);
  coalesced_.emplace();
}

WorkPointer ProcessGroupShmem::endCoalescing() {
  const std::scoped_lock lock(coalescing_);
  return c10::make_intrusive<JoinedWork>(rank_,
                                         std::exchange(coalesced_, std::nullopt).value_or(std::vector<WorkPointer>{}));
}

WorkPointer ProcessGroupShmem::allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                                               const c10d::AllgatherOptions& options) {
  return make_each(inputs.size(), [&](std::size_t i) {
    at::Tensor output = i < outputs.size() ? outputs[i] : at::Tensor();
    return _allgather_base(output, inputs[i], options);
  });
}

WorkPointer ProcessGroupShmem::reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                                               const c10d::ReduceScatterOptions& options) {
  return make_each(inputs.size(), [&](std::size_t i) {
    at::Tensor output = i < outputs.size() ? outputs[i] : at::Tensor();
    return _reduce_scatter_base(output, inputs[i], options);
  });
}

/// Also those after one that is refused: the other ranks make them.
WorkPointer ProcessGroupShmem::make_each(std::size_t count, const std::function<WorkPointer(std::size_t)>& make) {
  std::vector<WorkPointer> works;
  std::exception_ptr refused;
  for (std::size_t i = 0; i < count; ++i) {
    try {
      works.push_back(make(i));
    } catch (...) {
      refused = refused ? refused : std::current_exception();
    }
  }
  if (refused) {
    std::rethrow_exception(refused);
  }
  return c10::make_intrusive<JoinedWork>(rank_, std::move(works));
}

}  // namespace shmem_torch
