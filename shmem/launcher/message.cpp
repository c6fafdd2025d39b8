// SPDX-License-Identifier: Apache-2.0
#include "shmem/launcher/message.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

namespace shmem::launcher {

void say(const std::string& text) {
  const std::string line = "oshrun: " + text + "\n";
  // Nobody can be told that standard error is gone.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

std::string exit_text(int wait_status) {
  if (!WIFSIGNALED(wait_status)) return "exited with status " + std::to_string(WEXITSTATUS(wait_status));
  const int signal = WTERMSIG(wait_status);
  return "was killed by signal " + std::to_string(signal) + " (" + ::strsignal(signal) + ")" +
         (WCOREDUMP(wait_status) ? ", core dumped" : "");
}

int exit_status(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

}  // namespace shmem::launcher
