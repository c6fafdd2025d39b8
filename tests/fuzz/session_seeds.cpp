// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/seeds.hpp"
#include "tests/fuzz/session_script.hpp"

namespace fuzz {
namespace {

constexpr std::uint64_t kIova = 0x10000;
constexpr std::uint32_t kFire = VFIO_USER_IRQ_DATA_NONE | VFIO_USER_IRQ_ACTION_TRIGGER;
constexpr std::uint32_t kFireSome = VFIO_USER_IRQ_DATA_BOOL | VFIO_USER_IRQ_ACTION_TRIGGER;
constexpr std::uint32_t kArm = VFIO_USER_IRQ_DATA_EVENTFD | VFIO_USER_IRQ_ACTION_TRIGGER;
constexpr std::uint32_t kMask = VFIO_USER_IRQ_DATA_NONE | VFIO_USER_IRQ_ACTION_MASK;
constexpr std::uint32_t kUnmask = VFIO_USER_IRQ_DATA_NONE | VFIO_USER_IRQ_ACTION_UNMASK;
using enum Descriptor;

Script opened() {
  return Script().open();
}

/// A group of one or two members, of which the client is the first.
Script joined(unsigned members, std::uint64_t timeout = 0) {
  return opened().make_group(members, timeout).join(0, 0);
}

Script& info(Script& script, std::uint8_t command, std::uint32_t index, std::uint32_t argsz) {
  return script.send(command, vfio_user_irq_info{.argsz = argsz, .flags = 0, .index = index, .count = 0});
}

Script about_every_index(std::uint8_t command, unsigned count, std::uint32_t argsz) {
  Script script = opened();
  for (unsigned index = 0; index <= count; ++index) {
    info(script, command, index, argsz);
  }
  return script.read();
}

Script every_region() {
  Script script = opened();
  for (unsigned index = 0; index <= GBA_NUM_REGIONS; ++index) {
    script.region_info(index).region_read(index, 0, 8).region_write(index, 8, ~0ULL);
  }
  return script.read();
}

Script with_each_descriptor(bool interrupts) {
  Script script = opened();
  for (unsigned kind = 0; kind < kDescriptors; ++kind) {
    script.bring({static_cast<Descriptor>(kind)});
    if (interrupts) {
      script.set_irqs(kArm, GBA_IRQ_MSIX, kind, 1).set_irqs(kFire, GBA_IRQ_MSIX, kind, 1);
    } else {
      script.map(kIova * (kind + 1), 0x1000);
    }
  }
  return script;
}

Script write_multi() {
  struct {
    std::uint64_t count = 2;
    vfio_user_write_multi_entry writes[2] = {{.offset = 4, .region = GBA_REGION_CONFIG, .count = 2, .data = {2}},
                                             {.offset = 0x28, .region = 0, .count = 8, .data = {GBA_CMD_ALLOC}}};
  } const payload;
  return opened().send(VFIO_USER_REGION_WRITE_MULTI, payload).read();
}

Script queued_reads(unsigned count) {
  const vfio_user_region_access access{.offset = 0, .region = GBA_REGION_DOORBELLS, .count = GBA_BAR2_SIZE};
  Script script = opened();
  for (unsigned index = 0; index < count; ++index) {
    script.message(Step::kQueue, VFIO_USER_REGION_READ, std::as_bytes(std::span(&access, 1)));
  }
  return script.region_read(GBA_REGION_CONTROL, 0, 4);
}

Script many_maps() {
  Script script = opened();
  for (std::uint64_t page = 0; page < 16; ++page) {
    script.bring({kMemory}).map(kIova + page * 0x2000, 0x1000, page * 0x1000);
  }
  return script.unmap(0, 0, VFIO_USER_DMA_UNMAP_ALL);
}

Script unknown_commands() {
  Script script = opened();
  for (const std::uint8_t command : std::initializer_list<std::uint8_t>{0, 11, 12, 14, 19, 255}) {
    script.send(command);
  }
  return script.read();
}

Script wrong_keys() {
  Script script = opened().make_group(1);
  for (unsigned count = 0; count <= GBA_MAX_WRONG_KEYS; ++count) {
    script.command(GBA_CMD_JOIN, 1, 0, 1);
  }
  return script.join(0, 0).command(GBA_CMD_JOIN, 0, 0, 1);
}

Seeds wire_seeds() {
  const vfio_user_header impossible{.msg_id = 0, .command = 1, .msg_size = 3, .flags = 0, .error = 0};
  const vfio_user_header cut_short{.msg_id = 0, .command = 1, .msg_size = 99, .flags = 0, .error = 0};
  const vfio_user_device_info device{.argsz = 16, .flags = 0, .num_regions = 0, .num_irqs = 0};
  const std::uint64_t eight = 0;
  return {
      {"version", Script().version().read()},
      {"version_without_json", Script().send(VFIO_USER_VERSION, vfio_user_version{.major = 0, .minor = 9}).read()},
      {"version_refused", Script().version("{").read()},
      {"version_without_descriptors", Script().version(R"({"capabilities":{"max_msg_fds":0}})").take_doorbells()},
      {"command_before_version", Script().send(VFIO_USER_DEVICE_GET_INFO, device).read()},
      {"device_get_info", opened().send(VFIO_USER_DEVICE_GET_INFO, device).read()},
      {"device_reset", joined(1).send(VFIO_USER_DEVICE_RESET).read()},
      {"device_feature", opened().send(VFIO_USER_DEVICE_FEATURE, eight).read()},
      {"migration_data", opened().send(VFIO_USER_MIG_DATA_READ, eight).send(VFIO_USER_MIG_DATA_WRITE, eight).read()},
      {"unknown_commands", unknown_commands()},
      {"no_reply", opened().region_write(0, GBA_REG_CMD, GBA_CMD_ALLOC, 8, 0x10).send(99, 0x10).read()},
      {"reply_that_nobody_asked_for", opened().send(VFIO_USER_DMA_WRITE, 0x1).read()},
      {"impossible_size", opened().raw(std::as_bytes(std::span(&impossible, 1)))},
      {"cut_in_the_header", opened().cut(7).region_read(0, 0, 4).read()},
      {"cut_in_the_payload", opened().cut(25).region_read(0, 0, 4).read()},
      {"cut_with_descriptors", opened().bring({kEventfd}).cut(18).set_irqs(kArm, GBA_IRQ_MSIX, 0, 1)},
      {"cut_and_vanish", opened().bring({kMemory}).cut(20, true).map(kIova, 0x1000).vanish()},
      {"half_a_message", opened().raw(std::as_bytes(std::span(&cut_short, 1))).shut_down(0)},
      {"descriptors_too_many", opened()
                                   .bring({kNull, kNull, kNull, kNull, kNull, kNull, kNull, kNull, kNull, kNull, kNull,
                                           kNull, kNull, kNull, kNull, kNull, kNull})
                                   .map(kIova, 0x1000)},
      {"descriptors_where_none_belong", opened().bring({kMemory, kEventfd}).region_read(0, 0, 4).read()},
      {"replies_not_read", queued_reads(12).barrier().read(0x1000).read()},
      {"all_ports_taken", Script().client(0).version().client(1).version().client(2).version().client(3).version()},
      {"silent_until_the_limit", Script().tick(34).tick(33).client(0).version()},
  };
}

Seeds memory_seeds() {
  return {
      {"dma_map", opened().bring({kMemory}).map(kIova, 0x4000).read()},
      {"dma_map_without_file", opened().map(kIova, 0x1000).read()},
      {"dma_map_overlap", opened().bring({kMemory}).map(kIova, 0x2000).map(kIova + 0x1000, 0x2000).read()},
      {"dma_map_each_descriptor", with_each_descriptor(/*interrupts=*/false)},
      {"dma_map_many", many_maps()},
      {"dma_map_past_the_end", opened().bring({kMemory}).map(~0xfffULL, 0x1000, 0xf000).map(kIova, ~0xfffULL)},
      {"dma_unmap", opened().bring({kMemory}).map(kIova, 0x1000).unmap(kIova, 0x1000).unmap(kIova, 0x1000).read()},
      {"dma_grown_file", opened().bring({kMemory}).map(kIova, 0x1000).resize(0, 32).bring({kMemory}).map(0, 0x20000)},
      {"set_irqs_eventfd",
       opened().bring({kEventfd, kEventfd}).set_irqs(kArm, GBA_IRQ_MSIX, 0, 2).set_irqs(kFire, GBA_IRQ_MSIX, 0, 2)},
      {"set_irqs_forms", opened()
                             .bring({kEventfd})
                             .set_irqs(kArm, GBA_IRQ_MSIX, 1, 1)
                             .set_irqs(kMask, GBA_IRQ_MSIX, 1, 1)
                             .set_irqs(kFireSome, GBA_IRQ_MSIX, 0, 2, {0, 1})
                             .set_irqs(kUnmask, GBA_IRQ_MSIX, 1, 1)
                             .set_irqs(kArm, GBA_IRQ_MSIX, 1, 1)
                             .set_irqs(kFire, GBA_IRQ_MSIX, 0, 0)},
      {"set_irqs_each_descriptor", with_each_descriptor(/*interrupts=*/true)},
      {"get_irq_info", about_every_index(VFIO_USER_DEVICE_GET_IRQ_INFO, GBA_NUM_IRQS, 16)},
      {"get_region_info", every_region()},
      {"get_region_io_fds", about_every_index(VFIO_USER_DEVICE_GET_REGION_IO_FDS, GBA_NUM_REGIONS, 56)},
      {"region_read_config", opened().region_read(GBA_REGION_CONFIG, 0, GBA_CONFIG_SIZE).read()},
      {"region_write_bars", opened().region_write(GBA_REGION_CONFIG, 0x10, ~0ULL).region_read(7, 0x10, 8).read()},
      {"region_write_multi", write_multi()},
  };
}

Seeds barrier_seeds() {
  return {
      {"barrier_bar_flags", joined(1).take_doorbells().store(0, 64, Script::arrival(1, 0)).arrive(2).arrive(1)},
      {"barrier_dma_flags", joined(1)
                                .bring({kMemory})
                                .map(kIova, 0x1000)
                                .release_to(0, kIova + 64)
                                .arrive(1)
                                .arrive(2)
                                .unmap(kIova, 0x1000)},
      {"barrier_dma_write", joined(1)
                                .map(kIova, 0x1000)
                                .release_to(0, kIova)
                                .bring({kEventfd})
                                .set_irqs(kArm, GBA_IRQ_MSIX, 1, 1)
                                .arrive(1)
                                .read()
                                .answer()
                                .arrive(2)
                                .read()
                                .answer(VFIO_USER_ERROR, 0)
                                .read()},
      {"barrier_memory_shrunk",
       joined(1).bring({kMemory}).map(kIova, 0x1000).release_to(0, kIova).arrive(1).resize(0, 0).arrive(2).barrier()},
      {"barrier_no_bus_master",
       joined(1).region_write(GBA_REGION_CONFIG, 4, 2, 2).arrive(1).release_to(0, 0).arrive(2)},
      {"barrier_no_memory_decoding",
       joined(1).take_doorbells().region_write(GBA_REGION_CONFIG, 4, 4, 2).store(0, 64, Script::arrival(1, 0))},
      {"barrier_of_two_clients", joined(2)
                                     .arrive(1)
                                     .client(1)
                                     .open()
                                     .join(0, 1)
                                     .arrive(1, 1)
                                     .barrier()
                                     .arrive(2, 1)
                                     .client(0)
                                     .vanish()
                                     .client(1)
                                     .read()},
      {"barrier_timeout", joined(2, 1000).arrive(1).tick(12).region_read(0, GBA_GROUP_BASE(1) + GBA_GROUP_STATUS, 8)},
      {"barrier_too_far_ahead", joined(2).arrive(3).barrier()},
      {"doorbells_with_garbage", joined(1).take_doorbells().store(0, 64, 1).store(0, 0, ~0ULL).store(0, 0xffc0, ~0ULL)},
      {"doorbells_misused", opened().take_doorbells().misuse(0, Misuse::kShrink).misuse(0, Misuse::kGrow)},
      {"keys_that_are_wrong", wrong_keys()},
      {"kick", info(joined(1).take_doorbells().sleep(), VFIO_USER_DEVICE_GET_REGION_IO_FDS, GBA_REGION_DOORBELLS, 56)
                   .read()
                   .store(1, 64, Script::arrival(1, 0))
                   .misuse(0, Misuse::kWrite)
                   .misuse(0, Misuse::kFill)
                   .region_write(GBA_REGION_DOORBELLS, GBA_DOORBELL_WAKEUP, 1, 4)},
      {"kick_made_blocking",
       [] {
         Script script = opened();
         return info(script, VFIO_USER_DEVICE_GET_REGION_IO_FDS, GBA_REGION_DOORBELLS, 56)
             .read()
             .misuse(0, Misuse::kMakeBlocking)
             .region_write(GBA_REGION_DOORBELLS, GBA_DOORBELL_WAKEUP, 1, 4);
       }()},
  };
}

}  // namespace

Seeds session_seeds() {
  Seeds seeds = wire_seeds();
  seeds.merge(memory_seeds());
  seeds.merge(barrier_seeds());
  return seeds;
}

}  // namespace fuzz
