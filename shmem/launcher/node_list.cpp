// SPDX-License-Identifier: Apache-2.0
#include "shmem/launcher/node_list.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <sstream>

#include "base/number.hpp"
#include "base/regular_file.hpp"
#include "shmem/bootstrap/job_memory.hpp"

namespace shmem::launcher {
namespace {

constexpr std::size_t kLargestFile = std::size_t{1} << 20;

Error wrong(const std::string& text) {
  return fail(std::errc::invalid_argument, text);
}

std::optional<int> number_of_slots(const std::string& text) {
  return base::number(text, 1, kMaxLocalPes);
}

/// --hostfile <(command) names a pipe. A FIFO that no process writes is empty: this does not wait for one.
Result<std::string> read_file_or_pipe(const std::string& file) {
  const base::UniqueFd opened(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat status {};
  if (!opened || ::fstat(opened.get(), &status) != 0) {
    return fail(std::errc{errno}, std::generic_category().message(errno));
  }
  if (!S_ISFIFO(status.st_mode)) {
    return base::read_text_file(file, kLargestFile);
  }
  if (::fcntl(opened.get(), F_SETFL, 0) != 0) {  // the writer may need time
    return fail(std::errc{errno}, std::generic_category().message(errno));
  }
  return base::read_text(opened, kLargestFile);
}

/// "HOST" or "HOST:N"; an address of IPv6 has more than one colon, and may be in brackets, which ssh does not know.
Result<NodeSlots> parse_host(const std::string& text) {
  const auto bracket = text.starts_with('[') ? text.find(']') : std::string::npos;
  const bool is_bracketed = bracket != std::string::npos;
  const auto colon = text.find(':', is_bracketed ? bracket : 0);
  const bool has_number = colon != std::string::npos && text.find(':', colon + 1) == std::string::npos &&
                          (!is_bracketed || colon == bracket + 1);
  const std::string name = has_number ? text.substr(0, colon) : text;
  const std::string host = is_bracketed && name.back() == ']' ? name.substr(1, name.size() - 2) : name;
  const auto slots = has_number ? number_of_slots(text.substr(colon + 1)) : std::optional(1);
  if (!slots) {
    return wrong(fmt::format("{} does not end with a number of PEs, from 1 to {}", text, kMaxLocalPes));
  }
  // It becomes an argument of ssh, which takes "-..." for an option.
  if (host.empty() || host.front() == '-' || host.find_first_of("[]") != std::string::npos) {
    return wrong(fmt::format("\"{}\" is not the name of a host", host));
  }
  return NodeSlots{host, *slots};
}

void add(std::vector<NodeSlots>& nodes, NodeSlots node) {
  const auto same = std::ranges::find_if(nodes, [&node](const NodeSlots& one) { return one.host == node.host; });
  if (same == nodes.end()) {
    nodes.push_back(std::move(node));
  } else {
    same->slots = std::min(same->slots + node.slots, kMaxLocalPes + 1);
  }
}

/// "slots = 2" as "slots=2".
std::string without_blanks_at_equals(const std::string& line) {
  std::string text;
  for (const char character : line) {
    if (character == '=') {
      text.erase(text.find_last_not_of(" \t") + 1);
    }
    const bool is_blank = character == ' ' || character == '\t';
    if (!is_blank || text.empty() || text.back() != '=') {
      text += character;
    }
  }
  return text;
}

/// A line without its comment, which has a host. max_slots is Open MPI's: no more PEs, also with --oversubscribe. Here
/// only that option gives a node more PEs than slots.
Result<NodeSlots> parse_line(const std::string& line) {
  std::istringstream words(without_blanks_at_equals(line));
  std::string word;
  words >> word;
  auto node = parse_host(word);
  std::optional<int> most;
  while (node && words >> word) {
    const std::string name = word.substr(0, word.find('='));
    const auto number = name != word ? number_of_slots(word.substr(name.size() + 1)) : std::nullopt;
    if (!number || (name != "slots" && name != "max_slots" && name != "max-slots")) {
      return wrong(fmt::format("\"{}\" is not slots=N or max_slots=N, with N from 1 to {}", word, kMaxLocalPes));
    }
    (name == "slots" ? node->slots : most.emplace()) = *number;
  }
  if (node && most) {
    node->slots = std::min(node->slots, *most);
  }
  return node;
}

/// Gives each of the PEs that are left to the next node in turn.
void add_the_rest(std::vector<NodePes>& places, int rest) {
  for (std::size_t i = 0; rest > 0; i = (i + 1) % places.size(), --rest) {
    ++places[i].pes;
  }
}

}  // namespace

Result<std::vector<NodeSlots>> parse_hosts(const std::string& text) {
  std::vector<NodeSlots> nodes;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    auto node = parse_host(part);
    if (!node) {
      return node.error();
    }
    add(nodes, *std::move(node));
  }
  return nodes.empty() ? Result<std::vector<NodeSlots>>(wrong("it names no host")) : nodes;
}

Result<std::vector<NodeSlots>> read_host_file(const std::string& file) {
  const auto text = read_file_or_pipe(file);
  if (!text) {
    return wrong(fmt::format("cannot read {}: {}", file, text.error().text));
  }
  std::vector<NodeSlots> nodes;
  std::istringstream lines(*text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    line.erase(std::min(line.find('#'), line.size()));
    if (line.find_first_not_of(" \t\r") == std::string::npos) {
      continue;
    }
    auto node = parse_line(line);
    if (!node) {
      return wrong(fmt::format("{}:{}: {}", file, number, node.error().text));
    }
    add(nodes, *std::move(node));
  }
  return nodes.empty() ? Result<std::vector<NodeSlots>>(wrong(file + " names no host")) : nodes;
}

int slots_of(const std::vector<NodeSlots>& nodes, int per_node) {
  int sum = 0;
  for (const NodeSlots& node : nodes) {
    sum = std::min(sum + (per_node != 0 ? per_node : node.slots), kMaxLocalPes + 1);
  }
  return sum;
}

Result<std::vector<NodePes>> spread(const std::vector<NodeSlots>& nodes, int pes, int per_node, bool oversubscribe) {
  std::vector<NodePes> places;
  int left = pes;
  for (const NodeSlots& node : nodes) {
    const int here = std::min(per_node != 0 ? per_node : node.slots, left);
    places.push_back({node.host, 0, here});
    left -= here;
  }
  if (left > 0 && (!oversubscribe || per_node != 0)) {
    return wrong(fmt::format("{} PEs do not fit on {} node{} with {} in all: name more nodes, give HOST:N{}", pes,
                             nodes.size(), nodes.size() == 1 ? "" : "s", pes - left,
                             per_node != 0 ? ", or a larger -N" : ", or --oversubscribe"));
  }
  add_the_rest(places, left);
  std::erase_if(places, [](const NodePes& place) { return place.pes == 0; });
  int first = 0;
  for (NodePes& place : places) {
    place.first = first;
    first += place.pes;
  }
  return places;
}

bool is_this_machine(const std::string& host) {
  if (host == "localhost" || host == "127.0.0.1" || host == "::1") {
    return true;
  }
  std::array<char, HOST_NAME_MAX + 1> buffer{};
  ::gethostname(buffer.data(), buffer.size() - 1);
  const std::string own = buffer.data();
  return !host.empty() && (host == own || host == own.substr(0, own.find('.')));
}

}  // namespace shmem::launcher
