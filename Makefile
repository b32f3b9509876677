# SPDX-License-Identifier: GPL-2.0
# Every command that a person runs.  `make help` lists the commands.

.DEFAULT_GOAL := demo
MAKEFLAGS += --no-print-directory
S := ./scripts

# T=pattern: run some tests only; G=gate: run some gates only; LONG=1: also run long tests and gates
export T G LONG
# BASE=7.3: use another kernel source, with its outputs in build/7.3
export BASE
# QEMU_BASE=11.1: use another QEMU source, with its outputs in build/qemu-11.1
export QEMU_BASE
# ARCH: powerpc or x86, for shell, deb and kit
ARCH ?=
# CONFIG: a kernel configuration, or small, for deb and kit
CONFIG ?=

# Install Python, in which these commands are written, if it is missing
.PHONY: python
python:
	@command -v python3 > /dev/null || $S/install-packages fetch
test check bench fdo report tree refresh series apply send: python

## all: fetch, build, boot both guests and show both features
.PHONY: all demo
all: demo
demo: kernels emulators
	@$S/demo

## test: build what the tests need, and run them; T=pattern for some, LONG=1 for the long form
.PHONY: test
test:
	@$S/test

## check: run the static gates; G=gate for some, scripts/check --help lists the gates
.PHONY: check
check:
	@$S/check

## bench: compare the costs of our kernel with those of the stock kernel
.PHONY: bench
bench:
	@$S/bench

## fdo: optimize a program by branch samples, and count the branches that this saves
.PHONY: fdo
fdo:
	@$S/fdo

## report: make a page of the last tests' results, build/report/index.html
.PHONY: report
report:
	@$S/report

## qemu-reports: a bug report for each mistake of QEMU that we correct, build/reports/
.PHONY: qemu-reports
qemu-reports:
	@QEMU_BASE=$(or $(QEMU_BASE),11.1) $S/report-qemu

## kernels: our kernels, build/powerpc/vmlinux and build/x86/bzImage
.PHONY: kernels
kernels:
	@$S/build-kernel powerpc
	@$S/build-kernel x86

## stock: the unmodified kernels, build/stock/powerpc/vmlinux and build/stock/x86/bzImage
.PHONY: stock
stock:
	@$S/build-kernel powerpc --stock
	@$S/build-kernel x86 --stock

## emulators: QEMU with the two PMUs, build/emulators/qemu-system-{ppc64,x86_64}
.PHONY: emulators
emulators:
	@$S/build-emulators

## tree: make the trees build/linux and build/qemu, with a commit for each patch
.PHONY: tree
tree:
	@$S/tree

## refresh: write the trees' commits back to the files and patches here
.PHONY: refresh
refresh:
	@$S/refresh

## series: write the patches as mails to build/series/TOPIC/
.PHONY: series
series:
	@$S/series

## apply: put our series on your own kernel source: make apply KERNEL=dir
.PHONY: apply
apply:
	@test -n "$(KERNEL)" || { echo "make apply: say where: make apply KERNEL=dir" >&2; exit 2; }
	@$S/apply "$(KERNEL)"

## deb: packages of the kernel and perf: make deb ARCH=powerpc or x86; CONFIG=small for the emulators
.PHONY: deb
deb:
	@$S/build-deb "$(ARCH)" $(if $(CONFIG),"$(CONFIG)")

## kit: tests to take to a machine with BRS or EBB: make kit ARCH=powerpc or x86
.PHONY: kit
kit:
	@$S/build-kit "$(ARCH)" $(if $(CONFIG),"$(CONFIG)")

## send: mail a topic: make send TOPIC=...; a dry run unless SEND=really
.PHONY: send
send:
	@test -n "$(TOPIC)" || { echo "make send: say what: make send TOPIC=NAME; scripts/send --help has the names" >&2; exit 2; }
	@$S/tree linux >&2
	@$S/send $(if $(filter really,$(SEND)),--really) $(TOPIC)

## shell: an interactive guest with perf, the samples and the selftests: make shell ARCH=powerpc or x86
.PHONY: shell
shell:
	@test -n "$(ARCH)" || { echo "make shell: say which: make shell ARCH=powerpc or ARCH=x86" >&2; exit 2; }
	@$S/build-emulators && $S/build-kernel "$(ARCH)" && $S/build-programs "$(ARCH)" && $S/build-perf "$(ARCH)" && \
		$S/shell "$(ARCH)"

## clean: remove build/, also commits there that `make refresh` has not written back; the downloads stay
.PHONY: clean
clean:
	rm -rf build

## help: print this list
.PHONY: help
help:
	@echo "usage: make [COMMAND]; without one, 'all'"
	@sed -n 's/^## \([a-z-]*\): /\1\t/p' Makefile | while IFS="$$(printf '\t')" read -r name text; do \
		printf '  %-13s %s\n' "$$name" "$$text"; done
	@echo "BASE=7.3 with a command: the same for Linux 7.3, below build/7.3"
	@echo "QEMU_BASE=11.1 with a command: with emulators of QEMU 11.1, below build/qemu-11.1"
