// SPDX-License-Identifier: Apache-2.0
#include "shmem/launcher/other_launchers.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <optional>

#include "base/number.hpp"
#include "shmem/bootstrap/job_memory.hpp"
#include "shmem/launcher/binding.hpp"

namespace shmem::launcher {
namespace {

constexpr const char* kGroup = "Options of other launchers";

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
  return base::number(text, 1, kMaxLocalPes);
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

std::string check_hosts(const std::string& text) {
  const auto nodes = parse_hosts(text);
  return nodes ? std::string() : nodes.error().text;
}

/// A pipe can be read once only.
std::string take_host_file(const std::string& file, OtherLaunchers& options) {
  auto nodes = read_host_file(file);
  options.host_file_nodes = nodes ? *std::move(nodes) : std::vector<NodeSlots>();
  return nodes ? std::string() : nodes.error().text;
}

/// This machine alone takes any number of PEs, as without -H.
bool is_one_node_here(const std::vector<NodeSlots>& nodes) {
  return std::ranges::all_of(nodes, [](const NodeSlots& node) { return is_this_machine(node.host); });
}

/// N of -N and --map-by ppr:N:node; 0: neither is given.
int per_node(const OtherLaunchers& options) {
  return options.per_node != 0 ? options.per_node : per_node_of(options.map_by).value_or(0);
}

/// Without -H and --hostfile, none.
Result<std::vector<NodeSlots>> slots_of(const OtherLaunchers& options) {
  return options.hosts.empty() ? Result<std::vector<NodeSlots>>(options.host_file_nodes) : parse_hosts(options.hosts);
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
  app.add_flag("--oversubscribe", options.oversubscribe, "Start more PEs than -H or --hostfile has slots")
      ->group(kGroup);
  app.add_flag("--allow-run-as-root", options.as_root, "Nothing: root needs no permission")->group(kGroup);
  app.add_option("-N,--npernode", options.per_node, "How many PEs on each node")
      ->type_name("N")
      ->check(check_number)
      ->group(kGroup);
  app.add_option("-H,--host", options.hosts,
                 "Start PEs on these hosts, up to N (default 1) on each; without -n, as many")
      ->type_name("HOST[:N],...")
      ->check(check_hosts)
      ->group(kGroup);
  app.add_option("--hostfile,--machinefile", options.host_file, "As -H, by the lines HOST slots=N of a file")
      ->type_name("FILE")
      ->check([&options](const std::string& file) { return take_host_file(file, options); })
      ->excludes("--host")
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
  const auto nodes = slots_of(options);
  const bool has_nodes = nodes && !nodes->empty();
  return has_nodes ? launcher::slots_of(*nodes, per_node(options)) : per_node(options);
}

Result<std::vector<NodePes>> nodes_of(const OtherLaunchers& options, int pes) {
  const auto nodes = slots_of(options);
  if (!nodes) {
    return nodes.error();
  }
  const int each = per_node(options);
  if (nodes->empty() && each != 0 && pes > each) {
    return fail(
        std::errc::invalid_argument,
        fmt::format("{} PEs with {} per node are more than one node: name the nodes by -H or --hostfile", pes, each));
  }
  return nodes->empty() ? Result<std::vector<NodePes>>(std::vector<NodePes>())
                        : spread(*nodes, pes, each, options.oversubscribe || is_one_node_here(*nodes));
}

std::vector<std::pair<std::string, std::string>> variables_of(const OtherLaunchers& options) {
  std::vector<std::pair<std::string, std::string>> variables;
  for (std::size_t i = 0; i + 1 < options.mca.size(); i += 2) {
    variables.emplace_back("OMPI_MCA_" + options.mca[i], options.mca[i + 1]);
  }
  return variables;
}

}  // namespace shmem::launcher
