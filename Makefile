# Tern MPI. `make build` puts a usable tree into build/ (bin, lib, include); `make run`
# shows it at work; `make test` runs everything; `make install PREFIX=dir` installs it.

PREFIX ?= /usr/local
DESTDIR ?=
CARGO ?= cargo
PYTHON ?= python3
NP ?= 4

TARGET := $(if $(CARGO_TARGET_DIR),$(CARGO_TARGET_DIR),target)
ROOT := $(CURDIR)
BUILD := $(ROOT)/build
BINARIES := mpiexec tern
# Ranks may be more than cores, and continuous integration often runs as root: both are fine.
MPIEXEC := $(BUILD)/bin/mpiexec

# Commands that are used, with Debian's packages that have them: those before `--` are needed.
PACKAGES_BUILD := cc:gcc ld:binutils
PACKAGES_RUN := $(PACKAGES_BUILD) -- python3:python3 gfortran:gfortran ip:iproute2
PACKAGES_TEST := $(PACKAGES_BUILD) python3:python3 -- autoconf:autoconf c++:g++ cmake:cmake gfortran:gfortran ib_send_lat:perftest ibv_rc_pingpong:ibverbs-utils rping:rdmacm-utils fi_pingpong:libfabric-bin infiniband/verbs.h:libibverbs-dev rdma/rdma_cma.h:librdmacm-dev ip:iproute2 libpmix.so:libpmix-dev munged:munge pkg-config:pkg-config slurmctld:slurmctld slurmd:slurmd srun:slurm-client ucx_perftest:ucx-utils valgrind:valgrind
PACKAGES_NIGHTLY := $(PACKAGES_TEST) flang-new-19:flang-19 mmdebstrap:mmdebstrap buildah:buildah crun:crun

.PHONY: all packages-run packages-test packages-nightly build run run-heat run-heat-fortran run-hosts run-mpi4py test test-programs nightly test-quick test-rdma install wheel deb programs bench fuzz miri swarm snapshots clean help

all: build

help:
	@echo "make build                the library, mpicc, mpiexec and tern in build/"
	@echo "make run                  the heat example on $(NP) ranks (NP=n), in Fortran where a compiler is found, on two hosts in namespaces where they may be made,"
	@echo "                          then mpi4py's benchmarks"
	@echo "make test                 all tests (TEST_PEERS=1: also checks the C tests on MPICH)"
	@echo "make nightly              between two hosts, under each transport and each protocol: the C tests and mpi4py's suite; the Debian package in roots of its"
	@echo "                          own; Fortran by LLVM's compiler as well; binaries of others; long studies (NIGHTLY=\"rd rget\": stages with these words)"
	@echo "make test-quick           unit tests and the C tests on 1, 2 and 4 ranks"
	@echo "make test-rdma            against rxe, siw and NFS of a kernel that runs as a program, built on first use (RDMA=\"siw NFS\": cases with these words)"
	@echo "make install PREFIX=dir   bin, lib, include, share (DESTDIR is honoured)"
	@echo "make wheel                build/dist/tern_mpi-….whl: pip install it into any virtual environment"
	@echo "make deb                  build/dist/tern-mpi_….deb, with the alternatives of Debian's MPIs"
	@echo "make programs             programs of others, fetched, built and run (long; PROGRAMS=\"futures petsc\": these)"
	@echo "make bench                side by side with the MPIs that are found"
	@echo "make fuzz                 each fuzz target, or TARGETS, for FUZZ_SECONDS (20)"
	@echo "make miri                 undefined behaviour where nothing of the system is needed, by miri"
	@echo "make swarm                matching under SWARM_SEEDS (10000) random jobs and all small races"
	@echo "make snapshots            the recorded tables and generated documents, written anew"
	@echo "make clean"

packages-run:
	@scripts/packages.sh $(PACKAGES_RUN)

packages-test:
	@scripts/packages.sh $(PACKAGES_TEST)

packages-nightly:
	@scripts/packages.sh $(PACKAGES_NIGHTLY)

build:
	@command -v $(CARGO) >/dev/null || { echo "make: $(CARGO) is needed: https://rustup.rs" >&2; exit 1; }
	$(CARGO) build --release -p abi -p mpich -p openmpi -p verbs-abi -p launch -p tern -p fortran
	scripts/stage-abi.sh $(TARGET)/release/libabi.a $(BUILD)
	scripts/stage-other.sh $(TARGET)/release/libtern_mpich.a $(BUILD) mpich
	scripts/stage-other.sh $(TARGET)/release/libtern_openmpi.a $(BUILD) openmpi
	scripts/stage-verbs.sh $(TARGET)/release/libtern_verbs.a $(BUILD)
	scripts/stage-fortran.sh $(TARGET)/release/tern-fortran $(BUILD)
	@for b in $(BINARIES); do install -m 755 $(TARGET)/release/$$b $(BUILD)/bin/$$b || exit 1; done
	ln -sf mpiexec $(BUILD)/bin/mpirun
	@echo "built: $(BUILD)/bin/mpicc, $(BUILD)/bin/mpiexec, $(BUILD)/lib/libmpi_abi.so.1"

run: packages-run build run-heat run-heat-fortran run-hosts run-mpi4py

run-heat: build
	@mkdir -p $(BUILD)/examples
	$(BUILD)/bin/mpicc -O2 -o $(BUILD)/examples/heat examples/heat/heat.c -lm
	$(MPIEXEC) -n $(NP) $(BUILD)/examples/heat --check --out $(BUILD)/examples/heat.png

# The same method in Fortran, where there is a compiler.
run-heat-fortran: build
	@mkdir -p $(BUILD)/examples
	@if $(BUILD)/bin/mpifort --version >/dev/null 2>&1; then \
		$(BUILD)/bin/mpifort -O2 -o $(BUILD)/examples/heat_fortran examples/heat/heat.f90 && \
		$(MPIEXEC) -n $(NP) $(BUILD)/examples/heat_fortran; \
	else echo "make run: the heat equation in Fortran is left out: there is no Fortran compiler"; fi

# The same on two hosts that namespaces stand for: an even number of ranks, two at least.
run-hosts: run-heat
	@scripts/hosts.sh run 2 $(MPIEXEC) $$(( ($(NP) + 1) / 2 * 2 )) $(BUILD)/examples/heat --check --out $(BUILD)/examples/heat-hosts.png || \
		{ code=$$?; [ $$code -eq 77 ] && echo "make run: the heat equation on two hosts is left out" || exit $$code; }

# mpi4py's own benchmarks, unmodified, built from its source distribution.
run-mpi4py: build
	@command -v $(PYTHON) >/dev/null || { echo "make run: $(PYTHON) is needed for mpi4py: install it" >&2; exit 1; }
	$(PYTHON) tests/mpi4py/install.py --mpi $(BUILD)
	$(MPIEXEC) -n $(NP) $(BUILD)/mpi4py/venv-tern/bin/python -m mpi4py.bench helloworld
	$(MPIEXEC) -n $(NP) $(BUILD)/mpi4py/venv-tern/bin/python -m mpi4py.bench ringtest
	$(MPIEXEC) -n 2 $(BUILD)/mpi4py/venv-tern/bin/python -m mpi4py.bench pingpong

test: packages-test
	@$(MAKE) --no-print-directory -j2 build test-programs
	$(PYTHON) tests/all.py $(if $(TEST_PEERS),--peers)

# Beside the build, at whose end one library after the other is compiled, on one core each. What is wrong with them is said when they are to
# be run.
test-programs:
	@nice scripts/linted.sh test --workspace --no-run --quiet >/dev/null 2>&1 || true

nightly: packages-nightly build
	$(PYTHON) tests/all.py --nightly $(NIGHTLY)

test-quick: packages-test build
	$(PYTHON) tests/all.py --quick

# No part of `test`: the kernel is built on first use, and waiting on its one processor takes minutes.
test-rdma: build
	$(PYTHON) tests/rdma/run.py $(RDMA)

# Relocatable: nothing in the tree names the place it was built in.
install: build
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/lib/pkgconfig $(DESTDIR)$(PREFIX)/include
	install -d $(DESTDIR)$(PREFIX)/share/man/man1 $(DESTDIR)$(PREFIX)/share/man/man7 $(DESTDIR)$(PREFIX)/share/tern/bench
	install -m 755 $(BUILD)/bin/mpicc $(addprefix $(BUILD)/bin/,$(BINARIES)) $(DESTDIR)$(PREFIX)/bin
	for name in mpicxx mpic++ mpifort mpif90 mpif77; do ln -sf mpicc $(DESTDIR)$(PREFIX)/bin/$$name; done
	ln -sf mpiexec $(DESTDIR)$(PREFIX)/bin/mpirun
	install -m 755 $(BUILD)/lib/libmpi_abi.so.1 $(DESTDIR)$(PREFIX)/lib
	ln -sf libmpi_abi.so.1 $(DESTDIR)$(PREFIX)/lib/libmpi_abi.so
	install -d $(DESTDIR)$(PREFIX)/lib/tern/mpich
	install -m 755 $(BUILD)/lib/tern/mpich/*.so.12 $(DESTDIR)$(PREFIX)/lib/tern/mpich
	install -d $(DESTDIR)$(PREFIX)/lib/tern/openmpi
	install -m 755 $(BUILD)/lib/tern/openmpi/*.so.40 $(DESTDIR)$(PREFIX)/lib/tern/openmpi
	install -d $(DESTDIR)$(PREFIX)/lib/tern/verbs
	install -m 755 $(BUILD)/lib/tern/verbs/*.so.1 $(DESTDIR)$(PREFIX)/lib/tern/verbs
	install -m 644 $(BUILD)/lib/pkgconfig/mpi.pc $(DESTDIR)$(PREFIX)/lib/pkgconfig
	for name in mpi-c mpi-cxx; do ln -sf mpi.pc $(DESTDIR)$(PREFIX)/lib/pkgconfig/$$name.pc; done
	install -m 644 $(BUILD)/include/mpi.h $(BUILD)/include/mpif.h $(DESTDIR)$(PREFIX)/include
	install -m 755 $(BUILD)/lib/libmpi_tern_fortran.so.1 $(DESTDIR)$(PREFIX)/lib
	ln -sf libmpi_tern_fortran.so.1 $(DESTDIR)$(PREFIX)/lib/libmpi_tern_fortran.so
	install -d $(DESTDIR)$(PREFIX)/share/tern/fortran $(DESTDIR)$(PREFIX)/lib/tern/fortran
	install -m 644 $(BUILD)/share/tern/fortran/*.f90 $(DESTDIR)$(PREFIX)/share/tern/fortran
	for of in $(BUILD)/lib/tern/fortran/*; do \
		[ ! -d "$$of" ] || { to=$(DESTDIR)$(PREFIX)/lib/tern/fortran/$$(basename "$$of"); install -d "$$to" && install -m 644 "$$of"/* "$$to"; } || exit 1; \
	done
	install -m 644 man/*.1 $(DESTDIR)$(PREFIX)/share/man/man1
	install -m 644 man/*.7 $(DESTDIR)$(PREFIX)/share/man/man7
	for name in mpicxx mpic++ mpifort mpif90 mpif77; do ln -sf mpicc.1 $(DESTDIR)$(PREFIX)/share/man/man1/$$name.1; done
	ln -sf mpiexec.1 $(DESTDIR)$(PREFIX)/share/man/man1/mpirun.1
	for file in bench/*.c bench/*.h; do [ ! -e $$file ] || install -m 644 $$file $(DESTDIR)$(PREFIX)/share/tern/bench; done

# MANYLINUX=2.34 refuses to make one that wants a newer glibc.
wheel: build
	$(PYTHON) packaging/wheel.py $(if $(MANYLINUX),--manylinux $(MANYLINUX))

deb: build
	$(PYTHON) packaging/deb.py

programs: build
	$(PYTHON) tests/programs/run.py $(PROGRAMS)

bench: build
	$(BUILD)/bin/tern bench

# Needs cargo-fuzz and a nightly toolchain: cargo install cargo-fuzz
FUZZ_SECONDS ?= 20
fuzz:
	$(PYTHON) tests/fuzz.py --seconds $(FUZZ_SECONDS) $(TARGETS)

# Needs a nightly toolchain: rustup component add miri rust-src --toolchain nightly
miri:
	$(PYTHON) tests/miri.py

SWARM_SEEDS ?= 10000
swarm:
	TERN_SWARM_SEEDS=$(SWARM_SEEDS) $(CARGO) test -p proto --release --test protocols -- swarm:: --nocapture
	TERN_RACES=all $(CARGO) test -p proto --release --test protocols -- races:: --nocapture

# What a change makes of them has to be looked at before it is committed. The papers' tables come last: where a row is
# further off than allowed they are written all the same, and this fails.
snapshots: export TERN_UPDATE_SNAPSHOTS = 1
snapshots: export UPDATE_MAN = 1
snapshots: build
	$(CARGO) test -p abi conformance
	$(CARGO) test -p launch --test manual
	$(CARGO) test -p proto --lib everything_in_every_state
	$(CARGO) test -p sim --test choices
	$(PYTHON) tests/papers.py --record

clean:
	$(CARGO) clean
	rm -rf $(BUILD)
