// SPDX-License-Identifier: Apache-2.0
// What TeamShuffle sends by puts, and how all PEs learn that one has failed.
#include <fmt/format.h>

#include "kv/operator/team_shuffle.hpp"

namespace shmem::kv {

void TeamShuffle::put(Prepared& call, int pe, std::byte* to, const std::byte* from, std::size_t size) {
  if (team_.is_remote(pe)) {
    call.remote_puts.add(pe, to, from, size);
  } else {
    call.private_puts.add(pe, to, from, size);
  }
}

/// Returns when the puts have arrived; or the first Error.
Result<void> TeamShuffle::finish_puts(Prepared& call) {
  const Result<void>& copied = call.private_puts.finish();
  const Result<void>& sent = call.remote_puts.finish();
  return copied ? sent : copied;
}

/// A sync after which all earlier puts have arrived, or all PEs have an Error.
Result<void> TeamShuffle::sync_puts(Prepared& call) {
  if (!has_puts(call.cache)) {
    return team_.sync();
  }
  const Result<void> sent = finish_puts(call);
  return team_.spans_nodes() ? vote_on_puts(sent) : compare_failures(call, sent);
}

Result<void> TeamShuffle::vote_on_puts(const Result<void>& sent) {
  const auto vote = team_.sync_willing(sent.has_value());
  if (!sent || !vote) {
    return sent ? vote.error() : sent.error();
  }
  if (!vote->willing) {
    return fail(std::errc::connection_aborted,
                fmt::format("PE {} could not send its blocks (its own message says why)", vote->other));
  }
  return {};
}

/// The same on one node, where PEs see each other's words.
Result<void> TeamShuffle::compare_failures(Prepared& call, const Result<void>& sent) {
  ++call.syncs;
  if (!sent) {
    const FailedCopy mine{call.syncs, call.private_puts.failed_pe(), sent.error().code};
    proposal_of(team_.me()).failed.store(mine.word(), std::memory_order_relaxed);
  }
  const auto synced = team_.sync();
  if (!sent || !synced) {
    return sent ? synced : sent;
  }
  for (int pe = 0; pe < team_.size(); ++pe) {
    const std::uint64_t word = proposal_of(pe).failed.load(std::memory_order_relaxed);
    const auto failed = FailedCopy::of(word);
    if (word != 0 && failed.sync <= call.syncs) {
      return fail(std::errc::connection_aborted,
                  fmt::format("PE {} could not send its blocks to PE {}: {} (its own message says why)", pe, failed.pe,
                              team_.explain(failed.error)));
    }
  }
  return {};
}

/// The part of a pass that is put, from the staging memory that pass_staged() has filled.
void TeamShuffle::put_staged(Prepared& call, const StagingPass& pass) {
  if (!has_puts(call.cache)) {
    return;
  }
  const Layout& layout = call.cache.layout;
  const std::byte* staged = staging_.data();
  for (std::size_t i = 0; i < call.staged.size(); ++i) {
    const Move& move = call.staged[i];
    const auto destination = static_cast<std::size_t>(move.dst_block) * layout.chunk + pass.offset;
    for (std::size_t plane = pass.first_plane; plane < pass.first_plane + pass.planes; ++plane) {
      if (call.destinations[i].takes_puts) {
        put(call, static_cast<int>(move.dst_pe), layout.plane(call.cache.place, plane) + destination, staged,
            pass.size);
      }
      staged += pass.size;
    }
  }
}

}  // namespace shmem::kv
