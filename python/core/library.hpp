// SPDX-License-Identifier: Apache-2.0
// The library as the module uses it: start, end, and the objects that exist in between. Used with the interpreter's
// lock (GIL), which calls that wait for other PEs release.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <shmemx.h>
#include <shmemx_interface.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "python/core/kept_memory.hpp"
#include "python/core/messages.hpp"
#include "python/core/outcome.hpp"
#include "python/core/without_python.hpp"

namespace shmem_kv {

namespace py = pybind11;

/// Makes a call that returns a number or a negative errno, or whose error the library records, without the GIL. The
/// text of an error is not printed. `result`, if given, gets the number.
template <typename Call>
Outcome attempt(Call call, int* result = nullptr) {
  Outcome outcome;
  const shmem_python::WithoutPython released;
  HeldMessages held;
  shmemx_take_error();  // of a call that was not made here
  const int returned = call();
  const int recorded = shmemx_take_error();
  outcome.error = std::min(returned < 0 ? returned : recorded, 0);
  if (outcome.error < 0) {
    outcome.text = shmemx_error_text();  // of this thread
    held.drop(outcome.text);
  }
  if (result != nullptr) {
    *result = returned;
  }
  return outcome;
}

/// attempt(), and raises for an error.
template <typename Call>
void checked(Call call) {
  if (const Outcome outcome = attempt(call); outcome.error < 0) {
    raise(-outcome.error, outcome.text);
  }
}

/// A block of the symmetric heap, owned by Python objects. Only free() returns the memory to the heap, because that is
/// collective, and garbage collection is not. It can be read and written as long as the object lives.
class Block : public std::enable_shared_from_this<Block> {
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
  /// An array of the memory, which keeps `self`, this object, alive.
  static py::array array(const py::object& self, const py::dtype& type, const std::vector<py::ssize_t>& shape);

 private:
  friend class Library;
  std::byte* address_;
  std::size_t size_;
  bool freed_ = false;
  bool finalized_ = false;
  std::shared_ptr<KeptMemory> kept_;  // after shmem_finalize
};

/// An object that must end before shmem_finalize. Objects end in the order of creation, which is the same on all PEs.
class Collective {
 public:
  Collective() = default;
  Collective(const Collective&) = delete;
  Collective& operator=(const Collective&) = delete;
  virtual ~Collective() = default;
  virtual void end() = 0;
};

/// How to start. 0 and empty values leave the choice to the environment or the launcher.
struct StartRequest {
  std::size_t heap_size = 0;  // bytes
  std::string unique_id{};    // from make_unique_id() of one PE; only then the numbers below are used
  int my_pe = 0;
  int pes = 0;
  bool survive = false;       // go on when another PE dies
  std::string address{};      // "tcp://1.2.3.4:port" of PE 0, in place of a unique id
  std::uint32_t seconds = 0;  // to wait for the others; 0: as long as the library does
};

/// For a job without a launcher, in which this process will be a PE.
std::string make_unique_id();

class Library {
 public:
  static Library& instance();

  /// Collective.
  void start(const StartRequest& request);
  /// The same, without an exception for what the library refuses.
  Outcome try_start(const StartRequest& request);
  /// Raises if stop() would be refused.
  void check_may_stop() const;
  /// Collective. Arrays stay readable. The library has ended even if this raises because other PEs failed.
  void stop();
  [[nodiscard]] bool runs() const;
  /// Raises RuntimeError unless the library runs.
  void require(const char* call) const;

  /// checked() for a call that may wait for other PEs.
  template <typename Call>
  void wait(const char* name, Call call) {
    require(name);
    const Use use(uses_);
    checked(call);
  }

  /// Collective.
  std::shared_ptr<Block> allocate(std::size_t bytes, bool zero, std::size_t alignment = 0);
  /// The live block that the address is in, if a Python object still refers to it; else nullptr.
  [[nodiscard]] std::shared_ptr<Block> block_at(const std::byte* address) const;

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

  /// Null if there are no arrays.
  [[nodiscard]] std::shared_ptr<KeptMemory> keep_blocks() const;

  bool started_ = false;
  bool shared_ = false;      // another user of the library in this process ends it
  int uses_ = 0;             // waiting calls of other threads
  std::set<Block*> blocks_;  // of this start, freed or not
  std::vector<std::shared_ptr<Collective>> objects_;
};

void bind_kv(py::module_& module);
void bind_ascend(py::module_& module);

}  // namespace shmem_kv
