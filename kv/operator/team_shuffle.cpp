// SPDX-License-Identifier: Apache-2.0
#include "kv/operator/team_shuffle.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <new>

namespace shmem::kv {

/// Finds the caches of PEs, once for successive moves to the same PE.
class TeamShuffle::Destinations {
 public:
  Destinations(const CheckedCache& cache, const OperatorTeam& team) : cache_(cache), team_(team) {}

  Result<Destination> find(std::int64_t pe) {
    if (pe != pe_) {
      const auto place = cache_of(cache_, team_, static_cast<int>(pe));
      if (!place) {
        return place.error();
      }
      pe_ = pe;
      found_ = {place->k, takes_puts(cache_, team_, static_cast<int>(pe))};
    }
    return found_;
  }

 private:
  const CheckedCache& cache_;
  const OperatorTeam& team_;
  std::int64_t pe_ = -1;
  Destination found_{};
};

std::vector<StagingPass> staging_passes(const Layout& layout, std::size_t blocks, std::size_t room) {
  if (blocks == 0) {
    return {};
  }
  constexpr std::size_t kLine = 64;
  const std::size_t each = std::max(room / blocks / kLine * kLine, kLine);
  const std::size_t planes = std::clamp<std::size_t>(each / layout.chunk, 1, layout.planes);
  const std::size_t size = std::min(each, layout.chunk);
  std::vector<StagingPass> passes;
  for (std::size_t plane = 0; plane < layout.planes; plane += planes) {
    for (std::size_t offset = 0; offset < layout.chunk; offset += size) {
      passes.push_back({.first_plane = plane,
                        .planes = std::min(planes, layout.planes - plane),
                        .offset = offset,
                        .size = std::min(size, layout.chunk - offset)});
    }
  }
  return passes;
}

Error TeamShuffle::failure(const Error& error) const {
  return fail(error.code, fmt::format("kv_shuffle: PE {}, call {}: {}", team_.me(), count_, error.text));
}

Result<TeamShuffle::Prepared> TeamShuffle::prepare(const MovePlan* plan, const Cache& cache) {
  if (plan == nullptr) {
    return fail(std::errc::invalid_argument, "plan is NULL");
  }
  const auto checked = check_cache(cache, team_);
  if (!checked) {
    return checked.error();
  }
  if (auto ok = plan->check(team_.size(), checked->layout.blocks); !ok) {
    return ok.error();
  }
  Prepared call{.cache = *checked,
                .cleared = plan->cleared(team_.me()),
                .clears = plan->clears(),
                .busy_on_node = std::min(plan->pes(), team_.size_on_node()),
                .remote_puts = RemotePuts(team_, checked->place.v),
                .private_puts = PrivatePuts(team_)};
  std::vector<int> senders{team_.me()};
  for (const int pe : checked->mapped ? plan->sources_of(team_.me()) : std::vector<int>{}) {
    if (pe != team_.me() && !team_.is_remote(pe)) {
      senders.push_back(pe);
    }
  }
  for (const int pe : senders) {
    auto queue = queue_of(*plan, *checked, pe);
    if (!queue) {
      return queue.error();
    }
    call.queues.push_back(*std::move(queue));
  }
  if (auto ok = list_puts(*plan, call); !ok) {
    return ok.error();
  }
  if (auto ok = list_staged(*plan, call); !ok) {
    return ok.error();
  }
  return call;
}

/// The immediate moves of `pe`, a PE of this node, to PEs of this node that take no puts.
Result<CopyQueue> TeamShuffle::queue_of(const MovePlan& plan, const CheckedCache& cache, int pe) const {
  CopyQueue queue{
      .copies = CopyList{cache.layout, cache.place}, .own = pe == team_.me(), .taken = &proposal_of(pe).taken};
  const auto from = cache_of(cache, team_, pe);
  if (!from) {
    return from.error();
  }
  Destinations destinations{cache, team_};
  const std::size_t chunk = cache.layout.chunk;
  for (const Move& move : plan.immediate(pe)) {
    const auto to = destinations.find(move.dst_pe);
    if (!to) {
      return to.error();
    }
    if (to->takes_puts) {
      continue;
    }
    queue.copies.add(to->k + static_cast<std::size_t>(move.dst_block) * chunk,
                     from->k + static_cast<std::size_t>(move.src_block) * chunk, chunk);
  }
  return queue;
}

Result<void> TeamShuffle::list_puts(const MovePlan& plan, Prepared& call) const {
  const CheckedCache& cache = call.cache;
  if (!has_puts(cache)) {
    return {};
  }
  if (!cache.mapped) {
    call.private_puts.reserve();
  }
  Destinations destinations{cache, team_};
  const std::size_t chunk = cache.layout.chunk;
  for (const Move& move : plan.immediate(team_.me())) {
    const auto to = destinations.find(move.dst_pe);
    if (!to) {
      return to.error();
    }
    if (!to->takes_puts) {
      continue;
    }
    // Moves are sorted by source, destination PE and block.
    const int pe = static_cast<int>(move.dst_pe);
    if (call.put.empty() || call.put.back().pe != pe) {
      call.put.push_back({pe, CopyList{cache.layout, cache.place}});
    }
    call.put.back().copies.add(to->k + static_cast<std::size_t>(move.dst_block) * chunk,
                               cache.place.k + static_cast<std::size_t>(move.src_block) * chunk, chunk);
  }
  return {};
}

Result<void> TeamShuffle::list_staged(const MovePlan& plan, Prepared& call) {
  call.passes = staging_passes(call.cache.layout, plan.most_staged(), staging_room_);
  call.staged = plan.staged(team_.me());
  if (call.staged.empty()) {
    return {};  // with the passes, because this PE takes part in the others' syncs
  }
  Destinations destinations{call.cache, team_};
  for (const Move& move : call.staged) {
    const auto to = destinations.find(move.dst_pe);
    if (!to) {
      return to.error();
    }
    call.destinations.push_back(*to);
  }
  const std::size_t stretches = call.staged.size() * call.passes.front().planes;
  call.stage.reserve(stretches);
  call.write.reserve(stretches);
  return staging_.reserve(call.staged.size() * call.passes.front().bytes());
}

Result<void> TeamShuffle::run(const MovePlan* plan, const Cache& cache) {
  ++count_;
  if (broken_) {
    return failure({broken_->code, "an earlier call ended in the middle: " + broken_->text});
  }
  Result<Prepared> call = Error{};
  try {
    call = prepare(plan, cache);
  } catch (const std::bad_alloc&) {
    call = fail(std::errc::not_enough_memory, "out of memory");
  }
  if (auto ok = agree(plan, call); !ok) {
    return failure(ok.error());
  }
  if (auto ok = shuffle(*call); !ok) {
    if (has_puts(call->cache)) {
      broken_ = ok.error();
    }
    return failure(ok.error());
  }
  return {};
}

Result<void> TeamShuffle::agree(const MovePlan* plan, const Result<Prepared>& mine) {
  Proposal& proposal = proposal_of(team_.me());
  proposal.error.store(mine ? 0 : static_cast<std::uint64_t>(mine.error().code), std::memory_order_relaxed);
  proposal.plan.store(mine ? plan->digest() : 0, std::memory_order_relaxed);
  proposal.cache.store(mine ? mine->cache.digest : 0, std::memory_order_relaxed);
  proposal.taken.reset();
  proposal.failed.store(0, std::memory_order_relaxed);
  auto synced = sync_proposals(mine, proposal);
  if (!synced) {
    // This PE has arrived, so that a late PE may complete the sync. It must not begin without this one.
    proposal.error.store(static_cast<std::uint64_t>(synced.error().code), std::memory_order_relaxed);
    return synced;
  }
  if (!mine) {
    return mine.error();
  }
  return team_.spans_nodes() && all_agree_ ? Result<void>{} : compare();
}

/// Between nodes a vote tells whether all have published the same. PEs are asked one by one only if not.
Result<void> TeamShuffle::sync_proposals(const Result<Prepared>& mine, const Proposal& proposal) {
  if (!team_.spans_nodes()) {
    return team_.sync();
  }
  Digest digest;
  digest.add(static_cast<std::int64_t>(proposal.plan.load(std::memory_order_relaxed)));
  digest.add(static_cast<std::int64_t>(proposal.cache.load(std::memory_order_relaxed)));
  const auto vote = team_.vote(digest.value(), mine.has_value());
  if (!vote) {
    return vote.error();
  }
  all_agree_ = vote->alike && vote->willing;
  return {};
}

Result<TeamShuffle::Published> TeamShuffle::published_by(int pe) const {
  if (!team_.is_remote(pe)) {
    const Proposal& proposal = proposal_of(pe);
    return Published{proposal.error.load(std::memory_order_relaxed), proposal.plan.load(std::memory_order_relaxed),
                     proposal.cache.load(std::memory_order_relaxed)};
  }
  Published published{};
  static_assert(std::is_standard_layout_v<Proposal> && offsetof(Proposal, error) == 0 &&
                offsetof(Proposal, plan) == offsetof(Published, plan) &&
                offsetof(Proposal, cache) == offsetof(Published, cache));
  const auto got = team_.get(&published, &proposals_[count_ % kProposals], pe, sizeof published);
  return got ? Result<Published>(published) : got.error();
}

/// All PEs come to the same result, because all see the same proposals.
Result<void> TeamShuffle::compare() const {
  std::vector<Published> all;
  for (int pe = 0; pe < team_.size(); ++pe) {
    const auto published = published_by(pe);
    if (!published) {
      return published.error();
    }
    if (published->error != 0) {
      return fail(std::errc::connection_aborted,
                  fmt::format("PE {} gave up: {} (its own message says why); nothing has moved", pe,
                              team_.explain(static_cast<std::errc>(published->error))));
    }
    all.push_back(*published);
  }
  for (std::size_t pe = 1; pe < all.size(); ++pe) {
    const bool same_plan = all[pe].plan == all[0].plan;
    if (!same_plan || all[pe].cache != all[0].cache) {
      return fail(std::errc::invalid_argument,
                  fmt::format("PE {} {}; nothing has moved", pe,
                              same_plan ? "means another cache than PE 0 (format, shape, element size or place in the "
                                          "symmetric heap)"
                                        : "has another plan than PE 0"));
    }
  }
  return {};
}

Result<void> TeamShuffle::shuffle(Prepared& call) {
  for (const PutCopies& to_pe : call.put) {
    to_pe.copies.share(
        0, 1, [&](std::byte* to, const std::byte* from, std::size_t size) { put(call, to_pe.pe, to, from, size); });
  }
  copier_.use_one_core(call.busy_on_node >= team_.processors());
  copier_.copy(call.queues);
  for (const StagingPass& pass : call.passes) {
    if (auto ok = pass_staged(call, pass); !ok) {
      return ok;
    }
  }
  // Other PEs may still copy what this PE sends, unless a pass has waited for them.
  if (call.clears && call.passes.empty()) {
    if (auto ok = sync_puts(call); !ok) {
      return ok;
    }
  }
  clear(call);
  return sync_puts(call);
}

Result<void> TeamShuffle::pass_staged(Prepared& call, const StagingPass& pass) {
  const Layout& layout = call.cache.layout;
  call.stage.clear();
  call.write.clear();
  std::byte* staged = staging_.data();
  for (std::size_t i = 0; i < call.staged.size(); ++i) {
    const auto& [k, by_put] = call.destinations[i];
    const auto source = static_cast<std::size_t>(call.staged[i].src_block) * layout.chunk + pass.offset;
    const auto destination = static_cast<std::size_t>(call.staged[i].dst_block) * layout.chunk + pass.offset;
    for (std::size_t plane = pass.first_plane; plane < pass.first_plane + pass.planes; ++plane) {
      std::byte* here = layout.plane(call.cache.place, plane);
      call.stage.add(staged, here + source, pass.size);
      if (!by_put) {
        call.write.add(k + (here - call.cache.place.k) + destination, staged, pass.size);
      }
      staged += pass.size;
    }
  }
  // All puts of the last pass have arrived: those of other PEs by the sync, those of this PE by its own finish().
  copier_.copy(call.stage);
  if (auto ok = sync_puts(call); !ok) {
    return ok;
  }
  put_staged(call, pass);
  copier_.copy(call.write);
  // The next pass uses the staging memory again. An Error is also that of the next sync.
  (void)finish_puts(call);
  return {};
}

/// The cores take the chunks in turn.
void TeamShuffle::clear(const Prepared& call) {
  const Layout& layout = call.cache.layout;
  const std::size_t chunks = call.cleared.size() * layout.planes;
  if (chunks == 0) {
    return;
  }
  copier_.run(chunks * layout.chunk, [&](int core, int cores) {
    for (auto i = static_cast<std::size_t>(core); i < chunks; i += static_cast<std::size_t>(cores)) {
      const auto block = static_cast<std::size_t>(call.cleared[i / layout.planes]);
      std::memset(layout.plane(call.cache.place, i % layout.planes) + block * layout.chunk, 0, layout.chunk);
    }
  });
}

}  // namespace shmem::kv
