//! rANS entropy coder of CRAM 3.0 with four states and 12 bits of probability, of order 0 and 1 (CRAM codec
//! specification, section 2; J. Duda, Asymmetric numeral systems, arXiv:1311.2540).
//!
//! The decoder reads forwards. So the encoder processes the symbols from the last to the first and fills its buffer
//! from the end. A state is divided by the frequency of its symbol with a multiplication (Granlund and Montgomery,
//! Division by invariant integers using multiplication, 1994).

/// Number of preceding bytes on which the probability of a symbol depends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ContextOrder {
    /// The probability does not depend on other bytes.
    Zero,
    /// The probability depends on the preceding byte.
    One,
}

/// Base-2 logarithm of [`TOTAL_FREQUENCY`].
pub(super) const FREQUENCY_BITS: u32 = 12;
/// Sum of the scaled frequencies of all symbols.
pub(super) const TOTAL_FREQUENCY: u32 = 1 << FREQUENCY_BITS;
/// Minimum value of a state between symbols.
const MIN_STATE: u32 = 1 << 23;
/// Number of interleaved states.
pub(super) const NUM_STATES: usize = 4;
/// Number of bytes before the frequency table: order, and sizes of compressed and uncompressed data.
const HEADER_BYTES: usize = 9;

/// A symbol with precomputed numbers by which the encoder state is updated without a division.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct EncoderSymbol {
    /// 2^(31 + shift) / frequency, rounded up.
    reciprocal: u32,
    pub(super) frequency: u16,
    pub(super) start: u16,
    shift: u8,
}

impl EncoderSymbol {
    /// Precomputes the numbers of a symbol with this scaled frequency. `start` is the sum of the frequencies of all
    /// lower symbols.
    pub(super) fn new(frequency: u16, start: u32) -> EncoderSymbol {
        let f = u64::from(frequency);
        let shift = f.next_power_of_two().trailing_zeros();
        // Fits into 32 bits: the frequency is more than half of 2^shift.
        let reciprocal = (1u64 << (31 + shift)).div_ceil(f) as u32;
        EncoderSymbol { reciprocal, frequency, start: start as u16, shift: shift as u8 }
    }

    /// Divides an encoder state, which must be below 2^31, by the frequency of the symbol.
    #[inline]
    pub(super) fn divide_state_by_frequency(self, state: u32) -> u32 {
        ((u64::from(state) * u64::from(self.reciprocal)) >> (31 + self.shift)) as u32
    }
}

/// rANS encoder with reusable tables and buffers.
pub(super) struct RansEncoder {
    counts: Vec<[u32; 256]>,
    symbols: Vec<[EncoderSymbol; 256]>,
    buffer: Vec<u8>,
}

impl RansEncoder {
    pub(super) fn new() -> RansEncoder {
        RansEncoder { counts: Vec::new(), symbols: Vec::new(), buffer: Vec::new() }
    }

    /// Appends the encoded `data` to `out`. Fewer than four bytes are always encoded with order 0.
    pub(super) fn encode(&mut self, data: &[u8], order: ContextOrder, out: &mut Vec<u8>) {
        let order = if data.len() < NUM_STATES { ContextOrder::Zero } else { order };
        let begin = out.len();
        out.push(u8::from(order == ContextOrder::One));
        out.extend_from_slice(&[0; HEADER_BYTES - 1]);
        // A symbol takes at most 12 bits, each state 4 bytes.
        let room = data.len() + data.len() / 2 + 8 * NUM_STATES;
        if self.buffer.len() < room {
            self.buffer.resize(room, 0);
        }
        let at = match order {
            ContextOrder::Zero => self.encode_order0(data, out),
            ContextOrder::One => self.encode_order1(data, out),
        };
        out.extend_from_slice(&self.buffer[at..]);
        let coded = (out.len() - begin - HEADER_BYTES) as u32;
        out[begin + 1..begin + 5].copy_from_slice(&coded.to_le_bytes());
        out[begin + 5..begin + HEADER_BYTES].copy_from_slice(&(data.len() as u32).to_le_bytes());
    }

    /// Encodes with order 0: appends the frequency table to `out` and writes the encoded bytes to the end of
    /// `self.buffer`. Returns the offset in `self.buffer` at which they begin.
    fn encode_order0(&mut self, data: &[u8], out: &mut Vec<u8>) -> usize {
        let mut counts = [0u32; 256];
        data.iter().for_each(|&byte| counts[usize::from(byte)] += 1);
        self.symbols.resize(1.max(self.symbols.len()), [EncoderSymbol::default(); 256]);
        if !data.is_empty() {
            write_frequency_table(&counts, &mut self.symbols[0], out);
        }
        out.push(0);
        encode_symbols_of_order0(BackwardWriter::new(&mut self.buffer), data, &self.symbols[0])
    }

    fn encode_order1(&mut self, data: &[u8], out: &mut Vec<u8>) -> usize {
        self.symbols.resize(256, [EncoderSymbol::default(); 256]);
        count_bytes_by_preceding_byte(data, &mut self.counts);
        let present: [bool; 256] = std::array::from_fn(|context| self.counts[context].iter().any(|&n| n > 0));
        write_list_of_occurring_bytes(&present, out, |context, out| {
            write_frequency_table(&self.counts[context], &mut self.symbols[context], out);
            out.push(0);
        });
        out.push(0);
        encode_symbols_of_order1(BackwardWriter::new(&mut self.buffer), data, &self.symbols)
    }
}

/// Counts each byte by the byte before it, which is 0 for the first byte. The first byte of each further state is counted
/// a second time, after byte 0. `data` has at least [`NUM_STATES`] bytes.
pub(super) fn count_bytes_by_preceding_byte(data: &[u8], counts: &mut Vec<[u32; 256]>) {
    counts.resize(256, [0; 256]);
    counts.iter_mut().for_each(|counts| counts.fill(0));
    let mut before = 0;
    for &byte in data {
        counts[before][usize::from(byte)] += 1;
        before = usize::from(byte);
    }
    for state in 1..NUM_STATES {
        // Each state begins with context 0.
        counts[0][usize::from(data[state * (data.len() / NUM_STATES)])] += 1;
    }
}

/// Updates encoder states and writes the bytes or words that leave them. Fills a buffer from its end.
pub(super) trait RansStateEncoder {
    /// Minimum value of a state between symbols.
    const MIN_STATE: u32;

    /// Encodes a symbol by updating `state`.
    fn encode_symbol(&mut self, state: &mut u32, symbol: EncoderSymbol);

    /// Writes the final states. Returns the offset in the buffer at which the encoded bytes begin.
    fn finish(self, states: [u32; NUM_STATES]) -> usize;
}

/// Encodes `data` with order 0. Returns the offset in the buffer at which the encoded bytes begin.
pub(super) fn encode_symbols_of_order0<W: RansStateEncoder>(
    mut writer: W,
    data: &[u8],
    symbols: &[EncoderSymbol; 256],
) -> usize {
    let mut states = [W::MIN_STATE; NUM_STATES];
    for (i, &byte) in data.iter().enumerate().rev() {
        writer.encode_symbol(&mut states[i % NUM_STATES], symbols[usize::from(byte)]);
    }
    writer.finish(states)
}

/// Encodes `data` with order 1. `symbols` has one table for each preceding byte. Returns the offset in the buffer at
/// which the encoded bytes begin.
pub(super) fn encode_symbols_of_order1<W: RansStateEncoder>(
    mut writer: W,
    data: &[u8],
    symbols: &[[EncoderSymbol; 256]],
) -> usize {
    let quarter = data.len() / NUM_STATES;
    let mut states = [W::MIN_STATE; NUM_STATES];
    let symbol = |i: usize, first: bool| {
        let context = if first { 0 } else { usize::from(data[i - 1]) };
        symbols[context][usize::from(data[i])]
    };
    // The last state also encodes the bytes that remain after four quarters.
    for i in (NUM_STATES * quarter..data.len()).rev() {
        writer.encode_symbol(&mut states[NUM_STATES - 1], symbol(i, false));
    }
    for i in (0..quarter).rev() {
        for state in (0..NUM_STATES).rev() {
            writer.encode_symbol(&mut states[state], symbol(state * quarter + i, i == 0));
        }
    }
    writer.finish(states)
}

/// Fills a buffer with bytes from its end.
struct BackwardWriter<'a> {
    buffer: &'a mut [u8],
    at: usize,
}

impl BackwardWriter<'_> {
    fn new(buffer: &mut [u8]) -> BackwardWriter<'_> {
        BackwardWriter { at: buffer.len(), buffer }
    }

    #[inline]
    fn push_byte(&mut self, byte: u8) {
        self.at -= 1;
        self.buffer[self.at] = byte;
    }
}

impl RansStateEncoder for BackwardWriter<'_> {
    const MIN_STATE: u32 = MIN_STATE;

    #[inline]
    fn encode_symbol(&mut self, state: &mut u32, symbol: EncoderSymbol) {
        let frequency = u32::from(symbol.frequency);
        let mut x = *state;
        // The state stays below 2^31.
        let renormalization_bound = (MIN_STATE >> FREQUENCY_BITS << 8) * frequency;
        while x >= renormalization_bound {
            self.push_byte(x as u8);
            x >>= 8;
        }
        *state = x + symbol.divide_state_by_frequency(x) * (TOTAL_FREQUENCY - frequency) + u32::from(symbol.start);
    }

    fn finish(mut self, states: [u32; NUM_STATES]) -> usize {
        for state in states.iter().rev() {
            state.to_be_bytes().iter().for_each(|&byte| self.push_byte(byte));
        }
        self.at
    }
}

/// Writes the list of the bytes that occur, in ascending order; `write` appends the data of each byte after it. Of
/// consecutive bytes, only the first two and the number of further ones are written.
pub(super) fn write_list_of_occurring_bytes(
    present: &[bool; 256],
    out: &mut Vec<u8>,
    mut write: impl FnMut(usize, &mut Vec<u8>),
) {
    let mut implied = 0;
    for byte in (0..256).filter(|&byte| present[byte]) {
        if implied > 0 {
            implied -= 1;
        } else {
            out.push(byte as u8);
            if byte > 0 && present[byte - 1] {
                implied = present[byte + 1..].iter().take_while(|&&present| present).count();
                out.push(implied as u8);
            }
        }
        write(byte, out);
    }
}

fn write_frequency_table(counts: &[u32; 256], symbols: &mut [EncoderSymbol; 256], out: &mut Vec<u8>) {
    let frequencies = scale_counts_to_total_frequency(counts);
    let mut start = 0;
    let present = frequencies.map(|f| f > 0);
    write_list_of_occurring_bytes(&present, out, |byte, out| {
        let f = frequencies[byte];
        if f < 0x80 {
            out.push(f as u8);
        } else {
            out.extend_from_slice(&(f | 0x8000).to_be_bytes());
        }
        symbols[byte] = EncoderSymbol::new(f, start);
        start += u32::from(f);
    });
}

/// Scales counts to a sum of [`TOTAL_FREQUENCY`]; every byte that occurs keeps a frequency of at least 1.
pub(super) fn scale_counts_to_total_frequency(counts: &[u32; 256]) -> [u16; 256] {
    let all: u64 = counts.iter().map(|&n| u64::from(n)).sum();
    let mut scaled = counts.map(|n| match n {
        0 => 0,
        n => ((u64::from(n) * u64::from(TOTAL_FREQUENCY)) / all).max(1) as u16,
    });
    loop {
        let sum: i32 = scaled.iter().map(|&f| i32::from(f)).sum();
        let over = sum - TOTAL_FREQUENCY as i32;
        let most = scaled.iter().copied().enumerate().max_by_key(|&(_, f)| f);
        let Some((at, most)) = most.filter(|_| over != 0) else { return scaled };
        // Never reduce a frequency by more than half.
        scaled[at] = (i32::from(most) - over.min(i32::from(most) / 2)) as u16;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Reads the list of the bytes that occur, and calls `read` for each of them.
    fn read_list_of_bytes(next: &mut dyn FnMut() -> u8, read: &mut dyn FnMut(u8, &mut dyn FnMut() -> u8)) {
        let (mut byte, mut implied) = (next(), 0);
        loop {
            read(byte, next);
            if implied > 0 {
                implied -= 1;
                byte += 1;
                continue;
            }
            let following = next();
            if following == 0 {
                return;
            }
            if following - 1 == byte {
                implied = next();
            }
            byte = following;
        }
    }

    /// Reads the start and the frequency of each byte that occurs.
    fn read_frequency_table(next: &mut dyn FnMut() -> u8, table: &mut [(u32, u32); 256]) {
        let mut start = 0;
        read_list_of_bytes(next, &mut |byte, next| {
            let first = u32::from(next());
            let frequency = if first < 128 { first } else { (first & 127) << 8 | u32::from(next()) };
            table[usize::from(byte)] = (start, frequency);
            start += frequency;
        });
        assert_eq!(start, TOTAL_FREQUENCY);
    }

    /// A plain decoder written from the specification.
    fn decode(coded: &[u8]) -> Vec<u8> {
        let number = |at: usize| u32::from_le_bytes(coded[at..at + 4].try_into().unwrap()) as usize;
        assert_eq!(number(1), coded.len() - HEADER_BYTES);
        let mut at = HEADER_BYTES;
        let mut next = || {
            at += 1;
            coded[at - 1]
        };
        let mut tables = vec![[(0u32, 0u32); 256]; 256];
        let one = coded[0] == 1;
        if one {
            read_list_of_bytes(&mut next, &mut |context, next| {
                read_frequency_table(next, &mut tables[usize::from(context)]);
            });
        } else if number(5) > 0 {
            read_frequency_table(&mut next, &mut tables[0]);
        } else {
            next();
        }
        let mut states = [0u32; 4];
        for state in &mut states {
            *state = u32::from_le_bytes([next(), next(), next(), next()]);
        }
        let size = number(5);
        let mut out = vec![0; size];
        let mut step = |state: &mut u32, context: u8| {
            let low = *state & (TOTAL_FREQUENCY - 1);
            let table = &tables[usize::from(context)];
            let byte = (0..256).find(|&b| (table[b].0..table[b].0 + table[b].1).contains(&low)).unwrap();
            *state = table[byte].1 * (*state >> FREQUENCY_BITS) + low - table[byte].0;
            while *state < MIN_STATE {
                *state = *state << 8 | u32::from(next());
            }
            byte as u8
        };
        if one {
            let quarter = size / 4;
            let mut before = [0; 4];
            for i in 0..quarter {
                for s in 0..4 {
                    before[s] = step(&mut states[s], before[s]);
                    out[s * quarter + i] = before[s];
                }
            }
            for byte in &mut out[4 * quarter..] {
                before[3] = step(&mut states[3], before[3]);
                *byte = before[3];
            }
        } else {
            for (i, byte) in out.iter_mut().enumerate() {
                *byte = step(&mut states[i % 4], 0);
            }
        }
        assert_eq!(at, coded.len());
        out
    }

    fn assert_round_trip(data: &[u8]) {
        let mut coder = RansEncoder::new();
        for order in [ContextOrder::Zero, ContextOrder::One] {
            let mut coded = Vec::new();
            coder.encode(data, order, &mut coded);
            assert!(decode(&coded) == data, "{order:?} {data:?}");
        }
    }

    #[test]
    fn what_is_special_comes_back() {
        assert_round_trip(b"");
        assert_round_trip(b"abc");
        assert_round_trip(&[7; 1000]);
        assert_round_trip(&[255; 5]);
        assert_round_trip(&(0..=255).collect::<Vec<u8>>());
        assert_round_trip(&(0..=255).cycle().take(70_001).collect::<Vec<u8>>());
        // One symbol has almost all of the frequency.
        let mut rare = vec![0; 100_000];
        (0..256).for_each(|i| rare[i * 300] = i as u8);
        assert_round_trip(&rare);
    }

    #[test]
    fn skewed_bytes_become_small() {
        let data: Vec<u8> = (0..10_000u32).map(|i| if i % 16 == 0 { b'x' } else { b'y' }).collect();
        let mut out = Vec::new();
        RansEncoder::new().encode(&data, ContextOrder::Zero, &mut out);
        // The entropy is 0.337 bits per byte.
        assert!(out.len() < 460, "{}", out.len());
    }

    proptest! {
        #[test]
        fn anything_comes_back(data in prop::collection::vec(prop_oneof![Just(40u8), 30u8..45, any::<u8>()], 0..3000)) {
            assert_round_trip(&data);
        }
    }
}
