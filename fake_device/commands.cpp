// SPDX-License-Identifier: Apache-2.0
#include "fake_device/commands.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <system_error>

namespace fake_device {

namespace {

Reply refuse(int error) {
  return {.error = error, .payload = {}, .fds = {}};
}

template <typename T>
void append(std::vector<std::byte>& out, const T& value) {
  const auto bytes = std::as_bytes(std::span(&value, 1));
  out.insert(out.end(), bytes.begin(), bytes.end());
}

template <typename T>
Reply answer(const T& value) {
  Reply reply;
  append(reply.payload, value);
  return reply;
}

/// The struct that a payload begins with, if it is that long.
template <typename T>
std::optional<T> head(const VfioUserMessage& message) {
  if (message.payload.size() < sizeof(T)) {
    return std::nullopt;
  }
  T value{};
  std::memcpy(&value, message.payload.data(), sizeof value);
  return value;
}

/// The payload as a struct of exactly its size, which begins with the size that the sender meant.
template <typename T>
std::optional<T> whole(const VfioUserMessage& message) {
  const auto value = head<T>(message);
  return value && message.payload.size() == sizeof(T) && value->argsz >= sizeof(T) ? value : std::nullopt;
}

template <typename T>
std::span<const std::byte> rest(const VfioUserMessage& message) {
  return std::span(message.payload).subspan(sizeof(T));
}

Reply map_dma(Function& function, VfioUserMessage& message) {
  const auto request = whole<vfio_user_dma_map>(message);
  if (!request || message.fds.size() > 1) {
    return refuse(EINVAL);
  }
  Given file = message.fds.empty() ? Given() : std::move(message.fds.front());
  return refuse(function.map(request->address, request->size, request->offset, request->flags, std::move(file)));
}

Reply unmap_dma(Function& function, const VfioUserMessage& message) {
  const auto request = whole<vfio_user_dma_unmap>(message);
  if (!request) {
    return refuse(EINVAL);
  }
  if (request->flags == VFIO_USER_DMA_UNMAP_ALL && request->address == 0 && request->size == 0) {
    function.unmap_all();
    return answer(*request);
  }
  if (request->flags != 0) {  // no dirty bitmaps
    return refuse(EINVAL);
  }
  const int error = function.unmap(request->address, request->size);
  return error == 0 ? answer(*request) : refuse(error);
}

Reply device_info(const Function& function, const VfioUserMessage& message) {
  if (!whole<vfio_user_device_info>(message)) {
    return refuse(EINVAL);
  }
  return answer(vfio_user_device_info{.argsz = sizeof(vfio_user_device_info),
                                      .flags = VFIO_USER_DEVICE_RESET_SUPPORTED | VFIO_USER_DEVICE_PCI,
                                      .num_regions = function.num_regions(),
                                      .num_irqs = GBA_NUM_IRQS});
}

Reply region_info(const Function& function, const ClientLimits& limits, const VfioUserMessage& message) {
  const auto request = whole<vfio_user_region_info>(message);
  if (!request || request->index >= function.num_regions()) {
    return refuse(EINVAL);
  }
  const auto region = function.region(request->index);
  const vfio_user_region_type type{.header = {.id = VFIO_USER_CAP_REGION_TYPE, .version = 1, .next = 0},
                                   .type = region.type,
                                   .subtype = region.subtype};
  vfio_user_region_info info{};
  info.argsz = static_cast<std::uint32_t>(sizeof info + (region.type != 0 ? sizeof type : 0));
  info.index = request->index;
  info.size = region.size;
  info.flags = region.exists ? VFIO_USER_REGION_READABLE | VFIO_USER_REGION_WRITABLE : 0;
  Reply reply;
  if (region.fd >= 0 && limits.max_fds >= 1) {
    info.flags |= VFIO_USER_REGION_MMAP;
    reply.fds = {region.fd};
  }
  // Where the capability does not fit in the request's argsz the client learns from argsz to ask again.
  const bool with_type = region.type != 0 && request->argsz >= info.argsz;
  if (with_type) {
    info.flags |= VFIO_USER_REGION_CAPS;
    info.cap_offset = sizeof info;
  }
  append(reply.payload, info);
  if (with_type) {
    append(reply.payload, type);
  }
  return reply;
}

// Where the reply does not fit in the request's argsz it says how long it would be, and gives nothing.
Reply region_io_fds(Function& function, const ClientLimits& limits, const VfioUserMessage& message) {
  const auto request = whole<vfio_user_region_io_fds>(message);
  if (!request || request->flags != 0 || request->count != 0 || request->index >= function.num_regions()) {
    return refuse(EINVAL);
  }
  vfio_user_region_io_fds info{.argsz = sizeof info, .flags = 0, .index = request->index, .count = 0};
  const bool offered = request->index == GBA_REGION_DOORBELLS && limits.max_fds >= 1;
  if (!offered) {
    return answer(info);
  }
  info.argsz = sizeof info + sizeof(vfio_user_ioeventfd);
  info.count = 1;
  if (request->argsz < info.argsz) {
    return answer(info);
  }
  const int kick = function.kick_fd();
  if (kick < 0) {
    return refuse(errno);
  }
  Reply reply = answer(info);
  vfio_user_ioeventfd entry{};
  entry.offset = GBA_DOORBELL_WAKEUP;
  entry.size = sizeof(std::uint32_t);
  entry.type = VFIO_USER_IO_FD_TYPE_IOEVENTFD;
  append(reply.payload, entry);
  reply.fds = {kick};
  return reply;
}

Reply irq_info(const Function& function, const VfioUserMessage& message) {
  const auto request = whole<vfio_user_irq_info>(message);
  if (!request || request->index >= GBA_NUM_IRQS) {
    return refuse(EINVAL);
  }
  vfio_user_irq_info info{};
  info.argsz = sizeof info;
  info.index = request->index;
  info.count = function.irq_count(request->index);
  info.flags = VFIO_USER_IRQ_INFO_EVENTFD;
  if (request->index == GBA_IRQ_MSIX) {
    info.flags |= VFIO_USER_IRQ_INFO_MASKABLE;
  }
  return answer(info);
}

Reply set_irqs(Function& function, VfioUserMessage& message, Turn& turn) {
  const auto request = head<vfio_user_irq_set>(message);
  if (!request || request->argsz < sizeof *request) {
    return refuse(EINVAL);
  }
  turn.take(std::min(request->count, function.irq_count(GBA_IRQ_MSIX)));
  return refuse(function.set_irqs(request->index, request->flags, request->start, request->count,
                                  rest<vfio_user_irq_set>(message), std::move(message.fds)));
}

Reply read_region(Function& function, const ClientLimits& limits, const VfioUserMessage& message, Time now,
                  Turn& turn) {
  const auto request = head<vfio_user_region_access>(message);
  if (!request || message.payload.size() != sizeof *request || request->count > limits.max_transfer) {
    return refuse(EINVAL);
  }
  turn.take_bytes(request->count);
  Reply reply = answer(*request);
  reply.payload.resize(sizeof *request + request->count);
  const auto data = std::span(reply.payload).subspan(sizeof *request);
  const int error = function.read(request->region, request->offset, data, now);
  return error == 0 ? reply : refuse(error);
}

Reply write_region(Function& function, const ClientLimits& limits, const VfioUserMessage& message, Time now) {
  const auto request = head<vfio_user_region_access>(message);
  if (!request || request->count > limits.max_transfer || message.payload.size() - sizeof *request != request->count) {
    return refuse(EINVAL);
  }
  const int error = function.write(request->region, request->offset, rest<vfio_user_region_access>(message), now);
  return error == 0 ? answer(*request) : refuse(error);
}

// The first write that fails ends it: the reply says how many were done.
std::optional<Reply> write_regions(Function& function, const ClientLimits& limits, const VfioUserMessage& message,
                                   Time now, Turn& turn, std::uint64_t& done) {
  const auto count = head<std::uint64_t>(message);
  constexpr std::size_t kEntry = sizeof(vfio_user_write_multi_entry);
  if (!limits.write_multiple || !count || *count > kMaxTransfer / kEntry ||
      message.payload.size() != sizeof *count + *count * kEntry) {
    return refuse(EINVAL);
  }
  for (; done < *count; ++done) {
    if (turn.over()) {
      return std::nullopt;
    }
    turn.take(1);
    vfio_user_write_multi_entry entry{};
    std::memcpy(&entry, message.payload.data() + sizeof *count + done * kEntry, kEntry);
    const bool fits = entry.count <= sizeof entry.data;
    const auto data = std::as_bytes(std::span(entry.data)).first(fits ? entry.count : 0);
    if (!fits || function.write(entry.region, entry.offset, data, now) != 0) {
      return done == 0 ? refuse(EINVAL) : answer(done);
    }
  }
  return answer(*count);
}

Reply reset(Function& function, const VfioUserMessage& message, Time now) {
  if (!message.payload.empty()) {
    return refuse(EINVAL);
  }
  function.reset(now);
  return {};
}

bool may_bring_fds(std::uint16_t command) {
  return command == VFIO_USER_DMA_MAP || command == VFIO_USER_DEVICE_SET_IRQS;
}

}  // namespace

std::optional<Reply> run_command(Function& function, const ClientLimits& limits, VfioUserMessage& message, Time now,
                                 Turn& turn, std::uint64_t& done) {
  turn.take(1);
  if (!message.fds.empty() && !may_bring_fds(message.header.command)) {
    return refuse(EINVAL);
  }
  switch (message.header.command) {
    case VFIO_USER_DMA_MAP:
      return map_dma(function, message);
    case VFIO_USER_DMA_UNMAP:
      return unmap_dma(function, message);
    case VFIO_USER_DEVICE_GET_INFO:
      return device_info(function, message);
    case VFIO_USER_DEVICE_GET_REGION_INFO:
      return region_info(function, limits, message);
    case VFIO_USER_DEVICE_GET_REGION_IO_FDS:
      return region_io_fds(function, limits, message);
    case VFIO_USER_DEVICE_GET_IRQ_INFO:
      return irq_info(function, message);
    case VFIO_USER_DEVICE_SET_IRQS:
      return set_irqs(function, message, turn);
    case VFIO_USER_REGION_READ:
      return read_region(function, limits, message, now, turn);
    case VFIO_USER_REGION_WRITE:
      return write_region(function, limits, message, now);
    case VFIO_USER_REGION_WRITE_MULTI:
      return write_regions(function, limits, message, now, turn, done);
    case VFIO_USER_DEVICE_RESET:
      return reset(function, message, now);
    case VFIO_USER_DEVICE_FEATURE:
    case VFIO_USER_MIG_DATA_READ:
    case VFIO_USER_MIG_DATA_WRITE:
      return refuse(ENOTSUP);
    default:
      return refuse(EINVAL);
  }
}

namespace {

struct Cause {
  std::uint16_t command;
  int error;
  const char* text;
};

// What is checked for each command, in the words of a client's author.
constexpr std::array kCauses{
    Cause{VFIO_USER_VERSION, EINVAL, "it may come only once"},
    Cause{VFIO_USER_DMA_MAP, EINVAL,
          "argsz is the size of the struct; flags are READABLE or WRITABLE; address, size and offset are multiples of "
          "4096; a file is one memfd, or another file in memory, with pages of up to 2 MiB, and is long enough"},
    Cause{VFIO_USER_DMA_MAP, EACCES,
          "the file is sealed against writing, or not open for it: map it for DMA first, seal it afterwards "
          "(F_SEAL_SHRINK, F_SEAL_FUTURE_WRITE)"},
    Cause{VFIO_USER_DMA_MAP, EEXIST, "it overlaps an earlier map"},
    Cause{VFIO_USER_DMA_MAP, ENOSPC, "the client has as many maps, files or addresses as it may have"},
    Cause{VFIO_USER_DMA_UNMAP, EINVAL, "flags are 0, or UNMAP_ALL with address and size 0; there are no dirty bitmaps"},
    Cause{VFIO_USER_DMA_UNMAP, ENOENT, "no map begins and ends within the range, or the range would split one"},
    Cause{VFIO_USER_DEVICE_GET_INFO, EINVAL, "argsz is at least the size of the struct"},
    Cause{VFIO_USER_DEVICE_GET_REGION_INFO, EINVAL, "no such region, or argsz is smaller than the struct"},
    Cause{VFIO_USER_DEVICE_GET_REGION_IO_FDS, EINVAL,
          "no such region, flags or count are not 0, or argsz is too small"},
    Cause{VFIO_USER_DEVICE_GET_IRQ_INFO, EINVAL, "no such interrupt, or argsz is smaller than the struct"},
    Cause{VFIO_USER_DEVICE_SET_IRQS, EINVAL,
          "no such interrupt or vector; not one kind of data and one action; not as many eventfds, or bools, as count; "
          "or a descriptor that is no eventfd"},
    Cause{VFIO_USER_REGION_READ, EINVAL, "it is not within a region, or longer than max_data_xfer_size"},
    Cause{VFIO_USER_REGION_WRITE, EINVAL,
          "it is not within a region, longer than max_data_xfer_size, or has not as many bytes as count says"},
    Cause{VFIO_USER_REGION_WRITE_MULTI, EINVAL,
          "the client did not ask for write_multiple in VERSION, the count is wrong, or the first write is refused"},
    Cause{VFIO_USER_DEVICE_RESET, EINVAL, "it has no payload"},
};

const char* name_of(std::uint16_t command) {
  switch (command) {
    case VFIO_USER_VERSION:
      return "VERSION";
    case VFIO_USER_DMA_MAP:
      return "DMA_MAP";
    case VFIO_USER_DMA_UNMAP:
      return "DMA_UNMAP";
    case VFIO_USER_DEVICE_GET_INFO:
      return "DEVICE_GET_INFO";
    case VFIO_USER_DEVICE_GET_REGION_INFO:
      return "DEVICE_GET_REGION_INFO";
    case VFIO_USER_DEVICE_GET_REGION_IO_FDS:
      return "DEVICE_GET_REGION_IO_FDS";
    case VFIO_USER_DEVICE_GET_IRQ_INFO:
      return "DEVICE_GET_IRQ_INFO";
    case VFIO_USER_DEVICE_SET_IRQS:
      return "DEVICE_SET_IRQS";
    case VFIO_USER_REGION_READ:
      return "REGION_READ";
    case VFIO_USER_REGION_WRITE:
      return "REGION_WRITE";
    case VFIO_USER_REGION_WRITE_MULTI:
      return "REGION_WRITE_MULTI";
    case VFIO_USER_DEVICE_RESET:
      return "DEVICE_RESET";
    default:
      return "a command that the device does not have";
  }
}

}  // namespace

std::string describe_refusal(std::uint16_t command, int error) {
  const auto* const cause = std::find_if(
      kCauses.begin(), kCauses.end(), [=](const Cause& one) { return one.command == command && one.error == error; });
  return fmt::format("refused {} ({}): {}{}{}", name_of(command), command, std::generic_category().message(error),
                     cause == kCauses.end() ? "" : ": ", cause == kCauses.end() ? "" : cause->text);
}

namespace {

using nlohmann::json;

bool read_number(const json& capabilities, const char* name, std::uint64_t& value) {
  const auto found = capabilities.find(name);
  if (found == capabilities.end()) {
    return true;
  }
  if (!found->is_number_unsigned()) {
    return false;
  }
  value = found->get<std::uint64_t>();
  return true;
}

bool read_flag(const json& capabilities, const char* name, bool& value) {
  const auto found = capabilities.find(name);
  if (found == capabilities.end()) {
    return true;
  }
  if (!found->is_boolean()) {
    return false;
  }
  value = found->get<bool>();
  return true;
}

Result<ClientLimits> parse_capabilities(const json& document) {
  ClientLimits limits;
  if (!document.is_object()) {
    return failure("its capabilities are not a JSON object");
  }
  const auto capabilities = document.find("capabilities");
  if (capabilities == document.end()) {
    return limits;
  }
  if (!capabilities->is_object() || !read_number(*capabilities, "max_msg_fds", limits.max_fds) ||
      !read_number(*capabilities, "max_data_xfer_size", limits.max_transfer) ||
      !read_flag(*capabilities, "write_multiple", limits.write_multiple)) {
    return failure("a capability of it has the wrong type");
  }
  limits.max_transfer = std::min<std::uint64_t>(limits.max_transfer, kMaxTransfer);
  return limits;
}

}  // namespace

Result<ClientLimits> parse_version(std::span<const std::byte> payload) {
  vfio_user_version version{};
  if (payload.size() < sizeof version) {
    return failure("its VERSION message is too short");
  }
  std::memcpy(&version, payload.data(), sizeof version);
  if (version.major != VFIO_USER_MAJOR) {
    return failure(fmt::format("it speaks vfio-user {}.{}, this server {}.{}", version.major, version.minor,
                               VFIO_USER_MAJOR, VFIO_USER_MINOR));
  }
  const auto text = payload.subspan(sizeof version);
  if (text.empty()) {
    return ClientLimits{};
  }
  const auto end = std::find(text.begin(), text.end(), std::byte{0});
  if (end != text.end() - 1) {
    return failure("its capabilities are not one string that ends with a NUL");
  }
  const auto* const begin = reinterpret_cast<const char*>(text.data());
  return parse_capabilities(json::parse(begin, begin + text.size() - 1, nullptr, /*allow_exceptions=*/false));
}

std::vector<std::byte> version_reply(const ClientLimits& limits) {
  json capabilities{{"max_msg_fds", kMaxFds},
                    {"max_data_xfer_size", kMaxTransfer},
                    {"max_dma_maps", kMaxDmaMaps},
                    {"pgsizes", kPageSize}};
  if (limits.write_multiple) {
    capabilities["write_multiple"] = true;
  }
  const std::string text = json{{"capabilities", capabilities}}.dump();
  const vfio_user_version version{.major = VFIO_USER_MAJOR, .minor = VFIO_USER_MINOR};
  std::vector<std::byte> payload(sizeof version + text.size() + 1);
  std::memcpy(payload.data(), &version, sizeof version);
  std::memcpy(payload.data() + sizeof version, text.c_str(), text.size() + 1);
  return payload;
}

}  // namespace fake_device
