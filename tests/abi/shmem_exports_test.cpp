// SPDX-License-Identifier: Apache-2.0
// libshmem.so exports exactly the functions that its headers declare: each routine of shmem.h under both of its names,
// each call of shmemx.h, shmemx_compat.h, shmemx_kv.h, shmem_device.h and shmemx_interface.h, and the calls that
// implement acl.h.
#include "tests/abi/exports.hpp"

namespace {

/// The routines of OpenSHMEM 1.6, including the deprecated ones; or those of shmem_compat.h.
exports::Names routines_in(const char* list) {
  std::ifstream file(list);
  exports::Names names;
  for (std::string line; std::getline(file, line);) {
    names.insert(line.substr(0, line.find(' ')));
  }
  return names;
}

/// Drafts of OpenSHMEM 1.5 had the waits and tests of several words for short and unsigned short, too.
exports::Names routines_of_drafts() {
  exports::Names names;
  for (const char* type : {"short", "ushort"}) {
    for (const char* kind :
         {"wait_until_all", "wait_until_any", "wait_until_some", "test_all", "test_any", "test_some"}) {
      const std::string name = std::string("shmem_") + type + "_" + kind;
      names.insert({name, name + "_vector"});
    }
  }
  return names;
}

TEST(LibShmem, ExportsExactlyTheSpecificationAndTheExtensionsOfItsHeaders) {
  exports::Names expected = exports::declared_in(SHMEMX_HEADER, "SHMEM_API", "shmemx_");
  expected.merge(exports::declared_in(SHMEM_KV_HEADER, "SHMEM_API", "shmemx_"));
  expected.merge(exports::declared_in(SHMEM_DEVICE_HEADER, "SHMEM_API", "shmemx_"));
  expected.merge(exports::declared_in(ACL_HEADER, "SHMEM_API", "shmemx_"));
  expected.merge(exports::declared_in(SHMEM_INTERFACE_HEADER, "SHMEM_API", "shmemx_"));
  expected.merge(exports::declared_in(KV_SHUFFLE_OPS_HEADER, "SHMEM_API", "shmemx_"));
  expected.merge(exports::declared_in(SHMEMX_GROUP_HEADER, "SHMEM_API", "shmemx_"));
  expected.merge(exports::declared_in(SHMEMX_EXCHANGE_HEADER, "SHMEM_API", "shmemx_"));
  expected.merge(exports::declared_in(SHMEMX_COMPAT_HEADER, "SHMEM_API", "shmemx_"));
  EXPECT_EQ(expected.count("shmemx_launch"), 1U);
  EXPECT_EQ(expected.count("shmemx_put_elements"), 1U);
  EXPECT_EQ(expected.count("shmemx_partial_barrier"), 1U);
  exports::Names routines = routines_in(SHMEM_SYMBOLS);
  EXPECT_EQ(routines.size(), 1860U);
  routines.merge(routines_in(SHMEM_COMPAT_SYMBOLS));
  EXPECT_EQ(routines.size(), 1860U + 60U);
  routines.merge(routines_of_drafts());
  for (const auto& routine : routines) {
    expected.insert(routine);
    expected.insert("p" + routine);
  }
  EXPECT_EQ(exports::exported_by(SHMEM_LIBRARY), expected);
}

TEST(LibShmem, ExportsFunctionsOnly) {
  // The linker copies an exported variable that a program names into the program. The library's own state would then be
  // among the global variables that the library makes symmetric.
  const auto symbols = test_support::run({"nm", "-D", "--defined-only", "--format=posix", SHMEM_LIBRARY});
  ASSERT_TRUE(symbols.exit.clean()) << symbols.output;
  for (const char* kind : {" B ", " D ", " R ", " V ", " u "}) {
    EXPECT_EQ(symbols.output.find(kind), std::string::npos) << kind << symbols.output;
  }
}

TEST(LibShmem, RoutinesAreWeakSoThatAProfilingLibraryCanReplaceThem) {
  const auto symbols = test_support::run({"nm", "-D", "--defined-only", SHMEM_LIBRARY});
  ASSERT_TRUE(symbols.exit.clean()) << symbols.output;
  EXPECT_NE(symbols.output.find(" W shmem_putmem"), std::string::npos) << symbols.output;
  EXPECT_NE(symbols.output.find(" T pshmem_putmem"), std::string::npos) << symbols.output;
}

TEST(LibShmem, CallsNoneOfItsOwnRoutines) {
  // A call of the library's own exported symbol would go through the procedure linkage table, and a profiling library
  // would see it.
  const auto relocations = test_support::run({"readelf", "-rW", SHMEM_LIBRARY});
  ASSERT_TRUE(relocations.exit.clean()) << relocations.output;
  EXPECT_EQ(relocations.output.find(" shmem_"), std::string::npos) << relocations.output;
  EXPECT_EQ(relocations.output.find(" pshmem_"), std::string::npos) << relocations.output;
}

}  // namespace
