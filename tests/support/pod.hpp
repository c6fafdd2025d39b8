// SPDX-License-Identifier: Apache-2.0
// A process in namespaces of its own, as in a container.
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <fstream>
#include <iterator>
#include <string>

namespace test_support {

/// A process that runs body() in new namespaces, with process numbers of its own, and ends with what it returns.
class Pod {
 public:
  static constexpr int kNotPossible = 100;

  template <typename Body>
  Pod(int namespaces, Body body) : outer_(::fork()) {
    if (outer_ != 0) {
      return;
    }
    ::alarm(60);
    if ((namespaces & CLONE_NEWUSER) != 0 && !enter_user_namespace()) {
      ::_exit(kNotPossible);
    }
    if (::unshare(namespaces & ~CLONE_NEWUSER) != 0) {
      ::_exit(kNotPossible);
    }
    const pid_t inner = ::fork();  // the first process of the new PID namespace
    if (inner == 0) {
      ::alarm(60);
      ::_exit(body());
    }
    int status = 0;
    ::waitpid(inner, &status, 0);
    ::_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
  }
  Pod(const Pod&) = delete;
  Pod& operator=(const Pod&) = delete;
  ~Pod() { exit_code(); }
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

  pid_t outer_;
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
