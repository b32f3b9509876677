# SPDX-License-Identifier: GPL-2.0
# Functions that configure and build a kernel: sourced, never run.
# shellcheck shell=bash disable=SC2034
#
# A kernel is built in a directory .NAME directly below its source.  The kernel's
# makefiles then call the source "..", so that paths in the objects are the same
# for our kernel and the stock kernel, for all flavours, and in all checkouts: the
# compiler cache shares equal objects, and the same source gives the same image.

# Images do not contain the time of the build, the machine or the user.
export KBUILD_BUILD_TIMESTAMP='Thu Jan  1 00:00:00 UTC 1970' KBUILD_BUILD_USER=user KBUILD_BUILD_HOST=host
export KBUILD_BUILD_VERSION=1 KCONFIG_NOTIMESTAMP=1

# kernel_for ARCH: set the variables that kernel_make() needs for this architecture
kernel_for() {
	case $1 in
	powerpc) make_arch=powerpc cross=powerpc64le-linux-gnu- target=vmlinux image=vmlinux ;;
	x86) make_arch=x86_64 cross='' target=bzImage image=arch/x86/boot/bzImage ;;
	*) die "name an architecture, powerpc or x86" ;;
	esac
}

# kernel_make SOURCE OUT TARGET...: build make targets of a kernel in the directory OUT
kernel_make() {
	local source=$1 out=$2
	shift 2
	make -C "$source" O="$out" ARCH="$make_arch" CROSS_COMPILE="$cross" CC="ccache ${cross}gcc" \
		LOCALVERSION= -j"$jobs" "$@"
}

# fragments ARCH FLAVOUR...: print the files with the configuration fragments, in order
fragments() {
	local arch=$1 flavour name
	shift
	# include the KUnit tests in our debug and distro kernels; the stock kernel has no such tests
	case " $* " in *' debug '* | *' distro '*) [ -n "$stock" ] || set -- kunit "$@" ;; esac
	# add the options that only our kernel has
	[ -n "$stock" ] || set -- ours "$@"
	for flavour in common "$arch" "$@"; do
		for name in "$flavour" "$flavour-$arch"; do
			[ ! -e "$top/scripts/configs/$name.config" ] || echo "$top/scripts/configs/$name.config"
		done
	done
}

# kernel_configure SOURCE OUT [MAKE ARGUMENT...] -- FRAGMENT...: configure a kernel by
# the fragments on top of allnoconfig.  Fail, with the option's name, if the kernel
# rejects an option of a fragment.
kernel_configure() {
	local source=$1 out=$2 said
	local -a more=()
	shift 2
	while [ "$1" != -- ]; do more+=("$1"); shift; done
	shift
	mkdir -p "$out"
	# merge_config.sh takes no arguments for make, but make reads MAKEFLAGS
	said=$(cd "$source" && MAKEFLAGS="ARCH=$make_arch CROSS_COMPILE=$cross CC=ccache\ ${cross}gcc ${more[*]}" \
		scripts/kconfig/merge_config.sh -n -O "$out" "$@" 2>&1) || { say "$said"; return 1; }
	printf '%s\n' "$said" > "$out/.merged"
	# let a fragment switch off an option that this kernel does not have
	said=$(awk '/^Value requested for/ { getline want; getline have
		if (!(want ~ /is not set/ && have ~ /Actual value: *$/)) { sub(/^Requested value: */, "", want); print want } }' \
		"$out/.merged")
	[ -z "$said" ] || { say "the configuration does not take: $(xargs <<< "$said")"; rm -f "$out/.config"; return 1; }
}

# stock_source: make the source tree of the stock kernel, build/stock/linux
stock_source() {
	(
		lock stock
		[ -e "$build/linux/.git" ] || "$top/scripts/tree" linux >&2
		base_tree "$build/linux" "$build/stock/linux"
	)
}

# source_for FOLDER STOCK PLACE: make the source if it is missing, FOLDER, the stock kernel's or ours; set $src
# to its directory, and $out to the directory for what is built from it
source_for() {
	if [ -n "$1" ]; then
		src=$(realpath "$1")
		out=$src/.out/$3
	elif [ -n "$2" ]; then
		stock_source
		src=$build/stock/linux
		out=$build/stock/$3
	else
		"$top/scripts/tree" linux >&2
		src=$build/linux
		out=$build/$3
	fi
}
