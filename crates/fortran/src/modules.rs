//! The modules `mpi_f08` and `mpi`, and `mpif.h`: constants, types and interfaces.

use std::fmt::Write;

use abi::table::{Row, all};

use crate::constants::{Constant, ConstantType, HANDLES};
use crate::parameter::{Form, Intent, Parameter, has, in_fortran, is_large, is_old, parameters};
use crate::shim::{is_own_in_f08, specific};

/// Which of the two modules.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Module {
    F08,
    F90,
}

/// Numbers that Fortran has and C has not.
const NUMBERS: [(&str, i64); 8] = [
    ("MPI_ADDRESS_KIND", 8),
    ("MPI_COUNT_KIND", 8),
    ("MPI_OFFSET_KIND", 8),
    ("MPI_INTEGER_KIND", 4),
    ("MPI_STATUS_SIZE", 8),
    ("MPI_SOURCE", 1),
    ("MPI_TAG", 2),
    ("MPI_ERROR", 3),
];

/// Variables whose address means something: name, type and shape in `mpif.h`, type in `mpi_f08`.
const PLACES: [(&str, &str, &str, &str); 10] = [
    ("BOTTOM", "integer", "", "integer"),
    ("IN_PLACE", "integer", "", "integer"),
    ("BUFFER_AUTOMATIC", "integer", "", "integer"),
    ("UNWEIGHTED", "integer", "(1)", "integer"),
    ("WEIGHTS_EMPTY", "integer", "(1)", "integer"),
    ("ERRCODES_IGNORE", "integer", "(1)", "integer"),
    ("STATUS_IGNORE", "integer", "(MPI_STATUS_SIZE)", "type(MPI_Status)"),
    ("STATUSES_IGNORE", "integer", "(MPI_STATUS_SIZE,1)", "type(MPI_Status)"),
    ("ARGV_NULL", "character", "(1)", "character"),
    ("ARGVS_NULL", "character", "(1,1)", "character"),
];

/// The types and kinds that `MPI_Sizeof` knows: how they are declared, the name of their C function.
const SIZED: [(&str, &str); 12] = [
    ("integer(1)", "integer1"),
    ("integer(2)", "integer2"),
    ("integer(4)", "integer4"),
    ("integer(8)", "integer8"),
    ("real(4)", "real4"),
    ("real(8)", "real8"),
    ("real(16)", "real16"),
    ("complex(4)", "complex4"),
    ("complex(8)", "complex8"),
    ("complex(16)", "complex16"),
    ("logical(4)", "logical4"),
    ("character(len=*)", "character"),
];

/// Between the two kinds of status.
const CONVERSIONS: [&str; 2] = ["MPI_Status_f2f08", "MPI_Status_f082f"];

const CALLBACKS: &str = include_str!("callbacks.f90");

/// `mpif.h`: in the source form that is right as fixed and as free form.
pub fn include_file(constants: &[Constant]) -> String {
    let mut text = String::from("! MPI 5.0 for Fortran, without interfaces: better say `use mpi_f08`.\n");
    let mut number = |kind: &str, name: &str, value: i64| {
        write!(text, "      {kind} {name}\n      parameter ({name}={value})\n").expect("writing to a string");
    };
    NUMBERS.iter().for_each(|(name, value)| number("integer", name, *value));
    for constant in constants {
        number(
            if constant.kind == ConstantType::Offset { "integer(kind=8)" } else { "integer" },
            &constant.name,
            constant.value,
        );
    }
    // Sections that are not contiguous are copied by the compiler here, which non-blocking operations do not survive.
    for (name, value) in
        [("MPI_SUBARRAYS_SUPPORTED", ".false."), ("MPI_ASYNC_PROTECTS_NONBLOCKING", ".false.")]
    {
        write!(text, "      logical {name}\n      parameter ({name}={value})\n")
            .expect("writing to a string");
    }
    for (name, kind, shape, _) in PLACES {
        let block = format!("mpi_fortran_{}", name.to_lowercase());
        write!(
            text,
            "      {kind} MPI_{name}{shape}\n      common /{block}/ MPI_{name}\n      save /{block}/\n"
        )
        .expect("writing to a string");
    }
    for row in all().filter(|row| in_fortran(row) && row.returns != "int") {
        let kind = if row.returns == "double" { "double precision" } else { "integer(kind=8)" };
        for prefix in ["", "P"] {
            write!(text, "      {kind} {prefix}{0}\n      external {prefix}{0}\n", row.name)
                .expect("writing to a string");
        }
    }
    for class in ["", "COMM_", "TYPE_", "WIN_"] {
        for function in ["NULL_COPY_FN", "DUP_FN", "NULL_DELETE_FN"] {
            writeln!(text, "      external MPI_{class}{function}").expect("writing to a string");
        }
    }
    text.push_str("      external MPI_CONVERSION_FN_NULL\n");
    text
}

/// The module `mpi`.
pub fn f90(constants: &[Constant]) -> String {
    let mut text =
        String::from("! MPI 5.0, module mpi\nmodule mpi\n  use, intrinsic :: iso_c_binding, only: c_ptr\n");
    text.push_str(&named_types());
    text.push_str("  implicit none\n  private :: c_ptr\n");
    text.push_str(&include_file(constants));
    for row in all().filter(|row| in_fortran(row) && row.returns == "int" && !row.name.ends_with("_c")) {
        plain(&mut text, row);
    }
    for prefix in ["", "P"] {
        write!(
            text,
            "  interface\n    subroutine {prefix}MPI_F_sync_reg(buf)\n      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf\n      \
             !DIR$ IGNORE_TKR buf\n      type(*), dimension(*) :: buf\n    end subroutine\n  end interface\n"
        )
        .expect("writing to a string");
    }
    sizeof(&mut text);
    text.push_str("end module\n");
    text
}

/// The procedures of an operation in module `mpi`.
fn plain(text: &mut String, row: &Row) {
    let parameters = parameters(row, false);
    for prefix in ["", "P"] {
        let name = format!("{prefix}{}", row.name);
        if parameters.iter().any(|p| p.form == Form::Address) {
            writeln!(text, "  interface {name}").expect("writing to a string");
            procedure(text, Module::F90, row, &parameters, &name, false);
            procedure(text, Module::F90, row, &parameters, &format!("{name}_cptr"), false);
        } else {
            text.push_str("  interface\n");
            procedure(text, Module::F90, row, &parameters, &name, false);
        }
        text.push_str("  end interface\n");
    }
}

/// What module `mpi` has of `mpi_f08`: types of handles and of the status, for programs that use both (MPI 5.0 sections
/// 19.1.3 and 19.3.5). They are those of `mpi_f08`, so that a variable of one is a variable of the other.
fn named_types() -> String {
    let mut names: Vec<String> = HANDLES.iter().map(|class| format!("MPI_{class}")).collect();
    names.push("MPI_Status, operator(==), operator(/=)".into());
    names.extend(CONVERSIONS.iter().flat_map(|name| [(*name).to_string(), format!("P{name}")]));
    format!("  use mpi_f08, only: {}\n", names.join(", &\n    "))
}

/// The module `mpi_f08`.
pub fn f08(constants: &[Constant]) -> String {
    let mut text = String::from("! MPI 5.0, module mpi_f08\nmodule mpi_f08\n");
    text.push_str("  use, intrinsic :: iso_c_binding, only: c_ptr\n  implicit none\n  private :: c_ptr\n");
    for (name, value) in NUMBERS {
        writeln!(text, "  integer, parameter :: {name} = {value}").expect("writing to a string");
    }
    text.push_str(
        "  logical, parameter :: MPI_SUBARRAYS_SUPPORTED = .true., MPI_ASYNC_PROTECTS_NONBLOCKING = .true.\n",
    );
    for class in HANDLES {
        write!(text, "  type, bind(C) :: MPI_{class}\n    integer :: MPI_VAL\n  end type\n")
            .expect("writing to a string");
    }
    text.push_str("  type, bind(C) :: MPI_Status\n    integer :: MPI_SOURCE, MPI_TAG, MPI_ERROR\n");
    text.push_str("    integer, private :: MPI_internal(5)\n  end type\n");
    for Constant { name, kind, value } in constants {
        match kind {
            ConstantType::Handle(class) => {
                writeln!(text, "  type({class}), parameter :: {name} = {class}({value})")
            }
            ConstantType::Integer => writeln!(text, "  integer, parameter :: {name} = {value}"),
            ConstantType::Offset => {
                writeln!(text, "  integer(MPI_OFFSET_KIND), parameter :: {name} = {value}")
            }
        }
        .expect("writing to a string");
    }
    for (name, _, shape, kind) in PLACES {
        let shape = if kind == "type(MPI_Status)" {
            shape.replace("(MPI_STATUS_SIZE)", "").replace("MPI_STATUS_SIZE,", "")
        } else {
            shape.into()
        };
        let block = format!("mpi_fortran_{}", name.to_lowercase());
        // What a buffer was attached with is compared with its C_LOC (MPI 5.0 section 3.6).
        let kind = if name == "BUFFER_AUTOMATIC" { format!("{kind}, target") } else { kind.into() };
        write!(text, "  {kind} :: MPI_{name}{shape}\n  common /{block}/ MPI_{name}\n  save /{block}/\n")
            .expect("writing to a string");
    }
    text.push_str(CALLBACKS);
    comparisons(&mut text);
    // What was deprecated before this module came has the interface of module `mpi` (MPI 5.0 section 19.1.2).
    text.push_str("  external MPI_NULL_COPY_FN, MPI_DUP_FN, MPI_NULL_DELETE_FN\n");
    all().filter(|row| is_old(row)).for_each(|row| plain(&mut text, row));
    for row in all().filter(|row| in_fortran(row) && !is_old(row)) {
        for prefix in ["", "P"] {
            match row.returns {
                "int" => generic(&mut text, row, prefix),
                _ => returning(&mut text, row, prefix),
            }
        }
    }
    others(&mut text);
    sizeof(&mut text);
    text.push_str("end module\n");
    text
}

/// The generic name of an operation, for both widths where arguments tell them apart. Where only procedures do
/// the large form has a name of its own; where nothing does, since addresses and counts are of one kind, one
/// form is enough (MPI 5.0 section 19.2).
fn generic(text: &mut String, row: &Row, prefix: &str) {
    let small = parameters(row, false);
    let mut one = |generic: &str, forms: &[(&[Parameter], bool)]| {
        writeln!(text, "  interface {prefix}{generic}").expect("writing to a string");
        for (parameters, large) in forms {
            let name = format!("{prefix}{}", specific(row, *large, parameters));
            procedure(text, Module::F08, row, parameters, &name, is_own_in_f08(parameters));
        }
        text.push_str("  end interface\n");
    };
    let name = row.name.trim_end_matches("_c");
    if !is_large(row) {
        return one(name, &[(&small[..], false)]);
    }
    let large = parameters(row, true);
    if signature(&small) != signature(&large) {
        one(name, &[(&small[..], false), (&large[..], true)]);
    } else {
        one(name, &[(&small[..], false)]);
        if small.iter().any(|p| matches!(p.form, Form::Procedure(_))) {
            one(&format!("{name}_c"), &[(&large[..], true)]);
        }
    }
}

/// What tells two procedures of a generic name apart.
fn signature(parameters: &[Parameter]) -> Vec<String> {
    let of = |p: &Parameter| match p.form {
        Form::Procedure(_) => "procedure".into(),
        // Addresses, counts and offsets are of one kind.
        _ => declared(p, Module::F08, false).replace("MPI_ADDRESS_KIND", "MPI_COUNT_KIND"),
    };
    parameters.iter().map(of).collect()
}

fn returning(text: &mut String, row: &Row, prefix: &str) {
    let name = row.name;
    let kind = if row.returns == "double" { "double precision" } else { "integer(MPI_ADDRESS_KIND)" };
    let arguments: Vec<&str> = row.params.iter().map(|p| p.name).collect();
    let arguments = arguments.join(", ");
    write!(text, "  interface {prefix}{name}\n    function {prefix}{name}_f08({arguments})\n      import\n")
        .expect("writing to a string");
    if !arguments.is_empty() {
        writeln!(text, "      integer(MPI_ADDRESS_KIND), intent(in) :: {arguments}")
            .expect("writing to a string");
    }
    write!(text, "      {kind} :: {prefix}{name}_f08\n    end function\n  end interface\n")
        .expect("writing to a string");
}

/// The interface of one procedure.
fn procedure(
    text: &mut String,
    module: Module,
    row: &Row,
    parameters: &[Parameter],
    name: &str,
    by_descriptor: bool,
) {
    let there: Vec<&Parameter> = parameters.iter().filter(|p| p.form != Form::Absent).collect();
    let has_error = row.name != "MPI_Pcontrol";
    let arguments: Vec<&str> = there.iter().map(|p| p.name).chain(has_error.then_some("ierror")).collect();
    write!(text, "    subroutine {name}({})", arguments.join(", &\n        ")).expect("writing to a string");
    if by_descriptor {
        write!(text, " &\n        bind(C, name=\"{}_\")", name.to_lowercase()).expect("writing to a string");
    }
    text.push_str("\n      import\n");
    let is_asynchronous = is_asynchronous(row);
    for parameter in there {
        if let (Module::F90, Form::Buffer(_) | Form::BufferAddress) = (module, &parameter.form) {
            write!(
                text,
                "      !GCC$ ATTRIBUTES NO_ARG_CHECK :: {0}\n      !DIR$ IGNORE_TKR {0}\n",
                parameter.name
            )
            .expect("writing to a string");
        }
        let mut declared = declared(parameter, module, is_asynchronous);
        if name.ends_with("_cptr") && parameter.form == Form::Address {
            declared = "type(c_ptr) ::".into();
        }
        // C has the address of the request, which nothing is written to.
        if row.name == "MPI_Cancel" {
            declared = declared.replace("inout", "in");
        }
        if is_old(row) {
            declared = declared.replace("(MPI_ADDRESS_KIND)", "");
        }
        let (kind, shape) = declared.split_once("::").expect("a declaration has both parts");
        writeln!(text, "      {kind}:: {}{shape}", parameter.name).expect("writing to a string");
    }
    match (has_error, module) {
        (true, Module::F08) => text.push_str("      integer, optional, intent(out) :: ierror\n"),
        (true, Module::F90) => text.push_str("      integer, intent(out) :: ierror\n"),
        (false, _) => {}
    }
    text.push_str("    end subroutine\n");
}

/// Whether what the operation gets is used after it has returned.
fn is_asynchronous(row: &Row) -> bool {
    let has_any = |kinds: &[&str]| kinds.iter().any(|kind| has(row, kind));
    let (_, operation) = row.name.split_at("MPI_".len());
    has_any(&["RequestOut", "BufAttached", "Win", "WinOut"])
        || operation.ends_with("_begin")
        || operation.ends_with("_end")
        || ["Get_address", "Free_mem"].contains(&operation)
}

/// How a parameter is declared: `type, attributes ::shape`.
fn declared(parameter: &Parameter, module: Module, is_asynchronous: bool) -> String {
    let is_f08 = module == Module::F08;
    let handle = |class: &str| if is_f08 { format!("type(MPI_{class})") } else { "integer".into() };
    let status = |shape: &str| match (is_f08, shape) {
        (true, _) => ("type(MPI_Status)", shape.to_string()),
        (false, "") => ("integer", "(MPI_STATUS_SIZE)".to_string()),
        (false, _) => ("integer", "(MPI_STATUS_SIZE,*)".to_string()),
    };
    let with = |kind: &str, intent: Intent, shape: &str| format!("{kind}, intent({})::{shape}", word(intent));
    let lasting = |kind: &str, intent: Intent, shape: &str| {
        let attribute = if is_f08 && is_asynchronous { ", asynchronous" } else { "" };
        with(&format!("{kind}{attribute}"), intent, shape)
    };
    match &parameter.form {
        Form::Absent => unreachable!("it is not declared"),
        Form::Handle(class, Intent::Out) if parameter.name == "newcomm" => {
            lasting(&handle(class), Intent::Out, "")
        }
        Form::Handle(class, intent) => with(&handle(class), *intent, ""),
        Form::Handles(class, intent, _) => lasting(&handle(class), *intent, "(*)"),
        Form::Number(c, intent) => with(number(c), *intent, ""),
        Form::Numbers(c, intent) => lasting(number(c), *intent, "(*)"),
        Form::Logical(intent) => with("logical", *intent, ""),
        Form::Logicals(intent) => with("logical", *intent, "(*)"),
        Form::Index => with("integer", Intent::Out, ""),
        Form::Indices => with("integer", Intent::Out, "(*)"),
        Form::Weights(Intent::In) => with("integer", Intent::In, "(*)"),
        Form::Weights(_) | Form::Errcodes => "integer::(*)".into(),
        Form::Ranges(intent) => with("integer", *intent, "(3,*)"),
        Form::Text => with("character(len=*)", Intent::In, ""),
        Form::TextOut(_) => with("character(len=*)", Intent::InOut, ""),
        Form::TextLength => with("integer", Intent::InOut, ""),
        Form::Texts(_) => with("character(len=*)", Intent::In, "(*)"),
        Form::TextLists => with("character(len=*)", Intent::In, "(count,*)"),
        Form::Status(Intent::In) => with(status("").0, Intent::In, &status("").1),
        Form::Status(Intent::InOut) => with(status("").0, Intent::InOut, &status("").1),
        // Without an intent: MPI_STATUS_IGNORE is not written.
        Form::Status(Intent::Out) => format!("{}::{}", status("").0, status("").1),
        Form::Statuses => format!("{}::{}", status("(*)").0, status("(*)").1),
        Form::Buffer(intent) if is_f08 => {
            let intent = if *intent == Intent::In { ", intent(in)" } else { "" };
            format!("type(*), dimension(..){intent}{}::", if is_asynchronous { ", asynchronous" } else { "" })
        }
        Form::Buffer(_) => "type(*)::(*)".into(),
        Form::BufferAddress if !is_f08 => "type(*)::(*)".into(),
        Form::Address | Form::BufferAddress if is_f08 => "type(c_ptr), intent(out)::".into(),
        Form::Address | Form::BufferAddress => "integer(MPI_ADDRESS_KIND)::".into(),
        Form::Attribute(intent) => with("integer(MPI_ADDRESS_KIND)", *intent, ""),
        Form::ExtraState => with("integer(MPI_ADDRESS_KIND)", Intent::In, ""),
        Form::Procedure(kind) if is_f08 => format!("procedure({kind})::"),
        Form::Procedure(_) => "external::".into(),
    }
}

fn word(intent: Intent) -> &'static str {
    match intent {
        Intent::In => "in",
        Intent::Out => "out",
        Intent::InOut => "inout",
    }
}

fn number(c: &str) -> &'static str {
    match c {
        "int" => "integer",
        "MPI_Aint" => "integer(MPI_ADDRESS_KIND)",
        "MPI_Offset" => "integer(MPI_OFFSET_KIND)",
        _ => "integer(MPI_COUNT_KIND)",
    }
}

/// Handles can be compared (MPI 5.0 section 19.1.2).
fn comparisons(text: &mut String) {
    for (operator, word) in [("==", "eq"), ("/=", "ne")] {
        writeln!(text, "  interface operator({operator})").expect("writing to a string");
        for class in HANDLES {
            let name = format!("MPI_{class}_{word}");
            write!(text, "    function {name}(a, b)\n      import\n      type(MPI_{class}), intent(in) :: a, b\n      logical :: {name}\n    end function\n")
                .expect("writing to a string");
        }
        text.push_str("  end interface\n");
    }
}

/// Operations that C does not have under these names.
fn others(text: &mut String) {
    for prefix in ["", "P"] {
        for (name, from, to) in [
            (
                CONVERSIONS[0],
                "integer, intent(in) :: f_status(MPI_STATUS_SIZE)",
                "type(MPI_Status), intent(out) :: f08_status",
            ),
            (
                CONVERSIONS[1],
                "type(MPI_Status), intent(in) :: f08_status",
                "integer, intent(out) :: f_status(MPI_STATUS_SIZE)",
            ),
        ] {
            let order = if name.ends_with("f2f08") { "f_status, f08_status" } else { "f08_status, f_status" };
            write!(text, "  interface\n    subroutine {prefix}{name}({order}, ierror)\n      import\n      {from}\n      {to}\n      \
                integer, optional, intent(out) :: ierror\n    end subroutine\n  end interface\n")
            .expect("writing to a string");
        }
        let label = format!("{prefix}MPI_F_sync_reg_f08ts").to_lowercase();
        write!(text, "  interface {prefix}MPI_F_sync_reg\n    subroutine {prefix}MPI_F_sync_reg_f08ts(buf) bind(C, name=\"{label}_\")\n      \
            import\n      type(*), dimension(..), asynchronous :: buf\n    end subroutine\n  end interface\n")
        .expect("writing to a string");
    }
}

/// `MPI_Sizeof` (MPI 5.0 section 19.1.9). No standard of Fortran has LOGICAL of the default kind in `bind(C)`: gfortran refuses a
/// program that uses the module with `-std=f2018`. Its size needs no descriptor, which would be the compiler's own.
fn sizeof(text: &mut String) {
    text.push_str("  interface MPI_Sizeof\n");
    for (kind, name) in SIZED {
        let label = match kind.starts_with("logical") {
            true => String::new(),
            false => format!(" bind(C, name=\"mpi_sizeof_{name}\")"),
        };
        write!(text, "    subroutine MPI_Sizeof_{name}(x, size, ierror){label}\n      import\n      \
            {kind}, dimension(..), intent(in) :: x\n      integer, intent(out) :: size\n      integer, optional, intent(out) :: ierror\n    end subroutine\n")
        .expect("writing to a string");
    }
    text.push_str("  end interface\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The declarations of a procedure of `mpi_f08`.
    fn interface(name: &str) -> String {
        let text = f08(&[]);
        let from = text.find(&format!("subroutine {name}(")).expect("there is such a procedure");
        text[from..].split("end subroutine").next().expect("it ends").to_string()
    }

    #[test]
    fn what_is_used_after_the_call_is_asynchronous() {
        for (name, wanted) in [
            ("MPI_Put_f08ts", "type(*), dimension(..), intent(in), asynchronous:: origin_addr"),
            ("MPI_Get_c_f08ts", "type(*), dimension(..), asynchronous:: origin_addr"),
            ("MPI_Win_create_f08ts", "type(*), dimension(..), asynchronous:: base"),
            ("MPI_Buffer_attach_f08ts", "type(*), dimension(..), asynchronous:: buffer"),
            ("MPI_Ialltoallw_f08ts", "type(MPI_Datatype), asynchronous, intent(in):: sendtypes(*)"),
            ("MPI_Iallgatherv_c_f08ts", "integer(MPI_ADDRESS_KIND), asynchronous, intent(in):: displs(*)"),
            ("MPI_Comm_idup_f08", "type(MPI_Comm), asynchronous, intent(out):: newcomm"),
            ("MPI_Send_f08ts", "type(*), dimension(..), intent(in):: buf"),
            ("MPI_Allgatherv_f08ts", "integer, intent(in):: recvcounts(*)"),
            ("MPI_Get_address_f08ts", "type(*), dimension(..), asynchronous:: location"),
        ] {
            let text = interface(name);
            assert!(text.lines().any(|line| line.trim() == wanted), "{wanted} in {text}");
        }
    }

    #[test]
    fn the_standard_says_what_is_written() {
        for (name, wanted) in [
            ("MPI_Cancel_f08", "type(MPI_Request), intent(in):: request"),
            ("MPI_Status_set_error_f08", "type(MPI_Status), intent(inout):: status"),
            ("MPI_Recv_f08ts", "type(MPI_Status):: status"),
            ("MPI_Abi_set_fortran_booleans_f08", "logical, intent(in):: logical_true"),
            ("MPI_Attr_get", "integer, intent(in):: comm"),
        ] {
            let text = interface(name);
            assert!(text.lines().any(|line| line.trim() == wanted), "{wanted} in {text}");
        }
    }
}
