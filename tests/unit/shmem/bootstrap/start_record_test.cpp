// SPDX-License-Identifier: Apache-2.0
#include "shmem/bootstrap/start_record.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>

#include "base/memfd.hpp"

namespace {

using shmem::StartRecord;

base::UniqueFd file() {
  return base::create_memfd("start-record-test", 4096).value();
}

TEST(StartRecord, GivesTheStepsInTheirOrder) {
  const auto heaps = file();
  const auto areas = file();
  StartRecord record;
  record.add(std::as_bytes(std::span("one")));
  record.add({});
  const auto written = record.write(heaps.get(), areas.get());
  ASSERT_TRUE(written);
  auto read = StartRecord::read(::getpid(), written->get());
  ASSERT_TRUE(read) << read.error().text;
  const auto first = read->next(4);
  ASSERT_TRUE(first);
  EXPECT_EQ(static_cast<char>((*first)[2]), 'e');
  EXPECT_TRUE(read->next(0));
  EXPECT_FALSE(read->next(0));
}

/// The head's third word: how many bytes there are.
TEST(StartRecord, RefusesALengthThatIsNotThatOfTheFile) {
  const auto heaps = file();
  const auto areas = file();
  const auto written = StartRecord().write(heaps.get(), areas.get());
  ASSERT_TRUE(written);
  for (const std::uint64_t bytes : {std::uint64_t{0}, std::uint64_t{31}, std::uint64_t{1} << 40, UINT64_MAX}) {
    ASSERT_EQ(::pwrite(written->get(), &bytes, sizeof bytes, 16), static_cast<ssize_t>(sizeof bytes));
    const auto read = StartRecord::read(::getpid(), written->get());
    ASSERT_FALSE(read) << bytes;
    EXPECT_THAT(read.error().text, testing::HasSubstr("is not whole")) << bytes;
  }
}

}  // namespace
