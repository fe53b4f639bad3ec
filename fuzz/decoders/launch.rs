//! Lines of PMI and of the control channel, and messages of agents: what is accepted survives encoding.

use launch::mpiexec::message::{self, Event, Order};
use launch::pmi::line::parse_line;
use launch::pmi::server::Server;
use launch::report::Line;

/// Decodes the input as each of them, and gives it to a server of one rank.
pub fn decode(input: &[u8]) {
    if let Ok(command) = parse_line(input) {
        assert!(!command.name.is_empty());
    }
    if let Ok(line) = Line::decode(input) {
        let text = line.encode();
        let again = Line::decode(text.as_bytes());
        assert_eq!(again.as_ref(), Ok(&line), "{text:?}");
    }
    if let Ok(event) = Event::decode(input) {
        assert_eq!(Event::decode(&event.encode()), Ok(event));
    }
    if let Ok(order) = Order::decode(input) {
        assert_eq!(Order::decode(&order.encode()), Ok(order));
    }
    if let Some(prefix) = input.first_chunk()
        && let Ok(length) = message::length(*prefix)
    {
        assert!(length <= message::MESSAGE_MAX);
    }
    let mut server = Server::new("job".into(), &[0], 1);
    let _ = server.on_line(0, b"cmd=init pmi_version=1 pmi_subversion=1");
    for line in input.split(|byte| *byte == b'\n') {
        if server.on_line(0, line).is_err() {
            break;
        }
    }
}
