// SPDX-License-Identifier: Apache-2.0
#include "python/core/library.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <system_error>

namespace shmem_kv {

Block::Block(void* address, std::size_t size) : address_(static_cast<std::byte*>(address)), size_(size) {
  Library::instance().blocks_.insert(this);
}

Block::~Block() {
  Library::instance().blocks_.erase(this);
}

Block::State Block::state() const {
  if (finalized_) {
    return State::kFinalized;
  }
  return freed_ ? State::kFreed : State::kLive;
}

void Block::free() {
  Library& library = Library::instance();
  library.require("free");
  if (state() != State::kLive) {
    throw py::value_error(freed_ ? "free: the array was freed before"
                                 : "free: the array is of before the last finalize()");
  }
  freed_ = true;
  library.wait("free", [this] {
    shmem_free(address_);
    return 0;
  });
}

py::array Block::array(const py::object& self, const py::dtype& type, const std::vector<py::ssize_t>& shape) {
  return {type, shape, {}, self.cast<const Block&>().address(), self};
}

Library& Library::instance() {
  // Never destroyed: arrays and operators may outlive everything that ends with the process.
  static auto* const library = std::make_unique<Library>().release();
  return *library;
}

bool Library::runs() const {
  // False in a child made by fork(), which is not a PE.
  return started_ && shmemx_init_status() == SHMEMX_STATUS_IS_INITIALIZED;
}

void Library::require(const char* call) const {
  if (!runs()) {
    throw std::runtime_error(std::string(call) + ": " +
                             (started_ ? "this process is a child of a PE, and not a PE itself"
                                       : "the library does not run: init() starts it, finalize() ends it"));
  }
}

std::string make_unique_id() {
  shmemx_uniqueid_t id = SHMEMX_UNIQUEID_INITIALIZER;
  checked([&id] { return shmemx_get_uniqueid(&id); });
  return {reinterpret_cast<const char*>(&id), sizeof id};
}

void Library::start(const StartRequest& request) {
  if (const Outcome outcome = try_start(request); outcome.error < 0) {
    raise(-outcome.error, outcome.text);
  }
}

Outcome Library::try_start(const StartRequest& request) {
  if (started_) {
    return {-EALREADY, "init: the library runs already; finalize() ends it"};
  }
  shmemx_init_attr_t attributes = SHMEMX_INIT_ATTR_INITIALIZER;
  shmemx_uniqueid_t id = SHMEMX_UNIQUEID_INITIALIZER;
  const bool by_id = !request.unique_id.empty();
  if (by_id) {
    if (request.unique_id.size() != sizeof id) {
      return {-EINVAL, "init: unique_id has " + std::to_string(request.unique_id.size()) + " bytes, not the " +
                           std::to_string(sizeof id) + " of unique_id()"};
    }
    std::memcpy(&id, request.unique_id.data(), sizeof id);
    Outcome outcome =
        attempt([&] { return shmemx_set_attr_uniqueid_args(request.my_pe, request.pes, 0, &id, &attributes); });
    if (outcome.error < 0) {
      return outcome;
    }
  } else if (request.pes != 0) {
    attributes.my_pe = request.my_pe;
    attributes.n_pes = request.pes;
    request.address.copy(static_cast<char*>(attributes.ip_port), sizeof attributes.ip_port - 1);
  }
  attributes.local_mem_size = request.heap_size;
  attributes.shm_init_timeout = request.seconds != 0 ? request.seconds : attributes.shm_init_timeout;
  shmemx_set_errors_return(1);  // Python raises
  Outcome survives = attempt([&] { return request.survive ? shmemx_set_survive(1) : 0; });
  if (survives.error < 0) {
    return survives;
  }
  bool shared = false;
  Outcome outcome = attempt([&] {
    if (shmemx_init_status() == SHMEMX_STATUS_IS_INITIALIZED) {
      shmem_init();  // another user of the library has started it: it ends with the last finalize
      shared = true;
      return 0;
    }
    return shmemx_init_attr(by_id ? SHMEMX_INIT_WITH_UNIQUEID : SHMEMX_INIT_WITH_DEFAULT, &attributes);
  });
  started_ = outcome.error == 0;
  shared_ = shared;
  return outcome;
}

std::shared_ptr<KeptMemory> Library::keep_blocks() const {
  if (blocks_.empty() || shared_) {
    return nullptr;
  }
  std::byte* first = (*blocks_.begin())->address_;
  std::byte* end = first;
  for (const Block* block : blocks_) {
    first = std::min(first, block->address_);
    end = std::max(end, block->address_ + block->size_);
  }
  try {
    return KeptMemory::take(first, static_cast<std::size_t>(end - first));
  } catch (const std::system_error& error) {
    throw std::runtime_error("finalize: there are " + std::to_string(blocks_.size()) +
                             " symmetric arrays, whose memory cannot be kept (" + error.what() +
                             "); drop all references to them first (del)");
  }
}

void Library::check_may_stop() const {
  require("finalize");
  if (uses_ > 0) {
    throw std::runtime_error("finalize: " + std::to_string(uses_) + " calls of other threads are still under way");
  }
}

void Library::stop() {
  check_may_stop();
  std::exception_ptr failure;
  while (!objects_.empty()) {
    const auto object = objects_.front();
    objects_.erase(objects_.begin());
    try {
      object->end();
    } catch (const std::exception&) {
      failure = failure ? failure : std::current_exception();  // the others end, and the library, all the same
    }
  }
  const auto kept = keep_blocks();  // moves the memory, which the objects have used
  started_ = false;
  int error = 0;
  {
    const shmem_python::WithoutPython released;
    shmemx_take_error();
    shmem_finalize();
    error = shmemx_take_error();
  }
  if (kept != nullptr) {
    kept->put_back();
  }
  for (Block* block : blocks_) {
    block->finalized_ = true;
    block->kept_ = kept;
  }
  blocks_.clear();
  if (failure) {
    std::rethrow_exception(failure);
  }
  if (error != 0) {
    raise(-error, shmemx_error_text());
  }
}

std::shared_ptr<Block> Library::allocate(std::size_t bytes, bool zero, std::size_t alignment) {
  bytes = std::max<std::size_t>(bytes, 1);
  void* address = nullptr;
  wait(zero ? "zeros" : "empty", [&] {
    address = zero ? shmem_calloc(bytes, 1) : alignment != 0 ? shmem_align(alignment, bytes) : shmem_malloc(bytes);
    const int error = address != nullptr ? 0 : shmemx_take_error();
    return address != nullptr || error != 0 ? error : -ENOMEM;
  });
  return std::make_shared<Block>(address, bytes);
}

std::shared_ptr<Block> Library::block_at(const std::byte* address) const {
  const auto found = std::find_if(blocks_.begin(), blocks_.end(), [address](const Block* block) {
    return block->state() == Block::State::kLive && address >= block->address_ &&
           address < block->address_ + block->size_;
  });
  return found != blocks_.end() ? (*found)->shared_from_this() : nullptr;
}

void Library::remove(const Collective& object) {
  const auto found =
      std::find_if(objects_.begin(), objects_.end(), [&](const auto& other) { return other.get() == &object; });
  if (found != objects_.end()) {
    objects_.erase(found);
  }
}

}  // namespace shmem_kv
