// SPDX-License-Identifier: Apache-2.0
#include "tools/scale/algorithms.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <utility>

namespace scale {
namespace {

Step signal(int receiver, int word) {
  return {.action = Action::kSignal, .word = word, .first = receiver};
}

Step await(int word) {
  return {.action = Action::kAwait, .word = word};
}

/// ceil(log2(n)).
int rounds(int n) {
  return static_cast<int>(std::bit_width(static_cast<unsigned>(n) - 1));
}

/// With radix 2 it is npu_v1 and dissemination, with a larger radix npu_v2.
class Dissemination : public Algorithm {
 public:
  Dissemination(int members, int radix) : Algorithm(members) {
    for (std::int64_t distance = 1; distance < members; distance *= radix) {
      for (int i = 1; i < radix && i * distance < members; ++i) {
        distances_.push_back(static_cast<int>(i * distance));
      }
      phases_.push_back(static_cast<int>(distances_.size()));
    }
  }
  [[nodiscard]] int length(int /*member*/) const override { return 2 * static_cast<int>(distances_.size()); }
  [[nodiscard]] int words(int /*member*/) const override { return static_cast<int>(distances_.size()); }
  [[nodiscard]] Step step(int member, int index) const override {
    // In each phase a member signals all its partners before it waits for any.
    int begin = 0;
    const auto phase = std::ranges::find_if(phases_, [index](int end) { return index < 2 * end; });
    if (phase != phases_.begin()) {
      begin = *(phase - 1);
    }
    const int signalled = *phase - begin;
    const int i = index - 2 * begin;
    if (i >= signalled) {
      return await(begin + i - signalled);
    }
    const int word = begin + i;
    const auto to = (static_cast<std::int64_t>(member) + distances_[static_cast<std::size_t>(word)]) % members();
    return signal(static_cast<int>(to), word);
  }

 private:
  std::vector<int> distances_;  // by word
  std::vector<int> phases_;     // the end of each among the words
};

class CentralCounter : public Algorithm {
 public:
  using Algorithm::Algorithm;
  [[nodiscard]] int length(int /*member*/) const override { return members() > 1 ? 2 : 0; }
  [[nodiscard]] int words(int /*member*/) const override { return 1; }
  [[nodiscard]] Step step(int /*member*/, int index) const override {
    const Step add{.action = Action::kAdd, .count = members(), .expected = members(), .lines = Lines::kOne};
    return index == 0 ? add : await(0);
  }
};

class Basic : public Algorithm {
 public:
  using Algorithm::Algorithm;
  [[nodiscard]] int length(int member) const override { return member == 0 ? members() : 2; }
  [[nodiscard]] int words(int member) const override { return member == 0 ? members() : 1; }
  [[nodiscard]] Step step(int member, int index) const override {
    if (member != 0) {
      return index == 0 ? signal(0, member) : await(0);
    }
    if (index < members() - 1) {
      return await(index + 1);
    }
    return {.action = Action::kSignal, .first = 1, .count = members() - 1};
  }
};

class Pull : public Algorithm {
 public:
  using Algorithm::Algorithm;
  [[nodiscard]] int length(int /*member*/) const override { return members(); }
  [[nodiscard]] int words(int /*member*/) const override { return members(); }
  [[nodiscard]] Step step(int member, int index) const override {
    const Step signal_all{.action = Action::kSignal, .word = member, .count = members(), .lines = Lines::kRead};
    return index == 0 ? signal_all : await((member + index) % members());
  }
};

class RecursiveDoubling : public Algorithm {
 public:
  explicit RecursiveDoubling(int members)
      : Algorithm(members),
        power_(static_cast<int>(std::bit_floor(static_cast<unsigned>(members)))),
        rounds_(rounds(power_)) {}
  [[nodiscard]] int length(int member) const override {
    return member >= power_ ? 2 : 2 * rounds_ + (has_guest(member) ? 2 : 0);
  }
  [[nodiscard]] int words(int /*member*/) const override { return rounds_ + 1; }
  [[nodiscard]] Step step(int member, int index) const override {
    if (member >= power_) {
      return index == 0 ? signal(member - power_, rounds_) : await(rounds_);
    }
    if (has_guest(member)) {
      if (index == 0) {
        return await(rounds_);
      }
      --index;
    }
    if (index == 2 * rounds_) {
      return signal(member + power_, rounds_);
    }
    const int round = index / 2;
    return index % 2 == 0 ? signal(member ^ (1 << round), round) : await(round);
  }

 private:
  [[nodiscard]] bool has_guest(int member) const { return member + power_ < members(); }

  int power_;
  int rounds_;
};

/// `release`: a winner of libshmem releases the members it has beaten by one store, Open MPI's tree by a message each.
class Tournament : public Algorithm {
 public:
  Tournament(int members, Lines release) : Algorithm(members), release_(release), rounds_(rounds(members)) {}
  [[nodiscard]] int length(int member) const override {
    const int won = beaten(member);
    return won + (member != 0 ? 2 : 0) + (won > 0 ? 1 : 0);
  }
  [[nodiscard]] int words(int /*member*/) const override { return rounds_ + 1; }
  [[nodiscard]] Step step(int member, int index) const override {
    const int won = beaten(member);
    if (index < won) {
      return await(index);
    }
    if (member != 0 && index == won) {
      const int lost = std::countr_zero(static_cast<unsigned>(member));
      return signal(member - (1 << lost), lost);
    }
    if (member != 0 && index == won + 1) {
      return await(rounds_);
    }
    return {.action = Action::kSignal, .word = rounds_, .stride = 0, .count = won, .lines = release_};
  }

 private:
  /// The number of rounds that the member wins; only in the last rounds it may have no opponent.
  [[nodiscard]] int beaten(int member) const {
    int round = 0;
    while (round < rounds_ && (member & (1 << round)) == 0 && member + (1 << round) < members()) {
      ++round;
    }
    return round;
  }

  Lines release_;
  int rounds_;
};

/// On one switch, all members ring. On several, all ring and get a release when all members of their switch have
/// arrived; the first members of the switches then have a barrier by npu_v2; all ring once more, the first members
/// after that barrier.
class Switches : public Algorithm {
 public:
  Switches(int members, int ports, int radix)
      : Algorithm(members), ports_(ports), leaders_((members + ports - 1) / ports, radix) {}
  [[nodiscard]] int length(int member) const override {
    if (leaders_.members() == 1) {
      return members() == 1 ? 0 : 2;
    }
    return 4 + (member % ports_ == 0 ? leaders_.length(0) : 0);
  }
  [[nodiscard]] int words(int member) const override { return 2 + (member % ports_ == 0 ? leaders_.words(0) : 0); }
  [[nodiscard]] Step step(int member, int index) const override {
    const int last = length(member) - 1;
    if (index <= 1 || index >= last - 1) {
      const int word = index <= 1 ? 0 : 1;
      return index == 0 || index == last - 1 ? ring(member, word) : await(word);
    }
    Step among = leaders_.step(member / ports_, index - 2);
    among.first *= ports_;
    among.word += 2;
    return among;
  }

 private:
  [[nodiscard]] Step ring(int member, int word) const {
    const int first = member / ports_ * ports_;
    const int count = std::min(ports_, members() - first);
    return {.action = Action::kRing, .word = word, .first = first, .count = count, .expected = count};
  }

  int ports_;
  Dissemination leaders_;
};

/// The first of each `group` neighbours waits for the others, takes part in `among` for them, and releases them.
class InNodes : public Algorithm {
 public:
  InNodes(int members, int group, std::unique_ptr<Algorithm> among)
      : Algorithm(members), group_(group), among_(std::move(among)) {}
  [[nodiscard]] int length(int member) const override {
    return member % group_ != 0 ? 2 : among_->length(member / group_) + (others(member) > 0 ? 2 : 0);
  }
  [[nodiscard]] int words(int member) const override {
    return kOwnWords + (member % group_ == 0 ? among_->words(member / group_) : 0);
  }
  [[nodiscard]] Step step(int member, int index) const override {
    const int leader = member / group_ * group_;
    if (member != leader) {
      if (index == 1) {
        return await(kRelease);
      }
      return {
          .action = Action::kAdd, .word = kGather, .first = leader, .expected = others(leader), .lines = Lines::kOne};
    }
    if (others(leader) > 0) {
      if (index == 0) {
        return await(kGather);
      }
      if (index == length(member) - 1) {
        return {.action = Action::kSignal,
                .word = kRelease,
                .first = leader + 1,
                .count = others(leader),
                .lines = Lines::kOne};
      }
      --index;
    }
    Step step = among_->step(member / group_, index);
    step.word += kOwnWords;
    step.first *= group_;
    step.stride *= group_;
    return step;
  }

 private:
  static constexpr int kGather = 0;
  static constexpr int kRelease = 1;
  static constexpr int kOwnWords = 2;

  [[nodiscard]] int others(int leader) const { return std::min(group_, members() - leader) - 1; }

  int group_;
  std::unique_ptr<Algorithm> among_;
};

/// ompi_coll_tuned_barrier_intra_dec_fixed of Open MPI 4.1.
std::unique_ptr<Algorithm> open_mpi(int members) {
  if (members >= 4 && members < 8) {
    return std::make_unique<Basic>(members);
  }
  if (members < 64) {
    return std::make_unique<RecursiveDoubling>(members);
  }
  if ((members >= 256 && members < 512) || (members >= 1024 && members < 4096)) {
    return std::make_unique<Tournament>(members, Lines::kOfEach);
  }
  return std::make_unique<Dissemination>(members, 2);
}

}  // namespace

const char* name_of(Method method) {
  constexpr std::array kNames{
      "central_counter", "basic",        "npu_v1, dissemination", "npu_v2", "npu_v3",  "recursive_doubling",
      "tournament",      "hierarchical", "node, then npu_v2",     "GBA",    "Open MPI"};
  return kNames.at(static_cast<std::size_t>(method));
}

std::unique_ptr<Algorithm> make_algorithm(Method method, const Layout& layout) {
  const int n = layout.members;
  const int per_node = layout.pes_per_node;
  const int nodes = (n + per_node - 1) / per_node;
  switch (method) {
    case Method::kCentralCounter:
      return std::make_unique<CentralCounter>(n);
    case Method::kBasic:
      return std::make_unique<Basic>(n);
    case Method::kDissemination:
      return std::make_unique<Dissemination>(n, 2);
    case Method::kRadix:
      return std::make_unique<Dissemination>(n, layout.radix);
    case Method::kPull:
      return std::make_unique<Pull>(n);
    case Method::kRecursiveDoubling:
      return std::make_unique<RecursiveDoubling>(n);
    case Method::kTournament:
      return std::make_unique<Tournament>(n, Lines::kOne);
    case Method::kNodeDissemination:
      return std::make_unique<InNodes>(n, per_node, std::make_unique<Dissemination>(nodes, 2));
    case Method::kNodeRadix:
      return std::make_unique<InNodes>(n, per_node, std::make_unique<Dissemination>(nodes, layout.radix));
    case Method::kGba:
      return std::make_unique<InNodes>(n, per_node,
                                       std::make_unique<Switches>(nodes, layout.ports_per_switch, layout.radix));
    case Method::kOpenMpi:
      return open_mpi(n);
  }
  return nullptr;
}

}  // namespace scale
