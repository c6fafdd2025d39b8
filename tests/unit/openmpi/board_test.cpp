// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "openmpi/common/gba_board.h"

namespace {

class OpenMpiBoard : public testing::Test {
 protected:
  OpenMpiBoard() { EXPECT_EQ(gba_ompi_board_make(kLocals, &made_, &name_), 0); }
  ~OpenMpiBoard() override {
    gba_ompi_board_close(&opened_);
    gba_ompi_board_close(&made_);
  }
  OpenMpiBoard(const OpenMpiBoard&) = delete;
  OpenMpiBoard& operator=(const OpenMpiBoard&) = delete;

  int open(std::uint32_t locals = kLocals) { return gba_ompi_board_open(&name_, locals, &opened_); }

  static constexpr std::uint32_t kLocals = 100;
  gba_ompi_board_t made_{}, opened_{nullptr, nullptr, 0, -1};
  gba_ompi_board_name_t name_{};
};

TEST_F(OpenMpiBoard, IsTheSameMemoryForAll) {
  ASSERT_EQ(open(), 0);
  EXPECT_EQ(opened_.locals, kLocals);
  EXPECT_EQ(opened_.fd, -1);
  EXPECT_NE(opened_.node, made_.node);
  EXPECT_EQ(opened_.members[kLocals - 1].word[1], 0U);
  made_.members[kLocals - 1].word[1] = 5;
  opened_.node->pull = 7;
  EXPECT_EQ(opened_.members[kLocals - 1].word[1], 5U);
  EXPECT_EQ(made_.node->pull, 7U);
}

TEST_F(OpenMpiBoard, IsOpenedByAnotherProcess) {
  const pid_t child = fork();
  if (child == 0) {
    const bool opened = open() == 0;
    if (opened) {
      opened_.members[3].left = 1;
    }
    _exit(opened ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(made_.members[3].left, 1U);
}

TEST_F(OpenMpiBoard, IsNotOpenedByAMemberThatExpectsAnotherSize) {
  EXPECT_EQ(open(kLocals + 1), -ESTALE);
  EXPECT_EQ(open(kLocals - 1), -ESTALE);
  EXPECT_EQ(open(0), -EINVAL);
  EXPECT_EQ(opened_.node, nullptr);
}

TEST_F(OpenMpiBoard, IsNotOpenedOnceItIsSealed) {
  ASSERT_EQ(open(), 0);
  gba_ompi_board_seal(&made_);
  gba_ompi_board_seal(&made_);
  gba_ompi_board_t late;
  EXPECT_EQ(gba_ompi_board_open(&name_, kLocals, &late), -ENOENT);
  made_.node->pull = 3;
  EXPECT_EQ(opened_.node->pull, 3U);
}

TEST_F(OpenMpiBoard, OutlivesItsCreator) {
  ASSERT_EQ(open(), 0);
  made_.node->pull = 3;
  gba_ompi_board_close(&made_);
  gba_ompi_board_close(&made_);
  EXPECT_EQ(opened_.node->pull, 3U);
}

TEST_F(OpenMpiBoard, IsNotMistakenForAnotherFileWithItsNumber) {
  gba_ompi_board_seal(&made_);
  const int other = memfd_create("other", MFD_CLOEXEC);
  ASSERT_GE(other, 0);
  name_.fd = other;
  EXPECT_EQ(open(), -ESTALE) << "another inode";
  struct stat file {};
  ASSERT_EQ(fstat(other, &file), 0);
  name_.inode = file.st_ino;
  EXPECT_EQ(open(), -ESTALE) << "another size";
  ASSERT_EQ(ftruncate(other, off_t{64} * (1 + kLocals)), 0);
  EXPECT_EQ(open(), -ESTALE) << "a file that may shrink";
  close(other);
}

TEST(OpenMpiBoardArguments, AreChecked) {
  gba_ompi_board_t board;
  gba_ompi_board_name_t name;
  EXPECT_EQ(gba_ompi_board_make(0, &board, &name), -EINVAL);
  gba_ompi_board_close(&board);
}

}  // namespace
