// SPDX-License-Identifier: Apache-2.0
#include "bench/scale/play.hpp"

#include <algorithm>
#include <cmath>

#include "bench/scale/event_queue.hpp"
#include "bench/scale/mailboxes.hpp"
#include "bench/scale/random.hpp"

namespace scale {
namespace {

struct Costs {
  Costs(const Parameters& from, bool mpi)
      : line(from_nanoseconds(from.line_round_trip / 2)),
        share(from_nanoseconds(from.line_share)),
        read(from_nanoseconds(from.line_read)),
        publish(from_nanoseconds(from.release_store)),
        doorbell(from_nanoseconds(from.doorbell_store)),
        to_switch(from_nanoseconds(from.switch_round_trip / 2)),
        arrival_gap(from_nanoseconds(from.switch_arrival_gap)),
        release_gap(from_nanoseconds(from.switch_release_gap)),
        latency(from_nanoseconds(from.network_latency)),
        gap(from_nanoseconds(from.network_gap + from.network_byte * from.message_bytes)),
        extra(mpi ? from_nanoseconds(from.mpi_overhead) : 0),
        overhead(from_nanoseconds(from.network_overhead)) {}

  /// `overlaps`: it is there already, and so was the one read before. MPI matches each message.
  [[nodiscard]] Time to_read(Way way, bool overlaps) const {
    if (way == Way::kSwitch) return 0;
    const Time alone = way == Way::kLine ? line : overhead;
    return extra > 0 ? alone + extra : overlaps ? std::min(read, alone) : alone;
  }

  Time line, share, read, publish, doorbell, to_switch, arrival_gap, release_gap, latency, gap, extra, overhead;
};

struct Member {
  int barrier = 0;
  int index = 0;
  int awaited = -1;   // word
  bool read = false;  // the last thing that it did was to read a word that was there
  Time here = 0;      // how far this member has come
  Time saw = -1;      // when it has read the word of the counter that it adds to
  Time arrived = 0;
};

class Engine {
 public:
  Engine(const Program& program, const Parameters& parameters, const Layout& layout, const Work& work, int barriers,
         bool mpi)
      : program_(program),
        costs_(parameters, mpi),
        per_node_(layout.pes_per_node),
        work_(work),
        barriers_(static_cast<std::size_t>(barriers)),
        mailboxes_(program, std::min(barriers, 2)),
        members_(static_cast<std::size_t>(program.members())),
        out_(members_.size()),
        in_(members_.size()),
        line_(members_.size()) {}

  Outcome run() {
    for (int member = 0; member < program_.members(); ++member) arrive(member, 0);
    while (!events_.empty()) handle(events_.pop());
    return outcome();
  }

 private:
  struct Barrier {
    int come = 0, left = 0;
    Time first_arrival = 0, last_arrival = 0, first_exit = 0, last_exit = 0;
    double wait = 0;
  };
  struct Line {
    Time free = 0;
    int owner = -1;
  };

  [[nodiscard]] Member& state(int member) { return members_[static_cast<std::size_t>(member)]; }
  [[nodiscard]] int node(int member) const { return member / per_node_; }
  void schedule(Time at, What what, int member, int word, int barrier) {
    events_.push({at, what, member, word, barrier});
  }

  void handle(const Event& event) {
    switch (event.what) {
      case What::kGoOn:
        go_on(event.member, event.at);
        break;
      case What::kMessage:
        store(event.member, event.word, event.barrier, {through(in_, event.member, event.at), Way::kNetwork});
        break;
      case What::kAddition:
        add_from_far(event);
        break;
      case What::kArrival:
        arrive_at_switch(event);
        break;
    }
  }

  /// One message through an interface: when it is out of it, or in.
  Time through(std::vector<Time>& interface, int member, Time at) {
    Time& free = interface[static_cast<std::size_t>(node(member))];
    const Time begin = std::max(at, free);
    free = begin + costs_.gap;
    return begin;
  }

  void arrive(int member, Time after) {
    Member& me = state(member);
    me.index = 0;
    me.arrived = after + work_.before(me.barrier, member);
    Barrier& barrier = barriers_[static_cast<std::size_t>(me.barrier)];
    barrier.first_arrival = barrier.come == 0 ? me.arrived : std::min(barrier.first_arrival, me.arrived);
    ++barrier.come;
    barrier.last_arrival = std::max(barrier.last_arrival, me.arrived);
    schedule(me.arrived, What::kGoOn, member, 0, me.barrier);
  }

  void leave(int member, Time at) {
    Member& me = state(member);
    Barrier& barrier = barriers_[static_cast<std::size_t>(me.barrier)];
    barrier.first_exit = barrier.left == 0 ? at : std::min(barrier.first_exit, at);
    barrier.last_exit = std::max(barrier.last_exit, at);
    barrier.wait += in_microseconds(at - me.arrived);
    ++barrier.left;
    if (++me.barrier < static_cast<int>(barriers_.size())) arrive(member, at);
  }

  /// As far as it goes. What others use at the same time (interfaces, counters) waits for its turn in the queue.
  void go_on(int member, Time at) {
    Member& me = state(member);
    me.here = at;
    for (; me.index < program_.length(member); ++me.index) {
      const Step step = program_.step(member, me.index);
      const bool shared = step.action == Action::kAdd || (step.action == Action::kTell && tells_far(step, member));
      if (shared && me.here > at) {
        schedule(me.here, What::kGoOn, member, 0, me.barrier);
        return;
      }
      if (!take(member, step)) return;
    }
    leave(member, me.here);
  }

  [[nodiscard]] bool tells_far(const Step& step, int member) const {
    return per_node_ > 1 && (step.count > 1 || node(step.first) != node(member));
  }

  /// False if the member must wait.
  bool take(int member, const Step& step) {
    Member& me = state(member);
    switch (step.action) {
      case Action::kTell:
        me.read = false;
        me.here = tell(member, step, me.here);
        return true;
      case Action::kAwait:
        return look(member, step.word);
      case Action::kAdd:
        me.read = false;
        add(member, step);
        return true;
      case Action::kRing:
        me.read = false;
        // The arrival is published in memory first (uapi rule 25).
        me.here += costs_.publish + costs_.doorbell;
        schedule(me.here + costs_.to_switch, What::kArrival, member, me.index, me.barrier);
        ++signals_;
        return true;
    }
    return true;
  }

  bool look(int member, int word) {
    Member& me = state(member);
    auto& mail = mailboxes_.mail(member, word, me.barrier);
    if (mail.stored == Mailboxes::kNever) {
      me.awaited = word;
      me.read = false;
      return false;
    }
    const bool overlaps = me.read && mail.stored <= me.here;
    me.here = std::max(me.here, mail.stored) + costs_.to_read(mail.way, overlaps);
    me.read = true;
    if (mail.way == Way::kLine) me.saw = me.here;
    mail.stored = Mailboxes::kNever;
    return true;
  }

  void store(int member, int word, int barrier, const Mailboxes::Mail& mail) {
    mailboxes_.store(member, word, barrier, mail);
    Member& who = state(member);
    if (who.awaited != word || who.barrier != barrier) return;
    who.awaited = -1;
    schedule(std::max(who.here, mail.stored), What::kGoOn, member, 0, barrier);
  }

  /// Until when that keeps the teller busy.
  Time tell(int teller, const Step& step, Time now) {
    const int barrier = state(teller).barrier;
    int spinning = 0;
    for_receivers(step, teller, [&](int receiver) {
      ++signals_;
      if (node(receiver) != node(teller)) {
        now += costs_.overhead + costs_.extra;
        schedule(through(out_, teller, now) + costs_.latency, What::kMessage, receiver, step.word, barrier);
        return;
      }
      if (spinning == 0 || step.lines == Lines::kOfEach) now += costs_.publish + costs_.extra;
      const Time later = step.lines == Lines::kOne ? spinning * costs_.share : 0;
      store(receiver, step.word, barrier, {now + later, Way::kLine});
      ++spinning;
    });
    return now;
  }

  void add(int member, const Step& step) {
    Member& me = state(member);
    if (node(step.first) != node(member)) {
      me.here += costs_.overhead;
      schedule(through(out_, member, me.here) + costs_.latency, What::kAddition, member, me.index, me.barrier);
      ++signals_;
      return;
    }
    Line& line = line_[static_cast<std::size_t>(step.first)];
    // Who has just read the line has it at hand, if those who spin on it are those who add to it.
    const bool at_hand = line.owner == member || (step.count > 1 && me.saw >= line.free);
    me.here = std::max(me.here, line.free) + (at_hand ? costs_.publish : costs_.line);
    line = {me.here, member};
    if (!mailboxes_.count(step, me.barrier)) return;
    // He who comes last goes on himself.
    if (member >= step.first && member < step.first + step.count) {
      store(member, step.word, me.barrier, {me.here, Way::kSwitch});
    }
    me.here = tell(member, step, me.here);
  }

  /// The interface adds; the counter's owner sees that it is complete.
  void add_from_far(const Event& event) {
    const Step step = program_.step(event.member, event.word);
    const Time added = through(in_, step.first, event.at);
    if (!mailboxes_.count(step, event.barrier)) return;
    const Time seen = added + costs_.overhead;
    store(step.first, step.word, event.barrier, {seen, Way::kSwitch});
    Member& owner = state(step.first);
    owner.here = tell(step.first, step, std::max(owner.here, seen));
  }

  void arrive_at_switch(const Event& event) {
    const Step step = program_.step(event.member, event.word);
    Time& free = line_[static_cast<std::size_t>(step.first)].free;  // the group's, at the switch
    free = std::max(free, event.at) + costs_.arrival_gap;
    if (!mailboxes_.count(step, event.barrier)) return;
    Time stored = free + costs_.to_switch;
    for (int i = 0; i < step.count; ++i, stored += costs_.release_gap) {
      store(step.first + i * step.stride, step.word, event.barrier, {stored, Way::kSwitch});
    }
    signals_ += step.count;
  }

  Outcome outcome() const {
    Outcome mean;
    const auto count = static_cast<double>(barriers_.size());
    for (const Barrier& barrier : barriers_) {
      if (barrier.left != program_.members()) throw std::logic_error("a barrier does not end");
      if (barrier.first_exit < barrier.last_arrival) throw std::logic_error("a member leaves before all have come");
      mean.after_last += in_microseconds(barrier.last_exit - barrier.last_arrival) / count;
      mean.after_first += in_microseconds(barrier.last_exit - barrier.first_arrival) / count;
      mean.wait += barrier.wait / program_.members() / count;
    }
    mean.period = in_microseconds(barriers_.back().last_exit) / count;
    mean.signals = signals_ / static_cast<std::int64_t>(barriers_.size());
    return mean;
  }

  const Program& program_;
  const Costs costs_;
  const int per_node_;
  const Work work_;
  std::vector<Barrier> barriers_;
  Mailboxes mailboxes_;
  std::vector<Member> members_;
  std::vector<Time> out_, in_;  // by node: when the interface is free
  std::vector<Line> line_;      // by member: of the counter there
  EventQueue events_;
  std::int64_t signals_ = 0;
};

}  // namespace

Time Work::before(int barrier, int member) const {
  const std::uint64_t bits =
      mixed(mixed(mixed(seed) ^ static_cast<std::uint64_t>(barrier)) ^ static_cast<std::uint64_t>(member));
  const double u = (static_cast<double>(bits >> 11) + 0.5) / 9007199254740992.0;  // 2^53: between 0 and 1
  switch (distribution) {
    case Distribution::kNone:
      return 0;
    case Distribution::kUniform:
      return from_nanoseconds(2 * mean * u);
    case Distribution::kExponential:
      return from_nanoseconds(-mean * std::log(u));
  }
  return 0;
}

Outcome play(const Program& program, const Parameters& parameters, const Layout& layout, const Work& work, int barriers,
             bool mpi) {
  return Engine(program, parameters, layout, work, barriers, mpi).run();
}

}  // namespace scale
