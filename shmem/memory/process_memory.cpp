// SPDX-License-Identifier: Apache-2.0
#include "shmem/memory/process_memory.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <mutex>
#include <set>

namespace shmem {
namespace {

constexpr const char* kScope = "/proc/sys/kernel/yama/ptrace_scope";
/// Pieces in one system call: the least IOV_MAX.
constexpr std::size_t kPieces = 1024;
/// The kernel copies less than 2 GiB at a time.
constexpr std::size_t kMostAtOnce = std::size_t{1} << 30;

/// Yama's ptrace_scope: 0 processes of the same user may be read; 1 descendants, and those that have allowed it; 2 only
/// administrators may read; 3 no process may be read. -1: the kernel has no Yama.
int yama_scope() {
  std::ifstream file(kScope);
  int scope = -1;
  file >> scope;
  return file ? scope : -1;
}

/// One piece of a copy, at both ends.
struct Piece {
  std::byte* here;
  std::uint64_t there;
  std::size_t size;
};

/// The pieces of a copy of blocks.
struct BlockAt {
  std::byte* here;
  std::uint64_t there;
  const CopyBlocks& blocks;

  Piece operator()(std::size_t index) const {
    return {here + index * blocks.here_step, there + index * blocks.there_step, blocks.block};
  }
  [[nodiscard]] std::size_t count() const { return blocks.block == 0 ? 0 : blocks.count; }
};

/// Where a copy has got to.
struct Progress {
  std::size_t index = 0;  // of the piece
  std::size_t done = 0;   // bytes of it

  template <typename PieceAt>
  void advance(std::size_t bytes, PieceAt piece_at) {
    for (done += bytes; done != 0 && done >= piece_at(index).size; ++index) {
      done -= piece_at(index).size;
    }
  }
};

/// The next pieces of a copy, for one system call.
class Pieces {
 public:
  template <typename PieceAt>
  Pieces(std::size_t count, PieceAt piece_at, Progress at) {
    for (std::size_t bytes = 0; count_ < kPieces && at.index < count && bytes < kMostAtOnce; ++count_) {
      const Piece piece = piece_at(at.index);
      const std::size_t size = std::min(piece.size - at.done, kMostAtOnce - bytes);
      here_[count_] = {piece.here + at.done, size};
      // NOLINTNEXTLINE(performance-no-int-to-ptr): an address of another process
      there_[count_] = {reinterpret_cast<void*>(piece.there + at.done), size};
      bytes += size;
      at = {at.index + 1, 0};
    }
  }
  [[nodiscard]] const iovec* here() const { return here_.data(); }
  [[nodiscard]] const iovec* there() const { return there_.data(); }
  [[nodiscard]] std::size_t count() const { return count_; }

 private:
  std::size_t count_ = 0;
  // Left without values: most copies have one piece.
  std::array<iovec, kPieces> here_;
  std::array<iovec, kPieces> there_;
};

std::errc error_of(int number) {
  switch (number) {
    case ESRCH:
      return std::errc::owner_dead;
    case EPERM:
      return std::errc::permission_denied;
    default:
      return std::errc{number};
  }
}

}  // namespace

Result<ProcessMemory> ProcessMemory::open(pid_t process) {
  base::UniqueFd handle(static_cast<int>(::syscall(SYS_pidfd_open, process, 0)));
  if (!handle) {
    return fail_errno(errno, fmt::format("cannot open process {}: pidfd_open", process));
  }
  return ProcessMemory(process, std::move(handle));
}

template <typename Call, typename PieceAt>
std::errc ProcessMemory::copy(Call call, std::size_t count, PieceAt piece_at) const {
  for (Progress at; at.index < count;) {
    pollfd end{handle_.get(), POLLIN, 0};
    if (::poll(&end, 1, 0) > 0) {
      return std::errc::owner_dead;
    }
    const Pieces pieces(count, piece_at, at);
    const ssize_t copied = call(process_, pieces.here(), pieces.count(), pieces.there(), pieces.count(), 0UL);
    if (copied < 0) {
      return error_of(errno);
    }
    if (copied == 0) {
      return std::errc::bad_address;
    }
    at.advance(static_cast<std::size_t>(copied), piece_at);
  }
  return {};
}

std::errc ProcessMemory::read(void* here, std::uint64_t there, const CopyBlocks& blocks) const {
  const BlockAt block_at{static_cast<std::byte*>(here), there, blocks};
  return copy(::process_vm_readv, block_at.count(), block_at);
}

std::errc ProcessMemory::write(std::uint64_t there, const void* here, const CopyBlocks& blocks) const {
  // The call only reads what is here.
  const BlockAt block_at{static_cast<std::byte*>(const_cast<void*>(here)), there, blocks};
  return copy(::process_vm_writev, block_at.count(), block_at);
}

std::errc ProcessMemory::write(std::span<const CopyPiece> pieces) const {
  return copy(::process_vm_writev, pieces.size(), [pieces](std::size_t index) {
    const CopyPiece& piece = pieces[index];
    return Piece{static_cast<std::byte*>(const_cast<void*>(piece.here)), piece.there, piece.size};
  });
}

std::string copy_advice() {
  const std::string better = "register a shared mapping of a memfd instead";
  switch (yama_scope()) {
    case 2:
    case 3:
      return fmt::format("{} forbids it; set it to 1 (sysctl kernel.yama.ptrace_scope=1), or {}", kScope, better);
    default:
      return fmt::format(
          "PEs must run as the same user, may not change it (setuid, PR_SET_DUMPABLE), and a container "
          "must allow process_vm_readv and process_vm_writev; or {}",
          better);
  }
}

namespace {

/// Those of all permissions that there are.
struct Permitted {
  std::mutex mutex;
  std::multiset<pid_t> processes;

  /// REQUIRES: mutex. -1 is the first, if it is there.
  void apply() const {
    const pid_t widest = processes.empty() ? 0 : *processes.begin();
    ::prctl(PR_SET_PTRACER, widest < 0 ? PR_SET_PTRACER_ANY : static_cast<unsigned long>(widest), 0, 0, 0);
  }
};

Permitted& permitted() {
  static auto* const all = new Permitted();  // permissions may be destroyed at the very end
  return *all;
}

}  // namespace

CopyPermission::CopyPermission(pid_t process) : process_(yama_scope() == 1 ? process : 0) {
  if (process_ != 0) {
    const std::lock_guard lock(permitted().mutex);
    permitted().processes.insert(process_);
    permitted().apply();
  }
}

CopyPermission::~CopyPermission() {
  if (process_ != 0) {
    const std::lock_guard lock(permitted().mutex);
    auto& processes = permitted().processes;
    processes.erase(processes.find(process_));
    permitted().apply();
  }
}

}  // namespace shmem
