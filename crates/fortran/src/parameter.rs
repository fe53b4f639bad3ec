//! What a parameter of the table is in Fortran.
//!
//! Most follow from the kind and its C type. Where Fortran tells apart what C does not (a LOGICAL, an index
//! that counts from 1, an attribute), the name of the parameter decides, which the standard fixes.

use abi::table::{Param, Row};

use crate::constants::HANDLES;

/// A parameter of an operation, in one width.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// Its name, of C and Fortran.
    pub name: &'static str,
    /// Its kind in the table.
    pub kind: &'static str,
    /// What it is.
    pub form: Form,
}

/// Who may change a variable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Intent {
    /// The operation reads it.
    In,
    /// The operation writes it.
    Out,
    /// Both.
    InOut,
}

/// What a parameter is in Fortran. Handles carry their type without `MPI_`, numbers their type in C, arrays of
/// handles the C expression of their length.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Form {
    /// Fortran has no such argument; C gets NULL.
    Absent,
    /// A handle.
    Handle(&'static str, Intent),
    /// An array of handles.
    Handles(&'static str, Intent, String),
    /// A number.
    Number(&'static str, Intent),
    /// An array of numbers.
    Numbers(&'static str, Intent),
    /// A LOGICAL, or an array of them.
    Logical(Intent),
    /// An array of LOGICAL.
    Logicals(Intent),
    /// A position in an array, which counts from 1 in Fortran.
    Index,
    /// Positions in an array, as many as `outcount`.
    Indices,
    /// Weights of edges, which may be `MPI_UNWEIGHTED` or `MPI_WEIGHTS_EMPTY`.
    Weights(Intent),
    /// Error codes, or `MPI_ERRCODES_IGNORE`.
    Errcodes,
    /// Triples of ranks.
    Ranges(Intent),
    /// A string.
    Text,
    /// Receives a string; the C expression says how much room C needs.
    TextOut(String),
    /// The room for a string, without a terminating zero in Fortran.
    TextLength,
    /// An array of strings: as many as the C expression says, or ended by a blank one.
    Texts(Option<String>),
    /// Arrays of strings, one for each command.
    TextLists,
    /// A status.
    Status(Intent),
    /// Statuses, or `MPI_STATUSES_IGNORE`.
    Statuses,
    /// A choice buffer.
    Buffer(Intent),
    /// The value of an attribute, by address in C and as an integer in Fortran.
    Attribute(Intent),
    /// What callbacks get.
    ExtraState,
    /// Receives an address.
    Address,
    /// Receives the address of a buffer for messages, which only `mpi_f08` tells.
    BufferAddress,
    /// A procedure of the application.
    Procedure(String),
}

/// The parameters of a row in one width.
pub fn parameters(row: &Row, large: bool) -> Vec<Parameter> {
    let form =
        |param: &Param| Parameter { name: param.name, kind: param.kind, form: form(row, param, large) };
    row.params.iter().map(form).collect()
}

/// Whether the operation exists in Fortran: the tools interface and the conversions of handles are for C only
/// (MPI 5.0 sections 15.3 and 20.2).
pub fn in_fortran(row: &Row) -> bool {
    !row.flags.tool && !row.name.ends_with("_toint") && !row.name.ends_with("_fromint")
}

/// Whether the operation was deprecated before there was a module `mpi_f08`, which does not have it.
pub fn is_old(row: &Row) -> bool {
    row.name.starts_with("MPI_Attr_") || row.name.starts_with("MPI_Keyval_")
}

/// Whether the operation has a form with large counts in the standard: the header of the ABI has some more.
pub fn is_large(row: &Row) -> bool {
    row.flags.large && !row.name.starts_with("MPI_Psend") && !row.name.starts_with("MPI_Precv")
}

/// Whether the row has a parameter of this kind.
pub fn has(row: &Row, kind: &str) -> bool {
    row.params.iter().any(|param| param.kind == kind)
}

fn form(row: &Row, param: &Param, large: bool) -> Form {
    let c = if large { param.c_large } else { param.c_small };
    let written = if c.starts_with("const ") { Intent::In } else { Intent::Out };
    match (param.kind, param.name) {
        ("Argc" | "Argv", _) => Form::Absent,
        (_, "argc" | "argv") if row.name == "MPI_Info_create_env" => Form::Absent,
        (_, "attribute_val") => Form::Attribute(if param.kind == "Addr" { Intent::In } else { Intent::Out }),
        (_, "extra_state") => Form::ExtraState,
        (_, "buffer_addr") => Form::BufferAddress,
        ("Addr", "logical_true" | "logical_false") => {
            Form::Logical(if row.name.starts_with("MPI_Abi_set") { Intent::In } else { Intent::Out })
        }
        // Of some what Fortran says of a buffer is not what C says.
        ("Addr", "base") if row.name == "MPI_Free_mem" => Form::Buffer(Intent::In),
        ("AddrIn", "location" | "base") => Form::Buffer(Intent::Out),
        ("BufIn" | "BufOut" | "BufAttached" | "AddrIn" | "Addr", _) => Form::Buffer(written),
        ("PtrOut", _) => Form::Address,
        ("Flag", _) => Form::Logical(Intent::In),
        ("FlagOut", _) => Form::Logical(Intent::Out),
        ("Ints" | "IntsOut", "periods" | "remain_dims") => Form::Logicals(written),
        ("IntOut", "index") => Form::Index,
        ("IntsOut", "array_of_indices") => Form::Indices,
        ("IntsOut", "array_of_errcodes") => Form::Errcodes,
        ("IntsOut", "dims") if row.name == "MPI_Dims_create" => Form::Numbers("int", Intent::InOut),
        ("Weights" | "WeightsOut", _) => Form::Weights(written),
        ("Ranges", _) => Form::Ranges(Intent::In),
        ("StrIn" | "RootStrIn", _) => Form::Text,
        ("StrOut", _) if row.name == "MPI_Info_get" => Form::TextOut("tern_with_zero(*valuelen)".into()),
        ("StrOut", _) => Form::TextOut("MPI_MAX_LIBRARY_VERSION_STRING".into()),
        ("MaybeStrOut", _) => Form::TextOut(format!("room_{}", length_before(row, param))),
        ("IntInOut", _) if has(row, "MaybeStrOut") => Form::TextLength,
        ("Strings", _) => Form::Texts(has(row, "StringLists").then(|| "*count".into())),
        ("StringLists", _) => Form::TextLists,
        ("StatusIn", _) => Form::Status(Intent::In),
        ("StatusInOut", _) => Form::Status(Intent::InOut),
        ("StatusOut", _) => Form::Status(Intent::Out),
        ("StatusesOut", _) => Form::Statuses,
        (kind, _) if kind.ends_with("Fn") => Form::Procedure(c.trim_end_matches(" *").into()),
        (kind, _) => by_type(row, param.name, kind, c),
    }
}

fn by_type(row: &Row, name: &str, kind: &str, c: &'static str) -> Form {
    let (is_const, bare) = match c.strip_prefix("const ") {
        Some(rest) => (true, rest),
        None => (false, c),
    };
    let (is_pointer, bare) = match bare.strip_suffix(" *") {
        Some(rest) => (true, rest),
        None => (false, bare),
    };
    let intent = match (is_pointer, is_const) {
        (false, _) | (true, true) => Intent::In,
        _ if kind.contains("Ref") || kind.contains("InOut") || kind == "Requests" => Intent::InOut,
        _ => Intent::Out,
    };
    let is_array = is_const || kind.ends_with('s') || kind.ends_with("sOut");
    match (HANDLES.into_iter().find(|class| bare.strip_prefix("MPI_") == Some(*class)), is_array) {
        (Some(class), true) => Form::Handles(class, intent, length(row, name)),
        (Some(class), false) => Form::Handle(class, intent),
        (None, true) => Form::Numbers(bare, intent),
        (None, false) => Form::Number(bare, intent),
    }
}

/// The C expression for the length of an array of handles.
fn length(row: &Row, name: &str) -> String {
    let neighbor = row.name.contains("eighbor");
    match name {
        "sendtypes" if neighbor => "tern_peers(*comm, PEERS_OUT)".into(),
        "sendtypes" => "tern_senders(sendbuf_base, *comm)".into(),
        "recvtypes" if neighbor => "tern_peers(*comm, PEERS_IN)".into(),
        "recvtypes" => "tern_peers(*comm, PEERS_ALL)".into(),
        "array_of_datatypes" => "*max_datatypes".into(),
        "array_of_info" => "(tern_is_root(*root, *comm) ? *count : 0)".into(),
        _ if row.params.iter().any(|param| param.name == "incount") => "*incount".into(),
        _ => "*count".into(),
    }
}

fn length_before<'a>(row: &'a Row, param: &Param) -> &'a str {
    let at = row.params.iter().position(|other| other.name == param.name).expect("it is one of the row's");
    row.params[at - 1].name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_one_that_fortran_has() {
        for row in abi::table::all().filter(|row| in_fortran(row)) {
            for parameter in parameters(row, false).into_iter().chain(parameters(row, row.flags.large)) {
                if let Form::Number(c, _) | Form::Numbers(c, _) = parameter.form {
                    let known = ["int", "MPI_Aint", "MPI_Count", "MPI_Offset"];
                    assert!(known.contains(&c), "{} {}: {c}", row.name, parameter.name);
                }
            }
        }
    }

    #[test]
    fn what_fortran_tells_apart_is_told_apart() {
        let form = |operation: &str, name: &str| {
            let row = abi::table::all().find(|row| row.name == operation).unwrap();
            parameters(row, false).into_iter().find(|parameter| parameter.name == name).unwrap().form
        };
        assert_eq!(form("MPI_Cart_create", "periods"), Form::Logicals(Intent::In));
        assert_eq!(form("MPI_Waitany", "index"), Form::Index);
        assert_eq!(form("MPI_Comm_get_attr", "attribute_val"), Form::Attribute(Intent::Out));
        assert_eq!(
            form("MPI_Waitall", "array_of_requests"),
            Form::Handles("Request", Intent::InOut, "*count".into())
        );
        assert_eq!(form("MPI_Test", "request"), Form::Handle("Request", Intent::InOut));
        assert_eq!(form("MPI_Send", "buf"), Form::Buffer(Intent::In));
        assert_eq!(form("MPI_Recv", "buf"), Form::Buffer(Intent::Out));
    }
}
