// SPDX-License-Identifier: Apache-2.0
// PEs whose processes fork, start programs, take signals their own way, or run in a container that refuses calls.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <shmem_device.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cstddef>
#include <filesystem>
#include <sstream>

#include "tests/integration/shmem/pe_checks.hpp"

namespace {

/// Much longer than a PE may take to notice the end of another one. It ends with the folder of the test, too.
constexpr int kLifeOfChild = 200;

[[noreturn]] void live_on() {
  ::close(STDOUT_FILENO);
  ::close(STDERR_FILENO);
  const char* folder = std::getenv("CHILDREN_LIVE_WITH");
  for (int i = 0; i < 10 * kLifeOfChild && ::access(folder, F_OK) == 0; ++i) {
    ::usleep(100'000);
  }
  std::_Exit(0);
}

void fork_child() {
  if (::fork() == 0) {
    live_on();
  }
}

/// As daemon(3) does.
void fork_daemon() {
  const pid_t child = ::fork();
  if (child == 0) {
    ::setsid();
    if (::fork() == 0) {
      live_on();
    }
    std::_Exit(0);
  }
  ::waitpid(child, nullptr, 0);
}

void start_program() {
  const std::string command = "exec sleep " + std::to_string(kLifeOfChild) + " >/dev/null 2>&1 &";
  CHECK(std::system(command.c_str()) == 0);
}

/// Signals that a thread does not block, by the kernel's numbers: "SigBlk" has bit n - 1 for signal n.
std::string open_signals(const std::filesystem::path& task) {
  std::ifstream status(task / "status");
  std::string name;
  std::string open;
  for (std::string line; std::getline(status, line);) {
    std::istringstream words(line);
    std::string key;
    std::string value;
    words >> key >> value;
    name = key == "Name:" ? value : name;
    if (key != "SigBlk:") {
      continue;
    }
    const std::uint64_t blocked = std::stoull(value, nullptr, 16);
    for (int signal = 1; signal <= 64; ++signal) {
      const bool is_own = signal == SIGKILL || signal == SIGSTOP || signal == 32 || signal == 33;  // two are glibc's
      if (!is_own && signal != SIGBUS && (blocked >> (signal - 1) & 1) == 0) {
        open += " " + std::to_string(signal);
      }
    }
  }
  return open.empty() ? "" : name + ":" + open;
}

void check_threads() {
  int threads = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    if (task.path().filename() == std::to_string(::getpid())) {
      continue;
    }
    ++threads;
    const std::string open = open_signals(task.path());
    CHECK_NAMED(open.empty(), open.c_str());
  }
  std::printf("%d threads\n", threads);
}

std::atomic<bool> late{false};

/// The destructors of this thread's variables have run before the handlers of exit().
void report_late() {
  late = true;
  shmemx_set_log_level(-1);
  const std::string text = shmemx_error_text();
  std::printf("late: \"%s\"\n", text.c_str());
}

void forbid_memory_policies() {
  std::array<sock_filter, 7> filter{{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_get_mempolicy, 2, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_set_mempolicy, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mbind, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  const sock_fprog program{6, filter.data()};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    std::printf("no seccomp\n");
    std::exit(77);
  }
}

}  // namespace

/// leave_child WAY VICTIM: the PE has a child of that kind, which lives on when it is killed. The others wait for a
/// word that no PE changes, and so for the end of the job.
PE_PART(leave_child) {
  const std::string way = argc > 1 ? argv[1] : "";
  const int victim = argc > 2 ? std::atoi(argv[2]) : 1;
  shmem_init();
  static std::uint64_t word = 0;
  static long seen = 0;
  // Each PE is connected with each other one, on another node by the network.
  for (int pe = 0; pe < shmem_n_pes(); ++pe) {
    shmem_long_atomic_add(&seen, 1, pe);
  }
  shmem_barrier_all();
  ::sleep(2);  // until connections have been looked for
  if (shmem_my_pe() == victim) {
    CHECK(pe_checks::act(way, {{"fork", fork_child}, {"daemon", fork_daemon}, {"program", start_program}}));
    std::printf("killed\n");
    std::fflush(stdout);
    ::kill(::getpid(), SIGKILL);
  }
  shmem_signal_wait_until(&word, SHMEM_CMP_NE, 0);
  return 0;
}

/// leave_child_survive WAY: the same in a job that goes on when a PE dies.
PE_PART(leave_child_survive) {
  const std::string way = argc > 1 ? argv[1] : "";
  shmemx_set_survive(1);
  shmem_init();
  static long seen = 0;
  for (int pe = 0; pe < shmem_n_pes(); ++pe) {
    shmem_long_atomic_add(&seen, 1, pe);
  }
  shmem_barrier_all();
  ::sleep(2);
  if (shmem_my_pe() == 1) {
    CHECK(pe_checks::act(way, {{"fork", fork_child}, {"daemon", fork_daemon}, {"program", start_program}}));
    ::kill(::getpid(), SIGKILL);
  }
  CHECK(pe_checks::fails_soon([] { return shmem_team_sync(SHMEM_TEAM_WORLD); }) != 0);
  std::_Exit(pe_failures() == 0 ? 0 : 1);
}

/// All threads but the program's block all signals.
PE_PART(thread_masks) {
  shmem_init();
  shmemx_barrier_on_stream(SHMEM_TEAM_WORLD, nullptr);
  shmemx_stream_synchronize(nullptr);
  shmemx_launch(
      2, [](shmemx_core_t* core, void*) { shmemx_core_sync(core); }, nullptr);
  shmem_barrier_all();
  check_threads();
  shmem_barrier_all();
  shmem_finalize();
  return pe_result();
}

/// A handler of exit() gets an error of the library.
PE_PART(late_error) {
  std::atexit(report_late);
  shmem_init();
  shmemx_set_log_level(99);
  std::printf("early: %s\n", std::strlen(shmemx_error_text()) > 20 ? "an error" : "none");
  shmem_finalize();
  return 0;
}

PE_PART(no_memory_policies) {
  forbid_memory_policies();
  shmem_init();
  shmem_barrier_all();
  shmem_finalize();
  return 0;
}

/// Starts the library twice, and each time a program that prints what it has of libshmem in its environment.
PE_PART(prints_environment) {
  for (int start = 0; start < 2; ++start) {
    shmem_init();
    CHECK(std::system("env | grep ^SHMEM_") == 0);
    shmem_barrier_all();
    shmem_finalize();
  }
  return pe_result();
}
