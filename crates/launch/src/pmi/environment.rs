//! What the environment says about the launcher.

/// How a rank reaches its launcher.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Launcher {
    /// Through an inherited descriptor: `PMI_FD`, `PMI_RANK`, `PMI_SIZE`.
    Descriptor {
        /// The descriptor.
        fd: i32,
        /// This rank.
        rank: usize,
        /// The number of ranks.
        size: usize,
    },
    /// Through a connection: `PMI_PORT` and `PMI_ID`; the server tells rank and size.
    Port {
        /// Host name or address.
        host: String,
        /// TCP port.
        port: u16,
        /// What to present as `pmiid`.
        id: String,
    },
    /// Through libpmix: `PMIX_NAMESPACE` and `PMIX_RANK`.
    Pmix {
        /// The name of the job.
        name: String,
        /// This rank.
        rank: usize,
        /// The launcher says that there are no other ranks.
        is_alone: bool,
    },
    /// There is no launcher: the process is a job of one rank.
    None,
}

/// Most ranks that a size in the environment may claim: a larger number is a corrupt one.
const SIZE_MAX: usize = 1 << 24;

impl Launcher {
    /// Reads the environment through `lookup`. A launcher that is there but speaks nothing that is known
    /// is an error: to go on would start as many jobs of one rank as there are ranks.
    pub fn detect(lookup: impl Fn(&str) -> Option<String>) -> Result<Launcher, String> {
        let get = |name: &str| lookup(name).filter(|value| !value.is_empty());
        if let Some(fd) = get("PMI_FD") {
            let fd = number("PMI_FD", &fd, i32::MAX as usize)? as i32;
            let rank = required(&get, "PMI_RANK", "PMI_FD", SIZE_MAX)?;
            let size = required(&get, "PMI_SIZE", "PMI_FD", SIZE_MAX)?;
            if rank >= size {
                return Err(format!("PMI_RANK={rank} is not below PMI_SIZE={size}"));
            }
            return Ok(Launcher::Descriptor { fd, rank, size });
        }
        if let Some(address) = get("PMI_PORT") {
            let (host, port) = address
                .rsplit_once(':')
                .and_then(|(host, port)| Some((host, port.parse::<u16>().ok()?)))
                .filter(|(host, port)| !host.is_empty() && *port != 0)
                .ok_or_else(|| format!("PMI_PORT={address} is not host:port"))?;
            let id = get("PMI_ID").or_else(|| get("PMI_RANK"));
            let id =
                id.ok_or("PMI_PORT is set but PMI_ID is not: the launcher's environment is incomplete")?;
            number("PMI_ID", &id, SIZE_MAX)?;
            return Ok(Launcher::Port { host: host.trim_matches(['[', ']']).into(), port, id });
        }
        if let Some(name) = get("PMIX_NAMESPACE") {
            let rank = required(&get, "PMIX_RANK", "PMIX_NAMESPACE", SIZE_MAX)?;
            let is_alone = COUNTS.iter().any(|(count, _)| get(count).is_some_and(|text| text == "1"));
            return Ok(Launcher::Pmix { name, rank, is_alone });
        }
        refuse_other_launchers(&get)?;
        Ok(Launcher::None)
    }
}

/// Where launchers that need not speak with a rank say how many there are.
const COUNTS: [(&str, &str); 2] =
    [("OMPI_COMM_WORLD_SIZE", "Open MPI's mpirun"), ("SLURM_STEP_NUM_TASKS", "srun")];

const REMEDY: &str = "start the program with Tern's own mpiexec, with Hydra, or with 'srun --mpi=pmi2' or \
                      '--mpi=pmix'; or clear these variables to run it alone";

/// Other launchers say how many ranks they started; one rank may go on alone.
fn refuse_other_launchers(get: &impl Fn(&str) -> Option<String>) -> Result<(), String> {
    if let Some(name) = ["PMI_RANK", "PMI_SIZE", "PMI_ID"].into_iter().find(|name| get(name).is_some()) {
        return Err(format!(
            "{name} is set but neither PMI_FD nor PMI_PORT is: a launcher started this process and left no way \
             to speak PMI-1 with it (a program between them may have dropped the variable); {REMEDY}"
        ));
    }
    for (name, launcher) in COUNTS {
        match get(name) {
            Some(text) if text == "1" => return Ok(()),
            Some(text) => {
                return Err(format!(
                    "{launcher} started this process ({name}={text}) and left no way to speak with it, neither PMI nor PMIx; {REMEDY}"
                ));
            }
            None => {}
        }
    }
    match get("PMIX_RANK") {
        Some(_) => Err(format!(
            "PMIX_RANK is set but PMIX_NAMESPACE is not: the launcher's environment is incomplete; {REMEDY}"
        )),
        None => Ok(()),
    }
}

fn required(
    get: &impl Fn(&str) -> Option<String>,
    name: &str,
    because: &str,
    max: usize,
) -> Result<usize, String> {
    let text = get(name).ok_or_else(|| {
        format!("{because} is set but {name} is not: the launcher's environment is incomplete")
    })?;
    number(name, &text, max)
}

fn number(name: &str, text: &str, max: usize) -> Result<usize, String> {
    let number = text.parse::<usize>().ok().filter(|n| *n <= max);
    number.ok_or_else(|| format!("{name}={text} is not a number from 0 to {max}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detect(pairs: &[(&str, &str)]) -> Result<Launcher, String> {
        Launcher::detect(|name| pairs.iter().find(|(known, _)| *known == name).map(|(_, v)| v.to_string()))
    }

    #[test]
    fn launchers_that_speak_pmi_1() {
        let fd = detect(&[("PMI_FD", "9"), ("PMI_RANK", "1"), ("PMI_SIZE", "2"), ("PMIX_RANK", "1")]);
        assert_eq!(fd, Ok(Launcher::Descriptor { fd: 9, rank: 1, size: 2 }));
        let port = detect(&[("PMI_PORT", "vm:4711"), ("PMI_ID", "3")]);
        assert_eq!(port, Ok(Launcher::Port { host: "vm".into(), port: 4711, id: "3".into() }));
        assert_eq!(detect(&[]), Ok(Launcher::None));
        assert_eq!(detect(&[("PMI_RANK", "")]), Ok(Launcher::None));
    }

    #[test]
    fn launchers_that_speak_pmix() {
        let job = [("PMIX_NAMESPACE", "prterun-a-1@1"), ("PMIX_RANK", "3"), ("OMPI_COMM_WORLD_SIZE", "4")];
        let pmix = |is_alone| Ok(Launcher::Pmix { name: "prterun-a-1@1".into(), rank: 3, is_alone });
        assert_eq!(detect(&job), pmix(false));
        assert_eq!(detect(&job[..2]), pmix(false));
        let one = [job[0], job[1], ("SLURM_STEP_NUM_TASKS", "1")];
        assert_eq!(detect(&one), pmix(true));
        // Tern's mpiexec inside such a job.
        let inner = [&job[..], &[("PMI_FD", "9"), ("PMI_RANK", "1"), ("PMI_SIZE", "2")]].concat();
        assert_eq!(detect(&inner), Ok(Launcher::Descriptor { fd: 9, rank: 1, size: 2 }));
    }

    #[test]
    fn half_set_or_foreign_environments_are_errors_that_name_the_variable() {
        let cases: &[(&[(&str, &str)], &str)] = &[
            (&[("PMI_RANK", "1")], "PMI_RANK"),
            (&[("PMI_SIZE", "2")], "PMI_SIZE"),
            (&[("PMI_FD", "9")], "PMI_RANK"),
            (&[("PMI_FD", "9"), ("PMI_RANK", "0")], "PMI_SIZE"),
            (&[("PMI_FD", "nine"), ("PMI_RANK", "0"), ("PMI_SIZE", "1")], "PMI_FD=nine"),
            (&[("PMI_FD", "9"), ("PMI_RANK", "2"), ("PMI_SIZE", "2")], "PMI_RANK=2"),
            (&[("PMI_FD", "9"), ("PMI_RANK", "-1"), ("PMI_SIZE", "2")], "PMI_RANK=-1"),
            (&[("PMI_PORT", "host"), ("PMI_ID", "1")], "PMI_PORT=host"),
            (&[("PMI_PORT", "host:1")], "PMI_ID"),
            (&[("PMIX_RANK", "0")], "PMIX_NAMESPACE"),
            (&[("PMIX_NAMESPACE", "x")], "PMIX_RANK"),
            (&[("PMIX_NAMESPACE", "x"), ("PMIX_RANK", "one")], "PMIX_RANK=one"),
            (&[("OMPI_COMM_WORLD_SIZE", "4")], "OMPI_COMM_WORLD_SIZE=4"),
            (&[("SLURM_STEP_NUM_TASKS", "8")], "srun"),
        ];
        for (environment, named) in cases {
            let error = detect(environment).unwrap_err();
            assert!(error.contains(named), "{environment:?}: {error}");
        }
    }

    #[test]
    fn one_rank_under_another_launcher_runs_alone() {
        assert_eq!(detect(&[("OMPI_COMM_WORLD_SIZE", "1"), ("PMIX_RANK", "0")]), Ok(Launcher::None));
        assert_eq!(detect(&[("SLURM_JOB_ID", "5"), ("SLURM_STEP_NUM_TASKS", "1")]), Ok(Launcher::None));
        // A batch script runs outside any step, whatever the allocation holds.
        assert_eq!(detect(&[("SLURM_JOB_ID", "5"), ("SLURM_NTASKS", "8")]), Ok(Launcher::None));
    }
}
