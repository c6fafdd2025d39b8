// SPDX-License-Identifier: Apache-2.0
// Small collective calls of teams and of active sets, in an order that all PEs draw alike:
//   small_collective_pes CALLS SEED LEVEL [allocations]
// Each result is checked, pSync is as before at the end, and with "allocations" no call after the first of its
// kind may allocate memory. LEVEL is that of shmem_init_thread.
#include <shmem.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

namespace {

std::atomic<long> allocations{0};

constexpr std::size_t kMost = 300;   // elements: beyond what is eager
constexpr std::size_t kPsyncs = 12;  // two for each group: a pSync is for one set at a time

void check(bool good, const char* what, long call) {
  if (!good) {
    std::fprintf(stderr, "PE %d: call %ld: %s\n", shmem_my_pe(), call, what);
    shmem_global_exit(1);
  }
}

long value(int pe, long call, std::size_t i) {
  return pe * 1000003L + call * 997 + static_cast<long>(i) * 13;
}

/// A group of PEs start, start + stride, ...: as a team, or as an active set.
struct Group {
  int start, log_stride, size;
  shmem_team_t team;
  bool set;

  [[nodiscard]] int me() const {
    const int distance = shmem_my_pe() - start;
    const int stride = 1 << log_stride;
    return distance >= 0 && distance % stride == 0 && distance / stride < size ? distance / stride : -1;
  }
  [[nodiscard]] int pe(int member) const { return start + (member << log_stride); }
};

struct Memory {
  long to[kMost * 8];
  long from[kMost * 8];
  long work[kMost + SHMEM_REDUCE_MIN_WRKDATA_SIZE];
  long psync[kPsyncs][SHMEM_SYNC_SIZE];
};

enum Kind { kSync, kBroadcast, kFcollect, kCollect, kAlltoall, kSum, kScan, kKinds };

class Calls {
 public:
  Calls(unsigned seed, std::vector<Group> groups)
      : random_(seed), groups_(std::move(groups)), memory_(static_cast<Memory*>(shmem_calloc(1, sizeof(Memory)))) {}
  Calls(const Calls&) = delete;
  Calls& operator=(const Calls&) = delete;
  ~Calls() { shmem_free(memory_); }

  /// The next call, if this PE is in its group.
  void make(long number) {
    number_ = number;
    const std::size_t which = draw(groups_.size());
    const Group& group = groups_[which];
    const auto kind = static_cast<Kind>(draw(kKinds));
    constexpr std::size_t kSizes[] = {0, 1, 2, 7, 12, 13, 64, 127, 128, 129, 256, kMost};
    const std::size_t n = kSizes[draw(std::size(kSizes))];
    const int root = static_cast<int>(draw(static_cast<std::size_t>(group.size)));
    const bool in_place = draw(2) == 0;
    long* const psync = memory_->psync[2 * which + draw(2)];
    // A set of one PE has no team, and its collect allocates.
    if (group.me() < 0 || (group.set && group.size == 1 && kind == kCollect)) {
      return;
    }
    for (std::size_t i = 0; i < kMost * 8; ++i) {
      memory_->from[i] = value(shmem_my_pe(), number, i);
      memory_->to[i] = -1;
    }
    call(group, kind, n, root, in_place, psync);
  }

  /// After a barrier: before it, PEs that are ahead may be in their next call.
  void check_psync() const {
    for (const auto& words : memory_->psync) {
      for (const long word : words) {
        check(word == SHMEM_SYNC_VALUE, "pSync has changed", number_);
      }
    }
  }

 private:
  std::size_t draw(std::size_t below) { return random_() % below; }

  void call(const Group& group, Kind kind, std::size_t n, int root, bool in_place, long* psync) {
    const auto members = static_cast<std::size_t>(group.size);
    const auto me = static_cast<std::size_t>(group.me());
    long* const from = memory_->from;
    long* to = memory_->to;
    switch (kind) {
      case kSync:
        group.set ? shmem_barrier(group.start, group.log_stride, group.size, psync)
                  : static_cast<void>(shmem_team_sync(group.team));
        return;
      case kBroadcast:
        if (group.set) {
          shmem_broadcast64(to, from, n, root, group.start, group.log_stride, group.size, psync);
        } else {
          shmem_long_broadcast(group.team, to, from, n, root);
        }
        for (std::size_t i = 0; i < n && !(group.set && group.me() == root); ++i) {
          check(to[i] == value(group.pe(root), number_, i), "broadcast", number_);
        }
        break;
      case kFcollect:
        if (group.set) {
          shmem_fcollect64(to, from, n, group.start, group.log_stride, group.size, psync);
        } else {
          shmem_long_fcollect(group.team, to, from, n);
        }
        for (std::size_t i = 0; i < n * members; ++i) {
          check(to[i] == value(group.pe(static_cast<int>(i / n)), number_, i % n), "fcollect", number_);
        }
        break;
      case kCollect:
        collect(group, n, psync);
        break;
      case kAlltoall:
        if (group.set) {
          shmem_alltoall64(to, from, n, group.start, group.log_stride, group.size, psync);
        } else {
          shmem_long_alltoall(group.team, to, from, n);
        }
        for (std::size_t i = 0; i < n * members; ++i) {
          check(to[i] == value(group.pe(static_cast<int>(i / n)), number_, me * n + i % n), "alltoall", number_);
        }
        break;
      default:
        to = in_place ? from : to;
        combine(group, kind == kScan && !group.set, n, to, psync);
    }
    check(to[kMost * 8 - 1] == -1 || to == from, "an element behind the result", number_);
  }

  /// Member i gives up to i elements less than n.
  void collect(const Group& group, std::size_t n, long* psync) {
    const auto length = [n](int member) { return n - std::min<std::size_t>(n, static_cast<std::size_t>(member)); };
    if (group.set) {
      shmem_collect64(memory_->to, memory_->from, length(group.me()), group.start, group.log_stride, group.size, psync);
    } else {
      shmem_long_collect(group.team, memory_->to, memory_->from, length(group.me()));
    }
    std::size_t at = 0;
    for (int member = 0; member < group.size; ++member) {
      for (std::size_t i = 0; i < length(member); ++i) {
        check(memory_->to[at++] == value(group.pe(member), number_, i), "collect", number_);
      }
    }
  }

  void combine(const Group& group, bool scan, std::size_t n, long* to, long* psync) {
    if (group.set) {
      shmem_long_sum_to_all(to, memory_->from, static_cast<int>(n), group.start, group.log_stride, group.size,
                            memory_->work, psync);
    } else if (scan) {
      shmem_long_sum_exscan(group.team, to, memory_->from, n);
    } else {
      shmem_long_sum_reduce(group.team, to, memory_->from, n);
    }
    for (std::size_t i = 0; i < n; ++i) {
      long sum = 0;
      for (int member = 0; member < (scan ? group.me() : group.size); ++member) {
        sum += value(group.pe(member), number_, i);
      }
      check(to[i] == sum, scan ? "scan" : "sum", number_);
    }
  }

  std::minstd_rand random_;
  std::vector<Group> groups_;
  Memory* memory_;
  long number_ = 0;
};

}  // namespace

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define EXPORTED [[gnu::visibility("default")]]  // for the libraries
// Each way to allocate, of C++ too, ends in one of these; the C library calls them by these names.
extern "C" {
void* __libc_malloc(std::size_t size);                       // NOLINT(bugprone-reserved-identifier): glibc's
void* __libc_calloc(std::size_t count, std::size_t size);    // NOLINT(bugprone-reserved-identifier)
void* __libc_realloc(void* memory, std::size_t size);        // NOLINT(bugprone-reserved-identifier)
void* __libc_memalign(std::size_t align, std::size_t size);  // NOLINT(bugprone-reserved-identifier)

EXPORTED void* malloc(std::size_t size) noexcept {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_malloc(size);
}
EXPORTED void* calloc(std::size_t count, std::size_t size) noexcept {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_calloc(count, size);
}
EXPORTED void* realloc(void* memory, std::size_t size) noexcept {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_realloc(memory, size);
}
EXPORTED void* aligned_alloc(std::size_t align, std::size_t size) noexcept {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_memalign(align, size);
}
}
#endif

int main(int argc, char** argv) {
  if (argc < 4) {
    return 2;
  }
  int provided = -1;
  shmem_init_thread(std::atoi(argv[3]), &provided);
  const int pes = shmem_n_pes();
  shmem_team_t even = SHMEM_TEAM_INVALID;
  shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 2, (pes + 1) / 2, nullptr, 0, &even);
  std::vector<Group> groups{
      {0, 0, pes, SHMEM_TEAM_WORLD, false}, {0, 0, pes, SHMEM_TEAM_WORLD, true},
      {0, 0, pes, SHMEM_TEAM_WORLD, true},  {0, 1, (pes + 1) / 2, even, false},
      {0, 1, (pes + 1) / 2, even, true},    {pes / 2, 0, pes - pes / 2, SHMEM_TEAM_INVALID, true}};
  const auto seed = static_cast<unsigned>(std::atoi(argv[2])) + 1;
  {
    Calls calls(seed, groups);
    const long count = std::atol(argv[1]);
    for (long number = 0; number < count; ++number) {
      calls.make(number);
    }
    shmem_barrier_all();
    // The same calls again: by now each set has its team.
    Calls again(seed, groups);
    const long before = allocations;
    for (long number = 0; number < count; ++number) {
      again.make(number);
    }
    check(argc < 5 || allocations == before, "a small collective call allocates memory", count);
    shmem_barrier_all();
    again.check_psync();
    shmem_barrier_all();
  }
  shmem_finalize();
  return 0;
}
