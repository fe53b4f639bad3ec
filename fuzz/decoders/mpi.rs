//! What programs hand to the library as bytes: packed data, statuses, tags of collectives; and what a file says of a link.

use mpi::coll::{Link, Tag};
use mpi::datatype::Datatype;
use mpi::handle::Handle;
use mpi::status::Status;

/// Unpacks `input` as a few items of a predefined type, and reads it as a status and a tag.
pub fn decode(input: &[u8]) {
    let Some((which, data)) = input.split_first() else { return };
    let handle = Handle(0x200 + u32::from(*which));
    if let Some(ty) = Datatype::of(handle) {
        let count = 3u64;
        let room = count as usize * ty.extent().max(1) as usize + 64;
        let mut items = vec![0u128; room.div_ceil(16)];
        if let Ok(taken) = ty.unpack_external(items.as_mut_ptr() as usize, count, data) {
            assert!(taken <= data.len());
        }
    }
    let mut ints = [0; 8];
    ints.iter_mut()
        .zip(data.chunks_exact(4))
        .for_each(|(i, c)| *i = i32::from_le_bytes(c.try_into().unwrap()));
    assert_eq!(Status::from_ints(ints).to_ints(), ints);
    if let Some(tag) = Tag::from_value(ints[0]) {
        assert_eq!(tag.value(), ints[0]);
    }
    if let Ok(text) = std::str::from_utf8(input)
        && let Some(link) = Link::parse(text)
    {
        let times = [link.eager_bytes, link.send_ns, link.gap_ns].into_iter().chain(link.trips_ns);
        assert!(times.clone().all(|number| number >= 0.0 && number.is_finite()));
        // Fractions of a nanosecond are not kept.
        if times.map(f64::fract).all(|rest| rest == 0.0) {
            assert_eq!(Link::parse(&link.text()), Some(link));
        }
    }
}
