// SPDX-License-Identifier: Apache-2.0
#include "shmem/memory/global_fork.hpp"

#include <pthread.h>
#include <unistd.h>

#include <optional>
#include <string_view>

#include "shmem/memory/global_swap.hpp"

namespace shmem {

namespace {

/// The handlers of fork() have no argument to find it by.
struct Forks {
  std::mutex mutex;  // held by a thread from before its fork() to its end, in both processes
  const GlobalSwap* swap = nullptr;
  std::optional<SpareRanges> for_child;
};

Forks& forks() {
  static Forks forks;
  return forks;
}

void before_fork() {
  forks().mutex.lock();
  if (forks().swap == nullptr) return;
  auto spare = SpareRanges::of_process(forks().swap->ranges());
  if (!spare) return;
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

/// When the library is loaded, before the program can register any: the last registered is prepared first, the first is
/// first in the child.
__attribute__((constructor)) void register_handlers() {
  forks();  // and so goes last at the end of the program
  ::pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

}  // namespace

ForkLock::ForkLock() : lock_(forks().mutex) {}

void isolate_forks(const GlobalSwap* swap) {
  forks().swap = swap;
}

}  // namespace shmem
