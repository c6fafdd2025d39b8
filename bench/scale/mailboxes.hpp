// SPDX-License-Identifier: Apache-2.0
// The words of all members, as an engine sees them: what has been stored for whom, when, and by which way.
#pragma once

#include <stdexcept>
#include <vector>

#include "bench/scale/parameters.hpp"
#include "bench/scale/program.hpp"

namespace scale {

/// How a word was stored, which says what it costs to read.
enum class Way { kLine, kNetwork, kSwitch };

/// Two sets, by turns, as a member may be told of the next barrier before it has left this one.
class Mailboxes {
 public:
  /// `sets`: 1 is enough for one barrier.
  Mailboxes(const Program& program, int sets) : sets_(static_cast<std::size_t>(sets)) {
    std::size_t words = 0;
    for (int member = 0; member < program.members(); ++member) {
      first_.push_back(words);
      words += static_cast<std::size_t>(program.words(member));
    }
    mail_.resize(sets_ * words);
    counters_.resize(sets_ * kCounters * static_cast<std::size_t>(program.members()));
  }

  struct Mail {
    Time stored = kNever;
    Way way = Way::kLine;
    int from = -1;  // the processor
  };
  static constexpr Time kNever = -1;

  [[nodiscard]] Mail& mail(int member, int word, int barrier) {
    const std::size_t place = first_[static_cast<std::size_t>(member)] + static_cast<std::size_t>(word);
    return mail_[sets_ * place + set_of(barrier)];
  }
  void store(int member, int word, int barrier, const Mail& what) {
    Mail& place = mail(member, word, barrier);
    if (place.stored != kNever) throw std::logic_error("a member is told twice of one barrier");
    place = what;
  }
  /// One more at the counter of this step: true for the one that makes it complete.
  bool count(const Step& step, int barrier) {
    const std::size_t place =
        kCounters * static_cast<std::size_t>(step.first) + static_cast<std::size_t>(step.word) % kCounters;
    int& counter = counters_[sets_ * place + set_of(barrier)];
    if (++counter < step.expected) return false;
    counter = 0;
    return true;
  }

 private:
  static constexpr std::size_t kCounters = 4;  // of a member: gathering, and two of the switch behind it

  [[nodiscard]] std::size_t set_of(int barrier) const { return static_cast<std::size_t>(barrier) % sets_; }

  std::size_t sets_;
  std::vector<std::size_t> first_;
  std::vector<Mail> mail_;
  std::vector<int> counters_;
};

/// Calls visit(member) for each receiver of a step of `teller`.
template <typename Visit>
void for_receivers(const Step& step, int teller, Visit visit) {
  if (step.stride == 0) {
    for (int i = step.count; i-- > 0;) visit(teller + (1 << i));
    return;
  }
  const int after = teller >= step.first ? (teller - step.first) / step.stride + 1 : 0;
  for (int i = 0; i < step.count; ++i) {
    const int receiver = step.first + (after + i) % step.count * step.stride;
    if (receiver != teller) visit(receiver);
  }
}

}  // namespace scale
