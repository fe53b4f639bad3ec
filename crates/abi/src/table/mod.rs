//! The table of all operations: one row each, one file per chapter of the standard.
//!
//! A row says how the operation is called in C and which handler serves it:
//!
//! ```text
//! MPI_Send(buf: BufIn, count: Count, datatype: Datatype, dest: Dest, tag: Tag, comm: Comm) large
//!     => crate::p2p::send;
//! MPI_Win_fence(assert: Int, win: Win) => mpi::win::sync::fence;
//! ```
//!
//! From it come both names (`MPI_X` and `PMPI_X` at one address) and, for rows marked `large`,
//! both widths (`X` and `X_c`); the conformance matrix and the check of `mpi.h`. The flag
//! `anytime` allows the call before MPI_Init and after MPI_Finalize (MPI 5.0 section 11.4.1);
//! `quick` has [`crate::quick`] try first, `listed` too, which tells it the width of arrays; `tool` marks the tools interface, which returns its codes without an error handler.

mod attr;
mod coll;
mod comm;
pub mod conformance;
mod datatype;
mod dynamic;
mod env;
mod errhandler;
mod external;
mod group;
mod info;
mod io;
mod language;
mod p2p;
mod partitioned;
mod rma;
mod session;
mod status;
mod tools;
mod topo;

use crate::kind::{Kind, Role};

/// One operation.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The name of the plain form, `MPI_…`.
    pub name: &'static str,
    /// Its parameters in order.
    pub params: &'static [Param],
    /// C type of the result.
    pub returns: &'static str,
    /// Flags behind the parameters.
    pub flags: Flags,
}

/// What the words behind the parameters of a row say.
#[derive(Clone, Copy, Default, Debug)]
pub struct Flags {
    /// There is a `_c` form.
    pub large: bool,
    /// May be called before MPI_Init and after MPI_Finalize.
    pub anytime: bool,
    /// Belongs to the tools interface.
    pub tool: bool,
    /// The C form takes further, untyped arguments.
    pub variadic: bool,
}

/// One parameter of an operation.
#[derive(Clone, Copy, Debug)]
pub struct Param {
    /// Its name.
    pub name: &'static str,
    /// The name of its kind.
    pub kind: &'static str,
    /// C type in the plain form.
    pub c_small: &'static str,
    /// C type in the `_c` form.
    pub c_large: &'static str,
    /// How a message shows it.
    pub role: Role,
}

/// The operations of one chapter of the standard.
#[derive(Clone, Copy, Debug)]
pub struct Chapter {
    /// Title, with the number of the chapter in MPI 5.0.
    pub title: &'static str,
    /// Its rows.
    pub rows: &'static [&'static Row],
}

/// All chapters in the order of the standard; some titles come twice in a row.
pub static CHAPTERS: &[Chapter] = &[
    p2p::CHAPTER,
    status::CHAPTER,
    partitioned::CHAPTER,
    datatype::CHAPTER,
    datatype::PLAIN,
    coll::CHAPTER,
    group::CHAPTER,
    comm::CHAPTER,
    attr::CHAPTER,
    topo::CHAPTER,
    env::CHAPTER,
    env::PLAIN,
    errhandler::CHAPTER,
    info::CHAPTER,
    session::CHAPTER,
    dynamic::CHAPTER,
    rma::CHAPTER,
    external::CHAPTER,
    io::CHAPTER,
    tools::CHAPTER,
    language::CHAPTER,
    language::PLAIN,
];

/// All rows in the order of the standard.
pub fn all() -> impl Iterator<Item = &'static Row> {
    CHAPTERS.iter().flat_map(|chapter| chapter.rows.iter().copied())
}

impl Row {
    /// Whether its errors are those of a file.
    pub fn is_of_files(&self) -> bool {
        let makes_none = self.name != "MPI_File_create_errhandler";
        self.name.starts_with("MPI_File_") && makes_none || self.name == "MPI_Register_datarep"
    }

    /// The exported names without the `PMPI` twins.
    pub fn names(&self) -> impl Iterator<Item = String> {
        let large = self.flags.large.then(|| format!("{}_c", self.name));
        std::iter::once(self.name.to_string()).chain(large)
    }
}

impl Flags {
    const fn with(mut self, word: &str) -> Flags {
        match word.as_bytes() {
            b"large" => self.large = true,
            b"anytime" => self.anytime = true,
            b"tool" => self.tool = true,
            b"variadic" => self.variadic = true,
            b"quick" | b"listed" => {}
            _ => panic!("no such flag"),
        }
        self
    }

    /// The flags named by `words`.
    pub const fn of(words: &[&str]) -> Flags {
        let mut flags = Flags { large: false, anytime: false, tool: false, variadic: false };
        let mut i = 0;
        while i < words.len() {
            flags = flags.with(words[i]);
            i += 1;
        }
        flags
    }
}

impl Param {
    /// A parameter of kind `K`.
    pub const fn of<K: Kind>(name: &'static str) -> Param {
        Param { name, kind: K::NAME, c_small: K::C_SMALL, c_large: K::C_LARGE, role: K::ROLE }
    }
}

/// Declares the rows of a chapter.
macro_rules! rows {
    ($title:literal; $($name:ident $params:tt $($flag:ident)* => $first:ident $(:: $more:ident)*;)*) => {
        pub(super) const CHAPTER: $crate::table::Chapter =
            $crate::table::Chapter { title: $title, rows: &[$(&$name),*] };
        $($crate::table::row! { $name $params [$($flag)*] [$first $(:: $more)*] })*
    };
}

/// One row: its description and its entries.
macro_rules! row {
    ($name:ident ($($p:ident: $k:ident),*) [$($flag:ident)*] [$($handler:tt)*]) => {
        #[allow(non_upper_case_globals)]
        static $name: $crate::table::Row = $crate::table::Row {
            name: stringify!($name),
            params: &[$($crate::table::Param::of::<$k>(stringify!($p))),*],
            returns: "int",
            flags: $crate::table::Flags::of(&[$(stringify!($flag)),*]),
        };
        $crate::table::entry! { $name ["" false] Small small ($($p: $k),*) [$($handler)*] [$($flag)*] }
        $crate::table::large_entry! { [$($flag)*] $name ($($p: $k),*) [$($handler)*] [$($flag)*] }
    };
}

/// The entry of the `_c` form if `large` is among the flags.
macro_rules! large_entry {
    ([] $name:ident $params:tt $handler:tt $flags:tt) => {};
    ([large $($rest:ident)*] $name:ident $params:tt $handler:tt $flags:tt) => {
        $crate::table::entry! { $name ["_c" true] Large large $params $handler $flags }
    };
    ([$other:ident $($rest:ident)*] $name:ident $params:tt $handler:tt $flags:tt) => {
        $crate::table::large_entry! { [$($rest)*] $name $params $handler $flags }
    };
}

/// The C function of one width, under both names.
macro_rules! entry {
    ($name:ident [$suffix:literal $large:literal] $width:ident $parse:ident ($($p:ident: $k:ident),*) [$($handler:tt)*] $flags:tt) => {
        const _: () = {
            $crate::layout::outer! { ["P", stringify!($name), $suffix] $width ($($p: $k),*) {
                match $crate::table::quick! { $flags $large $name ($($p),*) } {
                    Some(code) => code,
                    // SAFETY: these are the arguments the application called the operation with.
                    None => unsafe { general($($p),*) },
                }
            } }

            $crate::table::apart! { $flags
            #[allow(clippy::redundant_closure_call)] // it catches the `?` of the kinds
            #[allow(clippy::too_many_arguments)] // as many as the operation has
            unsafe fn general($($p: <$k as $crate::kind::Kind>::$width),*) -> i32 {
                let cx = $crate::cx::Cx::new(&$name, $large);
                if !cx.is_allowed() {
                    return $crate::raise::outside(&cx);
                }
                let raw = ($($p,)*);
                let outcome = (|| {
                    let ($($p,)*) = raw;
                    // SAFETY: these are the arguments the application called the operation with.
                    $(let $p = unsafe { <$k as $crate::kind::Kind>::$parse($p, stringify!($p), &cx)? };)*
                    $($handler)*(&cx, $($p),*)
                })();
                cx.tell_tools();
                match outcome {
                    Ok(()) => 0,
                    Err(error) => $crate::raise::failed(&cx, &{
                        let ($($p,)*) = raw;
                        [$($crate::kind::Word::word($p)),*]
                    }, error),
                }
            }
            }
        };
        $crate::table::alias! { $name $suffix }
    };
}

/// What a row with the flag `quick` or `listed` tries first; see [`crate::quick`].
macro_rules! quick {
    ([] $large:literal $name:ident $args:tt) => { None::<i32> };
    ([quick $($rest:ident)*] $large:literal $name:ident $args:tt) => { $crate::quick::$name $args };
    ([listed $($rest:ident)*] $large:literal $name:ident $args:tt) => { $crate::quick::$name::<$large> $args };
    ([$other:ident $($rest:ident)*] $large:literal $name:ident $args:tt) => {
        $crate::table::quick! { [$($rest)*] $large $name $args }
    };
}

/// The general path of a row: apart from the first steps of one that has `quick` or `listed`, so that these
/// have the registers to themselves.
macro_rules! apart {
    ([] $($general:tt)*) => { #[inline(always)] $($general)* };
    ([quick $($rest:ident)*] $($general:tt)*) => { #[inline(never)] $($general)* };
    ([listed $($rest:ident)*] $($general:tt)*) => { #[inline(never)] $($general)* };
    ([$other:ident $($rest:ident)*] $($general:tt)*) => { $crate::table::apart! { [$($rest)*] $($general)* } };
}

/// Functions that return something else than an error code, which cannot fail: the handler gets
/// the raw values.
macro_rules! plain_rows {
    ($title:literal; $($name:ident ($($p:ident: $k:ident),*) -> $c:literal as $ret:ty => $($handler:ident)::+;)*) => {
        /// The rows whose functions return no error code.
        pub(super) const PLAIN: $crate::table::Chapter =
            $crate::table::Chapter { title: $title, rows: &[$(&$name),*] };
    $(
        #[allow(non_upper_case_globals)]
        static $name: $crate::table::Row = $crate::table::Row {
            name: stringify!($name),
            params: &[$($crate::table::Param::of::<$k>(stringify!($p))),*],
            returns: $c,
            flags: $crate::table::Flags::of(&["anytime"]),
        };
        const _: () = {
            $crate::layout::plain_outer! { ["P", stringify!($name)] ($($p: $k),*) -> $ret, {
                $($handler)::+($($p),*)
            } }
        };
        $crate::table::alias! { $name "" }
    )*
    };
}

/// The `MPI_X` name at the address of `PMPI_X`. A tool that defines `MPI_X` itself takes over
/// that name only (MPI 5.0 section 15.2).
macro_rules! alias {
    ($name:ident $suffix:literal) => {
        core::arch::global_asm!(
            concat!(".globl ", stringify!($name), $suffix),
            concat!(".type ", stringify!($name), $suffix, ", @function"),
            concat!(".set ", stringify!($name), $suffix, ", P", stringify!($name), $suffix),
        );
    };
}

pub(crate) use {alias, apart, entry, large_entry, plain_rows, quick, row, rows};

#[cfg(test)]
mod tests;
