// SPDX-License-Identifier: Apache-2.0
// The running library as the module sees it: started, ended, and what there is between. Used under the interpreter's
// lock (GIL), which calls that wait for other PEs let go.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <shmemx.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "python/core/kept_memory.hpp"
#include "python/core/messages.hpp"

namespace shmem_kv {

namespace py = pybind11;

/// Raises the exception that an errno stands for.
[[noreturn]] void raise(int error, const std::string& text);

/// Makes a call that gives 0 or a negative errno, without the GIL, and raises for the latter.
template <typename Call>
void checked(Call call) {
  int error = 0;
  std::string text;
  {
    const py::gil_scoped_release released;
    HeldMessages held;
    error = call();
    if (error < 0) {
      text = shmemx_error_text();  // of this thread
      held.drop(text);
    }
  }
  if (error < 0) {
    raise(-error, text);
  }
}

/// A block of the symmetric heap. Python objects own it; the memory goes back to the heap by free() only, because that
/// is collective, and what collects garbage is not. It can be read and written as long as the object lives.
class Block {
 public:
  Block(void* address, std::size_t size);
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block();

  enum class State { kLive, kFreed, kFinalized };
  [[nodiscard]] State state() const;
  [[nodiscard]] std::byte* address() const { return address_; }
  [[nodiscard]] std::size_t size() const { return size_; }
  /// Collective. Raises if it is not live.
  void free();
  /// What stands at its beginning; keeps `self`, which is this, alive.
  static py::array array(const py::object& self, const py::dtype& type, const std::vector<py::ssize_t>& shape);

 private:
  friend class Library;
  std::byte* address_;
  std::size_t size_;
  bool freed_ = false;
  bool finalized_ = false;
  std::shared_ptr<KeptMemory> kept_;  // after shmem_finalize
};

/// What is to be ended before shmem_finalize, in the order in which it was made: that is the same on all PEs.
class Collective {
 public:
  Collective() = default;
  Collective(const Collective&) = delete;
  Collective& operator=(const Collective&) = delete;
  virtual ~Collective() = default;
  virtual void end() = 0;
};

/// How to start; what is 0 or empty is as the environment or the launcher says.
struct StartRequest {
  std::size_t heap_size = 0;  // bytes
  std::string unique_id{};    // of make_unique_id() of one PE; then the numbers count
  int my_pe = 0;
  int pes = 0;
};

/// Of a job that is to be started without a launcher; this process is one of its PEs.
std::string make_unique_id();

class Library {
 public:
  static Library& instance();

  /// Collective.
  void start(const StartRequest& request);
  /// Collective. Arrays stay readable.
  void stop();
  [[nodiscard]] bool runs() const;
  /// Raises RuntimeError unless the library runs.
  void require(const char* call) const;

  /// checked(), for a call that may wait for other PEs.
  template <typename Call>
  void wait(const char* name, Call call) {
    require(name);
    const Use use(uses_);
    checked(call);
  }

  /// Collective.
  std::shared_ptr<Block> allocate(std::size_t bytes, bool zero);

  void add(std::shared_ptr<Collective> object) { objects_.push_back(std::move(object)); }
  void remove(const Collective& object);

 private:
  friend class Block;
  class Use {
   public:
    explicit Use(int& count) : count_(count) { ++count_; }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    ~Use() { --count_; }

   private:
    int& count_;
  };

  /// Nothing if there are no arrays.
  [[nodiscard]] std::shared_ptr<KeptMemory> keep_blocks() const;

  bool started_ = false;
  bool shared_ = false;      // with somebody else in this process, who ends it
  int uses_ = 0;             // calls that wait, of other threads
  std::set<Block*> blocks_;  // of this start, freed or not
  std::vector<std::shared_ptr<Collective>> objects_;
};

void bind_kv(py::module_& module);

}  // namespace shmem_kv
