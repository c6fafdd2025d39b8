// SPDX-License-Identifier: Apache-2.0
#include "fake_device/dma_table.hpp"

#include <sys/mman.h>

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <limits>

#include "base/memfd.hpp"
#include "uapi/vfio_user.h"

namespace fake_device {
namespace {

constexpr std::uint64_t kWord = sizeof(std::uint64_t);

bool aligned(std::uint64_t value) {
  return value % kPageSize == 0;
}

bool wraps(std::uint64_t begin, std::uint64_t size) {
  return begin > std::numeric_limits<std::uint64_t>::max() - size;
}

// Memory files only: a page of any other file may be as slow as its file system (FUSE, NFS), and all clients would
// wait. fstat of it may be slow too; the kernel knows which files can have seals: those of tmpfs and hugetlbfs.
bool is_memory(int fd) {
  return ::fcntl(fd, F_GET_SEALS) >= 0;
}

std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

}  // namespace

int DmaTable::map(std::uint64_t address, std::uint64_t size, std::uint64_t offset, std::uint32_t flags, Given file) {
  constexpr std::uint32_t kKnown = VFIO_USER_DMA_READABLE | VFIO_USER_DMA_WRITABLE;
  if (flags == 0 || (flags & ~kKnown) != 0 || size == 0 || !aligned(address) || !aligned(size) || !aligned(offset) ||
      wraps(address, size - 1) || wraps(offset, size)) {
    return EINVAL;
  }
  if (overlaps(address, size)) {
    return EEXIST;
  }
  if (ranges_.size() >= kMaxDmaMaps || !charge_maps(maps_ + 1)) {
    return ENOSPC;
  }
  Range range{.size = size, .offset = offset, .writable = (flags & VFIO_USER_DMA_WRITABLE) != 0, .file = nullptr};
  const int error = file ? open_file(std::move(file), range) : 0;
  if (error == 0) {
    ranges_.emplace(address, std::move(range));
  } else {
    range.file.reset();
  }
  settle();
  return error;
}

int DmaTable::open_file(Given file, Range& range) {
  struct stat info {};
  if (!is_memory(file.get()) || ::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode) ||
      range.offset + range.size > static_cast<std::uint64_t>(info.st_size)) {
    return EINVAL;
  }
  if (range.writable && (::fcntl(file.get(), F_GETFL) & O_ACCMODE) != O_RDWR) {
    return EACCES;
  }
  const FileId id{info.st_dev, info.st_ino, range.writable};
  const auto known = files_.find(id);
  if (known == files_.end() && files_.size() >= kMaxDmaFiles) {
    return ENOSPC;
  }
  range.file = known == files_.end() ? std::make_shared<File>() : known->second.lock();
  // A huge page is mapped whole.
  range.file->page = std::max(static_cast<std::uint64_t>(info.st_blksize), kPageSize);
  if (range.file->page > kLargestPage) {
    return EINVAL;
  }
  files_[id] = range.file;
  File& known_file = *range.file;
  const int error = extend(file, range, known_file);
  if (error == 0 && range.writable && known_file.reach == File::Reach::kUnknown) {
    if (pool_.trusting) {
      known_file.reach = File::Reach::kDirect;
    } else if (!known_file.descriptor) {
      known_file.descriptor = std::move(file);
    }
  }
  return error;
}

// Maps what the ranges of the file name, and what lies between them.
int DmaTable::extend(const Given& file, const Range& range, File& known) {
  auto begin = range.offset / known.page * known.page;
  auto end = round_up(range.offset + range.size, known.page);
  if (known.memory) {
    begin = std::min(begin, known.begin);
    end = std::max(end, known.end);
  }
  if (known.memory && begin == known.begin && end == known.end) {
    return 0;
  }
  if (!charge_bytes(bytes_ + (end - begin) - (known.end - known.begin))) {
    return ENOSPC;
  }
  const int protection = range.writable ? PROT_READ | PROT_WRITE : PROT_READ;
  base::Mapping mapping(
      ::mmap(nullptr, end - begin, protection, MAP_SHARED | MAP_NORESERVE, file.get(), static_cast<off_t>(begin)),
      end - begin);
  if (!mapping) {
    return errno == EPERM ? EACCES : errno;
  }
  known.memory = Given(file, std::move(mapping));
  known.begin = begin;
  known.end = end;
  return 0;
}

namespace {

/// Takes from `left` what `amount` has more than `before` beyond the client's own part, or gives it back. False: there
/// is not so much.
template <typename T>
bool charge(T& left, T& before, T amount, T own) {
  const T had = before - std::min(before, own);
  const T wanted = amount - std::min(amount, own);
  if (wanted > had && wanted - had > left) {
    return false;
  }
  left -= wanted - had;  // unsigned: a difference below 0 is given back
  before = amount;
  return true;
}

}  // namespace

bool DmaTable::charge_bytes(std::uint64_t bytes) {
  return bytes <= DmaPool::kMostBytes && charge(pool_.bytes, bytes_, bytes, DmaPool::kOwnBytes);
}

bool DmaTable::charge_maps(std::size_t maps) {
  return charge(pool_.maps, maps_, maps, DmaPool::kOwnMaps);
}

// Gives back what is not used any more.
void DmaTable::settle() {
  std::uint64_t bytes = 0;
  std::erase_if(files_, [&](const auto& entry) {
    const auto file = entry.second.lock();
    bytes += file ? file->end - file->begin : 0;
    return !file;
  });
  charge_bytes(bytes);
  charge_maps(ranges_.size());
}

bool DmaTable::overlaps(std::uint64_t address, std::uint64_t size) const {
  const auto last = address + (size - 1);
  const auto after = ranges_.upper_bound(last);
  if (after == ranges_.begin()) {
    return false;
  }
  const auto& [begin, range] = *std::prev(after);
  return begin + (range.size - 1) >= address;
}

int DmaTable::unmap(std::uint64_t address, std::uint64_t size) {
  if (size == 0 || wraps(address, size - 1)) {
    return ENOENT;
  }
  const auto last = address + (size - 1);
  const auto begin = ranges_.lower_bound(address);
  const auto end = ranges_.upper_bound(last);
  const auto reaches = [this](auto after, std::uint64_t place) {  // the range before `after` does
    return after != ranges_.begin() && std::prev(after)->first + (std::prev(after)->second.size - 1) >= place;
  };
  const bool cuts_first = reaches(begin, address);
  const bool cuts_last = last != std::numeric_limits<std::uint64_t>::max() && reaches(end, last + 1);
  if (begin == end || cuts_first || cuts_last) {
    return ENOENT;
  }
  ranges_.erase(begin, end);
  settle();
  return 0;
}

void DmaTable::unmap_all() {
  ranges_.clear();
  settle();
}

const DmaTable::Range* DmaTable::find(std::uint64_t iova, std::uint64_t& within) const {
  const auto after = ranges_.upper_bound(iova);
  if (after == ranges_.begin()) {
    return nullptr;
  }
  const auto& [begin, range] = *std::prev(after);
  within = iova - begin;
  const bool inside = range.size >= kWord && within <= range.size - kWord;
  return inside && range.writable ? &range : nullptr;
}

std::optional<GuardedWord> DmaTable::resolve(std::uint64_t iova) const {
  std::uint64_t within = 0;
  const Range* const range = find(iova, within);
  if (range == nullptr || range->file == nullptr || iova % kWord != 0 || !is_direct(*range->file)) {
    return std::nullopt;
  }
  const File& file = *range->file;
  const auto at = range->offset + within - file.begin;
  auto* const data = file.memory.mapping().data();
  return GuardedWord{.word = reinterpret_cast<std::atomic<std::uint64_t>*>(data + at),
                     .page = data + at / file.page * file.page,
                     .size = file.page};
}

bool DmaTable::by_message(std::uint64_t iova) const {
  std::uint64_t within = 0;
  const Range* const range = find(iova, within);
  return range != nullptr && (range->file == nullptr || (iova % kWord == 0 && !is_direct(*range->file)));
}

// Known for good: no store may overtake one that was sent as a message. The kernel clears a page when it is first
// stored to, which takes long if it is larger than a huge one.
bool DmaTable::is_direct(File& file) const {
  if (file.reach == File::Reach::kUnknown) {
    const bool steady = file.page <= base::kHugePageSize && base::keeps_pages(file.descriptor.get());
    file.reach = steady ? File::Reach::kDirect : File::Reach::kByMessage;
    file.descriptor = Given();
  }
  return file.reach == File::Reach::kDirect;
}

}  // namespace fake_device
