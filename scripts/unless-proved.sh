#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() {
  cat <<'TEXT'
Usage: scripts/unless-proved.sh NAME FOLDER [PATH...] -- COMMAND [ARGUMENT...]

Runs COMMAND, a test whose result depends only on the contents of the PATHs (files and folders of this
tree, or patterns of git) and on its own arguments, unless it has passed with the same ones: then
tests/proved.txt or FOLDER/NAME has their hash. Notes the hash in FOLDER/NAME if it passes.
GBA_PROVE=all, or a soak (GBA_SOAK), runs it all the same.
TEXT
}

handle_help_option "$@"
[[ $# -ge 4 && " $* " == *" -- "* ]] || usage_error "expected a name, a folder, -- and a command"
name="$1"
folder="$2"
shift 2
paths=()
while [[ "$1" != -- ]]; do
  paths+=("$1")
  shift
done
shift

# In a tree without git, e.g. from an archive: all files but those that were built.
files() {
  cd "$ROOT"
  if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
    git ls-files -z --cached --others --exclude-standard -- "${paths[@]}"
  else
    find . -path './build*' -prune -o -path ./tests/proved.txt -prune -o -type f -print0
  fi | LC_ALL=C sort -zu
}

# Names and contents; the folders of tree and build count as the same in every clone.
hash_of() {
  {
    files | { cd "$ROOT" && xargs -0 -r sha256sum 2>/dev/null; } || true # a file that is tracked may be missing
    printf '%s\n' "${@//"$ROOT"/}"
  } | sha256sum | cut -d ' ' -f 1
}

hash="$(hash_of "$@")"
if [[ "${GBA_PROVE:-}" != all && -z "${GBA_SOAK:-}" ]] && grep -qsxF "$hash $name" "$ROOT/tests/proved.txt" "$folder/$name"; then
  echo "proved before, with the same files: ${paths[*]} (GBA_PROVE=all proves it again)"
  exit 0
fi
status=0
"$@" || status=$?
if [[ "$status" == 0 ]]; then
  mkdir -p "$folder"
  echo "$hash $name" >"$folder/$name"
fi
exit "$status"
