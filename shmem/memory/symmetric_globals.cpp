// SPDX-License-Identifier: Apache-2.0
#include "shmem/memory/symmetric_globals.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/size_text.hpp"
#include "shmem/bootstrap/allgather.hpp"

namespace shmem {

namespace {

/// Why a PE does not share its globals; empty: it does.
using Reason = std::array<char, 200>;

std::optional<Reason> reason_of(const std::string& text) {
  if (text.empty()) {
    return std::nullopt;
  }
  Reason reason{};
  text.copy(reason.data(), reason.size() - 1);
  return reason;
}

/// A PE's description of its globals for the other PEs.
struct Facts {
  std::uint64_t identity;
  std::uint64_t size;
  std::uint64_t has_reason;  // 1: not to share them
};

/// Collective: the first PE's reason, with its number; empty if no PE has one.
Result<std::string> first_reason(Bootstrap& bootstrap, const std::string& mine) {
  const auto first = first_of(bootstrap, reason_of(mine));
  if (!first) {
    return first.error();
  }
  if (!*first) {
    return std::string();
  }
  return fmt::format("PE {}: {}", (*first)->pe, (*first)->what.data());
}

}  // namespace

Result<SymmetricGlobals> SymmetricGlobals::plan(Bootstrap& bootstrap, const GlobalImage& image,
                                                const std::string& why_not) {
  SymmetricGlobals globals;
  const auto all = allgather(bootstrap, Facts{image.identity, image.size(), why_not.empty() ? 0U : 1U});
  if (!all) {
    return all.error();
  }
  if (std::ranges::any_of(*all, [](const Facts& facts) { return facts.has_reason != 0; })) {
    const auto reason = first_reason(bootstrap, why_not);
    if (!reason) {
      return reason.error();
    }
    globals.why_not_ = *reason;
    return globals;
  }
  globals.why_not_.clear();
  for (const Facts& facts : *all) {
    globals.stride_ = std::max<std::size_t>(globals.stride_, facts.size);
    globals.same_.push_back(facts.identity == image.identity);
  }
  globals.all_same_ = std::find(globals.same_.begin(), globals.same_.end(), false) == globals.same_.end();
  globals.me_ = bootstrap.rank();
  globals.ranges_ = image.ranges;
  return globals;
}

void SymmetricGlobals::only_here(const std::vector<int>& here) {
  if (same_.empty()) {
    return;
  }
  same_everywhere_ = std::exchange(same_, {});
  for (const int pe : here) {
    same_.push_back(same_everywhere_[static_cast<std::size_t>(pe)]);
  }
  me_ = static_cast<int>(std::find(here.begin(), here.end(), me_) - here.begin());
}

Result<void> SymmetricGlobals::share(Bootstrap& bootstrap, const NodeMemory& memory) {
  std::string problem;
  if (stride_ > 0) {
    auto swap = GlobalSwap::begin(ranges_, memory.file(), memory.globals_offset(me_));
    if (swap) {
      swap_ = *std::move(swap);
    } else {
      problem = swap.error().text;
    }
  }
  const auto reason = first_reason(bootstrap, problem);
  if (reason && why_not_.empty()) {
    why_not_ = *reason;
  }
  if (!reason || !why_not_.empty()) {
    release();
    return reason ? Result<void>() : reason.error();
  }
  std::size_t offset = 0;
  for (const GlobalRange& range : ranges_) {
    entries_.push_back({reinterpret_cast<std::uintptr_t>(range.begin), range.size, offset});
    offset += range.size;
  }
  first_ = memory.globals(0);
  return {};
}

void SymmetricGlobals::release() {
  entries_.clear();
  swap_.reset();
}

std::string SymmetricGlobals::describe() const {
  std::size_t size = 0;
  for (const Entry& entry : entries_) {
    size += entry.size;
  }
  return fmt::format("{}{}{}", entries_.size(), entries_.size() == 1 ? " range, " : " ranges, ", base::size_text(size));
}

bool SymmetricGlobals::differs(const void* mine, int pe) const {
  const std::vector<bool>& same = same_everywhere_.empty() ? same_ : same_everywhere_;
  return locate(mine, me_).address != nullptr && !same[static_cast<std::size_t>(pe)];
}

}  // namespace shmem
