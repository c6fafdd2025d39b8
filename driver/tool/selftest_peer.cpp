// SPDX-License-Identifier: Apache-2.0
#include "driver/tool/selftest_peer.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <functional>
#include <nlohmann/json.hpp>
#include <utility>

namespace tool {
namespace {

constexpr std::uint64_t kRoundLimitNs = 5'000'000'000;
constexpr std::uint64_t kMostBarriers = 1'000'000;
/// The first member may test its own port first. If its host is gone, the connection ends.
constexpr Milliseconds kNoLimit{0};

PeerReport report_of(const Failure& failure) {
  return {.error = failure.error, .port = 0, .text = failure.text};
}

// ---- The second member ----

/// What it tells of its own part.
struct SecondMember {
  std::function<void(const std::string& name, const PeerReport& found)> add;
  std::optional<std::uint64_t> problems = {};  // that the first member has found; nothing if it has not said so
};

struct Order {
  gba_group_handle handle{};
  std::uint64_t barriers = 0;
  std::uint64_t called = 0;
};

Result<Order> order_in(const Json& message) {
  const auto handle = handle_in(message);
  const auto barriers = number_in(message, "barriers", 1, kMostBarriers);
  const auto called = number_in(message, "called", 0, kMostBarriers);
  if (!handle || !barriers || !called) {
    return handle ? barriers ? called.error() : barriers.error() : handle.error();
  }
  return Order{.handle = *handle, .barriers = *barriers, .called = *called};
}

/// The first member's next message. If it concludes the test, that is a failure for whatever waits for the message.
Result<Json> hear(Link& link, SecondMember& member) {
  auto message = link.receive(kNoLimit);
  if (!message || !message->contains("problems")) {
    return message;
  }
  const auto problems = number_in(*message, "problems", 0, UINT32_MAX);
  if (!problems) {
    return problems.error();
  }
  member.problems = *problems;
  return peer_failure(-ECANCELED, "it has ended the test");
}

Result<void> do_barriers(gba_group* group, const Order& order, Link& link, SecondMember& member) {
  const std::uint64_t first_called = order.handle.sequence + order.barriers + 1;
  for (std::uint64_t k = order.handle.sequence + 1; k < first_called + order.called; ++k) {
    if (k >= first_called) {
      if (const auto call = hear(link, member); !call) {
        return call.error();
      }
    }
    gba_group_arrive(group, k);
    if (const int error = gba_group_wait(group, k, kRoundLimitNs); error != 0) {
      return failed(error);
    }
  }
  return {};
}

/// Tells both the first member and this one's own user.
void tell(Link& link, SecondMember& member, const std::string& name, const Result<std::uint32_t>& result) {
  if (result) {
    (void)link.send({{"port", *result}});
    member.add(name, {.error = 0, .port = *result, .text = {}});
  } else {
    (void)link.send(error_message(result.error()));
    member.add(name, report_of(result.error()));
  }
}

/// One group: joins, does the barriers, leaves.
void take_part(gba_device* device, Link& link, const Order& order, SecondMember& member) {
  const auto info = info_of(device);
  gba_group* joined = nullptr;
  const int error = gba_group_join(device, &order.handle, 1, &joined);
  const GroupPointer group(joined);
  if (error != 0 || !info) {
    Failure failure = error != 0 ? failed(error) : info.error();
    failure.text += " (are both ports on the same switch?)";
    return tell(link, member, "join", failure);
  }
  tell(link, member, "join", info->port);
  const auto done = do_barriers(group.get(), order, link, member);
  if (!member.problems) {
    if (const auto leave = hear(link, member); leave) {
      return tell(link, member, "barriers", done ? Result<std::uint32_t>(info->port) : done.error());
    } else if (done) {
      return member.add("barriers", report_of(leave.error()));
    }
  }
  member.add("barriers", report_of(done.error()));
}

/// Until the first member concludes.
void serve_selftest(gba_device* device, Link& link, SecondMember& member) {
  while (!member.problems) {
    const auto message = hear(link, member);
    const auto order = message ? order_in(*message) : Result<Order>(message.error());
    if (order) {
      take_part(device, link, *order, member);
    } else if (!member.problems) {
      return member.add("other side", report_of(order.error()));
    }
  }
}

}  // namespace

int be_second_member(const Invocation& invocation, const TwoPorts& ports) {
  const auto device = open_device(invocation.device);
  if (!device) {
    return report(invocation, device.error());
  }
  const auto info = info_of(device->get());
  if (!info) {
    return report(invocation, info.error());
  }
  auto link = meet(ports);
  if (!link) {
    return report(invocation, link.error());
  }
  const auto other = greet(*link, "selftest", ports.limit());
  if (!other) {
    return report(invocation, other.error());
  }
  FindingPrinter printer(invocation);
  printer.add({.name = "connection",
               .found = fmt::format("{}, libgba {}", text_in(*other, "host"), text_in(*other, "version"))});
  SecondMember member{.add = [&](const std::string& name, const PeerReport& found) {
    printer.add({.verdict = found.error == 0 ? Verdict::kOk : Verdict::kProblem,
                 .name = name,
                 .found = found.error == 0 ? fmt::format("as member 1, on port {}", found.port) : found.text});
  }};
  serve_selftest(device->get(), *link, member);
  if (member.problems) {
    printer.add({.verdict = *member.problems == 0 ? Verdict::kOk : Verdict::kProblem,
                 .name = "other side",
                 .found = *member.problems == 0 ? "passed" : count(*member.problems, "problem")});
  }
  return printer.conclude(static_cast<const char*>(info->path));
}

// ---- The first member ----

Result<std::unique_ptr<SelftestPeer>> SelftestPeer::find(const TwoPorts& ports, const Target& target) {
  if (!ports.connects()) {
    const bool has_more_ports = target.kind == Target::Kind::kSocket;
    return !ports.peer.empty() || has_more_ports ? start(ports.peer.empty() ? target.path : ports.peer, ports.limit())
                                                 : Result<std::unique_ptr<SelftestPeer>>();
  }
  auto link = meet(ports);
  if (!link) {
    return link.error();
  }
  if (const auto greeted = greet(*link, "selftest", ports.limit()); !greeted) {
    return greeted.error();
  }
  return std::unique_ptr<SelftestPeer>(new SelftestPeer(*std::move(link), ports.limit()));
}

Result<std::unique_ptr<SelftestPeer>> SelftestPeer::start(const std::string& path, Milliseconds limit) {
  auto process = PeerProcess::start([&path](Link& link) {
    // It opens the device when the first member asks for it: if that never happens, no port is used up.
    const auto start = link.receive(kNoLimit);
    if (!start) {
      return;
    }
    const auto device = open_device(path);
    const auto opened = device ? link.send({{"open", true}}) : link.send(error_message(device.error()));
    if (device && opened) {
      SecondMember member{.add = [](const std::string&, const PeerReport&) {}};
      serve_selftest(device->get(), link, member);
    }
  });
  if (!process) {
    return process.error();
  }
  return std::unique_ptr<SelftestPeer>(new SelftestPeer(*std::move(process), limit));
}

PeerReport SelftestPeer::next_report() {
  const auto message = link().receive(limit_);
  if (!message) {
    return report_of(message.error());
  }
  const auto port = number_in(*message, "port", 0, UINT32_MAX);
  return port ? PeerReport{.error = 0, .port = static_cast<std::uint32_t>(*port), .text = {}} : report_of(port.error());
}

PeerReport SelftestPeer::join(const gba_group_handle& handle, std::uint64_t barriers, std::uint64_t called) {
  if (process_) {
    (void)link().send({{"open", true}});
    if (const auto opened = link().receive(limit_); !opened) {
      return report_of(opened.error());
    }
  }
  (void)link().send({{"handle", to_json(handle)}, {"barriers", barriers}, {"called", called}});
  return next_report();
}

void SelftestPeer::call() {
  (void)link().send({{"call", true}});
}

PeerReport SelftestPeer::leave() {
  (void)link().send({{"leave", true}});
  return next_report();
}

void SelftestPeer::conclude(std::size_t problems) {
  (void)link().send({{"problems", problems}});
}

}  // namespace tool
