// SPDX-License-Identifier: Apache-2.0
// PEs whose memory cannot be registered, that register much of it, or that die meanwhile:
//
//   registered_bad refuse       each mistake, of one PE or of all
//   registered_bad repeat       as many as there can be, several times
//   registered_bad die MICROS   PE 1 kills itself so long after it has begun
//   registered_bad leave        PE 1 kills itself, so PE 2 exits, and then PE 0 puts to PE 2
#include <fcntl.h>
#include <sys/eventfd.h>

#include <csignal>
#include <filesystem>

#include "tests/integration/shmem/registered_memory.hpp"

namespace {

using registered::kBytes;
using registered::me;
using registered::Memory;
using registered::next;
using registered::pes;

/// Every PE gets this error, with this text.
void fails(int error, const std::string& text, int result) {
  CHECK(result == error);
  if (result != error) {
    std::fprintf(stderr, "it is %d, not %d\n", result, error);
  }
  const bool said = std::string_view(shmemx_error_text()).find(text) != std::string_view::npos;
  CHECK(said);
}

/// PE 1 is wrong; the others are right.
void refuse_one() {
  const Memory memory(Memory::Kind::kGiven, kBytes + 4096);
  const Memory other(Memory::Kind::kGiven, kBytes);
  const bool wrong = me() == 1;
  auto* address = memory.at<std::byte>();
  const auto add = [&](void* at, std::size_t bytes, int fd, std::uint64_t offset) {
    return wrong ? shmemx_memory_register(at, bytes, fd, offset)
                 : shmemx_memory_register(address, kBytes, memory.fd(), 0);
  };
  fails(-EINVAL, "PE 1: 0 bytes at", add(address, 0, memory.fd(), 0));
  fails(-EINVAL, "PE 1: 1048576 bytes at 0x0 are no memory", add(nullptr, kBytes, -1, 0));
  fails(-EINVAL, "PE 0 gives 1048576 bytes, PE 1 gives 4096", add(address, 4096, memory.fd(), 0));
  fails(-EINVAL, "PE 1: the memory at", add(address, kBytes, other.fd(), 0));
  fails(-EINVAL, "is byte 0 of file descriptor", add(address, kBytes, memory.fd(), 4096));
  fails(-EINVAL, "of PE 1 8; align it alike on all PEs", add(address + 8, kBytes, memory.fd(), 8));
  fails(-EINVAL, "which are symmetric already", add(shmemx_heap_base(), kBytes, -1, 0));
  fails(-EBADF, "cannot use file descriptor 987", add(address, kBytes, 987, 0));
  fails(-EINVAL, "-2 is no file descriptor", add(address, kBytes, -2, 0));
  void* const nowhere = reinterpret_cast<void*>(std::uintptr_t{65536});  // NOLINT(performance-no-int-to-ptr)
  fails(-EFAULT, "there is no memory at", add(nowhere, kBytes, -1, 0));
}

/// Memory that no PE can register.
void refuse_all() {
  void* read_only = ::mmap(nullptr, 4096, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  fails(-EACCES, "is not mapped for reading and writing", shmemx_memory_register(read_only, 4096, -1, 0));
  const int sealed = ::memfd_create("sealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  CHECK(::ftruncate(sealed, 4096) == 0);
  void* mapped = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, sealed, 0);
  constexpr int kSealFutureWrite = 0x10;
  if (::fcntl(sealed, F_ADD_SEALS, kSealFutureWrite) == 0) {
    fails(-EACCES, "sealed against writing", shmemx_memory_register(mapped, 4096, sealed, 0));
  }
  const std::string own = "/proc/self/fd/" + std::to_string(sealed);
  const int reader = ::open(own.c_str(), O_RDONLY | O_CLOEXEC);
  fails(-EACCES, "is not open for reading and writing", shmemx_memory_register(mapped, 4096, reader, 0));
  const int pipe = ::eventfd(0, EFD_CLOEXEC);
  fails(-EOPNOTSUPP, "neither a memfd nor a file of tmpfs", shmemx_memory_register(mapped, 4096, pipe, 0));
  // Nothing is there behind the end of the file.
  const Memory memory(Memory::Kind::kGiven, 8192);
  CHECK(::ftruncate(memory.fd(), 4096) == 0);
  fails(-EINVAL, "8192 bytes from byte 0 on of a file of 4096", memory.add());
  fails(-EOPNOTSUPP, "is not ordinary memory",
        shmemx_memory_register(memory.at<std::byte>(4096), 4096, memory.fd(), 4096));
  CHECK(::ftruncate(memory.fd(), 8192) == 0);
  CHECK(memory.add() == 0);
  fails(-EEXIST, "overlap memory that is registered", shmemx_memory_register(memory.at<std::byte>(4096), 4096, -1, 0));
  void* theirs = shmem_ptr(memory.at<void>(), next());
  fails(-EEXIST, "overlap memory that is registered",
        shmemx_memory_register(theirs == nullptr ? memory.at<void>() : theirs, 4096, -1, 0));
  fails(-EINVAL, "has registered no memory that begins at", shmemx_memory_unregister(memory.at<void>(64)));
  fails(-EINVAL, "PE 1 has registered no memory", shmemx_memory_unregister(memory.at<void>(me() == 1 ? 1 : 0)));
  const Memory second(Memory::Kind::kPrivate, 4096);
  CHECK(second.add() == 0);
  fails(-EINVAL, "PE 1 means other memory than PE 0", (me() == 1 ? second : memory).remove());
  CHECK(second.remove() == 0);
  CHECK(memory.remove() == 0);
  fails(-EINVAL, "has registered no memory", memory.remove());
  ::munmap(read_only, 4096);
  ::munmap(mapped, 4096);
  for (const int fd : {sealed, reader, pipe}) {
    ::close(fd);
  }
}

std::size_t open_files() {
  const std::filesystem::directory_iterator files("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(files), end(files)));
}
std::size_t mappings() {
  std::ifstream maps("/proc/self/maps");
  std::size_t lines = 0;
  for (std::string line; std::getline(maps, line);) {
    ++lines;
  }
  return lines;
}

/// Nothing is left after it is unregistered, and there is room for many.
void repeat() {
  constexpr std::size_t kMany = 240;
  std::vector<std::unique_ptr<Memory>> memories;
  memories.reserve(kMany);
  for (std::size_t i = 0; i < kMany; ++i) {
    memories.push_back(std::make_unique<Memory>(i % 2 == 0 ? Memory::Kind::kGiven : Memory::Kind::kPrivate, 4096));
  }
  const Memory one_more(Memory::Kind::kGiven, 4096);
  std::size_t files = 0;
  std::size_t mapped = 0;
  for (int round = 0; round < 3; ++round) {
    for (const auto& memory : memories) {
      CHECK(memory->add() == 0);
    }
    fails(-ENOBUFS, "there cannot be more", one_more.add());
    for (std::size_t i = 0; i < memories.size(); ++i) {
      shmem_uint64_p(memories[i]->at<std::uint64_t>(8), i, next());
    }
    shmem_barrier_all();
    for (std::size_t i = 0; i < memories.size(); ++i) {
      CHECK(*memories[i]->at<std::uint64_t>(8) == i);
      CHECK(memories[(i + 17) % memories.size()]->remove() == 0);
    }
    CHECK(round == 0 || (open_files() == files && mappings() <= mapped + 4));
    files = open_files();
    mapped = mappings();
  }
}

/// PE 1 dies `microseconds` after it has begun: the others' calls end.
int die_in_the_middle(long microseconds) {
  shmemx_set_survive(1);
  shmem_init();
  const Memory memory(me() == 2 ? Memory::Kind::kPrivate : Memory::Kind::kGiven, kBytes);
  shmem_barrier_all();
  if (me() == 1) {
    std::thread([microseconds] {
      ::usleep(static_cast<useconds_t>(microseconds));
      ::kill(::getpid(), SIGKILL);
    }).detach();
  }
  for (;;) {
    const int added = memory.add();
    if (added == 0 && memory.remove() == 0) {
      continue;
    }
    std::printf("PE %d ends: %s\n", me(), shmemx_error_text());
    std::fflush(stdout);
    break;
  }
  // What is left of the job registers memory.
  shmem_team_t left = SHMEM_TEAM_INVALID;
  CHECK(shmemx_team_shrink(SHMEM_TEAM_WORLD, &left) == 0);
  const Memory again(Memory::Kind::kGiven, 4096);
  CHECK(again.add() == 0);
  *again.at<int>() = me();
  shmem_team_sync(left);
  for (int pe = 0; pe < pes(); ++pe) {
    CHECK(pe == 1 || shmem_int_g(again.at<int>(), pe) == pe);
  }
  shmem_team_sync(left);
  CHECK(again.remove() == 0);
  shmem_finalize();
  return pe_failures() == 0 ? 0 : 1;
}

void leave_one_after_another() {
  const Memory memory(Memory::Kind::kPrivate, 4096);
  CHECK(memory.add() == 0);
  auto* const pid = static_cast<int*>(shmem_malloc(sizeof(int)));
  *pid = ::getpid();
  shmem_barrier_all();
  const pid_t last = shmem_int_g(pid, 2);
  shmem_barrier_all();
  switch (me()) {
    case 0:
      while (::kill(last, 0) == 0) {
        ::usleep(1000);
      }
      shmem_int_p(memory.at<int>(), 1, 2);
      std::printf("PE 0: %s\n", shmemx_error_text());
      break;
    case 1:
      ::kill(::getpid(), SIGKILL);
      break;
    default:
      CHECK(shmem_team_sync(SHMEM_TEAM_WORLD) != 0);
      ::_exit(1);
  }
}

}  // namespace

PE_PART(registered_bad) {
  const std::string_view what = argc > 1 ? argv[1] : "";
  if (what == "die") {
    return die_in_the_middle(std::atol(argv[2]));
  }
  shmemx_set_errors_return(1);
  shmem_init();
  if (what == "refuse") {
    refuse_one();
    refuse_all();
  } else if (what == "leave") {
    leave_one_after_another();
  } else {
    repeat();
  }
  shmem_barrier_all();
  const int result = pe_result();
  shmem_finalize();
  return result;
}
