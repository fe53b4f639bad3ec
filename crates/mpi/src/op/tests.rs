use super::*;

fn run<const N: usize>(op: Predefined, basic: Basic, a: &[[u8; N]], b: &[[u8; N]]) -> Vec<[u8; N]> {
    // One byte in front makes every element unaligned.
    let shifted = |v: &[[u8; N]]| [&[0u8][..], v.as_flattened()].concat();
    let (input, mut inout) = (shifted(a), shifted(b));
    apply(op, basic, &input[1..], &mut inout[1..]);
    assert_eq!(inout[0], 0);
    inout[1..].as_chunks::<N>().0.to_vec()
}

#[test]
fn sums_products_and_extremes() {
    let bytes = |v: [i32; 3]| v.map(i32::to_ne_bytes);
    let (a, b) = (bytes([7, -3, i32::MAX]), bytes([5, -8, 1]));
    assert_eq!(run(Predefined::Sum, Basic::I32, &a, &b), bytes([12, -11, i32::MIN]));
    assert_eq!(run(Predefined::Prod, Basic::I32, &a, &b), bytes([35, 24, i32::MAX]));
    assert_eq!(run(Predefined::Min, Basic::I32, &a, &b), bytes([5, -8, 1]));
    assert_eq!(run(Predefined::Max, Basic::I32, &a, &b), bytes([7, -3, i32::MAX]));
    assert_eq!(run(Predefined::Max, Basic::U32, &a, &b), bytes([7, -3, i32::MAX]));
    assert_eq!(run(Predefined::Min, Basic::U32, &bytes([-1; 3]), &bytes([1; 3])), bytes([1; 3]));
    let bytes = |v: [f64; 2]| v.map(f64::to_ne_bytes);
    assert_eq!(run(Predefined::Sum, Basic::F64, &bytes([1.5, -2.0]), &bytes([2.0, 3.0])), bytes([3.5, 1.0]));
    let z = run(Predefined::Prod, Basic::ComplexF64, &bytes([1.0, 2.0]), &bytes([3.0, -4.0]));
    assert_eq!(z, bytes([11.0, 2.0]));
    let z = run(Predefined::Sum, Basic::ComplexF64, &bytes([1.0, 2.0]), &bytes([3.0, -4.0]));
    assert_eq!(z, bytes([4.0, -2.0]));
}

#[test]
fn char_is_the_integer_of_c_and_character_is_none() {
    let byte = |v: i16| [[v as u8]];
    assert_eq!(run(Predefined::Sum, Basic::Char, &byte(100), &byte(-56)), byte(44));
    let greater = if std::ffi::c_char::MIN < 0 { byte(100) } else { byte(-56) };
    assert_eq!(run(Predefined::Max, Basic::Char, &byte(100), &byte(-56)), greater);
    for op in Predefined::ALL {
        let refused = matches!(op, Predefined::Minloc | Predefined::Maxloc);
        assert_eq!(op.takes(Basic::Char), !refused, "{}", op.name());
        let transfer = matches!(op, Predefined::Replace | Predefined::NoOp);
        assert_eq!(op.takes(Basic::Character), transfer, "{}", op.name());
    }
}

#[test]
fn bits_and_truth() {
    let (a, b) = ([[0b1100]], [[0b1010]]);
    assert_eq!(run(Predefined::Band, Basic::Byte, &a, &b), [[0b1000]]);
    assert_eq!(run(Predefined::Bor, Basic::U8, &a, &b), [[0b1110]]);
    assert_eq!(run(Predefined::Bxor, Basic::I8, &a, &b), [[0b0110]]);
    assert_eq!(run(Predefined::Land, Basic::Char, &a, &[[0]]), [[0]]);
    let bytes = |v: [i16; 4]| v.map(i16::to_ne_bytes);
    let (a, b) = (bytes([0, 0, -256, 2]), bytes([0, 5, 0, 1]));
    assert_eq!(run(Predefined::Land, Basic::Logical16, &a, &b), bytes([0, 0, 0, 1]));
    assert_eq!(run(Predefined::Lor, Basic::I16, &a, &b), bytes([0, 1, 1, 1]));
    assert_eq!(run(Predefined::Lxor, Basic::I16, &a, &b), bytes([0, 1, 1, 0]));
}

#[test]
fn half_precision_rounds_to_nearest_even() {
    let sum = |a: u16, b: u16| {
        let sum = run(Predefined::Sum, Basic::F16, &[a.to_ne_bytes()], &[b.to_ne_bytes()]);
        u16::from_ne_bytes(sum[0])
    };
    assert_eq!(sum(0x3c00, 0x3c00), 0x4000); // 1 + 1
    assert_eq!(sum(0x6800, 0x3c00), 0x6800); // 2048 + 1 is a tie: 2048
    assert_eq!(sum(0x6801, 0x3c00), 0x6802); // 2050 + 1 is a tie: 2052
    assert_eq!(sum(0x7bff, 0x7bff), 0x7c00); // overflow
    assert_eq!(sum(0x0001, 0x0001), 0x0002); // subnormal
    assert_eq!(sum(0x03ff, 0x0001), 0x0400); // subnormal to normal
    assert_eq!(sum(0x0400, 0x8001), 0x03ff); // and back
    assert_eq!(sum(0xbc00, 0x3c00), 0x0000);
    assert_eq!(sum(0x7c00, 0xfc00) & 0x7c00, 0x7c00);
    // Every number plus zero is itself.
    for bits in (0..=u16::MAX).filter(|b| b & 0x7c00 != 0x7c00 && *b != 0x8000) {
        assert_eq!(sum(bits, 0), bits, "{bits:#x}");
    }
}

#[test]
fn locations_prefer_the_lower_index() {
    let pair = |value: f64, index: i32| {
        let mut bytes = [0xaa; 16];
        bytes[..8].copy_from_slice(&value.to_ne_bytes());
        bytes[8..12].copy_from_slice(&index.to_ne_bytes());
        bytes
    };
    let key = |v: &[[u8; 16]]| v.iter().map(|e| e[..12].to_vec()).collect::<Vec<_>>();
    let a = [pair(1.0, 4), pair(2.0, 4), pair(3.0, 1)];
    let b = [pair(1.0, 3), pair(2.0, 6), pair(2.5, 9)];
    let least = run(Predefined::Minloc, Basic::DoubleInt, &a, &b);
    assert_eq!(key(&least), key(&[pair(1.0, 3), pair(2.0, 4), pair(2.5, 9)]));
    let most = run(Predefined::Maxloc, Basic::DoubleInt, &a, &b);
    assert_eq!(key(&most), key(&[pair(1.0, 3), pair(2.0, 4), pair(3.0, 1)]));
    let short = |value: i16, index: i32| {
        let mut bytes = [0; 8];
        bytes[..2].copy_from_slice(&value.to_ne_bytes());
        bytes[4..].copy_from_slice(&index.to_ne_bytes());
        bytes
    };
    let most = run(Predefined::Maxloc, Basic::ShortInt, &[short(-5, 1)], &[short(-4, 2)]);
    assert_eq!(most, [short(-4, 2)]);
}

/// Every combination either computes or is refused by name; none panics.
#[test]
fn every_operation_meets_every_type() {
    let mut taken = 0;
    for row in basic::PREDEFINED {
        let extent = row.basic.extent() as usize;
        for op in Predefined::ALL {
            let checked = Op::Predefined(op).check(Some(row.basic), row.handle);
            let handle = Handle(op as u32);
            assert_eq!(reduces(handle, row.handle), checked.is_ok(), "{} of {}", op.name(), row.name);
            match checked {
                Ok(()) => {
                    taken += 1;
                    let mut inout = vec![1; 3 * extent];
                    apply(op, row.basic, &vec![1; 3 * extent], &mut inout);
                }
                Err(error) => {
                    assert_eq!(error.class, Class::OP);
                    assert!(error.text.contains(op.name()), "{}", error.text);
                    if !matches!(op, Predefined::Replace | Predefined::NoOp) {
                        assert!(error.text.contains(row.name), "{}", error.text);
                    }
                }
            }
        }
    }
    assert!(taken > 200, "{taken}");
    assert!(Op::Predefined(Predefined::Sum).check(None, Handle(1 << 20)).is_err());
    assert_eq!(Predefined::from_handle(Handle(0x39)), Some(Predefined::Maxloc));
    assert_eq!(Predefined::from_handle(OP_NULL), None);
    for (op, datatype) in
        [(OP_NULL, basic::BYTE), (Handle(1 << 20), basic::BYTE), (Handle(0x29), Handle(1 << 20))]
    {
        assert!(!reduces(op, datatype), "{op:?} of {datatype:?}");
    }
    assert!(!reduces(Handle(0x29), basic::DATATYPE_NULL));
}
