// SPDX-License-Identifier: Apache-2.0
// Sorts integers that are spread over all PEs, by buckets, as the IS benchmark of the NAS parallel benchmarks does:
// keys are means of four random numbers, so the middle buckets are full and the outer ones empty, and PEs get ranges of
// keys that hold about as many keys each. In C++; the calls are those of C.
//
// The pattern: to send data whose place at the target is unknown, reserve room there with an atomic fetch-and-add and
// put into it. No PE waits for another until all keys are in place.
#include <shmem.h>

#include <algorithm>
#include <cstdio>
#include <random>
#include <vector>

#include "example.h"

namespace {

constexpr int kBuckets = 1024;
constexpr int kMaxKey = 1 << 19;
constexpr int kKeysPerBucket = kMaxKey / kBuckets;

long bucket_counts[kBuckets];  // symmetric; PE 0's become those of all PEs together
long received = 0;             // how many keys this PE has got, or has room reserved for
long key_count = 0;            // of all PEs, before and after; PE 0's is used
long key_sum = 0;
int smallest_key = kMaxKey;  // of this PE, read by its left neighbour

std::vector<int> make_keys(long count) {
  std::minstd_rand random(static_cast<unsigned>(shmem_my_pe()) + 1);
  std::uniform_int_distribution<int> uniform(0, kMaxKey - 1);
  std::vector<int> keys(static_cast<std::size_t>(count));
  for (int& key : keys) {
    key = (uniform(random) + uniform(random) + uniform(random) + uniform(random)) / 4;
  }
  return keys;
}

// How many keys all PEs together have in each bucket.
std::vector<long> count_buckets(const std::vector<int>& keys) {
  std::vector<long> counts(kBuckets);
  for (const int key : keys) {
    ++counts[static_cast<std::size_t>(key / kKeysPerBucket)];
  }
  for (int i = 0; i < kBuckets; ++i) {
    const long count = counts[static_cast<std::size_t>(i)];
    if (count != 0) {
      shmem_long_atomic_add(&bucket_counts[i], count, 0);
    }
  }
  shmem_barrier_all();
  shmem_long_get(counts.data(), bucket_counts, kBuckets, 0);
  return counts;
}

struct Plan {
  std::vector<int> owner;  // of each bucket: the PE that sorts it; never falls from one bucket to the next
  std::size_t most = 1;    // keys that any PE gets
};

// The same on all PEs.
Plan deal_buckets(const std::vector<long>& counts) {
  Plan plan;
  const int pes = shmem_n_pes();
  long total = 0;
  for (const long count : counts) {
    total += count;
  }
  std::vector<std::size_t> load(static_cast<std::size_t>(pes));
  long before = 0;
  for (const long count : counts) {
    // The PE whose share contains the middle of the bucket.
    const int owner = std::min(pes - 1, static_cast<int>((before + count / 2) * pes / std::max(total, 1L)));
    plan.owner.push_back(owner);
    load[static_cast<std::size_t>(owner)] += static_cast<std::size_t>(count);
    before += count;
  }
  plan.most = std::max<std::size_t>(1, *std::max_element(load.begin(), load.end()));
  return plan;
}

// Puts each key into `inbox` of the PE that sorts it.
void send_keys(std::vector<int> keys, const Plan& plan, int* inbox) {
  const auto owner = [&](int key) { return plan.owner[static_cast<std::size_t>(key / kKeysPerBucket)]; };
  std::sort(keys.begin(), keys.end(), [&](int a, int b) { return owner(a) < owner(b); });
  for (auto begin = keys.begin(); begin != keys.end();) {
    const int pe = owner(*begin);
    const auto end = std::find_if(begin, keys.end(), [&](int key) { return owner(key) != pe; });
    const long place = shmem_long_atomic_fetch_add(&received, end - begin, pe);
    shmem_int_put(inbox + place, &*begin, static_cast<std::size_t>(end - begin), pe);
    begin = end;
  }
  shmem_barrier_all();  // all keys of all PEs have arrived
}

long sum(const int* keys, long count) {
  long total = 0;
  for (long i = 0; i < count; ++i) {
    total += keys[i];
  }
  return total;
}

// Problems in the result: keys out of order here or towards the next PE that has any, keys lost or changed.
long check(const int* keys) {
  long wrong = 0;
  for (long i = 1; i < received; ++i) {
    wrong += keys[i - 1] > keys[i];
  }
  smallest_key = received > 0 ? keys[0] : kMaxKey;
  shmem_long_atomic_add(&key_count, -received, 0);
  shmem_long_atomic_add(&key_sum, -sum(keys, received), 0);
  shmem_barrier_all();
  for (int pe = shmem_my_pe() + 1; pe < shmem_n_pes() && received > 0; ++pe) {
    wrong += keys[received - 1] > shmem_int_g(&smallest_key, pe);
  }
  return shmem_my_pe() == 0 ? wrong + (key_count != 0) + (key_sum != 0) : wrong;
}

}  // namespace

int main(int argc, char** argv) {
  shmem_init();
  const int pes = shmem_n_pes();
  const long keys_per_pe = number_argument(argc, argv, 1, 1 << 16, 0, 1 << 28, "[KEYS_PER_PE]");

  const std::vector<int> keys = make_keys(keys_per_pe);
  shmem_long_atomic_add(&key_count, keys_per_pe, 0);
  shmem_long_atomic_add(&key_sum, sum(keys.data(), keys_per_pe), 0);

  const Plan plan = deal_buckets(count_buckets(keys));
  auto* const inbox = static_cast<int*>(must_have(shmem_malloc(plan.most * sizeof(int))));
  send_keys(keys, plan, inbox);
  std::sort(inbox, inbox + received);

  if (shmem_my_pe() == 0) {
    std::printf("integer_sort: %ld keys on %d PE%s, %zu at most on one\n", keys_per_pe * pes, pes, pes == 1 ? "" : "s",
                plan.most);
  }
  const int status = verdict("integer_sort", check(inbox));
  shmem_free(inbox);
  shmem_finalize();
  return status;
}
