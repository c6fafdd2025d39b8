// SPDX-License-Identifier: Apache-2.0
// Programs written for Ascend SHMEM, in C11 and C++, which fail with a message if a call does not behave as there.
#include <fstream>

#include "tests/support/pe.hpp"

namespace {

using namespace test_support;
using namespace testing;
using test_support::TempDir;  // not the function of GoogleTest

using Parameters = std::tuple<const char*, int>;

class Ascend : public testing::TestWithParam<Parameters> {};

TEST_P(Ascend, CallsDoWhatAscendShmemSpecifies) {
  const auto [program, pes] = GetParam();
  const std::string name = program;
  const std::string part = name.substr(0, name.find('_'));
  run_clean(pes, "off", {name.ends_with("_c") ? "ascend_c_pes" : "ascend_cxx_pes", part},
            {"SHMEM_CYCLE_PROF_PE=" + std::to_string(pes - 1)});
}

TEST(AscendPrograms, EndWithAMessageThatNamesTheCall) {
  const std::pair<const char*, const char*> mistakes[] = {
      {"pe", "aclshmem_int32_p: there is no PE 2"},
      {"address", "aclshmem_int32_put: 4 bytes at the given address are not"},
      {"stride", "aclshmem_int32_iget: strides 0 and 1"},
      {"operation", "aclshmem_put32_signal: 2 is neither"},
      {"alignment", "aclshmemx_putmem_signal: the given address is not aligned"},
      {"comparison", "aclshmem_signal_wait_until: 6 is not a comparison"},
      {"wait", "aclshmem_int32_wait_until: 4 bytes at the given address are not"},
  };
  for (const auto& [name, message] : mistakes) {
    const auto job = run_pes(2, "off", {"ascend_c_pes", "rma", name});
    EXPECT_NE(job.exit.code, 0) << name;
    EXPECT_EQ(job.exit.signal, 0) << name;
    EXPECT_THAT(job.output, HasSubstr(message)) << name;
  }
}

TEST(AscendEngines, EndTheJobWithAMessageThatNamesTheCall) {
  const std::pair<const char*, const char*> mistakes[] = {
      {"pe", "aclshmemx_roce_put_nbi: there is no PE 2"},
      {"address", "aclshmemx_sdma_put_nbi: 4 bytes at the given address are not"},
      {"end", "aclshmemx_udma_get_nbi: 4294967296 bytes at the given address are not"},
      {"scratch", "aclshmemx_sdma_get_nbi: scratch must have 64 bytes"},
      {"tensor", "aclshmemx_roce_get_nbi: scratch must have 128 bytes"},
      {"offset", "aclshmemx_udma_put_nbi: scratch goes beyond the core's own memory"},
      {"queue", "aclshmemx_udma_qp_put_nbi: there is no such queue"},
      {"relay", "aclshmemx_udma_relay_put_nbi: the PE, its relay and the caller are not three PEs"},
      {"quiet", "aclshmemx_udma_quiet: there is no such PE"},
      {"team", "aclshmemx_roce_barrier: team is NULL"},
      {"atomic", "aclshmemx_udma_atomic_add: 4 bytes at the given address are not"},
      {"signal", "aclshmemx_udma_put_signal_nbi: the given address is not aligned"},
      {"before-init", "aclshmemx_udma_quiet was called before shmem_init"},
  };
  for (const auto& [name, message] : mistakes) {
    const auto job = run_pes(2, "off", {"ascend_cxx_pes", "engines", name});
    EXPECT_NE(job.exit.code, 0) << name;
    EXPECT_EQ(job.exit.signal, 0) << name;
    EXPECT_THAT(job.output, HasSubstr(message)) << name;
  }
}

TEST(AscendPrograms, MayEndInALane) {
  const auto job = run_pes(1, "off", {"ascend_cxx_pes", "lane_exit"});
  EXPECT_EQ(job.exit.signal, 0) << job.output;
  EXPECT_EQ(job.exit.code, 7) << job.output;
}

TEST(AscendPrograms, RunUnchanged) {
  for (const int pes : {1, 2, 3, 4}) {
    TempDir dir;
    run_clean(pes, "off", {"ascend_cxx_pes", "allgather", dir.file("uid")}, {"SHMEM_UID_SESSION_ID=127.0.0.1:0"});
  }
}

constexpr const char* kDemos[] = {"rdma", "udma", "sdma", "notify", "perftest", "moe", "matmul"};

TEST(AscendDemos, GiveTheRightBytes) {
  for (const std::string demo : kDemos) {
    for (const int pes : {1, 2, 3}) {
      const TempDir dir;
      run_clean(pes, "off", {"ascend_cxx_pes", "demo", demo, dir.file("uid")},
                {"SHMEM_UID_SESSION_ID=127.0.0.1:0", "SHMEM_CYCLE_PROF_PE=0"});
    }
  }
}

TEST(AscendDemos, GiveTheRightBytesOnTwoNodes) {
  if (!has_network()) {
    GTEST_SKIP() << kNoNetwork;
  }
  const TempDir folder;
  run_clean(3, "off", on_nodes("% 2", {"ascend_cxx_pes", "allgather", folder.file("allgather")}),
            {"SHMEM_UID_SESSION_ID=127.0.0.1:0"});
  run_clean(4, "off", on_nodes("% 2", {"ascend_cxx_pes", "kv_shuffle", folder.file("kv_shuffle"), "5", "2", "8", "64"}),
            {"SHMEM_UID_SESSION_ID=127.0.0.1:0", "KV_PATH=0"});
  for (const std::string demo : kDemos) {
    const TempDir dir;
    run_clean(3, "off", on_nodes("% 2", {"ascend_cxx_pes", "demo", demo, dir.file("uid")}),
              {"SHMEM_UID_SESSION_ID=127.0.0.1:0", "SHMEM_CYCLE_PROF_PE=0"});
  }
}

/// The rewritten line, or what the script says against it.
std::string rewritten(const std::string& line, const std::string& cores = "1") {
  const TempDir dir;
  std::ofstream(dir.file("k.asc")) << "\n" << line << "\n";
  return run({ASCEND_LAUNCHES, dir.file("k.asc"), "-c", cores}).output;
}

TEST(AscendLaunches, BecomeCalls) {
  const std::pair<const char*, const char*> lines[] = {
      {"n::k<int, 2><<<b, nullptr, s>>>(p, f(1, 2));",
       "shmemx_ascend_launch(b, s, [=](auto... asci_a) { n::k<int, 2>(asci_a...); }, p, f(1, 2));"},
      {"k<<<1, 0>>>();", "shmemx_ascend_launch(1, nullptr, [=](auto... asci_a) { k(asci_a...); });"},
      {"f(\"<<<\"); // k<<<1>>>(2)", "f(\"<<<\"); // k<<<1>>>(2)"},
      {"#define L(N) k_##N<<<1, 0, s>>>(x)", "{ k_##N(asci_a...); }, x)"},
      {"a = (__ubuf__ int*)(32) + i * 16;", "a = shmemi_ub<int*>((32)) + i * 16;"},
      {"a = (__ubuf__ T *)x.y<int>(3)[1]->p; // (__ubuf__ T*)5",
       "= shmemi_ub<T *>(x.y<int>(3)[1]->p); // (__ubuf__ T*)5"},
      {"a = (__ubuf__ typename Q<T>::Type*)(__ubuf__ char*)n::z;",
       "a = shmemi_ub<typename Q<T>::Type*>(shmemi_ub<char*>(n::z));"},
      {"f(reinterpret_cast<__ubuf__ Q<int> *>(1 + 2), 3)", "f(shmemi_ub<Q<int> *>(1 + 2), 3)"},
      {"void f(__ubuf__ int* words); void g(__ubuf__ int*) const;",
       "void f(__ubuf__ int* words); void g(__ubuf__ int*) const;"},
  };
  for (const auto& [line, expected] : lines) {
    EXPECT_THAT(rewritten(line), HasSubstr(expected)) << line;
  }
  EXPECT_THAT(rewritten("k<<<b + 1, 0, s>>>(x)", "2"), HasSubstr("shmemx_ascend_launch(2 * (b + 1), s,"));
}

TEST(AscendLaunches, BecomeCallsInAnyFormOfCxx) {
  const std::pair<const char*, const char*> lines[] = {
      {"k<<<1 // blocks\n, 0, s /* the stream */>>>(p // pointer\n, 2 // last\n); __LINE__",
       "launch(1, s, [=](auto... asci_a) { k(asci_a...); }\n, p // pointer\n, 2 // last\n); __LINE__"},
      {"return ::k<<<1, 0, s>>>(p);", "return shmemx_ascend_launch(1, s, [=](auto... asci_a) { ::k(asci_a...); }, p);"},
      {"T::template k<int><<<1, 0, s>>>(p);", "(1, s, [=](auto... asci_a) { T::template k<int>(asci_a...); }, p);"},
      {"k<int, (3 > 2)><<<n < 4 ? n : 4, 0, s>>>(p);",
       "launch(n < 4 ? n : 4, s, [=](auto... asci_a) { k<int, (3 > 2)>(asci_a...); }, p);"},
      {"if (x) (k)<<<1, 0, s>>>(p);", "if (x) shmemx_ascend_launch(1, s, [=](auto... asci_a) { (k)(asci_a...); }, p);"},
      {"x.t[1]<<<1, 0, s>>>(p);", "shmemx_ascend_launch(1, s, [=](auto... asci_a) { x.t[1](asci_a...); }, p);"},
      {"k<<<1, nullptr, NULL>>>(NULL, {1, 2}, p, 0);",
       "launch(1, NULL, [=](auto, auto, auto asci_2, auto) { k(NULL, {1, 2}, asci_2, 0); }, NULL, 0, p, 0);"},
      {"r = R\"x(\" k<<<1>>>(2) (__ubuf__ int*)(3))x\";", "r = R\"x(\" k<<<1>>>(2) (__ubuf__ int*)(3))x\";"},
      {"n = 1'000; k<<<1'0, 0, s>>>(p);", "n = 1'000; shmemx_ascend_launch(1'0, s, "},
      {"f = operator<<<int>;", "f = operator<<<int>;"},
  };
  for (const auto& [line, expected] : lines) {
    EXPECT_THAT(rewritten(line), HasSubstr(expected)) << line;
  }
}

TEST(AscendLaunches, RewriteCastsOfAnyForm) {
  const std::pair<const char*, const char*> lines[] = {
      {"(const __ubuf__ float*)(64)", "shmemi_ub<const float*>((64))"},
      {"(volatile __ubuf__ int*)64", "shmemi_ub<volatile int*>(64)"},
      {"(float __ubuf__ * const)(64)", "shmemi_ub<float * const>((64))"},
      {"(__ubuf__ int* __restrict__)(o)", "shmemi_ub<int* __restrict__>((o))"},
      {"(__ubuf__ int (*)[4])o", "shmemi_ub<int (*)[4]>(o)"},
      {"*(__ubuf__ int*)*o = 1", "*shmemi_ub<int*>(*o) = 1"},
      {"(__ubuf__ decltype(o)*)o", "shmemi_ub<decltype(o)*>(o)"},
      {"reinterpret_cast <const __ubuf__ int*> (o)", "shmemi_ub <const int*> (o)"},
      {"static_cast<__ubuf__ int*>((void*)o) + 1", "shmemi_ub<int*>(static_cast<int*>((void*)o)) + 1"},
      {"(__ubuf__ float*)(uint64_t)o + 1", "shmemi_ub<float*>((uint64_t)o) + 1"},
      {"(__ubuf__ float*)(uint64_t)-o - (__ubuf__ float*)(o) - 1",
       "shmemi_ub<float*>((uint64_t)-o) - shmemi_ub<float*>((o)) - 1"},
      {"(__ubuf__ int*)uint64_t{o}", "shmemi_ub<int*>(uint64_t{o})"},
      {"(__ubuf__ int*)o++", "shmemi_ub<int*>(o++)"},
      {"(__ubuf__ int*)1'024", "shmemi_ub<int*>(1'024)"},
      {"i < 2 && (__ubuf__ int*)o < (__ubuf__ int*)64", "i < 2 && shmemi_ub<int*>(o) < shmemi_ub<int*>(64)"},
      {"(__ubuf__\nint*)\n(o); __LINE__", "shmemi_ub<\nint*>(\n(o)); __LINE__"},
      {"#define OWN (__ubuf__ int*)o\n(x);", "#define OWN shmemi_ub<int*>(o)\n(x);"},
      {"(__ubuf__ int*)nullptr == nullptr", "(__ubuf__ int*)nullptr == nullptr"},
      {"[](__ubuf__ float*) mutable {}", "[](__ubuf__ float*) mutable {}"},
      {"void h(__ubuf__ int*) volatile, i(__ubuf__ int*) &;", "void h(__ubuf__ int*) volatile, i(__ubuf__ int*) &;"},
  };
  for (const auto& [line, expected] : lines) {
    EXPECT_THAT(rewritten(line), HasSubstr(std::string("\n") + expected)) << line;
  }
}

TEST(AscendLaunches, ReadAndNameAnyFile) {
  const TempDir dir;
  const std::string name = dir.file("caf\xe9 \"a\\b.asc");
  std::ofstream(name) << "// caf\xe9\nk<<<1, 0, s>>>(x);\n";
  const auto latin = run({ASCEND_LAUNCHES, name});
  EXPECT_THAT(latin.output, HasSubstr("\\\"a\\\\b.asc\"\n// caf\xe9\nshmemx_ascend_launch(1, s,"));
  const auto missing = run({ASCEND_LAUNCHES, dir.file("none")});
  EXPECT_EQ(missing.exit.code, 1);
  EXPECT_THAT(missing.output, AllOf(StartsWith("ascend-launches: "), EndsWith("none: No such file or directory\n")));
  EXPECT_THAT(rewritten("k<<<1, 0, s>>>(x)", "0"), HasSubstr("-c 0: a block has at least one core"));
}

TEST(AscendLaunches, ThatCannotBeReadAreNamed) {
  EXPECT_THAT(rewritten("k<<<1, 0,\n#ifdef A\ns\n#endif\n>>>(x);"), HasSubstr("a directive is inside of the launch"));
  EXPECT_THAT(rewritten("k<<<1, 0, s>>>(x;"), HasSubstr("k.asc:2: a bracket is not closed"));
  EXPECT_THAT(rewritten("k<<<1, 0, s"), HasSubstr("k.asc:2: there is no >>>( after it"));
  EXPECT_THAT(rewritten("k<<<1>>>(x);"), HasSubstr("k.asc:2: a launch has blocks, l2 and a stream"));
  EXPECT_THAT(rewritten("= <<<1, 0, s>>>(x);"), HasSubstr("k.asc:2: there is no kernel before <<<"));
}

Outcome run_kv_shuffle(int pes, const std::string& cores, const std::vector<std::string>& arguments,
                       const std::string& path = "0") {
  TempDir dir;
  std::vector<std::string> command{test_program("ascend_cxx_pes"), "kv_shuffle", dir.file("uid"), cores};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return run(oshrun(pes, "off", command), {"SHMEM_UID_SESSION_ID=127.0.0.1:0", "KV_PATH=" + path});
}

TEST(KvShuffleOps, CopiesDirectlyOrThroughTwoBuffers) {
  for (const char* path : {"1", "2"}) {
    // A block of 1 KiB, of 144,000 bytes (several buffers of 32 KiB, the last one in part), and of odd size.
    for (const auto& shape : {std::vector<std::string>{"2", "8", "64"}, {"9", "125", "128"}, {"3", "5", "7"}}) {
      for (const char* cores : {"1", "16"}) {
        const auto job = run_kv_shuffle(3, cores, shape, path);
        EXPECT_TRUE(job.exit.clean()) << "path " << path << ", " << cores << " cores\n" << job.output;
      }
    }
  }
}

TEST(KvShuffleOps, MovesTheBlocksThatTheTablesName) {
  for (const int pes : {2, 3, 4}) {
    for (const char* cores : {"16", "2", "5", "1"}) {
      const auto job = run_kv_shuffle(pes, cores, {"2", "8", "64"});
      EXPECT_TRUE(job.exit.clean()) << pes << " PEs, " << cores << " cores\n" << job.output;
    }
  }
}

TEST(KvShuffleOps, TakesBlocksOfAnySize) {
  for (const auto& shape : {std::vector<std::string>{"1", "1", "1"}, {"3", "5", "7"}, {"1", "129", "129"}}) {
    const auto job = run_kv_shuffle(2, "16", shape);
    EXPECT_TRUE(job.exit.clean()) << job.output;
  }
}

TEST(KvShuffleOps, ReportsErrorsToBothPartnersAndMovesNothing) {
  const std::pair<const char*, const char*> mistakes[] = {
      {"block", "the move of block 1 of PE 0 to block 12 of PE 1"},
      {"two-senders", "both send"},
      {"no-pairs", "KVShuffleOps::compute: global_shuffle_table is NULL"},
      {"no-table", "KVShuffleOps::compute: a block table is NULL"},
      {"count", "KVShuffleOps::compute: block_nums is -1"},
      {"shape", "KVShuffleOps::compute: there are no blocks of kv_head_num 2, page_size 8 and head_dim 0"},
      {"memory", "KVShuffleOps::compute: k_cache is not in memory of shmem_malloc"},
      {"cores", "KVShuffleOps: block_dims is 0"},
      {"path", "path 3"},
  };
  for (const auto& [name, message] : mistakes) {
    const auto job = run_kv_shuffle(2, "2", {"2", "8", "64", name});
    EXPECT_TRUE(job.exit.clean()) << name << job.output;
    EXPECT_THAT(job.output, HasSubstr(message)) << name;
    EXPECT_THAT(job.output, HasSubstr("PE 0: an error")) << name;
    EXPECT_THAT(job.output, HasSubstr("PE 1: an error")) << name;
    EXPECT_THAT(job.output, Not(HasSubstr("no error"))) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Programs, Ascend,
                         Combine(Values("rma_c", "rma_cxx", "sync_c", "sync_cxx", "device", "kernel", "engines",
                                        "simt"),
                                 Values(1, 2, 3, 4)),
                         kNameByParameters);

}  // namespace
