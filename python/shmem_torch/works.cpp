// SPDX-License-Identifier: Apache-2.0
#include "python/shmem_torch/works.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <stdexcept>
#include <thread>

#include "python/core/interpreter_exit.hpp"
#include "python/shmem_torch/tensors.hpp"

namespace shmem_torch {

/// What a message needs until it is over, whoever still knows of it, and what its work says of it. It does not keep the
/// group, whose threads may be the last to have it.
struct MessageWork::State {
  const WorkInfo info;
  const Request request;
  const std::shared_ptr<WorkTracker> tracker;
  WorkTicket ticket;  // ended once by end()
  const std::chrono::milliseconds timeout = ticket.timeout();
  const std::uint64_t number = ticket.number();
  const at::Tensor tensor;
  at::Tensor flat{};
  std::unique_ptr<DeviceTensors> device{};    // if it is one of a device
  void* place = nullptr;                      // of the message's bytes
  shmemx_group_message_t* message = nullptr;  // constant once the work has been made
  std::mutex mutex{};
  std::condition_variable told{};
  bool over = false;                                    // guarded by mutex, as the next
  std::exception_ptr problem = {};                      // the bytes have come, but not to the tensor
  c10::intrusive_ptr<c10::ivalue::Future> future = {};  // made by getFuture()

  State(const WorkInfo& of, const Request& what, std::shared_ptr<WorkTracker> works, WorkTicket begun, at::Tensor data)
      : info(of),
        request(what),
        tracker(std::move(works)),
        ticket(std::move(begun)),
        tensor(std::move(data)),
        flat(tensor) {
    if (!tensor.is_contiguous()) {
      flat = request.sends ? tensor.detach().contiguous()
                           : at::empty(tensor.sizes(), tensor.options().requires_grad(false));
    }
    if (flat.is_cpu()) {
      place = flat.data_ptr();
      return;
    }
    device = std::make_unique<DeviceTensors>();
    place = device->add(flat, request.sends ? DeviceTensors::kRead : DeviceTensors::kWritten);
    device->fetch(timeout);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { shmemx_group_message_free(message); }

  int post(const Engine& engine, void* context);
  /// Called by the library, once: the message is over, but its tensor may be filled only here.
  void end(bool tells_future) noexcept;
  [[nodiscard]] bool has_ended();
  void await_end();
  [[nodiscard]] std::exception_ptr failure(int error) const {
    return error == 0 ? problem : exception_of(text_of(error));
  }
  /// Why the message has failed.
  [[nodiscard]] std::string text_of(int error) const;
  void refuse_to_wait_for_itself() const;
  /// The other end, for messages.
  [[nodiscard]] std::string peer_text() const;
  /// REQUIRES: has_ended().
  void complete_future() const { complete(*future, {tensor}, failure(shmemx_group_message_test(message))); }
};

int MessageWork::State::post(const Engine& engine, void* context) {
  const shmemx_group_done_t ended = [](void* of) {
    std::unique_ptr<std::shared_ptr<State>> state(static_cast<std::shared_ptr<State>*>(of));
    const shmem_python::PythonWork work;
    (*state)->end(work.may_run());
    if (!work.may_run()) {
      static_cast<void>(state.release());  // with its tensor, which this thread could not let go of
    }
  };
  const std::size_t bytes = static_cast<std::size_t>(flat.numel()) * static_cast<std::size_t>(flat.element_size());
  const std::uint64_t limit = nanoseconds(timeout);
  const std::uint32_t type = message_type_of(tensor.scalar_type());
  shmemx_group_t* const group = engine.group.get();
  return request.sends ? shmemx_group_send_typed(group, place, bytes, type, request.peer, request.tag, limit, ended,
                                                 context, &message)
                       : shmemx_group_receive_typed(group, place, bytes, type, request.peer, request.tag, limit, ended,
                                                    context, &message);
}

void MessageWork::State::end(bool tells_future) noexcept {
  std::exception_ptr why;
  try {
    if (!request.sends && device) {
      device->store();
    }
    if (!request.sends && !tensor.is_contiguous()) {
      tensor.detach().copy_(flat);
      if (device) {
        finish_current_stream(tensor);
      }
    }
  } catch (...) {  // no memory
    why = std::current_exception();
  }
  bool has_future = false;
  {
    const std::scoped_lock lock(mutex);
    over = true;
    problem = why;
    has_future = future.defined();
  }
  told.notify_all();
  try {
    if (has_future && tells_future) {
      complete_future();
    }
  } catch (const std::exception&) {
    // An exception of a callback, or no memory: the thread is the library's, so no caller could be told.
  }
  ticket.end();
}

bool MessageWork::State::has_ended() {
  const std::scoped_lock lock(mutex);
  return over;
}

void MessageWork::State::await_end() {
  std::unique_lock lock(mutex);
  told.wait(lock, [this] { return over; });
}

MessageWork::MessageWork(const WorkInfo& info, const at::Tensor& tensor, const Request& request,
                         std::shared_ptr<Engine> engine, WorkTicket ticket)
    : WorkBase(info.rank, info.type, info.title, std::vector<at::Tensor>{tensor}),
      engine_(std::move(engine)),
      state_(std::make_shared<State>(info, request, engine_->tracker, std::move(ticket), tensor)) {
  engine_->queue.require_process();
  auto context = std::make_unique<std::shared_ptr<State>>(state_);
  if (const int error = state_->post(*engine_, context.get()); error != 0) {
    throw std::invalid_argument(failure_text(info.title, error, state_->timeout));
  }
  static_cast<void>(context.release());  // the message's
}

MessageWork::~MessageWork() = default;

std::uint64_t MessageWork::getSequencenumber() const {
  return state_->number;
}

std::chrono::milliseconds MessageWork::getTimeout() const {
  return state_->timeout;
}

void MessageWork::settle(int error) {
  {
    const std::scoped_lock lock(mutex_);
    if (completed_) {
      return;
    }
  }
  if (error != 0 && error != -ETIMEDOUT) {  // after its own timeout the group goes on
    engine_->group.note(error);
    engine_->look_for_failure();
  }
  finish(state_->failure(error));
}

std::string MessageWork::State::text_of(int error) const {
  if (error != -EPROTOTYPE) {
    return failure_text(info.title, error, timeout);
  }
  const std::string mine = dtype_name(tensor.scalar_type());
  const std::string theirs = dtype_name(dtype_of_message(shmemx_group_message_peer_type(message)));
  const std::string here = std::to_string(info.rank);
  const std::string peer = std::to_string(shmemx_group_message_source(message));
  const std::string who = request.sends
                              ? "rank " + here + " sends " + mine + ", and rank " + peer + " receives it as " + theirs
                              : "rank " + peer + " sends " + theirs + ", and rank " + here + " receives it as " + mine;
  return std::string(info.title) + ": " + who + " (tag " + std::to_string(request.tag) +
         "); give both ranks tensors of one dtype";
}

std::string MessageWork::State::peer_text() const {
  return (request.peer < 0 ? std::string("any rank") : "rank " + std::to_string(request.peer)) + " (tag " +
         std::to_string(request.tag) + ")";
}

/// Throws if this rank sends to itself what it does not receive: it would wait until the timeout.
void MessageWork::State::refuse_to_wait_for_itself() const {
  constexpr std::chrono::milliseconds kMoment{200};  // a message through the network is not over at once
  if (!request.sends || request.peer != info.rank) {
    return;
  }
  const auto deadline = std::chrono::steady_clock::now() + kMoment;
  while (shmemx_group_message_test(message) == -EAGAIN) {
    if (std::chrono::steady_clock::now() >= deadline) {
      throw std::runtime_error(std::string(info.title) + ": rank " + std::to_string(info.rank) +
                               " waits for a message to itself (tag " + std::to_string(request.tag) +
                               ") that it has not begun to receive; call irecv before, or copy the tensor");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

bool MessageWork::isCompleted() {
  engine_->queue.require_process();
  const int error = shmemx_group_message_test(state_->message);
  if (error == -EAGAIN || !state_->has_ended()) {
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
  engine_->queue.require_process();
  state_->refuse_to_wait_for_itself();
  if (timeout == kNoTimeout || timeout.count() < 0) {
    const int error = shmemx_group_message_wait(state_->message);
    state_->await_end();
    shmem_python::stay_if_interpreter_exits();
    settle(error);
  } else {
    const auto deadline = std::chrono::steady_clock::now() + timeout;
    while (!isCompleted()) {
      if (std::chrono::steady_clock::now() >= deadline) {
        throw_timeout(state_->info.title, timeout, "it waits for " + state_->peer_text());
      }
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    shmem_python::stay_if_interpreter_exits();
  }
  if (const std::exception_ptr failure = exception(); failure) {
    std::rethrow_exception(failure);
  }
  return true;
}

int MessageWork::sourceRank() const {
  return shmemx_group_message_source(state_->message);
}

std::vector<at::Tensor> MessageWork::result() {
  return {state_->tensor};
}

c10::intrusive_ptr<c10::ivalue::Future> MessageWork::getFuture() {
  engine_->queue.require_process();
  bool is_over = false;
  {
    const std::scoped_lock lock(state_->mutex);
    if (state_->future) {
      return state_->future;
    }
    state_->future = future_of_tensors();
    is_over = state_->over;
  }
  if (is_over) {
    state_->complete_future();
  }
  return state_->future;
}

WorkPointer work_that_is_over() {
  auto future = future_of_tensors();
  future->markCompleted(at::IValue(std::vector<at::Tensor>{}));
  return c10d::Work::create_from_future(future);
}

bool JoinedWork::isCompleted() {
  return std::all_of(works_.begin(), works_.end(), [](const auto& work) { return work->isCompleted(); });
}

bool JoinedWork::isSuccess() const {
  return std::all_of(works_.begin(), works_.end(), [](const auto& work) { return work->isSuccess(); });
}

bool JoinedWork::wait(std::chrono::milliseconds timeout) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  std::exception_ptr failure;
  for (const auto& work : works_) {
    auto left = timeout;
    if (timeout != kNoTimeout && timeout.count() >= 0) {
      const auto passed = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin);
      left = std::max(timeout - passed, std::chrono::milliseconds(1));
    }
    try {
      work->wait(left);
    } catch (...) {
      failure = failure ? failure : std::current_exception();
    }
  }
  if (failure) {
    std::rethrow_exception(failure);
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

}  // namespace shmem_torch
