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

/// Where a copy of blocks has got to.
struct Progress {
  std::size_t index = 0;  // of the block
  std::size_t done = 0;   // bytes of it

  void advance(std::size_t bytes, std::size_t block) {
    const std::size_t all = done + bytes;
    index += all / block;
    done = all % block;
  }
};

/// The next pieces of the copy, at both ends.
class Pieces {
 public:
  Pieces(std::byte* here, std::uint64_t there, const CopyBlocks& blocks, Progress at) {
    for (std::size_t bytes = 0; count_ < kPieces && at.index < blocks.count && bytes < kMostAtOnce; ++count_) {
      const std::size_t size = std::min(blocks.block - at.done, kMostAtOnce - bytes);
      here_[count_] = {here + at.index * blocks.here_step + at.done, size};
      // NOLINTNEXTLINE(performance-no-int-to-ptr): an address of another process
      there_[count_] = {reinterpret_cast<void*>(there + at.index * blocks.there_step + at.done), size};
      bytes += size;
      at.advance(size, blocks.block);
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

template <typename Call>
std::errc ProcessMemory::copy(Call call, std::byte* here, std::uint64_t there, const CopyBlocks& blocks) const {
  for (Progress at; blocks.block != 0 && at.index < blocks.count;) {
    pollfd end{handle_.get(), POLLIN, 0};
    if (::poll(&end, 1, 0) > 0) {
      return std::errc::owner_dead;
    }
    const Pieces pieces(here, there, blocks, at);
    const ssize_t copied = call(process_, pieces.here(), pieces.count(), pieces.there(), pieces.count(), 0UL);
    if (copied < 0) {
      return error_of(errno);
    }
    if (copied == 0) {
      return std::errc::bad_address;
    }
    at.advance(static_cast<std::size_t>(copied), blocks.block);
  }
  return {};
}

std::errc ProcessMemory::read(void* here, std::uint64_t there, const CopyBlocks& blocks) const {
  return copy(::process_vm_readv, static_cast<std::byte*>(here), there, blocks);
}

std::errc ProcessMemory::write(std::uint64_t there, const void* here, const CopyBlocks& blocks) const {
  // The call only reads what is here.
  return copy(::process_vm_writev, static_cast<std::byte*>(const_cast<void*>(here)), there, blocks);
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
