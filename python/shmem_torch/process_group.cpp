// SPDX-License-Identifier: Apache-2.0
#include "python/shmem_torch/process_group.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "python/core/interpreter_exit.hpp"
#include "python/shmem_torch/arguments.hpp"

namespace shmem_torch {

namespace {

/// The buffer at `first` in parts that follow each other.
template <typename Pointer, typename Sizes>
void cut(Few<Pointer>& buffers, const Sizes& parts) {
  auto* at = static_cast<char*>(const_cast<void*>(static_cast<const void*>(buffers.front())));
  buffers.clear();
  for (const std::uint64_t bytes : parts) {
    buffers.push_back(at);
    at += bytes;
  }
}

/// The text of the exception that is being handled.
std::string current_text() {
  try {
    throw;
  } catch (const std::exception& error) {
    return text_of(error);
  } catch (...) {
    return "an exception of another kind";
  }
}

}  // namespace

WorkPointer ProcessGroupShmem::give(c10d::OpType type, const char* title, const Tensors& inputs, const Tensors& results,
                                    TensorCall call) {
  const auto engine = this->engine();
  WorkTicket ticket = tracker_->begin(type, call.timeout());
  call.limit(ticket.timeout());
  auto work = c10::make_intrusive<CollectiveWork>(WorkInfo{rank_, type, title}, inputs, results, engine,
                                                  std::move(ticket), std::move(call));
  engine->queue.give(*work);
  return noted(std::move(work));
}

c10::intrusive_ptr<QueuedWork> ProcessGroupShmem::give_function(c10d::OpType type, const char* title,
                                                                const Tensors& tensors,
                                                                std::chrono::milliseconds timeout, Make make) {
  const auto engine = this->engine();
  WorkTicket ticket = tracker_->begin(type, timeout);
  // Not `this`: the process group may be dropped before the call is made.
  const auto bound = [make = std::move(make), group = &engine->group, limit = ticket.timeout()] {
    return make(*group, limit);
  };
  c10::intrusive_ptr<QueuedWork> work =
      c10::make_intrusive<FunctionWork>(WorkInfo{rank_, type, title}, tensors, engine, std::move(ticket), bound);
  engine->queue.give(*work);
  return work;
}

/// While an exception is handled: this rank cannot make its call. The others, which may have made theirs, get an
/// exception instead of waiting, once the calls before this one are over.
void ProcessGroupShmem::tell_refused(const char* name, std::chrono::milliseconds timeout) {
  const auto engine = engine_now();
  if (!engine) {
    return;
  }
  WorkTicket ticket = tracker_->begin(c10d::OpType::UNKNOWN, timeout);
  TensorCall call(name, kNoCall, timeout);
  call.limit(ticket.timeout());
  call.say(current_text());
  engine->queue.give(*c10::make_intrusive<CollectiveWork>(WorkInfo{rank_, c10d::OpType::UNKNOWN, name}, Tensors{},
                                                          Tensors{}, engine, std::move(ticket), std::move(call)));
  engine->queue.flush();  // this rank has no work to wait for, so the queue must make the call by itself
}

WorkPointer ProcessGroupShmem::broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) try {
  constexpr const char* kName = "shmem:broadcast";
  TensorCall call(kName, SHMEMX_GROUP_BROADCAST, options.timeout);
  const at::Tensor& tensor = only_tensor(kName, tensors);
  call.call.root = static_cast<int>(options.rootRank);
  call.expect(tensors);
  call.update(tensor);
  return give(c10d::OpType::BROADCAST, kName, tensors, tensors, std::move(call));
} catch (...) {
  tell_refused("shmem:broadcast", options.timeout);
  throw;
}

WorkPointer ProcessGroupShmem::allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) try {
  constexpr const char* kName = "shmem:all_reduce";
  if (tensors.size() == 1 && tensors[0].layout() == at::kSparse) {
    return allreduce_sparse_tensor(tensors[0], options);
  }
  TensorCall call(kName, SHMEMX_GROUP_ALLREDUCE, options.timeout);
  const at::Tensor tensor = as_real(only_tensor(kName, tensors));
  call.combine(tensors, operation_of(kName, options.reduceOp));
  call.update(tensor);
  return give(c10d::OpType::ALLREDUCE, kName, tensors, tensors, std::move(call));
} catch (...) {
  tell_refused("shmem:all_reduce", options.timeout);
  throw;
}

WorkPointer ProcessGroupShmem::reduce(Tensors& tensors, const c10d::ReduceOptions& options) try {
  constexpr const char* kName = "shmem:reduce";
  TensorCall call(kName, SHMEMX_GROUP_REDUCE, options.timeout);
  const at::Tensor tensor = as_real(only_tensor(kName, tensors));
  call.combine(tensors, operation_of(kName, options.reduceOp));
  call.call.root = static_cast<int>(options.rootRank);
  call.update(tensor);
  return give(c10d::OpType::REDUCE, kName, tensors, tensors, std::move(call));
} catch (...) {
  tell_refused("shmem:reduce", options.timeout);
  throw;
}

WorkPointer ProcessGroupShmem::allgather(std::vector<Tensors>& outputs, Tensors& inputs,
                                         const c10d::AllgatherOptions& options) try {
  constexpr const char* kName = "shmem:all_gather";
  TensorCall call(kName, SHMEMX_GROUP_ALLGATHER, options.timeout);
  const at::Tensor& input = only_tensor(kName, inputs);
  if (outputs.size() != 1) {
    refuse(kName, "got " + std::to_string(outputs.size()) + " lists of tensors, not one");
  }
  check_list(kName, outputs[0], size_, input);
  call.expect({input});
  call.read(input);
  for (const at::Tensor& output : outputs[0]) {
    call.write(output);
  }
  return give(c10d::OpType::ALLGATHER, kName, inputs, outputs[0], std::move(call));
} catch (...) {
  tell_refused("shmem:all_gather", options.timeout);
  throw;
}

/// Throws unless `output` has room for the inputs of all ranks.
void ProcessGroupShmem::check_whole(const char* name, const at::Tensor& output, const at::Tensor& input) const {
  check_tensor(name, output);
  if (output.numel() != input.numel() * size_ || output.scalar_type() != input.scalar_type()) {
    refuse(name, "the output tensor must have the dtype of the input, and " + std::to_string(size_) +
                     " times as many elements");
  }
}

WorkPointer ProcessGroupShmem::_allgather_base(at::Tensor& output, at::Tensor& input,
                                               const c10d::AllgatherOptions& options) try {
  constexpr const char* kName = "shmem:_all_gather_base";
  TensorCall call(kName, SHMEMX_GROUP_ALLGATHER, options.timeout);
  check_tensor(kName, input);
  check_whole(kName, output, input);
  call.expect({input});
  call.read(input);
  call.write(output);
  cut(call.to, std::vector<std::uint64_t>(static_cast<std::size_t>(size_), bytes_of(input)));
  return give(c10d::OpType::_ALLGATHER_BASE, kName, {input}, {output}, std::move(call));
} catch (...) {
  tell_refused("shmem:_all_gather_base", options.timeout);
  throw;
}

WorkPointer ProcessGroupShmem::gather_into_tensor(at::Tensor& output, at::Tensor& input,
                                                  const c10d::GatherOptions& options) try {
  constexpr const char* kName = "shmem:gather";
  TensorCall call(kName, SHMEMX_GROUP_GATHER, options.timeout);
  check_tensor(kName, input);
  call.call.root = static_cast<int>(options.rootRank);
  call.expect({input});
  call.read(input);
  const bool is_root = options.rootRank == rank_;
  if (is_root) {
    check_whole(kName, output, input);
    call.write(output);
    cut(call.to, std::vector<std::uint64_t>(static_cast<std::size_t>(size_), bytes_of(input)));
  }
  return give(c10d::OpType::GATHER, kName, {input}, is_root ? Tensors{output} : Tensors{}, std::move(call));
} catch (...) {
  tell_refused("shmem:gather", options.timeout);
  throw;
}

WorkPointer ProcessGroupShmem::gather(std::vector<Tensors>& outputs, Tensors& inputs,
                                      const c10d::GatherOptions& options) try {
  constexpr const char* kName = "shmem:gather";
  TensorCall call(kName, SHMEMX_GROUP_GATHER, options.timeout);
  const at::Tensor& input = only_tensor(kName, inputs);
  const bool is_root = options.rootRank == rank_;
  if (outputs.size() != (is_root ? 1U : 0U)) {
    refuse(kName, "the root, and only it, gives one list of output tensors");
  }
  call.call.root = static_cast<int>(options.rootRank);
  call.expect({input});
  call.read(input);
  if (is_root) {
    check_list(kName, outputs[0], size_, input);
    for (const at::Tensor& output : outputs[0]) {
      call.write(output);
    }
  }
  return give(c10d::OpType::GATHER, kName, inputs, is_root ? outputs[0] : Tensors{}, std::move(call));
} catch (...) {
  tell_refused("shmem:gather", options.timeout);
  throw;
}

WorkPointer ProcessGroupShmem::scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                                       const c10d::ScatterOptions& options) try {
  constexpr const char* kName = "shmem:scatter";
  TensorCall call(kName, SHMEMX_GROUP_SCATTER, options.timeout);
  const at::Tensor& output = only_tensor(kName, outputs);
  const bool is_root = options.rootRank == rank_;
  if (inputs.size() != (is_root ? 1U : 0U)) {
    refuse(kName, "the root, and only it, gives one list of input tensors");
  }
  call.call.root = static_cast<int>(options.rootRank);
  call.expect({output});
  if (is_root) {
    check_list(kName, inputs[0], size_, output);
    for (const at::Tensor& input : inputs[0]) {
      call.read(input);
    }
  }
  call.write(output);
  return give(c10d::OpType::SCATTER, kName, is_root ? inputs[0] : Tensors{}, outputs, std::move(call));
} catch (...) {
  tell_refused("shmem:scatter", options.timeout);
  throw;
}

WorkPointer ProcessGroupShmem::reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                                              const c10d::ReduceScatterOptions& options) try {
  constexpr const char* kName = "shmem:reduce_scatter";
  TensorCall call(kName, SHMEMX_GROUP_REDUCE_SCATTER, options.timeout);
  const at::Tensor output = as_real(only_tensor(kName, outputs));
  if (inputs.size() != 1) {
    refuse(kName, "got " + std::to_string(inputs.size()) + " lists of tensors, not one");
  }
  check_list(kName, inputs[0], size_, outputs[0]);
  call.combine(outputs, operation_of(kName, options.reduceOp));
  for (const at::Tensor& input : inputs[0]) {
    call.read(as_real(input));
  }
  call.write(output);
  return give(c10d::OpType::REDUCE_SCATTER, kName, inputs[0], outputs, std::move(call));
} catch (...) {
  tell_refused("shmem:reduce_scatter", options.timeout);
  throw;
}

WorkPointer ProcessGroupShmem::_reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                                    const c10d::ReduceScatterOptions& options) try {
  constexpr const char* kName = "shmem:_reduce_scatter_base";
  TensorCall call(kName, SHMEMX_GROUP_REDUCE_SCATTER, options.timeout);
  check_tensor(kName, output);
  check_tensor(kName, input);
  if (input.numel() != output.numel() * size_ || output.scalar_type() != input.scalar_type()) {
    refuse(kName, "the input tensor must have the dtype of the output, and " + std::to_string(size_) +
                      " times as many elements");
  }
  const at::Tensor to = as_real(output);
  call.combine({output}, operation_of(kName, options.reduceOp));
  call.read(as_real(input));
  cut(call.from, std::vector<std::uint64_t>(static_cast<std::size_t>(size_), bytes_of(to)));
  call.write(to);
  return give(c10d::OpType::_REDUCE_SCATTER_BASE, kName, {input}, {output}, std::move(call));
} catch (...) {
  tell_refused("shmem:_reduce_scatter_base", options.timeout);
  throw;
}

WorkPointer ProcessGroupShmem::alltoall_base(at::Tensor& output, at::Tensor& input,
                                             std::vector<std::int64_t>& output_splits,
                                             std::vector<std::int64_t>& input_splits,
                                             const c10d::AllToAllOptions& options) try {
  constexpr const char* kName = "shmem:all_to_all";
  TensorCall call(kName, SHMEMX_GROUP_ALLTOALL, options.timeout);
  if (output.scalar_type() != input.scalar_type()) {
    refuse(kName, "input and output differ in dtype");
  }
  call.expect_type_of(input);
  call.from_bytes = parts_of(kName, input, input_splits, size_);
  call.to_bytes = parts_of(kName, output, output_splits, size_);
  call.read(input);
  cut(call.from, call.from_bytes);
  call.write(output);
  cut(call.to, call.to_bytes);
  return give(c10d::OpType::ALLTOALL_BASE, kName, {input}, {output}, std::move(call));
} catch (...) {
  tell_refused("shmem:all_to_all", options.timeout);
  throw;
}

WorkPointer ProcessGroupShmem::alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& options) try {
  constexpr const char* kName = "shmem:all_to_all";
  TensorCall call(kName, SHMEMX_GROUP_ALLTOALL, options.timeout);
  if (static_cast<int>(inputs.size()) != size_ || static_cast<int>(outputs.size()) != size_) {
    refuse(kName, "the lists must have a tensor for each of the " + std::to_string(size_) + " ranks");
  }
  for (const at::Tensor& input : inputs) {
    call.read(input);
    call.from_bytes.push_back(bytes_of(input));
    check_type(kName, input, inputs[0]);
  }
  for (const at::Tensor& output : outputs) {
    call.write(output);
    check_type(kName, output, inputs[0]);
    call.to_bytes.push_back(bytes_of(output));
  }
  call.expect_type_of(inputs[0]);
  return give(c10d::OpType::ALLTOALL, kName, inputs, outputs, std::move(call));
} catch (...) {
  tell_refused("shmem:all_to_all", options.timeout);
  throw;
}

WorkPointer ProcessGroupShmem::message(c10d::OpType type, const char* title, Tensors& tensors, int peer, int tag) {
  const at::Tensor& tensor = only_tensor(title, tensors);
  if (tag < 0) {
    refuse(title, "the tag is " + std::to_string(tag) + "; tags are 0 or more");
  }
  if (peer >= size_) {
    refuse(title, "there is no rank " + std::to_string(peer) + " in this group of " + std::to_string(size_));
  }
  const auto engine = this->engine();
  WorkTicket ticket = tracker_->begin(type, std::chrono::milliseconds(-1));
  return noted(c10::make_intrusive<MessageWork>(WorkInfo{rank_, type, title}, tensor,
                                                MessageWork::Request{type == c10d::OpType::SEND, peer, tag}, engine,
                                                std::move(ticket)));
}

WorkPointer ProcessGroupShmem::send(Tensors& tensors, int to, int tag) {
  return message(c10d::OpType::SEND, "shmem:send", tensors, to, tag);
}

WorkPointer ProcessGroupShmem::recv(Tensors& tensors, int from, int tag) {
  return message(c10d::OpType::RECV, "shmem:recv", tensors, from, tag);
}

WorkPointer ProcessGroupShmem::recvAnysource(Tensors& tensors, int tag) {
  return message(c10d::OpType::RECVANYSOURCE, "shmem:recvAnySource", tensors, -1, tag);
}

WorkPointer ProcessGroupShmem::barrier(const c10d::BarrierOptions& options) {
  return give(c10d::OpType::BARRIER, "shmem:barrier", {}, {},
              TensorCall("shmem:barrier", SHMEMX_GROUP_BARRIER, options.timeout));
}

/// Each failed barrier names all ranks that did not come, whether or not it is asked to.
void ProcessGroupShmem::monitoredBarrier(const c10d::BarrierOptions& options, bool /*wait_all_ranks*/) {
  barrier(options)->wait();
}

}  // namespace shmem_torch
