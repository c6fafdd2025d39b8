// SPDX-License-Identifier: Apache-2.0
#include "fake_device/arguments.hpp"

#include <CLI/CLI.hpp>
#include <map>
#include <string>
#include <vector>

#include "fake_device/clock.hpp"

namespace fake_device {
namespace {

/// As it is written; what depends on another option is worked out afterwards.
struct Written {
  std::string profile = gba_profile().name;
  std::optional<unsigned> ports;
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
  return known ? "" : text + " is no mode: three octal digits, such as 660";
}

TimedInjection take_fault(const std::string& text, const Dimensions& dimensions) {
  const auto parsed = parse_injection(text);
  const auto checked = parsed ? check(parsed->injection, dimensions) : failure(parsed.error());
  if (!checked) {
    throw CLI::ValidationError("--fault", checked.error());
  }
  return *parsed;
}

void declare(CLI::App& app, Written& written, Arguments& arguments) {
  Options& options = arguments.options;
  app.add_option("--socket", options.socket, "Unix socket to serve on; @NAME is an abstract one")->required();
  app.add_option("--admin-socket", options.admin_socket, "another one, for the privileged port");
  app.add_option("--mode", written.mode, "permissions of --socket, octal")->check(check_mode)->capture_default_str();
  app.add_option("--profile", written.profile, "gba: 32 groups x 708 members; switch: 256 x 128")
      ->check(CLI::IsMember({gba_profile().name, switch_profile().name}))
      ->capture_default_str();
  app.add_option("--ports", written.ports, "how many clients may be connected at once (default: as many as members)")
      ->check(CLI::Range(1U, GBA_MAX_MEMBERS));
  app.add_option("--idle-us", written.idle_us, "sleep after so many microseconds without an arrival")
      ->capture_default_str();
  app.add_option(
         "--fault", written.faults,
         "a fault to inject, KIND[:NAME=VALUE,...], such as drop-release:group=3,member=7,count=1; may be given "
         "several times, see gba-fake-device(1)")
      ->type_name("FAULT")
      ->allow_extra_args(false);
  app.add_flag("--debug-region", arguments.options.debug_region, "let clients inject faults, through a region for it");
  app.add_option("--stats", written.stats, "every so many seconds, a line of statistics on standard output")
      ->check(CLI::Range(0U, 86'400U))
      ->type_name("SECONDS");
  app.add_flag("--log-json", written.json, "log and statistics as JSON, an object a line");
  app.add_option("--cpu", arguments.cpu, "run on this processor only");
  app.add_option("--log-level", written.log_level, "what to say on standard error")
      ->check(CLI::IsMember({"error", "warning", "info", "debug"}))
      ->capture_default_str();
  app.set_version_flag("--version", std::string("gba-fake-device ") + GBA_VERSION_TEXT);
}

void work_out(const Written& written, Arguments& arguments) {
  Options& options = arguments.options;
  options.profile = written.profile == switch_profile().name ? &switch_profile() : &gba_profile();
  options.ports = written.ports.value_or(options.profile->members);
  options.mode = static_cast<unsigned>(std::stoul(written.mode, nullptr, 8));
  options.stats = written.stats * kSecond;
  options.format = written.json ? LineFormat::kJson : LineFormat::kText;
  options.idle = written.idle_us * kMicrosecond;
  for (const auto& text : written.faults) {
    options.faults.push_back(take_fault(text, options.profile->dimensions(options.ports)));
  }
  arguments.log_level = level_named(written.log_level);
}

}  // namespace

ParsedArguments parse_arguments(int argc, const char* const* argv) {
  CLI::App app("A Global Barrier Accelerator as a process: the device behind a vfio-user socket.", "gba-fake-device");
  Arguments arguments;
  Written written;
  declare(app, written, arguments);
  try {
    app.parse(argc, argv);
    if (!arguments.options.admin_socket.empty() && arguments.options.admin_socket == arguments.options.socket) {
      throw CLI::ValidationError("--admin-socket", "must be another one than --socket");
    }
    work_out(written, arguments);
  } catch (const CLI::ParseError& error) {
    return {.arguments = std::nullopt, .exit_code = app.exit(error)};
  }
  return {.arguments = std::move(arguments)};
}

}  // namespace fake_device
