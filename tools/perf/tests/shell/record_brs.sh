#!/bin/bash
# perf record and report with AMD Branch Sampling
# SPDX-License-Identifier: GPL-2.0
#
# What the tool makes of branch-brs, of what BRS refuses, and of the branches.
# Each check prints a line of its own, "name: ok" or "name: FAILED".

set -e

err=0
dir=$(mktemp -d /tmp/__perf_test.brs.XXXXXX)

cleanup() {
	rm -rf "$dir"
	trap - EXIT TERM INT
}

trap_cleanup() {
	echo "Unexpected signal in ${FUNCNAME[1]}"
	cleanup
	exit 1
}
trap trap_cleanup EXIT TERM INT

say() {
	if [ "$1" -eq 0 ]
	then
		echo "$2: ok"
	else
		echo "$2: FAILED"
		[ ! -f "$dir/out" ] || sed 's/^/    /' "$dir/out"
		err=1
	fi
}

# refused NAME PATTERN OPTIONS...: the command fails, and says why
refused() {
	local name=$1 pattern=$2 bad=0
	shift 2
	if perf record -o "$dir/data" "$@" -- true > "$dir/out" 2>&1
	then
		bad=1
	fi
	grep -q -E "$pattern" "$dir/out" || bad=1
	say $bad "$name"
}

# records NAME OPTIONS...: the command works, and leaves samples with branches
records() {
	local name=$1 bad=0
	shift
	perf record -o "$dir/data" "$@" -- perf test -w brstack > "$dir/out" 2>&1 || bad=1
	perf script -i "$dir/data" -F brstack 2> /dev/null | grep -q 0x || bad=1
	say $bad "$name"
}

# has NAME PATTERN COMMAND...: what the command prints has the pattern
has() {
	local name=$1 pattern=$2 bad=0
	shift 2
	"$@" > "$dir/out" 2> /dev/null || bad=1
	grep -q -E "$pattern" "$dir/out" || bad=1
	say $bad "$name"
}

if [ ! -f /sys/bus/event_source/devices/cpu/events/branch-brs ]
then
	# the one thing to check without BRS: that the user is told so
	refused t2_no_brs "LBRv2|AMD Zen3|no branches|CONFIG_PERF_EVENTS_AMD_BRS|Unable to find" \
		-b -e branch-brs -c 10007
	cleanup
	[ $err -eq 0 ] || exit 1
	exit 2
fi

# T1: the names of the event
for name in branch-brs branch-brs:u cpu/branch-brs/ cpu/branch-brs/u cpu/branch-brs,period=20011/
do
	records "t1_event_${name//[^a-z0-9]/_}" -b -e "$name" -c 20011
done

# T2: each refusal has its own message
refused t2_frequency "needs a fixed period" -b -e branch-brs -F 1000
refused t2_default_frequency "needs a fixed period" -b -e branch-brs
refused t2_frequency_of_cycles "needs a fixed period" -b -e cycles -F 1000
refused t2_short_period "period 16 is too short" -b -e branch-brs -c 16
refused t2_precise "Drop the 'p' modifier" -b -e branch-brs:p -c 20011
refused t2_call_stack "cannot record call stacks" --call-graph lbr -e branch-brs -c 20011
refused t2_transaction "knows no transactions" -j any,in_tx -e branch-brs -c 20011
refused t2_other_pmu "Only events of the CPU's core PMU" -b -e cpu-clock -c 20011
refused t2_group "has one counter" -b -e '{branch-brs,branch-brs}' -c 20011

# T3: a plain -b
records t3_plain_b -b
has t3_plain_b_event "branch-brs" perf evlist -i "$dir/data"
has t3_plain_b_period "250007" perf evlist -v -i "$dir/data"
records t3_filter -j any,u
perf record -b -o "$dir/data" -- true > "$dir/out" 2>&1 || true
say "$(grep -c "recording branch-brs every 250007" "$dir/out" | tr 01 10)" t3_says_so
records t3_keeps_the_period -b -c 30011
has t3_keeps_the_period_in_the_event "30011" perf evlist -v -i "$dir/data"
refused t3_leaves_a_frequency_alone "needs a fixed period" -b -F 1000
perf record -o "$dir/data" -e cpu-clock -- true > "$dir/out" 2>&1 || true
say "$(grep -c "recording branch-brs" "$dir/out")" t3_without_b_nothing_changes

# T4: precise events are IBS's
if [ -d /sys/bus/event_source/devices/ibs_op ]
then
	refused t4_privilege "cannot tell privilege levels apart" -e ibs_op//u
	refused t4_period "steps of 16" -e ibs_op// -c 100001
	refused t4_group "one event at a time" -e '{ibs_op//,ibs_op//}'
else
	refused t4_no_ibs "which this machine does not have" -e cycles:pp -c 20011
fi

# T5: the sort keys
perf record -b -c 2003 -e branch-brs:u -o "$dir/data" -- perf test -w brstack > "$dir/out" 2>&1
report() {
	perf report -i "$dir/data" --stdio "$@"
}
has t5_columns "Source Address +Target Address" report --sort addr_from,addr_to
has t5_rows "brstack_foo\+0x[0-9a-f]+ +\[\.\] brstack_bar\+0x0" report --sort addr_from,addr_to
has t5_one_key "brstack_foo\+0x[0-9a-f]+" report --sort addr_from
has t5_output_field "brstack_foo\+0x[0-9a-f]+" report --sort symbol_from --fields overhead,addr_from
has t5_hierarchy "^ {6,}[0-9.]+% +\[.\] brstack_bar\+0x0" report --hierarchy --sort dso_to,addr_to
has t5_separator "brstack_foo\+0x[0-9a-f]+ *;\[.\] brstack_bar\+0x0" \
	report --sort addr_from,addr_to -t ';'
has t5_narrow "b?r?s?t?a?c?k?_?\+0x[0-9a-f]+ " report --sort addr_from,addr_to -w 0,12,12
has t5_verbose "0x[0-9a-f]{16} brstack_foo\+0x[0-9a-f]+" report -v --sort addr_from,addr_to
report --sort addr_to --hierarchy --symbol-filter brstack_bar > "$dir/out" 2> /dev/null
say "$(grep -c "brstack_foo" "$dir/out")" t5_filter_hides_the_rest
say "$(grep -c -m1 "brstack_bar" "$dir/out" | tr 01 10)" t5_filter_keeps_its_own

# a row for each branch: as many as symbols have, or more
bysym=$(report --sort symbol_from,symbol_to 2> /dev/null | grep -c '%' || true)
byaddr=$(report --sort addr_from,addr_to 2> /dev/null | grep -c '%' || true)
say "$((byaddr <= bysym))" t5_more_rows_than_symbols

cleanup
exit $err
