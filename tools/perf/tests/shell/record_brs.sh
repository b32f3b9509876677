#!/bin/bash
# perf record and report with AMD Branch Sampling
# SPDX-License-Identifier: GPL-2.0
#
# Check recordings with the event branch-brs, the messages for options that BRS
# rejects, and the reports of the recorded branches. Each check prints a line of
# its own, "name: ok" or "name: FAILED".

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

# refused NAME PATTERN OPTIONS...: check that perf record fails with a message like PATTERN
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

# left_out NAME PATTERN OPTIONS...: check that perf record works without the rejected event,
# and that its message explains the rejection
left_out() {
	local name=$1 pattern=$2 bad=0
	shift 2
	perf record -o "$dir/data" "$@" -- true > "$dir/out" 2>&1 || bad=1
	grep -q "which will be removed" "$dir/out" || bad=1
	grep -q -E "$pattern" "$dir/out" || bad=1
	say $bad "$name"
}

# records NAME OPTIONS...: check that perf record works and saves samples with branches
records() {
	local name=$1 bad=0
	shift
	perf record -o "$dir/data" "$@" -- perf test -w brstack > "$dir/out" 2>&1 || bad=1
	perf script -i "$dir/data" -F brstack 2> /dev/null | grep -q 0x || bad=1
	say $bad "$name"
}

# silent NAME PATTERN: check that the output of the last command does not match PATTERN
silent() {
	say "$(grep -c -m1 -E -e "$2" "$dir/out")" "$1"
}

# warns NAME PATTERN OPTIONS... -- PROGRAM...: check that perf record works and warns
# with a message like PATTERN
warns() {
	local name=$1 pattern=$2 bad=0
	shift 2
	perf record -o "$dir/data" "$@" > "$dir/out" 2>&1 || bad=1
	grep -q -E "WARNING: $pattern" "$dir/out" || bad=1
	say $bad "$name"
}

# has NAME PATTERN COMMAND...: check that the output of COMMAND matches PATTERN
has() {
	local name=$1 pattern=$2 bad=0
	shift 2
	"$@" > "$dir/out" 2> /dev/null || bad=1
	grep -q -E "$pattern" "$dir/out" || bad=1
	say $bad "$name"
}

if [ ! -f /sys/bus/event_source/devices/cpu/events/branch-brs ]
then
	# without BRS, only check that perf tells the user that BRS is missing
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

# T2: the message for each option that BRS rejects
refused t2_frequency "needs a fixed period" -b -e branch-brs -F 1000
refused t2_default_frequency "needs a fixed period" -b -e branch-brs
refused t2_frequency_of_cycles "needs a fixed period" -b -e cycles -F 1000
refused t2_short_period "period 16 is too short" -b -e branch-brs -c 16
refused t2_precise "Drop the 'p' modifier" -b -e branch-brs:p -c 20011
refused t2_call_stack "cannot record call stacks" --call-graph lbr -e branch-brs -c 20011
refused t2_transaction "knows no transactions" -j any,in_tx -e branch-brs -c 20011
refused t2_other_pmu "Only events of the CPU's core PMU" -b -e cpu-clock -c 20011
left_out t2_group "has one counter" -b -e '{branch-brs,branch-brs}' -c 20011
refused t2_precise_cycles "Drop the 'p' modifier, and give a fixed period with -c" \
	-b -e cycles:pp
silent t2_precise_cycles_no_frequency "-F|frequency\."
refused t2_frequency_names_the_event "Use '-e branch-brs -c [0-9]+'" -b -e cycles
refused t2_filter_hv "not of a hypervisor" -j any,hv -e branch-brs -c 20011
refused t2_filter_hv_alone "not of a hypervisor" -j hv -e branch-brs -c 20011
refused t2_modifier_h "Use the modifier u or k" -b -e branch-brs:h -c 20011

# a group with more events than counters is rejected: the message must not blame
# the last event, although that event is the only one with a branch stack
six=cycles,instructions,cycles,instructions,cycles,instructions
left_out t2_full_group "not enough counters for this group" \
	-e "{$six,cpu/cycles,branch_type=any,period=20011/}"
silent t2_full_group_blames_no_event "one event only"

# groups with members that only count
records t2_counting_member -b -c 20011 -e '{branch-brs,cycles}:S'
has t2_counting_member_has_no_stack "cycles: .* sample_type: [^,]*READ" \
	perf evlist -v -i "$dir/data"
say "$(grep "^cycles:" "$dir/out" | grep -c BRANCH_STACK)" t2_counting_member_has_no_stack_2
has t2_counting_member_counts "cycles" perf report -i "$dir/data" --stdio
records t2_stack_of_the_leader -e '{cpu/branch-brs,branch_type=any,period=20011/,cycles}:S'

# T3: perf record -b without an event
records t3_plain_b -b
has t3_plain_b_event "branch-brs" perf evlist -i "$dir/data"
has t3_plain_b_period "250007" perf evlist -v -i "$dir/data"
records t3_filter -j any,u
records t3_filter_by_privilege_alone -j u
has t3_filter_by_privilege_alone_is_kept "branch_sample_type: (ANY\|USER|USER\|ANY)" \
	perf evlist -v -i "$dir/data"
if [ "$(id -u)" -eq 0 ]
then
	# perf top ends by itself, because its standard input is empty
	has t3_top "\[250007 branch-brs\]" timeout 60 perf top --stdio -b -d 1 < /dev/null
fi
perf record -b -o "$dir/data" -- true > "$dir/out" 2>&1 || true
say "$(grep -c "recording branch-brs every 250007" "$dir/out" | tr 01 10)" t3_says_so
records t3_keeps_the_period -b -c 30011
has t3_keeps_the_period_in_the_event "30011" perf evlist -v -i "$dir/data"
refused t3_leaves_a_frequency_alone "needs a fixed period" -b -F 1000
perf record -o "$dir/data" -e cpu-clock -- true > "$dir/out" 2>&1 || true
say "$(grep -c "recording branch-brs" "$dir/out")" t3_without_b_nothing_changes

# T4: precise events, which the PMU for instruction-based sampling (IBS) records
if [ -d /sys/bus/event_source/devices/ibs_op ]
then
	refused t4_privilege "cannot tell privilege levels apart" -e ibs_op//u
	refused t4_period "too short for AMD IBS" -e ibs_op// -c 16
	refused t4_group "one event at a time" -e '{ibs_op//,ibs_op//}'
else
	refused t4_no_ibs "which this machine does not have" -e cycles:pp -c 20011
fi

# T5: the sort keys addr_from and addr_to
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

# a report by address has at least as many rows as a report by symbol
bysym=$(report --sort symbol_from,symbol_to 2> /dev/null | grep -c '%' || true)
byaddr=$(report --sort addr_from,addr_to 2> /dev/null | grep -c '%' || true)
say "$((byaddr <= bysym))" t5_more_rows_than_symbols

# T7: warnings about lost samples, and no warning when no sample is lost
warns t7_period_too_long \
	"branch-brs:u: no samples, [0-9]+ events are less than the period 1000000007" \
	-b -e branch-brs:u -c 1000000007 -- perf test -w brstack
warns t7_shared "cycles:u: counted for [0-9]+% of its time only" \
	-b -e branch-brs:u -e cycles:u -c 200003 -- perf test -w brstack
warns t7_throttled \
	"branch-brs:u: throttled [0-9]+ times, for [0-9]+% of its time, at least [0-9]+ samples" \
	-b -e branch-brs:u -c 101 -- perf test -w brstack
say "$(grep -c "perf_event_max_sample_rate" "$dir/out" | tr 01 10)" t7_throttled_what_to_change
perf record -b -e branch-brs:u -c 2000003 -o "$dir/data" -- perf test -w brstack > "$dir/out" 2>&1
silent t7_nothing_lost "WARNING"
if [ "$(id -u)" -eq 0 ]
then
	# a recording of all CPUs takes the only counter, until it is stopped
	mkfifo "$dir/control" "$dir/ack"
	perf record -a -b -e branch-brs -c 100000007 -o "$dir/other" -D -1 \
		--control "fifo:$dir/control,$dir/ack" -- sleep 1000 > /dev/null 2>&1 &
	other=$!
	exec 3<> "$dir/control" 4<> "$dir/ack"
	echo enable >&3
	read -t 60 -r _ <&4 || true
	warns t7_starved "branch-brs:u: never counted" \
		-b -e branch-brs:u -c 20011 -- perf test -w brstack
	say "$(grep -c "events of CPUs" "$dir/out" | tr 01 10)" t7_starved_says_by_whom
	echo stop >&3
	wait $other || true
	exec 3>&- 4>&-
fi

# T8: reports leave out columns for which BRS has no data
perf record -b -c 2003 -e branch-brs:u -o "$dir/data" -- perf test -w brstack > "$dir/out" 2>&1
has t8_report_default "Source Symbol +Target Symbol" report
silent t8_report_no_cycles "Cycles"
has t8_report_cycles_if_asked_for "Basic Block Cycles" report --sort symbol_from,cycles
if command -v addr2line > /dev/null
then
	has t8_branch_history "brstack_foo" report --branch-history --no-children
	silent t8_branch_history_no_prediction "[Pp]redicted|cycles:|Cycles"
else
	echo "t8_branch_history: skipped, there is no addr2line"
fi
if command -v objdump > /dev/null
then
	has t8_annotate "ret.*# -100.00%" perf annotate -i "$dir/data" --stdio -s brstack_foo
	silent t8_annotate_no_prediction "p:[0-9]"
else
	echo "t8_annotate: skipped, there is no objdump"
fi

cleanup
exit $err
