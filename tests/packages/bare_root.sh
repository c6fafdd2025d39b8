#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A new user's first hour in a bare Debian: the demo, then the command lines of README's doors and those of docs/python.md
# that need PyTorch, as they stand there: as root, and those that install nothing also as a user. Skipped (77) without root, debootstrap or a Debian mirror.
set -euo pipefail
# shellcheck source=tests/packages/root.sh
source "$(dirname "${BASH_SOURCE[0]}")/root.sh"

[[ $# == 2 || $# == 3 ]] || {
  echo "Usage: bare_root.sh SOURCE_FOLDER SUITE [ROOT_FOLDER]" >&2
  exit 2
}
source="$1"
suite="$2"

# The blocks of README's command lines, each ended by a NUL: the lines that begin with a prompt, without it.
blocks() {
  awk '/^```/ { if (inside && kept != "") printf "%s%c", kept, 0; inside = !inside; kept = ""; next }
    inside && /^\$ / { kept = kept substr($0, 3) "\n" }' "$source/README.md"
}

not_installed() {
  # shellcheck disable=SC2016 # the name is dpkg-query's
  ! inside dpkg-query -W -f='${db:Status-Status} ' "$@" 2>/dev/null | grep -qw installed
}

# as USER SCRIPT: in the tree, in a shell of that user, whose programs in the background end with it.
as() {
  inside runuser -u "$1" -- env HOME="/tmp/home-of-$1" bash -c "cd /src && trap 'kill \$(jobs -p) 2>/dev/null || true' EXIT
set -e
$2"
}

make_root "$suite" "${3:-}"
keep_objects "$suite"
copy_tree "$source"
check "the demo runs" typed "scripts/demo.sh 2"
check "nothing was installed for tests" not_installed clang valgrind spin libgtest-dev libbenchmark-dev
mapfile -t -d '' doors < <(blocks)
[[ ${#doors[@]} -ge 6 ]] || {
  echo "README.md has few commands: ${doors[*]}"
  exit 1
}
inside id -u guest >/dev/null 2>&1 || inside useradd --home-dir /tmp/home-of-guest guest
inside mkdir -p /tmp/home-of-root
inside install -d -o guest /tmp/home-of-guest
exports=
for door in "${doors[@]}"; do
  check "README, as root: $door" as root "$exports$door"
  exports+="$(grep '^export ' <<<"$door" || true)"$'\n'
done
inside chown -R guest /src
for door in "${doors[@]}"; do
  # What has been installed and built.
  door="$(grep -v -e install-deps.sh -e '^cmake -B' <<<"$door")"
  check "README, as a user: $door" as guest "$exports$door"
done
# python_lines FIRST: the lines of the block of docs/python.md whose first one begins with this text.
python_lines() {
  awk -v first="\$ $1" '/^```/ { inside = 0 } index($0, first) == 1 { inside = 1 } inside && /^\$ / { print substr($0, 3) }' "$source/docs/python.md"
}

mapfile -t lines < <(python_lines scripts/install-deps.sh)
[[ ${#lines[@]} -ge 6 ]]
for line in "${lines[@]:2}"; do
  check "docs/python.md, as a user: $line" as guest "$exports$line"
done
mapfile -t lines < <(python_lines scripts/wheel.sh)
[[ ${#lines[@]} -ge 5 ]]
check "docs/python.md, as root: ${lines[0]}" as root "${lines[0]}"
inside chown -R guest /src
for line in "${lines[@]:1}"; do
  check "docs/python.md, as a user: $line" as guest "$line"
done
# A program that asks for gloo. Debian's torchrun needs the help that docs/python.md describes. PyTorch 1.13 loads no backend
# by itself.
mapfile -t lines < <(python_lines "python3 -m shmem_torch" | sed 's/train.py/examples\/torch\/ddp.py 4 gloo/')
[[ ${#lines[@]} -ge 3 ]]
unset 'lines[1]'
[[ "$suite" != bookworm ]] || lines=("${lines[0]}")
for line in "${lines[@]}"; do
  check "docs/python.md, as a user: $line" as guest "$exports${line/SHMEM_TORCH_GLOO=1 python3/SHMEM_TORCH_GLOO=1 venv/bin/python}"
done
