// SPDX-License-Identifier: Apache-2.0
#include "driver/tool/look.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "driver/tool/target.hpp"

namespace tool {
namespace {

Result<std::string> key_of(const std::string& path) {
  const auto target = find_target(path);
  if (!target) {
    return target.error();
  }
  return target->kind == Target::Kind::kSocket ? gba::key_of_socket(target->socket)
                                               : gba::key_of_function(target->function.address);
}

Look look_of(const gba::StatusView& view) {
  const auto& report = view.report;
  return {.info = report.info,
          .counters = report.counters,
          .limit = {.most = report.group_limit, .held = report.groups_held},
          .condition = report.condition == 0 ? "ok" : static_cast<const char*>(report.condition_text),
          .groups = view.groups};
}

Result<std::vector<gba_group_status>> groups_of(gba_device* device, std::uint32_t groups) {
  std::vector<gba_group_status> used;
  for (std::uint32_t group = 0; group < groups; ++group) {
    gba_group_status status{};
    if (const int error = gba_group_get_status(device, group, &status); error != 0) {
      return failed(error);
    }
    if (status.member_count != 0) {
      used.push_back(status);
    }
  }
  return used;
}

}  // namespace

Result<Looker> Looker::open(const std::string& path, std::uint32_t flags) {
  Looker looker;
  auto device = open_device(path, flags);
  if (device) {
    looker.device_ = *std::move(device);
    return looker;
  }
  if (device.error().error != -EBUSY) {
    return device.error();
  }
  const auto key = key_of(path);
  if (!key) {
    return device.error();
  }
  auto view = gba::look_through_opener(*key);
  if (!view) {
    return Failure{
        -EBUSY,
        fmt::format("{}\nThe process that has it cannot be asked: {}. It answers to its own user and to root, in "
                    "its own network namespace, unless GBA_STATUS=off. Every port of the switch shows the "
                    "groups of all: look through a free one (gba list; a virtual function; a port of another "
                    "machine). A job of libshmem that hangs names the missing PEs itself "
                    "(SHMEM_BARRIER_WARN)",
                    device.error().text, view.error().text),
        kCannotOpen};
  }
  looker.view_ = *std::move(view);
  return looker;
}

Result<Look> Looker::look() {
  if (view_) {
    auto again = gba::look_again(*view_);
    if (!again) {
      return Failure{-static_cast<int>(again.error().code), "gba: cannot look at the device: " + again.error().text};
    }
    view_ = *std::move(again);
    return look_of(*view_);
  }
  const auto info = info_of(device_.get());
  if (!info) {
    return info.error();
  }
  const auto counters = counters_of(device_.get());
  if (!counters) {
    return counters.error();
  }
  const auto limit = group_limit_of(device_.get(), *info);
  if (!limit) {
    return limit.error();
  }
  auto groups = groups_of(device_.get(), info->groups);
  if (!groups) {
    return groups.error();
  }
  return Look{.info = *info,
              .counters = *counters,
              .limit = *limit,
              .condition = gba_device_check(device_.get()) == 0 ? "ok" : gba_error_text(),
              .groups = *std::move(groups)};
}

std::string Looker::seen_by_text() const {
  if (!view_) {
    return "";
  }
  const bool mine = view_->user == ::geteuid();
  return fmt::format(", as seen by process {}{}", view_->pid, mine ? "" : fmt::format(" of user {}", view_->user));
}

}  // namespace tool
