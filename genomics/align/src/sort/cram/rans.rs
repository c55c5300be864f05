//! rANS with four states and 12 bits of probability, of order 0 and 1: the entropy coder of CRAM 3.0 (CRAM codec specification,
//! section 2; J. Duda, Asymmetric numeral systems, arXiv:1311.2540).
//!
//! The decoder goes forwards, so symbols are put in from the last to the first and bytes written from the back. A state is divided by the
//! frequency of its symbol by multiplying (Granlund and Montgomery, Division by invariant integers using multiplication, 1994).

/// What a symbol's probability depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// Nothing.
    Zero,
    /// The byte before it.
    One,
}

/// Frequencies add up to two to the power of this.
const BITS: u32 = 12;
const TOTAL: u32 = 1 << BITS;
/// No state is smaller between symbols.
const LEAST: u32 = 1 << 23;
/// States that take turns.
const STATES: usize = 4;
/// Bytes before the frequencies: order, and both sizes.
const HEAD: usize = 9;

/// How a symbol changes a state.
#[derive(Debug, Clone, Copy, Default)]
struct Symbol {
    /// 2^(31 + shift) / frequency, rounded up.
    reciprocal: u32,
    frequency: u16,
    start: u16,
    shift: u8,
}

impl Symbol {
    fn new(frequency: u16, start: u32) -> Symbol {
        let f = u64::from(frequency);
        let shift = f.next_power_of_two().trailing_zeros();
        // Fits: the frequency is more than half of 2^shift.
        let reciprocal = (1u64 << (31 + shift)).div_ceil(f) as u32;
        Symbol { reciprocal, frequency, start: start as u16, shift: shift as u8 }
    }
}

/// Tables and room that are used again.
pub(super) struct Coder {
    counts: Vec<[u32; 256]>,
    symbols: Vec<[Symbol; 256]>,
    room: Vec<u8>,
}

impl Coder {
    pub(super) fn new() -> Coder {
        Coder { counts: Vec::new(), symbols: Vec::new(), room: Vec::new() }
    }

    /// Appends the coded form of `data` to `out`. Fewer than four bytes have no order.
    pub(super) fn encode(&mut self, data: &[u8], order: Order, out: &mut Vec<u8>) {
        let order = if data.len() < STATES { Order::Zero } else { order };
        let begin = out.len();
        out.push(u8::from(order == Order::One));
        out.extend_from_slice(&[0; HEAD - 1]);
        // A symbol takes 12 bits at most, each state 4 bytes.
        let room = data.len() + data.len() / 2 + 8 * STATES;
        if self.room.len() < room {
            self.room.resize(room, 0);
        }
        let at = match order {
            Order::Zero => self.zero(data, out),
            Order::One => self.one(data, out),
        };
        out.extend_from_slice(&self.room[at..]);
        let coded = (out.len() - begin - HEAD) as u32;
        out[begin + 1..begin + 5].copy_from_slice(&coded.to_le_bytes());
        out[begin + 5..begin + HEAD].copy_from_slice(&(data.len() as u32).to_le_bytes());
    }

    /// Where in the room the coded bytes begin.
    fn zero(&mut self, data: &[u8], out: &mut Vec<u8>) -> usize {
        let mut counts = [0u32; 256];
        data.iter().for_each(|&byte| counts[usize::from(byte)] += 1);
        self.symbols.resize(1.max(self.symbols.len()), [Symbol::default(); 256]);
        if !data.is_empty() {
            table(&counts, &mut self.symbols[0], out);
        }
        out.push(0);
        let symbols = &self.symbols[0];
        let mut back = Back::new(&mut self.room);
        let mut states = [LEAST; STATES];
        for (i, &byte) in data.iter().enumerate().rev() {
            back.put(&mut states[i % STATES], symbols[usize::from(byte)]);
        }
        back.end(states)
    }

    fn one(&mut self, data: &[u8], out: &mut Vec<u8>) -> usize {
        let quarter = data.len() / STATES;
        self.counts.resize(256, [0; 256]);
        self.symbols.resize(256, [Symbol::default(); 256]);
        self.counts.iter_mut().for_each(|counts| counts.fill(0));
        let mut before = 0;
        for &byte in data {
            self.counts[before][usize::from(byte)] += 1;
            before = usize::from(byte);
        }
        for state in 1..STATES {
            // Each state begins behind a zero.
            self.counts[0][usize::from(data[state * quarter])] += 1;
        }
        let present: [bool; 256] = std::array::from_fn(|context| self.counts[context].iter().any(|&n| n > 0));
        each_present(&present, out, |context, out| {
            table(&self.counts[context], &mut self.symbols[context], out);
            out.push(0);
        });
        out.push(0);

        let symbols = &self.symbols;
        let mut back = Back::new(&mut self.room);
        let mut states = [LEAST; STATES];
        let symbol = |i: usize, first: bool| {
            let context = if first { 0 } else { usize::from(data[i - 1]) };
            symbols[context][usize::from(data[i])]
        };
        // The last state goes on with what four quarters leave.
        for i in (STATES * quarter..data.len()).rev() {
            back.put(&mut states[STATES - 1], symbol(i, false));
        }
        for i in (0..quarter).rev() {
            for state in (0..STATES).rev() {
                back.put(&mut states[state], symbol(state * quarter + i, i == 0));
            }
        }
        back.end(states)
    }
}

/// Bytes written from the back.
struct Back<'a> {
    room: &'a mut [u8],
    at: usize,
}

impl Back<'_> {
    fn new(room: &mut [u8]) -> Back<'_> {
        Back { at: room.len(), room }
    }

    #[inline]
    fn byte(&mut self, byte: u8) {
        self.at -= 1;
        self.room[self.at] = byte;
    }

    #[inline]
    fn put(&mut self, state: &mut u32, symbol: Symbol) {
        let frequency = u32::from(symbol.frequency);
        let mut x = *state;
        // The state stays below 2^31.
        let most = (LEAST >> BITS << 8) * frequency;
        while x >= most {
            self.byte(x as u8);
            x >>= 8;
        }
        let quotient = ((u64::from(x) * u64::from(symbol.reciprocal)) >> (31 + symbol.shift)) as u32;
        *state = x + quotient * (TOTAL - frequency) + u32::from(symbol.start);
    }

    fn end(mut self, states: [u32; STATES]) -> usize {
        for state in states.iter().rev() {
            state.to_be_bytes().iter().for_each(|&byte| self.byte(byte));
        }
        self.at
    }
}

/// Writes which bytes are present, in order, each with what `write` has to say of it: of neighbours only the first two are named, then how
/// many follow.
fn each_present(present: &[bool; 256], out: &mut Vec<u8>, mut write: impl FnMut(usize, &mut Vec<u8>)) {
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

/// Writes the frequencies, and makes the symbols.
fn table(counts: &[u32; 256], symbols: &mut [Symbol; 256], out: &mut Vec<u8>) {
    let frequencies = frequencies(counts);
    let mut start = 0;
    let present = frequencies.map(|f| f > 0);
    each_present(&present, out, |byte, out| {
        let f = frequencies[byte];
        if f < 0x80 {
            out.push(f as u8);
        } else {
            out.extend_from_slice(&(f | 0x8000).to_be_bytes());
        }
        symbols[byte] = Symbol::new(f, start);
        start += u32::from(f);
    });
}

/// Counts scaled to [`TOTAL`]; whatever is there keeps one at least.
fn frequencies(counts: &[u32; 256]) -> [u16; 256] {
    let all: u64 = counts.iter().map(|&n| u64::from(n)).sum();
    let mut scaled = counts.map(|n| match n {
        0 => 0,
        n => ((u64::from(n) * u64::from(TOTAL)) / all).max(1) as u16,
    });
    loop {
        let sum: i32 = scaled.iter().map(|&f| i32::from(f)).sum();
        let over = sum - TOTAL as i32;
        let most = scaled.iter().copied().enumerate().max_by_key(|&(_, f)| f);
        let Some((at, most)) = most.filter(|_| over != 0) else { return scaled };
        // Never more than half of it.
        scaled[at] = (i32::from(most) - over.min(i32::from(most) / 2)) as u16;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A plain decoder, by the specification.
    fn decode(coded: &[u8]) -> Vec<u8> {
        let number = |at: usize| u32::from_le_bytes(coded[at..at + 4].try_into().unwrap()) as usize;
        assert_eq!(number(1), coded.len() - HEAD);
        let mut at = HEAD;
        let mut next = || {
            at += 1;
            coded[at - 1]
        };
        /// Bytes that are named, with what `read` reads behind each.
        fn named(next: &mut dyn FnMut() -> u8, read: &mut dyn FnMut(u8, &mut dyn FnMut() -> u8)) {
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
        let mut tables = vec![[(0u32, 0u32); 256]; 256];
        fn frequencies(next: &mut dyn FnMut() -> u8, table: &mut [(u32, u32); 256]) {
            let mut start = 0;
            named(next, &mut |byte, next| {
                let first = u32::from(next());
                let f = if first < 128 { first } else { (first & 127) << 8 | u32::from(next()) };
                table[usize::from(byte)] = (start, f);
                start += f;
            });
            assert_eq!(start, TOTAL);
        }
        let one = coded[0] == 1;
        if one {
            named(&mut next, &mut |context, next| frequencies(next, &mut tables[usize::from(context)]));
        } else if number(5) > 0 {
            frequencies(&mut next, &mut tables[0]);
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
            let low = *state & (TOTAL - 1);
            let table = &tables[usize::from(context)];
            let byte = (0..256).find(|&b| (table[b].0..table[b].0 + table[b].1).contains(&low)).unwrap();
            *state = table[byte].1 * (*state >> BITS) + low - table[byte].0;
            while *state < LEAST {
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

    fn comes_back(data: &[u8]) {
        let mut coder = Coder::new();
        for order in [Order::Zero, Order::One] {
            let mut coded = Vec::new();
            coder.encode(data, order, &mut coded);
            assert!(decode(&coded) == data, "{order:?} {data:?}");
        }
    }

    #[test]
    fn what_is_special_comes_back() {
        comes_back(b"");
        comes_back(b"abc");
        comes_back(&[7; 1000]);
        comes_back(&[255; 5]);
        comes_back(&(0..=255).collect::<Vec<u8>>());
        comes_back(&(0..=255).cycle().take(70_001).collect::<Vec<u8>>());
        // One symbol takes all but everything.
        let mut rare = vec![0; 100_000];
        (0..256).for_each(|i| rare[i * 300] = i as u8);
        comes_back(&rare);
    }

    #[test]
    fn skewed_bytes_become_small() {
        let data: Vec<u8> = (0..10_000u32).map(|i| if i % 16 == 0 { b'x' } else { b'y' }).collect();
        let mut out = Vec::new();
        Coder::new().encode(&data, Order::Zero, &mut out);
        // 0.337 bits each.
        assert!(out.len() < 460, "{}", out.len());
    }

    proptest! {
        #[test]
        fn anything_comes_back(data in prop::collection::vec(prop_oneof![Just(40u8), 30u8..45, any::<u8>()], 0..3000)) {
            comes_back(&data);
        }
    }
}
