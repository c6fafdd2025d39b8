// SPDX-License-Identifier: Apache-2.0
#include "python/shmem_torch/works.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "python/shmem_torch/tensors.hpp"

namespace shmem_torch {
namespace {

std::exception_ptr exception_of(const std::string& error) {
  return error.empty() ? nullptr : std::make_exception_ptr(std::runtime_error(error));
}

/// `awaited`: what it waits for, if that is known.
[[noreturn]] void throw_timeout(const char* title, std::chrono::milliseconds timeout, const std::string& awaited) {
  throw std::runtime_error(std::string(title) + ": not over within the timeout of " + std::to_string(timeout.count()) +
                           " ms that was given to wait()" + (awaited.empty() ? "" : ": " + awaited));
}

/// What a message needs until it is over, whoever still knows of it.
struct MessageMemory {
  at::Tensor tensor;
  at::Tensor flat;
  bool copies;
};

void end_message(void* context) {
  const std::unique_ptr<MessageMemory> memory(static_cast<MessageMemory*>(context));
  if (memory->copies) {
    memory->tensor.detach().copy_(memory->flat);
  }
}

}  // namespace

c10::intrusive_ptr<QueuedWork> QueuedWork::give(const WorkInfo& info, const std::vector<at::Tensor>& inputs,
                                                std::vector<at::Tensor> results, const std::shared_ptr<Engine>& engine,
                                                std::function<std::string()> make) {
  auto work = c10::make_intrusive<QueuedWork>(info, inputs, std::move(results), engine);
  work->call_ = std::make_shared<QueuedCall>();
  work->call_->make = std::move(make);
  // The queue keeps the work, which may be dropped before.
  work->call_->ended = [work](const std::string& error) { work->end(error); };
  engine->queue.give(work->call_);
  return work;
}

void QueuedWork::end(const std::string& error) {
  finish(exception_of(error));
  settle();
}

/// The future, if there is one, once the call is over.
void QueuedWork::settle() {
  c10::intrusive_ptr<c10::ivalue::Future> future;
  std::exception_ptr failure;
  {
    const std::scoped_lock lock(mutex_);
    if (completed_) {
      future.swap(future_);
      failure = exception_;
    }
  }
  if (future && failure) {
    future->setError(failure);
  } else if (future) {
    future->markCompleted(at::IValue(results_));
  }
}

bool QueuedWork::isSuccess() const {
  const std::scoped_lock lock(mutex_);
  return exception_ == nullptr;
}

bool QueuedWork::wait(std::chrono::milliseconds timeout) {
  if (timeout == kNoTimeout || timeout.count() < 0) {
    engine_->queue.wait(call_);
  } else if (!engine_->queue.wait_for(call_, timeout)) {
    throw_timeout(title_, timeout, engine_->group.missing());
  }
  if (const std::exception_ptr failure = exception(); failure) {
    std::rethrow_exception(failure);
  }
  return true;
}

c10::intrusive_ptr<c10::ivalue::Future> QueuedWork::getFuture() {
  auto future = c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()));
  {
    const std::scoped_lock lock(mutex_);
    if (future_) {
      return future_;
    }
    future_ = future;
  }
  settle();
  engine_->queue.hurry();  // nobody waits by wait()
  return future;
}

MessageWork::MessageWork(const WorkInfo& info, const at::Tensor& tensor, const Request& request,
                         std::shared_ptr<Engine> engine)
    : Work(info.rank, info.type, info.title, std::vector<at::Tensor>{tensor}),
      engine_(std::move(engine)),
      title_(info.title),
      dtype_(tensor.scalar_type()),
      request_(request) {
  const bool copies = !tensor.is_contiguous();
  at::Tensor flat = tensor;
  if (copies) {
    flat =
        request.sends ? tensor.detach().contiguous() : at::empty(tensor.sizes(), tensor.options().requires_grad(false));
  }
  auto memory = std::make_unique<MessageMemory>(MessageMemory{tensor, flat, copies && !request.sends});
  const std::size_t bytes = static_cast<std::size_t>(flat.numel()) * static_cast<std::size_t>(flat.element_size());
  const auto timeout = static_cast<std::uint64_t>(std::chrono::nanoseconds(request.timeout).count());
  void* const data = flat.data_ptr();
  const std::uint32_t type = message_type_of(dtype_);
  shmemx_group_t* const group = engine_->group.get();
  const int error = request.sends ? shmemx_group_send_typed(group, data, bytes, type, request.peer, request.tag,
                                                            timeout, &end_message, memory.get(), &message_)
                                  : shmemx_group_receive_typed(group, data, bytes, type, request.peer, request.tag,
                                                               timeout, &end_message, memory.get(), &message_);
  if (error != 0) {
    throw std::invalid_argument(failure_text(title_, error, request.timeout));
  }
  static_cast<void>(memory.release());  // end_message's
}

MessageWork::~MessageWork() {
  shmemx_group_message_free(message_);
}

void MessageWork::settle(int error) {
  {
    const std::scoped_lock lock(mutex_);
    if (completed_) {
      return;
    }
  }
  finish(exception_of(error == 0 ? "" : failure_of(error)));
}

std::string MessageWork::failure_of(int error) const {
  if (error != -EPROTOTYPE) {
    return failure_text(title_, error, request_.timeout);
  }
  const std::string mine = dtype_name(dtype_);
  const std::string theirs = dtype_name(dtype_of_message(shmemx_group_message_peer_type(message_)));
  const std::string peer = std::to_string(sourceRank());
  const std::string who =
      request_.sends
          ? "rank " + std::to_string(rank_) + " sends " + mine + ", and rank " + peer + " receives it as " + theirs
          : "rank " + peer + " sends " + theirs + ", and rank " + std::to_string(rank_) + " receives it as " + mine;
  return std::string(title_) + ": " + who + " (tag " + std::to_string(request_.tag) +
         "); give both ranks tensors of one dtype";
}

std::string MessageWork::peer_text() const {
  return (request_.peer < 0 ? std::string("any rank") : "rank " + std::to_string(request_.peer)) + " (tag " +
         std::to_string(request_.tag) + ")";
}

bool MessageWork::isCompleted() {
  const int error = shmemx_group_message_test(message_);
  if (error == -EAGAIN) {
    return false;
  }
  settle(error);
  return true;
}

bool MessageWork::isSuccess() const {
  const std::scoped_lock lock(mutex_);
  return exception_ == nullptr;
}

bool MessageWork::wait(std::chrono::milliseconds timeout) {
  if (timeout == kNoTimeout || timeout.count() < 0) {
    settle(shmemx_group_message_wait(message_));
  } else {
    const auto deadline = std::chrono::steady_clock::now() + timeout;
    while (!isCompleted()) {
      if (std::chrono::steady_clock::now() >= deadline) {
        throw_timeout(title_, timeout, "it waits for " + peer_text());
      }
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  }
  if (const std::exception_ptr failure = exception(); failure) {
    std::rethrow_exception(failure);
  }
  return true;
}

int MessageWork::sourceRank() const {
  return shmemx_group_message_source(message_);
}

#if TORCH_VERSION_MAJOR >= 2
bool JoinedWork::isCompleted() {
  return std::all_of(works_.begin(), works_.end(), [](const auto& work) { return work->isCompleted(); });
}

bool JoinedWork::isSuccess() const {
  return std::all_of(works_.begin(), works_.end(), [](const auto& work) { return work->isSuccess(); });
}

bool JoinedWork::wait(std::chrono::milliseconds timeout) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  for (const auto& work : works_) {
    auto left = timeout;
    if (timeout != kNoTimeout && timeout.count() >= 0) {
      const auto passed = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin);
      left = std::max(timeout - passed, std::chrono::milliseconds(1));
    }
    work->wait(left);
  }
  return true;
}

c10::intrusive_ptr<c10::ivalue::Future> JoinedWork::getFuture() {
  c10::List<c10::intrusive_ptr<c10::ivalue::Future>> futures(c10::FutureType::create(c10::AnyType::get()));
  for (const auto& work : works_) {
    futures.push_back(work->getFuture());
  }
  return c10::collectAll(futures);
}
#endif

}  // namespace shmem_torch
