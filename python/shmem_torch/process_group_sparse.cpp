// SPDX-License-Identifier: Apache-2.0
// all_reduce of sparse tensors.
#include <algorithm>
#include <string>

#include "python/shmem_torch/process_group.hpp"

namespace shmem_torch {

/// The ranks exchange how many elements they have, and then all elements; the sum of duplicates is torch's.
WorkPointer ProcessGroupShmem::allreduce_sparse_tensor(const at::Tensor& tensor,
                                                       const c10d::AllreduceOptions& options) {
  constexpr const char* kName = "shmem:sparse_all_reduce";
  if (options.reduceOp != c10d::ReduceOp::SUM) {
    refuse(kName, "sparse tensors can only be summed");
  }
  if (!tensor.device().is_cpu()) {
    refuse(kName, "a tensor is on " + tensor.device().str() + "; sparse tensors are those of the CPU");
  }
  const auto make = [tensor, size = static_cast<std::size_t>(size_)](const GroupHandle& group,
                                                                     std::chrono::milliseconds timeout) -> std::string {
    const auto gather = [&](const at::Tensor& mine, Tensors& all) {
      TensorCall call(kName, SHMEMX_GROUP_ALLGATHER, timeout);
      call.limit(timeout);
      call.expect({mine, tensor});  // the ranks' tensors have one shape
      call.read(mine);
      for (at::Tensor& one : all) {
        call.write(one);
      }
      return call.finish(group, group.run(call.to_make(), call.signature()));
    };
    at::Tensor mine = tensor.detach().coalesce();
    Tensors counts(size, at::empty({1}, at::kLong));
    for (at::Tensor& count : counts) {
      count = at::empty({1}, at::kLong);
    }
    if (std::string error = gather(at::full({1}, mine._nnz(), at::kLong), counts); !error.empty()) {
      return error;
    }
    std::int64_t most = 0;
    for (const at::Tensor& count : counts) {
      most = std::max(most, count.item<std::int64_t>());
    }
    // Padded to the same number, because all ranks of an allgather give alike.
    const auto exchange = [&](const at::Tensor& values, Tensors& parts) {
      auto sizes = values.sizes().vec();
      sizes[0] = most;
      at::Tensor padded = at::zeros(sizes, values.options());
      padded.narrow(0, 0, values.size(0)).copy_(values);
      parts.assign(size, at::Tensor());
      for (at::Tensor& part : parts) {
        part = at::empty(sizes, values.options());
      }
      std::string error = gather(padded, parts);
      for (std::size_t i = 0; i < parts.size(); ++i) {
        parts[i] = parts[i].narrow(0, 0, counts[i].item<std::int64_t>());
      }
      return error;
    };
    Tensors indices;
    Tensors values;
    std::string error = exchange(mine._indices().t().contiguous(), indices);
    error = error.empty() ? exchange(mine._values().contiguous(), values) : error;
    if (!error.empty()) {
      return error;
    }
    const at::Tensor sum =
        at::sparse_coo_tensor(at::cat(indices).t().contiguous(), at::cat(values), tensor.sizes()).coalesce();
    // Not to tensor.detach(): that would have indices and values of its own.
    const at::NoGradGuard no_gradients;
    tensor.copy_(sum);
    return "";
  };
  return noted(give_function(c10d::OpType::ALLREDUCE, kName, {tensor}, options.timeout, make));
}

}  // namespace shmem_torch
