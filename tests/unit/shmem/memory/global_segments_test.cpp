// SPDX-License-Identifier: Apache-2.0
#include "shmem/memory/global_segments.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <memory>

namespace shmem {

std::uint64_t initialized_global = 1;
std::array<std::byte, 100000> zero_global;

namespace {

std::uint64_t static_global = 2;
std::array<std::byte, 1 << 16> program_bytes;

bool covers(const GlobalImage& image, const void* object) {
  const auto* address = static_cast<const std::byte*>(object);
  return std::any_of(image.ranges.begin(), image.ranges.end(), [&](const GlobalRange& range) {
    return address >= range.begin && address < range.begin + range.size;
  });
}

TEST(FindGlobals, FindsTheGlobalsOfTheProgram) {
  static std::uint64_t function_static = 3;
  const GlobalImage image = find_globals();
  EXPECT_TRUE(covers(image, &initialized_global));
  EXPECT_TRUE(covers(image, &zero_global.front()) && covers(image, &zero_global.back()));
  EXPECT_TRUE(covers(image, &static_global));
  EXPECT_TRUE(covers(image, &function_static));
}

TEST(FindGlobals, FindsNothingElse) {
  static const std::array<std::uint64_t, 2> kConstant{1, 2};
  // Relocated at start, then read-only.
  static const std::array<const void*, 2> kRelocated{&static_global, &kConstant};
  const auto heap = std::make_unique<int>(1);
  int local = 0;
  const GlobalImage image = find_globals();
  EXPECT_FALSE(covers(image, kConstant.data()));
  EXPECT_FALSE(covers(image, kRelocated.data()));
  EXPECT_FALSE(covers(image, heap.get()) || covers(image, &local));
}

TEST(FindGlobals, ReturnsWholeWritablePages) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const GlobalImage image = find_globals();
  std::size_t size = 0;
  for (const GlobalRange& range : image.ranges) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(range.begin) % page, 0U);
    EXPECT_TRUE(range.size > 0 && range.size % page == 0);
    EXPECT_LE(range.initialized, range.size);
    auto* last = reinterpret_cast<volatile std::byte*>(range.begin + range.size - 1);
    *last = *last;
    size += range.size;
  }
  EXPECT_EQ(image.size(), size);
}

TEST(FindGlobals, RecognizesTheSameProgramByItsIdentity) {
  EXPECT_NE(find_globals().identity, 0U);
  EXPECT_EQ(find_globals().identity, find_globals().identity);
}

struct Cut {
  std::size_t hole, hole_end;                    // in a range of 100 bytes, 40 of them initialized
  std::vector<std::array<std::size_t, 3>> left;  // begin, size, initialized
};

TEST(Without, KeepsThePartsBeforeAndAfter) {
  const std::vector<Cut> cuts{{0, 0, {{0, 100, 40}}},
                              {0, 10, {{10, 90, 30}}},
                              {0, 60, {{60, 40, 0}}},
                              {10, 20, {{0, 10, 10}, {20, 80, 20}}},
                              {50, 200, {{0, 50, 40}}},
                              {100, 200, {{0, 100, 40}}},
                              {0, 100, {}},
                              {20, 10, {{0, 100, 40}}}};
  for (const Cut& cut : cuts) {
    const GlobalRange range{program_bytes.data(), 100, 40};
    std::vector<std::array<std::size_t, 3>> left;
    for (const auto& piece : without(range, program_bytes.data() + cut.hole, program_bytes.data() + cut.hole_end)) {
      left.push_back({static_cast<std::size_t>(piece.begin - program_bytes.data()), piece.size, piece.initialized});
    }
    EXPECT_EQ(left, cut.left) << cut.hole << " to " << cut.hole_end;
  }
}

TEST(IsRuntime, IsALibraryOfTheSystemOrOfAKnownRuntime) {
  for (const auto& [path, name] : {std::pair{"/lib/x86_64-linux-gnu/libnuma.so.1", "libnuma.so.1"},
                                   {"/usr/lib/libfoo.so", "libfoo.so"},
                                   {"/opt/gcc/lib64/libstdc++.so.6", "libstdc++.so.6"},
                                   {"/home/me/build/lib/libshmem.so.1", "libshmem.so.1"},
                                   {"/home/me/build/lib/libkvexchange.so.1", "libkvexchange.so.1"},
                                   {"/opt/openmpi/lib/libmpi.so.40", "libmpi.so.40"},
                                   {"/opt/conda/lib/libiomp5.so", "libiomp5.so"},
                                   {"/opt/conda/lib/libtbb.so.12", "libtbb.so.12"},
                                   {"/opt/conda/lib/libtbbmalloc.so.2", "libtbbmalloc.so.2"},
                                   {"/opt/intel/lib/libmkl_core.so.2", "libmkl_core.so.2"},
                                   {"/usr/local/Ascend/lib64/libascendcl.so", "libascendcl.so"},
                                   {"/usr/local/Ascend/lib64/libruntime.so", "libruntime.so"},
                                   {"/usr/local/Ascend/lib64/libhccl.so", "libhccl.so"},
                                   {"/opt/openmpi/lib/libopen-pal.so.40", "libopen-pal.so.40"}}) {
    EXPECT_TRUE(is_runtime(path, name)) << path;
  }
  for (const auto& [path, name] : {std::pair{"/home/me/build/libmodel.so", "libmodel.so"},
                                   {"/usr/local/lib/libmine.so.1", "libmine.so.1"},
                                   {"./libcontainer.so", "libcontainer.so"},
                                   {"/opt/app/lib/libmesh.so", "libmesh.so"},
                                   {"/opt/app/lib/libruntimes.so", "libruntimes.so"}}) {
    EXPECT_FALSE(is_runtime(path, name)) << path;
  }
}

TEST(IsListed, ALibraryWhoseNameBeginsWithAnElementOfTheList) {
  for (const char* list : {"libmesh", "libmesh.so.1", "libfoo,libmesh", "libfoo:libmesh:", ", libmesh.so ,libfoo"}) {
    EXPECT_TRUE(is_listed(list, "libmesh.so.1")) << list;
  }
  for (const char* list : {"", ",", " : ,", "mesh", "libmesh.so.12", "libmeshes", "libfoo,libbar"}) {
    EXPECT_FALSE(is_listed(list, "libmesh.so.1")) << list;
  }
}

}  // namespace
}  // namespace shmem
