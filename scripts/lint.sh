#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() {
  cat <<'TEXT'
Usage: scripts/lint.sh BUILD_DIR

Checks every tracked source file: its SPDX line, its format (clang-format), and its layer, braces
and line lengths (scripts/check-sources.py). Runs clang-tidy on the sources in
BUILD_DIR/compile_commands.json and, if it is installed, shellcheck on the scripts. Exits with 0 if
all checks pass.
TEXT
}

sources() {
  git ls-files -z -- '*.c' '*.h' '*.cc' '*.cpp' '*.hpp'
}

shell_scripts() {
  git ls-files -z -- '*.sh' .ci/run
}

check_spdx() {
  local -a missing
  mapfile -t missing < <(git ls-files -z -- '*.c' '*.h' '*.cc' '*.cpp' '*.hpp' '*.sh' '*.cmake' '*.py' '*.rules.in' \
    'CMakeLists.txt' '*/CMakeLists.txt' .ci/run |
    while IFS= read -r -d '' file; do
      head -n 2 -- "$file" | grep -qE '^(//|#|/\*) SPDX-License-Identifier: Apache-2\.0' || echo "$file"
    done)
  [[ ${#missing[@]} -eq 0 ]] || {
    printf '%s: no SPDX-License-Identifier: Apache-2.0 in the first two lines\n' "${missing[@]}" >&2
    return 1
  }
}

check_format() {
  sources | xargs -0 -r "$(versioned_program clang-format)" --dry-run -Werror
}

# Without the precompiled headers, which are for g++, so each file must include what it uses.
check_tidy() {
  local output
  sed -E 's/ -Winvalid-pch -include [^ ]*cmake_pch\.hx*//' "$build_dir/compile_commands.json" \
    >"$database/compile_commands.json"
  output="$("$(versioned_program run-clang-tidy)" -quiet -clang-tidy-binary "$(versioned_program clang-tidy)" \
    -p "$database" -j "$(nproc)" 2>&1)" || {
    echo "$output" >&2
    return 1
  }
}

check_shell() {
  if command -v shellcheck >/dev/null; then
    shell_scripts | xargs -0 -r shellcheck -x
  else
    echo "shellcheck is not installed: scripts not checked"
  fi
}

handle_help_option "$@"
[[ $# == 1 ]] || usage_error "expected one argument, the build folder"
build_dir="$(cd "$1" 2>/dev/null && pwd)" || die "no such folder: $1"
[[ -f "$build_dir/compile_commands.json" ]] ||
  die "no compile_commands.json in $build_dir; configure it first: scripts/build.sh"
! grep -q '^CMAKE_UNITY_BUILD:.*=ON$' "$build_dir/CMakeCache.txt" ||
  die "$build_dir compiles files together, but each is checked alone: cmake -B $build_dir -DCMAKE_UNITY_BUILD=OFF"
database="$(mktemp -d)"
trap 'rm -rf "$database"' EXIT
cd "$ROOT"
problems=()
scripts/check-sources.py || problems+=("a layer, a brace or a long line (scripts/check-sources.py)")
check_spdx || problems+=("a file without SPDX line")
check_format || problems+=("clang-format would change a file (clang-format -i FILE fixes it)")
check_shell || problems+=("shellcheck")
check_tidy || problems+=("clang-tidy")
if [[ ${#problems[@]} -gt 0 ]]; then
  printf 'lint.sh: %s\n' "${problems[@]}" >&2
  exit 1
fi
echo "lint: clean"
