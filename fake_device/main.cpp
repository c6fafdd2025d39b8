// SPDX-License-Identifier: Apache-2.0
// gba-fake-device: a Global Barrier Accelerator as a process.
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <systemd/sd-daemon.h>

#include <cerrno>
#include <cstdio>
#include <exception>
#include <string>
#include <system_error>

#include "fake_device/arguments.hpp"
#include "fake_device/server.hpp"
#include "fake_device/sigbus_guard.hpp"

namespace {

using fake_device::Arguments;
using fake_device::Log;
using fake_device::LogLevel;
using fake_device::UniqueFd;

// A client needs a socket, two memory files and an eventfd for each interrupt.
void raise_file_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
}

unsigned processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return ::sched_getaffinity(0, sizeof set, &set) == 0 ? static_cast<unsigned>(CPU_COUNT(&set)) : 1;
}

bool pin(unsigned cpu) {
  if (cpu >= CPU_SETSIZE) {
    errno = EINVAL;
    return false;
  }
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  return ::sched_setaffinity(0, sizeof set, &set) == 0;
}

UniqueFd take_stop_signals() {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGTERM);
  ::sigaddset(&set, SIGINT);
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  return UniqueFd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

int serve(Arguments arguments) {
  const Log log(arguments.log_level, arguments.options.format);
  raise_file_limit();
  ::signal(SIGPIPE, SIG_IGN);  // whoever read the output may be gone
  fake_device::install_sigbus_guard();
  const unsigned available = processors();
  if (arguments.cpu && !pin(*arguments.cpu)) {
    log.write(LogLevel::kError, "cannot run on processor " + std::to_string(*arguments.cpu) + ": " +
                                    std::generic_category().message(errno) + " (see nproc, taskset -p $$)");
    return 1;
  }
  arguments.options.processors = available;
  auto server = fake_device::Server::create(arguments.options, log, take_stop_signals());
  if (!server) {
    log.write(LogLevel::kError, server.error());
    return 1;
  }
  const auto& options = arguments.options;
  std::printf("gba-fake-device: ready on %s: %u groups x %u members, %u ports\n", options.socket.c_str(),
              options.profile->groups, options.profile->members, options.ports);
  std::fflush(stdout);
  ::sd_notify(0, "READY=1");
  (*server)->run();
  ::sd_notify(0, "STOPPING=1");
  return 0;
}

}  // namespace

int main(int argc, char** argv) try {
  auto parsed = fake_device::parse_arguments(argc, argv);
  return parsed.arguments ? serve(*std::move(parsed.arguments)) : parsed.exit_code;
} catch (const std::exception& error) {
  std::fprintf(stderr, "gba-fake-device: error: %s\n", error.what());
  return 1;
}
