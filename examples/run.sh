#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests the examples: each exits with 0 and prints "correct" with several numbers of PEs, and refuses bad arguments.
# run.sh OSHRUN PROGRAM, or run.sh --make BIN: builds all with the Makefile, which finds BIN/oshcc as that of the build tree
# although another oshcc is first in PATH, and runs one.
set -eu

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

# $1 to $3: PEs, device, arguments.
run() {
  echo "--- $name $3, $1 PEs, --gba $2"
  # shellcheck disable=SC2086 # several arguments
  output=$("$oshrun" --timeout 40 -n "$1" --gba "$2" "$program" $3) || fail "$name $3 with $1 PEs: exit status $?"
  echo "$output"
  echo "$output" | grep -q "^$name: correct$" || fail "$name $3 with $1 PEs does not print that it is correct"
}

refuses() {
  "$oshrun" -n 2 --gba off "$program" "$@" >/dev/null 2>&1 && fail "$name takes $*"
  [ $? = 2 ] || fail "$name $* does not end with 2"
}

if [ "$1" = --make ]; then
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  mkdir "$folder/path"
  printf '#!/bin/sh\necho "not of libshmem" && exit 1\n' >"$folder/path/oshcc"
  chmod +x "$folder/path/oshcc"
  cp "$folder/path/oshcc" "$folder/path/oshc++"
  cp -R "$(dirname "$0")" "$folder/examples"
  ln -s "$(dirname "$2")" "$folder/build"
  PATH=$folder/path:$PATH make -B -C "$folder/examples"
  oshrun=$2/oshrun program=$folder/examples/ring name=ring
  run 4 off ""
  exit 0
fi

oshrun=$1 program=$2 name=$(basename "$2")
for pes in 1 2 4 7; do
  run "$pes" off ""
done
SHMEM_DEBUG=1 run 3 off "" # checking mode finds no mistake
case $name in
  hello) exit 0 ;;
  ring) run 3 fake 5 ;;
  heat) run 4 fake "4 30 50" && run 3 off "17 5 40" ;;   # PEs with one row each; unequal shares
  histogram) run 3 off "1 500" && run 2 off "1000 3000" ;;
  transpose) run 3 off 1 && run 2 off 100 ;;
  integer_sort) run 3 off 0 && run 4 off 1 && run 5 off 1000 ;;
  work_queue) run 3 off 2 ;;
esac
refuses many
refuses -1
refuses 4x
