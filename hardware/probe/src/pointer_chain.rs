//! A pointer chain for latency measurements: one pointer per cache line, in random order. Each load depends on the
//! one before (lenis2018, eq. 3.2; the order is random so that prefetchers cannot guess the next line).
// `unsafe` because the loop follows raw addresses, like the C loop it is compared with. An index would add an
// addition to each load, which is visible where a load takes four cycles.
#![allow(unsafe_code)]

/// One cache line of 64 bytes: the size of one link of a pointer chain.
pub type CacheLine = [u64; 8];

/// Loads per loop iteration, so that the loop counter costs little.
const LOADS_PER_LOOP: u64 = 64;

/// A closed chain of pointers over all cache lines of a buffer: the last line points to the first.
#[derive(Debug)]
pub struct PointerChain<'a> {
    /// The cache lines of the chain, borrowed as long as the chain's raw addresses are used.
    lines: &'a mut [CacheLine],
    /// Address of the line that is loaded next.
    next_address: *const u64,
}

impl<'a> PointerChain<'a> {
    /// Links all lines into one closed chain in a random order given by `seed`. `None` if there are no lines.
    pub fn link_in_random_order(lines: &'a mut [CacheLine], seed: u64) -> Option<PointerChain<'a>> {
        let order = random_cycle(lines.len(), seed)?;
        let first = lines.as_ptr().addr();
        for (line, next) in lines.iter_mut().zip(order) {
            line[0] = (first + next as usize * size_of::<CacheLine>()) as u64;
        }
        let at = lines.as_mut_ptr().cast::<u64>();
        at.expose_provenance();
        Some(PointerChain { lines, next_address: at.cast_const() })
    }

    /// Number of cache lines in the chain.
    pub fn num_lines(&self) -> u64 {
        self.lines.len() as u64
    }

    /// Follows at least `loads` pointers, starting where the last call ended. Returns the number of pointers
    /// followed.
    #[inline(never)]
    pub fn follow_pointers(&mut self, loads: u64) -> u64 {
        let rounds = loads.div_ceil(LOADS_PER_LOOP);
        let mut at = self.next_address;
        for _ in 0..rounds {
            for _ in 0..LOADS_PER_LOOP {
                // SAFETY: `at` is the first word of a line of `self.lines`. This holds at the start, and each such
                // word holds the address of the first word of another line, whose provenance `new` exposed. Nobody
                // else can write to the lines while `self` borrows them.
                let next = unsafe { at.read() };
                at = std::ptr::with_exposed_provenance(next as usize);
            }
        }
        // Keeps the compiler from removing loads whose result is unused.
        self.next_address = std::hint::black_box(at);
        rounds * LOADS_PER_LOOP
    }
}

/// A random permutation of `0..length` with a single cycle (Sattolo 1986). `None` for length 0.
fn random_cycle(length: usize, seed: u64) -> Option<Vec<u32>> {
    let mut next: Vec<u32> = (0..u32::try_from(length).ok()?).collect();
    if next.is_empty() {
        return None;
    }
    let mut random = seed;
    for i in (1..next.len()).rev() {
        let j = (u128::from(splitmix(&mut random)) * i as u128) >> 64;
        next.swap(i, j as usize);
    }
    Some(next)
}

/// The SplitMix64 random number generator (Steele, Lea, Flood 2014).
fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permutations_are_one_cycle() {
        for length in [1, 2, 3, 64, 1000] {
            let next = random_cycle(length, 11).expect("lines");
            let mut at = 0;
            let mut seen = vec![false; length];
            for _ in 0..length {
                assert!(!std::mem::replace(&mut seen[at], true), "{length} lines: line {at} again");
                at = next[at] as usize;
            }
            assert_eq!(at, 0, "{length} lines");
        }
        assert_eq!(random_cycle(0, 11), None);
        assert_ne!(random_cycle(1000, 1), random_cycle(1000, 2));
    }

    #[test]
    fn walks_go_round_the_ring() {
        let mut lines: Vec<CacheLine> = vec![[0; 8]; 192];
        let start = lines.as_ptr().cast::<u64>();
        let mut ring = PointerChain::link_in_random_order(&mut lines, 5).expect("a ring");
        assert_eq!((ring.num_lines(), ring.follow_pointers(128)), (192, 128));
        assert_ne!(ring.next_address, start);
        assert_eq!(ring.follow_pointers(1), 64);
        assert_eq!(ring.next_address, start);
    }

    #[test]
    fn steps_of_a_ring_have_no_pattern() {
        let next = random_cycle(1 << 14, 3).expect("lines");
        let near = next.iter().enumerate().filter(|(i, n)| i.abs_diff(**n as usize) < 64).count();
        assert!(near < 1 << 8, "{near} of 16384 steps stay near");
    }
}
