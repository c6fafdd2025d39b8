// SPDX-License-Identifier: Apache-2.0
#include "driver/tool/bench_two_ports.hpp"

#include <cerrno>
#include <nlohmann/json.hpp>
#include <utility>

namespace tool {
namespace {

constexpr const char* kCommand = "bench";

/// A failure here, of which the other side learns too.
Failure told(Link& link, const Failure& failure) {
  if (failure.code != kPeerFailed) {
    (void)link.send(error_message(failure));
  }
  return failure;
}

Result<GroupPointer> join(gba_device* device, const gba_group_handle& handle, std::uint32_t member) {
  gba_group* joined = nullptr;
  if (const int error = gba_group_join(device, &handle, member, &joined); error != 0) {
    Failure failure = failed(error);
    failure.text += member == 1 ? " (are both ports on the same switch?)" : "";
    return failure;
  }
  return GroupPointer(joined);
}

/// Measures, and tells each other the result.
Result<BothSides> exchange(Link& link, gba_group* group, const gba_group_handle& handle, std::uint64_t rounds,
                           const OtherSide& other, Milliseconds limit) {
  auto mine = measure(group, handle.sequence + 1, rounds);
  if (!mine) {
    // The other side may have failed first, and has said why.
    const auto reason = link.receive(Milliseconds{500});
    return told(link, !reason && reason.error().error != -ETIMEDOUT && reason.error().error != -EPIPE ? reason.error()
                                                                                                      : mine.error());
  }
  if (const auto sent = link.send({{"ns", percentiles_of(*mine)}}); !sent) {
    return sent.error();
  }
  const auto answer = link.receive(limit);
  const auto theirs = answer ? percentiles_in(*answer) : Result<Json>(answer.error());
  if (!theirs) {
    return theirs.error();
  }
  return BothSides{*std::move(mine), {other.host, other.port, *theirs}};
}

/// Member 0, which allocates the group.
class Leader {
 public:
  Leader(gba_device* device, Link& link, Milliseconds limit) : device_(device), link_(link), limit_(limit) {}
  Leader(const Leader&) = delete;
  Leader& operator=(const Leader&) = delete;
  ~Leader() {
    group_.reset();
    if (allocated_) {
      (void)gba_group_free(device_, &handle_);
    }
  }

  Result<BothSides> run(std::uint64_t rounds, std::uint32_t my_port, OtherSide other) {
    if (const auto made = make_group(); !made) {
      return told(link_, made.error());
    }
    if (const auto sent = link_.send({{"handle", to_json(handle_)}, {"rounds", rounds}, {"port", my_port}}); !sent) {
      return sent.error();
    }
    const auto joined = link_.receive(limit_);
    const auto port = joined ? number_in(*joined, "port", 0, UINT32_MAX) : Result<std::uint64_t>(joined.error());
    if (!port) {
      return port.error();
    }
    other.port = static_cast<std::uint32_t>(*port);
    auto result = exchange(link_, group_.get(), handle_, rounds, other, limit_);
    if (!result) {
      return result;
    }
    // In good order: no member gets an error release.
    if (const int error = gba_group_disable(device_, &handle_); error != 0) {
      return told(link_, failed(error));
    }
    (void)link_.send({{"leave", true}});
    if (const auto left = link_.receive(limit_); !left) {
      return left.error();
    }
    return result;
  }

 private:
  Result<void> make_group() {
    if (const int error = gba_group_alloc(device_, 2, 0, &handle_); error != 0) {
      return failed(error);
    }
    allocated_ = true;
    auto group = join(device_, handle_, 0);
    if (!group) {
      return group.error();
    }
    group_ = *std::move(group);
    if (const int error = gba_group_enable(device_, &handle_); error != 0) {
      return failed(error);
    }
    return {};
  }

  gba_device* const device_;
  Link& link_;
  const Milliseconds limit_;
  gba_group_handle handle_{};
  bool allocated_ = false;
  GroupPointer group_;
};

/// Member 1.
Result<BothSides> follow(gba_device* device, const gba_device_info& info, Link& link, OtherSide other,
                         Milliseconds limit) {
  const auto order = link.receive(limit);
  if (!order) {
    return order.error();
  }
  const auto handle = handle_in(*order);
  const auto rounds = number_in(*order, "rounds", 1, kMostRounds);
  const auto port = number_in(*order, "port", 0, UINT32_MAX);
  if (!handle || !rounds || !port) {
    return told(link, handle ? rounds ? port.error() : rounds.error() : handle.error());
  }
  other.port = static_cast<std::uint32_t>(*port);
  auto group = join(device, *handle, 1);
  if (!group) {
    return told(link, group.error());
  }
  if (const auto sent = link.send({{"port", info.port}}); !sent) {
    return sent.error();
  }
  auto result = exchange(link, group->get(), *handle, *rounds, other, limit);
  if (result) {
    (void)link.receive(limit);
    group->reset();
    (void)link.send({{"left", true}});
  }
  return result;
}

Result<OtherSide> greeted(Link& link, Milliseconds limit) {
  const auto hello = greet(link, kCommand, limit);
  if (!hello) {
    return hello.error();
  }
  return OtherSide{.host = text_in(*hello, "host"), .port = 0, .ns = Json()};
}

}  // namespace

Result<std::unique_ptr<PeerProcess>> start_second_port(const std::string& path) {
  return PeerProcess::start([&path](Link& link) {
    constexpr Milliseconds kNoLimit{0};  // if the first process ends, so does this one
    const auto device = open_device(path);
    const auto info = device ? info_of(device->get()) : Result<gba_device_info>(device.error());
    if (!info) {
      (void)link.send(error_message(info.error()));
      return;
    }
    if (auto other = greeted(link, kNoLimit)) {
      (void)follow(device->get(), *info, link, *std::move(other), kNoLimit);
    }
  });
}

Result<BothSides> measure_two(gba_device* device, const gba_device_info& info, std::uint64_t rounds,
                              const TwoPorts& ports, PeerProcess* process) {
  std::optional<Link> met;
  if (process == nullptr) {
    auto link = meet(ports);
    if (!link) {
      return link.error();
    }
    met.emplace(*std::move(link));
  }
  Link& link = process == nullptr ? *met : process->link();
  auto other = greeted(link, ports.limit());
  if (!other) {
    return other.error();
  }
  if (ports.listens) {
    return follow(device, info, link, *std::move(other), ports.limit());
  }
  return Leader(device, link, ports.limit()).run(rounds, info.port, *std::move(other));
}

}  // namespace tool
