// SPDX-License-Identifier: Apache-2.0
#include "fake_device/stats.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

#include "fake_device/clock.hpp"

namespace fake_device {
namespace {

// In the order of Counter.
constexpr std::array kNames{"arrivals", "releases", "stale",  "rejected",   "dma_faults",
                            "timeouts", "resets",   "errors", "interrupts", "wakeups"};
static_assert(kNames.size() == kCounters);

std::string as_text(const nlohmann::ordered_json& object) {
  std::string line = "gba-fake-device: stats:";
  for (const auto& [name, value] : object.items()) {
    if (name != "time") {
      line += " " + name + "=" + value.dump();
    }
  }
  return line + "\n";
}

}  // namespace

Stats::Stats(Time interval, LineFormat format, Time now)
    : interval_(interval), format_(format), due_(interval == 0 ? kNever : now + interval), last_(now) {}

std::string Stats::line(const Model& model, std::size_t clients, Time now) {
  nlohmann::ordered_json object{{"time", wall_clock()}, {"clients", clients}, {"groups", model.allocated_groups()}};
  for (std::size_t index = 0; index < kNames.size(); ++index) {
    object[kNames[index]] = model.counter(static_cast<Counter>(index));
  }
  const double seconds = static_cast<double>(now - last_) / static_cast<double>(kSecond);
  const auto rate = [&](Counter counter, std::uint64_t& before) {
    const auto total = model.counter(counter);
    const auto since = static_cast<double>(total - std::exchange(before, total));
    return seconds > 0 ? std::llround(since / seconds) : 0;
  };
  object["arrivals_per_second"] = rate(Counter::kArrivals, before_[0]);
  object["releases_per_second"] = rate(Counter::kReleases, before_[1]);
  last_ = now;
  due_ = interval_ == 0 ? kNever : now + interval_;
  return format_ == LineFormat::kJson ? object.dump() + "\n" : as_text(object);
}

}  // namespace fake_device
