// SPDX-License-Identifier: Apache-2.0
#include "shmem/profile/shape.hpp"

#include <algorithm>
#include <initializer_list>
#include <utility>

namespace shmem::profile {
namespace {

using Words = std::initializer_list<std::string_view>;

bool is_any(std::string_view word, Words words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool has_any(std::string_view name, Words parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [name](std::string_view part) { return name.find(part) != std::string_view::npos; });
}

bool drop_end(std::string_view& text, std::string_view end) {
  const bool has = text.ends_with(end);
  text.remove_suffix(has ? end.size() : 0);
  return has;
}

/// Removes the size from "put64" or "putmem"; 0 if there is none.
std::size_t drop_size(std::string_view& word) {
  for (const auto& [end, bytes] :
       {std::pair<std::string_view, std::size_t>{"mem", 1}, {"128", 16}, {"64", 8}, {"32", 4}, {"16", 2}, {"8", 1}}) {
    if (drop_end(word, end)) {
      return bytes;
    }
  }
  return 0;
}

}  // namespace

Shape shape_of(std::string_view name, bool has_ctx, bool has_team) {
  for (const std::string_view begin : {"shmem_", has_ctx ? "ctx_" : ""}) {
    name.remove_prefix(name.starts_with(begin) ? begin.size() : 0);
  }
  if (has_any(name, {"_lock", "wait", "test"})) {
    return {.kind = Kind::kWait};
  }
  if (is_any(name, {"barrier", "barrier_all", "sync", "sync_all", "team_sync"})) {
    return {.kind = Kind::kBarrier};
  }
  if (is_any(name, {"quiet", "fence", "pe_quiet"})) {
    return {.kind = Kind::kOrder};
  }
  if (has_any(name, {"malloc", "memalign", "realloc", "calloc", "free"}) || name == "align") {
    return {.kind = Kind::kMemory};
  }
  drop_end(name, "_nbi");
  if (is_any(name, {"signal_set", "signal_add"})) {
    return {.kind = Kind::kAtomic, .moves = true, .has_pe = true};
  }
  drop_end(name, "_signal");
  std::string_view word = name.substr(name.rfind('_') + 1);  // npos + 1 is 0
  const std::size_t size = drop_size(word);
  if (has_any(name, {"_reduce", "scan", "_to_all", "broadcast", "collect", "alltoall"})) {
    const int team = has_team ? 1 : 0;
    const int count = word == "alltoalls" ? 4 : 2;
    return {.kind = Kind::kCollective, .moves = true, .pointer = team, .count = count + team, .element = size};
  }
  // Other names that have get or put in them do not end so: ctx_get_team, info_get_name.
  const bool puts = is_any(word, {"put", "p", "iput", "ibput"});
  if (puts || is_any(word, {"get", "g", "iget", "ibget"})) {
    const bool strided = word.starts_with('i');
    return {.kind = puts ? Kind::kPut : Kind::kGet,
            .moves = true,
            .has_pe = true,
            .count = word.size() == 1 ? -1 : (strided ? 4 : 2),
            .blocks = word.starts_with("ib") ? 5 : -1,
            .element = size};
  }
  const bool old_atomic = is_any(word, {"fetch", "set", "swap", "cswap", "finc", "inc", "fadd", "add"});
  if (has_any(name, {"_atomic_"}) || (old_atomic && name != "signal_fetch")) {
    return {.kind = Kind::kAtomic, .moves = true, .has_pe = true};
  }
  return {};
}

}  // namespace shmem::profile
