// SPDX-License-Identifier: Apache-2.0
// oshrun: runs a program as the PEs of a job.
#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <limits.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <iostream>

#include "shmem/launcher/child.hpp"
#include "shmem/launcher/job.hpp"
#include "shmem/launcher/mpir.hpp"
#include "shmem/launcher/node_part.hpp"
#include "shmem/launcher/remote_job.hpp"
#include "shmem/launcher/streams.hpp"

namespace {

using shmem::EndReports;
using shmem::Error;
using shmem::JobMemory;
using shmem::Result;
using namespace shmem::launcher;

/// Keeps files that are opened later from becoming standard input, output or error if one of those was closed.
void open_standard_descriptors() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (::fcntl(fd, F_GETFD) < 0) {
      [[maybe_unused]] const int opened = ::open("/dev/null", O_RDWR);
    }
  }
}

template <typename T>
bool got(const Result<T>& result, Error& error) {
  if (!result) {
    error = result.error();
  }
  return result.has_value();
}

Result<Binding> choose_binding(Bind bind) {
  const auto cpus = shmem::own_cpus();
  if (!cpus) {
    return cpus.error();
  }
  return Binding(bind, *cpus, "/sys/devices/system");
}

/// A PE that is alone has the output and the terminal to itself.
Result<Output> open_output(const Options& options) {
  const bool is_direct = options.direct_output || (options.pes() == 1 && !options.tag_output);
  return is_direct ? Result<Output>(Output()) : Output::open(options.tag_output, options.pes(), options.number(0));
}

std::string host_name() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

/// All parts of the job. Undone as a whole if one of them cannot be made.
Result<Job::Parts> prepare(Options given, std::vector<std::string> files) {
  Error error;
  auto tools = JobRunner::Tools::make(std::move(given), open_output);
  if (!got(tools, error)) {
    return error;
  }
  const Options& options = tools->options;
  auto binding = choose_binding(options.bind);
  if (!got(binding, error)) {
    return error;
  }
  auto memory = JobMemory::create(options.pes(), binding->is_bound() ? binding->processors() : 0);
  if (!got(memory, error)) {
    return error;
  }
  auto ends = EndReports::create(options.pes(), options.hold);
  if (!got(ends, error)) {
    return error;
  }
  std::optional<DeviceProcess> device;
  if (options.gba == "fake") {
    auto started = DeviceProcess::start(tools->signals.mask_before(), options.ports);
    if (!got(started, error)) {
      return error;
    }
    device.emplace(std::move(*started));
  }
  auto tool = ToolCommand::of(options, ::isatty(STDIN_FILENO) != 0 && ::isatty(STDOUT_FILENO) != 0);
  if (!got(tool, error)) {
    return error;
  }
  std::optional<TerminalInput> terminal;
  if (!options.part && !tool->at_terminal() && ::isatty(STDIN_FILENO) != 0) {
    auto opened = TerminalInput::open(STDIN_FILENO);
    if (!got(opened, error)) {
      return error;
    }
    terminal.emplace(std::move(*opened));
  }
  std::optional<Profiler> profiler;
  if (!options.profile.empty()) {
    const int total = options.part ? options.part->total : options.pes();
    auto created = Profiler::create(options.number(0), options.pes(), total);
    if (!got(created, error)) {
      return error;
    }
    profiler.emplace(std::move(*created));
  }
  return Job::Parts{*std::move(tools), std::move(files),    *std::move(binding), *std::move(memory),  *std::move(ends),
                    std::move(device), std::move(terminal), host_name(),         std::move(profiler), *std::move(tool)};
}

Result<std::vector<std::string>> find_programs(const std::vector<Program>& programs) {
  const char* path = std::getenv("PATH");
  std::vector<std::string> files;
  for (const Program& program : programs) {
    auto file =
        find_program(program.command.front(), path == nullptr ? "/usr/local/bin:/usr/bin:/bin" : path, program.folder);
    if (!file) {
      return file.error();
    }
    files.push_back(std::move(*file));
  }
  return files;
}

/// The exit status of a shell for a program that it cannot run.
int status_of(const Error& error) {
  return error.code == std::errc::no_such_file_or_directory ? 127 : 126;
}

/// In the oshrun of a node: takes over the environment that the job has, and says that the node is ready.
Result<void> join_as_part(Options& options) {
  const auto variables = read_variables(STDIN_FILENO);
  if (!variables) {
    return variables.error();
  }
  for (const NodeVariable& variable : *variables) {
    const auto equals = variable.entry.find('=');
    const std::string name = variable.entry.substr(0, equals);
    const std::string value = variable.entry.substr(equals + 1);
    if (variable.program < 0) {
      ::setenv(name.c_str(), value.c_str(), 1);
    } else if (static_cast<std::size_t>(variable.program) < options.programs.size()) {
      options.programs[static_cast<std::size_t>(variable.program)].exports.emplace_back(name, value);
    }
  }
  if (::write(STDOUT_FILENO, kNodeReady.data(), kNodeReady.size()) != static_cast<ssize_t>(kNodeReady.size())) {
    return shmem::fail_errno(errno, "cannot write to standard output");
  }
  return {};
}

int run_on_nodes(Options options) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  auto job = RemoteJob::prepare(std::move(options));
  if (!job) {
    say(job.error().text);
    return 1;
  }
  return (*job)->run();
}

int run(int argc, char** argv) {
  open_standard_descriptors();
  auto options = parse_options(argc, argv);
  if (!options) {
    (options.error().status == 0 ? std::cout : std::cerr) << options.error().text << std::flush;
    return options.error().status;
  }
  options->hold = options->hold || is_being_debugged();
  if (!options->nodes.empty()) {
    return run_on_nodes(std::move(*options));
  }
  if (auto joined = options->part ? join_as_part(*options) : Result<void>(); !joined) {
    say(joined.error().text);
    return 1;
  }
  auto files = find_programs(options->programs);
  if (!files) {
    say(files.error().text);
    return status_of(files.error());
  }
  // Processes that PEs start and abandon become children of oshrun, so that they can be ended with the job.
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  auto parts = prepare(std::move(*options), std::move(*files));
  if (!parts) {
    say(parts.error().text);
    return 1;
  }
  return Job(std::move(*parts)).run();
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    say(error.what());
    return 1;
  }
}
