// SPDX-License-Identifier: Apache-2.0
#include "shmem/launcher/device_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "shmem/launcher/child.hpp"
#include "shmem/launcher/environment.hpp"
#include "shmem/launcher/message.hpp"
#include "shmem/launcher/program_path.hpp"
#include "shmem/memory/random_name.hpp"

namespace shmem::launcher {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr const char* kProgram = "gba-fake-device";
constexpr milliseconds kStartLimit{10000};
/// What it gets to end by itself.
constexpr milliseconds kStopLimit{2000};
constexpr milliseconds kLook{2};

Result<std::string> find_device_program() {
  auto beside = find_program(own_folder() + "/" + kProgram, "");
  if (beside) return beside;
  const char* path = std::getenv("PATH");
  auto found = find_program(kProgram, path == nullptr ? "" : path);
  if (found) return found;
  return fail(found.error().code, found.error().text + ", nor is it beside oshrun");
}

/// True once the process is no more, waited for.
bool await_end(pid_t pid, milliseconds limit) {
  const auto deadline = Clock::now() + limit;
  for (;;) {
    const pid_t ended = ::waitpid(pid, nullptr, WNOHANG);
    if (ended == pid || (ended < 0 && errno == ECHILD)) return true;
    if (Clock::now() >= deadline) return false;
    std::this_thread::sleep_for(kLook);
  }
}

}  // namespace

Result<DeviceProcess> DeviceProcess::start(const sigset_t& mask, int ports) {
  const auto name = random_name();
  if (!name) return tl::make_unexpected(name.error());
  const auto file = find_device_program();
  if (!file) return tl::make_unexpected(file.error());
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno(errno, "cannot make a pipe");
  UniqueFd output(ends[0]);
  UniqueFd its_output(ends[1]);
  auto reports = ExecReports::open();
  if (!reports) return tl::make_unexpected(reports.error());

  const std::string socket = "@gba-" + std::string(name->data(), name->size());
  ChildProgram program;
  program.file = *file;
  program.arguments = {*file, "--socket", socket};
  if (ports > 0) program.arguments.insert(program.arguments.end(), {"--ports", std::to_string(ports)});
  program.environment = Environment().entries();
  program.output = its_output.get();
  const auto pid = launcher::start(program, mask, *reports);
  if (!pid) return tl::make_unexpected(pid.error());
  its_output.reset();  // so that we see it end
  DeviceProcess device(*pid, "vfio-user:" + socket, std::move(output));
  if (auto ready = device.await_ready(); !ready) {
    return fail(ready.error().code, "the fake device (" + *file + ") " + ready.error().text);
  }
  return device;
}

Result<void> DeviceProcess::await_ready() const {
  const auto deadline = Clock::now() + kStartLimit;
  for (;;) {
    const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now());
    pollfd poll{output_.get(), POLLIN, 0};
    if (left.count() <= 0) return fail(std::errc::timed_out, "was not ready within 10 s");
    if (::poll(&poll, 1, static_cast<int>(left.count())) <= 0) continue;
    char byte = 0;
    const ssize_t got = ::read(output_.get(), &byte, 1);
    if (got == 1 && byte == '\n') return {};
    if (got == 0) return fail(std::errc::no_child_process, "ended before it was ready");
  }
}

DeviceProcess::~DeviceProcess() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGTERM);
  if (await_end(pid_, kStopLimit)) return;
  ::kill(pid_, SIGKILL);
  if (!await_end(pid_, kStopLimit)) say("the fake device (pid " + std::to_string(pid_) + ") does not end");
}

}  // namespace shmem::launcher
