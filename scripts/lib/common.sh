# SPDX-License-Identifier: GPL-2.0
# Functions and variables for the shell scripts in scripts/: sourced, never run.
# shellcheck shell=bash disable=SC2034

set -euo pipefail
export LC_ALL=C

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
# BASE is the version of the kernel source; another version than 6.12 has its own build directory
BASE=${BASE:-6.12}
export BASE
build=$top/build
[ "$BASE" = 6.12 ] || build=$top/build/$BASE
# QEMU_BASE is the version of QEMU's source; another version than 10.0 has its own build directory, too
QEMU_BASE=${QEMU_BASE:-10.0}
export QEMU_BASE
qemu_build=$top/build
[ "$QEMU_BASE" = 10.0 ] || qemu_build=$top/build/qemu-$QEMU_BASE
cache=${XDG_CACHE_HOME:-${HOME:-~}/.cache}/linux-ebb-brs
jobs=${JOBS:-$(nproc)}

say() { printf '%s\n' "$*" >&2; }
die() { say "${0##*/}: $*"; exit 1; }

# usage: print the comment block at the head of the calling script
usage() { sed -n '3,/^$/s/^# \{0,1\}//p' "$0"; }

# compiler_cache: use one ccache for all clones.  Objects contain no paths and no
# times, so that builds in different directories share them.
compiler_cache() {
	export CCACHE_DIR=${CCACHE_DIR:-$cache/ccache}
	export CCACHE_MAXSIZE=${CCACHE_MAXSIZE:-4G}
	export CCACHE_NOHASHDIR=1 CCACHE_BASEDIR=$top
	export CCACHE_SLOPPINESS=time_macros,include_file_mtime,include_file_ctime
	mkdir -p "$CCACHE_DIR"
}

# run_logged LOG COMMAND...: write the command's output to LOG, print a dot for each
# hundred lines, and print errors from LOG if the command fails.
run_logged() {
	local log=$1 status=0
	shift
	mkdir -p "$(dirname "$log")"
	"$@" 2>&1 | tee "$log" |
		awk 'NR % 100 == 0 { printf "." > "/dev/stderr" } END { if (NR >= 100) print "" > "/dev/stderr" }' ||
		status=${PIPESTATUS[0]}
	if [ "$status" != 0 ]; then
		grep -E -i -m 5 'error( [0-9]+)?:|error [0-9]+$|\*\*\*|No space' "$log" >&2 || tail -n 15 "$log" >&2
		say "the whole log: $log"
	fi
	return "$status"
}

# lock NAME: wait until no other build of NAME runs in this checkout
lock() {
	mkdir -p "$build"
	exec 9> "$build/.lock-$1"
	flock -n 9 || { say "waiting for another build of $1"; flock 9; }
}

# need_space GIB DIR: fail if the disk of DIR has less free space
need_space() {
	mkdir -p "$2"
	local free
	free=$(df -Pk "$2" | awk 'NR == 2 { print int($4 / 1048576) }')
	[ "$free" -ge "$1" ] || die "$2 has $free GiB free, $1 are needed"
}

# plain_path: fail if the path of this checkout, or of $1, has what make and QEMU's build cannot deal with
plain_path() {
	case $top${1:-} in
	*[[:space:]:]*) die "$top${1:+ or $1} has a space or a colon in its path: make and QEMU cannot build there" ;;
	esac
}

# base_tree TREE DIR [COMMIT]: write a commit of a tree to DIR, as a second work tree of the tree's
# repository, unless DIR contains the whole commit already; without COMMIT, the base without the series
base_tree() {
	local wanted
	wanted=$(git -C "$1" rev-parse --verify -q "${3:-base}^{commit}") || die "$1 has no commit ${3:-base}"
	# git locks a work tree while it writes the files, and so a killed run leaves it locked
	[ ! -e "$2/.git" ] || [ "$(git -C "$2" rev-parse HEAD 2> /dev/null)" != "$wanted" ] ||
		[ -e "$(git -C "$2" rev-parse --git-path locked)" ] || return 0
	say "writing $2"
	rm -rf "$2"
	need_space 2 "$(dirname "$2")"
	git -C "$1" worktree prune || die "$1 cannot be read"
	# the second -f is for a work tree that is locked and was removed
	git -C "$1" worktree add -q -f -f --detach "$2" "$wanted" || die "$2 cannot be written"
}
