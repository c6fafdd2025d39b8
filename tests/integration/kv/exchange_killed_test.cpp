// SPDX-License-Identifier: Apache-2.0
// Members of an exchange that are killed and stopped while the others go on: every byte that arrives is right.
#include "tests/integration/kv/exchange_killed.hpp"

namespace {

using namespace exchange_killed;  // NOLINT(google-build-using-namespace): the test itself

class ExchangeKilled : public Workers {
 protected:
  std::unique_ptr<Process> start(const std::string& role, int number = 0) {
    return std::make_unique<Process>(
        std::vector<std::string>{test_support::test_program("exchange_worker"), role, name_, std::to_string(number)});
  }

  const std::string name_ = "killed-" + std::to_string(::getpid());
};

TEST_F(ExchangeKilled, OwnersThatDieWhileTheyAreRead) {
  const auto steady = start("own", 0);
  auto other = start("own", 1);
  const auto reader = start("read");
  expect_ready(*reader);
  kill_owners(*reader, other, 5, [&] { return start("own", 1); });
  expect_goes_on(*steady);
  expect_reads(*reader);
  expect_right(*reader, kBusyMs);
}

TEST_F(ExchangeKilled, ReadersThatDieWhileTheyHoldLeases) {
  const auto owner = start("own", 0);
  expect_ready(*owner);
  const auto reader = start("read");
  kill_readers(*owner, *reader, 5, [&](const char* role) { return start(role); });
}

TEST_F(ExchangeKilled, MembersThatAreStopped) {
  const auto owner = start("own", 0);
  const auto stopped_owner = start("own", 1);
  const auto stopped_reader = start("read");
  expect_ready(*stopped_owner);
  expect_ready(*stopped_reader);
  stopped_owner->stop();
  stopped_reader->stop();
  expect_goes_on(*owner);
  EXPECT_LE(last(*owner, "longest"), kLeaseMs + kBusyMs) << "a reader that is stopped delays it by its lease";
  const auto reader = start("read");  // joins although two do not answer
  expect_ready(*reader);
  expect_reads(*reader);
  expect_right(*reader, kBusyMs);
  stopped_owner->resume();
  stopped_reader->resume();
  expect_goes_on(*stopped_owner);
  expect_reads(*stopped_reader);
  EXPECT_THAT(stopped_reader->output(), testing::Not(testing::HasSubstr("wrong")));
}

}  // namespace
