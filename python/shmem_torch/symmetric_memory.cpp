// SPDX-License-Identifier: Apache-2.0
#include "python/shmem_torch/symmetric_memory.hpp"

#include "python/shmem_torch/versions.hpp"

#if SHMEM_TORCH_HAS_SYMMETRIC_MEMORY
#include <pybind11/pybind11.h>
#include <sys/mman.h>
#include <unistd.h>

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "python/core/without_python.hpp"
#include "python/shmem_torch/group_calls.hpp"
#include "python/shmem_torch/process_group.hpp"
#include "python/shmem_torch/signals.hpp"

namespace shmem_torch {
namespace {

namespace symmetric = c10d::symmetric_memory;

[[noreturn]] void refuse(const std::string& problem) {
  throw std::invalid_argument("shmem_torch: symmetric memory: " + problem);
}

std::size_t whole_pages(std::size_t bytes) {
  static const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

/// The ranks that share memory under a name of a process group, which may have any backend.
struct Sharers {
  std::shared_ptr<GroupHandle> group;
  int rank = 0;
  int size = 0;
  std::chrono::milliseconds timeout{0};
};

/// What a name of a process group stands for. Kept until the process ends: PyTorch keeps the names.
struct NamedGroup {
  std::mutex one_at_a_time;  // held in collective calls on this group: two groups do not wait for each other
  std::optional<Sharers> sharers;
};

NamedGroup& group_called(const std::string& name) {
  static auto& mutex = *new std::mutex;                          // NOLINT(cppcoreguidelines-owning-memory)
  static auto& groups = *new std::map<std::string, NamedGroup>;  // NOLINT(cppcoreguidelines-owning-memory)
  const std::scoped_lock lock(mutex);
  return groups[name];
}

/// Collective at the first call for a name. REQUIRES: the group's mutex is held.
const Sharers& sharers_of(NamedGroup& group, const std::string& name) {
  if (group.sharers) {
    return *group.sharers;
  }
  const symmetric::GroupInfo info = group_info(name);
  const auto store = c10::make_intrusive<c10d::PrefixStore>("shmem_torch", info.store);
  Sharers sharers{std::make_shared<GroupHandle>(store_of(store), info.rank, info.world_size), info.rank,
                  info.world_size, info.store->getTimeout()};
  return group.sharers.emplace(std::move(sharers));
}

/// The memory of one allocation on all ranks: in each, the buffer, and then the signal pad.
class CpuSymmetricMemory final : public SymmetricMemoryBase {
 public:
  CpuSymmetricMemory(Sharers sharers, std::shared_ptr<GroupMemory> memory, std::size_t size, std::size_t pad)
      : sharers_(std::move(sharers)), memory_(std::move(memory)), size_(size), pad_(pad) {
    for (int rank = 0; rank < sharers_.size; ++rank) {
      buffers_.push_back(memory_->address_of(rank));
      pads_.push_back(static_cast<char*>(buffers_.back()) + whole_pages(size_));
    }
  }

  static std::size_t pad_size(int ranks) {
    return signal_pad_size(whole_pages(static_cast<std::size_t>(ranks) * kChannels * sizeof(SignalWord)));
  }

  std::vector<void*> get_buffer_ptrs() override { return buffers_; }
  std::vector<void*> get_signal_pad_ptrs() override { return pads_; }
  void** get_buffer_ptrs_dev() override { return buffers_.data(); }
  void** get_signal_pad_ptrs_dev() override { return pads_.data(); }
  size_t get_buffer_size() override { return size_; }
  size_t get_signal_pad_size() override { return pad_; }
  size_t get_offset() override { return 0; }
  c10::Device get_device() override { return c10::kCPU; }
  bool world_within_direct_access() override { return true; }
  bool has_multicast_support() override { return false; }
  void* get_multicast_ptr() override { return nullptr; }
  int get_rank() override { return sharers_.rank; }
  int get_world_size() override { return sharers_.size; }

  at::Tensor get_buffer(int rank, c10::IntArrayRef sizes, c10::ScalarType dtype, int64_t storage_offset) override {
    check_rank(rank);
    return view(buffers_[static_cast<std::size_t>(rank)], get_buffer_size(), sizes, dtype, storage_offset);
  }
  at::Tensor get_signal_pad(int rank, c10::IntArrayRef sizes, std::optional<c10::ScalarType> dtype,
                            int64_t storage_offset) override {
    check_rank(rank);
    const c10::ScalarType type = dtype.value_or(c10::ScalarType::UInt32);
    const auto all = static_cast<std::int64_t>(get_signal_pad_size() / c10::elementSize(type)) - storage_offset;
    return view(pads_[static_cast<std::size_t>(rank)], get_signal_pad_size(),
                sizes.empty() ? c10::IntArrayRef(all) : sizes, type, storage_offset);
  }

  void barrier(int channel, size_t timeout_ms) override {
    const shmem_python::WithoutPython released;
    const SignalWait wait = begin("SymmetricMemory.barrier(channel ", channel, timeout_ms);
    for (int distance = 1; distance < sharers_.size; ++distance) {
      put(wait, (sharers_.rank + distance) % sharers_.size);
    }
    for (int distance = 1; distance < sharers_.size; ++distance) {
      take(wait, (sharers_.rank + distance) % sharers_.size);
    }
  }
  void put_signal(int dst_rank, int channel, size_t timeout_ms) override {
    check_rank(dst_rank);
    const shmem_python::WithoutPython released;
    put(begin("SymmetricMemory.put_signal(channel ", channel, timeout_ms), dst_rank);
  }
  void wait_signal(int src_rank, int channel, size_t timeout_ms) override {
    check_rank(src_rank);
    const shmem_python::WithoutPython released;
    take(begin("SymmetricMemory.wait_signal(channel ", channel, timeout_ms), src_rank);
  }

 private:
  static constexpr std::size_t kChannels = 64;  // at least

  void check_rank(int rank) const {
    if (rank < 0 || rank >= sharers_.size) {
      refuse("there is no rank " + std::to_string(rank) + " among " + std::to_string(sharers_.size));
    }
  }
  [[nodiscard]] SignalWait begin(const char* call, int channel, std::size_t timeout_ms) const {
    const auto channels = pad_ / sizeof(SignalWord) / static_cast<std::size_t>(sharers_.size);
    if (channel < 0 || static_cast<std::size_t>(channel) >= channels) {
      refuse("there is no channel " + std::to_string(channel) + "; there are " + std::to_string(channels));
    }
    if (shmemx_group_check(sharers_.group->get(), sharers_.rank) == -EPERM) {
      throw std::runtime_error(shmemx_error_text());
    }
    return {call, channel, *sharers_.group, std::chrono::milliseconds(timeout_ms)};
  }
  /// Where `from` leaves a signal for `to`.
  [[nodiscard]] SignalWord& word(int to, int from, int channel) const {
    return static_cast<SignalWord*>(pads_[static_cast<std::size_t>(to)])[channel * sharers_.size + from];
  }
  void put(const SignalWait& wait, int to) const { wait.change(word(to, sharers_.rank, wait.number()), 0, 1, to); }
  void take(const SignalWait& wait, int from) const {
    wait.change(word(sharers_.rank, from, wait.number()), 1, 0, from);
  }

  [[nodiscard]] at::Tensor view(void* memory, std::size_t size, c10::IntArrayRef sizes, c10::ScalarType type,
                                std::int64_t offset) const {
    const auto most = static_cast<std::int64_t>(size / c10::elementSize(type));
    std::int64_t count = 1;
    for (const std::int64_t one : sizes) {
      if (one < 0 || (one != 0 && count > most / one)) {
        refuse("a tensor of this shape is larger than the " + std::to_string(size) + " bytes that are there");
      }
      count *= one;
    }
    if (offset < 0 || offset > most - count) {
      refuse(std::to_string(count) + " elements from element " + std::to_string(offset) + " on exceed the " +
             std::to_string(most) + " that are there");
    }
    auto* const at = static_cast<char*>(memory) + static_cast<std::size_t>(offset) * c10::elementSize(type);
    return at::from_blob(
        at, sizes, [owner = memory_](void*) mutable { owner.reset(); }, at::TensorOptions(type));
  }

  const Sharers sharers_;
  const std::shared_ptr<GroupMemory> memory_;
  const std::size_t size_;
  const std::size_t pad_;
  std::vector<void*> buffers_;
  std::vector<void*> pads_;
};

/// Memory is private to its rank until the rendezvous, which puts memory of all ranks in its place.
class CpuAllocator final : public SymmetricMemoryAllocatorBase {
 public:
  void* alloc(size_t size, int /*device_idx*/, const std::optional<std::string>& group_name) override {
    const std::size_t mapped = whole_pages(std::max<std::size_t>(size, 1));
    void* const memory = ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
      throw std::runtime_error("shmem_torch: symmetric memory: cannot map " + std::to_string(mapped) +
                               " bytes: " + std::strerror(errno));
    }
    const std::scoped_lock lock(mutex_);
    allocations_.emplace(memory, Allocation{size, group_name, {}, {}});
    return memory;
  }

  void free(void* ptr) override {
    const std::scoped_lock lock(mutex_);
    const auto found = allocations_.find(ptr);
    if (found != allocations_.end()) {
      ::munmap(ptr, whole_pages(std::max<std::size_t>(found->second.size, 1)));
      allocations_.erase(found);
    }
  }

  size_t get_alloc_size(void* ptr) override {
    const std::scoped_lock lock(mutex_);
    return find(ptr).size;
  }
  bool has_allocation(void* ptr) override {
    const std::scoped_lock lock(mutex_);
    return allocations_.count(ptr) != 0;
  }
  c10::DeviceType supported_device_type() override { return c10::DeviceType::CPU; }
  std::string name() override { return "SHMEM"; }

  c10::intrusive_ptr<symmetric::SymmetricMemory> rendezvous(void* ptr,
                                                            const std::optional<std::string>& group_name) override {
    const shmem_python::WithoutPython released;
    Allocation& mine = [&]() -> Allocation& {
      const std::scoped_lock lock(mutex_);
      return find(ptr);
    }();
    const std::optional<std::string>& name = group_name ? group_name : mine.group;
    if (!name) {
      refuse("rendezvous needs the name of a group");
    }
    NamedGroup& group = group_called(*name);
    const std::scoped_lock one_at_a_time(group.one_at_a_time);
    if (mine.shared) {
      if (mine.group != name) {
        refuse("the tensor is shared by group \"" + *mine.group + "\" already; allocate another one for \"" + *name +
               "\"");
      }
      return mine.shared;
    }
    const Sharers& sharers = sharers_of(group, *name);
    const std::size_t pad = CpuSymmetricMemory::pad_size(sharers.size);
    share(ptr, mine, sharers, pad);
    mine.group = name;
    mine.shared = c10::make_intrusive<CpuSymmetricMemory>(sharers, mine.memory, mine.size, pad);
    return mine.shared;
  }

  bool has_multicast_support(int /*device_idx*/) override { return false; }

 private:
  struct Allocation {
    std::size_t size;
    std::optional<std::string> group;
    std::shared_ptr<GroupMemory> memory;  // at this address, once shared
    c10::intrusive_ptr<CpuSymmetricMemory> shared;
  };

  /// With the mutex held.
  Allocation& find(void* ptr) {
    const auto found = allocations_.find(ptr);
    if (found == allocations_.end()) {
      refuse("not the beginning of a tensor of torch.distributed._symmetric_memory.empty");
    }
    return found->second;
  }

  /// Collective: memory of the ranks takes the place of the private one, with what is in it.
  static void share(void* ptr, Allocation& mine, const Sharers& sharers, std::size_t pad) {
    const std::size_t mapped = whole_pages(std::max<std::size_t>(mine.size, 1));
    const std::size_t bytes = mapped + pad;
    if (auto error = allocate(*sharers.group, "shmem_torch: rendezvous", bytes, sharers.timeout, mine.memory);
        !error.empty()) {
      throw std::runtime_error(error);
    }
    // On several nodes each rank misses one: all of them refuse.
    for (int rank = 0; rank < sharers.size; ++rank) {
      if (mine.memory->address_of(rank) == nullptr) {
        refuse("rank " + std::to_string(rank) + " is on another node than rank " + std::to_string(sharers.rank));
      }
    }
    void* const part = mine.memory->address();
    std::memcpy(part, ptr, mine.size);
    // An old size of 0 keeps the old mapping of shared memory, and adds a second one.
    const bool good = ::mremap(part, 0, mapped, MREMAP_MAYMOVE | MREMAP_FIXED, ptr) == ptr;
    const std::string why = good ? "" : std::strerror(errno);
    const std::int32_t failed = good ? 0 : 1;
    std::int32_t any = 0;
    const void* const from = &failed;
    void* const to = &any;
    const shmemx_group_call_t call{SHMEMX_GROUP_ALLREDUCE,
                                   SHMEMX_GROUP_INT32,
                                   SHMEMX_GROUP_MAX,
                                   0,
                                   sizeof failed,
                                   nanoseconds(sharers.timeout),
                                   &from,
                                   &to,
                                   nullptr,
                                   nullptr};
    if (const int error = shmemx_group_run(sharers.group->get(), &call); error != 0) {
      throw std::runtime_error(failure_on_all(*sharers.group, "shmem_torch: rendezvous", error, sharers.timeout, {}));
    }
    if (any != 0) {
      throw std::runtime_error("shmem_torch: rendezvous: " +
                               (good ? "another rank could not map the memory; its message says why"
                                     : "the memory cannot be mapped: " + why));
    }
  }

  std::mutex mutex_;  // guards the map; an Allocation belongs to the threads that use its tensor
  std::map<void*, Allocation> allocations_;
};

}  // namespace

bool register_symmetric_memory() {
  register_allocator(c10::make_intrusive<CpuAllocator>());
  return true;
}

}  // namespace shmem_torch

#else

namespace shmem_torch {

bool register_symmetric_memory() {
  return false;
}

}  // namespace shmem_torch

#endif
