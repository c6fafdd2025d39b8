# SPDX-License-Identifier: Apache-2.0
"""Numbers of PEs, the state of the library, and the constants of signals."""

from shmem._pyshmem import CmpOp as ComparisonType
from shmem._pyshmem import InitStatus, SignalOp, my_pe, team_my_pe, team_n_pes
from shmem._pyshmem import aclshmemx_init_status as init_status
from shmem._pyshmem import pe_count as n_pes

__all__ = ["ComparisonType", "InitStatus", "SignalOp", "init_status", "my_pe", "n_pes", "team_my_pe", "team_n_pes"]
