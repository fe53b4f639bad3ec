"""MUMPS: a distributed sparse factorisation in Fortran, with asynchronous messages between its ranks.

ScaLAPACK, which it uses for the dense end of the elimination, is left out (ICNTL(13) = 1): its calls lead to the routines of
MUMPS's own libseq that stop the program.
"""

import shutil

from common import Skip

DESCRIPTION = ("dsimpletest, c_example; a Laplacian of 6,400 unknowns whose rows the ranks have, symmetric and not, "
               "on 1, 2, 3 and 4; without ScaLAPACK")
MAKE = """LPORDDIR = $(topdir)/PORD/lib/
IPORD = -I$(topdir)/PORD/include/
LPORD = -L$(LPORDDIR) -lpord
ORDERINGSF = -Dpord
ORDERINGSC = -Dpord
LORDERINGS = $(LPORD)
IORDERINGSC = $(IPORD)
LIBEXT = .a
FPIC_OPT = -fPIC
OUTC = -o # here too
OUTF = -o # and here
RM = /bin/rm -f
CC = mpicc
FC = mpifort
FL = mpifort
AR = ar vr # the blank counts
RANLIB = ranlib
LIBPAR = $(topdir)/libseq/stops.o {lapack}/liblapack.so -Wl,-rpath,{lapack}
LIBBLAS = {blas}/libblas.so -Wl,-rpath,{blas}
LIBOTHERS = -lpthread
CDEFS = -DAdd_
OPTF = -O0 -w -fallow-argument-mismatch
OPTC = -O0 -w
LIBS = $(LIBPAR)
"""
PROGRAM = """program laplace
  implicit none
  include 'mpif.h'
  include 'dmumps_struc.h'
  integer, parameter :: side = 80, n = side * side
  type(dmumps_struc) :: id
  integer :: ierr, symmetric, at, x, y, k
  double precision :: worst
  call mpi_init(ierr)
  do symmetric = 0, 1
    id%comm = MPI_COMM_WORLD; id%sym = symmetric; id%par = 1; id%job = -1
    call dmumps(id)
    id%icntl(1:4) = -1
    id%icntl(13) = 1    ! the end of the elimination without ScaLAPACK
    id%icntl(18) = 3    ! each rank has rows of its own
    id%n = n
    allocate(id%irn_loc(5 * n), id%jcn_loc(5 * n), id%a_loc(5 * n))
    k = 0
    do at = id%myid + 1, n, ranks()
      x = mod(at - 1, side); y = (at - 1) / side
      call entry(at, at, 4.5d0)
      if (x > 0) call entry(at, at - 1, -1d0)
      if (y > 0) call entry(at, at - side, -1d0)
      if (symmetric == 0 .and. x < side - 1) call entry(at, at + 1, -1d0)
      if (symmetric == 0 .and. y < side - 1) call entry(at, at + side, -1d0)
    end do
    id%nnz_loc = k
    if (id%myid == 0) then
      allocate(id%rhs(n))
      do at = 1, n
        x = mod(at - 1, side); y = (at - 1) / side
        id%rhs(at) = 4.5d0 * value(at)
        if (x > 0) id%rhs(at) = id%rhs(at) - value(at - 1)
        if (y > 0) id%rhs(at) = id%rhs(at) - value(at - side)
        if (x < side - 1) id%rhs(at) = id%rhs(at) - value(at + 1)
        if (y < side - 1) id%rhs(at) = id%rhs(at) - value(at + side)
      end do
    end if
    id%job = 6
    call dmumps(id)
    if (id%infog(1) /= 0) then
      print *, 'infog', id%infog(1:2)
      call mpi_abort(MPI_COMM_WORLD, 1, ierr)
    end if
    if (id%myid == 0) then
      worst = 0
      do at = 1, n
        worst = max(worst, abs(id%rhs(at) - value(at)))
      end do
      if (worst < 1d-10) print '(a,i0,a,i0)', 'solved, symmetric ', symmetric, ', ranks ', ranks()
      deallocate(id%rhs)
    end if
    deallocate(id%irn_loc, id%jcn_loc, id%a_loc)
    id%job = -2
    call dmumps(id)
  end do
  call mpi_finalize(ierr)
contains
  integer function ranks()
    call mpi_comm_size(MPI_COMM_WORLD, ranks, ierr)
  end function
  double precision function value(at)
    integer, intent(in) :: at
    value = 1 + mod(at, 97) / 10d0
  end function
  subroutine entry(row, column, a)
    integer, intent(in) :: row, column
    double precision, intent(in) :: a
    k = k + 1
    id%irn_loc(k) = row; id%jcn_loc(k) = column; id%a_loc(k) = a
  end subroutine
end program
"""


def library(place):
    tree = place.debian_source("mumps")
    facts = (place.versions["mumps"], place.prefix)
    if not place.done("mumps", *facts):
        blas, lapack = place.lapack()
        (tree / "Makefile.inc").write_text(MAKE.format(blas=blas, lapack=lapack))
        # Of libseq only what stands for BLACS and ScaLAPACK; what stands for MPI is hidden.
        stops = tree / "libseq"
        place.build("gfortran", "-w", "-std=legacy", "-fPIC", "-c", "mpi.f", cwd=stops)
        place.build("gcc", "-w", "-fPIC", "-DAdd_", "-I.", "-c", "mpic.c", "elapse.c", cwd=stops)
        place.build("ld", "-r", "mpi.o", "mpic.o", "elapse.o", "-o", "stops.o", cwd=stops)
        hidden = [f"--localize-symbol={name}" for name in ("mpi_*", "MPI_*", "mumps_*")]
        place.build("objcopy", "--wildcard", *hidden, "stops.o", cwd=stops)
        place.build("make", "d", cwd=tree)
        place.mark("mumps", *facts)
    return tree


def check(place):
    if not shutil.which("gfortran"):
        raise Skip("no Fortran compiler: gfortran is wanted")
    tree = library(place)
    examples = tree / "examples"
    for ranks in (1, 2):
        said = place.run("sh", "-c", f"mpiexec -n {ranks} ./dsimpletest < input_simpletest_real", cwd=examples)
        words = said.partition("Solution is")[2].split()[:5]
        wrong = len(words) < 5 or any(abs(float(word) - at) > 1e-9 for at, word in enumerate(words, 1))
        place.expect(f"dsimpletest on {ranks}", f"{said}\nthe solution is {'wrong' if wrong else 'right'}", r"^the solution is right$")
    said = place.mpiexec(2, "./c_example", cwd=examples)
    place.expect("c_example on 2", said, r"Solution is : \(    1\.00  \t?    2\.00\)")
    (examples / "laplace.f90").write_text(PROGRAM)
    blas, lapack = place.lapack()
    place.run("mpifort", "-O1", "-I../include", "laplace.f90", "-o", "laplace", "-L../lib", "-ldmumps", "-lmumps_common",
              "-L../PORD/lib", "-lpord", "../libseq/stops.o", lapack / "liblapack.so", blas / "libblas.so",
              f"-Wl,-rpath,{lapack}", f"-Wl,-rpath,{blas}", cwd=examples)
    for ranks in (1, 2, 3, 4):
        said = place.mpiexec(ranks, "./laplace", cwd=examples)
        place.expect(f"the Laplacian on {ranks}", said, rf"^solved, symmetric 0, ranks {ranks}$", rf"^solved, symmetric 1, ranks {ranks}$")
