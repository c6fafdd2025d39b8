// SPDX-License-Identifier: Apache-2.0
#include "shmem/kv/copier.hpp"

#include <algorithm>
#include <optional>

namespace shmem::kv {
namespace {

/// Below this, waking other cores takes longer than the copy.
constexpr std::size_t kAlone = std::size_t{256} << 10;

/// Parts are large beside what taking one costs, and many enough that nobody is waited for long in the end.
constexpr std::size_t kSmallestPart = std::size_t{16} << 10;
constexpr std::size_t kLargestPart = std::size_t{256} << 10;
constexpr std::size_t kParts = 32;

std::uint32_t parts_of(std::size_t bytes) {
  constexpr std::size_t kMost = std::size_t{1} << 30;  // well below what a half of CommonCopies::taken counts to
  const std::size_t part = std::clamp(bytes / kParts, kSmallestPart, kLargestPart);
  return static_cast<std::uint32_t>(std::clamp<std::size_t>(bytes / part, bytes == 0 ? 0 : 1, kMost));
}

/// The number of a part that nobody has taken yet, if there is one. As long as there is, front and end have not met.
std::optional<std::uint32_t> take(const CommonCopies& copies, std::uint32_t parts) {
  constexpr std::uint64_t kOneAtEnd = std::uint64_t{1} << 32;
  const std::uint64_t taken = copies.taken->fetch_add(copies.own ? 1 : kOneAtEnd, std::memory_order_relaxed);
  const auto at_front = static_cast<std::uint32_t>(taken);
  const auto at_end = static_cast<std::uint32_t>(taken / kOneAtEnd);
  if (std::uint64_t{at_front} + at_end >= parts) {
    return std::nullopt;
  }
  return copies.own ? at_front : parts - 1 - at_end;
}

/// Two buffers of 32 KiB, as a core of the processors has that need them.
constexpr std::size_t kScratch = std::size_t{64} << 10;

}  // namespace

Result<Copier> Copier::create(CoreGroup& cores, Path path) {
  Copier copier{cores, path};
  if (path == Path::kScratch) {
    if (auto ok = copier.scratch_.reserve(static_cast<std::size_t>(cores.count()) * kScratch); !ok) {
      return tl::make_unexpected(ok.error());
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

bool Copier::is_alone(std::size_t bytes) const {
  return alone_ || bytes <= kAlone;
}

void Copier::run(std::size_t bytes, const std::function<void(int core, int cores)>& work) {
  if (is_alone(bytes)) {
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

void Copier::take_parts(std::span<const CommonCopies> all, int core) {
  PieceCopy pieces{path_, scratch_of(core)};
  for (const CommonCopies& some : all) {
    const std::uint32_t parts = parts_of(some.copies.bytes());
    for (auto part = take(some, parts); part; part = take(some, parts)) {
      some.copies.share(
          static_cast<int>(*part), static_cast<int>(parts),
          [&pieces](std::byte* to, const std::byte* from, std::size_t size) { pieces.add(to, from, size); });
    }
  }
  pieces.finish();
}

void Copier::copy(std::span<const CommonCopies> all) {
  std::size_t bytes = 0;
  for (const CommonCopies& some : all) {
    bytes += some.copies.bytes();
  }
  run(bytes, [&](int core, int /*cores*/) { take_parts(all, core); });
}

}  // namespace shmem::kv
