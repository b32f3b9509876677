# SPDX-License-Identifier: GPL-2.0
# Every command that a person runs.  `make help` lists them.

.DEFAULT_GOAL := demo
MAKEFLAGS += --no-print-directory
S := ./scripts

# T=pattern: some tests only; G=gate: some gates only; LONG=1: the long form of tests that have one
export T G LONG
# BASE=7.3: another kernel source, with outputs of its own in build/7.3
export BASE
# ARCH=powerpc or x86, for shell, deb and kit
ARCH ?=
# for deb: a kernel configuration, or small
CONFIG ?=

## all: fetch, build, boot both guests and show both features at work
.PHONY: all demo
all: demo
demo: kernels emulators
	@$S/demo

## test: every test, and what they need; T=pattern for some, LONG=1 for the long form
.PHONY: test
test:
	@$S/test

## check: static gates; G=gate for some, scripts/check --help lists them
.PHONY: check
check:
	@$S/check

## bench: ours beside stock, in one run, as ratios
.PHONY: bench
bench:
	@$S/bench

## fdo: optimize a program with branch samples and count what it gains
.PHONY: fdo
fdo:
	@$S/fdo

## report: a page of the last tests' results, build/report/index.html
.PHONY: report
report:
	@$S/report

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

## tree: put the trees together in build/linux and build/qemu, one commit a patch
.PHONY: tree
tree:
	@$S/tree

## refresh: write the trees' commits back to the files and patches here
.PHONY: refresh
refresh:
	@$S/refresh

## series: mail-ready patches in build/series/TOPIC/
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

## kit: what to take to a machine with BRS or EBB (not tried as a whole yet): make kit ARCH=powerpc or x86
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

## clean: remove build/; the downloads in the cache folder stay
.PHONY: clean
clean:
	rm -rf build

## help: this list
.PHONY: help
help:
	@echo "usage: make [COMMAND]; without one, 'all'"
	@sed -n 's/^## \([a-z]*\): /\1\t/p' Makefile | while IFS="$$(printf '\t')" read -r name text; do \
		printf '  %-10s %s\n' "$$name" "$$text"; done
	@echo "BASE=7.3 with a command: the same for Linux 7.3, below build/7.3; without perf-tools"
