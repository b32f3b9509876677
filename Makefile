# SPDX-License-Identifier: GPL-2.0
# Every command that a person runs.  `make help` lists them.

.DEFAULT_GOAL := demo
MAKEFLAGS += --no-print-directory
S := ./scripts

# T=pattern: some tests only; LONG=1: the long form of tests that have one
export T LONG
# ARCH=powerpc or x86, for shell and deb
ARCH ?=

## all: fetch, build, boot both guests and show both features at work
.PHONY: all demo
all: demo
demo: kernels emulators
	@$S/demo

## test: every test; T=pattern for some, LONG=1 for the long form
.PHONY: test
test: kernels stock emulators
	@$S/test

## check: static gates: checkpatch, sparse, W=1, clang, kernel-doc, docs, every commit builds
.PHONY: check
check: tree
	@$S/check

## bench: ours beside stock, in one run, as ratios
.PHONY: bench
bench: kernels stock emulators
	@$S/bench

## kernels: our kernels, build/powerpc/vmlinux and build/x86/bzImage
.PHONY: kernels
kernels:
	@$S/kernel powerpc
	@$S/kernel x86

## stock: the unmodified kernels, build/stock/powerpc/vmlinux and build/stock/x86/bzImage
.PHONY: stock
stock:
	@$S/kernel powerpc --stock
	@$S/kernel x86 --stock

## emulators: QEMU with the two PMUs, build/emulators/qemu-system-{ppc64,x86_64}
.PHONY: emulators
emulators:
	@$S/emulators

## tree: put the kernel tree together in build/linux, one commit a patch
.PHONY: tree
tree:
	@$S/tree

## refresh: write the tree's commits back to the files and patches here
.PHONY: refresh
refresh:
	@$S/refresh

## series: mail-ready patches in build/series/TOPIC/
.PHONY: series
series: tree
	@$S/series

## apply: put our series on your own kernel source: make apply KERNEL=dir
.PHONY: apply
apply:
	@test -n "$(KERNEL)" || { echo "make apply: say where: make apply KERNEL=dir" >&2; exit 2; }
	@$S/apply "$(KERNEL)"

## deb: installable kernel packages: make deb ARCH=powerpc or x86
.PHONY: deb
deb:
	@$S/deb "$(ARCH)"

## send: hand the series to git send-email; a dry run unless SEND=really
.PHONY: send
send: series
	@$S/send $(if $(filter really,$(SEND)),--really)

## shell: an interactive guest: make shell ARCH=powerpc or x86
.PHONY: shell
shell:
	@test -n "$(ARCH)" || { echo "make shell: say which: make shell ARCH=powerpc or ARCH=x86" >&2; exit 2; }
	@$S/emulators && $S/kernel "$(ARCH)" && $S/shell "$(ARCH)"

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
