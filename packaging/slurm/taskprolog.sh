#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# An example for TaskProlog= in slurm.conf, which runs as the user, with the devices of the job: sets GBA_DEVICE to the first
# port that the job may open, so that a job with the second port only need not know that. A user's own GBA_DEVICE stays.
# taskprolog.sh [FOLDER], by default /dev.
[ -z "${GBA_DEVICE:-}" ] || exit 0
for port in "${1:-/dev}"/gba[0-9]*; do
  # Of a port that is a process, the socket.
  if [ -S "$port" ] || (exec 3<"$port") 2>/dev/null; then
    echo "export GBA_DEVICE=$port"
    break
  fi
done
