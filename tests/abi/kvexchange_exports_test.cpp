// SPDX-License-Identifier: Apache-2.0
// libkvexchange.so exports the calls of shmemx_exchange.h, what of shmemx.h goes with them, and names for libshmem; and
// needs nothing of libshmem. libshmem.so takes from it what a process has once.
#include <gmock/gmock.h>

#include "tests/abi/exports.hpp"

namespace {

using testing::HasSubstr;
using testing::Not;

const std::string kExchange = "shmemx_exchange_";

std::string output_of(const std::vector<std::string>& command) {
  const auto outcome = test_support::run(command);
  EXPECT_TRUE(outcome.exit.clean()) << outcome.output;
  return outcome.output;
}

TEST(LibKvExchange, ExportsItsHeaderUnderTwoNamesAndWhatAProcessHasOnce) {
  exports::Names expected{"shmemx_error_text", "shmemx_set_logger", "kvexchange_process_state_1",
                          "kvexchange_error_text_1"};
  for (const std::string& call : exports::declared_in(SHMEMX_EXCHANGE_HEADER, "SHMEM_API", kExchange)) {
    expected.insert(call);
    expected.insert("kvexchange_" + call.substr(kExchange.size()));
  }
  EXPECT_EQ(expected.count("kvexchange_plan"), 1U);
  EXPECT_EQ(exports::exported_by(KVEXCHANGE_LIBRARY), expected);
}

TEST(LibKvExchange, NeedsNeitherLibshmemNorLibgba) {
  const std::string needed = output_of({"readelf", "-dW", KVEXCHANGE_LIBRARY});
  EXPECT_THAT(needed, HasSubstr("libsodium"));
  for (const char* library : {"libshmem", "libgba", "libucp", "libmpi", "libpmix"}) {
    EXPECT_THAT(needed, Not(HasSubstr(std::string("[") + library))) << library;
  }
}

TEST(LibKvExchange, AloneHasWhatAProcessHasOnce) {
  // Also not as a symbol that it does not export.
  EXPECT_THAT(output_of({"nm", "--defined-only", SHMEM_LIBRARY}), Not(HasSubstr("kvexchange_")));
  const std::string used = output_of({"nm", "-D", "--undefined-only", SHMEM_LIBRARY});
  EXPECT_THAT(used, HasSubstr("kvexchange_process_state_1"));
  EXPECT_THAT(used, HasSubstr("kvexchange_error_text_1"));
  EXPECT_THAT(used, HasSubstr("kvexchange_open"));
}

TEST(LibKvExchange, IsAllThatAProgramOfExchangesLoads) {
  // With NeedsNeitherLibshmemNorLibgba: nor by way of libkvexchange. Not by ldd, which knows only this machine's
  // programs.
  const std::string needed = output_of({"readelf", "-dW", EXCHANGE_PROGRAM});
  EXPECT_THAT(needed, HasSubstr("[libkvexchange.so."));
  EXPECT_THAT(needed, Not(HasSubstr("libshmem")));
  EXPECT_THAT(needed, Not(HasSubstr("libgba")));
}

}  // namespace
