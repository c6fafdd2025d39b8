// SPDX-License-Identifier: Apache-2.0
#include "shmem/memory/global_swap.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string_view>

#include "base/size_text.hpp"

namespace shmem {

namespace {

/// From this size on, the part of a range that begins as zero is excluded from core dumps, which would allocate all of
/// it.
constexpr std::size_t kMostDumped = std::size_t{16} << 20;

// A store into a range between its copy and its exchange is lost. So nothing here calls a function that the program may
// replace (memcpy, malloc) or that a sanitizer instruments.

using Word = std::uint64_t;

/// Volatile, so that the compiler does not turn it into a call of memcpy.
__attribute__((no_sanitize("address", "thread", "undefined"))) void copy_words(std::byte* to, const std::byte* from,
                                                                               std::size_t size) {
  auto* target = reinterpret_cast<volatile Word*>(to);
  const auto* source = reinterpret_cast<const volatile Word*>(from);
  for (std::size_t i = 0; i < size / sizeof(Word); ++i) {
    target[i] = source[i];
  }
}

__attribute__((no_sanitize("address", "thread", "undefined"))) bool is_zero(const std::byte* from, std::size_t size) {
  const auto* source = reinterpret_cast<const volatile Word*>(from);
  for (std::size_t i = 0; i < size / sizeof(Word); ++i) {
    if (source[i] != 0) {
      return false;
    }
  }
  return true;
}

/// Which pages of this process have memory. Reading a page that has none would allocate some.
class PageMap {
 public:
  PageMap() : file_(::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC)) {}

  /// Also true if it cannot be determined.
  bool has_memory(std::uintptr_t page_number) {
    if (!file_) {
      return true;
    }
    if (page_number < first_ || page_number >= first_ + known_) {
      const auto got = ::pread(file_.get(), entries_.data(), sizeof(entries_),
                               static_cast<off_t>(page_number * sizeof(entries_[0])));
      first_ = page_number;
      known_ = got > 0 ? static_cast<std::size_t>(got) / sizeof(entries_[0]) : 0;
      if (known_ == 0) {
        return true;
      }
    }
    return (entries_[page_number - first_] >> 62) != 0;  // bit 63: present, bit 62: swapped out
  }

 private:
  base::UniqueFd file_;
  std::array<std::uint64_t, 512> entries_{};
  std::uintptr_t first_ = 0;
  std::size_t known_ = 0;
};

/// From private memory of this process into shared memory that is zero.
void copy_private(const GlobalRange& range, std::byte* to, std::size_t page, PageMap& pages) {
  for (std::size_t at = 0; at < range.size; at += page) {
    const std::byte* from = range.begin + at;
    const bool of_file = at < range.initialized;  // has contents before it has memory
    if (!of_file && !pages.has_memory(reinterpret_cast<std::uintptr_t>(from) / page)) {
      continue;
    }
    if (!is_zero(from, page)) {
      copy_words(to + at, from, page);
    }
  }
}

/// From the shared memory at `file_offset` of `file`, without its holes, into private memory that is zero.
void copy_shared(const GlobalRange& range, std::byte* to, int file, std::size_t file_offset) {
  const std::size_t end = file_offset + range.size;
  for (std::size_t at = file_offset; at < end;) {
    const off_t data = ::lseek(file, static_cast<off_t>(at), SEEK_DATA);
    if (data < 0 && errno == ENXIO) {
      return;  // holes only
    }
    const std::size_t from = data < 0 ? at : static_cast<std::size_t>(data);
    if (from >= end) {
      return;
    }
    const off_t hole = data < 0 ? -1 : ::lseek(file, data, SEEK_HOLE);
    const std::size_t stop = hole < 0 ? end : std::min(end, static_cast<std::size_t>(hole));
    copy_words(to + (from - file_offset), range.begin + (from - file_offset), stop - from);
    at = stop;
  }
}

void leave_large_ones_out_of_dumps(const std::vector<GlobalRange>& ranges, std::size_t page) {
  for (const GlobalRange& range : ranges) {
    const std::size_t dumped = (range.initialized + page - 1) & ~(page - 1);
    if (range.size - dumped >= kMostDumped) {
      ::madvise(range.begin + dumped, range.size - dumped, MADV_DONTDUMP);
    }
  }
}

bool holds_my_stack(const GlobalRange& range) {
  const auto* here = static_cast<const std::byte*>(__builtin_frame_address(0));
  return here >= range.begin && here < range.begin + range.size;
}

/// The handlers of fork() find it here because they have no argument.
struct Forks {
  std::mutex mutex;  // held by a thread from before its fork() to the end of fork(), in both processes
  const GlobalSwap* swap = nullptr;
  std::optional<SpareRanges> for_child;
};

Forks& forks() {
  static Forks forks;
  return forks;
}

void before_fork() {
  forks().mutex.lock();
  if (forks().swap == nullptr) {
    return;
  }
  auto spare = SpareRanges::of_process(forks().swap->ranges());
  if (!spare) {
    return;
  }
  forks().swap->copy_to(*spare);
  forks().for_child.emplace(*std::move(spare));
}

void after_fork_in_parent() {
  forks().for_child.reset();
  forks().mutex.unlock();
}

void after_fork_in_child() {
  if (forks().swap != nullptr && (!forks().for_child || forks().for_child->put_in_place() != 0)) {
    constexpr std::string_view kText =
        "shmem: no memory for the global variables of a child made by fork(); it is ended, as its stores would be seen "
        "by the PE\n";
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, kText.data(), kText.size());
    ::_exit(1);
  }
  forks().swap = nullptr;
  forks().for_child.reset();
  forks().mutex.unlock();
}

/// Registered when the library is loaded, before the program can register its own: prepare handlers run in reverse
/// order, child handlers in the order of registration.
__attribute__((constructor)) void register_handlers() {
  forks();  // constructed first, so destroyed last
  ::pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

/// Blocks signals on this thread while it lives: a handler might store into the ranges.
class SignalBlock {
 public:
  SignalBlock() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  SignalBlock(const SignalBlock&) = delete;
  SignalBlock& operator=(const SignalBlock&) = delete;
  ~SignalBlock() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

std::size_t page_size() {
  return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace

Result<SpareRanges> SpareRanges::map(std::vector<GlobalRange> ranges, int flags, int file, std::size_t offset) {
  SpareRanges spare(std::move(ranges));
  spare.memory_.resize(spare.ranges_.size());
  for (std::size_t i = 0; i < spare.ranges_.size(); ++i) {
    const std::size_t size = spare.ranges_[i].size;
    void* data = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, flags | MAP_NORESERVE, file, static_cast<off_t>(offset));
    if (data == MAP_FAILED) {
      return fail_errno(errno, fmt::format("cannot map {} for global variables", base::size_text(size)));
    }
    spare.memory_[i] = static_cast<std::byte*>(data);
    offset += file < 0 ? 0 : size;
  }
  return spare;
}

Result<SpareRanges> SpareRanges::of_file(std::vector<GlobalRange> ranges, int file, std::size_t offset) {
  return map(std::move(ranges), MAP_SHARED, file, offset);
}

Result<SpareRanges> SpareRanges::of_process(std::vector<GlobalRange> ranges) {
  return map(std::move(ranges), MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

SpareRanges::~SpareRanges() {
  for (std::size_t i = 0; i < memory_.size(); ++i) {
    if (memory_[i] != nullptr) {
      ::munmap(memory_[i], ranges_[i].size);
    }
  }
}

int SpareRanges::put_in_place() {
  for (std::size_t i = 0; i < memory_.size(); ++i) {
    const GlobalRange& range = ranges_[i];
    // One step: at no time are these addresses unmapped.
    if (::mremap(memory_[i], range.size, range.size, MREMAP_MAYMOVE | MREMAP_FIXED, range.begin) == MAP_FAILED) {
      return errno;
    }
    memory_[i] = nullptr;
    ++placed_;
  }
  return 0;
}

GlobalSwap::GlobalSwap(std::vector<GlobalRange> ranges, base::UniqueFd file, std::size_t offset)
    : ranges_(std::move(ranges)), file_(std::move(file)), offset_(offset) {
  struct stat status {};
  if (::fstat(file_.get(), &status) == 0) {
    device_ = status.st_dev;
    inode_ = status.st_ino;
  }
}

bool GlobalSwap::still_has_file() const {
  struct stat status {};
  return ::fstat(file_.get(), &status) == 0 && status.st_dev == device_ && status.st_ino == inode_;
}

Result<std::unique_ptr<GlobalSwap>> GlobalSwap::begin(std::vector<GlobalRange> ranges, int file, std::size_t offset) {
  if (std::any_of(ranges.begin(), ranges.end(), holds_my_stack)) {
    return fail(std::errc::bad_address, "this thread's stack is a global variable, which cannot be moved under it");
  }
  if (auto untouched = check_untouched(ranges); !untouched) {
    return untouched.error();
  }
  base::UniqueFd own(::fcntl(file, F_DUPFD_CLOEXEC, 0));
  if (!own) {
    return fail_errno(errno, "cannot keep the memory of the global variables open: fcntl");
  }
  auto spare = SpareRanges::of_file(ranges, file, offset);
  if (!spare) {
    return spare.error();
  }
  std::unique_ptr<GlobalSwap> swap(new GlobalSwap(std::move(ranges), std::move(own), offset));
  PageMap pages;
  const std::size_t page = page_size();
  int error = 0;
  {
    const SignalBlock no_signals;
    const std::lock_guard no_forks(forks().mutex);
    for (std::size_t i = 0; i < swap->ranges_.size(); ++i) {
      copy_private(swap->ranges_[i], spare->memory(i), page, pages);
    }
    error = spare->put_in_place();
    if (error == 0) {
      forks().swap = swap.get();
    }
  }
  if (error != 0) {
    const auto size = swap->ranges_.size();
    swap->ranges_.resize(spare->placed());  // only those are put back
    return fail_errno(
        error, fmt::format("cannot put shared memory in the place of {} ranges of global variables (mremap)", size));
  }
  leave_large_ones_out_of_dumps(swap->ranges_, page);
  return swap;
}

void GlobalSwap::copy_to(const SpareRanges& spare) const {
  const bool has_file = still_has_file();
  std::size_t offset = offset_;
  for (std::size_t i = 0; i < ranges_.size(); ++i) {
    if (has_file) {
      copy_shared(ranges_[i], spare.memory(i), file_.get(), offset);
    } else {
      copy_words(spare.memory(i), ranges_[i].begin, ranges_[i].size);
    }
    offset += ranges_[i].size;
  }
}

GlobalSwap::~GlobalSwap() {
  auto spare = SpareRanges::of_process(ranges_);
  const SignalBlock no_signals;
  const std::lock_guard no_forks(forks().mutex);
  forks().swap = nullptr;
  // Without memory the variables stay where they are; no other process maps that memory any more.
  if (spare) {
    copy_to(*spare);
    spare->put_in_place();
  }
}

}  // namespace shmem
