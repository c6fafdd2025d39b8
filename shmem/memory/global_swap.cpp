// SPDX-License-Identifier: Apache-2.0
#include "shmem/memory/global_swap.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>

#include "shmem/memory/global_fork.hpp"
#include "shmem/memory/size_text.hpp"
#include "shmem/memory/store_guard.hpp"

namespace shmem {

namespace {

/// From this size on the part of a range that begins as zero is left out of core dumps, which would allocate all of it.
constexpr std::size_t kMostDumped = std::size_t{16} << 20;

// Between the protection of the ranges and the exchange nothing of ours may store into them: no call of a function that
// the program may bring itself (memcpy, malloc), and none that a sanitizer watches.

using Word = std::uint64_t;

/// Volatile, so that it is not made a call of memcpy again.
__attribute__((no_sanitize("address", "thread", "undefined"))) void copy_words(std::byte* to, const std::byte* from,
                                                                               std::size_t size) {
  auto* target = reinterpret_cast<volatile Word*>(to);
  const auto* source = reinterpret_cast<const volatile Word*>(from);
  for (std::size_t i = 0; i < size / sizeof(Word); ++i) target[i] = source[i];
}

__attribute__((no_sanitize("address", "thread", "undefined"))) bool is_zero(const std::byte* from, std::size_t size) {
  const auto* source = reinterpret_cast<const volatile Word*>(from);
  for (std::size_t i = 0; i < size / sizeof(Word); ++i) {
    if (source[i] != 0) return false;
  }
  return true;
}

/// Which pages of this process have memory. Reading one that has none would give it some.
class PageMap {
 public:
  PageMap() : file_(::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC)) {}

  /// Also true if that is not to be found out.
  bool has_memory(std::uintptr_t page_number) {
    if (!file_) return true;
    if (page_number < first_ || page_number >= first_ + known_) {
      const auto got = ::pread(file_.get(), entries_.data(), sizeof(entries_),
                               static_cast<off_t>(page_number * sizeof(entries_[0])));
      first_ = page_number;
      known_ = got > 0 ? static_cast<std::size_t>(got) / sizeof(entries_[0]) : 0;
      if (known_ == 0) return true;
    }
    return (entries_[page_number - first_] >> 62) != 0;  // bit 63: present, bit 62: swapped out
  }

 private:
  UniqueFd file_;
  std::array<std::uint64_t, 512> entries_{};
  std::uintptr_t first_ = 0;
  std::size_t known_ = 0;
};

/// From private memory of this process into shared memory that is zero.
void copy_private(const GlobalRange& range, std::byte* to, std::size_t page, PageMap& pages) {
  for (std::size_t at = 0; at < range.size; at += page) {
    const std::byte* from = range.begin + at;
    const bool of_file = at < range.initialized;  // has contents before it has memory
    if (!of_file && !pages.has_memory(reinterpret_cast<std::uintptr_t>(from) / page)) continue;
    if (!is_zero(from, page)) copy_words(to + at, from, page);
  }
}

/// From the shared memory at `file_offset` of `file`, but for its holes, into private memory that is zero.
void copy_shared(const GlobalRange& range, std::byte* to, int file, std::size_t file_offset) {
  const std::size_t end = file_offset + range.size;
  for (std::size_t at = file_offset; at < end;) {
    const off_t data = ::lseek(file, static_cast<off_t>(at), SEEK_DATA);
    if (data < 0 && errno == ENXIO) return;  // holes only
    const std::size_t from = data < 0 ? at : static_cast<std::size_t>(data);
    if (from >= end) return;
    const off_t hole = data < 0 ? -1 : ::lseek(file, data, SEEK_HOLE);
    const std::size_t stop = hole < 0 ? end : std::min(end, static_cast<std::size_t>(hole));
    copy_words(to + (from - file_offset), range.begin + (from - file_offset), stop - from);
    at = stop;
  }
}

void leave_large_ones_out_of_dumps(const std::vector<GlobalRange>& ranges, std::size_t page) {
  for (const GlobalRange& range : ranges) {
    const std::size_t dumped = (range.initialized + page - 1) & ~(page - 1);
    if (range.size - dumped >= kMostDumped) ::madvise(range.begin + dumped, range.size - dumped, MADV_DONTDUMP);
  }
}

bool holds_my_stack(const GlobalRange& range) {
  const auto* here = static_cast<const std::byte*>(__builtin_frame_address(0));
  return here >= range.begin && here < range.begin + range.size;
}

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
    if (data == MAP_FAILED) return fail_errno(errno, "cannot map " + size_text(size) + " for global variables");
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
    if (memory_[i] != nullptr) ::munmap(memory_[i], ranges_[i].size);
  }
}

int SpareRanges::put_in_place() {
  for (std::size_t i = 0; i < memory_.size(); ++i) {
    const GlobalRange& range = ranges_[i];
    // One step: at no time is there nothing at these addresses.
    if (::mremap(memory_[i], range.size, range.size, MREMAP_MAYMOVE | MREMAP_FIXED, range.begin) == MAP_FAILED) {
      return errno;
    }
    memory_[i] = nullptr;
    ++placed_;
  }
  return 0;
}

GlobalSwap::GlobalSwap(std::vector<GlobalRange> ranges, UniqueFd file, std::size_t offset)
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
  if (auto untouched = check_untouched(ranges); !untouched) return tl::make_unexpected(untouched.error());
  UniqueFd own(::fcntl(file, F_DUPFD_CLOEXEC, 0));
  if (!own) return fail_errno(errno, "cannot keep the memory of the global variables open: fcntl");
  auto spare = SpareRanges::of_file(ranges, file, offset);
  if (!spare) return tl::make_unexpected(spare.error());
  std::unique_ptr<GlobalSwap> swap(new GlobalSwap(std::move(ranges), std::move(own), offset));
  PageMap pages;
  const std::size_t page = page_size();
  int error = 0;
  {
    const SignalBlock no_signals;
    const ForkLock no_forks;
    const StoreGuard guard(swap->ranges_);
    error = guard.error();
    for (std::size_t i = 0; error == 0 && i < swap->ranges_.size(); ++i) {
      copy_private(swap->ranges_[i], spare->memory(i), page, pages);
    }
    if (error == 0) error = spare->put_in_place();
    if (error == 0) isolate_forks(swap.get());
  }
  if (error != 0) {
    const auto size = swap->ranges_.size();
    swap->ranges_.resize(spare->placed());  // those are put back
    return fail_errno(error, "cannot put shared memory in the place of " + std::to_string(size) +
                                 " ranges of global variables (mprotect, mremap)");
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
  const ForkLock no_forks;
  isolate_forks(nullptr);
  // Without memory the variables stay where they are; nobody else maps that any more.
  if (!spare) return;
  const StoreGuard guard(ranges_);
  if (guard.error() != 0) return;
  copy_to(*spare);
  spare->put_in_place();
}

}  // namespace shmem
