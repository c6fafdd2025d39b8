// SPDX-License-Identifier: Apache-2.0
// gba selftest: barriers on groups of its own, every check a line.
#include <fmt/format.h>

#include <cerrno>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "driver/tool/output.hpp"
#include "driver/tool/selftest_peer.hpp"
#include "driver/tool/system.hpp"
#include "driver/tool/target.hpp"
#include "uapi/gba_regs.h"

namespace tool {
namespace {

constexpr std::uint64_t kTimeLimitNs = 5'000'000'000;
constexpr std::uint64_t kShortNs = 50'000'000;
constexpr std::uint64_t kSleeps = 20;

using Clock = std::chrono::steady_clock;

/// What a check found; an error is a problem.
using Found = base::Result<std::string>;

/// Without a text: what libgba's last call says.
Found wrong(const std::string& text = gba_error_text()) {
  return base::fail({}, text);
}

class SelfTest {
 public:
  SelfTest(const Invocation& invocation, std::uint64_t barriers, const TwoPorts& ports)
      : invocation_(invocation), barriers_(barriers), ports_(ports), printer_(invocation) {}

  int run() {
    const auto target = find_target(invocation_.device);
    if (!target) {
      return report(invocation_, target.error());
    }
    auto peer = SelftestPeer::find(ports_, *target);
    if (!peer) {
      return report(invocation_, peer.error());
    }
    peer_ = *std::move(peer);
    const std::string path = target->path.empty() ? invocation_.device : target->path;
    if (check("open", [&] { return open(path); }) && check("registers", [&] { return registers(); })) {
      test_one_member();
      test_missing_member();
      test_two_ports();
      check("counters", [&] { return counters(); });
    }
    // libgba's name for it, once it is open.
    const std::string shown = device_ ? static_cast<const char*>(info_.path) : path;
    if (peer_) {
      peer_->conclude(problems_in(printer_.findings()));
    }
    return printer_.conclude(shown);
  }

 private:
  void add(Finding finding) { printer_.add(std::move(finding)); }
  /// Adds a line; true unless it is a problem.
  bool check(const std::string& name, const std::function<Found()>& body) {
    const Found found = body();
    const Verdict verdict = found ? Verdict::kOk : Verdict::kProblem;
    add({.verdict = verdict, .name = name, .found = found ? *found : found.error().text});
    return found.has_value();
  }
  void skip(const std::string& name, const std::string& why) {
    add({.verdict = Verdict::kNote, .name = name, .found = fmt::format("skipped: {}", why)});
  }

  Found open(const std::string& path) {
    auto device = open_device(path);
    if (!device) {
      return wrong(device.error().text);
    }
    device_ = *std::move(device);
    if (gba_device_get_info(device_.get(), &info_) != 0) {
      return wrong();
    }
    return fmt::format("{}, port {}", static_cast<const char*>(info_.backend), info_.port);
  }

  Found registers() {
    if (gba_device_get_counters(device_.get(), &before_) != 0) {
      return wrong();
    }
    gba_group_status status{};
    for (std::uint32_t group = 0; group < info_.groups; ++group) {
      if (gba_group_get_status(device_.get(), group, &status) != 0) {
        return wrong();
      }
      if (status.arrival_count > status.member_count || status.member_count > info_.members) {
        return wrong(fmt::format("group {} has {}, of which {} have arrived", group,
                                 count(status.member_count, "member"), status.arrival_count));
      }
    }
    return fmt::format("{} of up to {}", count(info_.groups, "group"), count(info_.members, "member"));
  }

  // ---- A group of one member ----

  void test_one_member() {
    // The low 32 bits, which are all that an arrival carries, wrap during the test.
    const std::uint64_t first = (std::uint64_t{1} << 32) - barriers_ / 2 - 1;
    if (!check("alloc", [&] { return alloc(1, first); })) {
      return;
    }
    check("wrong key", [&] { return wrong_key(); });
    const bool ready = check("join", [&] { return join(); }) && check("enable", [&] { return enable(); });
    if (ready && check("barriers", [&] { return barriers(); })) {
      check("repeat", [&] { return repeat(); });
      if ((info_.features & GBA_CAPS_NOTIFY) != 0) {
        check("interrupts", [&] { return interrupts(); });
      } else {
        skip("interrupts", "the device raises none");
      }
    }
    check("leave", [&] { return leave(); });
    check("free", [&] { return free(); });
  }

  Found alloc(std::uint32_t members, std::uint64_t sequence) {
    if (gba_group_alloc(device_.get(), members, sequence, &handle_) != 0) {
      return wrong();
    }
    next_ = sequence + 1;
    return fmt::format("group {} of {}", handle_.group, count(members, "member"));
  }

  Found wrong_key() {
    gba_group_handle stranger = handle_;
    stranger.key ^= 1;
    gba_group* joined = nullptr;
    const int error = gba_group_join(device_.get(), &stranger, 0, &joined);
    const GroupPointer group(joined);
    if (error == -EACCES) {
      return "refused";
    }
    return error == 0 ? wrong("a member was let in with a wrong key") : wrong();
  }

  Found join() {
    gba_group* joined = nullptr;
    const auto before = open_eventfds();
    if (gba_group_join(device_.get(), &handle_, 0, &joined) != 0) {
      return wrong();
    }
    group_.reset(joined);
    event_ = new_eventfd(before);
    return "as member 0";
  }

  Found enable() {
    if (gba_group_enable(device_.get(), &handle_) != 0) {
      return wrong();
    }
    const int early = gba_group_test(group_.get(), next_);
    if (early == 0) {
      return wrong(fmt::format("barrier {} was released before any member arrived", next_));
    }
    return early == -EAGAIN ? Found("no barrier is released yet") : wrong();
  }

  Found barriers() {
    const std::uint64_t first = next_;
    const auto start = Clock::now();
    for (; next_ < first + barriers_; ++next_) {
      gba_group_arrive(group_.get(), next_);
      if (gba_group_wait(group_.get(), next_, kTimeLimitNs) != 0) {
        return wrong();
      }
      if (gba_group_test(group_.get(), next_ + 1) == 0) {
        return wrong("a barrier was released twice");
      }
    }
    const auto ns = static_cast<std::uint64_t>((Clock::now() - start).count());
    return fmt::format("{}, {} each", count(barriers_, "barrier"), duration(ns / barriers_));
  }

  Found repeat() {
    gba_group_arrive(group_.get(), next_ - 1);
    if (gba_group_test(group_.get(), next_ - 1) != 0) {
      return wrong("a repeated arrival undid a release");
    }
    gba_group_status status{};
    if (gba_group_get_status(device_.get(), handle_.group, &status) != 0) {
      return wrong();
    }
    if (status.sequence != next_ - 1) {
      return wrong("a repeated arrival was counted as a new one");
    }
    return "an arrival may be repeated";
  }

  /// gba_group_sleep arrives with a request for an interrupt, so here it is the first arrival too.
  Found interrupts() {
    const auto before = counters_of(device_.get());
    if (!before) {
      return wrong(before.error().text);
    }
    for (std::uint64_t i = 0; i < kSleeps; ++i, ++next_) {
      if (Found slept = sleep_until_released(); !slept) {
        return slept;
      }
    }
    const auto after = counters_of(device_.get());
    if (!after) {
      return wrong(after.error().text);
    }
    const std::uint64_t raised = after->interrupts - before->interrupts;
    const std::string text = fmt::format("{} arrivals asked for an interrupt, {} were raised", kSleeps, raised);
    return raised >= kSleeps ? Found(text) : wrong(text);
  }

  Found sleep_until_released() {
    int result = -EAGAIN;
    for (int sleeps = 0; result == -EAGAIN && sleeps < 50; ++sleeps) {
      result = gba_group_sleep(group_.get(), next_, kTimeLimitNs);
    }
    if (result == -EAGAIN) {
      return wrong("a sleeper was not released for seconds");
    }
    return result == 0 ? Found("") : wrong();
  }

  Found leave() {
    if (group_ == nullptr) {
      return "there was nothing to leave";
    }
    if (gba_group_disable(device_.get(), &handle_) != 0) {
      return wrong();
    }
    return gba_group_leave(group_.release()) == 0 ? Found("in good order") : wrong();
  }

  Found free() {
    if (gba_group_free(device_.get(), &handle_) != 0) {
      return wrong();
    }
    return gba_group_free(device_.get(), &handle_) == 0 ? wrong("a group was freed twice") : Found("freed, once");
  }

  // ---- A member that does not arrive ----

  void test_missing_member() {
    const bool made = alloc(2, 0) && join() && enable();
    if (!made) {
      return add({.verdict = Verdict::kProblem, .name = "timeout", .found = gba_error_text()});
    }
    check("timeout", [&] { return time_out(); });
    check("error release", [&] { return error_release(); });
    group_.reset();
  }

  Found time_out() {
    gba_group_arrive(group_.get(), next_);
    const int error = gba_group_wait(group_.get(), next_, kShortNs);
    if (error == 0) {
      return wrong("released although member 1 did not arrive");
    }
    const std::string text = gba_error_text();
    return error == -ETIMEDOUT && text.find("member 1 did not arrive") != std::string::npos ? Found(text) : wrong(text);
  }

  /// A lone member can lose its group only when the group is freed.
  Found error_release() {
    if (gba_group_free(device_.get(), &handle_) != 0) {
      return wrong();
    }
    const int error = gba_group_wait(group_.get(), next_, kTimeLimitNs);
    return error == -EOWNERDEAD ? Found("the members of a freed group are notified")
                                : wrong(error == 0 ? "released" : gba_error_text());
  }

  // ---- Two ports ----

  void test_two_ports() {
    if (peer_ == nullptr) {
      return skip("two ports", "there is no second port: name one with --peer, --connect or --listen");
    }
    const bool made = alloc(2, 0) && join() && enable();
    if (!made) {
      return add({.verdict = Verdict::kProblem, .name = "two ports", .found = gba_error_text()});
    }
    const std::uint64_t sleeps = (info_.features & GBA_CAPS_NOTIFY) != 0 ? kSleeps : 0;
    const PeerReport joined = peer_->join(handle_, barriers_, sleeps);
    if (joined.error == -EBUSY && !ports_.connects() && ports_.peer.empty()) {
      skip("two ports", joined.text);
    } else if (check("two ports", [&] { return two_joined(joined); }) &&
               check("two members", [&] { return barriers(); }) &&
               (sleeps == 0 || check("sleep", [&] { return sleep(); }))) {
      check("member left", [&] { return member_left(); });
    }
    group_.reset();
    (void)gba_group_free(device_.get(), &handle_);
  }

  Found two_joined(const PeerReport& joined) const {
    if (joined.error != 0) {
      return wrong(joined.text);
    }
    if (joined.port == info_.port) {
      return wrong(fmt::format("both sides are on port {}", joined.port));
    }
    return fmt::format("{} is member 1, on port {}", ports_.connects() ? "the other host" : "a second process",
                       joined.port);
  }

  Found sleep() {
    if (event_ < 0) {
      return wrong("libgba has no eventfd for the group's interrupt");
    }
    for (std::uint64_t i = 0; i < kSleeps; ++i, ++next_) {
      if (Found slept = sleep_until_called(); !slept) {
        return slept;
      }
    }
    return fmt::format("{} were woken by an interrupt", count(kSleeps, "sleeper"));
  }

  /// The second member arrives when this one has asked for an interrupt and slept.
  Found sleep_until_called() {
    drain(event_);
    gba_group_arrive(group_.get(), next_);
    const int early = gba_group_sleep(group_.get(), next_, 1);
    if (early == 0) {
      return wrong("released although member 1 did not arrive");
    }
    if (early != -EAGAIN) {
      return wrong();
    }
    peer_->call();
    return woken_when_released();
  }

  /// An interrupt for an earlier barrier may come late, so an event without a release proves nothing.
  Found woken_when_released() {
    for (std::uint64_t events = 0; events <= barriers_ + kSleeps && comes(event_, kTimeLimitNs); ++events) {
      drain(event_);
      if (gba_group_test(group_.get(), next_) == 0) {
        return "";
      }
    }
    const bool released = gba_group_test(group_.get(), next_) == 0;
    return wrong(fmt::format("a sleeper was not woken by an interrupt for seconds{}",
                             released ? ", although it was released" : ": it was not released"));
  }

  Found member_left() {
    const PeerReport done = peer_->leave();
    if (done.error != 0) {
      return wrong(done.text);
    }
    const int error = gba_group_wait(group_.get(), next_, kTimeLimitNs);
    const std::string text = gba_error_text();
    return error == -EPIPE && text.find("(member 1)") != std::string::npos ? Found(text) : wrong(text);
  }

  Found counters() {
    const auto after = counters_of(device_.get());
    if (!after) {
      return wrong(after.error().text);
    }
    const std::uint64_t arrivals = after->arrivals - before_.arrivals;
    const std::uint64_t releases = after->releases - before_.releases;
    const std::string text = fmt::format("{} and {}", count(arrivals, "arrival"), count(releases, "release"));
    return arrivals >= barriers_ && releases >= barriers_ ? Found(text)
                                                          : wrong(fmt::format("only {} were counted", text));
  }

  const Invocation& invocation_;
  const std::uint64_t barriers_;
  const TwoPorts& ports_;
  FindingPrinter printer_;
  std::unique_ptr<SelftestPeer> peer_;
  DevicePointer device_;
  gba_device_info info_{};
  gba_device_counters before_{};
  gba_group_handle handle_{};
  GroupPointer group_;
  int event_ = -1;          // the group's, borrowed from libgba; -1: it has none
  std::uint64_t next_ = 0;  // the group's next barrier
};

}  // namespace

void declare_selftest(CLI::App& app, Invocation& invocation) {
  const auto barriers = std::make_shared<std::uint64_t>(1'000);
  const auto ports = std::make_shared<TwoPorts>();
  auto command = declare(
      app, invocation, "selftest", "barriers on groups of its own, every check a line", [&invocation, barriers, ports] {
        return ports->listens ? be_second_member(invocation, *ports) : SelfTest(invocation, *barriers, *ports).run();
      });
  take_two_ports(command, *ports);
  take_device(command, invocation);
  command.number("--barriers", *barriers, 1, 1'000'000, "how many of each kind");
}

}  // namespace tool
