// SPDX-License-Identifier: Apache-2.0
// Exchanges (shmemx_exchange.h) for the Python files, which check and explain arguments and raise for statuses.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <shmemx.h>
#include <shmemx_exchange.h>
#include <sys/types.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "python/core/buffers.hpp"
#include "python/core/outcome.hpp"
#include "python/core/without_python.hpp"

namespace shmem_kv {

/// Makes a call that returns a number or a negative errno, without the GIL. `result`, if given, gets the number.
template <typename Call>
Outcome attempt_exchange(Call call, int* result = nullptr) {
  const shmem_python::WithoutPython released;
  const int returned = call();
  if (result != nullptr) {
    *result = returned;
  }
  return {std::min(returned, 0), returned < 0 ? shmemx_error_text() : ""};  // of this thread
}

/// Raises the class of shmem_kv._exchange_errors that an errno stands for.
[[noreturn]] void raise_exchange_error(const Outcome& outcome);

using Keys = std::vector<shmemx_exchange_key_t>;
/// Point into the bytes objects, which the tuple keeps.
Keys keys_of(const py::tuple& given);

/// Blocks of other members, as they were found.
class Found {
 public:
  Found() = default;
  explicit Found(std::vector<shmemx_exchange_block_t> blocks) : blocks_(std::move(blocks)) {}

  [[nodiscard]] std::vector<shmemx_exchange_block_t>& blocks() { return blocks_; }
  [[nodiscard]] std::size_t count() const { return blocks_.size(); }
  template <typename T>
  [[nodiscard]] py::array column(T shmemx_exchange_block_t::*field) const {
    py::array_t<T> values(static_cast<py::ssize_t>(count()));
    for (std::size_t i = 0; i < count(); ++i) {
      values.mutable_data()[i] = blocks_[i].*field;
    }
    return values;
  }
  /// Some of the blocks. Raises IndexError.
  [[nodiscard]] std::shared_ptr<Found> select(const std::vector<std::size_t>& indices) const;
  /// The first block that was found and is not as large as its destination, or -1.
  [[nodiscard]] int first_of_other_size(const Buffers& destinations) const;

 private:
  std::vector<shmemx_exchange_block_t> blocks_;
};

/// What a pull works on: the blocks that were found, and where the status of each goes.
class Request {
 public:
  /// REQUIRES: as many destinations as blocks.
  Request(Found& found, std::shared_ptr<Buffers> destinations);

  /// Calls shmemx_exchange_pull. `transfer` is null for a pull that returns when all is over.
  int pull(shmemx_exchange_t* exchange, shmemx_exchange_transfer_t** transfer);
  /// A status for each block of `found`, also for those that were not found.
  [[nodiscard]] py::array statuses() const;

 private:
  std::shared_ptr<Buffers> buffers_;
  std::vector<shmemx_exchange_block_t> blocks_;
  std::vector<void*> destinations_;
  std::vector<std::size_t> places_;     // in all_
  std::vector<std::int32_t> statuses_;  // of blocks_
  std::vector<std::int32_t> all_;
};

/// A pull in the background. The memory that it writes is kept until it is over.
class Transfer {
 public:
  Transfer(std::unique_ptr<Request> request, shmemx_exchange_transfer_t* handle)
      : request_(std::move(request)), handle_(handle) {}
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;
  ~Transfer();

  /// False: it is not over.
  [[nodiscard]] bool test() const;
  /// Like test(), after at most so many nanoseconds.
  [[nodiscard]] bool wait(std::uint64_t timeout_ns) const;
  /// A status for each block. REQUIRES: it is over.
  [[nodiscard]] py::array statuses() const { return request_->statuses(); }
  /// -ECANCELED, or 0 or the first status. REQUIRES: it is over.
  [[nodiscard]] int error() const;

 private:
  std::unique_ptr<Request> request_;
  shmemx_exchange_transfer_t* handle_;
};

/// A member. Any thread may use it at any time; close() waits for calls of other threads.
class Exchange {
 public:
  using Numbers = Buffers::Numbers;

  Exchange(const std::string& name, const shmemx_exchange_options_t& options);
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
  ~Exchange();

  void close();
  [[nodiscard]] bool closed() const { return closing_; }

  /// With members on other nodes; `addresses` has commas between them.
  void connect(const std::optional<std::string>& listen, const std::string& addresses,
               const std::optional<std::string>& secret, std::uint32_t answer_ms);
  std::string address();

  std::uint32_t register_file(int file, std::size_t bytes, std::int64_t offset);
  void unregister(std::uint32_t region);
  /// `places` has a row of region, offset, bytes and layout for each key. Returns the statuses.
  py::array publish(const py::tuple& keys, const Numbers& places);
  void withdraw(const py::tuple& keys, std::uint64_t timeout_ns);

  std::shared_ptr<Found> find(const py::tuple& keys, std::uint64_t layout, std::uint32_t lease_ms);
  void release(Found& found);
  /// Returns the statuses.
  py::array pull(Found& found, const std::shared_ptr<Buffers>& destinations);
  std::shared_ptr<Transfer> start_pull(Found& found, const std::shared_ptr<Buffers>& destinations);

  py::list members();
  /// {cursor, keys, blocks}.
  py::tuple list_blocks(std::uint32_t seat, std::uint64_t cursor, std::size_t capacity);
  py::dict stats();
  py::dict member_stats(std::uint32_t seat);

  /// Raises RuntimeError in a forked process, which is no member and in which another thread may have had a lock.
  void require_process() const;
  /// Makes a call without the interpreter's lock; raises for an error, and returns the result.
  template <typename Call>
  int use(Call call) {
    const auto [outcome, result] = attempt_here(call);
    if (outcome.error < 0) {
      raise_exchange_error(outcome);
    }
    return result;
  }

 private:
  /// The same, and returns the outcome, too.
  template <typename Call>
  std::pair<Outcome, int> attempt_here(Call call);

  const pid_t owner_;
  std::atomic<bool> closing_{false};
  std::shared_mutex mutex_;  // shared by calls
  shmemx_exchange_t* exchange_ = nullptr;
};

template <typename Call>
std::pair<Outcome, int> Exchange::attempt_here(Call call) {
  require_process();
  int result = 0;
  bool closed = false;
  Outcome outcome = attempt_exchange(
      [&] {
        closed = closing_;
        if (closed) {
          return 0;
        }
        const std::shared_lock lock(mutex_);
        closed = exchange_ == nullptr;
        return closed ? 0 : call(exchange_);
      },
      &result);
  if (closed) {
    throw std::runtime_error("the exchange is closed");
  }
  return {std::move(outcome), result};
}

void bind_exchange(py::module_& module);
void bind_load_plan(py::module_& module);

}  // namespace shmem_kv
