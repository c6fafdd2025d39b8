// SPDX-License-Identifier: Apache-2.0
// What the author of a client meets: the example without libgba, and the reasons of refusals at the default log level.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "tests/support/job.hpp"
#include "tools/raw_client/raw_client.hpp"
#include "uapi/vfio_user.h"

namespace {

using testing::HasSubstr;
using testing::Not;

constexpr test_support::Seconds kLogged{30};
constexpr std::uint64_t kOtherIova = 0x200000;

class ClientAuthor : public testing::Test {
 protected:
  test_support::Outcome example(const std::vector<std::string>& arguments) {
    std::vector<std::string> command{"python3", GBA_CLIENT_EXAMPLE, device_->socket()};
    command.insert(command.end(), arguments.begin(), arguments.end());
    return test_support::run(command, {"PYTHONDONTWRITEBYTECODE=1"}, test_support::Seconds{120});
  }
  bool said(const std::string& text) { return device_->process().wait_for_output(text, kLogged); }

  std::unique_ptr<test_support::FakeDevice> device_ = std::make_unique<test_support::FakeDevice>();
};

TEST_F(ClientAuthor, HasAnExampleWithoutLibgba) {
  const auto outcome = example({"3", "50"});
  ASSERT_TRUE(outcome.exit.clean()) << outcome.output;
  EXPECT_EQ(outcome.output, "50 barriers of 3 members, 0 flags by DMA_WRITE\ngba_client: correct\n");
  EXPECT_THAT(device_->process().output(), Not(HasSubstr("warning"))) << "it does what the contract asks for";
}

TEST_F(ClientAuthor, HasAnExampleThatAnswersDmaWrites) {
  const auto outcome = example({"2", "20", "unsealed"});
  ASSERT_TRUE(outcome.exit.clean()) << outcome.output;
  EXPECT_THAT(outcome.output, Not(HasSubstr(" 0 flags by DMA_WRITE")));
  EXPECT_TRUE(said("port 0: gets its flags by DMA_WRITE messages, which take longer, and which it must answer"));
}

TEST_F(ClientAuthor, HasAnExampleThatNoticesTheEndOfTheDevice) {
  device_->kill();
  const auto outcome = example({});
  EXPECT_EQ(outcome.exit.code, 1) << outcome.output;
}

TEST_F(ClientAuthor, IsToldToSealAfterTheMap) {
  raw::Port port(device_->socket());
  const auto memory = raw::make_memfd(0x1000);
  raw::seal(memory.get());
  EXPECT_EQ(port.map_dma(kOtherIova, 0x1000, 0, memory.get()), EACCES);
  EXPECT_TRUE(said("warning: port 0: refused DMA_MAP (2): Permission denied: the file is sealed against writing"));
}

TEST_F(ClientAuthor, IsToldWhatIsWrongWithAMap) {
  raw::Port port(device_->socket());
  const auto memory = raw::make_memfd(0x1000);
  EXPECT_EQ(port.map_dma(kOtherIova, 0x1000, 0x800, memory.get()), EINVAL);
  EXPECT_TRUE(said("refused DMA_MAP (2): Invalid argument: argsz is the size of the struct; flags are"));
  EXPECT_EQ(port.map_dma(raw::kFlagIova, 0x1000, 0, memory.get()), EEXIST);
  EXPECT_TRUE(said("refused DMA_MAP (2): File exists: it overlaps an earlier map"));
}

TEST_F(ClientAuthor, IsToldWhyAFlagIsNotStored) {
  for (const bool master : {true, false}) {
    raw::Port port(device_->socket());
    const auto group = port.make_group(1);
    port.join(group, 0);
    if (master) {
      EXPECT_EQ(port.unmap_dma(raw::kFlagIova, 0x1000), 0);
    } else {
      EXPECT_EQ(port.write(4, 2, 2, GBA_REGION_CONFIG), 0);
    }
    port.arrive(group, 0, 1);
    port.kick();
    EXPECT_TRUE(said(fmt::format("warning: port 0: cannot store the flag of group {} at {:#x}: {}", group.id,
                                 raw::kFlagIova + std::uint64_t{GBA_FLAG_STRIDE} * group.id,
                                 master ? "no DMA_MAP with write" : "bus master is clear (uapi rule 2)")));
  }
}

TEST_F(ClientAuthor, IsToldThatVersionComesFirst) {
  raw::Client client(device_->socket());
  EXPECT_EQ(client.call(VFIO_USER_DEVICE_GET_INFO, {}).error(), EINVAL);
  EXPECT_TRUE(said("refused: its first message is not VERSION"));
}

TEST_F(ClientAuthor, CannotFillTheLog) {
  raw::Port port(device_->socket());
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(port.client().call(VFIO_USER_DEVICE_GET_INFO, {}).error(), EINVAL);
    EXPECT_EQ(port.client().call(VFIO_USER_DEVICE_FEATURE, {}).error(), ENOTSUP) << "which clients try";
  }
  raw::Client other(device_->socket());
  EXPECT_EQ(other.call(VFIO_USER_VERSION, {}).error(), EINVAL);
  ASSERT_TRUE(said("its VERSION message is too short"));
  const std::string log = device_->process().output();
  std::size_t count = 0;
  for (auto at = log.find("refused DEV"); at != std::string::npos; at = log.find("refused DEV", at + 1)) {
    ++count;
  }
  EXPECT_EQ(count, 8U) << log;
  EXPECT_THAT(log, Not(HasSubstr("not have")));
}

}  // namespace
