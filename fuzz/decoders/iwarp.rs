//! iWARP: what is accepted encodes to the same bytes, but for what is reserved.

use wire::iwarp::ddp::Header;
use wire::iwarp::mpa::{Side, Start};
use wire::iwarp::rdmap::{AtomicRequest, AtomicResponse, ReadRequest, Terminate};

/// Decodes the input as each of the formats.
pub fn decode(input: &[u8]) {
    for side in [Side::Request, Side::Reply] {
        if let Ok(Some((start, len))) = Start::decode(side, input) {
            let again = start.encode();
            assert_eq!(again.len(), len);
            assert_eq!(Start::decode(side, &again), Ok(Some((start, len))));
        }
    }
    if let Ok(header) = Header::decode(input) {
        let mut again = [0; 18];
        let len = header.encode(&mut again);
        assert_eq!(Header::decode(&again[..len]), Ok(header));
        assert_eq!(again[2..len], input[2..len]);
    }
    if let Some(request) = ReadRequest::decode(input) {
        assert_eq!(request.encode(), input);
    }
    if let Some(request) = AtomicRequest::decode(input) {
        assert_eq!(AtomicRequest::decode(&request.encode()), Some(request));
    }
    if let Some(response) = AtomicResponse::decode(input) {
        assert_eq!(response.encode(), input);
    }
    if let Some(terminate) = Terminate::decode(input) {
        let mut again = [0; Terminate::MAX_LEN];
        let len = terminate.encode(&mut again);
        assert_eq!(Terminate::decode(&again[..len]), Some(terminate));
    }
}
