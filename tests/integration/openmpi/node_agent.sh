#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# In place of ssh for mpirun: "another node" is a process of this machine with its own host name.
#
#   node_agent.sh [OPTION...] HOST COMMAND...
while [ "${1#-}" != "$1" ]; do shift; done
host=$1
shift
exec unshare --uts sh -c "hostname $host; $*"
