// SPDX-License-Identifier: Apache-2.0
#include "shmem/kv/copier.hpp"

namespace shmem::kv {
namespace {

/// Below this, waking other cores takes longer than the copy.
constexpr std::size_t kAlone = std::size_t{32} << 10;

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

void Copier::copy(const CopyList& copies) {
  if (copies.bytes() <= kAlone) {
    copy_share(copies, 0, 1);
    return;
  }
  cores_->run([this, &copies](ThreadCore& core) {
    copy_share(copies, core.index());
    return std::errc{};
  });
}

}  // namespace shmem::kv
