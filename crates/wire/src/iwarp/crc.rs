//! CRC32c over bytes that lie in several places (RFC 5044 section 4.4).

/// A CRC32c under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Crc(u32);

impl Crc {
    /// The CRC of no bytes.
    pub const EMPTY: Crc = Crc(0);

    /// Takes the next bytes in.
    #[inline]
    pub fn update(&mut self, bytes: &[u8]) {
        self.0 = crc32c::crc32c_append(self.0, bytes);
    }

    /// The field as it is sent: in the order of iSCSI, the least significant byte first.
    #[inline]
    pub fn field(self) -> [u8; 4] {
        self.0.to_le_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crc(bytes: &[u8]) -> [u8; 4] {
        let mut crc = Crc::EMPTY;
        crc.update(bytes);
        crc.field()
    }

    /// The examples of RFC 3720 appendix B.4, which RFC 5044 refers to, as they are on the wire.
    #[test]
    fn the_examples_of_iscsi() {
        assert_eq!(crc(&[0; 32]), [0xaa, 0x36, 0x91, 0x8a]);
        assert_eq!(crc(&[0xff; 32]), [0x43, 0xab, 0xa8, 0x62]);
        let rising: Vec<u8> = (0..32).collect();
        assert_eq!(crc(&rising), [0x4e, 0x79, 0xdd, 0x46]);
        let falling: Vec<u8> = (0..32).rev().collect();
        assert_eq!(crc(&falling), [0x5c, 0xdb, 0x3f, 0x11]);
        let mut read = [0u8; 48];
        read[..2].copy_from_slice(&[0x01, 0xc0]);
        read[16] = 0x14;
        read[22] = 0x04;
        read[27] = 0x14;
        read[31] = 0x18;
        read[32] = 0x28;
        read[40] = 0x02;
        assert_eq!(crc(&read), [0x56, 0x3a, 0x96, 0xd9]);
    }

    #[test]
    fn cuts_do_not_matter() {
        let bytes: Vec<u8> = (0..3000u32).map(|i| (i * 7) as u8).collect();
        for cut in [0, 1, 3, 8, 255, 1024, 2999, 3000] {
            let mut parts = Crc::EMPTY;
            parts.update(&bytes[..cut]);
            parts.update(&bytes[cut..]);
            assert_eq!(parts.field(), crc(&bytes));
        }
    }
}
