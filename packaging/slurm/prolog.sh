#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# An example for Prolog= in slurm.conf, which slurmd runs as root before a job: a node with a port that cannot be opened is
# drained, and the job is queued again. A port that another job has open is not looked at.
set -u
for port in /dev/gba[0-9]*; do
  [ -e "$port" ] || continue
  report=$(gba check "$port" 2>&1) && continue
  case $report in
    *busy*) continue ;;
  esac
  echo "gba check $port: $report" >&2
  exit 1
done
