// SPDX-License-Identifier: Apache-2.0
// Each function of Ascend SHMEM's public headers exists, by the list of their names.
#define USE_SIMT
#include <kernel_operator.h>
#include <shmem.h>  // the one in ascend/

namespace names {
#define SIMT(version, name)
#define NAME(version, name) using ::name;
#include "ascend_names.inc"
#undef NAME
#undef SIMT
}  // namespace names

namespace names_of_simt {
#define NAME(version, name)
#define SIMT(version, name) using simt::name;
#include "ascend_names.inc"
}  // namespace names_of_simt

int main() {
  return names::aclshmem_my_pe() == -1 && names_of_simt::aclshmem_n_pes() == -1 ? 0 : 1;
}
