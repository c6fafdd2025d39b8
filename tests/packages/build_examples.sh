#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the examples in a copy of the tree and runs kv_shuffle's, by the commands that its users type.
set -euo pipefail

[[ $# == 1 ]] || {
  echo "Usage: build_examples.sh SOURCE_FOLDER" >&2
  exit 2
}
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
tar -C "$1" --exclude='./build*' --exclude=./.git -c . | tar -C "$work" -x
unset OSHRUN KV_SHUFFLE KV_PATH
cd "$work"
bash scripts/build.sh -examples
[[ -x build/examples/hello && ! -e build/bin/bench_barrier ]] || {
  echo "the examples were not built, or more than they need"
  exit 1
}
cd examples/kv_shuffle
output="$(SHMEM_GBA=off bash scripts/run.sh 2)" || {
  echo "$output"
  exit 1
}
[[ "$output" == *"All 4 caches of 2 PEs are correct"* ]] || {
  echo "run.sh printed: $output"
  exit 1
}
