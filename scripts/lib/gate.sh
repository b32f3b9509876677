# SPDX-License-Identifier: GPL-2.0
# Shared by the gates in scripts/gates/: sourced, never run.
# shellcheck shell=bash disable=SC2034

. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
. "$(dirname "${BASH_SOURCE[0]}")/kernel.sh"
. "$(dirname "${BASH_SOURCE[0]}")/ktap.sh"
set +e # what finds something is followed by the next
export PATH=/usr/bin:$PATH # the Python that Debian's modules are for
tree=$build/linux
stock=
compiler_cache

# commits of the series without the generated removals; more arguments are git's
commits() {
	git -C "$tree" log --reverse --format='%H %s' --invert-grep --grep='^Series: [^ ]* removal ' "$@" base..series
}

# files of ours and files that the series changes
files() { git -C "$tree" diff --name-only --diff-filter=d base series -- "$@"; }

# the folders of the series' C files: which objects there are depends on the configuration
folders() { # ARCH
	case $1 in
	powerpc) files arch/powerpc/kernel arch/powerpc/perf kernel ;;
	x86) files arch/x86 kernel drivers ;;
	esac | sed -n 's/[^/]*\.c$//p' | sort -u
}

# configured SOURCE ARCH OUT [MAKE ARGUMENT...]: with the tests' configuration
configured() {
	local source=$1 arch=$2 out=$3 list
	shift 3
	kernel_for "$arch"
	list=$(fragments "$arch" kunit)
	# shellcheck disable=SC2086 # names without spaces, below this checkout
	[ -e "$out/.config" ] || (cd "$top" && kernel_configure "$source" "$out" "$@" -- $list)
}

# warn ARCH NAME MAKE ARGUMENT...: compile the series, and show what is said of files of ours
warn() {
	local arch=$1 out=$tree/.check-$2-$1 said=$build/check/$2-$1.log
	shift 2
	mkdir -p "$build/check"
	configured "$tree" "$arch" "$out" "$@" || return 1
	# shellcheck disable=SC2046
	kernel_make "$tree" "$out" -s "$@" $(folders "$arch") > "$said" 2>&1 || { tail -n 20 "$said"; return 1; }
	# the base's own files are not ours to clean
	! grep -E '/(ebb|brs|idle|perf_idle)[^/]*\.[chS]:[0-9]' "$said"
}
