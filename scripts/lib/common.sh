# SPDX-License-Identifier: GPL-2.0
# Shared by the shell scripts in this folder: sourced, never run.
# shellcheck shell=bash disable=SC2034

set -euo pipefail
export LC_ALL=C

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
# BASE=7.3: another kernel source, with outputs of its own
BASE=${BASE:-6.12}
export BASE
build=$top/build
[ "$BASE" = 6.12 ] || build=$top/build/$BASE
cache=${XDG_CACHE_HOME:-$HOME/.cache}/linux-ebb-brs
jobs=${JOBS:-$(nproc)}

say() { printf '%s\n' "$*" >&2; }
die() { say "${0##*/}: $*"; exit 1; }

# usage: the comment block at the head of the calling script
usage() { sed -n '3,/^$/s/^# \{0,1\}//p' "$0"; }

# One compiler cache for all clones.  Neither paths nor times reach the
# objects, so that builds in different folders share them.
compiler_cache() {
	export CCACHE_DIR=${CCACHE_DIR:-$cache/ccache}
	export CCACHE_MAXSIZE=${CCACHE_MAXSIZE:-4G}
	export CCACHE_NOHASHDIR=1 CCACHE_BASEDIR=$top
	export CCACHE_SLOPPINESS=time_macros,include_file_mtime,include_file_ctime
	mkdir -p "$CCACHE_DIR"
}

# run_logged LOG COMMAND...: the output goes to LOG; a dot a hundred lines
# shows progress; on failure the end of the log is shown.
run_logged() {
	local log=$1 status=0
	shift
	mkdir -p "$(dirname "$log")"
	{ "$@" 2>&1 || echo "$?" > "$log.status"; } | tee "$log" |
		awk 'NR % 100 == 0 { printf "." > "/dev/stderr" } END { if (NR >= 100) print "" > "/dev/stderr" }'
	if [ -e "$log.status" ]; then
		status=$(cat "$log.status")
		rm -f "$log.status"
		grep -E -i -m 5 'error|No space' "$log" >&2 || tail -n 15 "$log" >&2
		say "the whole log: $log"
	fi
	return "$status"
}

# lock NAME: one build of a kind at a time in this checkout
lock() {
	mkdir -p "$build"
	exec 9> "$build/.lock-$1"
	flock -n 9 || { say "waiting for another build of $1"; flock 9; }
}

# need_space GIB DIR: stop early and say so, instead of half way
need_space() {
	mkdir -p "$2"
	local free
	free=$(df -Pk "$2" | awk 'NR == 2 { print int($4 / 1048576) }')
	[ "$free" -ge "$1" ] || die "$2 has $free GiB free, $1 are needed"
}

# base_tree TREE DIR: the base of a tree as it is shipped, as a second work tree
# of its repository.  Fails if DIR was there already.
base_tree() {
	local wanted
	wanted=$(git -C "$1" rev-parse base)
	[ ! -e "$2/.git" ] || [ "$(git -C "$2" rev-parse HEAD 2> /dev/null)" != "$wanted" ] || return 1
	say "writing $2"
	rm -rf "$2"
	git -C "$1" worktree prune
	git -C "$1" worktree add -q -f --detach "$2" "$wanted"
}
