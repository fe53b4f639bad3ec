"""Tern MPI for Spack 1.0 and later:

    spack repo add packaging/spack/spack_repo/tern
    spack install tern-mpi

The sources are those of the clone in which this recipe lies, as they are committed there.
"""

import pathlib

from spack_repo.builtin.build_systems.makefile import MakefilePackage

from spack.package import *

CLONE = pathlib.Path(__file__).resolve().parents[6]


class TernMpi(MakefilePackage):
    """An MPI library with every function of MPI 5.0 and the standard ABI, for C, C++, Fortran and Python."""

    homepage = CLONE.as_uri()
    git = CLONE.as_uri()

    license("Apache-2.0 OR MIT")

    version("main", branch="main")

    variant("fortran", default=True, description="Make the module files of Fortran for the compiler at hand")

    provides("mpi@:5.0")

    depends_on("c", type=("build", "run"))
    depends_on("cxx", type=("build", "run"))
    depends_on("fortran", type=("build", "run"), when="+fortran")
    depends_on("rust@1.88:", type="build")
    depends_on("gmake", type="build")

    filter_compiler_wrappers("mpicc", relative_root="bin")

    @property
    def libs(self):
        return find_libraries("libmpi_abi", root=self.prefix.lib, shared=True)

    @property
    def headers(self):
        return find_headers("mpi", root=self.prefix.include)

    def build(self, spec, prefix):
        make("build")

    def install(self, spec, prefix):
        # `-o build`: what was built is taken as it is.
        make("-o", "build", "install", f"PREFIX={prefix}")

    def wrappers(self, env):
        """As dependents look for the compilers."""
        for variable, name in (("MPICC", "mpicc"), ("MPICXX", "mpicxx"), ("MPIF77", "mpif77"), ("MPIF90", "mpif90"),
                               ("MPIFC", "mpifort")):
            env.set(variable, join_path(self.prefix.bin, name))

    def setup_run_environment(self, env):
        self.wrappers(env)

    def setup_dependent_build_environment(self, env, dependent_spec):
        self.wrappers(env)
        # Dependents compile with Spack's own wrappers.
        for variable, compiler in (("MPICC_CC", "spack_cc"), ("MPICXX_CXX", "spack_cxx"), ("MPIFORT_FC", "spack_fc")):
            if compiler in globals():
                env.set(variable, globals()[compiler])

    def setup_dependent_package(self, module, dependent_spec):
        self.spec.mpicc = join_path(self.prefix.bin, "mpicc")
        self.spec.mpicxx = join_path(self.prefix.bin, "mpicxx")
        self.spec.mpif77 = join_path(self.prefix.bin, "mpif77")
        self.spec.mpifc = join_path(self.prefix.bin, "mpifort")
