//! What a rank asks its launcher, whichever protocol that speaks.
use super::channel::Channel;
use super::environment::Launcher;
use super::one::One;
use super::pmix::Pmix;
use super::spawn::Program;
use crate::report::CONTROL_FD;

/// A connection to a launcher, from init to finalize: the key-value space of the job.
pub(super) trait Space: Send {
    /// This rank.
    fn rank(&self) -> usize;
    /// The number of ranks of the job.
    fn size(&self) -> usize;
    /// The name of the job.
    fn name(&mut self) -> Result<String, String>;
    /// Which of the programs of a job of several programs this is.
    fn appnum(&mut self) -> Result<i64, String>;
    /// How many ranks the launcher could run in all, if it knows.
    fn universe(&mut self) -> Result<Option<usize>, String>;
    /// Makes bytes known under a key, which is put once, to all who get it after the next barrier.
    fn put(&mut self, key: &str, value: &[u8]) -> Result<(), String>;
    /// What a rank has put before the last barrier.
    fn get(&mut self, key: &str) -> Result<Vec<u8>, String>;
    /// Waits until every rank of the job is here.
    fn barrier(&mut self) -> Result<(), String>;
    /// Tells the launcher that this rank is about to end as it should.
    fn finalize(&mut self) -> Result<(), String>;
    /// What has the launcher end the whole job.
    fn ender(&self) -> Ender;
    /// Has the launcher start programs as another job, whose processes find a value under a key.
    fn spawn(&mut self, _: Vec<Program>, _key: &str, _value: &[u8]) -> Result<(), String> {
        let launcher = launcher_by(|name| std::env::var_os(name).is_some());
        Err(format!(
            "{launcher} is spoken to by PMI-2 or PMIx, in which this library cannot ask for processes; Tern's mpiexec and \
             Hydra can be asked"
        ))
    }
}

/// What people call the launcher that sets these variables.
fn launcher_by(is_set: impl Fn(&str) -> bool) -> &'static str {
    const KNOWN: [(&str, &str); 4] = [
        ("SLURM_STEP_ID", "srun of Slurm"),
        ("PRTE_LAUNCHED", "mpirun of Open MPI (PRRTE)"),
        ("OMPI_COMM_WORLD_SIZE", "mpirun of Open MPI (PRRTE)"),
        ("FLUX_JOB_ID", "flux run"),
    ];
    KNOWN.iter().find(|(name, _)| is_set(name)).map_or("the launcher of this job", |(_, launcher)| launcher)
}

/// See [`Space`].
pub struct Client(Box<dyn Space>);

impl Client {
    /// Connects to the launcher that the environment of this process names; `None` if there is none: the process is a
    /// job of one rank.
    pub fn from_env() -> Result<Option<Client>, String> {
        // Who names the job by this variable speaks PMI-2 by birth (Slurm).
        let prefers_two = std::env::var_os("PMI_JOBID").is_some();
        let space = match Launcher::detect(|name| std::env::var(name).ok())? {
            Launcher::None => return Ok(None),
            Launcher::Descriptor { fd, rank, size } => {
                One::over(Channel::inherited(fd)?, rank, size).agree(prefers_two)?
            }
            Launcher::Port { host, port, id } => {
                One::introduced(Channel::connect(&host, port)?, &id)?.agree(prefers_two)?
            }
            Launcher::Pmix { name, rank, is_alone } => match Pmix::connect(&name, rank) {
                Ok(space) => Box::new(space),
                // Nobody is missed.
                Err(_) if is_alone => return Ok(None),
                Err(why) => return Err(why),
            },
        };
        Ok(Some(Client(space)))
    }

    /// Whether the launcher is Tern's `mpiexec`, which says of itself where ranks are.
    pub fn is_tern(&self) -> bool {
        std::env::var_os(CONTROL_FD).is_some()
    }

    /// This rank.
    pub fn rank(&self) -> usize {
        self.0.rank()
    }

    /// The number of ranks of the job.
    pub fn size(&self) -> usize {
        self.0.size()
    }

    /// The name of the job.
    pub fn name(&mut self) -> Result<String, String> {
        self.0.name()
    }

    /// Which of the programs of a job of several programs this is.
    pub fn appnum(&mut self) -> Result<i64, String> {
        self.0.appnum()
    }

    /// How many ranks the launcher could run in all, if it knows.
    pub fn universe(&mut self) -> Result<Option<usize>, String> {
        self.0.universe()
    }

    /// Makes `value` known under `key` to all who call [`Client::get`] after the next barrier. Any bytes and any length
    /// will do; a key is put once in a job.
    pub fn put(&mut self, key: &str, value: &[u8]) -> Result<(), String> {
        self.0.put(key, value)
    }

    /// The value that a rank has put under `key` before the last barrier.
    pub fn get(&mut self, key: &str) -> Result<Vec<u8>, String> {
        self.0.get(key)
    }

    /// Waits until every rank of the job is here.
    pub fn barrier(&mut self) -> Result<(), String> {
        self.0.barrier()
    }

    /// Has the launcher start programs as another job, all or none, whose processes find `value` under `key` at once; an
    /// error says why there are none.
    pub fn spawn(&mut self, programs: Vec<Program>, key: &str, value: &[u8]) -> Result<(), String> {
        self.0.spawn(programs, key, value)
    }

    /// Tells the launcher that this rank is about to end as it should.
    pub fn finalize(mut self) -> Result<(), String> {
        self.0.finalize()
    }

    /// What has the launcher end the whole job. It holds the connection too: it is to go when the client goes.
    pub fn ender(&self) -> Ender {
        self.0.ender()
    }
}

/// Has the launcher end the whole job, from any thread and at any time: also while the client waits for others in a barrier.
pub struct Ender(Box<dyn Fn(i32) -> Result<(), String> + Send + Sync>);

impl Ender {
    pub(super) fn by(end: impl Fn(i32) -> Result<(), String> + Send + Sync + 'static) -> Ender {
        Ender(Box::new(end))
    }

    /// Ends the job with this code; the caller exits after this.
    pub fn end(&self, code: i32) -> Result<(), String> {
        (self.0)(code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launchers_have_names() {
        assert_eq!(launcher_by(|name| name == "SLURM_STEP_ID"), "srun of Slurm");
        assert_eq!(launcher_by(|name| name.starts_with("OMPI_")), "mpirun of Open MPI (PRRTE)");
        assert_eq!(launcher_by(|_| false), "the launcher of this job");
    }
}
