# SPDX-License-Identifier: GPL-2.0
# Functions of scripts/fetch for the source of QEMU: sourced, never run.
# shellcheck shell=bash disable=SC2034,SC2154

# a tested tarball in Debian's pool: its version and its checksum
case $QEMU_BASE in
10.0) qemu_suites=trixie qemu_tested='' ;;
11.1) qemu_suites="sid experimental" \
	qemu_tested="11.1.1+ds 0b1376e75dbe3e2fea4e408f8669f88a723f419f36a5b7d74cc6a4cfe07e4f5e" ;;
*) qemu_suites="sid experimental" qemu_tested='' ;;
esac

# check_qemu DIR: fail with a message if DIR is no source of QEMU $QEMU_BASE
check_qemu() {
	[ -f "$1/VERSION" ] || die "$1 is no QEMU source: VERSION is missing"
	case $(cat "$1/VERSION") in "$QEMU_BASE".*) ;; *) die "$1 is no QEMU $QEMU_BASE but $(cat "$1/VERSION")" ;; esac
}

# download_qemu: the tarball of the tested version, or else of the newest version that can be downloaded
download_qemu() {
	local site version=${qemu_tested% *}
	site=$(archive)
	if [ -n "$qemu_tested" ] && /usr/lib/apt/apt-helper -o APT::Sandbox::User= download-file \
		"${site%/}/pool/main/q/qemu/qemu_$version.orig.tar.xz" "qemu_$version.orig.tar.xz" \
		"SHA256:${qemu_tested#* }" >&2; then
		return
	fi
	for version in $(private_apt amd64 "$qemu_suites" apt-cache madison qemu |
		awk '$NF == "Sources" { print $3 }' | grep -E "^([0-9]+:)?$QEMU_BASE\." | sort -uVr); do
		private_apt amd64 "$qemu_suites" apt-get source --download-only --only-source "qemu=$version" >&2 && return
	done
	return 1
}

fetch_qemu() {
	local into=$cache/qemu-$QEMU_BASE src=$cache/qemu-source
	if [ -n "${QEMU_SRC:-}" ]; then
		source_of "$QEMU_SRC" qemu
		check_qemu "$into"
		finish "$(realpath "$into")"
	fi
	[ ! -d "$into" ] || finish "$into"
	need_space 2 "$cache"
	say "fetching the source of QEMU $QEMU_BASE"
	rm -rf "$src"
	mkdir -p "$src"
	( cd "$src" && download_qemu ) ||
		die "no QEMU $QEMU_BASE is in $cache, and none could be downloaded from Debian's archive ($qemu_suites):" \
			"is there a network?  QEMU_SRC=FOLDER or TARBALL names a source"
	say "unpacking it"
	unpack "$into" unpack_tarball "$(ls "$src"/qemu_*.orig.tar.xz)" || die "QEMU's source cannot be unpacked"
	rm -rf "$src"
	finish "$into"
}
