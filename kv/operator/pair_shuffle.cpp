// SPDX-License-Identifier: Apache-2.0
#include "kv/operator/pair_shuffle.hpp"

#include <fmt/format.h>

#include <new>

#include "base/size_text.hpp"

namespace shmem::kv {
namespace {

constexpr std::errc kDifferent = std::errc::bad_message;

}  // namespace

PartnerWords PairShuffle::words_of(int pe) const {
  return PartnerWords::at(reinterpret_cast<SyncWord*>(team_.translate(words_, pe)), team_.size());
}

Pairing PairShuffle::pairing_with(int partner) const {
  // The words of a remote PE are named by this PE's.
  return {.me = team_.me(),
          .partner = partner,
          .cores = copier_.cores(),
          .mine = words_of(team_.me()),
          .theirs = words_of(team_.is_remote(partner) ? team_.me() : partner),
          .count = count_};
}

Result<CopyList> PairShuffle::list_copies(const CheckedCache& cache, const MovePlan& plan) const {
  CopyList copies{cache.layout, cache.place};
  if (auto ok = plan.check(team_.size(), cache.layout.blocks); !ok) {
    return ok.error();
  }
  const std::size_t chunk = cache.layout.chunk;
  std::byte* to = nullptr;
  for (const Move& move : plan.moves()) {
    if (to == nullptr) {
      const auto theirs = cache_of(cache, team_, static_cast<int>(move.dst_pe));
      if (!theirs) {
        return theirs.error();
      }
      to = theirs->k;
    }
    copies.add(to + static_cast<std::size_t>(move.dst_block) * chunk,
               cache.place.k + static_cast<std::size_t>(move.src_block) * chunk, chunk);
  }
  return copies;
}

Result<PairShuffle::Prepared> PairShuffle::prepare(const PairPlan& plan, const Cache& cache) const {
  const PairTable table = plan.table();
  if (table.pes() != team_.size() || plan.me() != team_.me()) {
    return fail(std::errc::invalid_argument,
                fmt::format("the plan is PE {}'s of {}, but this is PE {} of {}", plan.me(),
                            base::count(table.pes(), "PE"), team_.me(), team_.size()));
  }
  if (!plan.own()) {
    return plan.own().error();
  }
  const auto checked = check_cache(cache, team_);
  if (!checked) {
    return checked.error();
  }
  auto copies = list_copies(*checked, *plan.own());
  if (!copies) {
    return copies.error();
  }
  const int partner = static_cast<int>(table.peer(team_.me()));
  return Prepared{.role = table.role(team_.me()),
                  .pairing = pairing_with(partner),
                  .copies = *std::move(copies),
                  .v = checked->place.v,
                  .takes_puts = takes_puts(*checked, team_, partner),
                  .blocks = plan.own()->moves().size(),
                  .digest = plan.digest() ^ checked->digest,
                  .senders = table.senders()};
}

void PairShuffle::tell_partner(const PairTable& table, std::errc error) const {
  if (table.pes() != team_.size()) {
    return;  // the table does not say which PE the partner is
  }
  const std::int64_t peer = table.peer(team_.me());
  if (!table.in_range(peer) || peer == team_.me()) {
    return;
  }
  CoreGroup::Check no_check = [] { return std::errc{}; };
  SoloCore caller{policy_, no_check};
  // Both words: the partner waits for one of them, or for none.
  const Pairing pairing = pairing_with(static_cast<int>(peer));
  if (team_.is_remote(pairing.partner)) {
    // Errors are ignored: this PE reports a more important one.
    RemotePartner partner(team_, pairing);
    (void)partner.say_ready(error);
    (void)partner.say_not_sent(error);
    return;
  }
  say_ready(caller, pairing, error);
  say_not_sent(caller, pairing, error);
}

Result<void> PairShuffle::run(const PairPlan& plan, const Cache& cache) {
  ++count_;  // also in a call that fails, so that later calls match the partner's
  try {
    const auto prepared = prepare(plan, cache);
    if (prepared) {
      const auto report = team_.is_remote(prepared->pairing.partner) ? shuffle_remote(*prepared) : shuffle(*prepared);
      if (!report) {
        return fail(report.error().code, name_call() + name_part(*prepared) + report.error().text);
      }
      return report->stage == Report::Stage::kDone ? Result<void>{} : explain(*prepared, *report);
    }
    // A partner that sees the error itself does not read this.
    tell_partner(plan.table(), prepared.error().code);
    return fail(prepared.error().code, name_call() + prepared.error().text);
  } catch (const std::bad_alloc&) {
    tell_partner(plan.table(), std::errc::not_enough_memory);
    throw;
  }
}

/// The calling thread does all the waiting. The others are woken to copy.
Result<Report> PairShuffle::shuffle(const Prepared& call) {
  if (call.role == Role::kIdle) {
    return Report{};
  }
  CoreGroup::Check watch = team_.watch(call.pairing.partner);
  SoloCore caller{policy_, watch};
  if (call.role == Role::kSender) {
    return send(caller, call);
  }
  say_digest(caller, call.pairing, call.digest);
  say_ready(caller, call.pairing, std::errc{});
  const Report report = hear_done(caller, call.pairing);
  if (report.stage == Report::Stage::kWaiting) {
    say_ready(caller, call.pairing, report.error);  // not ready any more: a late sender must not begin
  }
  return report;
}

Result<Report> PairShuffle::send(SoloCore<CoreGroup::Check>& caller, const Prepared& call) {
  const Report report = hear_ready(caller, call.pairing);
  if (report.stage == Report::Stage::kDone && hear_digest(caller, call.pairing) != call.digest) {
    say_not_sent(caller, call.pairing, kDifferent);
    return Report{Report::Stage::kPartnerFailed, kDifferent};
  }
  if (report.stage != Report::Stage::kDone) {
    say_not_sent(caller, call.pairing, report.error);
    return report;
  }
  if (call.takes_puts) {
    const auto sent = put(caller, call);
    return sent ? Result<Report>(report) : sent.error();
  }
  copy(caller, call);
  return report;
}

/// Into private memory, by the calling thread.
Result<void> PairShuffle::put(SoloCore<CoreGroup::Check>& caller, const Prepared& call) {
  PrivatePuts puts(team_);
  call.copies.share(0, 1, [&](std::byte* to, const std::byte* from, std::size_t size) {
    puts.add(call.pairing.partner, to, from, size);
  });
  const Result<void>& sent = puts.finish();
  if (!sent) {
    say_not_sent(caller, call.pairing, sent.error().code);
    return sent;
  }
  say_done_by_all(caller, call.pairing);
  return {};
}

void PairShuffle::copy(SoloCore<CoreGroup::Check>& caller, const Prepared& call) {
  copier_.use_one_core(call.senders >= team_.processors());
  if (copier_.uses_one_core(call.copies.bytes())) {
    copier_.copy(call.copies);
    say_done_by_all(caller, call.pairing);
    return;
  }
  copier_.group().run([this, &call](ThreadCore& core) {
    copier_.copy_share(call.copies, core.index());
    say_done(core, call.pairing, core.index());
    return std::errc{};
  });
}

/// The calling thread does everything, because the time goes to the netcall.
Result<Report> PairShuffle::shuffle_remote(const Prepared& call) {
  if (call.role == Role::kIdle) {
    return Report{};
  }
  CoreGroup::Check watch = team_.watch(call.pairing.partner);
  SoloCore caller{policy_, watch};
  RemotePartner partner(team_, call.pairing);
  return call.role == Role::kSender ? send_remote(caller, partner, call) : receive_remote(caller, partner, call);
}

Result<Report> PairShuffle::receive_remote(SoloCore<CoreGroup::Check>& caller, RemotePartner& partner,
                                           const Prepared& call) {
  auto told = partner.say_digest(call.digest);
  if (told) {
    told = partner.say_ready(std::errc{});
  }
  if (!told) {
    return told.error();
  }
  const Report report = hear_done(caller, call.pairing);
  if (report.stage == Report::Stage::kWaiting) {
    (void)partner.say_ready(report.error);  // as on a node; fails if the partner is lost
  }
  return report;
}

Result<Report> PairShuffle::send_remote(SoloCore<CoreGroup::Check>& caller, RemotePartner& partner,
                                        const Prepared& call) {
  Report report = hear_ready(caller, call.pairing);
  if (report.stage == Report::Stage::kDone && hear_digest(caller, call.pairing) != call.digest) {
    report = {Report::Stage::kPartnerFailed, kDifferent};
  }
  if (report.stage != Report::Stage::kDone) {
    (void)partner.say_not_sent(report.error);
    return report;
  }
  RemotePuts puts(team_, call.v);
  call.copies.share(0, 1, [&](std::byte* to, const std::byte* from, std::size_t size) {
    puts.add(call.pairing.partner, to, from, size);
  });
  if (const auto& sent = puts.finish(); !sent) {
    (void)partner.say_not_sent(sent.error().code);
    return sent.error();
  }
  const auto said = partner.say_done();
  return said ? Result<Report>(report) : said.error();
}

std::string PairShuffle::name_call() const {
  return fmt::format("kv_shuffle: PE {}, call {} by pairs: ", team_.me(), count_);
}

std::string PairShuffle::name_part(const Prepared& call) const {
  return call.role == Role::kSender
             ? fmt::format("sending {} to PE {}: ", base::count(call.blocks, "block"), call.pairing.partner)
             : fmt::format("receiving from PE {}: ", call.pairing.partner);
}

Error PairShuffle::explain(const Prepared& call, const Report& report) const {
  const bool sends = call.role == Role::kSender;
  const int partner = call.pairing.partner;
  const std::string text = name_call() + name_part(call);
  switch (report.stage) {
    case Report::Stage::kPartnerFailed:
      if (report.error == kDifferent) {
        return fail(std::errc::invalid_argument, text + "the two have different pair tables or caches");
      }
      return fail(std::errc::connection_aborted, fmt::format("{}PE {} gave up: {} (its own message says why)", text,
                                                             partner, team_.explain(report.error)));
    case Report::Stage::kOutOfStep:
      return fail(report.error,
                  fmt::format("{}PE {} has gone on to a later call: all PEs make the same calls", text, partner));
    case Report::Stage::kWaiting:
    case Report::Stage::kDone:
      break;
  }
  return fail(report.error, fmt::format("{}waited for PE {}{}; {}", text, partner, sends ? " to be ready" : "'s blocks",
                                        team_.explain(report.error)));
}

}  // namespace shmem::kv
