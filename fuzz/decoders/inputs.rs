//! Inputs for decoders without a fuzzer: noise and mutations of good input, the same in each run.

/// Calls `decode` with `count` inputs.
pub fn try_many(good: &[&[u8]], count: usize, decode: fn(&[u8])) {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = move |end: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 16) as usize % end
    };
    for round in 0..count {
        let mut input: Vec<u8> = if round % 4 == 0 || good.is_empty() {
            (0..next(100)).map(|_| next(256) as u8).collect()
        } else {
            good[next(good.len())].to_vec()
        };
        for _ in 0..next(4) {
            let at = next(input.len() + 1);
            match next(5) {
                0 => input.insert(at, next(256) as u8),
                1 => input.truncate(at),
                2 if at < input.len() => drop(input.remove(at)),
                3 if at < input.len() => input[at] ^= 1 << next(8),
                _ => {
                    let again = input[at..].to_vec();
                    input.extend(again);
                }
            }
        }
        let _input = OnPanic(&input);
        decode(&input);
    }
}

struct OnPanic<'a>(&'a [u8]);

impl Drop for OnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("input {:?}", self.0);
        }
    }
}
