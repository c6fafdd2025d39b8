#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail

usage() {
  cat <<'TEXT'
Usage: run.sh [PE_SIZE [FOLDER]]

Runs Ascend SHMEM's kv_shuffle example on PE_SIZE processes (default 8): makes KV caches of five sequences for each,
moves blocks to balance them, ten times, and compares the MD5 sum of each cache with that of the expected one. It exits
with 0 only if every step succeeds and all sums are equal.

FOLDER keeps the files. If it has a pair_list.bin, its files are used as they are, for example those of the example's
own golden.py. OSHRUN and KV_SHUFFLE name the programs, if they are neither in the build folder nor installed.
KV_PATH is how blocks are copied: direct, scratch (through two buffers of 32 KiB for each thread, as on processors whose
cores need them) or auto, the faster one (default).
TEXT
}

die() {
  echo "run.sh: $*" >&2
  exit 1
}

# $1: the program that the caller names, if any; else the first of the other programs that exists.
find_program() {
  local name
  [[ -z "$1" ]] || set -- "$1"
  for name in "$@"; do
    [[ -z "$name" ]] || { command -v "$name" && return; }
  done
  return 1
}

case "${1:-}" in
  -h | --help)
    usage
    exit 0
    ;;
esac
pe_size="${1:-8}"
[[ $# -le 2 && "$pe_size" =~ ^[1-9][0-9]{0,2}$ ]] || {
  usage >&2
  exit 2
}
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
built="$here/../../../build/bin"
kv_shuffle="$(find_program "${KV_SHUFFLE:-}" "$built/kv_shuffle" kv_shuffle)" ||
  die "kv_shuffle is not found (see KV_SHUFFLE)"
# Another oshrun may belong to another library: Open MPI has one.
oshrun="$(find_program "${OSHRUN:-}" "$built/oshrun" oshrun.libshmem "$(dirname "$kv_shuffle")/oshrun" oshrun)" ||
  die "oshrun is not found (see OSHRUN)"
if [[ $# == 2 ]]; then
  folder="$2"
else
  folder="$(mktemp -d)"
  trap 'rm -rf "$folder"' EXIT
fi

if [[ -f "$folder/pair_list.bin" ]]; then
  echo "Using the files in $folder"
elif python3 -c '' 2>/dev/null; then
  python3 "$here/golden.py" "$pe_size" "$folder" || die "golden.py failed"
else
  "$oshrun" -n "$pe_size" --gba off "$kv_shuffle" --generate "$folder" || die "kv_shuffle --generate failed"
fi
rm -f "$folder"/[kv]_cache_output_pe_*.bin
"$oshrun" -n "$pe_size" "$kv_shuffle" --import "$folder" --repeats 10 --path "${KV_PATH:-auto}" || die "kv_shuffle failed"

sum_of() {
  [[ -f "$1" ]] || die "there is no $1"
  md5sum <"$1"
}
wrong=0
for ((pe = 0; pe < pe_size; ++pe)); do
  for cache in k v; do
    output="$(sum_of "$folder/${cache}_cache_output_pe_$pe.bin")"
    golden="$(sum_of "$folder/${cache}_cache_golden_pe_$pe.bin")"
    if [[ "$output" != "$golden" ]]; then
      echo "PE $pe: the ${cache^} cache is wrong"
      wrong=$((wrong + 1))
    fi
  done
done
[[ $wrong == 0 ]] || die "$wrong of $((2 * pe_size)) caches are wrong"
echo "All $((2 * pe_size)) caches of $pe_size PEs are correct"
