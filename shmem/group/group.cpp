// SPDX-License-Identifier: Apache-2.0
#include "shmem/group/group.hpp"

#include <fmt/format.h>

#include <string_view>

#include "shmem/group/local_group.hpp"
#include "shmem/group/spanning_group.hpp"

namespace shmem {
namespace {

/// Each has a block in a half of a stage.
constexpr int kMostMembers = 1024;

}  // namespace

Result<std::unique_ptr<Group>> Group::create(KeyValueStore store, int rank, int size, Options options) {
  if (size < 1 || size > kMostMembers || rank < 0 || rank >= size) {
    return fail(std::errc::invalid_argument,
                fmt::format("shmem: a group cannot have {} members, of which this is number {}; there are 1 to {}",
                            size, rank, kMostMembers));
  }
  auto bootstrap = std::make_unique<StoreBootstrap>(std::move(store), rank, size);
  auto where = find_nodes(*bootstrap, node_identity(options.host_id));
  if (!where) {
    return in_ranks(where.error());
  }
  return where->nodes.several() ? SpanningGroup::create(std::move(bootstrap), *where, options)
                                : LocalGroup::create(std::move(bootstrap), *where, std::move(options));
}

Error Group::in_ranks(Error error) {
  // The timeout is an argument of each call.
  constexpr std::string_view kVariable = " (SHMEM_BARRIER_TIMEOUT)";
  if (const auto at = error.text.find(kVariable); at != std::string::npos) {
    error.text.erase(at, kVariable.size());
  }
  for (std::size_t at = 0; (at = error.text.find("PE", at)) != std::string::npos;) {
    const bool several = error.text.compare(at, 3, "PEs") == 0;
    error.text.replace(at, several ? 3 : 2, several ? "ranks" : "rank");
    at += several ? 5 : 4;
  }
  return error;
}

}  // namespace shmem
