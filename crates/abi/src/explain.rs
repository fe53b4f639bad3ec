//! `TERN_EXPLAIN`, `TERN_JOURNAL` and `TERN_DECISIONS`: what was chosen, kept and done again.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::FileTypeExt;
use std::sync::Mutex;

use fabric::Device;
use fabric::settings::Settings;
use mpi::error::{Class, Error, Result};
use proto::Engine;
use proto::choice::explain::Detail;
use proto::choice::journal;
use proto::epoch::journal as planned;

use crate::cx::Cx;
use crate::links;

/// The file that changes go to, if they are kept.
static JOURNAL: Mutex<Option<String>> = Mutex::new(None);

/// Sets the engine up as the settings say. A journal that cannot be made is an error now, not at
/// the end of the job.
pub fn begin<D: Device>(
    engine: &mut Engine<D>,
    settings: &Settings,
    me: usize,
) -> std::result::Result<(), String> {
    engine.explain(match settings.text("TERN_EXPLAIN") {
        "used" => Detail::Used,
        "all" => Detail::All,
        _ => Detail::Off,
    });
    let replayed = settings.text("TERN_DECISIONS");
    if !replayed.is_empty() {
        let (name, is_last) = replayed.strip_prefix("last:").map_or((replayed, false), |name| (name, true));
        let file = open(name).map_err(|e| format!("TERN_DECISIONS={replayed}: {e}"))?;
        let text = journal::read(name, file)?;
        let (mut messages, mut epochs) = (journal::parse(name, &text)?, planned::parse(name, &text)?);
        if is_last {
            (messages, epochs) = (journal::last(messages), journal::last(epochs));
        }
        engine.choices_mut().journal.replay(me, &messages);
        engine.planned_mut().replay(me, &epochs);
    }
    let journal = settings.text("TERN_JOURNAL");
    if !journal.is_empty() {
        if me == 0 {
            let is_fifo = |name| fs::symlink_metadata(name).is_ok_and(|found| found.file_type().is_fifo());
            if is_fifo(journal) {
                return Err(format!(
                    "TERN_JOURNAL={journal}: a named pipe, which only one rank could write to"
                ));
            }
            fs::write(journal, format!("{}\n", journal::HEADER))
                .map_err(|e| format!("TERN_JOURNAL={journal}: {e}"))?;
        }
        engine.choices_mut().journal.keep();
        engine.planned_mut().keep();
        *JOURNAL.lock().unwrap_or_else(|e| e.into_inner()) = Some(journal.to_string());
    }
    Ok(())
}

/// Opens what all ranks can read: a pipe would block each of them, or give each a part.
fn open(name: &str) -> std::result::Result<fs::File, String> {
    let is_file = fs::metadata(name).map_err(|e| e.to_string())?.is_file();
    if !is_file {
        return Err("not a regular file".into());
    }
    fs::File::open(name).map_err(|e| e.to_string())
}

/// Says what was chosen, and what a person could mend, and writes the journal; all ranks are in `MPI_Finalize`, so rank 0 has made
/// the file.
pub fn end(cx: &Cx) -> Result {
    let mut world = cx.world();
    let me = world.rank();
    let head = format!("tern: rank {me}: ");
    let mut explanation = world.engine.explanation(&head);
    if !explanation.is_empty() {
        explanation += &crate::device::carriers(world.engine.device(), &head);
    }
    let registrations = world.engine.registrations();
    for line in [registrations.advice(), registrations.findings()].into_iter().flatten() {
        explanation += &format!("{head}{line}\n");
    }
    if let Some(account) = &world.account {
        explanation += &account.text(&head);
        explanation += &links::explanation(&world.tariff, world.engine.device().far().is_some(), &head);
    }
    let lines =
        world.engine.choices_mut().journal.text(me as usize) + &world.engine.planned_mut().lines(me as usize);
    drop(world);
    if !explanation.is_empty() {
        // One write, so that the tables of ranks do not mix.
        let _ = std::io::stderr().write_all(explanation.as_bytes());
    }
    let journal = JOURNAL.lock().unwrap_or_else(|e| e.into_inner()).take();
    let Some(name) = journal.filter(|_| !lines.is_empty()) else { return Ok(()) };
    let written =
        OpenOptions::new().append(true).open(&name).and_then(|mut file| file.write_all(lines.as_bytes()));
    written.map_err(|e| Error::new(Class::IO, format!("TERN_JOURNAL={name}: {e}")))
}
