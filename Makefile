# The two commands of this project are `make run` and `make test`; the rest serves them.

CARGO ?= cargo
TARGET_DIR := $(if $(CARGO_TARGET_DIR),$(CARGO_TARGET_DIR),target)
PLIMSOLL := $(TARGET_DIR)/release/plimsoll

# What `make run` measures: a file that it makes and removes again. Name one on the disk in question.
SCRATCH ?= $(TARGET_DIR)/plimsoll-scratch.dat

# More for `cargo xtask bench`, for example BENCH="--rounds 9 --peer-dir /opt/fio".
BENCH ?=

# More for `cargo xtask agree`, for example AGREE="--dir /ssd".
AGREE ?=

# For which processors, for example DIST=x86_64; both when nothing is named.
DIST ?=

# More for `cargo xtask lab`, for example LAB=--short or LAB="freeze --patience 3".
LAB ?=

.PHONY: help run test check soak proof reproduce bench agree lab dist build page
.DEFAULT_GOAL := help

help:
	@echo 'make run     build, measure a scratch file with a short bm-flash (about a minute),'
	@echo '             show the table and the answer, write plimsoll-report.html, .txt and .json'
	@echo '             SCRATCH=/disk/file chooses what is measured; it is removed afterwards'
	@echo 'make test    install the programs the tests use where it may, then check and test everything,'
	@echo '             and say how long each stage took, which tests are flaky, and what was not checked'
	@echo '             for want of programs or rights'
	@echo 'make check   the quick part of it, a few minutes once everything is built: lints, and the tests'
	@echo '             inside the crates; no program, page or lab'
	@echo 'make soak    the long forms, an hour or more: random kills, all proofs, the whole lab, aarch64,'
	@echo '             instructions per I/O'
	@echo 'make proof   the whole count of the simulations that the statistics must pass, and'
	@echo '             docs/proof.md made from it; a few minutes (make test runs a short form)'
	@echo 'make reproduce  what five studies of 2008 to 2011 published, predicted by the model of arrays:'
	@echo '             the table of docs/reproduce.md, and whether that is current; a minute'
	@echo '             PLIMSOLL_WRITE_REPRODUCE=1 writes it'
	@echo 'make bench   measure Plimsoll beside a bare loop and the peers that are installed'
	@echo '             BENCH="--rounds 9 --peer-dir DIR" passes options to `cargo xtask bench`'
	@echo 'make agree   compare what Plimsoll and others say of the same patterns on the same file;'
	@echo '             a quarter of an hour; AGREE="--dir DIR" chooses where the file is made'
	@echo 'make dist    one static file for each kind of processor, and Debian packages, into dist/;'
	@echo '             a quarter of an hour. DIST=x86_64 only for that'
	@echo 'make lab     real arrays with planted truths in User-Mode Linux, a quarter of an hour;'
	@echo '             LAB=--short a few minutes, LAB="freeze errors" these scenarios'

# The program embeds the page: without Node.js it is built all the same, and writes tables only.
build: page
	$(CARGO) build --release --package plimsoll

page:
	@.ci/page build

run: build
	@trap 'rm -f "$(SCRATCH)"' EXIT; trap 'exit 130' INT TERM; \
	"$(PLIMSOLL)" run bm-flash --quick --target "$(SCRATCH)" && \
	"$(PLIMSOLL)" explain last && \
	"$(PLIMSOLL)" table last > plimsoll-report.txt && \
	"$(PLIMSOLL)" export last --format json --force -o plimsoll-report.json && \
	"$(PLIMSOLL)" report last --force -o plimsoll-report.html && \
	echo 'report: plimsoll-report.html (figures and verdicts), plimsoll-report.txt (the tables),' && \
	echo '        plimsoll-report.json (everything measured)'

# Also from which moment the time of all is counted.
test check soak:
	@PLIMSOLL_TEST_BEGAN=$$(date +%s) $(CARGO) xtask test $@

proof:
	$(CARGO) run --release --package plimsoll-proof -- --full --write docs/proof.md

reproduce:
	$(CARGO) test --quiet --package plimsoll-array --test reproduce -- --nocapture --exact the_committed_document_is_the_current_one

bench: build
	$(CARGO) build --release --package bench-bare
	$(CARGO) xtask bench $(BENCH)

agree: build
	$(CARGO) build --release --package bench-bare
	$(CARGO) xtask agree $(AGREE)

dist:
	@.ci/packages dist
	@.ci/dist build $(DIST)

lab: build
	$(CARGO) xtask lab $(LAB)
