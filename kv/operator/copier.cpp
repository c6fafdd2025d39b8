// SPDX-License-Identifier: Apache-2.0
#include "kv/operator/copier.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>

namespace shmem::kv {
namespace {

/// Below this, waking other cores takes longer than the copy.
constexpr std::size_t kOneCore = std::size_t{256} << 10;

/// Parts are large compared with the cost of taking one, and so many that the last ones end at about the same time.
constexpr std::size_t kSmallestPart = std::size_t{16} << 10;
constexpr std::size_t kLargestPart = std::size_t{256} << 10;
constexpr std::size_t kParts = 32;

std::uint32_t parts_of(std::size_t bytes) {
  constexpr std::size_t kMost = std::size_t{1} << 30;  // well below the range of a half of TakenParts
  const std::size_t part = std::clamp(bytes / kParts, kSmallestPart, kLargestPart);
  return static_cast<std::uint32_t>(std::clamp<std::size_t>(bytes / part, bytes == 0 ? 0 : 1, kMost));
}

/// Two buffers of 32 KiB: the size of a core's scratch memory on processors that need it.
constexpr std::size_t kScratch = std::size_t{64} << 10;

}  // namespace

void Unmap::operator()(std::byte* memory) const {
  ::munmap(memory, size);
}

Result<void> PrivateMemory::reserve(std::size_t bytes) {
  if (bytes <= memory_.get_deleter().size) {
    return {};
  }
  memory_ = {};
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    return fail(std::errc::not_enough_memory, fmt::format("no {} bytes of memory besides the symmetric heap", bytes));
  }
  memory_ = {static_cast<std::byte*>(memory), Unmap{bytes}};
  return {};
}

Result<Copier> Copier::create(CoreGroup& cores, Path path) {
  Copier copier{cores, path};
  if (path == Path::kScratch) {
    if (auto ok = copier.scratch_.reserve(static_cast<std::size_t>(cores.count()) * kScratch); !ok) {
      return ok.error();
    }
  }
  return copier;
}

std::span<std::byte> Copier::scratch_of(int core) const {
  return scratch_.data() == nullptr
             ? std::span<std::byte>{}
             : std::span<std::byte>{scratch_.data() + static_cast<std::size_t>(core) * kScratch, kScratch};
}

void Copier::copy_share(const CopyList& copies, int core, int cores) {
  PieceCopy pieces{path_, scratch_of(core)};
  copies.share(core, cores,
               [&pieces](std::byte* to, const std::byte* from, std::size_t size) { pieces.add(to, from, size); });
  pieces.finish();
}

bool Copier::uses_one_core(std::size_t bytes) const {
  return one_core_ || bytes <= kOneCore;
}

void Copier::run(std::size_t bytes, const std::function<void(int core, int cores)>& work) {
  if (uses_one_core(bytes)) {
    work(0, 1);
    return;
  }
  cores_->run([this, &work](ThreadCore& core) {
    work(core.index(), cores());
    return std::errc{};
  });
}

void Copier::copy(const CopyList& copies) {
  run(copies.bytes(), [&](int core, int cores) { copy_share(copies, core, cores); });
}

void Copier::copy_parts(std::span<const CopyQueue> queues, int core) {
  PieceCopy pieces{path_, scratch_of(core)};
  for (const CopyQueue& queue : queues) {
    const std::uint32_t parts = parts_of(queue.copies.bytes());
    while (const auto part = queue.taken->take(queue.own, parts)) {
      queue.copies.share(
          static_cast<int>(*part), static_cast<int>(parts),
          [&pieces](std::byte* to, const std::byte* from, std::size_t size) { pieces.add(to, from, size); });
    }
  }
  pieces.finish();
}

void Copier::copy(std::span<const CopyQueue> queues) {
  std::size_t bytes = 0;
  for (const CopyQueue& queue : queues) {
    bytes += queue.copies.bytes();
  }
  run(bytes, [&](int core, int /*cores*/) { copy_parts(queues, core); });
}

}  // namespace shmem::kv
