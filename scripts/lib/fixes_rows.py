# SPDX-License-Identifier: GPL-2.0
"""The machines, selftests and configurations with which the fixes for Linux' own code are tested."""
import typing


class Machine(typing.NamedTuple):
    """An emulated machine, the configuration of its kernel, and the programs that run there."""

    arch: str
    flavour: typing.Optional[str]
    options: list
    programs: list


EBB = ["ebb_hwcap", "ebb_attr", "ebb_life", "ebb_excl", "ebb_switch", "ebb_fork", "ebb_exec", "ebb_ptrace",
       "ebb_pending", "ebb_handover", "ebb_compat"]
MACHINES = {
    "POWER9": Machine("powerpc", None, ["--smp", "2"], EBB),
    "POWER10": Machine("powerpc", None, ["--smp", "2", "--cpu", "power10"], ["ebb_life", "ebb_excl", "ebb_fork"]),
    "ISA 3.1, unknown": Machine("powerpc", None, ["--smp", "2", "--cpu", "power10,x-pvr=0x00ee0100"],
                                ["ebb_hwcap", "ebb_life"]),
    "Zen3": Machine("x86", None, ["--smp", "2"], ["brs_sysfs", "brs_refuse", "brs_stack", "brs_task", "brs_short"]),
    "Bulldozer": Machine("x86", "no-brs", ["--cpu", "EPYC-Rome,pmu=on,family=21,model=2,stepping=0"], ["brs_absent"]),
}
# For each fix, its machine, the selftests that the fix makes pass, and their programs
ROWS = {
    "fixes-amd-no-brs/0001": ("Bulldozer", ["absent.b1_*"], ["brs_absent"]),
    "fixes-ebb/0001": ("POWER9", ["e22_*", "*e4_*", "meanwhile.opens_another_event.*"], ["ebb_excl", "ebb_pending"]),
    "fixes-ebb/0002": ("POWER9", ["e25_*"], ["ebb_excl"]),
    # a program that keeps its EBB event over execve() also keeps the counters and the branch history
    "fixes-ebb/0003": ("POWER9", ["e21_counter_*", "e13_counter_*", "e27_counters*",
                                  "handover.after_[acm]*.e27_counters", "handover.in_*.e27_counters",
                                  "handover.after_exec_that_closed*.e27_counters",
                                  "handover.after_[am]*.e27_no_uninvited_ebb", "handover.in_*.e27_no_uninvited_ebb"],
                       ["ebb_switch", "ebb_handover"]),
    "fixes-ebb/0004": ("POWER9", ["handover.after_[acm]*.e27_branch_history", "handover.in_*.e27_branch_history",
                                  "handover.after_exec_that_closed*.e27_branch_history"], ["ebb_handover"]),
    "fixes-ebb/0005": ("POWER9", ["e13_reopened_*"], ["ebb_life"]),
    "fixes-ebb-fork/0001": ("POWER10", ["e10_*"], ["ebb_fork"]),
    "fixes-ebb-exec/0001": ("POWER9", ["e11_armed_*", "e11_*zero", "e11_facility_*"], ["ebb_exec"]),
    "fixes-ebb-exclude/0001": ("POWER9", ["e32_*"], ["ebb_compat"]),
    "fixes-ebb-ptrace/0001": ("POWER9", ["ptrace.e14_writing_*", "ptrace.e14_get_and_set_*", "ptrace.e21_*"],
                              ["ebb_ptrace"]),
    "fixes-ebb-ptrace/0002": ("POWER9", ["ptrace.e23_*"], ["ebb_ptrace"]),
    "fixes-ebb-ptrace/0003": ("POWER9", ["ptrace.e14_write_of_*"], ["ebb_ptrace"]),
    "fixes-ebb-generic/0001": ("ISA 3.1, unknown", ["e17_promise_*"], ["ebb_hwcap", "ebb_life"]),
    "fixes-perf-core/0001": ("POWER9", ["refused.e15_*"], ["ebb_attr"]),
    "fixes-amd-brs/0001": ("Zen3", ["b3_period_change_*"], ["brs_refuse"]),
    "fixes-amd-brs-stacks/0001": ("Zen3", ["period.of_17.b9_stacks_*", "period.of_50.b9_stacks_*", "b10_*",
                                           "period.of_100.b9_user_*", "period.of_250.b9_user_*"], ["brs_short"]),
    "fixes-amd-brs-stacks/0002": ("Zen3", ["period.*.b9_stacks_*", "beside.*.b11_kernel_*"], ["brs_short"]),
}
# Selftests that can pass by chance: the base's core dumps contain the registers of the last task switch; and with
# fixes-ebb/0004, a task switch after execve() clears the branch history
CHANCE = ["core.e14_dump_in_the_handler_has_the_*_registers",
          "handover.after_exec_that_kept_the_event.e27_branch_history"]
# For each patch that adds programs to the kernel's selftests: the machine, the directory and the programs
SELFTESTS = {
    "fixes-ebb/0006": ("POWER9", "powerpc/pmu/ebb",
                       ["waiting_event_test", "close_leader_first_test", "unused_pmcs_test", "reopen_test"]),
    "fixes-ebb-ptrace/0004": ("POWER9", "powerpc/pmu/ebb", ["ptrace_regs_test"]),
    "fixes-perf-core/0002": ("POWER9", "powerpc/pmu/ebb", ["event_attributes_test"]),
    "fixes-amd-brs/0002": ("Zen3", "perf_events", ["amd_brs_period"]),
}
# Fixes whose test needs a suspend to RAM in the middle of a BRS recording
SLEEPS = ["fixes-amd-sleep/0001"]
# Fixes whose effect no emulator can show, and that are only compiled: the architecture, the configuration, the objects
COMPILED = {"fixes-kvm/0001": ("powerpc", "kvm", ["arch/powerpc/kvm/book3s_hv.o"])}
# Make a copy of /sys with a PMU ibs_op that has the type of the PMU msr, so that the kernel rejects its events
SYSFS = """
set -e
new=/tmp/sys/bus/event_source/devices
mkdir -p $new/ibs_op
for entry in /sys/*; do [ $entry = /sys/bus ] || ln -s $entry /tmp/sys/; done
for entry in /sys/bus/event_source/devices/*; do ln -s $entry $new/; done
cp $new/msr/type $new/ibs_op/
export SYSFS_PATH=/tmp/sys
set +e
"""
# For each fix of perf, the names of its checks, and a script that prints 'ok NAME' for those that pass
PERF = {
    "fixes-perf-tools/0001": (["ibs_privilege_is_explained"], SYSFS + """
/add/perf record -o /tmp/data -a -e ibs_op//u true 2>&1 | tee /tmp/said
grep -q "AMD IBS doesn't support privilege filtering" /tmp/said && echo ok ibs_privilege_is_explained
"""),
    "fixes-perf-sort/0001": (["an_unknown_key_is_named"], """
/add/perf record -o /tmp/data -e cpu-clock true
/add/perf report -i /tmp/data --sort nosuch > /tmp/said 2>&1
cat /tmp/said
grep -q "Unknown --sort key: .nosuch" /tmp/said && echo ok an_unknown_key_is_named
"""),
    "fixes-perf-sort/0002": (["addresses_have_whole_names"], """
/add/perf record -o /tmp/data -b -e branch-brs:u -c 1009 -- /add/perf test -w brstack
/add/perf report -i /tmp/data --stdio --sort addr_from,addr_to > /tmp/said 2>&1
head -n 20 /tmp/said
grep -q "brstack_foo+0x.* brstack_bar" /tmp/said && echo ok addresses_have_whole_names
"""),
}
# Fixes that are for no other version than Linux 7.3: another version cannot compile them, or lacks a fix that
# belongs to them
NEW_CODE = ["fixes-amd-brs/0002", "fixes-amd-brs-stacks/0001", "fixes-amd-brs-stacks/0002", "fixes-amd-sleep/0001"]
