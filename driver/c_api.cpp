// SPDX-License-Identifier: Apache-2.0
// The C ABI: checks pointers, makes one call, and turns a Result into -errno. No exception passes it.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string_view>

#include "driver/caller_thread.hpp"
#include "driver/device.hpp"
#include "driver/discovery.hpp"
#include "driver/group.hpp"
#include "driver/group_status.hpp"
#include "driver/registry.hpp"
#include "driver/report.hpp"
#include "gba/gba.h"
#include "gba/version.h"
#include "uapi/gba_regs.h"

static_assert(GBA_GROUP_MASK_WORDS == GBA_MASK_WORDS);

struct gba_device {
  std::shared_ptr<gba::Device> device;
};

struct gba_group : gba::Group {
  using gba::Group::Group;
};

namespace {

using gba::finish;
using gba::guarded;
using gba::null_argument;
using gba::report;

gba::Result<gba::FlagPlace> flag_place(const gba_open_options* options) {
  if (options != nullptr) {
    const std::uint32_t place = options->flags & ~GBA_OPEN_FATAL;
    if (options->size != sizeof(*options) || place > GBA_FLAGS_BAR) {
      return gba::fail(
          std::errc::invalid_argument,
          "gba: gba_open_with: the options have another size, or unknown flags (zero them, then set size)");
    }
    if (place != GBA_FLAGS_AUTO) {
      return static_cast<gba::FlagPlace>(place);
    }
  }
  const char* const text = std::getenv("GBA_FLAGS");
  const std::string_view name = text == nullptr || *text == '\0' ? "auto" : text;
  if (name == "auto") {
    return gba::FlagPlace::kAuto;
  }
  if (name == "dma") {
    return gba::FlagPlace::kHost;
  }
  if (name == "bar") {
    return gba::FlagPlace::kBar;
  }
  if (name == "huge") {
    return gba::FlagPlace::kHugeHost;
  }
  return gba::fail(std::errc::invalid_argument,
                   fmt::format("gba: GBA_FLAGS is \"{}\", not auto, dma, huge or bar", name));
}
static_assert(static_cast<unsigned>(gba::FlagPlace::kHost) == GBA_FLAGS_DMA &&
              static_cast<unsigned>(gba::FlagPlace::kBar) == GBA_FLAGS_BAR);

/// May there be a register of `size` bytes at `offset` of BAR0? The kernel keeps the MSI-X table to itself.
bool is_register(std::uint64_t offset, std::uint32_t size) {
  return (size == 4 || size == 8) && offset % size == 0 && offset < GBA_MSIX_TABLE_OFFSET;
}

int not_a_register(const char* function, std::uint64_t offset, std::uint32_t size) {
  return report(std::errc::invalid_argument,
                fmt::format("gba: {}: {} bytes at {:#x} are not a register: 4 or 8 bytes (and a value that fits), "
                            "aligned, below {:#x}",
                            function, size, offset, GBA_MSIX_TABLE_OFFSET));
}

template <typename T>
int take(const gba::Result<T>& read, std::uint64_t& value) {
  if (!read) {
    return report(read.error());
  }
  value = *read;
  return 0;
}

/// What test, sleep and wait give.
int finish_wait(gba::Group& group, std::errc result, std::uint64_t sequence) {
  if (result == std::errc{} || result == gba::Group::kNotYet) {
    return -static_cast<int>(result);
  }
  return report(group.describe(result, sequence));
}

/// Not inlined: a successful test saves no registers for what may be thrown here.
[[gnu::noinline]] int test_again(gba::Group& group, std::uint64_t sequence) {
  gba::ensure_prepared();
  return guarded([&] { return finish_wait(group, group.test(sequence), sequence); });
}

/// The first call of a thread; not inlined either.
[[gnu::noinline]] void prepare_and_arrive(gba_group* group, std::uint64_t sequence) {
  gba::prepare_caller();
  gba_group_arrive(group, sequence);
}

}  // namespace

const char* gba_version(void) {
  return GBA_LIBRARY_VERSION;
}

const char* gba_error_text(void) {
  return gba::error_text();
}

int gba_list(char (*addresses)[GBA_ADDRESS_SIZE], uint32_t room, uint32_t* count) {
  if (count == nullptr || (addresses == nullptr && room > 0)) {
    return null_argument("gba_list");
  }
  *count = 0;
  return guarded([&] {
    const auto found = gba::list_devices();
    if (!found) {
      return report(found.error());
    }
    *count = static_cast<std::uint32_t>(found->size());
    for (std::uint32_t i = 0; i < std::min(room, *count); ++i) {
      addresses[i][(*found)[i].copy(addresses[i], GBA_ADDRESS_SIZE - 1)] = '\0';
    }
    return 0;
  });
}

int gba_open(const char* path, gba_device** out) {
  if (out == nullptr) {
    return null_argument("gba_open");
  }
  return gba_open_with(path, nullptr, out);
}

int gba_open_with(const char* path, const gba_open_options* options, gba_device** out) {
  if (out == nullptr) {
    return null_argument("gba_open_with");
  }
  *out = nullptr;
  gba::prepare_caller();
  return guarded([&] {
    const auto flags = flag_place(options);
    if (!flags) {
      return report(flags.error());
    }
    const bool even_fatal = options != nullptr && (options->flags & GBA_OPEN_FATAL) != 0;
    auto device = gba::open_device(path, *flags, even_fatal);
    if (!device) {
      return report(device.error());
    }
    *out = std::make_unique<gba_device>(gba_device{*std::move(device)}).release();
    return 0;
  });
}

void gba_close(gba_device* device) {
  gba::ensure_prepared();
  const std::unique_ptr<gba_device> owner(device);
}

int gba_device_get_info(gba_device* device, gba_device_info* info) {
  if (device == nullptr || info == nullptr) {
    return null_argument("gba_device_get_info");
  }
  gba::ensure_prepared();
  return guarded([&] {
    *info = device->device->info();
    if (!device->device->backend().check_lost()) {
      return 0;
    }
    return report(device->device->backend().loss_error());
  });
}

int gba_device_check(gba_device* device) {
  if (device == nullptr) {
    return null_argument("gba_device_check");
  }
  gba::ensure_prepared();
  return guarded([&] { return finish(device->device->check_condition()); });
}

int gba_device_get_counters(gba_device* device, gba_device_counters* counters) {
  if (device == nullptr || counters == nullptr) {
    return null_argument("gba_device_get_counters");
  }
  gba::ensure_prepared();
  return guarded([&] {
    const auto result = device->device->counters();
    if (!result) {
      return report(result.error());
    }
    *counters = *result;
    return 0;
  });
}

int gba_group_get_status(gba_device* device, uint32_t group, gba_group_status* status) {
  if (device == nullptr || status == nullptr) {
    return null_argument("gba_group_get_status");
  }
  gba::ensure_prepared();
  return guarded([&] {
    const auto result = gba::read_group_status(*device->device, group);
    if (!result) {
      return report(result.error());
    }
    *status = *result;
    return 0;
  });
}

int gba_device_read_register(gba_device* device, uint64_t offset, uint32_t size, uint64_t* value) {
  if (device == nullptr || value == nullptr) {
    return null_argument("gba_device_read_register");
  }
  gba::ensure_prepared();
  return guarded([&] {
    if (!is_register(offset, size)) {
      return not_a_register("gba_device_read_register", offset, size);
    }
    const auto& control = device->device->control();
    if (size == 4) {
      return take(control.read<std::uint32_t>(offset), *value);
    }
    return take(control.read<std::uint64_t>(offset), *value);
  });
}

int gba_device_write_register(gba_device* device, uint64_t offset, uint32_t size, uint64_t value) {
  if (device == nullptr) {
    return null_argument("gba_device_write_register");
  }
  gba::ensure_prepared();
  return guarded([&] {
    if (!is_register(offset, size) || (size == 4 && value > UINT32_MAX)) {
      return not_a_register("gba_device_write_register", offset, size);
    }
    const auto& control = device->device->control();
    return size == 4 ? finish(control.write(offset, static_cast<std::uint32_t>(value)))
                     : finish(control.write(offset, value));
  });
}

int gba_device_reset(gba_device* device) {
  if (device == nullptr) {
    return null_argument("gba_device_reset");
  }
  gba::ensure_prepared();
  return guarded([&] { return finish(device->device->reset()); });
}

int gba_group_alloc(gba_device* device, uint32_t member_count, uint64_t sequence, gba_group_handle* handle) {
  if (device == nullptr || handle == nullptr) {
    return null_argument("gba_group_alloc");
  }
  gba::ensure_prepared();
  return guarded([&] {
    const auto result = device->device->alloc(member_count, sequence);
    if (!result) {
      return report(result.error());
    }
    *handle = *result;
    return 0;
  });
}

int gba_group_enable(gba_device* device, const gba_group_handle* handle) {
  if (device == nullptr || handle == nullptr) {
    return null_argument("gba_group_enable");
  }
  gba::ensure_prepared();
  return guarded([&] { return finish(device->device->enable(*handle)); });
}

int gba_group_disable(gba_device* device, const gba_group_handle* handle) {
  if (device == nullptr || handle == nullptr) {
    return null_argument("gba_group_disable");
  }
  gba::ensure_prepared();
  return guarded([&] { return finish(device->device->disable(*handle)); });
}

int gba_group_free(gba_device* device, const gba_group_handle* handle) {
  if (device == nullptr || handle == nullptr) {
    return null_argument("gba_group_free");
  }
  gba::ensure_prepared();
  return guarded([&] { return finish(device->device->free_group(*handle)); });
}

int gba_group_join(gba_device* device, const gba_group_handle* handle, uint32_t member, gba_group** out) {
  if (device == nullptr || handle == nullptr || out == nullptr) {
    return null_argument("gba_group_join");
  }
  *out = nullptr;
  gba::prepare_caller();
  return guarded([&] {
    auto membership = gba::Membership::join(device->device, *handle, member);
    if (!membership) {
      return report(membership.error());
    }
    *out = std::make_unique<gba_group>(*std::move(membership)).release();
    return 0;
  });
}

int gba_group_leave(gba_group* group) {
  const std::unique_ptr<gba_group> owner(group);
  if (group == nullptr) {
    return 0;
  }
  gba::ensure_prepared();
  return guarded([&] { return finish(group->leave()); });
}

void gba_group_arrive(gba_group* group, uint64_t sequence) {
  if (group == nullptr) {
    return;
  }
  if (!gba::caller_is_prepared) [[unlikely]] {
    prepare_and_arrive(group, sequence);
    return;
  }
  // A kick that fails is made up for by the next sleep, which arrives again.
  (void)guarded([&] {
    group->arrive(sequence);
    return 0;
  });
}

int gba_group_test(gba_group* group, uint64_t sequence) {
  if (group == nullptr) {
    return null_argument("gba_group_test");
  }
  return gba::caller_is_prepared && group->is_released(sequence) ? 0 : test_again(*group, sequence);
}

int gba_group_sleep(gba_group* group, uint64_t sequence, uint64_t max_ns) {
  if (group == nullptr) {
    return null_argument("gba_group_sleep");
  }
  gba::ensure_prepared();
  return guarded([&] {
    const auto limit = gba::Deadline::after_ns(max_ns).left(std::chrono::hours{1});
    return finish_wait(*group, group->sleep(sequence, limit), sequence);
  });
}

int gba_group_wait(gba_group* group, uint64_t sequence, uint64_t timeout_ns) {
  if (group == nullptr) {
    return null_argument("gba_group_wait");
  }
  gba::ensure_prepared();
  return guarded([&] {
    const auto deadline = gba::Deadline::after_ns(timeout_ns);
    return finish_wait(*group, group->wait(sequence, deadline), sequence);
  });
}

int gba_group_missing(gba_group* group, uint64_t mask[GBA_GROUP_MASK_WORDS]) {
  if (group == nullptr || mask == nullptr) {
    return null_argument("gba_group_missing");
  }
  gba::ensure_prepared();
  return guarded([&] {
    const auto missing = group->missing();
    if (!missing) {
      return report(missing.error());
    }
    std::copy(missing->begin(), missing->end(), mask);
    return 0;
  });
}
