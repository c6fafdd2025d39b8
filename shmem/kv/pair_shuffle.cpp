// SPDX-License-Identifier: Apache-2.0
#include "shmem/kv/pair_shuffle.hpp"

#include <new>

namespace shmem::kv {
namespace {

constexpr std::errc kDifferent = std::errc::bad_message;

}  // namespace

PairWords PairShuffle::words_of(int pe) const {
  return PairWords::at(reinterpret_cast<SyncWord*>(site_.translate(words_, pe)), site_.pes);
}

Pairing PairShuffle::pairing_with(int partner) const {
  // Of a PE on another node, its words are said by this one's, as Far has it.
  return {site_.me, partner, copier_.cores(), words_of(site_.me), words_of(site_.is_far(partner) ? site_.me : partner),
          count_};
}

Result<CopyList> PairShuffle::list_copies(const SoundCache& cache, const MovePlan& plan) const {
  CopyList copies{cache.layout, cache.place};
  if (auto ok = plan.check(site_.pes, cache.layout.blocks); !ok) {
    return tl::make_unexpected(ok.error());
  }
  const std::size_t chunk = cache.layout.chunk;
  std::byte* to = nullptr;
  for (const Move& move : plan.moves()) {
    if (to == nullptr) {
      const auto theirs = cache_of(cache, site_, static_cast<int>(move.destination_pe));
      if (!theirs) {
        return tl::make_unexpected(theirs.error());
      }
      to = theirs->k;
    }
    copies.add(to + static_cast<std::size_t>(move.destination_block) * chunk,
               cache.place.k + static_cast<std::size_t>(move.source_block) * chunk, chunk);
  }
  return copies;
}

Result<PairShuffle::Work> PairShuffle::prepare(const TablePlan& plan, const Cache& cache) const {
  const PairTable table = plan.table();
  if (table.pes() != site_.pes || plan.me() != site_.me) {
    return fail(std::errc::invalid_argument, "the plan is PE " + std::to_string(plan.me()) + "'s of " +
                                                 std::to_string(table.pes()) + " PEs, but this is PE " +
                                                 std::to_string(site_.me) + " of " + std::to_string(site_.pes));
  }
  if (!plan.own()) {
    return tl::make_unexpected(plan.own().error());
  }
  const auto sound = check_cache(cache, site_);
  if (!sound) {
    return tl::make_unexpected(sound.error());
  }
  auto copies = list_copies(*sound, *plan.own());
  if (!copies) {
    return tl::make_unexpected(copies.error());
  }
  const int partner = static_cast<int>(table.peer(site_.me));
  return Work{table.role(site_.me),       pairing_with(partner),         *std::move(copies),
              plan.own()->moves().size(), plan.digest() ^ sound->digest, table.senders()};
}

void PairShuffle::tell_partner(const PairTable& table, std::errc error) const {
  if (table.pes() != site_.pes) {
    return;  // nobody can say who that is
  }
  const std::int64_t peer = table.peer(site_.me);
  if (!table.in_range(peer) || peer == site_.me) {
    return;
  }
  CoreGroup::Check nobody = [] { return std::errc{}; };
  SoloCore caller{policy_, nobody};
  // Whichever of the two it waits for, if it waits at all.
  const Pairing pairing = pairing_with(static_cast<int>(peer));
  if (site_.is_far(pairing.partner)) {
    // What this PE has to say itself is more than that it could not be told.
    FarPartner partner(*site_.far, pairing);
    (void)partner.say_ready(error);
    (void)partner.say_not_sent(error);
    return;
  }
  say_ready(caller, pairing, error);
  say_not_sent(caller, pairing, error);
}

Result<void> PairShuffle::run(const TablePlan& plan, const Cache& cache) {
  ++count_;  // also when the call fails: the partner's does, and the next ones must meet again
  try {
    const auto prepared = prepare(plan, cache);
    if (prepared) {
      const auto report = site_.is_far(prepared->pairing.partner) ? shuffle_far(*prepared) : shuffle(*prepared);
      if (!report) {
        return fail(report.error().code, name_call() + name_part(*prepared) + report.error().text);
      }
      return report->stage == Report::Stage::kDone ? Result<void>{} : explain(*prepared, *report);
    }
    // The partner may not see what is wrong; if he does, he does not look at this.
    tell_partner(plan.table(), prepared.error().code);
    return fail(prepared.error().code, name_call() + prepared.error().text);
  } catch (const std::bad_alloc&) {
    tell_partner(plan.table(), std::errc::not_enough_memory);
    throw;
  }
}

/// The calling thread does all the waiting; the others are woken when there is something to copy.
Report PairShuffle::shuffle(const Work& work) {
  if (work.role == Role::kIdle) {
    return {};
  }
  CoreGroup::Check watch = site_.watch(work.pairing.partner);
  SoloCore caller{policy_, watch};
  if (work.role == Role::kSender) {
    return send(caller, work);
  }
  say_digest(caller, work.pairing, work.digest);
  say_ready(caller, work.pairing, std::errc{});
  const Report report = hear_done(caller, work.pairing);
  if (report.stage == Report::Stage::kWaiting) {
    say_ready(caller, work.pairing, report.error);  // it is no longer: a sender that comes late must not begin
  }
  return report;
}

Report PairShuffle::send(SoloCore<CoreGroup::Check>& caller, const Work& work) {
  const Report report = hear_ready(caller, work.pairing);
  if (report.stage == Report::Stage::kDone && hear_digest(caller, work.pairing) != work.digest) {
    say_not_sent(caller, work.pairing, kDifferent);
    return {Report::Stage::kPartnerFailed, kDifferent};
  }
  if (report.stage != Report::Stage::kDone) {
    say_not_sent(caller, work.pairing, report.error);
    return report;
  }
  copy(caller, work);
  return {};
}

void PairShuffle::copy(SoloCore<CoreGroup::Check>& caller, const Work& work) {
  copier_.set_alone(work.senders >= site_.processors);
  if (copier_.is_alone(work.copies.bytes())) {
    copier_.copy(work.copies);
    for (int core = work.pairing.cores - 1; core >= 0; --core) {
      say_done(caller, work.pairing, core);  // the last one first, as in say_not_sent
    }
    return;
  }
  copier_.group().run([this, &work](ThreadCore& core) {
    copier_.copy_share(work.copies, core.index());
    say_done(core, work.pairing, core.index());
    return std::errc{};
  });
}

/// The calling thread does all: what there is to wait for is the network.
Result<Report> PairShuffle::shuffle_far(const Work& work) {
  if (work.role == Role::kIdle) {
    return Report{};
  }
  CoreGroup::Check watch = site_.watch(work.pairing.partner);
  SoloCore caller{policy_, watch};
  FarPartner partner(*site_.far, work.pairing);
  return work.role == Role::kSender ? send_far(caller, partner, work) : receive_far(caller, partner, work);
}

Result<Report> PairShuffle::receive_far(SoloCore<CoreGroup::Check>& caller, FarPartner& partner, const Work& work) {
  auto told = partner.say_digest(work.digest);
  if (told) {
    told = partner.say_ready(std::errc{});
  }
  if (!told) {
    return tl::make_unexpected(told.error());
  }
  const Report report = hear_done(caller, work.pairing);
  if (report.stage == Report::Stage::kWaiting) {
    (void)partner.say_ready(report.error);  // as on a node; a partner that is lost hears nothing
  }
  return report;
}

Result<Report> PairShuffle::send_far(SoloCore<CoreGroup::Check>& caller, FarPartner& partner, const Work& work) {
  Report report = hear_ready(caller, work.pairing);
  if (report.stage == Report::Stage::kDone && hear_digest(caller, work.pairing) != work.digest) {
    report = {Report::Stage::kPartnerFailed, kDifferent};
  }
  if (report.stage != Report::Stage::kDone) {
    (void)partner.say_not_sent(report.error);
    return report;
  }
  FarPuts puts(site_.far.get());
  work.copies.share(0, 1, [&](std::byte* to, const std::byte* from, std::size_t size) {
    puts.add(work.pairing.partner, to, from, size);
  });
  if (const auto& sent = puts.finish(); !sent) {
    (void)partner.say_not_sent(sent.error().code);
    return tl::make_unexpected(sent.error());
  }
  const auto said = partner.say_done();
  return said ? Result<Report>(report) : tl::make_unexpected(said.error());
}

std::string PairShuffle::name_call() const {
  return "kv_shuffle: PE " + std::to_string(site_.me) + ", call " + std::to_string(count_) + " by pairs: ";
}

std::string PairShuffle::name_part(const Work& work) const {
  return (work.role == Role::kSender ? "sending " + std::to_string(work.blocks) + " blocks to PE "
                                     : std::string("receiving from PE ")) +
         std::to_string(work.pairing.partner) + ": ";
}

tl::unexpected<Error> PairShuffle::explain(const Work& work, const Report& report) const {
  const bool sends = work.role == Role::kSender;
  const std::string partner = "PE " + std::to_string(work.pairing.partner);
  const std::string text = name_call() + name_part(work);
  switch (report.stage) {
    case Report::Stage::kPartnerFailed:
      if (report.error == kDifferent) {
        return fail(std::errc::invalid_argument, text + "the two have different pair tables or caches");
      }
      return fail(std::errc::connection_aborted,
                  text + partner + " gave up: " + message(report.error) + " (its own message says why)");
    case Report::Stage::kOutOfStep:
      return fail(report.error, text + partner + " has gone on to a later call: all PEs make the same calls");
    case Report::Stage::kWaiting:
    case Report::Stage::kDone:
      break;
  }
  const bool ended = report.error == std::errc::operation_canceled;
  return fail(report.error, text + "waited for " + partner + (sends ? " to be ready; " : "'s blocks; ") +
                                message(report.error) + (ended ? ": " + site_.why_ended() : ""));
}

}  // namespace shmem::kv
