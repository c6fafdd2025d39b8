// SPDX-License-Identifier: Apache-2.0
#include "driver/registers.hpp"

#include <cerrno>
#include <chrono>
#include <thread>

#include "driver/wait.hpp"
#include "uapi/gba_regs.h"

namespace gba {

Result<Registers> Registers::open(Backend& backend, std::uint32_t region, std::uint64_t needed) {
  const auto info = backend.region_info(region);
  if (!info) {
    return info.error();
  }
  if (info->size < needed) {
    return fail(std::errc::no_such_device, fmt::format("gba: {} is not a GBA: its region {} has {} bytes, not {}",
                                                       backend.path(), region, info->size, needed));
  }
  Registers registers(backend, region, info->size);
  if (info->front > 0) {
    auto mapping = BarMapping::make(backend, region, info->front);
    if (!mapping) {
      return mapping.error();
    }
    registers.mapping_ = *std::move(mapping);
  }
  return registers;
}

Result<void> Registers::check(std::uint64_t offset, std::size_t size) const {
  if (backend_->lost()) {
    return backend_->loss_error();
  }
  if (offset % size != 0 || offset > size_ || size_ - offset < size) {
    return fail(std::errc::invalid_argument,
                fmt::format("gba: no register of {} bytes at {} in region {}", size, offset, region_));
  }
  return {};
}

namespace {

constexpr std::chrono::microseconds kBusyPoll{100};

struct Refusal {
  std::errc code;
  const char* text;
};

Refusal refusal_of(std::uint64_t error) {
  switch (error) {
    case GBA_CMD_ERROR_OPCODE:
      return {std::errc::operation_not_supported, "the device does not know the command"};
    case GBA_CMD_ERROR_NO_FREE_GROUP:
      return {std::errc::no_space_on_device, "all groups of the device are taken"};
    case GBA_CMD_ERROR_GROUP:
      return {std::errc::no_such_file_or_directory, "there is no such group (has its owner freed it, or ended?)"};
    case GBA_CMD_ERROR_MEMBER:
      return {std::errc::invalid_argument, "the group has no such member"};
    case GBA_CMD_ERROR_MEMBER_TAKEN:
      return {std::errc::address_in_use, "another port is that member"};
    case GBA_CMD_ERROR_ALREADY_JOINED:
      return {std::errc::connection_already_in_progress, "this port is a member of the group already"};
    case GBA_CMD_ERROR_KEY:
      return {std::errc::permission_denied, "the key is wrong"};
    case GBA_CMD_ERROR_LOCKED_OUT:
      return {std::errc::permission_denied, "this port gave too many wrong keys and is locked out of the group"};
    case GBA_CMD_ERROR_NOT_OWNER:
      return {std::errc::operation_not_permitted, "another port owns the group"};
    case GBA_CMD_ERROR_NOT_JOINED:
      return {std::errc::not_connected, "this port is not a member of the group"};
    case GBA_CMD_ERROR_NOT_PRIVILEGED:
      return {std::errc::operation_not_permitted, "this port is not privileged, or the owner still lives"};
    case GBA_CMD_ERROR_GROUP_LIMIT:
      return {std::errc{EDQUOT},
              "this port has as many groups as it may have; gba limit raises that, through the privileged port"};
    default:
      return {std::errc::bad_message, "the device answered with an unknown error code"};
  }
}

}  // namespace

Result<std::uint64_t> Commands::finished_status() {
  const Deadline deadline = Deadline::after(timeout_);
  for (;;) {
    auto status = control_.read<std::uint64_t>(GBA_REG_CMD_STATUS);
    if (!status) {
      return status;
    }
    if (*status == GBA_ALL_ONES) {
      backend_.declare_lost(Loss::kRemoved);
      return backend_.loss_error();
    }
    if (GBA_FIELD_GET(GBA_CMD_STATUS_BUSY, *status) == 0) {
      return status;
    }
    if (deadline.passed()) {
      backend_.declare_lost(Loss::kSilent);
      return backend_.loss_error();
    }
    std::this_thread::sleep_for(kBusyPoll);
  }
}

Result<std::uint64_t> Commands::run(const Command& command, const std::string& doing) {
  const std::uint64_t word = GBA_FIELD_PUT(GBA_CMD_OPCODE, command.opcode) |
                             GBA_FIELD_PUT(GBA_CMD_GROUP, command.group) |
                             GBA_FIELD_PUT(GBA_CMD_MEMBER, command.member) | GBA_FIELD_PUT(GBA_CMD_KEY, command.key);
  const std::lock_guard lock(mutex_);
  if (auto rung = control_.write<std::uint64_t>(GBA_REG_CMD, word); !rung) {
    return rung.error();
  }
  auto status = finished_status();
  if (!status) {
    return status;
  }
  const std::uint64_t error = GBA_FIELD_GET(GBA_CMD_STATUS_ERROR, *status);
  if (error != GBA_CMD_OK) {
    const Refusal refusal = refusal_of(error);
    return fail(refusal.code, fmt::format("gba: {}: cannot {}: {}", backend_.path(), doing, refusal.text));
  }
  return control_.read<std::uint64_t>(GBA_REG_CMD_RESULT);
}

}  // namespace gba
