//! What a thread does with its part of the memory: STREAM's four kernels and others, for whatever instruction set is there.

mod scalar;
#[cfg(target_arch = "x86_64")]
mod x86;

use std::sync::atomic::{AtomicBool, Ordering};

use crate::profile::Kernel;

/// Bytes that [`Kernel::Random`] and [`Kernel::Strided`] count for each access.
pub const LINE: usize = 64;
/// Step of [`Kernel::Strided`] in bytes: the prime of lenis2018, eq. 3.3.
const STRIDE: usize = 1009;
/// STREAM's scalar.
const Q: f64 = 3.0;
/// Elements an injector reads before it pauses: 1 KiB.
const BURST: usize = 128;

/// The instruction set that kernels are compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Instructions {
    /// What every machine of this architecture has.
    Scalar,
    /// 256-bit vectors.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// 512-bit vectors.
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Instructions {
    /// The widest that this machine has.
    pub fn best() -> Instructions {
        let all = Instructions::available();
        all.last().copied().unwrap_or(Instructions::Scalar)
    }

    /// All that this machine has, the widest last.
    pub fn available() -> Vec<Instructions> {
        #[cfg(target_arch = "x86_64")]
        {
            let mut all = vec![Instructions::Scalar];
            if is_x86_feature_detected!("avx2") {
                all.push(Instructions::Avx2);
                if is_x86_feature_detected!("avx512f") {
                    all.push(Instructions::Avx512);
                }
            }
            all
        }
        #[cfg(not(target_arch = "x86_64"))]
        vec![Instructions::Scalar]
    }

    /// Its word in a profile.
    pub fn name(self) -> &'static str {
        match self {
            Instructions::Scalar => "scalar",
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx512 => "avx512",
        }
    }
}

/// A thread's part of STREAM's three arrays; all of one length.
#[derive(Debug)]
pub struct Arrays<'a> {
    /// Source of most kernels, target of triad.
    pub a: &'a mut [f64],
    /// Target of scale.
    pub b: &'a mut [f64],
    /// Target of copy and add.
    pub c: &'a mut [f64],
}

impl Kernel {
    /// All kernels, STREAM's first.
    pub const ALL: [Kernel; 10] = [
        Kernel::Copy,
        Kernel::Scale,
        Kernel::Add,
        Kernel::Triad,
        Kernel::Read,
        Kernel::Write,
        Kernel::WriteNt,
        Kernel::CopyNt,
        Kernel::Random,
        Kernel::Strided,
    ];

    /// Bytes that one pass over three arrays of `length` elements counts, as STREAM counts: what the program asks for,
    /// not the lines that a store fetches first.
    pub fn counted(self, length: usize) -> u64 {
        let element = match self {
            Kernel::Copy | Kernel::Scale | Kernel::CopyNt => 16,
            Kernel::Add | Kernel::Triad => 24,
            // Random and strided: one line for each line of the array.
            Kernel::Read | Kernel::Write | Kernel::WriteNt | Kernel::Random | Kernel::Strided => 8,
        };
        (length * element) as u64
    }

    /// One pass. The result depends on all that was read, so that no read can be left out; `seed` orders random reads.
    pub fn pass(self, instructions: Instructions, arrays: &mut Arrays, seed: u64) -> u64 {
        match self {
            Kernel::Random => scalar::random(arrays.a, seed),
            Kernel::Strided => scalar::strided(arrays.a),
            _ => self.stream(instructions, arrays),
        }
    }

    fn stream(self, instructions: Instructions, Arrays { a, b, c }: &mut Arrays) -> u64 {
        match instructions {
            Instructions::Scalar => scalar::stream(self, a, b, c, Q),
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx2 => x86::avx2(self, a, b, c, Q),
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx512 => x86::avx512(self, a, b, c, Q),
        }
    }
}

/// Reads `part` over and over with `pause` idle steps after each KiB, until told to stop; the bytes read.
pub(crate) fn inject(part: &[f64], pause: u32, stop: &AtomicBool) -> u64 {
    let mut read = 0;
    let mut sum = 0u64;
    while !part.is_empty() {
        for burst in part.chunks(BURST) {
            if stop.load(Ordering::Relaxed) {
                std::hint::black_box(sum);
                return read;
            }
            sum = sum.wrapping_add(scalar::sum(burst));
            read += size_of_val(burst) as u64;
            for step in 0..pause {
                std::hint::black_box(step);
            }
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Edge lengths, and one beyond.
    const LENGTHS: [usize; 10] = [0, 1, 7, 8, 31, 32, 33, 63, 64, 65];

    /// Three arrays of numbers that are all different, at some offset from the start of an allocation.
    fn numbers(length: usize, offset: usize) -> [Vec<f64>; 3] {
        let array = |k: usize| (0..offset + length).map(|i| (3 * i + k) as f64 * 0.37 - 5.0).collect();
        [array(0), array(1), array(2)]
    }

    fn passed(kernel: Kernel, with: Instructions, length: usize, offset: usize) -> (u64, [Vec<f64>; 3]) {
        let [mut a, mut b, mut c] = numbers(length, offset);
        let mut arrays = Arrays { a: &mut a[offset..], b: &mut b[offset..], c: &mut c[offset..] };
        let sum = kernel.pass(with, &mut arrays, 7);
        (sum, [a, b, c])
    }

    #[test]
    fn all_instruction_sets_do_the_same() {
        for kernel in Kernel::ALL {
            for (length, offset) in LENGTHS.into_iter().flat_map(|l| (0..9).map(move |o| (l, o))) {
                let expected = passed(kernel, Instructions::Scalar, length, offset);
                for with in Instructions::available() {
                    let found = passed(kernel, with, length, offset);
                    assert_eq!(found, expected, "{kernel:?} {with:?} of {length} at {offset}");
                }
            }
        }
    }

    #[test]
    fn the_stream_kernels_are_those_of_stream() {
        for with in Instructions::available() {
            let [a, b, c] = numbers(65, 0);
            let zip = |x: &[f64], y: &[f64], f: fn(f64, f64) -> f64| -> Vec<f64> {
                x.iter().zip(y).map(|(x, y)| f(*x, *y)).collect()
            };
            assert_eq!(passed(Kernel::Copy, with, 65, 0).1, [a.clone(), b.clone(), a.clone()]);
            let scaled = zip(&c, &c, |c, _| 3.0 * c);
            assert_eq!(passed(Kernel::Scale, with, 65, 0).1, [a.clone(), scaled, c.clone()]);
            let added = zip(&a, &b, |a, b| a + b);
            assert_eq!(passed(Kernel::Add, with, 65, 0).1, [a.clone(), b.clone(), added]);
            let triad = zip(&b, &c, |b, c| b + 3.0 * c);
            assert_eq!(passed(Kernel::Triad, with, 65, 0).1, [triad, b.clone(), c.clone()]);
            assert_eq!(passed(Kernel::CopyNt, with, 65, 0).1, [a.clone(), b.clone(), a.clone()]);
            for kernel in [Kernel::Write, Kernel::WriteNt] {
                assert_eq!(passed(kernel, with, 65, 0).1, [vec![3.0; 65], b.clone(), c.clone()]);
            }
            let sum = a.iter().fold(0u64, |sum, x| sum.wrapping_add(x.to_bits()));
            assert_eq!(passed(Kernel::Read, with, 65, 0), (sum, [a, b, c]));
        }
    }

    #[test]
    fn strided_accesses_step_through_distinct_bytes() {
        // 64 KiB: 1024 accesses at 1009 bytes, each to a byte of its own, nearly each to a line of its own.
        let mut ring = vec![0.0f64; 8192];
        let touched = scalar::strided(&mut ring);
        let bytes: &[u8] = bytemuck::cast_slice(&ring);
        assert_eq!((touched, bytes.iter().map(|b| u64::from(*b)).sum::<u64>()), (1024, 1024));
        assert!(bytes.iter().all(|b| *b <= 1));
        let lines = bytes.chunks(LINE).filter(|line| line.iter().any(|b| *b > 0)).count();
        assert!(lines > 800, "{lines} of 1024 lines");
    }

    #[test]
    fn random_reads_go_all_over_the_array() {
        let lines = 4096;
        for quarter in 0..4 {
            let mut array = vec![0.0f64; lines * 8];
            for line in array.chunks_mut(8).skip(quarter * lines / 4).take(lines / 4) {
                line[0] = f64::from_bits(1);
            }
            let hits = scalar::random(&array, 1);
            assert!((900..1150).contains(&hits), "quarter {quarter}: {hits} of {lines} reads");
        }
    }

    #[test]
    fn bytes_are_counted_as_stream_does() {
        assert_eq!(Kernel::Copy.counted(1000), 16_000);
        assert_eq!(Kernel::Triad.counted(1000), 24_000);
        assert_eq!(Kernel::Random.counted(8 * 1000), 64_000);
    }

    #[test]
    fn injectors_count_what_they_read() {
        let (part, stop) = (vec![1.0; 1000], AtomicBool::new(true));
        assert_eq!(inject(&part, 0, &stop), 0);
        assert_eq!(inject(&[], 0, &AtomicBool::new(false)), 0);
        let stop = AtomicBool::new(false);
        let read = std::thread::scope(|scope| {
            let reader = scope.spawn(|| inject(&part, 3, &stop));
            std::thread::sleep(std::time::Duration::from_millis(20));
            stop.store(true, Ordering::Relaxed);
            reader.join().expect("an injector")
        });
        assert!(read > 8000 && read % 64 == 0, "{read} bytes");
    }
}
