"""mpi4py-fft: parallel transforms on Cartesian grids of processes, which FFTW computes."""

DESCRIPTION = "its own test_mpifft.py, test_pencil.py, test_libfft.py and test_darray.py on 2 and 4 ranks"
VERSION = "2.0.6"


def check(place):
    usr = place.debian_packages("libfftw3-dev", "libfftw3-double3", "libfftw3-single3", "libfftw3-long3")
    libraries = {"FFTW_ROOT": str(usr), "LD_LIBRARY_PATH": str(usr / "lib" / place.triplet())}
    place.environment.update(libraries)
    python = place.venv("numpy==2.4.6", "cython==3.3.1", "scipy", "setuptools<81", "wheel")
    if not place.done("mpi4py_fft", VERSION, place.prefix):
        place.build(python, "-m", "pip", "install", "-q", "--no-build-isolation", "--no-deps", "--no-binary", "mpi4py-fft",
                    f"mpi4py-fft=={VERSION}", CFLAGS="-O0 -g0 -w")
        place.mark("mpi4py_fft", VERSION, place.prefix)
    source = place.sdist("mpi4py-fft", VERSION, python)
    place.python_version(python, "mpi4py-fft", "mpi4py")
    for ranks in (2, 4):
        for test in ("test_mpifft", "test_pencil", "test_libfft", "test_darray"):
            said = place.mpiexec(ranks, python, f"tests/{test}.py", cwd=source, timeout=900)
            place.expect(f"{test} on {ranks}", f"ended {test}\n{said}", rf"^ended {test}$")
