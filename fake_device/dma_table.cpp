// SPDX-License-Identifier: Apache-2.0
#include "fake_device/dma_table.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <limits>

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

// Memory files only: a page of any other file may be as slow as its file system (FUSE, NFS), and everybody would wait.
// So might fstat of it; the kernel itself knows which files can have seals: those of tmpfs and hugetlbfs.
bool is_memory(int fd) {
  return ::fcntl(fd, F_GET_SEALS) >= 0;
}

std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

}  // namespace

int DmaTable::map(std::uint64_t address, std::uint64_t size, std::uint64_t offset, std::uint32_t flags, UniqueFd file) {
  constexpr std::uint32_t kKnown = VFIO_USER_DMA_READABLE | VFIO_USER_DMA_WRITABLE;
  if (flags == 0 || (flags & ~kKnown) != 0 || size == 0 || !aligned(address) || !aligned(size) || !aligned(offset) ||
      wraps(address, size - 1) || wraps(offset, size)) {
    return EINVAL;
  }
  if (overlaps(address, size)) {
    return EEXIST;
  }
  if (ranges_.size() >= kMaxDmaMaps) {
    return ENOSPC;
  }
  Range range{.size = size, .offset = offset, .writable = (flags & VFIO_USER_DMA_WRITABLE) != 0, .file = nullptr};
  if (file) {
    const int error = open_file(file, offset + size, range.writable, range.file);
    if (error != 0) {
      return error;
    }
  }
  ranges_.emplace(address, std::move(range));
  return 0;
}

int DmaTable::open_file(const UniqueFd& file, std::uint64_t end, bool writable, std::shared_ptr<File>& result) {
  struct stat info {};
  if (!is_memory(file.get()) || ::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode) ||
      end > static_cast<std::uint64_t>(info.st_size)) {
    return EINVAL;
  }
  if (writable && (::fcntl(file.get(), F_GETFL) & O_ACCMODE) != O_RDWR) {
    return EACCES;
  }
  std::erase_if(files_, [](const auto& entry) { return entry.second.expired(); });
  const FileId id{info.st_dev, info.st_ino, writable};
  const auto known = files_.find(id);
  result = known == files_.end() ? std::make_shared<File>() : known->second.lock();
  if (known == files_.end() && files_.size() >= kMaxDmaFiles) {
    return ENOSPC;
  }
  if (result->mapping.size() < end) {
    // A huge page is mapped whole.
    const auto length = round_up(static_cast<std::uint64_t>(info.st_size), static_cast<std::uint64_t>(info.st_blksize));
    const int protection = writable ? PROT_READ | PROT_WRITE : PROT_READ;
    Mapping mapping(::mmap(nullptr, length, protection, MAP_SHARED | MAP_NORESERVE, file.get(), 0), length);
    if (!mapping) {
      return errno == EPERM ? EACCES : errno;
    }
    result->mapping = std::move(mapping);
  }
  files_[id] = result;
  return 0;
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
  return 0;
}

void DmaTable::unmap_all() {
  ranges_.clear();
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
  if (range == nullptr || range->file == nullptr || iova % kWord != 0) {
    return std::nullopt;
  }
  const Mapping& mapping = range->file->mapping;
  auto* const word = mapping.data() + range->offset + within;
  return GuardedWord{
      .word = reinterpret_cast<std::atomic<std::uint64_t>*>(word), .mapping = mapping.data(), .size = mapping.size()};
}

bool DmaTable::by_message(std::uint64_t iova) const {
  std::uint64_t within = 0;
  const Range* const range = find(iova, within);
  return range != nullptr && range->file == nullptr;
}

}  // namespace fake_device
