// SPDX-License-Identifier: Apache-2.0
#include <filesystem>

#include "tests/fuzz/check.hpp"
#include "tests/fuzz/client.hpp"
#include "tests/fuzz/members.hpp"
#include "tests/fuzz/targets.hpp"

namespace fuzz {
namespace {

constexpr unsigned kClients = kClientPorts + 1;  // one more than there are ports
constexpr unsigned kMostSteps = 300;
constexpr unsigned kCloseLimit = 20'000;  // milliseconds

/// Carries out an input on a device.
class SessionRun {
 public:
  explicit SessionRun(Device& device, Members& members)
      : device_(device), members_(members), clients_{Client(device), Client(device), Client(device), Client(device)} {}

  void play(Input& input) {
    client().connect();
    for (unsigned steps = 0; !input.empty() && steps < kMostSteps; ++steps) {
      take_step(input.choose<Step>(kSteps), input);
    }
  }

 private:
  Client& client() { return clients_[current_]; }
  void take_step(Step step, Input& input);
  void take_device_step(Step step, Input& input);
  void queue_command(Input& input);
  void join(Input& input);

  Device& device_;
  Members& members_;
  std::array<Client, kClients> clients_;
  unsigned current_ = 0;
};

void SessionRun::queue_command(Input& input) {
  const auto command = input.take<std::uint8_t>();
  const auto flags = input.take<std::uint8_t>();
  const auto length = input.take<std::uint16_t>();
  client().queue(command, flags, input.take_bytes(length));
}

void SessionRun::take_step(Step step, Input& input) {
  switch (step) {
    case Step::kCommand:
      queue_command(input);
      client().send();
      break;
    case Step::kQueue:
      queue_command(input);
      break;
    case Step::kRaw:
      client().queue_bytes(input.take_bytes(input.take<std::uint16_t>()));
      client().send();
      break;
    case Step::kDescriptors:
      for (unsigned count = input.take<std::uint8_t>(); count > 0 && !input.empty(); --count) {
        client().bring(input.choose<Descriptor>(kDescriptors));
      }
      break;
    case Step::kCut: {
      const auto length = input.take<std::uint16_t>();
      client().cut_at(length, input.take<std::uint8_t>() == 1);
      break;
    }
    case Step::kRead:
      client().read(input.take<std::uint16_t>());
      break;
    case Step::kAnswer: {
      const auto flags = input.take<std::uint8_t>();
      client().answer_store(flags, input.take<std::uint16_t>() % 64);
      break;
    }
    case Step::kStore: {
      const auto which = input.take<std::uint8_t>();
      const auto offset = input.take<std::uint16_t>();
      client().store(which, offset, input.take<std::uint64_t>());
      break;
    }
    case Step::kMisuse: {
      const auto which = input.take<std::uint8_t>();
      client().misuse(which, input.choose<Misuse>(kMisuses));
      break;
    }
    case Step::kResize: {
      const auto which = input.take<std::uint8_t>();
      client().resize(which, input.take<std::uint8_t>());
      break;
    }
    default:
      take_device_step(step, input);
  }
}

void SessionRun::take_device_step(Step step, Input& input) {
  switch (step) {
    case Step::kClient:
      current_ = input.take<std::uint8_t>() % kClients;
      client().connect();
      break;
    case Step::kVanish:
      client().vanish();
      device_.settle();
      break;
    case Step::kShutDown:
      client().shut_down(input.take<std::uint8_t>());
      device_.settle();
      break;
    case Step::kTick:
      device_.pass(fake_device::Time{1} << (input.take<std::uint8_t>() % 40));
      break;
    case Step::kJoin:
      join(input);
      break;
    case Step::kSleep:
      device_.sleep_and_wake();
      break;
    case Step::kBarrier:
      members_.do_barrier();
      break;
    default:
      break;
  }
}

// JOIN has a step of its own because an input cannot hold the key, which differs each time.
void SessionRun::join(Input& input) {
  const unsigned owner = kMembers + input.take<std::uint8_t>() % kClientPorts;
  const auto member = input.take<std::uint8_t>();
  const auto result = device_.engine().read(owner, GBA_REG_CMD_RESULT, 8, device_.now());
  const unsigned opcode = GBA_CMD_JOIN;
  const struct {
    vfio_user_region_access access{.offset = GBA_REG_CMD, .region = GBA_REGION_CONTROL, .count = 8};
    std::uint64_t command = 0;
  } payload{.command = GBA_FIELD_PUT(GBA_CMD_OPCODE, opcode) |
                       GBA_FIELD_PUT(GBA_CMD_GROUP, GBA_FIELD_GET(GBA_CMD_RESULT_GROUP, result)) |
                       GBA_FIELD_PUT(GBA_CMD_MEMBER, member) |
                       GBA_FIELD_PUT(GBA_CMD_KEY, GBA_FIELD_GET(GBA_CMD_RESULT_KEY, result))};
  client().queue(VFIO_USER_REGION_WRITE, 0, std::as_bytes(std::span(&payload, 1)));
  client().send();
}

void check_nothing_is_left(Device& device) {
  device.settle();
  check(device.sessions() == 0, "a client that closes is gone");
  for (unsigned port = 0; port < kClientPorts; ++port) {
    check(device.ports().take([](unsigned) { return true; }).has_value(),
          "ports of clients that are gone are free again");
  }
}

std::size_t open_files() {
  const std::filesystem::directory_iterator files("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(files), end(files)));
}

}  // namespace

void run_session(std::span<const std::byte> bytes) {
  static fake_device::EventSignaller signaller;  // static: its destruction is slow in the kernel
  static fake_device::Closer closer;
  Device device(signaller, closer);
  Members members(device);
  members.do_barrier();  // the descriptor of memory is closed when the device first stores there
  check(closer.done(kCloseLimit), "descriptors are closed");
  const auto files = open_files();
  {
    Input input(bytes);
    SessionRun(device, members).play(input);
    members.do_barrier();
  }
  check_nothing_is_left(device);
  check(closer.done(kCloseLimit), "descriptors are closed");
  check(open_files() == files, "no descriptor of a client is kept");
  members.do_barrier();
  members.check_groups_are_free();
}

}  // namespace fuzz
