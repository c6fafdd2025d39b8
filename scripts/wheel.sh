#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() {
  cat <<'TEXT'
Usage: scripts/wheel.sh [--torch] [--python FILE | --from BUILD] [FOLDER]

Makes a wheel of the Python modules shmem_kv, shmem and shmem_torch, with libshmem, libkvexchange, libgba, oshrun,
kv_exchange and shmem_info, and puts it into FOLDER (default: build-wheel). Install it by
"pip install FILE" (docs/python.md). shmem_torch is in it if PyTorch and its headers are found, and
is for that version of PyTorch.

  --torch        installs Debian's PyTorch first, if it is missing
  --python FILE  builds for this Python (default: /usr/bin/python3), which needs setuptools and wheel
  --from BUILD   takes what is built in this folder, for the Python for which that was configured
TEXT
}

groups=(build options wheel)
python=/usr/bin/python3
from=
handle_help_option "$@"
while [[ "${1:-}" == -* ]]; do
  case "$1" in
    --torch) groups+=(torch) ;;
    --python | --from)
      [[ -n "${2:-}" ]] || usage_error "$1 needs an argument"
      [[ $1 == --from ]] && from="$2" || python="$2"
      shift
      ;;
    *) usage_error "unknown option: $1" ;;
  esac
  shift
done
[[ $# -le 1 ]] || usage_error "expected one argument at most, the folder"
folder="$(realpath -m "${1:-$ROOT/build-wheel}")"
if [[ -n "$from" ]]; then
  [[ -f "$from/CMakeCache.txt" ]] || die "$from is not a build folder: it has no CMakeCache.txt"
  from="$(realpath "$from")"
  export GBA_WHEEL_FROM="$from"
  python="$(sed -n 's/^SHMEM_PYTHON:FILEPATH=//p' "$from/CMakeCache.txt")"
  [[ -x "$python" ]] || die "$from was built without shmem_kv: $from/bin/shmem_info --build says why"
else
  install_packages "${groups[@]}"
fi
"$python" -c 'import setuptools, wheel' 2>/dev/null ||
  die "$python has no setuptools or no wheel (Debian: python3-setuptools, python3-wheel)"
cd "$ROOT"
"$python" -W ignore setup.py -q bdist_wheel -d "$folder"
ls -l "$folder"/shmem_kv-*.whl
