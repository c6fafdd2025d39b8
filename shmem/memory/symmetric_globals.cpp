// SPDX-License-Identifier: Apache-2.0
#include "shmem/memory/symmetric_globals.hpp"

#include <algorithm>
#include <array>

#include "shmem/bootstrap/allgather.hpp"
#include "shmem/memory/size_text.hpp"

namespace shmem {

namespace {

/// Why a PE does not share its globals; empty: it does.
using Reason = std::array<char, 200>;

Reason reason_of(const std::string& text) {
  Reason reason{};
  text.copy(reason.data(), reason.size() - 1);
  return reason;
}

/// What a PE tells the others of its globals.
struct Facts {
  std::uint64_t identity;
  std::uint64_t size;
  Reason why_not;
};

/// The first PE's reason, with its number.
template <typename T, typename ReasonOf>
std::string first_reason(const std::vector<T>& all, ReasonOf reason_of_pe) {
  for (std::size_t pe = 0; pe < all.size(); ++pe) {
    const Reason& reason = reason_of_pe(all[pe]);
    if (reason[0] != '\0') return "PE " + std::to_string(pe) + ": " + reason.data();
  }
  return "";
}

}  // namespace

Result<SymmetricGlobals> SymmetricGlobals::plan(Bootstrap& bootstrap, const GlobalImage& image,
                                                const std::string& why_not) {
  const auto all = allgather(bootstrap, Facts{image.identity, image.size(), reason_of(why_not)});
  if (!all) return tl::make_unexpected(all.error());
  SymmetricGlobals globals;
  globals.why_not_ = first_reason(*all, [](const Facts& facts) -> const Reason& { return facts.why_not; });
  if (!globals.why_not_.empty()) return globals;
  for (const Facts& facts : *all) {
    globals.stride_ = std::max<std::size_t>(globals.stride_, facts.size);
    globals.same_.push_back(facts.identity == image.identity);
  }
  globals.all_same_ = std::find(globals.same_.begin(), globals.same_.end(), false) == globals.same_.end();
  globals.me_ = bootstrap.rank();
  globals.ranges_ = image.ranges;
  return globals;
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
  const auto all = allgather(bootstrap, reason_of(problem));
  if (all && why_not_.empty())
    why_not_ = first_reason(*all, [](const Reason& reason) -> const Reason& { return reason; });
  if (!all || !why_not_.empty()) {
    release();
    return all ? Result<void>() : tl::make_unexpected(all.error());
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
  for (const Entry& entry : entries_) size += entry.size;
  return std::to_string(entries_.size()) + (entries_.size() == 1 ? " range, " : " ranges, ") + size_text(size);
}

bool SymmetricGlobals::differs(const void* mine, int pe) const {
  return locate(mine, me_).address != nullptr && !same_[static_cast<std::size_t>(pe)];
}

}  // namespace shmem
