// SPDX-License-Identifier: Apache-2.0
// Clients that misbehave: the server answers with an error or drops the client, and other clients are not affected.
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "tests/integration/fake_device/hostile/bystanders.hpp"
#include "tests/support/soak.hpp"

namespace {

using raw::bytes_of;
using raw::Client;
using raw::DeviceTest;
using raw::Port;
using test_support::Process;
using test_support::Seconds;

class Robustness : public raw::Bystanders {
 protected:
  Robustness() : Bystanders({"--group-limit", "32"}) {}

  /// A valid conversation, message by message.
  static std::vector<std::vector<std::byte>> conversation(Client& client) {
    const vfio_user_version version{.major = 0, .minor = 0};
    const vfio_user_device_info info{.argsz = sizeof info, .flags = 0, .num_regions = 0, .num_irqs = 0};
    vfio_user_region_info region{};
    region.argsz = sizeof region;
    region.index = GBA_REGION_DOORBELLS;
    const vfio_user_dma_map map{.argsz = sizeof map, .flags = 3, .offset = 0, .address = 0x5000, .size = 0x1000};
    const vfio_user_irq_set irqs{.argsz = sizeof irqs, .flags = 0x21, .index = 2, .start = 0, .count = 1};
    const vfio_user_region_access read{.offset = 0, .region = 0, .count = 4};
    const vfio_user_region_access write{.offset = GBA_REG_CMD, .region = 0, .count = 8};
    return {client.frame(VFIO_USER_VERSION, bytes_of(version)),
            client.frame(VFIO_USER_DEVICE_GET_INFO, bytes_of(info)),
            client.frame(VFIO_USER_DEVICE_GET_REGION_INFO, bytes_of(region)),
            client.frame(VFIO_USER_DMA_MAP, bytes_of(map)),
            client.frame(VFIO_USER_DEVICE_SET_IRQS, bytes_of(irqs)),
            client.frame(VFIO_USER_REGION_READ, bytes_of(read)),
            client.frame(VFIO_USER_REGION_WRITE, raw::join(bytes_of(write), bytes_of(std::uint64_t{GBA_CMD_ALLOC})))};
  }
};

TEST_F(Robustness, MessagesMayComeByteByByte) {
  Client client(path());
  for (const auto& message : conversation(client)) {
    for (const auto& byte : message) {
      ASSERT_TRUE(client.send_bytes(std::span(&byte, 1)));
    }
    const auto reply = client.receive();
    ASSERT_TRUE(reply);
    EXPECT_EQ(reply->error(), 0) << "command " << reply->header.command;
  }
}

TEST_F(Robustness, MessagesMayBeCutAtAnyByte) {
  const std::size_t length = [&] {
    Client probe(path());
    std::size_t total = 0;
    for (const auto& message : conversation(probe)) {
      total += message.size();
    }
    return total;
  }();
  for (std::size_t cut = 1; cut < length; ++cut) {
    SCOPED_TRACE(cut);
    Client client(path());
    std::vector<std::byte> all;
    const auto messages = conversation(client);
    for (const auto& message : messages) {
      all.insert(all.end(), message.begin(), message.end());
    }
    ASSERT_TRUE(client.send_bytes(std::span(all).first(cut)));
    if (cut % 7 == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));  // so that the server sees the first part alone
    }
    ASSERT_TRUE(client.send_bytes(std::span(all).subspan(cut)));
    for (std::size_t index = 0; index < messages.size(); ++index) {
      const auto reply = client.receive();
      ASSERT_TRUE(reply);
      EXPECT_EQ(reply->error(), 0) << "command " << reply->header.command;
    }
  }
}

TEST_F(Robustness, AClientMayVanishAtAnyByte) {
  for (std::size_t cut = 0; cut < 300; ++cut) {
    Client client(path());
    std::vector<std::byte> all;
    for (const auto& message : conversation(client)) {
      all.insert(all.end(), message.begin(), message.end());
    }
    client.send_bytes(std::span(all).first(std::min(cut, all.size())));
  }
  expect_unharmed();
  expect_no_files_left();
}

TEST_F(Robustness, InvalidHeadersEndTheConnection) {
  for (const std::uint32_t size : {0U, 1U, 15U, 0x7fffffffU, 0xffffffffU}) {
    Client client(path());
    ASSERT_EQ(client.version().error(), 0);
    auto frame = client.frame(VFIO_USER_DEVICE_GET_INFO, {});
    std::memcpy(frame.data() + 4, &size, sizeof size);
    client.send_bytes(frame);
    EXPECT_EQ(client.receive(), std::nullopt) << size;
  }
  expect_unharmed();
}

TEST_F(Robustness, UnrequestedRepliesEndTheConnection) {
  Client client(path());
  ASSERT_EQ(client.version().error(), 0);
  client.send_bytes(client.frame(VFIO_USER_DMA_WRITE, std::vector<std::byte>(16), VFIO_USER_TYPE_REPLY));
  EXPECT_EQ(client.receive(), std::nullopt);
  expect_unharmed();
}

TEST_F(Robustness, AnInvalidMessageTypeIsRefused) {
  Client client(path());
  ASSERT_EQ(client.version().error(), 0);
  client.send_bytes(client.frame(VFIO_USER_DEVICE_RESET, {}, 0x2));
  const auto reply = client.receive();
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->error(), EINVAL);
}

TEST_F(Robustness, TooManyDescriptorsAreNotKept) {
  {
    Client client(path());
    ASSERT_EQ(client.version().error(), 0);
    const auto eventfd = raw::make_eventfd();
    const std::vector<int> many(33, eventfd.get());
    const vfio_user_irq_set set{.argsz = sizeof set, .flags = 0x24, .index = 2, .start = 0, .count = 33};
    EXPECT_EQ(client.call(VFIO_USER_DEVICE_SET_IRQS, bytes_of(set), many).error(), EINVAL);
  }
  expect_unharmed();
  expect_no_files_left();
}

TEST_F(Robustness, UnexpectedDescriptorsAreRefusedAndClosed) {
  Client client(path());
  ASSERT_EQ(client.version().error(), 0);
  const auto before = open_files();
  const auto eventfd = raw::make_eventfd();
  const std::array fds{eventfd.get(), eventfd.get()};
  const vfio_user_device_info info{.argsz = sizeof info, .flags = 0, .num_regions = 0, .num_irqs = 0};
  EXPECT_EQ(client.call(VFIO_USER_DEVICE_GET_INFO, bytes_of(info), fds).error(), EINVAL);
  const vfio_user_dma_map map{.argsz = sizeof map, .flags = 3, .offset = 0, .address = 0, .size = 0x1000};
  EXPECT_EQ(client.call(VFIO_USER_DMA_MAP, bytes_of(map), fds).error(), EINVAL);
  EXPECT_EQ(client.call(VFIO_USER_DEVICE_GET_INFO, bytes_of(info)).error(), 0);  // the message before is handled by now
  expect_files(before);
}

TEST_F(Robustness, AClientThatNeverReadsDelaysOnlyItself) {
  Client client(path());
  ASSERT_EQ(client.version().error(), 0);
  timeval send_limit{.tv_sec = 1, .tv_usec = 0};
  ::setsockopt(client.socket(), SOL_SOCKET, SO_SNDTIMEO, &send_limit, sizeof send_limit);
  const vfio_user_region_access access{.offset = 0, .region = GBA_REGION_DOORBELLS, .count = 0x10000};
  std::vector<std::byte> burst;
  for (int index = 0; index < 100; ++index) {
    const auto frame = client.frame(VFIO_USER_REGION_READ, bytes_of(access));
    burst.insert(burst.end(), frame.begin(), frame.end());
  }
  for (int round = 0; round < 200 && client.send_bytes(burst); ++round) {
  }
  EXPECT_LT(resident_kib(), 512 * 1024);
  expect_unharmed();
  EXPECT_LE(context_switches(), 1000000);
}

TEST_F(Robustness, RandomBytesHarmNoOtherClient) {
  std::mt19937 random(20);
  for (int round = 0; round < 200; ++round) {
    Client client(path());
    if (round % 2 == 0) {
      client.version();
    }
    std::vector<std::byte> garbage(random() % 600);
    for (auto& byte : garbage) {
      byte = static_cast<std::byte>(random());
    }
    if (garbage.size() >= 16 && round % 4 < 2) {  // a plausible header before it
      const vfio_user_header header{.msg_id = 1,
                                    .command = static_cast<std::uint16_t>(random() % 20),
                                    .msg_size = static_cast<std::uint32_t>(garbage.size()),
                                    .flags = 0,
                                    .error = 0};
      std::memcpy(garbage.data(), &header, sizeof header);
    }
    client.send_bytes(garbage);
  }
  expect_unharmed();
}

TEST_F(Robustness, SilentClientsTakeNoPort) {
  std::vector<std::unique_ptr<Client>> silent;
  silent.reserve(200);
  for (int count = 0; count < 200; ++count) {
    silent.push_back(std::make_unique<Client>(path()));
  }
  Port next(path());
  EXPECT_EQ(next.read(GBA_REG_PORT_ID, 4), 2U);
  expect_unharmed();
}

TEST_F(Robustness, ConnectingAndLeavingLeaksNothing) {
  const auto cycle = [&] {
    Port port(path());
    const auto group = port.make_group(1);
    port.join(group, 0);
    port.arrive(group, 0, 1);
    ASSERT_EQ(port.wait_flag(group, 0), 1U);
  };
  for (int count = 0; count < 50; ++count) {
    cycle();
  }
  const auto files = open_files();
  [[maybe_unused]] const auto memory = resident_kib();
  [[maybe_unused]] const auto before = threads();
  for (int count = 0; count < test_support::repeats(1000, 10000); ++count) {
    cycle();
  }
  expect_unharmed();
  expect_files(files);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // sanitizers keep freed memory
  // A thread that closes files has a stack, and an arena of malloc.
  constexpr long kOfThread = 256;
  EXPECT_LE(resident_kib(), memory + 512 + kOfThread * static_cast<long>(threads() - before));
#endif
}

TEST_F(Robustness, AClientKilledAtAnyStepFreesItsGroup) {
  for (int step = 0; step < 6; ++step) {
    std::array<int, 2> ready{};
    ASSERT_EQ(::pipe(ready.data()), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      Port victim(path());
      Port::Group group{};
      if (step >= 1) {
        group = victim.make_group(2);
      }
      if (step >= 2) {
        victim.join(group, 0);
      }
      if (step >= 3) {
        victim.arrive(group, 0, 1);
      }
      if (step >= 4) {
        victim.arrive(group, 0, 1, /*notify=*/true);
      }
      if (step >= 5) {
        victim.client().send_bytes(std::vector<std::byte>(7));
      }
      [[maybe_unused]] const auto told = ::write(ready[1], "", 1);
      ::pause();
      ::_exit(0);
    }
    char byte = 0;
    ASSERT_EQ(::read(ready[0], &byte, 1), 1);
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    ::close(ready[0]);
    ::close(ready[1]);
    expect_unharmed();
  }
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  unsigned error = GBA_CMD_ERROR_NO_FREE_GROUP;
  while (std::chrono::steady_clock::now() < end) {
    Port next(path());
    unsigned free = 0;
    while ((error = next.command(GBA_CMD_ALLOC)) == GBA_CMD_OK) {
      ++free;
    }
    if (free == GBA_MAX_GROUPS - 1) {
      return;  // all groups but that of the bystanders
    }
  }
  FAIL() << "groups of killed clients are still taken";
}

class Sockets : public DeviceTest {};

TEST_F(Sockets, AreOpenToTheirUserOnly) {
  struct stat info {};
  ASSERT_EQ(::stat(path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
}

TEST_F(Sockets, OfALiveServerAreRefusedToASecondOne) {
  const auto outcome = test_support::run(command_line(path()), {}, Seconds(20));
  EXPECT_EQ(outcome.exit.code, 1);
  EXPECT_THAT(outcome.output, ::testing::HasSubstr("another server answers there"));
  EXPECT_EQ(Port(path()).read(GBA_REG_MAGIC, 4), GBA_MAGIC_VALUE) << "the first server continues";
}

TEST_F(Sockets, OfADeadServerAreTakenOver) {
  device().signal(SIGKILL);
  device().wait(Seconds(20));
  ASSERT_EQ(::access(path().c_str(), F_OK), 0);
  Process second(command_line(path()));
  ASSERT_TRUE(second.wait_for_output("ready on", Seconds(20))) << second.output();
  EXPECT_EQ(Port(path()).read(GBA_REG_MAGIC, 4), GBA_MAGIC_VALUE);
}

TEST_F(Sockets, DoNotReplaceAFile) {
  const auto file = folder().file("precious");
  std::ofstream(file) << "text";
  const auto outcome = test_support::run(command_line(file), {}, Seconds(20));
  EXPECT_EQ(outcome.exit.code, 1);
  EXPECT_THAT(outcome.output, ::testing::HasSubstr("not a socket"));
  EXPECT_TRUE(std::filesystem::is_regular_file(file));
}

TEST_F(Sockets, GoToOneOfSeveralServersStartedAtOnce) {
  const auto shared = folder().file("race.sock");
  std::vector<std::unique_ptr<Process>> servers;
  servers.reserve(8);
  for (int count = 0; count < 8; ++count) {
    servers.push_back(std::make_unique<Process>(command_line(shared)));
  }
  int ready = 0;
  for (auto& server : servers) {
    ready += server->wait_for_output("ready on", Seconds(20)) ? 1 : 0;
  }
  EXPECT_EQ(ready, 1);
  EXPECT_EQ(Port(shared).read(GBA_REG_MAGIC, 4), GBA_MAGIC_VALUE);
}

TEST_F(Sockets, MayBeAbstract) {
  const std::string name = "@gba-test-" + std::to_string(::getpid());
  Process server(command_line(name));
  ASSERT_TRUE(server.wait_for_output("ready on " + name, Seconds(20))) << server.output();
  EXPECT_EQ(Port(name).read(GBA_REG_MAGIC, 4), GBA_MAGIC_VALUE);
  const auto second = test_support::run(command_line(name), {}, Seconds(20));
  EXPECT_THAT(second.output, ::testing::HasSubstr("another server answers there"));
}

struct BadOption {
  std::vector<std::string> options;
  const char* message;
  int code = 2;
};
class Options : public ::testing::TestWithParam<BadOption> {};

TEST_P(Options, ThatAreInvalidEndWithAMessage) {
  std::vector<std::string> line{test_support::program("gba-fake-device")};
  line.insert(line.end(), GetParam().options.begin(), GetParam().options.end());
  const auto outcome = test_support::run(line, {}, Seconds(20));
  EXPECT_EQ(outcome.exit.code, GetParam().code);
  EXPECT_EQ(outcome.exit.signal, 0);
  EXPECT_THAT(outcome.output, ::testing::HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(CommandLine, Options,
                         ::testing::Values(BadOption{{}, "--socket"}, BadOption{{"--socket", ""}, "socket name", 1},
                                           BadOption{{"--socket", "@"}, "socket name", 1},
                                           BadOption{{"--socket", "/" + std::string(200, 'x')}, "socket name", 1},
                                           BadOption{{"--socket", "/nonexistent/folder/s"}, "No such file", 1},
                                           BadOption{{"--socket", "@x", "--ports", "0"}, "--ports"},
                                           BadOption{{"--socket", "@x", "--ports", "709"}, "--ports"},
                                           BadOption{{"--socket", "@x", "--profile", "switch", "--ports", "255"},
                                                     "254"},
                                           BadOption{{"--socket", "@x", "--group-limit", "0"}, "--group-limit"},
                                           BadOption{{"--socket", "@x", "--group-limit", "33"}, "between 1 and 32"},
                                           BadOption{{"--socket", "@x", "--idle-us", "-1"}, "--idle-us"},
                                           BadOption{{"--socket", "@x", "--cpu", "1023"}, "processor", 1},
                                           BadOption{{"--socket", "@x", "--log-level", "loud"}, "--log-level"},
                                           BadOption{{"--socket", "@x", "--nonsense"}, "nonsense"}));

}  // namespace
