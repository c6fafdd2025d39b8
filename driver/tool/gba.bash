# SPDX-License-Identifier: Apache-2.0
# Completion of gba(1) for bash. It asks the program, so it knows what the program knows.

_gba() {
  local word="${COMP_WORDS[COMP_CWORD]}" program="${COMP_WORDS[0]}" command='' i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    if [[ ${COMP_WORDS[i]} != -* ]]; then
      command="${COMP_WORDS[i]}"
      break
    fi
  done
  if [[ $word == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W \
      "$("$program" ${command:+"$command"} --help 2>/dev/null | grep -oE -- '^ +(-[a-z], *)?--[a-z-]+' | sed 's/.*--/--/')" -- "$word")
  elif [[ -z $command ]]; then
    mapfile -t COMPREPLY < <(compgen -W \
      "$("$program" --help 2>/dev/null | sed -n '/^Subcommands:/,$ s/^  \([a-z][a-z]*\) .*/\1/p')" -- "$word")
  fi
  # Nothing found: bash completes a file name, such as a socket or /dev/gba0.
}

complete -o bashdefault -o default -F _gba gba
