//! The conformance matrix, `docs/conformance.md`, rendered from the table.

use std::fmt::Write;

use super::{CHAPTERS, Chapter, Row, all};

const INTRODUCTION: &str = "\
# Conformance

All functions of MPI 5.0 are there, each as `MPI_X` and `PMPI_X` at one address. A `_c`
behind a name means that the form with large counts comes with it.

This page is rendered from the table in `crates/abi/src/table`; after a change of the table write
it anew with `TERN_UPDATE_SNAPSHOTS=1 cargo test -p abi conformance`.

`MPI_Psend_init_c` and `MPI_Precv_init_c` are in the MPI Forum's ABI header but not in the standard,
whose plain forms take `MPI_Count` already. They are exported for programs compiled with that
header and do the same as the plain forms.

Extents are rounded to the strictest alignment whatever the constructor, as the definition in section
5.1 says and Open MPI does; MPICH and Intel MPI round those of `MPI_Type_create_struct` at most. It
shows only where strides or displacements are no multiples of the alignment: `MPI_INT` twice, 5 bytes
apart, has extent 12 here and 9 there. In such a layout each part counts with its own rounded extent,
as in all three, though not in the formula: items of a part never end outside the whole. A program that
needs one extent everywhere says so with `MPI_Type_create_resized`.

Where the standard leaves it open, or programs rely on more than it says:

- Reductions take `MPI_CHAR` as the integer that `char` is in C, as all MPIs do.
- Errors that concern no object go to the error handler of `MPI_COMM_SELF` (section 9.3). As long as the program
  has not set it they go to that of `MPI_COMM_WORLD`, which is what programs written before MPI 4.0 set.
- What a call returns, and what stands in a status, is a code that has the text of that very error (`MPI_Error_string`: the
  argument, the peer, the file); `MPI_Error_class` gives its class. Of each class the last 64 texts are kept.
  `MPI_ERR_IN_STATUS` is returned as itself (section 3.7.5).
- What is erroneous and can be seen is an error: `MPI_Cancel` of a collective, under way or done, is `MPI_ERR_REQUEST`;
  what changes a file or its view within a split collective is `MPI_ERR_IO`.
- An argument that `MPI_Session_init`, `MPI_Comm_create_from_group` or `MPI_Intercomm_create_from_groups` refuses
  concerns the error handler that the call is given.
- `MPI_Error_class` and `MPI_Error_string` take any number: of what is no code they give `MPI_ERR_UNKNOWN` and a
  text that says so.
- `MPI_Dims_create` gives the dimensions with the least difference between the largest and the smallest; of
  several those with the fewest processes at the faces of the grid.
- A process that has had a session belongs to its job to its end, also after `MPI_Finalize`, and there waits for all
  others, as `MPI_Finalize` does in those that had none; after that no session can be opened.
- A session is granted the level of thread support that it asks for by `thread_level`, multiple if it does not, but no
  more than `MPI_Init_thread` was if that came first.
- Process sets are `mpi://WORLD`, `mpi://SELF`, and `tern://HOST` for each name of a host. Where ranks are on several hosts
  the latter come when the process is connected to its job; who asks for one by name before waits for that. What a
  program has left of a session when it ends it, communicators with their attributes, goes with it.
- `MPI_Intercomm_merge` with the same `high` in both groups puts that one first whose rank 0 comes first in the job.
- An attribute key that was freed may be freed again, through a copy of the handle, while attributes have it.
- `thread_level` is no key of `MPI_INFO_ENV`: it stands for a level asked for before the program started, and
  nothing that starts programs has a way to ask.

Where Tern departs from the standard:

- Sessions are local, as section 11.3 has them, and so is everything that is done in `mpi://SELF`. A process that opens one
  gets to the others of its job by itself, whatever it does next. But what needs others for the first time
  (`MPI_Comm_create_from_group` of a group with others, `MPI_Intercomm_create_from_groups`, `MPI_Open_port` and what meets
  processes of other jobs) waits until each process of the job has opened a session or called `MPI_Init`, where the
  standard has it wait for those of its groups. One that never does either keeps the others waiting until it ends; then
  `mpiexec` ends the job and says so.
";

/// The text of `docs/conformance.md`.
pub fn render() -> String {
    let mut text = INTRODUCTION.to_string();
    text.push_str("\n| chapter | functions |\n|---|---:|\n");
    for group in CHAPTERS.chunk_by(|a, b| a.title == b.title) {
        line(&mut text, group[0].title, rows(group));
    }
    line(&mut text, "**total**", all());
    for group in CHAPTERS.chunk_by(|a, b| a.title == b.title) {
        write!(text, "\n## {}\n", group[0].title).expect("writing to a string");
        list(&mut text, rows(group));
    }
    text
}

fn rows(group: &[Chapter]) -> impl Iterator<Item = &'static Row> {
    group.iter().flat_map(|chapter| chapter.rows.iter().copied())
}

fn line(text: &mut String, title: &str, rows: impl Iterator<Item = &'static Row>) {
    let count: usize = rows.map(|row| row.names().count()).sum();
    writeln!(text, "| {title} | {count} |").expect("writing to a string");
}

fn list(text: &mut String, rows: impl Iterator<Item = &'static Row>) {
    let mut names: Vec<String> = rows
        .map(|row| match row.flags.large {
            true => format!("`{}` `_c`", row.name),
            false => format!("`{}`", row.name),
        })
        .collect();
    names.sort();
    write!(text, "\n{}.\n", names.join(", ")).expect("writing to a string");
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    #[test]
    fn the_conformance_page_is_current() {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/conformance.md");
        let rendered = super::render();
        if std::env::var_os("TERN_UPDATE_SNAPSHOTS").is_some() {
            std::fs::create_dir_all(page.parent().unwrap()).unwrap();
            std::fs::write(&page, rendered).unwrap();
            return;
        }
        let stored = std::fs::read_to_string(&page).unwrap_or_default();
        let difference = rendered.lines().zip(stored.lines()).find(|(a, b)| a != b);
        assert!(
            rendered == stored,
            "{} differs from the table ({difference:?}); TERN_UPDATE_SNAPSHOTS=1 writes it anew",
            page.display()
        );
    }
}
