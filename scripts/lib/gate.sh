# SPDX-License-Identifier: GPL-2.0
# Functions for the gates in scripts/gates/: sourced, never run.
# shellcheck shell=bash disable=SC2034

. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
. "$(dirname "${BASH_SOURCE[0]}")/kernel.sh"
. "$(dirname "${BASH_SOURCE[0]}")/ktap.sh"
set +e # a gate continues after a failed check
export PATH=/usr/bin:$PATH # use Debian's Python, which has the modules of Debian's packages
tree=$build/linux
stock=
compiler_cache

# commits [ARGUMENT...]: print the series' commits, without those that remove the stock code, by 'git log ARGUMENT...'
commits() {
	git -C "$tree" log --reverse --format='%H %s' --invert-grep --grep='^Series: [^ ]* removal ' "$@" base..series
}

# files PATH...: print the files that the series adds or changes
files() { git -C "$tree" diff --name-only --diff-filter=d base series -- "$@"; }

# folders ARCH: print the directories with C files of the series, as make targets
folders() {
	case $1 in
	powerpc) files arch/powerpc/kernel arch/powerpc/perf kernel ;;
	x86) files arch/x86 kernel drivers ;;
	esac | sed -n 's/[^/]*\.c$//p' | sort -u
}

# configured SOURCE ARCH OUT [MAKE ARGUMENT...]: configure a kernel with the KUnit tests in OUT
configured() {
	local source=$1 arch=$2 out=$3 list
	shift 3
	kernel_for "$arch"
	list=$(fragments "$arch" kunit)
	# shellcheck disable=SC2086 # names without spaces, below this checkout
	[ -e "$out/.config" ] || (cd "$top" && kernel_configure "$source" "$out" "$@" -- $list)
}

# warn ARCH NAME MAKE ARGUMENT...: compile the series; fail if there is a warning for a file of ours
warn() {
	local arch=$1 out=$tree/.check-$2-$1 said=$build/check/$2-$1.log
	shift 2
	mkdir -p "$build/check"
	configured "$tree" "$arch" "$out" "$@" || return 1
	# shellcheck disable=SC2046
	kernel_make "$tree" "$out" -s "$@" $(folders "$arch") > "$said" 2>&1 || { tail -n 20 "$said"; return 1; }
	# ignore warnings for files of the base
	! grep -E '/(ebb|brs|idle|perf_idle)[^/]*\.[chS]:[0-9]' "$said"
}
