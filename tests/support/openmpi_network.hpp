// SPDX-License-Identifier: Apache-2.0
// How Open MPI's jobs on Hosts reach other hosts: environments for mpirun, whose daemons and their processes have it,
// too.
#pragma once

#include <string>
#include <vector>

namespace test_support {

/// By UCX over TCP, MPI and OpenSHMEM; within a host by UCX in shared memory.
inline std::vector<std::string> openmpi_over_ucx() {
  return {"OMPI_MCA_pml=ucx", "OMPI_MCA_osc=ucx", "OMPI_MCA_spml=ucx",
          // Else Open MPI takes UCX only with hardware that it knows.
          "OMPI_MCA_opal_common_ucx_tls=any", "OMPI_MCA_opal_common_ucx_devices=any",
          "OMPI_MCA_opal_common_ucx_opal_mem_hooks=0",  // Debian's crashes at the end with them
          "UCX_TLS=tcp,self,sm", "UCX_NET_DEVICES=eth0", "UCX_WARN_UNUSED_ENV_VARS=n"};
}

/// By its own TCP, MPI alone: its OpenSHMEM has UCX only.
inline std::vector<std::string> openmpi_over_tcp() {
  return {"OMPI_MCA_pml=ob1", "OMPI_MCA_btl=tcp,vader,self", "OMPI_MCA_btl_tcp_if_include=eth0"};
}

}  // namespace test_support
