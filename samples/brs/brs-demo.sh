#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Record the branches of brs-demo with perf, and show them by function, by address
# and by sample.  Uses the perf in this script's directory if it exists.

here=$(cd "$(dirname "$0")" && pwd)
perf=$here/perf
[ -x "$perf" ] || perf=perf
data=$(mktemp)
trap 'rm -f "$data" "$data.err"' EXIT

show() {
	echo
	echo "\$ $*"
	shift
	"$perf" "$@" 2> "$data.err" || cat "$data.err"
}

echo "\$ perf record -b -- brs-demo"
"$perf" record -b -o "$data" -- "$here/brs-demo" 2>&1 || exit

echo
echo "By function, the default: one row for all branches between two functions."
show perf report -i "$data" --stdio --percent-limit 1 --sort overhead,symbol_from,symbol_to |
	grep -v '^#\|^$'

echo
echo "By address: one row for each branch."
show perf report -i "$data" --stdio --percent-limit 1 --sort overhead,addr_from,addr_to |
	grep -v '^#$\|^# \(To\|Total\|Samples\|Event\)\|^$'

echo
echo "One sample: the 16 branches before it, the newest first."
echo "\$ perf script -i $data -F brstacksym"
"$perf" script -i "$data" -F brstacksym 2> "$data.err" |
	sed -n '/step/{p;q}' | tr -s ' ' '\n' | sed '/^$/d'
