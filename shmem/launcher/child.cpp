// SPDX-License-Identifier: Apache-2.0
#include "shmem/launcher/child.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>

namespace shmem::launcher {

namespace {

constexpr int kExecFailed = 127;

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> all;
  all.reserve(strings.size() + 1);
  // execve() takes pointers to char, which it does not write through.
  for (const std::string& string : strings) all.push_back(const_cast<char*>(string.c_str()));
  all.push_back(nullptr);
  return all;
}

/// Puts `fd` where the program looks for it. False with errno.
bool place(int fd, int where) {
  if (fd == where) return ::fcntl(fd, F_SETFD, 0) == 0;
  return ::dup2(fd, where) >= 0;
}

bool arrange_descriptors(const ChildProgram& program) {
  const int input = program.input >= 0 ? program.input : ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (input < 0 || !place(input, STDIN_FILENO)) return false;
  if (program.output >= 0 && !place(program.output, STDOUT_FILENO)) return false;
  if (program.error >= 0 && !place(program.error, STDERR_FILENO)) return false;
  return program.inherited < 0 || ::fcntl(program.inherited, F_SETFD, 0) == 0;
}

/// Runs in the new process. Returns only if that did not work, with errno: the step that failed.
ExecFailure::Step become(const ChildProgram& program, pid_t parent, const sigset_t& mask, char* const* arguments,
                         char* const* environment) {
  if (::setpgid(0, program.group) != 0) return ExecFailure::kPrepare;
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return ExecFailure::kPrepare;
  if (::getppid() != parent) ::_exit(kExecFailed);  // it died before we asked to be told
  if (!arrange_descriptors(program)) return ExecFailure::kPrepare;
  if (program.open_files && ::setrlimit(RLIMIT_NOFILE, &*program.open_files) != 0) return ExecFailure::kPrepare;
  if (!program.cpus.empty() && !run_on(program.cpus)) return ExecFailure::kBind;
  if (!program.folder.empty() && ::chdir(program.folder.c_str()) != 0) return ExecFailure::kEnterFolder;
  ::sigprocmask(SIG_SETMASK, &mask, nullptr);
  ::execve(program.file.c_str(), arguments, environment);
  return ExecFailure::kExecute;
}

}  // namespace

Result<ExecReports> ExecReports::open() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return fail_errno(errno, "cannot make a pipe");
  return ExecReports(UniqueFd(ends[0]), UniqueFd(ends[1]));
}

std::optional<ExecFailure> ExecReports::next() const {
  ExecFailure failure{};  // smaller than PIPE_BUF: whole or not there
  if (::read(read_.get(), &failure, sizeof(failure)) != static_cast<ssize_t>(sizeof(failure))) return std::nullopt;
  return failure;
}

Result<pid_t> start(const ChildProgram& program, const sigset_t& mask, const ExecReports& reports) {
  const std::vector<char*> arguments = pointers(program.arguments);
  const std::vector<char*> environment = pointers(program.environment);
  const pid_t self = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) return fail_errno(errno, "cannot start a process: fork (see ulimit -u)");
  if (child == 0) {
    const ExecFailure::Step step = become(program, self, mask, arguments.data(), environment.data());
    const ExecFailure failure{program.tag, step, errno};
    [[maybe_unused]] const ssize_t written = ::write(reports.write_end(), &failure, sizeof(failure));
    ::_exit(kExecFailed);
  }
  return child;
}

}  // namespace shmem::launcher
