#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A new user's first hour in a bare Debian: the demo, then each command line of README's quick start, as it stands there.
# Skipped (77) without root, debootstrap or a Debian mirror.
set -euo pipefail
# shellcheck source=tests/packages/root.sh
source "$(dirname "${BASH_SOURCE[0]}")/root.sh"

[[ $# == 2 || $# == 3 ]] || {
  echo "Usage: bare_root.sh SOURCE_FOLDER SUITE [ROOT_FOLDER]" >&2
  exit 2
}
source="$1"
suite="$2"

# The lines of README's quick start that begin with a prompt.
commands() {
  sed -n '/^## Quick start/,/^## Doc/s/^\$ //p' "$source/README.md"
}

not_installed() {
  # shellcheck disable=SC2016 # the name is dpkg-query's
  ! inside dpkg-query -W -f='${db:Status-Status} ' "$@" 2>/dev/null | grep -qw installed
}

make_root "$suite" "${3:-}"
keep_objects "$suite"
copy_tree "$source"
# shellcheck disable=SC2016 # a mark of the document
sed -n '/^```c$/,/^```$/{/^```/d;p}' "$source/README.md" >"$root/src/hello.c"
[[ -s "$root/src/hello.c" ]] || {
  echo "README.md has no program"
  exit 1
}
check "install-deps.sh installs what building needs" typed "scripts/install-deps.sh"
check "a plain build works" typed "cmake -B build-plain && cmake --build build-plain --target gba-fake-device"
check "the demo runs" typed "scripts/demo.sh 2"
check "nothing was installed for tests" not_installed clang valgrind spin libgtest-dev libbenchmark-dev
mapfile -t lines < <(commands)
[[ ${#lines[@]} -ge 5 ]] || {
  echo "README.md has few commands: ${lines[*]}"
  exit 1
}
for line in "${lines[@]}"; do
  check "README: $line" typed "$line"
done
grep -q "PE 1 of 4\|PE 3 has" "$work/output" || {
  echo "the last command printed: $(<"$work/output")"
  exit 1
}
