// SPDX-License-Identifier: Apache-2.0
// A process in namespaces of its own, as in a container.
#pragma once

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <fstream>
#include <iterator>
#include <string>

namespace test_support {

/// A process that runs body() in new namespaces, with process numbers of its own, and ends with what it returns.
class Pod {
 public:
  static constexpr int kNotPossible = 100;

  /// It ends after `limit_s` at the latest.
  template <typename Body>
  Pod(int namespaces, Body body, unsigned limit_s = 60) {
    std::array<int, 2> number{-1, -1};
    if (::pipe2(number.data(), O_CLOEXEC) != 0) {
      return;
    }
    outer_ = ::fork();
    if (outer_ != 0) {
      ::close(number[1]);
      static_cast<void>(::read(number[0], &inner_, sizeof inner_) == ssize_t{sizeof inner_});
      ::close(number[0]);
      return;
    }
    ::alarm(limit_s);
    if ((namespaces & CLONE_NEWUSER) != 0 && !enter_user_namespace()) {
      ::_exit(kNotPossible);
    }
    if (::unshare(namespaces & ~CLONE_NEWUSER) != 0) {
      ::_exit(kNotPossible);
    }
    const pid_t inner = ::fork();  // the first process of the new PID namespace
    if (inner == 0) {
      ::alarm(limit_s);
      ::_exit(body());
    }
    static_cast<void>(::write(number[1], &inner, sizeof inner) == ssize_t{sizeof inner});
    ::close(number[1]);
    int status = 0;
    ::waitpid(inner, &status, 0);
    ::_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
  }
  /// Sends a signal to the process that runs body().
  void kill(int signal) const {
    if (inner_ > 0) {
      ::kill(inner_, signal);
    }
  }
  Pod(const Pod&) = delete;
  Pod& operator=(const Pod&) = delete;
  /// Waits for its end.
  ~Pod() { exit_code(); }
  [[nodiscard]] bool running() {
    if (outer_ > 0 && ::waitpid(outer_, &status_, WNOHANG) == outer_) {
      outer_ = -1;
    }
    return outer_ > 0;
  }
  int exit_code() {
    if (outer_ > 0 && ::waitpid(outer_, &status_, 0) == outer_) {
      outer_ = -1;
    }
    return WIFEXITED(status_) ? WEXITSTATUS(status_) : -1;
  }

 private:
  /// This user is its own root there, and the same user outside.
  static bool enter_user_namespace() {
    const auto user = std::to_string(::geteuid());
    return ::unshare(CLONE_NEWUSER) == 0 &&
           static_cast<bool>(std::ofstream("/proc/self/uid_map") << "0 " + user + " 1\n");
  }

  pid_t outer_ = -1;
  pid_t inner_ = -1;  // as this process sees it
  int status_ = -1;
};

/// From now on the system calls fail that Docker's default profile of 2025 forbids a container, and that a library
/// might use. False: this kernel has no filters.
inline bool forbid_as_docker() {
  constexpr int kForbidden[] = {SYS_add_key,
                                SYS_bpf,
                                SYS_fanotify_init,
                                SYS_fsopen,
                                SYS_get_mempolicy,
                                SYS_io_uring_setup,
                                SYS_kcmp,
                                SYS_keyctl,
                                SYS_lookup_dcookie,
                                SYS_mbind,
                                SYS_mount,
                                SYS_move_pages,
                                SYS_name_to_handle_at,
                                SYS_open_by_handle_at,
                                SYS_perf_event_open,
                                SYS_pivot_root,
                                SYS_process_vm_readv,
                                SYS_process_vm_writev,
                                SYS_ptrace,
                                SYS_quotactl,
                                SYS_request_key,
                                SYS_set_mempolicy,
                                SYS_setns,
                                SYS_umount2,
                                SYS_unshare,
                                SYS_userfaultfd};
  constexpr unsigned kError = SECCOMP_RET_ERRNO | static_cast<unsigned>(EPERM);
  sock_filter program[2 * std::size(kForbidden) + 2] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  std::size_t size = 1;
  for (const int call : kForbidden) {
    program[size++] = BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(call), 0, 1);
    program[size++] = BPF_STMT(BPF_RET | BPF_K, kError);
  }
  program[size++] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  const sock_fprog filter{static_cast<unsigned short>(size), program};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

/// In a Pod with namespaces of all kinds: the folder has another path, there is little shared memory, the root is to be
/// read only, and what Docker forbids fails. False if this machine does not permit it.
inline bool live_as_in_container(const std::string& folder, const std::string& other_path) {
  const bool ready = ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                     ::mount(folder.c_str(), other_path.c_str(), nullptr, MS_BIND, nullptr) == 0 &&
                     ::mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=64m") == 0 &&
                     ::mount("proc", "/proc", "proc", 0, nullptr) == 0;
  static_cast<void>(::mount(nullptr, "/", nullptr, MS_BIND | MS_REMOUNT | MS_RDONLY, nullptr));
  return ready && forbid_as_docker();
}

}  // namespace test_support
