//! The C functions that Fortran calls: arguments as C wants them, the call, results as Fortran wants them.
//!
//! The file is compiled twice: as `mpi_…_` it calls `MPI_…`, as `pmpi_…_` it calls `PMPI_…`, so that a tool that
//! takes over either the Fortran or the C name sees each call once (MPI 5.0 section 15.2). What only `mpi_f08` calls is
//! left out of the other ABIs: the compiler passes its own descriptors there.

use std::fmt::Write;

use abi::table::{Row, all};

use crate::parameter::{Form, Intent, Parameter, has, in_fortran, is_large, is_old, parameters};

/// How a function is called.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Caller {
    /// `mpif.h` and module `mpi`: buffers by address.
    Plain,
    /// Module `mpi_f08` where there is a choice buffer: by descriptor.
    Descriptor,
}

/// Whether an operation is called in its own way from `mpi_f08`, as C calls it.
pub fn is_own_in_f08(parameters: &[Parameter]) -> bool {
    parameters.iter().any(|p| matches!(p.form, Form::Buffer(_) | Form::BufferAddress))
}

/// The name of the procedure behind an operation of `mpi_f08` (MPI 5.0 section 19.1.5).
pub fn specific(row: &Row, large: bool, parameters: &[Parameter]) -> String {
    let suffix = if is_own_in_f08(parameters) { "_f08ts" } else { "_f08" };
    format!("{}{}{suffix}", row.name, if large { "_c" } else { "" })
}

/// All functions.
pub fn render() -> String {
    let mut text = String::from("#include \"runtime.h\"\n");
    for row in all().filter(|row| in_fortran(row)) {
        if row.returns != "int" {
            returning(&mut text, row);
            continue;
        }
        let small = parameters(row, false);
        function(&mut text, row, &small, false, Caller::Plain, &short(row.name));
        if small.iter().any(|p| p.form == Form::Address) {
            writeln!(text, "\nSAME({0}_cptr, {0})", short(row.name)).expect("writing to a string");
        }
        if !is_old(row) {
            text.push_str("\n#ifndef TERN_OTHER");
            for large in [false, true] {
                if large && !is_large(row) {
                    continue;
                }
                f08(&mut text, row, large);
            }
            text.push_str("#endif\n");
        }
    }
    text
}

fn f08(text: &mut String, row: &Row, large: bool) {
    let parameters = parameters(row, large);
    let name = short(&specific(row, large, &parameters));
    if is_own_in_f08(&parameters) {
        function(text, row, &parameters, large, Caller::Descriptor, &name);
    } else if large {
        function(text, row, &parameters, large, Caller::Plain, &name);
    } else {
        writeln!(text, "\nSAME({name}, {})", short(row.name)).expect("writing to a string");
    }
}

/// The name without `MPI_`, as it is written in a linker name.
fn short(name: &str) -> String {
    name.trim_start_matches("MPI_").to_lowercase()
}

/// What a parameter adds to a function.
#[derive(Default)]
struct Piece {
    declared: String,
    before: String,
    passed: String,
    after: String,
    /// A further parameter at the end: the length of characters.
    hidden: Option<String>,
}

fn function(text: &mut String, row: &Row, parameters: &[Parameter], large: bool, caller: Caller, name: &str) {
    let mut pieces: Vec<Piece> = parameters.iter().map(|p| piece(row, p, caller)).collect();
    let mut refused = Vec::new();
    let mut shadow = None;
    if caller == Caller::Descriptor {
        for at in 0..parameters.len() {
            if matches!(parameters[at].form, Form::Buffer(_)) {
                refused.extend(section(row, parameters, at, &mut pieces));
            }
        }
        shadow = pieces.iter().any(|p| p.before.contains("&shadow")).then(|| copied(row, parameters));
    }
    let result = (row.name != "MPI_Pcontrol").then(|| "int *ierror".to_string());
    let declared = pieces.iter().map(|p| p.declared.clone()).filter(|d| !d.is_empty());
    let declared: Vec<String> =
        declared.chain(result.clone()).chain(pieces.iter().filter_map(|p| p.hidden.clone())).collect();
    let declared = if declared.is_empty() { "void".to_string() } else { declared.join(", ") };
    let passed: Vec<&str> = pieces.iter().map(|p| p.passed.as_str()).collect();
    let in_c = format!("{}{}", row.name, if large { "_c" } else { "" });
    let call = format!("CALL({})({})", in_c.trim_start_matches("MPI_"), passed.join(", "));
    let mut body = String::new();
    if row.name.starts_with("MPI_Init") && !row.name.ends_with("ed") || row.name == "MPI_Session_init" {
        body.push_str("    tern_announce();\n");
    }
    body.push_str(if shadow.is_some() { "    struct shadow *shadow = NULL;\n" } else { "" });
    pieces.iter().for_each(|p| body.push_str(&p.before));
    body.push_str("    int code = ");
    // A call that is refused is one of the operation all the same, to whoever reads of its error.
    let words: Vec<String> = passed.iter().map(|word| format!("WORD({word})")).collect();
    for (argument, condition, text) in refused {
        write!(
            body,
            "{condition}\n        ? tern_refuse(\"{in_c}\", (int64_t[]) {{ {} }}, \"{argument}\", {text})\n        : ",
            words.join(", ")
        )
        .expect("writing to a string");
    }
    writeln!(body, "{call};").expect("writing to a string");
    if let Some(copied) = shadow {
        let request = if copied == Copied::WithTheRequest { "&c_request" } else { "NULL" };
        writeln!(body, "    tern_shadow_done(shadow, code, {request});").expect("writing to a string");
    }
    pieces.iter().for_each(|p| body.push_str(&p.after));
    match result {
        Some(_) => body.push_str("    if (ierror) *ierror = code;\n"),
        None => body.push_str("    (void)code;\n"),
    }
    write!(text, "\nvoid ENTRY({name})({declared})\n{{\n{body}}}\n").expect("writing to a string");
}

/// A function that returns its result.
fn returning(text: &mut String, row: &Row) {
    let name = row.name.trim_start_matches("MPI_");
    let declared: Vec<String> = row.params.iter().map(|p| format!("{} *{}", p.c_small, p.name)).collect();
    let declared = if declared.is_empty() { "void".to_string() } else { declared.join(", ") };
    let passed: Vec<String> = row.params.iter().map(|p| format!("*{}", p.name)).collect();
    let (returns, passed, short) = (row.returns, passed.join(", "), short(row.name));
    write!(text, "\n{returns} ENTRY({short})({declared})\n{{\n    return CALL({name})({passed});\n}}\n#ifndef TERN_OTHER\nSAME({short}_f08, {short})\n#endif\n")
        .expect("writing to a string");
}

fn piece(row: &Row, parameter: &Parameter, caller: Caller) -> Piece {
    let name = parameter.name;
    let simple =
        |c: &str, passed: String| Piece { declared: format!("{c} *{name}"), passed, ..Piece::default() };
    let piece = match &parameter.form {
        Form::Absent => Piece { passed: "0".into(), ..Piece::default() },
        Form::Handle(class, intent) => handle(name, class, *intent),
        Form::Handles(class, intent, length) => handles(name, class, *intent, length),
        Form::Number(c, Intent::In) if parameter.kind == "Keyval" => {
            simple(c, format!("tern_keyval(*{name})"))
        }
        Form::Number(c, Intent::In) => simple(c, format!("*{name}")),
        Form::Number(c, _) | Form::Numbers(c, _) => simple(c, name.into()),
        // Its bits are what is asked for.
        Form::Logical(_) if parameter.kind == "Addr" => simple("int", name.into()),
        Form::Logical(Intent::In) => simple("int", format!("*{name} != 0")),
        Form::Logical(_) | Form::Logicals(_) => simple("int", name.into()),
        // What has failed has an index, too.
        Form::Index => Piece {
            before: format!("    int c_{name} = MPI_UNDEFINED;\n"),
            after: format!("    *{name} = tern_from_1(c_{name});\n"),
            ..simple("int", format!("&c_{name}"))
        },
        Form::Indices => Piece {
            after: format!(
                "    for (int i = 0; tern_has_ended(code) && i < *outcount; i++) {name}[i] = tern_from_1({name}[i]);\n"
            ),
            ..simple("int", name.into())
        },
        Form::Weights(_) => simple("int", format!("tern_weights({name})")),
        Form::Errcodes => simple("int", format!("tern_errcodes({name})")),
        Form::Ranges(_) => simple("int", format!("(int (*)[3]) {name}")),
        Form::Text => text_in(row, name, caller),
        Form::TextOut(room) => text_out(row, name, room),
        Form::TextLength => Piece {
            before: format!(
                "    const int room_{name} = *{name} > 0 ? tern_with_zero(*{name}) : 0;\n    int c_{name} = room_{name};\n"
            ),
            after: format!("    if (code == MPI_SUCCESS && c_{name} > 0) *{name} = c_{name} - 1;\n"),
            ..simple("int", format!("&c_{name}"))
        },
        Form::Texts(length) => {
            texts(name, &format!("tern_texts({name}, {name}_len, {})", length.as_deref().unwrap_or("-1")))
        }
        Form::TextLists => texts(name, &format!("tern_text_lists({name}, {name}_len, *count)")),
        Form::Status(Intent::Out) => simple("MPI_Status", format!("tern_status({name})")),
        Form::Status(_) => simple("MPI_Status", name.into()),
        Form::Statuses => simple("MPI_Status", format!("tern_statuses({name})")),
        Form::Buffer(_) => Piece {
            before: format!("    void *{name}_base = tern_choice({name});\n"),
            ..simple("void", format!("{name}_base"))
        },
        Form::Attribute(intent) => attribute(row, name, *intent),
        Form::ExtraState if is_old(row) => simple("int", "state".into()),
        Form::ExtraState => simple("MPI_Aint", "state".into()),
        Form::Address => simple("void *", name.into()),
        Form::BufferAddress if caller == Caller::Descriptor => Piece {
            after: format!(
                "    if (code == MPI_SUCCESS && *{name} == MPI_BUFFER_AUTOMATIC) *{name} = STANDS_FOR_BUFFER_AUTOMATIC;\n"
            ),
            ..simple("void *", name.into())
        },
        Form::BufferAddress => Piece {
            before: format!("    void *c_{name};\n    (void){name};\n"),
            ..simple("void", format!("&c_{name}"))
        },
        Form::Procedure(_) => procedure(row, parameter),
    };
    piece.with_state(row, parameter)
}

impl Piece {
    /// What callbacks are called with is made where their extra state comes.
    fn with_state(mut self, row: &Row, parameter: &Parameter) -> Piece {
        if parameter.form == Form::ExtraState {
            let functions: Vec<&str> =
                row.params.iter().filter(|p| p.kind.ends_with("Fn")).map(|p| p.name).collect();
            let third = functions.get(2).unwrap_or(&"NULL");
            self.before = format!(
                "    struct callbacks *state = tern_callbacks(*{}, {}, {}, {third});\n",
                parameter.name, functions[0], functions[1]
            );
            self.after = "    if (code != MPI_SUCCESS) free(state);\n".into();
        }
        self
    }
}

fn class_of(class: &str) -> &str {
    if class == "Datatype" { "Type" } else { class }
}

fn handle(name: &str, class: &str, intent: Intent) -> Piece {
    let (declared, convert) = (format!("int *{name}"), class_of(class));
    if intent == Intent::In {
        return Piece { declared, passed: format!("PMPI_{convert}_fromint(*{name})"), ..Piece::default() };
    }
    // What a call that fails leaves is no handle.
    let first = match intent {
        Intent::InOut => format!("PMPI_{convert}_fromint(*{name})"),
        _ => format!("MPI_{}_NULL", class.to_uppercase()),
    };
    Piece {
        declared,
        before: format!("    MPI_{class} c_{name} = {first};\n"),
        passed: format!("&c_{name}"),
        after: format!("    *{name} = PMPI_{convert}_toint(c_{name});\n"),
        hidden: None,
    }
}

fn handles(name: &str, class: &str, intent: Intent, length: &str) -> Piece {
    let class = class.to_lowercase();
    let back = match intent {
        Intent::In => String::new(),
        _ => format!("    tern_{class}_back({name}, c_{name}, n_{name});\n"),
    };
    Piece {
        declared: format!("int *{name}"),
        before: format!(
            "    MPI_Count n_{name} = {length};\n    HANDLES(c_{name}, tern_{class}_array, {name}, n_{name});\n"
        ),
        passed: format!("c_{name}"),
        after: format!("{back}    HANDLES_DONE(c_{name});\n"),
        hidden: None,
    }
}

fn text_in(row: &Row, name: &str, caller: Caller) -> Piece {
    let is_described = caller == Caller::Descriptor;
    let leading = i32::from(row.name.starts_with("MPI_Info"));
    let (declared, place, length) = match is_described {
        true => (format!("struct descriptor *{name}"), format!("{name}->base"), format!("{name}->elem_len")),
        false => (format!("char *{name}"), name.to_string(), format!("{name}_len")),
    };
    Piece {
        declared,
        before: format!("    char *c_{name} = tern_text({place}, {length}, {leading});\n"),
        passed: format!("c_{name}"),
        after: format!("    free(c_{name});\n"),
        hidden: (!is_described).then(|| format!("size_t {name}_len")),
    }
}

fn text_out(row: &Row, name: &str, room: &str) -> Piece {
    let mut when = "code == MPI_SUCCESS".to_string();
    if has(row, "FlagOut") {
        when.push_str(" && *flag");
    }
    if has(row, "MaybeStrOut") {
        write!(when, " && {room} > 0").expect("writing to a string");
    }
    Piece {
        declared: format!("char *{name}"),
        before: format!("    char *c_{name} = tern_room({room});\n"),
        passed: format!("c_{name}"),
        after: format!(
            "    if ({when}) tern_text_back({name}, {name}_len, c_{name});\n    free(c_{name});\n"
        ),
        hidden: Some(format!("size_t {name}_len")),
    }
}

/// Arrays of strings, which are of account at the root only.
fn texts(name: &str, made: &str) -> Piece {
    Piece {
        declared: format!("char *{name}"),
        before: format!("    void *c_{name} = tern_is_root(*root, *comm) ? {made} : NULL;\n"),
        passed: format!("c_{name}"),
        after: format!("    free(c_{name});\n"),
        hidden: Some(format!("size_t {name}_len")),
    }
}

fn attribute(row: &Row, name: &str, intent: Intent) -> Piece {
    let c = if is_old(row) { "int" } else { "MPI_Aint" };
    let declared = format!("{c} *{name}");
    if intent == Intent::In {
        return Piece { declared, passed: format!("tern_boxed(*{name})"), ..Piece::default() };
    }
    let keyval = row.params[1].name;
    Piece {
        declared,
        before: format!("    void *c_{name} = NULL;\n"),
        passed: format!("&c_{name}"),
        after: format!(
            "    if (code == MPI_SUCCESS && *flag) *{name} = ({c}) tern_attribute(*{keyval}, c_{name});\n"
        ),
        hidden: None,
    }
}

/// A procedure: through a function of the runtime where it has an extra state; as it is where it gets addresses
/// only, at which a handle has its integer in its first four bytes.
fn procedure(row: &Row, parameter: &Parameter) -> Piece {
    let (name, Form::Procedure(c)) = (parameter.name, &parameter.form) else {
        unreachable!("the caller matched")
    };
    let has_state = row.params.iter().any(|p| p.name == "extra_state");
    let passed = match (has_state, parameter.kind) {
        (true, "DatarepConversionFn") => {
            let which = if name.starts_with("read") { "read" } else { "write" };
            let width = if c.ends_with("_c") { "_c" } else { "" };
            format!("tern_is_conversion_null({name}) ? NULL : tern_call_{which}{width}")
        }
        (true, kind) => format!("tern_call_{kind}"),
        (false, _) => format!("({c} *) {name}"),
    };
    Piece { declared: format!("procedure *{name}"), passed, ..Piece::default() }
}

/// What may be done with a section that no datatype describes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Copied {
    /// Nothing: it is refused.
    Never,
    /// A copy goes when the call returns.
    InTheCall,
    /// A copy goes when the request is complete: only collectives tell that.
    WithTheRequest,
}

fn copied(row: &Row, parameters: &[Parameter]) -> Copied {
    let has_part = |part: &str| parameters.iter().any(|p| p.name.contains(part));
    let stays = ["win", "size"].iter().any(|name| parameters.iter().any(|p| p.name == *name))
        && !row.name.contains("ack");
    if stays || row.name.ends_with("_begin") {
        Copied::Never
    } else if !has_part("request") {
        Copied::InTheCall
    } else if has_part("comm") && !has_part("tag") {
        Copied::WithTheRequest
    } else {
        Copied::Never
    }
}

/// Whether the count is that of what goes to or comes from each of several, not of all that is in the buffer.
fn is_for_each(row: &Row, parameters: &[Parameter], at: usize) -> bool {
    let (name, operation) = (parameters[at].name, row.name.to_lowercase());
    name == "recvbuf" && (operation.contains("gather") || operation.contains("alltoall"))
        || name == "sendbuf" && (operation.contains("scatter") || operation.contains("alltoall"))
}

/// A buffer that cannot be passed: its name, the C condition under which that is so, and the C expression that says why.
type Refused = (&'static str, String, String);

/// What a descriptor of a buffer adds: of a section that is not contiguous a datatype is made where a count and a
/// datatype describe it, else a copy. Returns when it cannot be passed.
fn section(row: &Row, parameters: &[Parameter], at: usize, pieces: &mut [Piece]) -> Option<Refused> {
    let Form::Buffer(intent) = parameters[at].form else { unreachable!("the caller matched") };
    let name = parameters[at].name;
    pieces[at].declared = format!("struct descriptor *{name}");
    pieces[at].before = format!("    void *{name}_base = tern_choice({name}->base);\n");
    // The end of a split collective names the buffer once more, and no more.
    let is_named = matches!(parameters[at].kind, "AddrIn") || row.name.ends_with("_end");
    if is_named || ["base", "compare_addr"].contains(&name) {
        return None;
    }
    let (copied, is_written) = (copied(row, parameters), i32::from(intent == Intent::Out));
    let has_op = has(row, "Op") && !has(row, "Win");
    let mut text = String::new();
    let refused = if let Some((count, datatype)) = described_by(parameters, at).filter(|_| !has_op) {
        let (type_name, is_one) =
            (parameters[datatype].name, matches!(parameters[count].form, Form::Number(..)));
        let has_partitions = parameters.iter().any(|p| p.name == "partitions");
        let is_whole = is_one && !has_partitions && !is_for_each(row, parameters, at);
        let n = if is_one { format!("*{}", parameters[count].name) } else { "0".into() };
        let (how, fallback) = (i32::from(is_whole), i32::from(copied != Copied::Never));
        let (function, last) = match has_partitions {
            true => ("tern_partitions", "*partitions".into()),
            false => ("tern_section", how.to_string()),
        };
        write!(
            text,
            "    struct section s_{name};\n    {function}(&s_{name}, {name}, {name}_base, {n}, {type_name}, {last});\n    \
             if (s_{name}.refused && {fallback}) tern_section_copy(&s_{name}, {name}, {how}, {is_written}, &shadow);\n"
        )
        .expect("writing to a string");
        if is_whole || has_partitions {
            let cast = if parameters[count].kind == "LongCount" { "(MPI_Count) " } else { "" };
            pieces[count].passed = format!("{cast}s_{name}.count");
        }
        pieces[at].passed = format!("s_{name}.base");
        pieces[datatype].passed = format!("s_{name}.type");
        pieces[at].after = format!("    tern_section_done(&s_{name});\n");
        Some((name, format!("s_{name}.refused"), format!("s_{name}.refused")))
    } else if copied == Copied::Never {
        Some((name, format!("!tern_is_contiguous({name}, {name}_base)"), "STRIDES".into()))
    } else {
        writeln!(text, "    void *{name}_copy = tern_shadow(&shadow, {name}, {name}_base, {is_written});")
            .expect("writing to a string");
        pieces[at].passed = format!("{name}_copy");
        None
    };
    pieces[at].before.push_str(&text);
    refused
}

/// The count (or counts) and the datatype of a buffer, if they come before the next buffer.
fn described_by(parameters: &[Parameter], at: usize) -> Option<(usize, usize)> {
    let next = (at + 1..parameters.len()).find(|&i| matches!(parameters[i].form, Form::Buffer(_)));
    let range = at + 1..next.unwrap_or(parameters.len());
    let datatype =
        range.clone().find(|&i| matches!(parameters[i].form, Form::Handle("Datatype", Intent::In)))?;
    let count = (at + 1..datatype).find(|&i| parameters[i].name.contains("count"))?;
    Some((count, datatype))
}
