// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <utility>

#include "bench/scale/mailboxes.hpp"
#include "bench/scale/play.hpp"
#include "bench/scale/random.hpp"

namespace scale {
namespace {

constexpr int kWarmUp = 4;

class Crowd {
 public:
  Crowd(const Program& program, const Parameters& parameters, int processors, double context_switch, int barriers)
      : program_(program),
        line_(from_nanoseconds(parameters.line_round_trip / 2)),
        read_(from_nanoseconds(parameters.line_read)),
        publish_(from_nanoseconds(parameters.release_store)),
        switch_(from_nanoseconds(context_switch)),
        last_barrier_(kWarmUp + barriers),
        mailboxes_(program, 2),
        counter_owner_(static_cast<std::size_t>(program.members()), -1),
        members_(static_cast<std::size_t>(program.members())),
        processors_(static_cast<std::size_t>(std::min(processors, program.members()))) {
    // The kernel knows no order of members.
    std::vector<int> order(members_.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::sort(order, {}, [](int member) { return mixed(static_cast<std::uint64_t>(member)); });
    for (std::size_t i = 0; i < order.size(); ++i) processors_[i % processors_.size()].members.push_back(order[i]);
  }

  double run(int barriers) {
    Time begin = 0;
    while (out_of(kWarmUp) < program_.members()) begin = take_turn();
    Time end = begin;
    while (out_of(last_barrier_) < program_.members()) end = take_turn();
    return in_microseconds(end - begin) / barriers;
  }

 private:
  struct Member {
    int barrier = 0;
    int index = 0;
  };
  struct Processor {
    std::vector<int> members;
    std::size_t turn = 0;
    Time now = 0;
    int idle = 0;       // turns in which nobody could go on
    bool read = false;  // the last thing done in this turn was to read a word
  };

  [[nodiscard]] int out_of(int barriers) const {
    return static_cast<int>(
        std::ranges::count_if(members_, [barriers](const Member& one) { return one.barrier >= barriers; }));
  }

  /// The processor that is behind gives its next member a turn; when that was over.
  Time take_turn() {
    Processor& on = *std::ranges::min_element(processors_, {}, &Processor::now);
    const int member = on.members[on.turn];
    on.turn = (on.turn + 1) % on.members.size();
    const bool moved = go_on(member, on);
    on.idle = moved ? 0 : on.idle + 1;
    const auto stuck = [this](const Processor& one) { return one.idle > 4 * program_.members() + 64; };
    if (std::ranges::all_of(processors_, stuck)) throw std::logic_error("a barrier does not end");
    if (on.members.size() > 1) {
      on.now += switch_;
    } else if (!moved) {
      on.now += line_ > 0 ? line_ : 1;  // it looks again
    }
    return on.now;
  }

  bool go_on(int number, Processor& on) {
    Member& member = members_[static_cast<std::size_t>(number)];
    bool moved = false;
    on.read = false;
    while (member.barrier < last_barrier_) {
      if (member.index == program_.length(number)) {
        member = {member.barrier + 1, 0};
        continue;
      }
      if (!take(number, member.barrier, program_.step(number, member.index), on)) break;
      ++member.index;
      moved = true;
    }
    return moved;
  }

  bool take(int number, int barrier, const Step& step, Processor& on) {
    if (step.action == Action::kAwait) return look(number, barrier, step, on);
    on.read = false;
    if (step.action == Action::kTell) {
      tell(number, barrier, step, on);
    } else if (step.action == Action::kAdd) {
      add(number, barrier, step, on);
    } else {
      throw std::logic_error("there is no switch on this node");
    }
    return true;
  }

  bool look(int number, int barrier, const Step& step, Processor& on) {
    auto& mail = mailboxes_.mail(number, step.word, barrier);
    if (mail.stored == Mailboxes::kNever || mail.stored > on.now) return false;
    on.now += mail.from == number_of(on) ? 0 : on.read ? std::min(read_, line_) : line_;
    on.read = true;
    mail.stored = Mailboxes::kNever;
    return true;
  }

  void add(int number, int barrier, const Step& step, Processor& on) {
    int& owner = counter_owner_[static_cast<std::size_t>(step.first)];
    on.now += std::exchange(owner, number_of(on)) == number_of(on) ? publish_ : line_;
    if (!mailboxes_.count(step, barrier)) return;
    if (number >= step.first && number < step.first + step.count) {
      mailboxes_.store(number, step.word, barrier, {on.now, Way::kLine, number_of(on)});
    }
    tell(number, barrier, step, on);
  }

  void tell(int teller, int barrier, const Step& step, Processor& on) {
    bool first = true;
    for_receivers(step, teller, [&](int receiver) {
      if (std::exchange(first, false) || step.lines == Lines::kOfEach) on.now += publish_;
      mailboxes_.store(receiver, step.word, barrier, {on.now, Way::kLine, number_of(on)});
    });
  }

  [[nodiscard]] int number_of(const Processor& on) const { return static_cast<int>(&on - processors_.data()); }

  const Program& program_;
  const Time line_, read_, publish_, switch_;
  const int last_barrier_;
  Mailboxes mailboxes_;
  std::vector<int> counter_owner_;  // processor, by the member whose counter it is
  std::vector<Member> members_;
  std::vector<Processor> processors_;
};

}  // namespace

double play_crowded(const Program& program, const Parameters& parameters, int processors, double context_switch,
                    int barriers) {
  return Crowd(program, parameters, processors, context_switch, barriers).run(barriers);
}

}  // namespace scale
