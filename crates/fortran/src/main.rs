//! Writes the Fortran bindings: the modules `mpi_f08` and `mpi`, `mpif.h`, and the C functions behind them.
//!
//! Everything comes from the table of operations (`abi::table`) and from `mpi.h`; there is no second list. The
//! modules hold no code: an interface says how a C function of `libmpi_tern_fortran` is called, so that a compiler
//! needs its own module files but no library of its own. Two ways of calling are common to all compilers on the
//! systems that Tern runs on:
//!
//! - that of FORTRAN 77: every argument by address, lengths of characters as `size_t` behind the last one, an absent
//!   optional one as NULL, names in small letters with a trailing underscore;
//! - that of C (`bind(C)`) where a buffer of any type and rank is passed: by a descriptor (`CFI_cdesc_t`), whose
//!   parts that are needed here lie alike with gfortran and flang.
//!
//! The functions of FORTRAN 77's kind are compiled again for binaries that were built for MPICH (`libmpifort.so.12`) or Open MPI
//! (`libmpi_mpifh.so.40`), with headers that [`other`] makes of the same one.
//!
//! usage: tern-fortran MPI.H DIRECTORY

mod constants;
mod modules;
mod other;
mod parameter;
mod shim;

use std::path::Path;
use std::{env, fs, io, process};

/// What is compiled beside the generated functions, and what both include.
const RUNTIME: [(&str, &str); 6] = [
    ("attributes.c", include_str!("attributes.c")),
    ("mpich_module.c", include_str!("mpich_module.c")),
    ("removed.c", include_str!("removed.c")),
    ("runtime.c", include_str!("runtime.c")),
    ("section.c", include_str!("section.c")),
    ("runtime.h", include_str!("runtime.h")),
];

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [header, directory] = &arguments[..] else {
        eprintln!("usage: tern-fortran MPI.H DIRECTORY");
        process::exit(2);
    };
    if let Err(error) = write(Path::new(header), Path::new(directory)) {
        eprintln!("tern-fortran: {header} to {directory}: {error}");
        process::exit(1);
    }
}

fn write(header: &Path, directory: &Path) -> io::Result<()> {
    let header = fs::read_to_string(header)?;
    let constants = constants::read(&header);
    for other in &other::OTHERS {
        let folder = directory.join(other.name);
        fs::create_dir_all(&folder)?;
        fs::write(folder.join("mpi.h"), other.header(&header))?;
    }
    for (name, text) in RUNTIME {
        fs::write(directory.join(name), text)?;
    }
    fs::write(directory.join("entries.c"), shim::render())?;
    fs::write(directory.join("mpi_f08.f90"), modules::f08(&constants))?;
    fs::write(directory.join("mpi.f90"), modules::f90(&constants))?;
    fs::write(directory.join("mpif.h"), modules::include_file(&constants))
}
