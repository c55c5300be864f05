//! Variable-length integers ITF8 and LTF8 (CRAM specification 3.1, section 2.3): the number of leading one bits in
//! the first byte is the number of further bytes.

/// Appends a 32-bit integer as ITF8.
pub(super) fn write_itf8(out: &mut Vec<u8>, value: i32) {
    let v = value as u32;
    match v {
        0..0x80 => out.push(v as u8),
        0x80..0x4000 => out.extend_from_slice(&(v as u16 | 0x8000).to_be_bytes()),
        0x4000..0x20_0000 => out.extend_from_slice(&(v | 0xc0_0000).to_be_bytes()[1..]),
        0x20_0000..0x1000_0000 => out.extend_from_slice(&(v | 0xe000_0000).to_be_bytes()),
        // The last byte has only four bits.
        _ => {
            out.push(0xf0 | (v >> 28) as u8);
            out.extend_from_slice(&[(v >> 20) as u8, (v >> 12) as u8, (v >> 4) as u8, (v & 15) as u8]);
        }
    }
}

/// Appends a 64-bit integer as LTF8.
pub(super) fn write_ltf8(out: &mut Vec<u8>, value: u64) {
    // Each byte of the result holds seven bits of the integer; the ninth byte holds all remaining bits.
    let bits = 64 - value.leading_zeros();
    let more = (bits.max(1).div_ceil(7) - 1).min(8) as usize;
    let ones = if more == 0 { 0 } else { (0xff00u16 >> more) as u8 };
    let bytes = value.to_be_bytes();
    match more {
        8 => {
            out.push(0xff);
            out.extend_from_slice(&bytes);
        }
        _ => {
            out.push(ones | bytes[7 - more]);
            out.extend_from_slice(&bytes[8 - more..]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_the_specification_has_them() {
        let made = |value| {
            let mut out = Vec::new();
            write_itf8(&mut out, value);
            out
        };
        assert_eq!(made(0), [0]);
        assert_eq!(made(127), [127]);
        assert_eq!(made(128), [0x80, 0x80]);
        assert_eq!(made(0x3fff), [0xbf, 0xff]);
        assert_eq!(made(0x4000), [0xc0, 0x40, 0]);
        assert_eq!(made(4_542_278), [0xe0, 0x45, 0x4f, 0x46]);
        assert_eq!(made(-1), [0xff, 0xff, 0xff, 0xff, 0x0f]);
        assert_eq!(made(0x1234_5678), [0xf1, 0x23, 0x45, 0x67, 0x08]);
    }

    #[test]
    fn long_ones_come_back() {
        for shift in 0..64 {
            for value in [1u64 << shift, (1 << shift) - 1, (1 << shift) + (1 << (shift / 2))] {
                let mut out = Vec::new();
                write_ltf8(&mut out, value);
                let more = out[0].leading_ones() as usize;
                assert_eq!(out.len(), more + 1, "{value:x}");
                let first = if more >= 7 { 0 } else { u64::from(out[0]) & (0x7f >> more) };
                let back = out[1..].iter().fold(first, |all, &byte| all << 8 | u64::from(byte));
                assert_eq!(back, value);
            }
        }
    }
}
