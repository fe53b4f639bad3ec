//! A process that is killed while it has a file locked, and half written, leaves a file that others can open and lock.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use disk::{Counter, File, How, Locking};

const HOW: How = How {
    read: true,
    write: true,
    create: true,
    exclusive: false,
    permissions: 0o600,
    locking: Locking::Never,
};
const PATH: &str = "TERN_DISK_KILLED";

#[test]
#[ignore = "the process that is killed: started by the test below"]
fn holder() {
    let path = std::env::var(PATH).expect("started by the test below");
    let file = File::open(Path::new(&path), HOW).unwrap();
    file.locked(0..100, false, || {
        file.write_at(b"half", 0)?;
        println!("\nheld");
        std::thread::sleep(Duration::from_secs(120));
        Ok(())
    })
    .unwrap();
}

#[test]
fn what_a_killed_process_had_locked_is_free() {
    let path = std::env::temp_dir().join(format!("tern-disk-killed-{}", std::process::id()));
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "holder", "--ignored", "--nocapture"])
        .env(PATH, &path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "held"));
    let (tell, told) = mpsc::channel();
    let waits = {
        let path = path.clone();
        std::thread::spawn(move || {
            let file = File::open(&path, HOW).unwrap();
            file.locked(50..60, false, || {
                tell.send(()).unwrap();
                file.write_at(b"ours", 50)
            })
            .unwrap();
            file.size().unwrap()
        })
    };
    assert!(
        told.recv_timeout(Duration::from_millis(300)).is_err(),
        "the lock of another process was no lock"
    );
    child.kill().unwrap();
    child.wait().unwrap();
    told.recv_timeout(Duration::from_secs(60)).expect("the lock of a dead process is free");
    assert_eq!(waits.join().unwrap(), 54);
    // The name of a shared number can go while it is used.
    let name = path.with_extension("number");
    let (one, two) = (Counter::create(&name).unwrap(), Counter::join(&name).unwrap());
    disk::remove(&name).unwrap();
    assert_eq!((one.fetch_add(2).unwrap(), two.fetch_add(3).unwrap(), one.get().unwrap()), (0, 2, 5));
    disk::remove(&path).unwrap();
}
