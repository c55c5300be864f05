//! rANS entropy coder of CRAM 3.1 with four states, 12 bits of probability and 16-bit words, of order 0 and 1, with bit
//! packing and striping (CRAM codec specification, section 3).
//!
//! As in [`super::rans`], symbols are encoded from the last to the first.

use super::rans::{
    ContextOrder, EncoderSymbol, FREQUENCY_BITS, NUM_STATES, RansStateEncoder, TOTAL_FREQUENCY,
    count_bytes_by_preceding_byte, encode_symbols_of_order0, encode_symbols_of_order1, scale_counts_to_total_frequency,
    write_list_of_occurring_bytes,
};

/// Minimum value of a state between symbols.
const MIN_STATE: u32 = 1 << 15;
/// Maximum number of distinct byte values for which bit packing is possible.
const MAX_PACKED_SYMBOLS: usize = 16;

/// Bits of the first byte of encoded data.
mod format_flag {
    /// The probabilities depend on the preceding byte (order 1).
    pub(crate) const ORDER_ONE_FLAG: u8 = 1;
    /// The bytes of 32-bit numbers are encoded separately ([`super::Nx16Method::Striped`]).
    pub(crate) const STRIPED_FLAG: u8 = 8;
    /// The uncompressed size is not stored.
    pub(crate) const SIZE_NOT_STORED_FLAG: u8 = 16;
    /// The data are stored uncompressed.
    pub const STORED_UNCOMPRESSED_FLAG: u8 = 32;
    /// Several values are packed in a byte ([`super::Nx16Method::Packed`]).
    pub const PACKED_VALUES_FLAG: u8 = 128;
}

/// How the bytes of a block are arranged before they are encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Nx16Method {
    /// Bytes in their order.
    Plain(ContextOrder),
    /// Several values in a byte; only for data with 2 to 16 distinct byte values.
    Packed(ContextOrder),
    /// For 32-bit numbers: the first bytes of all numbers, then their second bytes, and so on, each encoded
    /// separately.
    Striped,
}

/// rANS Nx16 encoder with reusable tables and buffers.
pub(super) struct Nx16Encoder {
    counts: Vec<[u32; 256]>,
    symbols: Vec<[EncoderSymbol; 256]>,
    buffer: Vec<u8>,
    packed: Vec<u8>,
}

/// Appends an integer with seven bits in each byte, the highest bits first. The highest bit of a byte is set if
/// further bytes follow.
pub(super) fn write_uint7(out: &mut Vec<u8>, value: u32) {
    let bits = 32 - value.leading_zeros();
    for group in (0..bits.div_ceil(7).max(1)).rev() {
        let more = if group > 0 { 0x80 } else { 0 };
        out.push((value >> (7 * group)) as u8 & 0x7f | more);
    }
}

impl Nx16Encoder {
    pub(super) fn new() -> Nx16Encoder {
        Nx16Encoder { counts: Vec::new(), symbols: Vec::new(), buffer: Vec::new(), packed: Vec::new() }
    }

    /// Appends the encoded `data` to `out`, or the uncompressed data if the method is not possible for them.
    pub(super) fn encode(&mut self, data: &[u8], method: Nx16Method, out: &mut Vec<u8>) {
        match method {
            Nx16Method::Plain(order) => self.encode_plain(data, order, true, out),
            Nx16Method::Packed(order) => self.encode_packed(data, order, out),
            Nx16Method::Striped => self.encode_striped(data, out),
        }
    }

    /// Encodes `data` with each of `methods`, and appends the smallest result to `out`, or the uncompressed data if
    /// these are smaller.
    pub(super) fn append_smallest_encoding(&mut self, data: &[u8], methods: &[Nx16Method], out: &mut Vec<u8>) {
        let begin = out.len();
        out.push(format_flag::STORED_UNCOMPRESSED_FLAG);
        write_uint7(out, data.len() as u32);
        out.extend_from_slice(data);
        for &method in methods {
            let best = out.len();
            self.encode(data, method, out);
            keep_smaller(out, begin, best);
        }
    }

    fn encode_striped(&mut self, data: &[u8], out: &mut Vec<u8>) {
        const STRIPES: usize = 4;
        out.push(format_flag::STRIPED_FLAG);
        write_uint7(out, data.len() as u32);
        out.push(STRIPES as u8);
        let (mut lengths, mut streams, mut stripe) = (Vec::new(), Vec::new(), Vec::new());
        for first in 0..STRIPES {
            stripe.clear();
            stripe.extend(data.iter().skip(first).step_by(STRIPES));
            let begin = streams.len();
            streams.push(format_flag::STORED_UNCOMPRESSED_FLAG | format_flag::SIZE_NOT_STORED_FLAG);
            streams.extend_from_slice(&stripe);
            for order in [ContextOrder::Zero, ContextOrder::One] {
                let best = streams.len();
                self.encode_plain(&stripe, order, false, &mut streams);
                keep_smaller(&mut streams, begin, best);
            }
            lengths.push((streams.len() - begin) as u32);
        }
        lengths.into_iter().for_each(|length| write_uint7(out, length));
        out.extend_from_slice(&streams);
    }

    fn encode_plain(&mut self, data: &[u8], order: ContextOrder, has_size: bool, out: &mut Vec<u8>) {
        let begin = out.len();
        out.push(0);
        let flags = if has_size { 0 } else { format_flag::SIZE_NOT_STORED_FLAG };
        if has_size {
            write_uint7(out, data.len() as u32);
        }
        out[begin] = flags | self.encode_bytes(data, order, out);
    }

    fn encode_packed(&mut self, data: &[u8], order: ContextOrder, out: &mut Vec<u8>) {
        let begin = out.len();
        out.push(format_flag::STORED_UNCOMPRESSED_FLAG);
        write_uint7(out, data.len() as u32);
        let mut packed = std::mem::take(&mut self.packed);
        if pack(data, &mut packed, out) {
            out[begin] = format_flag::PACKED_VALUES_FLAG | self.encode_bytes(&packed, order, out);
        } else {
            out.extend_from_slice(data);
        }
        self.packed = packed;
    }

    /// Appends the frequency tables, states and words of `data`; or `data` uncompressed if they are too short. Returns
    /// the format flags.
    fn encode_bytes(&mut self, data: &[u8], order: ContextOrder, out: &mut Vec<u8>) -> u8 {
        if data.len() < NUM_STATES {
            out.extend_from_slice(data);
            return format_flag::STORED_UNCOMPRESSED_FLAG;
        }
        match order {
            ContextOrder::Zero => {
                self.encode_order0(data, out);
                0
            }
            ContextOrder::One => {
                self.encode_order1(data, out);
                format_flag::ORDER_ONE_FLAG
            }
        }
    }

    /// Appends frequency table, states and words of order 0, without a size.
    fn encode_order0(&mut self, data: &[u8], out: &mut Vec<u8>) {
        let mut counts = [0u32; 256];
        data.iter().for_each(|&byte| counts[usize::from(byte)] += 1);
        let frequencies = scale_counts_to_total_frequency(&counts);
        write_list_of_occurring_bytes(&frequencies.map(|f| f > 0), out, |_, _| {});
        out.push(0);
        frequencies.iter().filter(|&&f| f > 0).for_each(|&f| write_uint7(out, u32::from(f)));
        self.symbols.resize(1.max(self.symbols.len()), [EncoderSymbol::default(); 256]);
        fill_symbols(&frequencies, &mut self.symbols[0]);
        let writer = WordWriter::new(&mut self.buffer, data.len());
        let at = encode_symbols_of_order0(writer, data, &self.symbols[0]);
        out.extend_from_slice(&self.buffer[at..]);
    }

    /// Appends frequency tables, states and words of order 1, without a size. `data` has at least [`NUM_STATES`] bytes.
    fn encode_order1(&mut self, data: &[u8], out: &mut Vec<u8>) {
        self.symbols.resize(256, [EncoderSymbol::default(); 256]);
        count_bytes_by_preceding_byte(data, &mut self.counts);
        // Contexts and bytes have one list, which has the first context as well.
        let mut present = [false; 256];
        present[0] = true;
        data.iter().for_each(|&byte| present[usize::from(byte)] = true);
        // The tables themselves are not encoded: htscodecs 1.3 cannot read that for data with one successor of each
        // byte.
        out.push((FREQUENCY_BITS as u8) << 4);
        write_list_of_occurring_bytes(&present, out, |_, _| {});
        out.push(0);
        for context in (0..256).filter(|&context| present[context]) {
            let mut frequencies = [0; 256];
            if self.counts[context].iter().any(|&n| n > 0) {
                frequencies = scale_counts_to_total_frequency(&self.counts[context]);
                fill_symbols(&frequencies, &mut self.symbols[context]);
            }
            write_frequency_row(&frequencies, &present, out);
        }

        let writer = WordWriter::new(&mut self.buffer, data.len());
        let at = encode_symbols_of_order1(writer, data, &self.symbols);
        out.extend_from_slice(&self.buffer[at..]);
    }
}

/// Of two encodings at the end of `out`, which begin at `begin` and at `next`, keeps the smaller one.
fn keep_smaller(out: &mut Vec<u8>, begin: usize, next: usize) {
    let (first, second) = (next - begin, out.len() - next);
    if second < first {
        out.copy_within(next.., begin);
        out.truncate(begin + second);
    } else {
        out.truncate(next);
    }
}

/// Packs several values in a byte, the first in the lowest bits. Appends the list of distinct values and the packed
/// size to `out`. Returns false and appends nothing unless `data` has 2 to 16 distinct values.
fn pack(data: &[u8], packed: &mut Vec<u8>, out: &mut Vec<u8>) -> bool {
    let mut present = [false; 256];
    data.iter().for_each(|&byte| present[usize::from(byte)] = true);
    let values: Vec<u8> = (0..=255).filter(|&byte| present[usize::from(byte)]).collect();
    let bits = match values.len() {
        2 => 1,
        3..=4 => 2,
        5..=MAX_PACKED_SYMBOLS => 4,
        _ => return false,
    };
    let mut codes = [0; 256];
    (0..).zip(&values).for_each(|(code, &byte)| codes[usize::from(byte)] = code);
    packed.clear();
    let byte_of = |bytes: &[u8]| bytes.iter().rev().fold(0u8, |all, &byte| all << bits | codes[usize::from(byte)]);
    packed.extend(data.chunks(8 / bits).map(byte_of));
    out.push(values.len() as u8);
    out.extend_from_slice(&values);
    write_uint7(out, packed.len() as u32);
    true
}

/// Appends the frequencies of the bytes that are present. A zero is followed by the number of further zeros.
fn write_frequency_row(frequencies: &[u16; 256], present: &[bool; 256], out: &mut Vec<u8>) {
    let mut zeros: Option<u8> = None;
    for byte in (0..256).filter(|&byte| present[byte]) {
        match (frequencies[byte], &mut zeros) {
            (0, Some(n)) => *n += 1,
            (0, none) => {
                out.push(0);
                *none = Some(0);
            }
            (f, run) => {
                out.extend(run.take());
                write_uint7(out, u32::from(f));
            }
        }
    }
    out.extend(zeros);
}

fn fill_symbols(frequencies: &[u16; 256], symbols: &mut [EncoderSymbol; 256]) {
    let mut start = 0;
    for (symbol, &f) in symbols.iter_mut().zip(frequencies).filter(|(_, f)| **f > 0) {
        *symbol = EncoderSymbol::new(f, start);
        start += u32::from(f);
    }
}

/// Fills a buffer with 16-bit words from its end.
struct WordWriter<'a> {
    buffer: &'a mut [u8],
    at: usize,
}

impl WordWriter<'_> {
    /// Creates a writer into `buffer`, which is enlarged for the words of `symbols` symbols and the final states.
    fn new(buffer: &mut Vec<u8>, symbols: usize) -> WordWriter<'_> {
        let room = 2 * symbols + 8 * NUM_STATES;
        if buffer.len() < room {
            buffer.resize(room, 0);
        }
        WordWriter { at: buffer.len(), buffer }
    }
}

impl RansStateEncoder for WordWriter<'_> {
    const MIN_STATE: u32 = MIN_STATE;

    #[inline]
    fn encode_symbol(&mut self, state: &mut u32, symbol: EncoderSymbol) {
        let frequency = u32::from(symbol.frequency);
        let mut x = *state;
        // The state stays below 2^31, so that one word is enough.
        if x >= (MIN_STATE >> FREQUENCY_BITS << 16) * frequency {
            self.at -= 2;
            self.buffer[self.at..self.at + 2].copy_from_slice(&(x as u16).to_le_bytes());
            x >>= 16;
        }
        *state = x + symbol.divide_state_by_frequency(x) * (TOTAL_FREQUENCY - frequency) + u32::from(symbol.start);
    }

    fn finish(mut self, states: [u32; NUM_STATES]) -> usize {
        for state in states.iter().rev() {
            self.at -= 4;
            self.buffer[self.at..self.at + 4].copy_from_slice(&state.to_le_bytes());
        }
        self.at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_have_the_highest_bits_first() {
        let made = |value| {
            let mut out = Vec::new();
            write_uint7(&mut out, value);
            out
        };
        assert_eq!((made(0), made(127), made(128)), (vec![0], vec![127], vec![0x81, 0]));
        assert_eq!((made(4096), made(u32::MAX)), (vec![0xa0, 0], vec![0x8f, 0xff, 0xff, 0xff, 0x7f]));
    }

    #[test]
    fn encoded_bytes_are_those_of_the_specification() {
        let encoded = |data: &[u8], method| {
            let mut out = Vec::new();
            Nx16Encoder::new().encode(data, method, &mut out);
            out
        };
        let states = [0, 0x80, 0, 0].repeat(4);
        // One symbol of frequency 4096, which changes no state.
        let plain = encoded(&[7; 100], Nx16Method::Plain(ContextOrder::Zero));
        assert_eq!(plain, [&[0, 100, 7, 0, 0xa0, 0][..], &states].concat());
        // Bits 0101 of the codes of a and b.
        let packed = encoded(&b"ba".repeat(16), Nx16Method::Packed(ContextOrder::Zero));
        assert_eq!(packed, [&[128, 32, 2, b'a', b'b', 4, 0x55, 0, 0xa0, 0][..], &states].concat());
        // Fewer than four bytes are stored.
        assert_eq!(encoded(b"abc", Nx16Method::Plain(ContextOrder::One)), b"\x20\x03abc");
        assert_eq!(encoded(b"", Nx16Method::Striped), [&[8, 0, 4, 1, 1, 1, 1][..], &[48; 4]].concat());
    }

    #[test]
    fn the_smallest_encoding_is_kept() {
        let methods =
            [Nx16Method::Plain(ContextOrder::Zero), Nx16Method::Plain(ContextOrder::One), Nx16Method::Striped];
        let mut rans = Nx16Encoder::new();
        let numbers: Vec<u8> = (0..4000u32).flat_map(|i| (i * i % 3001).to_le_bytes()).collect();
        for data in [&b"abab".repeat(500)[..], &numbers, b"xyzzy", b""] {
            let sizes = methods.map(|method| {
                let mut out = Vec::new();
                rans.encode(data, method, &mut out);
                out.len()
            });
            let mut out = b"before".to_vec();
            rans.append_smallest_encoding(data, &methods, &mut out);
            assert!(out.starts_with(b"before"));
            let least = sizes.into_iter().min().unwrap();
            assert!(out.len() - 6 <= least && (data.len() < 10 || out.len() - 6 == least), "{sizes:?} {}", out.len());
        }
    }
}
