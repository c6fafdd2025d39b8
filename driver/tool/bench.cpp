// SPDX-License-Identifier: Apache-2.0
// gba bench: the round trip of a barrier, in percentiles: of one member, or of two on two ports.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "driver/tool/bench_two_ports.hpp"
#include "driver/tool/measurement.hpp"

namespace tool {
namespace {

constexpr const char* kMeasured =
    "from the arrival's store to the release seen in the flag, by a member that spins and is the group's only one";
constexpr const char* kMeasuredByTwo =
    "from a member's own arrival to the release seen in its flag, by two members that spin and arrive again at once";

void print_result(const Invocation& invocation, const gba_device_info& info, const Measurement& measurement,
                  const std::optional<OtherSide>& other) {
  const Json ns = percentiles_of(measurement);
  const std::string path = static_cast<const char*>(info.path);
  const std::string remark = caveat(info);
  const char* const measured = other ? kMeasuredByTwo : kMeasured;
  if (invocation.json) {
    Json json{{"device", path},
              {"port", info.port},
              {"members", other ? 2 : 1},
              {"measured", measured},
              {"rounds", measurement.ns.size()},
              {"longer_than_a_spin", measurement.slept},
              {"remark", remark.empty() ? Json() : Json(remark)},
              {"ns", ns}};
    if (other) {
      json["other_side"] = {{"host", other->host}, {"port", other->port}, {"ns", other->ns}};
    }
    print_json(json);
    return;
  }
  print_text(fmt::format("{}, port {}{}: {}\n", path, info.port,
                         other ? fmt::format(", with port {} of {}", other->port, other->host) : "",
                         count(measurement.ns.size(), "barrier")));
  print_text(fmt::format("measured: {}\n", measured));
  if (other) {
    print_text(fmt::format("here:     {}\nthere:    {}\n", to_text(ns), to_text(other->ns)));
  } else {
    print_text(fmt::format("          {}\n", to_text(ns)));
  }
  if (measurement.slept > 0) {
    print_text(fmt::format("          {} took longer than a spin\n", count(measurement.slept, "round")));
  }
  if (!remark.empty()) {
    print_text(fmt::format("remark:   {}\n", remark));
  }
}

Result<Measurement> measure_alone(gba_device* device, std::uint64_t rounds) {
  auto group = PrivateGroup::make(device);
  if (!group) {
    return group.error();
  }
  auto measurement = measure(group->get(), 1, rounds);
  if (!measurement) {
    return measurement;
  }
  if (const int error = group->end(); error != 0) {
    return failed(error);
  }
  return measurement;
}

int bench(const Invocation& invocation, std::uint64_t rounds, const TwoPorts& ports) {
  std::unique_ptr<PeerProcess> process;
  if (!ports.peer.empty()) {
    auto started = start_second_port(ports.peer);
    if (!started) {
      return report(invocation, started.error());
    }
    process = *std::move(started);
  }
  const auto device = open_device(invocation.device);
  if (!device) {
    return report(invocation, device.error());
  }
  const auto info = info_of(device->get());
  if (!info) {
    return report(invocation, info.error());
  }
  if (process == nullptr && !ports.listens && !ports.connects()) {
    const auto measurement = measure_alone(device->get(), rounds);
    if (!measurement) {
      return report(invocation, measurement.error());
    }
    print_result(invocation, *info, *measurement, std::nullopt);
    return kDone;
  }
  const auto result = measure_two(device->get(), *info, rounds, ports, process.get());
  if (!result) {
    return report(invocation, result.error());
  }
  print_result(invocation, *info, result->mine, result->other);
  return kDone;
}

}  // namespace

void declare_bench(CLI::App& app, Invocation& invocation) {
  const auto rounds = std::make_shared<std::uint64_t>(100'000);
  const auto ports = std::make_shared<TwoPorts>();
  auto command = declare(app, invocation, "bench", "round trips of a barrier, in percentiles",
                         [&invocation, rounds, ports] { return bench(invocation, *rounds, *ports); });
  take_device(command, invocation);
  take_two_ports(command, *ports);
  command.number("--rounds", *rounds, 1, kMostRounds, "how many barriers");
}

}  // namespace tool
