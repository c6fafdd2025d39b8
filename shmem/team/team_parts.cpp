// SPDX-License-Identifier: Apache-2.0
#include "shmem/team/team_parts.hpp"

#include <set>
#include <unordered_map>

namespace shmem {
namespace {

/// The number of a PE of the world among the PEs of its node, whichever that is.
int number_on_node(const Nodes& nodes, int pe) {
  return nodes.several() ? nodes.number_here[static_cast<std::size_t>(pe)] : pe;
}

/// The part of a place that the next member is compared with.
struct OpenPart {
  std::size_t index = 0;
  int size = 0;
  int last = 0;    // the number on the node of its last member
  int stride = 0;  // between its members; with one member, any is right

  [[nodiscard]] bool continues(int number) const { return size == 1 || (size > 1 && number - last == stride); }
};

}  // namespace

TeamParts::TeamParts(const Nodes& nodes, const TeamMap& world, const PlaceOf& place_of, Spacing spacing) {
  std::unordered_map<int, OpenPart> open;
  std::set<int> seen;  // nodes
  part_of_.reserve(static_cast<std::size_t>(world.size));
  for (int member = 0; member < world.size; ++member) {
    const int pe = world.pe(member);
    const int number = number_on_node(nodes, pe);
    OpenPart& part = open[place_of(pe)];
    if (part.size > 0 && (spacing == Spacing::kAny || part.continues(number))) {
      part.stride = number - part.last;
    } else {
      part = {.index = members_.size()};
      members_.emplace_back();
      divide_a_node_ =
          !seen.insert(nodes.several() ? nodes.node_of[static_cast<std::size_t>(pe)] : 0).second || divide_a_node_;
    }
    ++part.size;
    part.last = number;
    members_[part.index].push_back(member);
    part_of_.push_back(static_cast<int>(part.index));
  }
}

TeamMap map_on_node(const Nodes& nodes, const TeamMap& world, const std::vector<int>& members) {
  const auto number = [&](std::size_t i) { return number_on_node(nodes, world.pe(members[i])); };
  const int start = number(0);
  return {start, members.size() > 1 ? number(1) - start : 1, static_cast<int>(members.size())};
}

std::optional<TeamMap> map_here(const Nodes& nodes, const TeamMap& world) {
  TeamMap here{nodes.number(world.pe(0)), 1, world.size};
  if (world.size > 1) {
    here.stride = nodes.number(world.pe(1)) - here.start;
  }
  for (int member = 0; member < world.size; ++member) {
    const int number = nodes.number(world.pe(member));
    if (number < 0 || number != here.pe(member)) {
      return std::nullopt;
    }
  }
  return here;
}

}  // namespace shmem
