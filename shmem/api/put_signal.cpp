// SPDX-License-Identifier: Apache-2.0
// OpenSHMEM 1.6, section 9.8: puts that end with a signal, and signals alone.
#include "shmem/api/peer.hpp"
#include "shmem/memory/copy.hpp"
#include "shmem/memory/parking.hpp"

using shmem::api::Peer;

namespace {

std::atomic_ref<std::uint64_t> signal_word(const Peer& peer, std::uint64_t* mine) {
  if (reinterpret_cast<std::uintptr_t>(mine) % sizeof *mine != 0) {
    shmem::api::end_job(peer.context, peer.call, "the signal is not aligned to its size, 8 bytes");
  }
  return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(peer.at(mine, sizeof *mine)));
}

// Sequentially consistent, as wake_parked asks for; that includes the release which orders earlier puts before the
// signal. Streaming copies bring their own sfence.

void set(const Peer& peer, std::uint64_t* sig_addr, std::uint64_t signal) {
  signal_word(peer, sig_addr).exchange(signal, std::memory_order_seq_cst);
  shmem::wake_parked(peer.context.job(), peer.pe);
}

void add(const Peer& peer, std::uint64_t* sig_addr, std::uint64_t signal) {
  signal_word(peer, sig_addr).fetch_add(signal, std::memory_order_seq_cst);
  shmem::wake_parked(peer.context.job(), peer.pe);
}

template <std::size_t Size>
void put_signal(const Peer& peer, void* dest, const void* source, std::size_t nelems, std::uint64_t* sig_addr,
                std::uint64_t signal, int sig_op) {
  if (sig_op != SHMEM_SIGNAL_SET && sig_op != SHMEM_SIGNAL_ADD) {
    shmem::api::end_job(peer.context, peer.call,
                        std::to_string(sig_op) + " is neither SHMEM_SIGNAL_SET nor SHMEM_SIGNAL_ADD");
  }
  if (const std::size_t bytes = shmem::api::bytes_of(peer, nelems, Size); bytes != 0) {
    shmem::copy_bytes(peer.at(dest, bytes), source, bytes);
  }
  if (sig_op == SHMEM_SIGNAL_SET) {
    set(peer, sig_addr, signal);
  } else {
    add(peer, sig_addr, signal);
  }
}

}  // namespace

#define SHMEM_DEFINE_PUT_SIGNAL(NAME, TYPE, SIZE)                                                                \
  SHMEM_ROUTINE_WITH_CTX(                                                                                        \
      void, NAME,                                                                                                \
      (TYPE * dest, const TYPE* source, size_t nelems, uint64_t* sig_addr, uint64_t signal, int sig_op, int pe), \
      put_signal<SIZE>, (dest, source, nelems, sig_addr, signal, sig_op))
#define SHMEM_DEFINE_TYPED(NAME, TYPE)                           \
  SHMEM_DEFINE_PUT_SIGNAL(NAME##_put_signal, TYPE, sizeof(TYPE)) \
  SHMEM_DEFINE_PUT_SIGNAL(NAME##_put_signal_nbi, TYPE, sizeof(TYPE))
#define SHMEM_DEFINE_SIZED(BITS, BYTES)                    \
  SHMEM_DEFINE_PUT_SIGNAL(put##BITS##_signal, void, BYTES) \
  SHMEM_DEFINE_PUT_SIGNAL(put##BITS##_signal_nbi, void, BYTES)
SHMEM_RMA_TYPES(SHMEM_DEFINE_TYPED)
SHMEM_SIZES(SHMEM_DEFINE_SIZED)
SHMEM_DEFINE_PUT_SIGNAL(putmem_signal, void, 1)
SHMEM_DEFINE_PUT_SIGNAL(putmem_signal_nbi, void, 1)

SHMEM_ROUTINE_WITH_CTX(void, signal_set, (uint64_t * sig_addr, uint64_t signal, int pe), set, (sig_addr, signal))
SHMEM_ROUTINE_WITH_CTX(void, signal_add, (uint64_t * sig_addr, uint64_t signal, int pe), add, (sig_addr, signal))
