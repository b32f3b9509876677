# SPDX-License-Identifier: GPL-2.0
# Functions for tests in shell that print KTAP: sourced, never run.
# shellcheck shell=bash disable=SC2034

set -uo pipefail
export LC_ALL=C
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
work=$(mktemp -d "${TMPDIR:-/tmp}/test.XXXXXX")
trap 'rm -rf "$work"' EXIT
ktap_n=0
ktap_failed=0

# check NAME COMMAND...: run a test, which passes if COMMAND succeeds.  If COMMAND
# fails, print its output.
check() {
	local name=$1
	shift
	ktap_n=$((ktap_n + 1))
	if "$@" > "$work/said" 2>&1; then
		echo "ok $ktap_n - $name"
	else
		sed 's/^/    /' "$work/said"
		echo "not ok $ktap_n - $name"
		ktap_failed=1
	fi
}

skip() {
	ktap_n=$((ktap_n + 1))
	echo "ok $ktap_n - $1 # SKIP $2"
}

# status WANTED COMMAND...: succeed if the command ends with this exit status
status() {
	local wanted=$1 got=0
	shift
	"$@" || got=$?
	[ "$got" = "$wanted" ] || { echo "exit status $got instead of $wanted"; return 1; }
}

# says WORDS COMMAND...: succeed if the command fails with these words on standard error
says() {
	local words=$1 got=0
	shift
	"$@" > /dev/null 2> "$work/err" || got=$?
	cat "$work/err"
	[ "$got" != 0 ] || { echo "it succeeded"; return 1; }
	grep -qF -- "$words" "$work/err" || { echo "nothing was said of '$words'"; return 1; }
}

ktap_end() {
	echo "1..$ktap_n"
	exit "$ktap_failed"
}
