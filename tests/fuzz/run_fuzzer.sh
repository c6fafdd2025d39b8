#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run_fuzzer.sh FUZZER CORPUS WORK_DIR: searches for GBA_FUZZ_SECONDS (default 20; 3600 in a soak), starting from CORPUS
# and the inputs that earlier runs have found (WORK_DIR/found). An input that fails is written to WORK_DIR; run
# FUZZER FILE to repeat it.
set -euo pipefail

fuzzer="$1" corpus="$2" work="$3"
seconds="${GBA_FUZZ_SECONDS:-${GBA_SOAK:+3600}}"
seconds="${seconds:-20}"
mkdir -p "$work/found"
words=()
[[ -e "$corpus.dict" ]] && words+=("-dict=$corpus.dict")
# Servers of earlier inputs still run: a search for leaks while they do finds memory that a thread is about to store the
# address of. One at the end finds what is lost.
[[ "$(basename "$corpus")" == uid ]] && words+=(-detect_leaks=0)
# These two make some thousand TCP connections a second, which would leave no port to this machine's other programs, nor
# to themselves: the kernel keeps each for a minute. A network of their own need not.
network=()
if [[ "$(basename "$corpus")" =~ ^(links|uid)$ ]]; then
  # shellcheck disable=SC2016 # expanded by the inner shell
  network=(unshare --user --map-root-user --net
    bash -c 'ip link set lo up && echo 0 >/proc/sys/net/ipv4/tcp_max_tw_buckets && exec "$@"' bash)
  "${network[@]}" true 2>/dev/null || network=()
fi
exec "${network[@]}" timeout --kill-after=10 $((seconds + 120)) "$fuzzer" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 \
  -max_len=8192 -artifact_prefix="$work/" -verbosity=1 "${words[@]}" "$work/found" "$corpus"
