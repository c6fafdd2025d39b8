// SPDX-License-Identifier: Apache-2.0
#include "shmem/config/build.hpp"

#include <gmock/gmock.h>

#include "base/json_text.hpp"
#include "shmem/config/log.hpp"
#include "shmem/version.hpp"
#include "tests/support/json.hpp"

namespace {

using base::json_text;
using test_support::Json;

TEST(JsonText, IsReadAsTheSameText) {
  for (const std::string text : {"", "plain", "a \"quoted\" \\ path", "lines\nand\ttabs\x01", "gr\xc3\xbc\xc3\x9f\x65",
                                 "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xf4\x8f\xbf\xbf", "\x7f"}) {
    EXPECT_EQ(Json::parse(json_text(text)), text) << text;
  }
}

TEST(JsonText, HasAMarkForEachByteThatIsNotUtf8) {
  // A lone first and second byte, too long a form, half of a pair, beyond the last character, an end too early.
  for (const auto& [text, marks] :
       {std::pair{"\xff", 1}, std::pair{"\x80", 1}, std::pair{"\xc0\xaf", 2}, std::pair{"\xe0\x80\xaf", 3},
        std::pair{"\xed\xa0\x80", 3}, std::pair{"\xf0\x80\x80\xaf", 4}, std::pair{"\xf4\x90\x80\x80", 4},
        std::pair{"\xe2\x82", 2}, std::pair{"\xc3", 1}}) {
    std::string expected;
    for (int i = 0; i < marks; ++i) {
      expected += "\xef\xbf\xbd";
    }
    EXPECT_EQ(Json::parse(json_text(std::string("<") + text + ">")), "<" + expected + ">");
  }
}

TEST(Build, IsTheSameAsTextAndAsJson) {
  const auto facts = shmem::build_facts();
  const auto object = Json::parse(shmem::build_json());
  ASSERT_EQ(object.size(), facts.size());
  for (const auto& fact : facts) {
    if (fact.value.empty()) {
      EXPECT_TRUE(object[fact.name].is_null()) << fact.name;
    } else {
      EXPECT_EQ(object[fact.name], fact.value);
    }
  }
  EXPECT_EQ(object["version"], shmem::kVersion);
  EXPECT_THAT(object["bootstraps"].get<std::string>(), testing::StartsWith("local, uid"));
  EXPECT_EQ(object["commit"], "unknown") << "unit tests are linked again for each commit";
}

std::string logged;

TEST(InfoLine, IsTextOrAJsonObject) {
  shmem::set_log_handler([](int /*level*/, const char* text) { logged = text; });
  shmem::log_info(false, {"barrier", 3, "team 3: a \"word\""});
  EXPECT_EQ(logged, "shmem: team 3: a \"word\"");
  shmem::log_info(true, {"barrier", 3, "team 3: a \"word\""});
  shmem::set_log_handler(nullptr);
  EXPECT_EQ(Json::parse(logged), Json::parse(R"({"schema": )" + std::to_string(shmem::kJsonSchema) +
                                             R"(, "event": "barrier", "team": 3, "text": "team 3: a \"word\""})"));
}

}  // namespace
