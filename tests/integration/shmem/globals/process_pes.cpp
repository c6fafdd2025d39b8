// SPDX-License-Identifier: Apache-2.0
// A PE whose symmetric globals must not disturb the rest of the process: threads, children, a large zero array, signal
// handlers. Its argument names the test. Prints failures; exits with 0 if there are none.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <csignal>

#include "tests/integration/shmem/pe_checks.hpp"

namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

std::uint64_t number = 1;
std::uint64_t other_number;
std::array<std::byte, 64 * kMiB> sparse;

int right() {
  return (shmem_my_pe() + 1) % shmem_n_pes();
}

/// The value of `key` in /proc/self/smaps for the mapping that contains `address`.
std::string of_mapping(const void* address, const std::string& key) {
  std::ifstream maps("/proc/self/smaps");
  bool here = false;
  for (std::string line; std::getline(maps, line);) {
    unsigned long begin = 0;
    unsigned long end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2) {
      const auto at = reinterpret_cast<unsigned long>(address);
      here = at >= begin && at < end;
    } else if (here && line.compare(0, key.size(), key) == 0) {
      return line.substr(key.size());
    }
  }
  return "";
}

bool takes_little_memory() {
  const std::string kib = of_mapping(&sparse[sparse.size() / 2], "Rss:");
  return !kib.empty() && std::stoul(kib) < 1024;
}

void sparse_array() {
  sparse[0] = std::byte{1};
  shmem_init();
  CHECK(sparse[0] == std::byte{1} && takes_little_memory());
  CHECK(of_mapping(&sparse[32 * kMiB], "VmFlags:").find(" dd") != std::string::npos);
  const std::byte mark{2};
  shmem_putmem(&sparse[40 * kMiB], &mark, 1, right());
  shmem_barrier_all();
  CHECK(sparse[40 * kMiB] == mark);
  const pid_t child = ::fork();
  if (child == 0) {
    ::_exit(sparse[40 * kMiB] == mark && takes_little_memory() ? 0 : 1);
  }
  int status = -1;
  CHECK(::waitpid(child, &status, 0) == child && status == 0);
  shmem_finalize();
  CHECK(sparse[0] == std::byte{1} && sparse[40 * kMiB] == mark && takes_little_memory());
  CHECK(of_mapping(&sparse[32 * kMiB], "VmFlags:").find(" sh") == std::string::npos);
}

/// Runs `body` in a child; true if it returns true there. `meanwhile` runs in the parent after the fork; the child runs
/// `body` after that.
bool in_child(const std::function<bool()>& body, const std::function<void()>& meanwhile) {
  std::array<int, 2> go{};
  if (::pipe(go.data()) != 0) {
    return false;
  }
  const pid_t child = ::fork();
  if (child == 0) {
    char byte = 0;
    ::close(go[1]);
    static_cast<void>(::read(go[0], &byte, 1) == 1);
    std::exit(body() ? 0 : 1);  // runs destructors, which must not affect the parent
  }
  meanwhile();
  ::close(go[1]);
  int status = -1;
  const bool ended = ::waitpid(child, &status, 0) == child;
  ::close(go[0]);
  return ended && status == 0;
}

/// Set by the program's own fork() handlers: 1 before the fork, then 2 in the child and 3 in the parent.
int fork_state;
int wrong_fork_states;

void leave_fork_state(int state) {
  wrong_fork_states += fork_state != 1 ? 1 : 0;  // set by the other process, or by another fork
  fork_state = state;
}

void register_fork_handlers() {
  CHECK(::pthread_atfork([] { fork_state = 1; }, [] { leave_fork_state(3); }, [] { leave_fork_state(2); }) == 0);
}

void children() {
  number = 5;
  register_fork_handlers();
  shmem_init();
  const auto me = static_cast<std::uint64_t>(shmem_my_pe());
  shmem_barrier_all();
  for (std::uint64_t i = 0; i < 20; ++i) {
    other_number = i;
    shmem_barrier_all();
    const auto body = [&] {
      const bool as_it_was = number == 5 && other_number == i && shmem_my_pe() == -1 && fork_state == 2;
      number = 1000 + me;
      return as_it_was && number == 1000 + me;
    };
    const auto meanwhile = [&] {
      shmem_barrier_all();  // all PEs have forked
      number = 6;
      shmem_signal_set(&other_number, 100 + i, right());
      shmem_barrier_all();
    };
    CHECK(in_child(body, meanwhile));
    CHECK(number == 6 && other_number == 100 + i && fork_state == 3 && wrong_fork_states == 0);
    number = 5;
    shmem_barrier_all();
  }
  // A child shares nothing, so its own children inherit private variables.
  CHECK(in_child([] { return in_child([] { return ++number == 6; }, [] { number = 50; }) && number == 50; }, [] {}));
  CHECK(number == 5);
}

void programs() {
  shmem_init();
  number = 3;
  CHECK(std::system("true") == 0);
  std::FILE* pipe = ::popen("echo hello", "r");
  std::array<char, 16> line{};
  CHECK(pipe != nullptr && std::fgets(line.data(), line.size(), pipe) != nullptr &&
        std::string(line.data()) == "hello\n");
  CHECK(::pclose(pipe) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    number = 4;
    ::execl("/bin/true", "true", nullptr);
    ::_exit(1);
  }
  int status = -1;
  CHECK(::waitpid(child, &status, 0) == child && status == 0);
  CHECK(number == 3);
  shmem_barrier_all();
}

/// Threads that fork while other threads store.
void forking_threads(int rounds) {
  shmem_init();
  std::atomic<int> wrong{0};
  const auto work = [&](std::uint64_t* mine) {
    for (int i = 1; i <= rounds; ++i) {
      *mine = static_cast<std::uint64_t>(i);
      const pid_t child = ::fork();
      if (child == 0) {
        const bool good = *mine == static_cast<std::uint64_t>(i);
        *mine = 0;
        ::_exit(good ? 0 : 1);
      }
      int status = -1;
      wrong += ::waitpid(child, &status, 0) == child && status == 0 && *mine == static_cast<std::uint64_t>(i) ? 0 : 1;
    }
  };
  std::thread other(work, &other_number);
  work(&number);
  other.join();
  CHECK(wrong == 0);
}

/// An invalid access ends the process as it does without the library.
void crash() {
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (!stop) {
      std::this_thread::yield();
    }
  });
  shmem_init();
  volatile int* nowhere = nullptr;
  std::fprintf(stderr, "about to store\n");
  *nowhere = 1;
  stop = true;
  other.join();
}

void on_fault(int /*number*/) {
  constexpr char kText[] = "the program's own handler\n";
  static_cast<void>(::write(STDERR_FILENO, kText, sizeof kText - 1) > 0);
  ::_exit(44);
}

/// The action of each signal.
std::array<struct sigaction, 32> signal_actions() {
  std::array<struct sigaction, 32> actions{};
  for (std::size_t signal = 1; signal < actions.size(); ++signal) {
    ::sigaction(static_cast<int>(signal), nullptr, &actions[signal]);
  }
  return actions;
}

/// The library has handlers of crashes only, unless SHMEM_BACKTRACE forbids them, and leaves none behind, also in a
/// process with several threads.
void handlers() {
  constexpr std::array<std::size_t, 5> kCrashes{SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};
  const char* const backtrace = std::getenv("SHMEM_BACKTRACE");
  const bool has_handlers = backtrace == nullptr || std::strcmp(backtrace, "0") != 0;
  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (!stop) {
      std::this_thread::yield();
    }
  });
  const auto before = signal_actions();
  shmem_init();
  const auto during = signal_actions();
  for (std::size_t signal = 1; signal < before.size(); ++signal) {
    const bool is_crash = std::ranges::find(kCrashes, signal) != kCrashes.end();
    CHECK((before[signal].sa_handler == during[signal].sa_handler) == !(is_crash && has_handlers));
  }
  shmem_finalize();
  const auto after = signal_actions();
  for (std::size_t signal = 1; signal < before.size(); ++signal) {
    CHECK(before[signal].sa_handler == after[signal].sa_handler);
  }
  stop = true;
  other.join();
}

/// From now on mremap fails with EPERM.
void forbid_mremap() {
  std::array<sock_filter, 4> filter{{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mremap, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  const sock_fprog program{filter.size(), filter.data()};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    std::printf("no seccomp\n");
    std::exit(77);
  }
}

void forbidden() {
  number = 8;
  if (std::getenv("OSHRUN_RANK") == std::string("1")) {
    forbid_mremap();
  }
  shmem_init();
  CHECK(number == 8);
  CHECK(shmem_addr_accessible(&number, 0) == 0 && shmem_addr_accessible(&number, shmem_my_pe()) == 0);
  number = 9;
  shmem_barrier_all();
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 1;
  CHECK(pe_checks::act(argc > 1 ? argv[1] : "", {{"sparse", sparse_array},
                                                 {"children", children},
                                                 {"programs", programs},
                                                 {"forking-threads", [&] { forking_threads(rounds); }},
                                                 {"crash", crash},
                                                 {"handled-crash",
                                                  [] {
                                                    std::signal(SIGSEGV, on_fault);
                                                    crash();
                                                  }},
                                                 {"handlers", handlers},
                                                 {"forbidden", forbidden}}));
  shmem_finalize();
  return pe_result();
}
