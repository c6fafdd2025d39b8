// SPDX-License-Identifier: Apache-2.0
// gba-fake-device: a Global Barrier Accelerator as a process.
#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <systemd/sd-daemon.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "base/fd.hpp"
#include "base/option_help.hpp"
#include "base/size_text.hpp"
#include "base/usable_processors.hpp"
#include "fake_device/effects.hpp"
#include "fake_device/log.hpp"
#include "fake_device/server.hpp"
#include "fake_device/shared_memory.hpp"

namespace fake_device {
namespace {

// ---- The command line ----

constexpr int kUsage = 2;  // the exit code of a wrong command line

struct Arguments {
  Options options;
  std::optional<unsigned> cpu;
  LogLevel log_level = LogLevel::kWarning;
};

/// The options; or, if there is nothing to serve (--help, or a mistake, which has been printed), the exit code.
struct ParsedArguments {
  std::optional<Arguments> arguments;
  int exit_code = 0;
};

/// The options as written; those that depend on another option are resolved afterwards.
struct Written {
  std::string profile = gba_profile().name;
  std::optional<unsigned> ports;
  std::optional<unsigned> group_limit;
  std::string mode = "0600";
  unsigned idle_us = 200;
  std::string log_level = "warning";
  std::vector<std::string> faults;
  unsigned stats = 0;
  bool json = false;
};

LogLevel level_named(const std::string& name) {
  static const std::map<std::string, LogLevel> levels{{"error", LogLevel::kError},
                                                      {"warning", LogLevel::kWarning},
                                                      {"info", LogLevel::kInfo},
                                                      {"debug", LogLevel::kDebug}};
  return levels.at(name);
}

// Octal, as chmod takes it.
std::string check_mode(const std::string& text) {
  const bool octal = !text.empty() && text.size() <= 4 && text.find_first_not_of("01234567") == std::string::npos;
  const bool known = octal && std::stoul(text, nullptr, 8) <= 0777;
  return known ? "" : fmt::format("{} is not a mode: three octal digits, such as 660", text);
}

TimedInjection take_fault(const std::string& text, const Dimensions& dimensions) {
  const auto parsed = parse_injection(text);
  const auto checked = parsed ? check(parsed->injection, dimensions) : base::Result<void>(parsed.error());
  if (!checked) {
    throw CLI::ValidationError("--fault", checked.error().text);
  }
  return *parsed;
}

void declare(CLI::App& app, Written& written, Arguments& arguments) {
  Options& options = arguments.options;
  app.add_option("--socket", options.socket, "Unix socket to serve on; @NAME is an abstract one")
      ->type_name("PATH")
      ->required();
  app.add_option("--admin-socket", options.admin_socket, "another one, for the privileged port")->type_name("PATH");
  app.add_option("--mode", written.mode, "permissions of --socket, octal")
      ->type_name("MODE")
      ->check(check_mode)
      ->capture_default_str();
  app.add_option("--profile", written.profile, "gba: 32 groups x 708 members; switch: 256 x 128")
      ->check(CLI::IsMember({gba_profile().name, switch_profile().name}))
      ->capture_default_str();
  app.add_option("--ports", written.ports, "how many clients may be connected at once (default: the number of members)")
      ->check(CLI::Range(1U, GBA_MAX_MEMBERS));
  app.add_option("--group-limit", written.group_limit,
                 "how many groups a port may have, of those of the device (default: a quarter)");
  app.add_option("--idle-us", written.idle_us, "sleep after this many microseconds without an arrival")
      ->capture_default_str();
  app.add_option(
         "--fault", written.faults,
         "a fault to inject, KIND[:NAME=VALUE,...], such as drop-release:group=3,member=7,count=1; may be given "
         "several times, see gba-fake-device(1)")
      ->type_name("FAULT")
      ->allow_extra_args(false);
  app.add_flag("--debug-region", arguments.options.debug_region, "let clients inject faults through a region");
  app.add_flag("--trust-memory", arguments.options.trust_memory,
               "store directly to client memory that can be taken away meanwhile, such as a guest's");
  app.add_option("--stats", written.stats, "seconds between lines of statistics on standard output")
      ->check(CLI::Range(0U, 86'400U))
      ->type_name("SECONDS");
  app.add_flag("--log-json", written.json, "log and statistics as JSON, one object per line");
  app.add_option("--cpu", arguments.cpu, "run on this processor only");
  app.add_option("--log-level", written.log_level, "what to log on standard error")
      ->check(CLI::IsMember({"error", "warning", "info", "debug"}))
      ->capture_default_str();
  app.set_version_flag("--version", "gba-fake-device " GBA_VERSION_TEXT);
}

void work_out(const Written& written, Arguments& arguments) {
  Options& options = arguments.options;
  options.profile = written.profile == switch_profile().name ? &switch_profile() : &gba_profile();
  options.ports = written.ports.value_or(options.profile->members);
  if (options.ports > options.profile->most_ports) {
    throw CLI::ValidationError("--ports",
                               fmt::format("{} is more than the {} that profile {} has numbers for", options.ports,
                                           options.profile->most_ports, options.profile->name));
  }
  if (written.group_limit && (*written.group_limit == 0 || *written.group_limit > options.profile->groups)) {
    throw CLI::ValidationError("--group-limit",
                               fmt::format("{} is not between 1 and {}, the groups of profile {}", *written.group_limit,
                                           options.profile->groups, options.profile->name));
  }
  options.group_limit = written.group_limit;
  options.mode = static_cast<unsigned>(std::stoul(written.mode, nullptr, 8));
  options.stats = written.stats * kSecond;
  options.format = written.json ? LineFormat::kJson : LineFormat::kText;
  options.idle = written.idle_us * kMicrosecond;
  for (const auto& text : written.faults) {
    options.faults.push_back(take_fault(text, options.profile->dimensions(options.ports)));
  }
  arguments.log_level = level_named(written.log_level);
}

ParsedArguments parse_arguments(int argc, const char* const* argv) {
  CLI::App app("A Global Barrier Accelerator as a process: the device behind a vfio-user socket.", "gba-fake-device");
  app.formatter(std::make_shared<base::OptionHelp>());
  Arguments arguments;
  Written written;
  app.failure_message([](const CLI::App* failed, const CLI::Error& error) {
    return "gba-fake-device: " + CLI::FailureMessage::simple(failed, error);
  });
  declare(app, written, arguments);
  try {
    app.parse(argc, argv);
    if (!arguments.options.admin_socket.empty() && arguments.options.admin_socket == arguments.options.socket) {
      throw CLI::ValidationError("--admin-socket", "must differ from --socket");
    }
    work_out(written, arguments);
  } catch (const CLI::ParseError& error) {
    return {.arguments = std::nullopt, .exit_code = app.exit(error) == 0 ? 0 : kUsage};
  }
  return {.arguments = std::move(arguments)};
}

}  // namespace
}  // namespace fake_device

namespace {

using fake_device::Arguments;
using fake_device::Log;
using fake_device::LogLevel;

// A client needs a socket, two memory files and an eventfd for each interrupt.
void raise_file_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
}

// The kernel gives a process a larger table of descriptors when a number does not fit. In a process with several
// threads it then waits for all processors (RCU), 5 to 20 ms, and so does everyone who opens a descriptor. So the
// table gets its size while there is one thread: half a MiB, enough for all members and their interrupts.
// REQUIRES: no other thread.
void make_descriptor_table() {
  constexpr rlim_t kDescriptors = rlim_t{1} << 16;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur > 0) {
    const int last = static_cast<int>(std::min(limit.rlim_cur, kDescriptors) - 1);
    const base::UniqueFd any(::epoll_create1(EPOLL_CLOEXEC));
    const base::UniqueFd at_the_end(::fcntl(any.get(), F_DUPFD_CLOEXEC, last));
  }
}

bool pin(unsigned cpu) {
  std::array<cpu_set_t, 64> sets{};  // more than kernels are built for
  if (cpu >= 8 * sizeof sets) {
    errno = EINVAL;
    return false;
  }
  CPU_SET_S(cpu, sizeof sets, sets.data());
  return ::sched_setaffinity(0, sizeof sets, sets.data()) == 0;
}

base::UniqueFd take_stop_signals() {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGTERM);
  ::sigaddset(&set, SIGINT);
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  return base::UniqueFd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

int serve(Arguments arguments) {
  const Log log(arguments.log_level, arguments.options.format);
  raise_file_limit();
  make_descriptor_table();
  ::signal(SIGPIPE, SIG_IGN);  // the reader of the output may be gone
  fake_device::install_sigbus_guard();
  const unsigned available = base::usable_processors();
  if (arguments.cpu && !pin(*arguments.cpu)) {
    log.write(LogLevel::kError, fmt::format("cannot run on processor {}: {} (see nproc, taskset -p $$)", *arguments.cpu,
                                            std::generic_category().message(errno)));
    return 1;
  }
  arguments.options.processors = available;
  std::uint64_t microseconds = 0;
  if (::sd_watchdog_enabled(0, &microseconds) > 0) {
    arguments.options.watchdog = microseconds * fake_device::kMicrosecond / 3;
    arguments.options.alive = [] { ::sd_notify(0, "WATCHDOG=1"); };
  }
  auto server = fake_device::Server::create(arguments.options, log, take_stop_signals());
  if (!server) {
    log.write(LogLevel::kError, server.error().text);
    return 1;
  }
  const auto& options = arguments.options;
  std::printf("gba-fake-device: ready on %s: %u groups x %u members, %s\n", options.socket.c_str(),
              options.profile->groups, options.profile->members, base::count(options.ports, "port").c_str());
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
