// SPDX-License-Identifier: Apache-2.0
#include "tools/scale/model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string_view>

#include "base/number.hpp"

namespace scale {
namespace {

struct Spec {
  std::string_view key;
  double Parameters::*value;
  double least = 0;
  double most = 1e9;
};

constexpr auto kSpecs = std::to_array<Spec>({
    {"line_round_trip", &Parameters::line_round_trip},
    {"line_share", &Parameters::line_share},
    {"line_read", &Parameters::line_read},
    {"release_store", &Parameters::release_store},
    {"pes_per_node", &Parameters::pes_per_node, 1, 4096},
    {"doorbell_store", &Parameters::doorbell_store},
    {"switch_round_trip", &Parameters::switch_round_trip},
    {"switch_arrival_gap", &Parameters::switch_arrival_gap},
    {"switch_release_gap", &Parameters::switch_release_gap},
    {"ports_per_switch", &Parameters::ports_per_switch, 2, 65536},
    {"network_latency", &Parameters::network_latency},
    {"network_overhead", &Parameters::network_overhead},
    {"network_gap", &Parameters::network_gap},
    {"network_byte", &Parameters::network_byte},
    {"message_bytes", &Parameters::message_bytes, 1},
    {"mpi_overhead", &Parameters::mpi_overhead},
    {"radix", &Parameters::radix, 2, 8},
});

/// Sets the parameter of a line. Returns an error message, or "".
std::string take_line(const std::string& line, Parameters& parameters, std::set<std::string>& seen) {
  std::istringstream in(line);
  std::string key;
  std::string text;
  std::string unit;
  std::string note;
  in >> key >> text >> unit >> note;
  const auto* const spec = std::ranges::find(kSpecs, key, &Spec::key);
  if (spec == kSpecs.end()) {
    return fmt::format("there is no parameter {}", key);
  }
  if (!seen.insert(key).second) {
    return fmt::format("{} is repeated", key);
  }
  if (note.empty()) {
    return fmt::format("{}: a line is a key, a value, a unit and where the value comes from", key);
  }
  double& value = parameters.*spec->value;
  const auto read = base::number(text, spec->least, spec->most);
  value = read.value_or(value);
  if (!read) {
    return fmt::format("{} is a number from {} to {}, not \"{}\"", key, spec->least, spec->most, text);
  }
  return "";
}

/// Picoseconds as integers, so that the order of events is the same on every machine.
using Time = std::int64_t;

Time picoseconds(double nanoseconds) {
  return static_cast<Time>(std::llround(nanoseconds * 1000));
}

/// The path by which a word was stored determines the cost of reading it.
enum class Way { kLine, kNetwork, kSwitch };

struct Costs {
  Costs(const Parameters& from, bool mpi)
      : line(picoseconds(from.line_round_trip / 2)),
        share(picoseconds(from.line_share)),
        read(picoseconds(from.line_read)),
        publish(picoseconds(from.release_store)),
        doorbell(picoseconds(from.doorbell_store)),
        to_switch(picoseconds(from.switch_round_trip / 2)),
        arrival_gap(picoseconds(from.switch_arrival_gap)),
        release_gap(picoseconds(from.switch_release_gap)),
        latency(picoseconds(from.network_latency)),
        gap(picoseconds(from.network_gap + from.network_byte * from.message_bytes)),
        extra(mpi ? picoseconds(from.mpi_overhead) : 0),
        overhead(picoseconds(from.network_overhead)) {}

  /// `overlaps`: this word had already arrived when the previous one was read. MPI matches each message.
  [[nodiscard]] Time to_read(Way way, bool overlaps) const {
    if (way == Way::kSwitch) {
      return 0;
    }
    const Time alone = way == Way::kLine ? line : overhead;
    return extra > 0 ? alone + extra : overlaps ? std::min(read, alone) : alone;
  }

  Time line, share, read, publish, doorbell, to_switch, arrival_gap, release_gap, latency, gap, extra, overhead;
};

enum class What { kResume, kMessage, kRemoteAddition, kArrival };

struct Event {
  What what;
  int member;  // the one that resumes, that is signalled, or whose step it is
  int detail;  // the word of a message, the index of a step
};

constexpr Time kNever = -1;

struct Mail {
  Time stored = kNever;
  Way way = Way::kLine;
};

struct Member {
  int index = 0;
  int awaited = -1;   // the word that it waits for
  bool read = false;  // its last action was to read a word that had already arrived
  Time here = 0;      // the time of this member
  Time saw = kNever;  // when it read the word of the counter that it adds to
  std::size_t first_word = 0;
};

/// The cache line of a counter, which belongs to a member.
struct Line {
  Time free = 0;
  int owner = -1;
};

class Simulation {
 public:
  Simulation(const Algorithm& algorithm, const Parameters& parameters, int pes_per_node, bool mpi, const Late& late)
      : algorithm_(algorithm),
        costs_(parameters, mpi),
        per_node_(pes_per_node),
        late_(late),
        members_(static_cast<std::size_t>(algorithm.members())),
        counters_(kCounters * members_.size()),
        out_(members_.size()),
        in_(members_.size()),
        lines_(members_.size()) {
    std::size_t words = 0;
    for (int member = 0; member < algorithm.members(); ++member) {
      state(member).first_word = words;
      words += static_cast<std::size_t>(algorithm.words(member));
    }
    mail_.resize(words);
  }

  double run() {
    for (int member = 0; member < algorithm_.members(); ++member) {
      schedule(member == late_.member ? last_arrival() : 0, What::kResume, member, 0);
    }
    while (!events_.empty()) {
      const auto now = events_.extract(events_.begin());
      for (const Event& event : now.mapped()) {
        handle(event, now.key());
      }
    }
    if (left_ != algorithm_.members()) {
      throw std::logic_error("the barrier does not end");
    }
    return static_cast<double>(end_ - last_arrival()) / 1e6;
  }

 private:
  static constexpr std::size_t kCounters = 4;  // per member: one for its node, and two of the switch behind it

  [[nodiscard]] Time last_arrival() const { return late_.member < 0 ? 0 : picoseconds(late_.nanoseconds); }
  [[nodiscard]] Member& state(int member) { return members_[static_cast<std::size_t>(member)]; }
  [[nodiscard]] int node(int member) const { return member / per_node_; }
  [[nodiscard]] Mail& mail(int member, int word) {
    return mail_[state(member).first_word + static_cast<std::size_t>(word)];
  }
  void schedule(Time at, What what, int member, int detail) { events_[at].push_back({what, member, detail}); }

  void handle(const Event& event, Time at) {
    switch (event.what) {
      case What::kResume:
        resume(event.member, at);
        break;
      case What::kMessage:
        store(event.member, event.detail, {through(in_, event.member, at), Way::kNetwork});
        break;
      case What::kRemoteAddition:
        add_remotely(event, at);
        break;
      case What::kArrival:
        arrive_at_switch(event, at);
        break;
    }
  }

  /// The time at which a message has passed the interface of the member's node. Messages pass one after the other.
  Time through(std::vector<Time>& interface, int member, Time at) {
    Time& free = interface[static_cast<std::size_t>(node(member))];
    const Time begin = std::max(at, free);
    free = begin + costs_.gap;
    return begin;
  }

  /// Takes steps until the member must wait. Accesses to shared interfaces and counters are queued as events.
  void resume(int member, Time at) {
    Member& me = state(member);
    me.here = at;
    for (; me.index < algorithm_.length(member); ++me.index) {
      const Step step = algorithm_.step(member, me.index);
      const bool shared =
          step.action == Action::kAdd || (step.action == Action::kSignal && uses_interface(step, member));
      if (shared && me.here > at) {
        schedule(me.here, What::kResume, member, 0);
        return;
      }
      if (!take(member, step)) {
        return;
      }
    }
    if (me.here < last_arrival()) {
      throw std::logic_error("a member leaves before all have arrived");
    }
    ++left_;
    end_ = std::max(end_, me.here);
  }

  [[nodiscard]] bool uses_interface(const Step& step, int member) const {
    return per_node_ > 1 && (step.count > 1 || node(step.first) != node(member));
  }

  /// False if the member must wait.
  bool take(int member, const Step& step) {
    Member& me = state(member);
    if (step.action == Action::kAwait) {
      return look(member, step.word);
    }
    me.read = false;
    switch (step.action) {
      case Action::kAwait:
        break;
      case Action::kSignal:
        me.here = signal(member, step, me.here);
        break;
      case Action::kAdd:
        add(member, step);
        break;
      case Action::kRing:
        // The arrival is published in memory first (uapi rule 25).
        me.here += costs_.publish + costs_.doorbell;
        schedule(me.here + costs_.to_switch, What::kArrival, member, me.index);
        break;
    }
    return true;
  }

  bool look(int member, int word) {
    Member& me = state(member);
    const Mail& found = mail(member, word);
    if (found.stored == kNever) {
      me.awaited = word;
      me.read = false;
      return false;
    }
    const bool overlaps = me.read && found.stored <= me.here;
    me.here = std::max(me.here, found.stored) + costs_.to_read(found.way, overlaps);
    me.read = true;
    if (found.way == Way::kLine) {
      me.saw = me.here;
    }
    return true;
  }

  void store(int member, int word, const Mail& what) {
    Mail& place = mail(member, word);
    if (place.stored != kNever) {
      throw std::logic_error("a member is signalled twice");
    }
    place = what;
    Member& receiver = state(member);
    if (receiver.awaited == word) {
      receiver.awaited = -1;
      schedule(std::max(receiver.here, what.stored), What::kResume, member, 0);
    }
  }

  /// Returns the time until which the sender is busy.
  Time signal(int sender, const Step& step, Time now) {
    int spinning = 0;
    for_receivers(step, sender, [&](int receiver) {
      if (node(receiver) != node(sender)) {
        now += costs_.overhead + costs_.extra;
        schedule(through(out_, sender, now) + costs_.latency, What::kMessage, receiver, step.word);
        return;
      }
      if (spinning == 0 || step.lines == Lines::kOfEach) {
        now += costs_.publish + costs_.extra;
      }
      const Time later = step.lines == Lines::kOne ? spinning * costs_.share : 0;
      store(receiver, step.word, {now + later, Way::kLine});
      ++spinning;
    });
    return now;
  }

  template <typename Visit>
  static void for_receivers(const Step& step, int sender, Visit visit) {
    if (step.stride == 0) {
      for (int i = step.count; i-- > 0;) {
        visit(sender + (1 << i));
      }
      return;
    }
    const int after = sender >= step.first ? (sender - step.first) / step.stride + 1 : 0;
    for (int i = 0; i < step.count; ++i) {
      const int receiver = step.first + (after + i) % step.count * step.stride;
      if (receiver != sender) {
        visit(receiver);
      }
    }
  }

  /// True if this makes the counter of the step complete.
  bool count(const Step& step) {
    const std::size_t place =
        kCounters * static_cast<std::size_t>(step.first) + static_cast<std::size_t>(step.word) % kCounters;
    return ++counters_[place] == step.expected;
  }

  void add(int member, const Step& step) {
    Member& me = state(member);
    if (node(step.first) != node(member)) {
      me.here += costs_.overhead;
      schedule(through(out_, member, me.here) + costs_.latency, What::kRemoteAddition, member, me.index);
      return;
    }
    Line& line = lines_[static_cast<std::size_t>(step.first)];
    // A member that has just read the line has it in its cache if the members that spin on it are those that add to it.
    const bool in_cache = line.owner == member || (step.count > 1 && me.saw >= line.free);
    me.here = std::max(me.here, line.free) + (in_cache ? costs_.publish : costs_.line);
    line = {me.here, member};
    if (!count(step)) {
      return;
    }
    if (member >= step.first && member < step.first + step.count) {
      store(member, step.word, {me.here, Way::kSwitch});  // the last member continues at once
    }
    me.here = signal(member, step, me.here);
  }

  /// The interface adds; the owner of the counter sees that it is complete.
  void add_remotely(const Event& event, Time at) {
    const Step step = algorithm_.step(event.member, event.detail);
    const Time added = through(in_, step.first, at);
    if (!count(step)) {
      return;
    }
    const Time seen = added + costs_.overhead;
    store(step.first, step.word, {seen, Way::kSwitch});
    Member& owner = state(step.first);
    owner.here = signal(step.first, step, std::max(owner.here, seen));
  }

  void arrive_at_switch(const Event& event, Time at) {
    const Step step = algorithm_.step(event.member, event.detail);
    Time& free = lines_[static_cast<std::size_t>(step.first)].free;  // of the group, in the switch
    free = std::max(free, at) + costs_.arrival_gap;
    if (!count(step)) {
      return;
    }
    Time stored = free + costs_.to_switch;
    for (int i = 0; i < step.count; ++i, stored += costs_.release_gap) {
      store(step.first + i * step.stride, step.word, {stored, Way::kSwitch});
    }
  }

  const Algorithm& algorithm_;
  const Costs costs_;
  const int per_node_;
  const Late late_;
  std::vector<Member> members_;
  std::vector<Mail> mail_;
  std::vector<int> counters_;
  std::vector<Time> out_, in_;                 // by node: when the interface is free
  std::vector<Line> lines_;                    // by member: of the counter there
  std::map<Time, std::vector<Event>> events_;  // those of a time in their order; many members do the same at once
  int left_ = 0;
  Time end_ = 0;
};

}  // namespace

Parameters read_parameters(const std::string& name, const std::string& text) {
  Parameters parameters;
  std::set<std::string> seen;
  std::istringstream in(text);
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (const auto begin = line.find_first_not_of(" \t\r"); begin == std::string::npos || line[begin] == '#') {
      continue;
    }
    if (const std::string wrong = take_line(line, parameters, seen); !wrong.empty()) {
      throw std::runtime_error(fmt::format("{}, line {}: {}", name, number, wrong));
    }
  }
  for (const Spec& spec : kSpecs) {
    if (!seen.contains(std::string(spec.key))) {
      throw std::runtime_error(fmt::format("{} has no {}", name, spec.key));
    }
  }
  return parameters;
}

double time_of(const Algorithm& algorithm, const Parameters& parameters, int pes_per_node, bool mpi, const Late& late) {
  return Simulation(algorithm, parameters, pes_per_node, mpi, late).run();
}

double time_of(Method method, const Parameters& parameters, int members, int pes_per_node) {
  const auto algorithm = make_algorithm(method, {.members = members,
                                                 .pes_per_node = pes_per_node,
                                                 .ports_per_switch = static_cast<int>(parameters.ports_per_switch),
                                                 .radix = static_cast<int>(parameters.radix)});
  return time_of(*algorithm, parameters, pes_per_node, method == Method::kOpenMpi);
}

}  // namespace scale
