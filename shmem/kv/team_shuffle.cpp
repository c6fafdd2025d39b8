// SPDX-License-Identifier: Apache-2.0
#include "shmem/kv/team_shuffle.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <new>

#include "shmem/kv/digest.hpp"

namespace shmem::kv {
namespace {

/// Where the caches of PEs are; looked for once for moves that follow each other.
class Places {
 public:
  Places(const SoundCache& cache, const Site& site) : cache_(cache), site_(site) {}

  Result<std::byte*> find(std::int64_t pe) {
    if (pe != pe_) {
      const auto place = cache_of(cache_, site_, static_cast<int>(pe));
      if (!place) {
        return tl::make_unexpected(place.error());
      }
      pe_ = pe;
      k_ = place->k;
    }
    return k_;
  }

 private:
  const SoundCache& cache_;
  const Site& site_;
  std::int64_t pe_ = -1;
  std::byte* k_ = nullptr;
};

}  // namespace

tl::unexpected<Error> TeamShuffle::failure(const Error& error) const {
  return fail(error.code,
              "kv_shuffle: PE " + std::to_string(site_.me) + ", call " + std::to_string(count_) + ": " + error.text);
}

Result<TeamShuffle::Work> TeamShuffle::prepare(const MovePlan* plan, const Cache& cache) {
  if (plan == nullptr) {
    return fail(std::errc::invalid_argument, "plan is NULL");
  }
  const auto sound = check_cache(cache, site_);
  if (!sound) {
    return tl::make_unexpected(sound.error());
  }
  if (auto ok = plan->check(site_.pes, sound->layout.blocks); !ok) {
    return tl::make_unexpected(ok.error());
  }
  Work work{*sound,
            {},
            {},
            {},
            {},
            {},
            {},
            {},
            plan->cleared(site_.me),
            plan->clears(),
            std::min(plan->pes(), site_.pes_here),
            FarPuts(site_.far.get())};
  std::vector<int> senders{site_.me};
  for (const int pe : plan->sources_of(site_.me)) {
    if (pe != site_.me && !site_.is_far(pe)) {
      senders.push_back(pe);
    }
  }
  for (const int pe : senders) {
    auto direct = list_direct(*plan, *sound, pe);
    if (!direct) {
      return tl::make_unexpected(direct.error());
    }
    work.direct.push_back(*std::move(direct));
  }
  if (auto ok = list_far(*plan, work); !ok) {
    return tl::make_unexpected(ok.error());
  }
  if (auto ok = find_staged(*plan, work); !ok) {
    return tl::make_unexpected(ok.error());
  }
  return work;
}

/// What `pe`, which is on this node, sends at once to PEs that are, too.
Result<CommonCopies> TeamShuffle::list_direct(const MovePlan& plan, const SoundCache& cache, int pe) const {
  CommonCopies list{CopyList{cache.layout, cache.place}, pe == site_.me, &proposal_of(pe).taken};
  const auto from = cache_of(cache, site_, pe);
  if (!from) {
    return tl::make_unexpected(from.error());
  }
  Places places{cache, site_};
  const std::size_t chunk = cache.layout.chunk;
  for (const Move& move : plan.direct(pe)) {
    if (site_.is_far(static_cast<int>(move.destination_pe))) {
      continue;
    }
    const auto to = places.find(move.destination_pe);
    if (!to) {
      return tl::make_unexpected(to.error());
    }
    list.copies.add(*to + static_cast<std::size_t>(move.destination_block) * chunk,
                    from->k + static_cast<std::size_t>(move.source_block) * chunk, chunk);
  }
  return list;
}

Result<void> TeamShuffle::list_far(const MovePlan& plan, Work& work) const {
  if (site_.far == nullptr) {
    return {};
  }
  const SoundCache& cache = work.cache;
  const std::size_t chunk = cache.layout.chunk;
  for (const Move& move : plan.direct(site_.me)) {
    const int pe = static_cast<int>(move.destination_pe);
    if (!site_.is_far(pe)) {
      continue;
    }
    // Moves are sorted by source, destination PE and block.
    if (work.far.empty() || work.far.back().pe != pe) {
      if (const auto there = cache_of(cache, site_, pe); !there) {
        return tl::make_unexpected(there.error());
      }
      work.far.push_back({pe, CopyList{cache.layout, cache.place}});
    }
    work.far.back().copies.add(cache.place.k + static_cast<std::size_t>(move.destination_block) * chunk,
                               cache.place.k + static_cast<std::size_t>(move.source_block) * chunk, chunk);
  }
  return {};
}

Result<void> TeamShuffle::find_staged(const MovePlan& plan, Work& work) {
  work.windows = windows_of(work.cache.layout, plan.most_staged(), staging_room_);
  work.staged = plan.staged(site_.me);
  if (work.staged.empty()) {
    return {};  // the windows are there: the others' syncs are this PE's, too
  }
  Places places{work.cache, site_};
  for (const Move& move : work.staged) {
    const auto to = places.find(move.destination_pe);
    if (!to) {
      return tl::make_unexpected(to.error());
    }
    work.staged_to.push_back(*to);
  }
  const std::size_t stretches = work.staged.size() * work.windows.front().planes;
  work.stage.reserve(stretches);
  work.write.reserve(stretches);
  return staging_.reserve(work.staged.size() * work.windows.front().bytes());
}

Result<void> TeamShuffle::run(const MovePlan* plan, const Cache& cache) {
  ++count_;
  if (broken_) {
    return failure({broken_->code, "an earlier call ended in the middle: " + broken_->text});
  }
  Result<Work> work;
  try {
    work = prepare(plan, cache);
  } catch (const std::bad_alloc&) {
    work = fail(std::errc::not_enough_memory, "out of memory");
  }
  if (auto ok = agree(plan, work); !ok) {
    return failure(ok.error());
  }
  if (auto ok = shuffle(*work); !ok) {
    if (site_.far != nullptr) {
      broken_ = ok.error();
    }
    return failure(ok.error());
  }
  return {};
}

Result<void> TeamShuffle::agree(const MovePlan* plan, const Result<Work>& mine) {
  Proposal& proposal = proposal_of(site_.me);
  proposal.error.store(mine ? 0 : static_cast<std::uint64_t>(mine.error().code), std::memory_order_relaxed);
  proposal.plan.store(mine ? plan->digest() : 0, std::memory_order_relaxed);
  proposal.cache.store(mine ? mine->cache.digest : 0, std::memory_order_relaxed);
  proposal.taken.store(0, std::memory_order_relaxed);
  auto met = come_to_agree(mine, proposal);
  if (!met) {
    // This PE has come: who comes late meets it, and must not begin without it.
    proposal.error.store(static_cast<std::uint64_t>(met.error().code), std::memory_order_relaxed);
    return met;
  }
  if (!mine) {
    return tl::make_unexpected(mine.error());
  }
  return site_.far != nullptr && all_agree_ ? Result<void>{} : compare();
}

/// Between nodes the vote says whether all have said the same; one by one they are asked only if not.
Result<void> TeamShuffle::come_to_agree(const Result<Work>& mine, const Proposal& proposal) {
  if (site_.far == nullptr) {
    return site_.sync();
  }
  Digest digest;
  digest.add(static_cast<std::int64_t>(proposal.plan.load(std::memory_order_relaxed)));
  digest.add(static_cast<std::int64_t>(proposal.cache.load(std::memory_order_relaxed)));
  const auto vote = site_.far->vote(digest.value(), mine.has_value());
  if (!vote) {
    return tl::make_unexpected(vote.error());
  }
  all_agree_ = vote->alike && vote->willing;
  return {};
}

Result<TeamShuffle::Said> TeamShuffle::said_by(int pe) const {
  if (!site_.is_far(pe)) {
    const Proposal& proposal = proposal_of(pe);
    return Said{proposal.error.load(std::memory_order_relaxed), proposal.plan.load(std::memory_order_relaxed),
                proposal.cache.load(std::memory_order_relaxed)};
  }
  Said said{};
  static_assert(std::is_standard_layout_v<Proposal> && offsetof(Proposal, error) == 0 &&
                offsetof(Proposal, plan) == offsetof(Said, plan) && offsetof(Proposal, cache) == offsetof(Said, cache));
  const auto got = site_.far->get(&said, &proposals_[count_ % kProposals], pe, sizeof said);
  return got ? Result<Said>(said) : tl::make_unexpected(got.error());
}

/// All PEs come to the same, as all see the same proposals.
Result<void> TeamShuffle::compare() const {
  std::vector<Said> all;
  for (int pe = 0; pe < site_.pes; ++pe) {
    const auto said = said_by(pe);
    if (!said) {
      return tl::make_unexpected(said.error());
    }
    if (said->error != 0) {
      return fail(std::errc::connection_aborted, "PE " + std::to_string(pe) +
                                                     " gave up: " + message(static_cast<std::errc>(said->error)) +
                                                     " (its own message says why); nothing has moved");
    }
    all.push_back(*said);
  }
  for (std::size_t pe = 1; pe < all.size(); ++pe) {
    const bool same_plan = all[pe].plan == all[0].plan;
    if (!same_plan || all[pe].cache != all[0].cache) {
      return fail(std::errc::invalid_argument,
                  "PE " + std::to_string(pe) +
                      (same_plan ? " means another cache than PE 0 (format, shape, element size "
                                   "or place in the symmetric heap)"
                                 : " has another plan than PE 0") +
                      "; nothing has moved");
    }
  }
  return {};
}

Result<void> TeamShuffle::shuffle(Work& work) {
  for (const FarCopies& some : work.far) {
    some.copies.share(
        0, 1, [&](std::byte* to, const std::byte* from, std::size_t size) { work.puts.add(some.pe, to, from, size); });
  }
  copier_.set_alone(work.pes >= site_.processors);
  copier_.copy(work.direct);
  for (const Window& window : work.windows) {
    if (auto ok = pass_staged(work, window); !ok) {
      return ok;
    }
  }
  // Others may be copying what this PE sends; the syncs of windows have waited for them.
  if (work.clears && work.windows.empty()) {
    if (auto ok = meet(work); !ok) {
      return ok;
    }
  }
  clear(work);
  return meet(work);
}

/// A sync: what all have sent before is there, or all get an Error.
Result<void> TeamShuffle::meet(Work& work) {
  if (site_.far == nullptr) {
    return site_.sync();
  }
  const Result<void>& sent = work.puts.finish();
  const auto vote = site_.far->vote(0, sent.has_value());
  if (!sent || !vote) {
    return tl::make_unexpected(sent ? vote.error() : sent.error());
  }
  if (!vote->willing) {
    return fail(std::errc::connection_aborted, "PE " + std::to_string(vote->other) +
                                                   " could not send its blocks to another node (its own message says "
                                                   "why)");
  }
  return {};
}

Result<void> TeamShuffle::pass_staged(Work& work, const Window& window) {
  const Layout& layout = work.cache.layout;
  work.stage.clear();
  work.write.clear();
  std::byte* staged = staging_.data();
  for (std::size_t i = 0; i < work.staged.size(); ++i) {
    const bool far = site_.is_far(static_cast<int>(work.staged[i].destination_pe));
    const auto source = static_cast<std::size_t>(work.staged[i].source_block) * layout.chunk + window.offset;
    const auto destination = static_cast<std::size_t>(work.staged[i].destination_block) * layout.chunk + window.offset;
    for (std::size_t plane = window.first_plane; plane < window.first_plane + window.planes; ++plane) {
      std::byte* here = layout.plane(work.cache.place, plane);
      work.stage.add(staged, here + source, window.size);
      if (!far) {
        work.write.add(work.staged_to[i] + (here - work.cache.place.k) + destination, staged, window.size);
      }
      staged += window.size;
    }
  }
  // What others put here in the last window has come, as its senders have said; what this PE put has left.
  copier_.copy(work.stage);
  if (auto ok = meet(work); !ok) {
    return ok;
  }
  put_staged(work, window);
  copier_.copy(work.write);
  // The staging memory is the next window's.
  work.puts.finish();
  return {};
}

/// What of a window goes to other nodes, from where pass_staged() has put it.
void TeamShuffle::put_staged(Work& work, const Window& window) {
  if (site_.far == nullptr) {
    return;
  }
  const Layout& layout = work.cache.layout;
  const std::byte* staged = staging_.data();
  for (const Move& move : work.staged) {
    const int pe = static_cast<int>(move.destination_pe);
    const auto destination = static_cast<std::size_t>(move.destination_block) * layout.chunk + window.offset;
    for (std::size_t plane = window.first_plane; plane < window.first_plane + window.planes; ++plane) {
      if (site_.is_far(pe)) {
        work.puts.add(pe, layout.plane(work.cache.place, plane) + destination, staged, window.size);
      }
      staged += window.size;
    }
  }
}

/// The cores take the chunks in turn.
void TeamShuffle::clear(const Work& work) {
  const Layout& layout = work.cache.layout;
  const std::size_t chunks = work.cleared.size() * layout.planes;
  if (chunks == 0) {
    return;
  }
  copier_.run(chunks * layout.chunk, [&](int core, int cores) {
    for (auto i = static_cast<std::size_t>(core); i < chunks; i += static_cast<std::size_t>(cores)) {
      const auto block = static_cast<std::size_t>(work.cleared[i / layout.planes]);
      std::memset(layout.plane(work.cache.place, i % layout.planes) + block * layout.chunk, 0, layout.chunk);
    }
  });
}

}  // namespace shmem::kv
