# SPDX-License-Identifier: Apache-2.0
# Completion of kv_shuffle(1) for bash: options and the names they take from the program itself. As an argument of oshrun,
# bash completes file names.

_kv_shuffle() {
  local word="${COMP_WORDS[COMP_CWORD]}" program="${COMP_WORDS[0]}" names
  COMPREPLY=()
  case ${COMP_WORDS[COMP_CWORD - 1]} in
    --model) names="list $("$program" --model list 2>/dev/null | sed '1d;s/ .*//')" ;;
    --plan | --format | --mode | --path)
      names="$("$program" --help 2>/dev/null | sed -n "s/^ *${COMP_WORDS[COMP_CWORD - 1]} \([a-z|-]*\).*/\1/p" | tr '|' ' ')"
      ;;
    --dtype) names="$("$program" --help 2>/dev/null | sed -n 's/^.* type of an element ([^)]*): \([^;]*\).*/\1/p' | tr -d ,)" ;;
    --trace | --json | --report) return ;; # bash completes a file name
    --import | --export | --generate)
      mapfile -t COMPREPLY < <(compgen -d -- "$word")
      return
      ;;
    --rounds) names=all ;;
    --from | --to | --tolerance | --layers | --blocks | --heads | --page | --head-dim | --element-size | --cores | --repeats) return ;;
    *) names="$("$program" --help 2>/dev/null | grep -oE -- '^ +(-[a-z], *)?--[a-z-]+' | sed 's/.*--/--/')" ;;
  esac
  mapfile -t COMPREPLY < <(compgen -W "$names" -- "$word")
}

complete -o bashdefault -o default -F _kv_shuffle kv_shuffle
