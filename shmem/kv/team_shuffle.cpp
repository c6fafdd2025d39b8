// SPDX-License-Identifier: Apache-2.0
#include "shmem/kv/team_shuffle.hpp"

#include <cstring>
#include <new>

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
  Work work{*sound, {}, {}, {}, {}, {}, {}, plan->cleared(site_.me), plan->clears(), plan->pes()};
  std::vector<int> senders{site_.me};
  for (const int pe : plan->sources_of(site_.me)) {
    if (pe != site_.me) {
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
  if (auto ok = find_staged(*plan, work); !ok) {
    return tl::make_unexpected(ok.error());
  }
  return work;
}

/// What `pe` sends at once.
Result<CommonCopies> TeamShuffle::list_direct(const MovePlan& plan, const SoundCache& cache, int pe) const {
  CommonCopies list{CopyList{cache.layout, cache.place}, pe == site_.me, &proposal_of(pe).taken};
  const auto from = cache_of(cache, site_, pe);
  if (!from) {
    return tl::make_unexpected(from.error());
  }
  Places places{cache, site_};
  const std::size_t chunk = cache.layout.chunk;
  for (const Move& move : plan.direct(pe)) {
    const auto to = places.find(move.destination_pe);
    if (!to) {
      return tl::make_unexpected(to.error());
    }
    list.copies.add(*to + static_cast<std::size_t>(move.destination_block) * chunk,
                    from->k + static_cast<std::size_t>(move.source_block) * chunk, chunk);
  }
  return list;
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
  auto met = site_.sync();
  if (!met) {
    // This PE has come: who comes late meets it, and must not begin without it.
    proposal.error.store(static_cast<std::uint64_t>(met.error().code), std::memory_order_relaxed);
    return met;
  }
  return mine ? compare() : tl::make_unexpected(mine.error());
}

/// All PEs come to the same, as all see the same proposals.
Result<void> TeamShuffle::compare() const {
  for (int pe = 0; pe < site_.pes; ++pe) {
    if (const auto error = proposal_of(pe).error.load(std::memory_order_relaxed); error != 0) {
      return fail(std::errc::connection_aborted, "PE " + std::to_string(pe) +
                                                     " gave up: " + message(static_cast<std::errc>(error)) +
                                                     " (its own message says why); nothing has moved");
    }
  }
  const Proposal& first = proposal_of(0);
  for (int pe = 1; pe < site_.pes; ++pe) {
    const Proposal& other = proposal_of(pe);
    const bool same_plan = other.plan.load(std::memory_order_relaxed) == first.plan.load(std::memory_order_relaxed);
    if (!same_plan || other.cache.load(std::memory_order_relaxed) != first.cache.load(std::memory_order_relaxed)) {
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
  copier_.set_alone(work.pes >= site_.processors);
  copier_.copy(work.direct);
  for (const Window& window : work.windows) {
    if (auto ok = pass_staged(work, window); !ok) {
      return ok;
    }
  }
  // Others may be copying what this PE sends; the syncs of windows have waited for them.
  if (work.clears && work.windows.empty()) {
    if (auto ok = site_.sync(); !ok) {
      return ok;
    }
  }
  clear(work);
  return site_.sync();
}

Result<void> TeamShuffle::pass_staged(Work& work, const Window& window) {
  const Layout& layout = work.cache.layout;
  work.stage.clear();
  work.write.clear();
  std::byte* staged = staging_.data();
  for (std::size_t i = 0; i < work.staged.size(); ++i) {
    const auto source = static_cast<std::size_t>(work.staged[i].source_block) * layout.chunk + window.offset;
    const auto destination = static_cast<std::size_t>(work.staged[i].destination_block) * layout.chunk + window.offset;
    for (std::size_t plane = window.first_plane; plane < window.first_plane + window.planes; ++plane) {
      std::byte* here = layout.plane(work.cache.place, plane);
      work.stage.add(staged, here + source, window.size);
      work.write.add(work.staged_to[i] + (here - work.cache.place.k) + destination, staged, window.size);
      staged += window.size;
    }
  }
  copier_.copy(work.stage);
  if (auto ok = site_.sync(); !ok) {
    return ok;
  }
  copier_.copy(work.write);
  return {};
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
