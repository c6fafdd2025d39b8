// SPDX-License-Identifier: Apache-2.0
#include "shmem/launcher/node_part.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/number.hpp"

namespace shmem::launcher {
namespace {

// What a login sets, or what is another one on another node. -x passes them on anyway.
constexpr auto kNotPassedOn = std::to_array<std::string_view>({"HOSTNAME",
                                                               "HOME",
                                                               "USER",
                                                               "LOGNAME",
                                                               "SHELL",
                                                               "MAIL",
                                                               "TMPDIR",
                                                               "TMP",
                                                               "TEMP",
                                                               "PWD",
                                                               "OLDPWD",
                                                               "SHLVL",
                                                               "_",
                                                               "DISPLAY",
                                                               "XAUTHORITY",
                                                               "KRB5CCNAME",
                                                               "XDG_RUNTIME_DIR",
                                                               "DBUS_SESSION_BUS_ADDRESS",
                                                               "SHMEM_HOST_ID",
                                                               "SHMEM_GBA_SWITCH"});
/// The beginnings of names that belong to a session, or to a launcher that has started oshrun itself; but those of its
/// settings, and of a whole job.
constexpr auto kNotPassedOnBegins =
    std::to_array<std::string_view>({"XDG_SESSION_", "SSH_", "SUDO_", "OSHRUN_", "SLURM_", "SLURMD_", "PMI_", "PMIX_",
                                     "PRTE_", "OMPI_", "HYDRA_", "PALS_", "FLUX_", "PBS_", "LSB_"});
constexpr auto kPassedOnBegins = std::to_array<std::string_view>({"SLURM_JOB_", "OMPI_MCA_", "PMIX_MCA_", "PRTE_MCA_"});
/// Parts of names of secrets, in capitals: they stay on the node where the user has put them.
constexpr auto kSecrets = std::to_array<std::string_view>(
    {"SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "API_KEY", "APIKEY", "ACCESS_KEY", "PRIVATE_KEY"});

bool is_secret(std::string_view name) {
  std::string capitals(name);
  for (char& letter : capitals) {
    letter = letter >= 'a' && letter <= 'z' ? static_cast<char>(letter - 'a' + 'A') : letter;
  }
  return capitals.ends_with("TOKEN") || std::ranges::any_of(kSecrets, [&capitals](std::string_view part) {
           return capitals.find(part) != std::string::npos;
         });
}

bool is_passed_on(std::string_view name) {
  const auto begins = [name](std::string_view start) { return name.starts_with(start); };
  const bool is_of_this_node =
      std::ranges::find(kNotPassedOn, name) != kNotPassedOn.end() ||
      (std::ranges::any_of(kNotPassedOnBegins, begins) && std::ranges::none_of(kPassedOnBegins, begins));
  return !is_of_this_node && !is_secret(name);
}

/// A program of the job, and how many of its PEs a node has.
struct ProgramPart {
  const Program* program;
  int pes;
};

std::vector<ProgramPart> programs_of(const Options& job, const NodePes& node) {
  std::vector<ProgramPart> parts;
  int first = 0;
  for (const Program& program : job.programs) {
    const int begin = std::max(first, node.first);
    const int end = std::min(first + program.pes, node.first + node.pes);
    if (begin < end) {
      parts.push_back({&program, end - begin});
    }
    first += program.pes;
  }
  return parts;
}

const char* name_of(Bind bind) {
  switch (bind) {
    case Bind::kNone:
      return "none";
    case Bind::kCore:
      return "core";
    case Bind::kNuma:
      return "numa";
  }
  return "none";
}

std::string absolute(const std::string& name, const std::string& folder) {
  return name.empty() ? folder : (name.front() == '/' ? name : folder + "/" + name);
}

/// "INDEX:NAME=VALUE", without the zero at its end.
NodeVariable parse_variable(const std::string& text) {
  const auto colon = std::min(text.find(':'), text.size() - 1);
  return {base::number<int>(text.substr(0, colon)).value_or(-1), text.substr(colon + 1)};
}

}  // namespace

std::vector<std::string> part_arguments(const Options& job, const NodePes& node, const std::string& folder) {
  std::vector<std::string> arguments{"--part",  fmt::format("{}/{}", node.first, job.pes()),
                                     "--bind",  name_of(job.bind),
                                     "--grace", fmt::format("{}", std::chrono::duration<double>(job.grace).count())};
  if (!job.gba.empty()) {
    arguments.insert(arguments.end(), {"--gba", job.gba});
  }
  for (const auto& [is_set, option] :
       {std::pair{job.report_bindings, "--report-bindings"}, std::pair{job.tag_output, "--tag-output"},
        std::pair{!job.profile.empty(), "--profile"}, std::pair{job.hold, "--hold"}}) {
    if (is_set) {
      arguments.emplace_back(option);
    }
  }
  if (job.debugger) {
    arguments.insert(arguments.end(), {"--debugger", job.debugger->text});
  }
  if (!job.valgrind.empty()) {
    arguments.push_back("--valgrind=" + absolute(job.valgrind, folder));
  }
  bool is_first = true;
  for (const ProgramPart& part : programs_of(job, node)) {
    if (!is_first) {
      arguments.emplace_back(":");
    }
    is_first = false;
    arguments.insert(arguments.end(),
                     {"-n", std::to_string(part.pes), "--wdir", absolute(part.program->folder, folder), "--"});
    arguments.insert(arguments.end(), part.program->command.begin(), part.program->command.end());
  }
  return arguments;
}

std::vector<NodeVariable> part_variables(const Options& job, const NodePes& node) {
  std::vector<NodeVariable> variables;
  int index = 0;
  for (const ProgramPart& part : programs_of(job, node)) {
    for (const auto& [name, value] : part.program->exports) {
      variables.push_back({index, name + "=" + value});
    }
    ++index;
  }
  return variables;
}

std::vector<std::string> environment_for_nodes() {
  std::vector<std::string> entries;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const auto equals = text.find('=');
    if (equals != std::string_view::npos && is_passed_on(text.substr(0, equals))) {
      entries.emplace_back(text);
    }
  }
  return entries;
}

std::string encode(const std::vector<NodeVariable>& variables) {
  std::string bytes;
  for (const NodeVariable& variable : variables) {
    bytes += fmt::format("{}:{}", variable.program, variable.entry);
    bytes.push_back('\0');
  }
  bytes.push_back('\0');
  return bytes;
}

Result<std::vector<NodeVariable>> read_variables(int fd) {
  std::vector<NodeVariable> variables;
  std::string text;
  for (;;) {
    // By the byte: what follows the end is for others to read, and a start is not a matter of microseconds.
    char byte = 0;
    const ssize_t got = base::retry([&] { return ::read(fd, &byte, 1); });
    if (got <= 0) {
      return fail(std::errc::connection_aborted, "the oshrun that started this node's part of the job is gone");
    }
    if (byte != '\0') {
      text.push_back(byte);
    } else if (text.empty()) {
      return variables;
    } else {
      variables.push_back(parse_variable(text));
      text.clear();
    }
  }
}

std::string encode(const std::vector<MpirProcess>& pes) {
  std::string bytes(kNodePes);
  for (const MpirProcess& pe : pes) {
    bytes += fmt::format("{}:{}", pe.pid, pe.program);
    bytes.push_back('\0');
  }
  bytes.push_back('\0');
  return bytes;
}

std::vector<MpirProcess> decode_pes(std::string_view bytes, const std::string& host) {
  std::vector<MpirProcess> pes;
  while (!bytes.empty() && bytes.front() != '\0') {
    const std::string_view entry = bytes.substr(0, bytes.find('\0'));
    bytes.remove_prefix(std::min(entry.size() + 1, bytes.size()));
    const auto colon = std::min(entry.find(':'), entry.size() - 1);
    const auto pid = base::number<pid_t>(entry.substr(0, colon)).value_or(-1);
    pes.push_back({host, std::string(entry.substr(colon + 1)), pid});
  }
  return pes;
}

void write_to_starter(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = base::retry([&] { return ::write(STDOUT_FILENO, bytes.data(), bytes.size()); });
    if (written < 0) {
      return;  // the reader has closed the pipe
    }
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

std::string quoted(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) {
    line += line.empty() ? "'" : " '";
    for (const char character : word) {
      line += character == '\'' ? std::string("'\\''") : std::string(1, character);
    }
    line += '\'';
  }
  return line;
}

}  // namespace shmem::launcher
