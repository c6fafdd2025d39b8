// SPDX-License-Identifier: Apache-2.0
#include "shmem/launcher/child.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <sstream>

namespace shmem::launcher {

Environment::Environment() {
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    entries_.emplace_back(*entry);
  }
}

void Environment::set(const std::string& name, const std::string& value) {
  const std::string start = name + "=";
  const auto is_it = [&](const std::string& entry) { return entry.rfind(start, 0) == 0; };
  entries_.erase(std::remove_if(entries_.begin(), entries_.end(), is_it), entries_.end());
  entries_.push_back(start + value);
}

const char* Environment::get(const std::string& name) const {
  const std::string start = name + "=";
  const auto found =
      std::ranges::find_if(entries_, [&start](const std::string& entry) { return entry.starts_with(start); });
  return found == entries_.end() ? nullptr : found->c_str() + start.size();
}

namespace {

/// 0, or why `name` cannot be executed by a process in `folder`.
int execution_error(const std::string& name, const std::string& folder) {
  const bool is_elsewhere = !folder.empty() && name.front() != '/';
  const std::string file = is_elsewhere ? folder + "/" + name : name;
  struct stat status {};
  if (::stat(file.c_str(), &status) != 0) {
    return errno;
  }
  if (S_ISDIR(status.st_mode)) {
    return EISDIR;
  }
  return ::access(file.c_str(), X_OK) == 0 ? 0 : errno;
}

}  // namespace

Result<std::string> find_program(const std::string& name, const std::string& path, const std::string& folder) {
  if (name.find('/') != std::string::npos) {
    const int error = execution_error(name, folder);
    if (error == 0) {
      return name;
    }
    return fail_errno(error, "cannot run " + name);
  }
  int refusal = 0;
  std::istringstream folders(path);
  std::string entry;
  while (std::getline(folders, entry, ':')) {
    std::string file = entry.empty() ? "." : entry;  // an empty entry is the current folder
    file.append("/").append(name);
    const int error = execution_error(file, folder);
    if (error == 0) {
      return file;
    }
    if (error == EACCES) {
      refusal = error;
    }
  }
  if (refusal != 0) {
    return fail_errno(refusal, "cannot run " + name);
  }
  const bool is_here = execution_error("./" + name, folder) == 0;
  return fail(std::errc::no_such_file_or_directory,
              "cannot run " + name + ": no such program in PATH" + (is_here ? "; is ./" + name + " meant?" : ""));
}

std::string own_folder() {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? std::string() : self.parent_path().string();
}

namespace {

constexpr int kExecFailed = 127;

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> all;
  all.reserve(strings.size() + 1);
  // execve() takes pointers to char, which it does not write through.
  for (const std::string& string : strings) {
    all.push_back(const_cast<char*>(string.c_str()));
  }
  all.push_back(nullptr);
  return all;
}

/// Moves `fd` to the number that the program expects. False with errno.
bool place(int fd, int where) {
  if (fd == where) {
    return ::fcntl(fd, F_SETFD, 0) == 0;
  }
  return ::dup2(fd, where) >= 0;
}

bool arrange_descriptors(const ChildProgram& program) {
  const int input = program.input >= 0 ? program.input : ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (input < 0 || !place(input, STDIN_FILENO)) {
    return false;
  }
  if (program.output >= 0 && !place(program.output, STDOUT_FILENO)) {
    return false;
  }
  if (program.error >= 0 && !place(program.error, STDERR_FILENO)) {
    return false;
  }
  return std::ranges::all_of(program.inherited, [](int fd) { return ::fcntl(fd, F_SETFD, 0) == 0; });
}

/// Runs in the new process. Returns only on failure, with errno and the step that failed.
ExecFailure::Step become(const ChildProgram& program, pid_t parent, const sigset_t& mask, char* const* arguments,
                         char* const* environment) {
  if (::setpgid(0, program.group) != 0) {
    return ExecFailure::kPrepare;
  }
  if (program.has_terminal && !give_terminal(::getpid())) {
    return ExecFailure::kPrepare;
  }
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) {
    return ExecFailure::kPrepare;
  }
  if (::getppid() != parent) {
    ::_exit(kExecFailed);  // the parent died before this child asked to be signalled
  }
  if (!arrange_descriptors(program)) {
    return ExecFailure::kPrepare;
  }
  if (program.open_files && ::setrlimit(RLIMIT_NOFILE, &*program.open_files) != 0) {
    return ExecFailure::kPrepare;
  }
  if (!program.cpus.empty() && !run_on(program.cpus)) {
    return ExecFailure::kBind;
  }
  if (!program.folder.empty() && ::chdir(program.folder.c_str()) != 0) {
    return ExecFailure::kEnterFolder;
  }
  ::sigprocmask(SIG_SETMASK, &mask, nullptr);
  ::execve(program.file.c_str(), arguments, environment);
  return ExecFailure::kExecute;
}

}  // namespace

Result<ExecReports> ExecReports::open() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
    return fail_errno(errno, "cannot make a pipe");
  }
  return ExecReports(base::UniqueFd(ends[0]), base::UniqueFd(ends[1]));
}

std::optional<ExecFailure> ExecReports::next() const {
  ExecFailure failure{};  // smaller than PIPE_BUF: arrives whole or not at all
  if (::read(read_.get(), &failure, sizeof(failure)) != static_cast<ssize_t>(sizeof(failure))) {
    return std::nullopt;
  }
  return failure;
}

bool give_terminal(pid_t group) {
  // A process in the background may not do that unless it blocks the signal.
  sigset_t signal;
  sigset_t before;
  ::sigemptyset(&signal);
  ::sigaddset(&signal, SIGTTOU);
  ::sigprocmask(SIG_BLOCK, &signal, &before);
  const bool given = ::tcsetpgrp(STDIN_FILENO, group) == 0;
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  return given;
}

Result<pid_t> start(const ChildProgram& program, const sigset_t& mask, const ExecReports& reports) {
  const std::vector<char*> arguments = pointers(program.arguments);
  const std::vector<char*> environment = pointers(program.environment);
  const pid_t self = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) {
    return fail_errno(errno, "cannot start a process: fork (see ulimit -u)");
  }
  if (child == 0) {
    const ExecFailure::Step step = become(program, self, mask, arguments.data(), environment.data());
    const ExecFailure failure{program.tag, step, errno};
    [[maybe_unused]] const ssize_t written = ::write(reports.write_end(), &failure, sizeof(failure));
    ::_exit(kExecFailed);
  }
  return child;
}

}  // namespace shmem::launcher
