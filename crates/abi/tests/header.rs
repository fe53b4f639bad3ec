//! `include/mpi.h` says what the table and the constants of the library say.

use std::collections::BTreeMap;
use std::path::Path;

use abi::object;
use abi::table::{self, Row};
use mpi::Class;
use mpi::datatype::basic;

/// A function as C declares it.
#[derive(PartialEq, Eq, Debug)]
struct Function {
    returns: String,
    params: Vec<String>,
}

fn header() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../include/mpi.h");
    let text = std::fs::read_to_string(path).expect("include/mpi.h");
    without_comments(&text)
}

fn without_comments(text: &str) -> String {
    let mut parts = text.split("/*");
    let mut out = parts.next().unwrap_or_default().to_string();
    for part in parts {
        out.push_str(part.split_once("*/").expect("a comment that ends").1);
    }
    out
}

/// The functions declared in the header: statements of the form `type MPI_Name(parameters);`.
fn functions(header: &str) -> BTreeMap<String, Function> {
    let code: String = header.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>().join(" ");
    let mut found = BTreeMap::new();
    for statement in code.split(';').map(str::trim).filter(|s| !s.starts_with("typedef")) {
        let Some((head, params)) = statement.split_once('(') else { continue };
        let Some((returns, name)) = head.trim().rsplit_once(' ') else { continue };
        let returns = returns.rsplit(['{', '}', '"']).next().unwrap().trim();
        if !name.starts_with("MPI_") && !name.starts_with("PMPI_") {
            continue;
        }
        let params = params.strip_suffix(')').expect("the end of a declaration");
        let params = match params {
            "void" => Vec::new(),
            _ => params.split(',').map(parameter_type).collect(),
        };
        let old = found.insert(name.to_string(), Function { returns: returns.to_string(), params });
        assert!(old.is_none(), "{name} is declared twice");
    }
    found
}

/// The type of a parameter: its declaration without the name, arrays as pointers.
fn parameter_type(declaration: &str) -> String {
    let text = declaration.split_whitespace().collect::<Vec<_>>().join(" ");
    if text == "..." {
        return text;
    }
    let (text, array) = match text.find('[') {
        Some(at) => (text[..at].to_string(), text[at..].to_string()),
        None => (text, String::new()),
    };
    let start = text.rfind(|c: char| !c.is_alphanumeric() && c != '_').expect("a type before the name") + 1;
    let base = text[..start].trim();
    match array.as_str() {
        // A `const` of the parameter itself is no part of the function's type.
        "" if !base.ends_with('*') => base.trim_start_matches("const ").to_string(),
        "" => base.to_string(),
        "[]" => pointer_to(base),
        inner => format!("{base} (*){}", inner.strip_prefix("[]").expect("an array without a length")),
    }
}

fn pointer_to(base: &str) -> String {
    if base.ends_with('*') { format!("{base}*") } else { format!("{base} *") }
}

fn declared(row: &Row, large: bool) -> Function {
    let params = row.params.iter().map(|param| if large { param.c_large } else { param.c_small });
    let rest = row.flags.variadic.then_some("...");
    Function { returns: row.returns.to_string(), params: params.chain(rest).map(str::to_string).collect() }
}

#[test]
fn the_header_declares_exactly_the_functions_of_the_table() {
    let in_header = functions(&header());
    let mut expected = BTreeMap::new();
    for row in table::all() {
        for (name, large) in row.names().zip([false, true]) {
            expected.insert(format!("P{name}"), declared(row, large));
            expected.insert(name, declared(row, large));
        }
    }
    for (name, function) in &expected {
        match in_header.get(name) {
            Some(other) => assert_eq!(other, function, "{name}: mpi.h against the table"),
            None => panic!("{name} is not declared in mpi.h"),
        }
    }
    for name in in_header.keys() {
        assert!(expected.contains_key(name), "mpi.h declares {name}, which is not in the table");
    }
}

/// The constants `#define`d with a number, possibly behind a cast.
fn constants(header: &str) -> BTreeMap<&str, i64> {
    let defines = header.lines().filter_map(|line| line.strip_prefix("#define "));
    let pairs = defines.filter_map(|line| line.split_once(char::is_whitespace));
    pairs.filter_map(|(name, value)| Some((name, number(value)?))).collect()
}

fn number(text: &str) -> Option<i64> {
    let text = text.trim();
    let text = text.strip_prefix('(').and_then(|t| t.strip_suffix(')')).unwrap_or(text);
    let text = match text.strip_prefix('(').and_then(|t| t.split_once(')')) {
        Some((_, value)) => value.trim(),
        None => text,
    };
    match text.strip_prefix("0x") {
        Some(hex) => i64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

fn library_constants() -> Vec<(&'static str, i64)> {
    let classes = Class::STANDARD.iter().map(|row| (row.1, i64::from(row.0.0)));
    let handles = object::PREDEFINED.iter().map(|row| (row.0, i64::from(row.1.0)));
    let datatypes = basic::PREDEFINED.iter().map(|row| (row.name, i64::from(row.handle.0)));
    let others = [
        ("MPI_ERR_LASTCODE", i64::from(Class::LAST.0)),
        ("MPI_PROC_NULL", i64::from(mpi::group::PROC_NULL)),
        ("MPI_UNDEFINED", i64::from(mpi::group::UNDEFINED)),
        ("MPI_MAX_INFO_KEY", mpi::info::MAX_KEY as i64),
        ("MPI_MAX_INFO_VAL", mpi::info::MAX_VALUE as i64),
        ("MPI_THREAD_SINGLE", i64::from(abi::global::thread::SINGLE)),
        ("MPI_THREAD_FUNNELED", i64::from(abi::global::thread::FUNNELED)),
        ("MPI_THREAD_SERIALIZED", i64::from(abi::global::thread::SERIALIZED)),
        ("MPI_THREAD_MULTIPLE", i64::from(abi::global::thread::MULTIPLE)),
    ];
    classes.chain(handles).chain(datatypes).chain(others).collect()
}

#[test]
fn the_header_has_the_constants_of_the_library() {
    let text = header();
    let in_header = constants(&text);
    let library = library_constants();
    for &(name, value) in &library {
        assert_eq!(in_header.get(name), Some(&value), "{name}");
    }
    // And none of these families is longer in the header.
    let names: Vec<&str> = library.iter().map(|row| row.0).collect();
    for (name, value) in &in_header {
        let is_class = name.starts_with("MPI_ERR_");
        let is_handle = text.lines().any(|line| {
            line.starts_with(&format!("#define {name} "))
                && line.contains("((MPI_")
                && (0x20..0x1000).contains(value)
        });
        assert!(!(is_class || is_handle) || names.contains(name), "{name} is in mpi.h only");
    }
}

#[test]
fn declarations_are_read_as_c_reads_them() {
    assert_eq!(parameter_type("const int  displs[]"), "const int *");
    assert_eq!(parameter_type(" char ***argv"), "char ***");
    assert_eq!(parameter_type("char *argv[]"), "char **");
    assert_eq!(parameter_type("int ranges[][3]"), "int (*)[3]");
    assert_eq!(number("((MPI_Comm) 0x101)"), Some(0x101));
    assert_eq!(number("(-2)"), Some(-2));
    assert_eq!(number("MPI_LONG_LONG"), None);
}
