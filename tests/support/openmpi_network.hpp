// SPDX-License-Identifier: Apache-2.0
// The networks of Open MPI's jobs on Hosts: environments for mpirun, which passes them on to its daemons and processes.
#pragma once

#include <string>
#include <vector>

namespace test_support {

/// MPI and OpenSHMEM by UCX: over TCP between hosts, in shared memory within a host.
inline std::vector<std::string> openmpi_over_ucx() {
  return {"OMPI_MCA_pml=ucx", "OMPI_MCA_osc=ucx", "OMPI_MCA_spml=ucx",
          // Otherwise Open MPI uses UCX only with hardware that it knows.
          "OMPI_MCA_opal_common_ucx_tls=any", "OMPI_MCA_opal_common_ucx_devices=any",
          "OMPI_MCA_opal_common_ucx_opal_mem_hooks=0",  // with the hooks Debian's Open MPI crashes at its end
          "UCX_TLS=tcp,self,sm", "UCX_NET_DEVICES=eth0", "UCX_WARN_UNUSED_ENV_VARS=n"};
}

/// MPI by its own TCP. Not for OpenSHMEM, which can only use UCX.
inline std::vector<std::string> openmpi_over_tcp() {
  return {"OMPI_MCA_pml=ob1", "OMPI_MCA_btl=tcp,vader,self", "OMPI_MCA_btl_tcp_if_include=eth0"};
}

}  // namespace test_support
