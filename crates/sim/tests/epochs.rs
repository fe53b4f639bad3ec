//! Epochs in virtual time: exact times of small plans, the choice against every forced schedule.

use mpi::error::Result;
use proto::epoch::Schedule;
use sim::{Cluster, Job, Rank, Setup};

fn run<R: 'static>(cluster: &Cluster, ranks: usize, body: impl Fn(&mut Rank<'_>) -> Result<R> + 'static) -> Vec<R> {
    let cluster = Cluster { cores: 1, ..cluster.clone() };
    let report = Job::new(&cluster, ranks).program(&Setup::default(), body).unwrap();
    report.all().unwrap().into_iter().collect::<Result<Vec<R>>>().unwrap()
}

#[test]
fn first() {
    for name in ["em64t-pcie", "ia32-pcix"] {
        let cluster = Cluster::find(name).unwrap();
        for (schedule, what) in Schedule::ALL {
            for len in [8, 1024, 8192, 65536, 1 << 20] {
                let times = run(&cluster, 2, move |rank| {
                    let memory = rank.buffer(64 << 20);
                    let (out, into) = (rank.buffer(len), rank.buffer(len));
                    let window = rank.window(3, memory, schedule)?;
                    let mut time = 0;
                    for _ in 0..30 {
                        let start = rank.now_ns();
                        if rank.rank() == 0 {
                            rank.win_start(&window, &[1])?;
                            (0..16).try_for_each(|at| rank.put(&window, 1, at * len, out))?;
                            (16..32).try_for_each(|at| rank.get(&window, 1, at * len, into))?;
                            rank.win_complete(&window)?;
                        } else {
                            rank.win_post(&window, &[0])?;
                            rank.win_wait(&window, &[0])?;
                        }
                        time = rank.now_ns() - start;
                    }
                    if rank.rank() == 0 { eprint!("{}", rank.world().engine.epochs_text("   ")); }
                    rank.free(window)?;
                    Ok(time)
                });
                eprintln!("{name} {what} {len}: {times:?} {} MB/s", 32.0 * len as f64 / times[0] as f64 * 1e3);
            }
        }
    }
}
