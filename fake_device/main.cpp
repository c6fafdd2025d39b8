// SPDX-License-Identifier: Apache-2.0
// gba-fake-device: a Global Barrier Accelerator as a process.
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/signalfd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <map>
#include <optional>
#include <string>
#include <system_error>

#include "fake_device/server.hpp"
#include "fake_device/sigbus_guard.hpp"

namespace {

using fake_device::Log;
using fake_device::LogLevel;
using fake_device::UniqueFd;

struct Arguments {
  std::string socket;
  unsigned ports = GBA_MAX_MEMBERS;
  unsigned idle_us = 200;
  std::optional<unsigned> cpu;
  LogLevel log_level = LogLevel::kWarning;
};

void declare(CLI::App& app, Arguments& arguments) {
  const std::map<std::string, LogLevel> levels{{"error", LogLevel::kError},
                                               {"warning", LogLevel::kWarning},
                                               {"info", LogLevel::kInfo},
                                               {"debug", LogLevel::kDebug}};
  app.add_option("--socket", arguments.socket, "Unix socket to serve on; @NAME is an abstract one")->required();
  app.add_option("--ports", arguments.ports, "how many clients may be connected at once")
      ->check(CLI::Range(1U, GBA_MAX_MEMBERS))
      ->capture_default_str();
  app.add_option("--idle-us", arguments.idle_us, "sleep after so many microseconds without an arrival")
      ->capture_default_str();
  app.add_option("--cpu", arguments.cpu, "run on this processor only");
  app.add_option("--log-level", arguments.log_level, "what to say on standard error")
      ->transform(CLI::CheckedTransformer(levels, CLI::ignore_case))
      ->default_str("warning");
  app.set_version_flag("--version", std::string("gba-fake-device ") + GBA_VERSION_TEXT);
}

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

int serve(const Arguments& arguments) {
  const Log log(arguments.log_level);
  raise_file_limit();
  ::signal(SIGPIPE, SIG_IGN);  // whoever read the output may be gone
  fake_device::install_sigbus_guard();
  const unsigned available = processors();
  if (arguments.cpu && !pin(*arguments.cpu)) {
    log.write(LogLevel::kError, "cannot run on processor " + std::to_string(*arguments.cpu) + ": " +
                                    std::generic_category().message(errno) + " (see nproc, taskset -p $$)");
    return 1;
  }
  auto server = fake_device::Server::create({.socket = arguments.socket,
                                             .ports = arguments.ports,
                                             .idle = arguments.idle_us * fake_device::kMicrosecond,
                                             .processors = available},
                                            log, take_stop_signals());
  if (!server) {
    log.write(LogLevel::kError, server.error());
    return 1;
  }
  std::printf("gba-fake-device: ready on %s: %u groups x %u members, %u ports\n", arguments.socket.c_str(),
              GBA_MAX_GROUPS, GBA_MAX_MEMBERS, arguments.ports);
  std::fflush(stdout);
  (*server)->run();
  return 0;
}

}  // namespace

int main(int argc, char** argv) try {
  CLI::App app("A Global Barrier Accelerator as a process: the device behind a vfio-user socket.", "gba-fake-device");
  Arguments arguments;
  declare(app, arguments);
  CLI11_PARSE(app, argc, argv);
  return serve(arguments);
} catch (const std::exception& error) {
  std::fprintf(stderr, "gba-fake-device: error: %s\n", error.what());
  return 1;
}
