// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/shmem/bootstrap_processes.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>

#include "base/fd.hpp"

namespace shmem::testing {

namespace {

using Clock = std::chrono::steady_clock;

struct Child {
  pid_t pid;
  base::UniqueFd output;
};

Child run(int pe, const std::function<std::string(int)>& body) {
  int ends[2];
  if (::pipe(ends) != 0) {
    return {-1, base::UniqueFd()};
  }
  base::UniqueFd read(ends[0]);
  base::UniqueFd write(ends[1]);
  const pid_t pid = ::fork();
  if (pid == 0) {
    const std::string text = body(pe);
    const bool written = ::write(write.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
    ::_exit(written ? 0 : 1);
  }
  return {pid, std::move(read)};
}

/// All that the child writes until it ends or the deadline passes.
std::string read_all(int fd, Clock::time_point deadline) {
  std::string text;
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    pollfd poll{fd, POLLIN, 0};
    if (left.count() <= 0 || ::poll(&poll, 1, static_cast<int>(left.count())) == 0) {
      return text + "<hangs>";
    }
    char buffer[512];
    const ssize_t got = ::read(fd, buffer, sizeof(buffer));
    if (got <= 0) {
      return text;
    }
    text.append(buffer, static_cast<std::size_t>(got));
  }
}

std::string finish(const Child& child, Clock::time_point deadline) {
  std::string text = read_all(child.output.get(), deadline);
  if (Clock::now() >= deadline) {
    ::kill(child.pid, SIGKILL);
  }
  int status = 0;
  ::waitpid(child.pid, &status, 0);
  if (WIFSIGNALED(status)) {
    text += "<killed by signal " + std::to_string(WTERMSIG(status)) + ">";
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) != 0) {
    text += "<status " + std::to_string(WEXITSTATUS(status)) + ">";
  }
  return text;
}

}  // namespace

std::vector<std::string> in_processes(int pes, const std::function<std::string(int pe)>& body,
                                      std::chrono::seconds limit) {
  std::vector<Child> children;
  children.reserve(static_cast<std::size_t>(pes));
  for (int pe = 0; pe < pes; ++pe) {
    children.push_back(run(pe, body));
  }
  const auto deadline = Clock::now() + limit;
  std::vector<std::string> texts;
  texts.reserve(children.size());
  for (const Child& child : children) {
    texts.push_back(finish(child, deadline));
  }
  return texts;
}

}  // namespace shmem::testing
