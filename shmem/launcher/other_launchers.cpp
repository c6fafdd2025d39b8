// SPDX-License-Identifier: Apache-2.0
#include "shmem/launcher/other_launchers.hpp"

#include <fmt/format.h>
#include <limits.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <charconv>
#include <numeric>
#include <optional>

#include "shmem/bootstrap/job_memory.hpp"
#include "shmem/launcher/binding.hpp"

namespace shmem::launcher {
namespace {

constexpr const char* kGroup = "Options of other launchers";
constexpr const char* kOneMachine = "oshrun starts PEs on this machine only; for several nodes use mpirun or srun";

struct Word {
  const char* name;
  int values;
};
constexpr std::array kWords = {
    Word{"--oversubscribe", 0},
    Word{"--allow-run-as-root", 0},
    Word{"--map-by", 1},
    Word{"--bind-to", 1},
    Word{"--npernode", 1},
    Word{"--host", 1},
    Word{"--hostfile", 1},
    Word{"--machinefile", 1},
    Word{"--mca", 2},
    Word{"--wdir", 1},
    Word{"--tag-output", 0},
    Word{"--report-bindings", 0},
    Word{"-N", 1},
    Word{"-H", 1},
};
/// What PEs can be mapped by: nothing here depends on it.
constexpr std::array kMapTargets = {"slot",    "core",  "hwthread", "node",    "numa",   "socket",
                                    "package", "board", "l1cache",  "l2cache", "l3cache"};

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  for (;;) {
    const std::size_t end = text.find(separator, begin);
    parts.push_back(text.substr(begin, end - begin));
    if (end == std::string::npos) {
      return parts;
    }
    begin = end + 1;
  }
}

std::optional<int> number_of_pes(const std::string& text) {
  int value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || rest != end || value < 1 || value > kMaxLocalPes) {
    return std::nullopt;
  }
  return value;
}

std::string check_number(const std::string& text) {
  return number_of_pes(text) ? std::string()
                             : fmt::format("{} is not a number of PEs from 1 to {}", text, kMaxLocalPes);
}

/// "ppr:N:node": N PEs on each node.
std::optional<int> per_node_of(const std::string& map_by) {
  const auto parts = split(map_by, ':');
  const bool is_ppr = parts.size() == 3 && parts[0] == "ppr" && parts[2] == "node";
  return is_ppr ? number_of_pes(parts[1]) : std::nullopt;
}

std::string check_map_by(const std::string& text) {
  const auto parts = split(text, ':');
  const bool known = std::find(kMapTargets.begin(), kMapTargets.end(), parts[0]) != kMapTargets.end();
  const bool plain = std::all_of(parts.begin() + 1, parts.end(), [](const std::string& modifier) {
    return modifier == "OVERSUBSCRIBE" || modifier == "NOOVERSUBSCRIBE" || modifier == "oversubscribe" ||
           modifier == "nooversubscribe";
  });
  if ((known && plain) || per_node_of(text)) {
    return {};
  }
  return text +
         " is not available: oshrun assigns processors in the order of the PEs' numbers, by --bind core or "
         "--bind numa; slot, core, numa, socket and others without modifiers, and ppr:N:node are accepted";
}

std::string check_bind_to(const std::string& text) {
  const std::string target = text.substr(0, text.find(':'));
  return bind_of(target) ? std::string() : text + " is not available: none, core or numa, as with --bind";
}

struct Host {
  std::string name;
  std::optional<int> slots;
};

/// "NAME" or "NAME:SLOTS".
Host host_of(const std::string& text) {
  const auto colon = text.rfind(':');
  if (colon == std::string::npos || text.find(':') != colon) {
    return {text, 1};  // an address of IPv6 has more than one
  }
  return {text.substr(0, colon), number_of_pes(text.substr(colon + 1))};
}

bool is_this_machine(const std::string& name) {
  if (name == "localhost" || name == "127.0.0.1" || name == "::1") {
    return true;
  }
  std::array<char, HOST_NAME_MAX + 1> buffer{};
  ::gethostname(buffer.data(), buffer.size() - 1);
  const std::string own = buffer.data();
  return !name.empty() && (name == own || name == own.substr(0, own.find('.')));
}

std::string check_hosts(const std::string& text) {
  for (const std::string& part : split(text, ',')) {
    const Host host = host_of(part);
    if (!host.slots) {
      return part + " does not end with a number of PEs";
    }
    if (!is_this_machine(host.name)) {
      return fmt::format("\"{}\" is not this machine: {}", host.name, kOneMachine);
    }
  }
  return {};
}

std::string refuse_host_file(const std::string& /*text*/) {
  return kOneMachine;
}

}  // namespace

std::string with_two_dashes(const std::string& argument) {
  const bool known = std::any_of(kWords.begin(), kWords.end(),
                                 [&](const Word& word) { return word.name[1] == '-' && argument == word.name + 1; });
  return known ? "-" + argument : argument;
}

int values_of_other_launchers(const std::string& argument) {
  const auto* const found =
      std::find_if(kWords.begin(), kWords.end(), [&](const Word& word) { return argument == word.name; });
  return found == kWords.end() ? 0 : found->values;
}

void declare_other_launchers(CLI::App& app, OtherLaunchers& options) {
  app.add_flag("--oversubscribe", options.ignored[0], "Nothing: more PEs than processors need no permission")
      ->group(kGroup);
  app.add_flag("--allow-run-as-root", options.ignored[1], "Nothing: root needs no permission")->group(kGroup);
  app.add_option("-N,--npernode", options.per_node, "As -n: there is one node")
      ->type_name("N")
      ->check(check_number)
      ->group(kGroup);
  app.add_option("-H,--host", options.hosts, "Accepted if all are this machine; without -n, so many PEs")
      ->type_name("HOST[:N],...")
      ->check(check_hosts)
      ->group(kGroup);
  app.add_option("--hostfile,--machinefile", options.host_file, "Refused: for several nodes use mpirun or srun")
      ->type_name("FILE")
      ->check(refuse_host_file)
      ->group(kGroup);
  app.add_option("--bind-to", options.bind_to, "As --bind")
      ->type_name("none|core|numa")
      ->check(check_bind_to)
      ->excludes("--bind")
      ->group(kGroup);
  app.add_option("--map-by", options.map_by, "Nothing, but ppr:N:node is -N N: --bind assigns processors")
      ->type_name("WHAT")
      ->check(check_map_by)
      ->group(kGroup);
  app.add_option("--mca", options.mca, "Set OMPI_MCA_NAME for the PEs, for MPI in the program; nothing else here")
      ->type_name("NAME VALUE")
      ->type_size(2)
      ->take_all()
      ->allow_extra_args(false)
      ->group(kGroup);
}

int pes_asked_for(const OtherLaunchers& options) {
  const int per_node = options.per_node != 0 ? options.per_node : per_node_of(options.map_by).value_or(0);
  if (per_node != 0 || options.hosts.empty()) {
    return per_node;
  }
  const auto hosts = split(options.hosts, ',');
  return std::accumulate(hosts.begin(), hosts.end(), 0, [](int sum, const std::string& host) {
    return std::min(sum + host_of(host).slots.value_or(1), kMaxLocalPes + 1);
  });
}

std::string too_many_for_a_node(const OtherLaunchers& options, int pes) {
  const int per_node = options.per_node != 0 ? options.per_node : per_node_of(options.map_by).value_or(pes);
  if (pes <= per_node) {
    return {};
  }
  return fmt::format("{} PEs with {} per node are more than one node: {}", pes, per_node, kOneMachine);
}

std::vector<std::pair<std::string, std::string>> variables_of(const OtherLaunchers& options) {
  std::vector<std::pair<std::string, std::string>> variables;
  for (std::size_t i = 0; i + 1 < options.mca.size(); i += 2) {
    variables.emplace_back("OMPI_MCA_" + options.mca[i], options.mca[i + 1]);
  }
  return variables;
}

}  // namespace shmem::launcher
