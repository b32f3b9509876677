#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# usage: fdo.sh [-o DIR] [-c PERIOD] SOURCE... [-- ARG...]
#        fdo.sh [-o DIR] -p PERF.DATA -b BINARY SOURCE... [-- ARG...]
#
# Build a C program with clang, record its taken branches, rebuild it with this
# profile by AutoFDO, by BOLT and by both, and count the instructions and taken
# branches of each build.  With -p and -b, rebuild the program by AutoFDO from an
# existing recording: -p names the recording, -b the recorded binary.
#
# -o  the directory for all output (default: fdo.out)
# -c  the period, in taken branches (default: a period for 5000 samples)
#
# CFLAGS (default: -O2) are the options of the compiler, LLVM (default: 19) is the
# version of clang and BOLT, PERF is the perf to use.  FDO_RUN is a command that
# runs its arguments on a processor with BRS, in a copy of the current
# directory; without FDO_RUN, they run here.
#
# Exit status: 0, or 1 with the reason if something is missing, the recording does
# not fit the program, or a rebuilt program prints something else than before.

set -eu

MIN_SAMPLES=500		# with fewer samples, the rebuilt program may be slower
CFLAGS=${CFLAGS:--O2}
LLVM=${LLVM:-19}
FDO_RUN=${FDO_RUN:-}
bin=/usr/lib/llvm-$LLVM/bin

die() { echo "fdo.sh: $*" >&2; exit 1; }
usage() { sed -n '4,/^$/s/^# \{0,1\}//p' "$0"; }
full() { case $1 in /*) echo "$1" ;; *) echo "$PWD/$1" ;; esac; }
step() { echo "$*"; "$@" > log 2>&1 || { cat log >&2; die "$1 failed"; }; }

dir=fdo.out period='' data='' binary=''
while getopts o:c:p:b:h option
do
	case $option in
	o) dir=$OPTARG ;;
	c) period=$OPTARG ;;
	p) data=$(full "$OPTARG") ;;
	b) binary=$(full "$OPTARG") ;;
	h) usage; exit 0 ;;
	*) usage >&2; exit 1 ;;
	esac
done
shift $((OPTIND - 1))

sources=
while [ $# -gt 0 ] && [ "$1" != -- ]
do
	[ -r "$1" ] || die "there is no source file $1"
	sources="$sources $(full "$1")"
	shift
done
[ $# -eq 0 ] || shift
[ -n "$sources" ] || { usage >&2; exit 1; }
[ "${data:+p}" = "${binary:+p}" ] || die "-p and -b go together"

perf=$(command -v "${PERF:-perf}") || die "there is no perf"
for tool in clang llvm-profgen llvm-bolt perf2bolt
do
	[ -x "$bin/$tool" ] ||
		die "there is no $bin/$tool: install clang-$LLVM llvm-$LLVM bolt-$LLVM"
done

mkdir -p "$dir/bin"
cd "$dir"
# remove the results of an earlier run, in case this run fails
rm -f program.autofdo program.bolt program.autofdo.bolt program.prof table
# llvm-profgen and perf2bolt run the first perf in PATH
ln -sf "$perf" bin/perf
PATH=$PWD/bin:$PATH

# shellcheck disable=SC2086 # lists of words
compile() { out=$1; shift; step "$bin/clang" $CFLAGS "$@" $sources -o "$out"; }
on_brs() { $FDO_RUN "$@"; }

# check RECORDING BINARY: end with a message if the recording does not fit the binary
check() {
	name=$(basename "$2")
	id=$(readelf -n "$2" 2> /dev/null | sed -n 's/.*Build ID: //p')
	[ -n "$id" ] || die "$2 is not a program with a build ID"
	readelf -S "$2" | grep -q '\.debug_line' ||
		die "$name has no debug information: build it with -g -fdebug-info-for-profiling"
	perf script -i "$1" -F brstack > samples 2> log ||
		die "$1 is not a complete recording of perf: $(grep -v '^$' log | head -n 1)"
	perf buildid-list -i "$1" > ids 2> log || die "$1 has no build IDs: $(head -n 1 log)"
	if ! grep -q "^$id" ids
	then
		! grep -q "/$name\$" ids || die "$1 is of another build of $name"
		die "$1 has no sample of $name"
	fi
	nr=$(grep -c 0x samples) || die "$1 has no branches: record with perf record -b"
	[ "$nr" -ge $MIN_SAMPLES ] ||
		die "$1 has $nr samples with branches; at least $MIN_SAMPLES are needed, and" \
		    "some thousands are better: use a shorter period or a longer run"
	echo "$1: $nr samples"
}

record() {
	echo "perf record -b -e branch-brs:u -c $period -o $1 -- ./$2"
	# shellcheck disable=SC2086
	on_brs perf record -b -e branch-brs:u -c "$period" -o "$1" -- \
		"./$2" $arguments > log 2>&1 || { cat log >&2; die "perf record failed"; }
	check "$1" "$2"
}

autofdo() {
	step "$bin/llvm-profgen" --binary="$3" --perfdata="$1" --output="$2"
	[ -s "$2" ] || die "no profile could be made of $1"
}

bolt() {
	step "$bin/perf2bolt" -p "$1" -o "$2.fdata" "$2"
	step "$bin/llvm-bolt" "$2" -o "$3" -data="$2.fdata" \
		-reorder-blocks=ext-tsp -reorder-functions=cdsort -split-functions
}

# shellcheck disable=SC2086
arguments=$*
debug="-g -fdebug-info-for-profiling"
# BOLT does not move functions with jump tables that it does not understand
relocs="-fno-jump-tables -Wl,--emit-relocs"
first=program
builds=

if [ -n "$data" ]
then
	check "$data" "$binary"
	cmp -s "$binary" program || cp "$binary" program
	autofdo "$data" program.prof program
else
	# shellcheck disable=SC2086
	{ compile program $debug; compile program.relocs $debug $relocs; }
	if [ -z "$period" ]
	then
		# shellcheck disable=SC2086
		on_brs perf stat -x, -o count -e branch-brs:u -- ./program $arguments > log 2>&1 ||
			{ cat log >&2; die "the program fails, or branch-brs cannot be counted"; }
		taken=$(sed -n 's/^\([0-9]*\),.*/\1/p' count)
		[ -n "$taken" ] || { cat count >&2; die "branch-brs was not counted"; }
		# an odd period, so that samples seldom hit the same branch of a loop each time
		period=$((taken / 5000 / 2 * 2 + 1))
		[ $period -ge 101 ] || period=101
	fi
	record perf.data program
	record relocs.data program.relocs
	autofdo perf.data program.prof program
	bolt relocs.data program.relocs program.bolt
	# shellcheck disable=SC2086
	compile program.autofdo.relocs $debug $relocs -fprofile-sample-use=program.prof
	record autofdo.data program.autofdo.relocs
	bolt autofdo.data program.autofdo.relocs program.autofdo.bolt
	builds="program.bolt program.autofdo.bolt"
fi
# shellcheck disable=SC2086
compile program.autofdo $debug -fprofile-sample-use=program.prof

# Count the instructions and taken branches of all builds, and compare what the builds print
cat > measure << END
for build in $first program.autofdo $builds
do
	perf stat -x, -o \$build.count -e instructions:u,branch-brs:u -- \\
		./\$build "\$@" > \$build.out || exit
done
END
# shellcheck disable=SC2086
on_brs sh measure $arguments || die "a program failed while it was measured"
for build in $first program.autofdo $builds
do
	cmp -s program.out "$build.out" || die "$build prints something else than program"
done

for build in $first program.autofdo $builds
do
	case $build in
	program) title="$CFLAGS" ;;
	program.autofdo) title="AutoFDO" ;;
	program.bolt) title="BOLT" ;;
	*) title="AutoFDO and BOLT" ;;
	esac
	sed -n 's/^\([0-9]*\),.*/\1/p' "$build.count" | tr '\n' ' '
	echo "$title"
done | awk '
	BEGIN {
		printf "\n| %-16s | %12s | %14s |\n", "Build", "instructions", "taken branches"
		print "|------------------|--------------|----------------|"
	}
	{
		instructions = $1; taken = $2; $1 = $2 = ""; sub(/^ */, "")
		if (NR == 1) { all = taken; change = "" }
		else change = sprintf(" %+.1f%%", 100 * (taken / all - 1))
		printf "| %-16s | %12d | %14d |\n", $0, instructions, taken
		bar = ""
		for (i = 0; i < 50 * taken / all; i++) bar = bar "#"
		bars = bars sprintf("%-16s %s%s\n", $0, bar, change)
	}
	END { printf "\nTaken branches:\n%s", bars }' | tee table
