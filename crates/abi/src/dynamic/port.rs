//! MPI 5.0 section 11.9: ports, at which processes of one job wait for those of another, and connections made over
//! a socket that the application has.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use mpi::comm::{COMM_NULL, COMM_SELF};
use mpi::error::{Class, Result, fail};
use mpi::handle::Handle;
use rnic::Port;

use super::meet::{self, Part};
use super::own_card;
use crate::cx::Cx;
use crate::device;
use crate::kind::output::Out;
use crate::kind::text::{MaybeText, Text, TextOut};

pub use crate::layout::MAX_PORT_NAME;
/// How long a connection may take unless the info key `timeout` says another time.
const PATIENCE: Duration = Duration::from_secs(180);

/// Opens a port of this process.
pub fn new(cx: &Cx) -> Result<Port> {
    static LAST: AtomicU32 = AtomicU32::new(0);
    let card = own_card(cx)?;
    // 0 is no port; a tag has 31 bits.
    let number = LAST.fetch_add(1, Ordering::Relaxed) % (i32::MAX as u32) + 1;
    let mut world = cx.world();
    world.open_port(number);
    world.engine.extend(|device| device::adapter(device).open_port(number));
    Ok(Port { card, number })
}

/// Closes a port: who asks there is refused.
pub fn end(cx: &Cx, number: u32) {
    let mut world = cx.world();
    world.close_port(number);
    world.engine.extend(|device| device::adapter(device).close_port(number));
}

/// Closes all that are open: nobody will be accepted any more.
pub fn end_all(cx: &Cx) {
    let mut world = cx.world();
    let numbers = world.close_ports();
    if !numbers.is_empty() {
        world
            .engine
            .extend(|device| numbers.iter().for_each(|number| device::adapter(device).close_port(*number)));
    }
}

/// `MPI_Open_port`.
pub fn open(cx: &Cx, _info: Handle, port_name: TextOut) -> Result {
    let name = new(cx)?.name();
    // SAFETY: MPI says the buffer has room for MPI_MAX_PORT_NAME bytes.
    unsafe { port_name.set(name.as_bytes(), MAX_PORT_NAME) };
    Ok(())
}

/// `MPI_Close_port`.
pub fn close(cx: &Cx, port_name: Text) -> Result {
    let number = own_port(cx, &port_name.to_text())?;
    end(cx, number);
    Ok(())
}

/// The number of a port that this process has opened.
fn own_port(cx: &Cx, name: &str) -> Result<u32> {
    let port = port_of_any(cx, name)?;
    if port.card == own_card(cx)? { Ok(port.number) } else { not_open(&port) }
}

/// The port of this name, of this process or another one; of this process it must be open.
fn port_of_any(cx: &Cx, name: &str) -> Result<Port> {
    let Some(port) = Port::named(name) else { return no_name(name) };
    let is_closed = port.card == own_card(cx)? && !cx.world().is_port_open(port.number);
    if is_closed { not_open(&port) } else { Ok(port) }
}

fn not_open<T>(port: &Port) -> Result<T> {
    let text = format!("argument `port_name` is the port {}, which this process has not open", port.shown());
    fail(Class::PORT, text)
}

fn no_name<T>(name: &str) -> Result<T> {
    let shown: String = name.chars().take(40).collect();
    fail(Class::PORT, format!("argument `port_name` is `{shown}`, not a name that MPI_Open_port has given"))
}

/// `MPI_Comm_accept`.
pub fn accept(
    cx: &Cx,
    port_name: MaybeText,
    _info: Handle,
    root: i32,
    comm: Handle,
    newcomm: Out<Handle>,
) -> Result {
    newcomm.set(COMM_NULL);
    let part = || Ok(Part::Accept(own_port(cx, &port_name.get()?.to_text())?, None));
    newcomm.set(meet::groups(cx, comm, root, part)?);
    Ok(())
}

/// `MPI_Comm_connect`; the info key `timeout` is in seconds, as MPICH has it.
pub fn connect(
    cx: &Cx,
    port_name: MaybeText,
    info: Handle,
    root: i32,
    comm: Handle,
    newcomm: Out<Handle>,
) -> Result {
    newcomm.set(COMM_NULL);
    let part = || {
        let patience = patience(cx, info)?;
        Ok(Part::Connect(port_of_any(cx, &port_name.get()?.to_text())?, patience))
    };
    newcomm.set(meet::groups(cx, comm, root, part)?);
    Ok(())
}

/// How long a connection may take, as the info says.
fn patience(cx: &Cx, info: Handle) -> Result<Duration> {
    let world = cx.anytime();
    let Some(text) = world.optional_info(info)?.and_then(|info| info.hint("timeout")) else {
        return Ok(PATIENCE);
    };
    match text.trim().parse() {
        Ok(seconds) => Ok(Duration::from_secs(seconds)),
        Err(_) => fail(Class::ARG, format!("info key `timeout` is `{text}`, not a number")),
    }
}

/// `MPI_Comm_join`: both sides say which port of theirs is open, and that of the smaller card is used.
pub fn join(cx: &Cx, fd: i32, intercomm: Out<Handle>) -> Result {
    intercomm.set(COMM_NULL);
    let own = new(cx)?;
    let met = swap(fd, own).and_then(|other| {
        let part = match own.card.to_words().cmp(&other.card.to_words()) {
            std::cmp::Ordering::Less => Part::Accept(own.number, Some(PATIENCE)),
            std::cmp::Ordering::Greater => Part::Connect(other, PATIENCE),
            std::cmp::Ordering::Equal => {
                return fail(Class::ARG, "argument `fd` is a socket whose other end is in this process");
            }
        };
        meet::groups(cx, COMM_SELF, 0, || Ok(part))
    });
    end(cx, own.number);
    intercomm.set(met?);
    Ok(())
}

/// Tells the process at the other end of a socket the name of a port, and is told its.
fn swap(fd: i32, own: Port) -> Result<Port> {
    let name = own.name();
    let mut room = vec![0; name.len()];
    match launch::sys::net::swap(fd, name.as_bytes(), &mut room, PATIENCE) {
        Ok(()) => {}
        Err(error) => {
            return fail(
                Class::ARG,
                format!(
                    "argument `fd` is {fd}, no connected stream socket to another process of MPI: {error}"
                ),
            );
        }
    }
    let told = String::from_utf8_lossy(&room).into_owned();
    let other = Port::named(&told);
    other.map_or_else(
        || fail(Class::ARG, format!("what came over the socket {fd} is not of this library")),
        Ok,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use rnic::Card;

    #[test]
    fn names_have_room_in_the_buffers_of_programs() {
        let address = "10.1.2.3:4567".parse().unwrap();
        let port = Port { card: Card { job: [1; 16], rank: 3, address, key: [0xfe; 16] }, number: 77 };
        assert!(port.name().len() < MAX_PORT_NAME);
    }
}
