//! Bandwidth kernels: STREAM's four kernels and others, for the instruction sets of the machine.

mod scalar;
#[cfg(target_arch = "x86_64")]
mod x86;

use std::sync::atomic::{AtomicBool, Ordering};

use crate::profile::BandwidthKernel;

/// Bytes of a cache line. [`BandwidthKernel::Random`] and [`BandwidthKernel::Strided`] count this number of bytes per
/// access.
pub const CACHE_LINE_BYTES: usize = 64;
/// Distance between accesses of [`BandwidthKernel::Strided`] in bytes: the prime of lenis2018, eq. 3.3.
const STRIDE_BYTES: usize = 1009;
/// The scalar `q` of STREAM's kernels.
const STREAM_SCALAR: f64 = 3.0;
/// Elements that an injector reads between pauses: 1 KiB.
const BURST_ELEMENTS: usize = 128;

/// Instruction set that a bandwidth kernel is compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstructionSet {
    /// The baseline instruction set of the architecture.
    Scalar,
    /// AVX2: 256-bit vectors.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// AVX-512F: 512-bit vectors.
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl InstructionSet {
    /// The widest instruction set that this machine supports.
    pub(crate) fn widest_supported() -> InstructionSet {
        let all = InstructionSet::supported_instruction_sets();
        all.last().copied().unwrap_or(InstructionSet::Scalar)
    }

    /// All instruction sets that this machine supports, the widest last.
    pub(crate) fn supported_instruction_sets() -> Vec<InstructionSet> {
        #[cfg(target_arch = "x86_64")]
        {
            let mut all = vec![InstructionSet::Scalar];
            if is_x86_feature_detected!("avx2") {
                all.push(InstructionSet::Avx2);
                if is_x86_feature_detected!("avx512f") {
                    all.push(InstructionSet::Avx512);
                }
            }
            all
        }
        #[cfg(not(target_arch = "x86_64"))]
        vec![InstructionSet::Scalar]
    }

    /// Name of the instruction set in a machine profile.
    pub(crate) fn instruction_set_name(self) -> &'static str {
        match self {
            InstructionSet::Scalar => "scalar",
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Avx512 => "avx512",
        }
    }
}

/// The parts of STREAM's three arrays that one thread processes; all have the same length.
#[derive(Debug)]
pub struct ThreadStreamArrays<'a> {
    /// Source of copy, add, read and random reads; target of triad, write and strided accesses.
    pub a: &'a mut [f64],
    /// Target of scale; second source of add, first source of triad.
    pub b: &'a mut [f64],
    /// Target of copy and add; source of scale, second source of triad.
    pub c: &'a mut [f64],
}

impl BandwidthKernel {
    /// All kernels, STREAM's four first.
    pub const ALL_KERNELS: [BandwidthKernel; 10] = [
        BandwidthKernel::Copy,
        BandwidthKernel::Scale,
        BandwidthKernel::Add,
        BandwidthKernel::Triad,
        BandwidthKernel::Read,
        BandwidthKernel::Write,
        BandwidthKernel::WriteNt,
        BandwidthKernel::CopyNt,
        BandwidthKernel::Random,
        BandwidthKernel::Strided,
    ];

    /// Bytes counted for one pass over three arrays of `length` elements. As in STREAM, these are the bytes that the
    /// program reads and writes, without the cache lines that the CPU fetches before a store (write allocate).
    pub(crate) fn counted_bytes_per_pass(self, length: usize) -> u64 {
        let element = match self {
            BandwidthKernel::Copy | BandwidthKernel::Scale | BandwidthKernel::CopyNt => 16,
            BandwidthKernel::Add | BandwidthKernel::Triad => 24,
            // Random and strided: as many cache lines as the array has.
            BandwidthKernel::Read
            | BandwidthKernel::Write
            | BandwidthKernel::WriteNt
            | BandwidthKernel::Random
            | BandwidthKernel::Strided => 8,
        };
        (length * element) as u64
    }

    /// Runs one pass over the arrays. The result of read and random depends on all values that were read, so that the
    /// compiler cannot remove a read. `seed` determines the order of random reads.
    pub fn run_pass(self, instructions: InstructionSet, arrays: &mut ThreadStreamArrays, seed: u64) -> u64 {
        match self {
            BandwidthKernel::Random => scalar::read_random_cache_lines(arrays.a, seed),
            BandwidthKernel::Strided => scalar::increment_strided_bytes(arrays.a),
            _ => self.run_sequential_kernel(instructions, arrays),
        }
    }

    fn run_sequential_kernel(
        self,
        instructions: InstructionSet,
        ThreadStreamArrays { a, b, c }: &mut ThreadStreamArrays,
    ) -> u64 {
        match instructions {
            InstructionSet::Scalar => scalar::run_sequential_kernel(self, a, b, c, STREAM_SCALAR),
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Avx2 => x86::run_sequential_kernel_avx2(self, a, b, c, STREAM_SCALAR),
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Avx512 => x86::run_sequential_kernel_avx512(self, a, b, c, STREAM_SCALAR),
        }
    }
}

/// Reads `part` repeatedly, with `pause` idle loop iterations after each KiB, until `stop` is set; returns at once if
/// `part` is empty. Returns the number of bytes read.
pub(crate) fn read_with_pauses_until_stopped(part: &[f64], pause: u32, stop: &AtomicBool) -> u64 {
    let mut read = 0;
    let mut sum = 0u64;
    while !part.is_empty() {
        for burst in part.chunks(BURST_ELEMENTS) {
            if stop.load(Ordering::Relaxed) {
                std::hint::black_box(sum);
                return read;
            }
            sum = sum.wrapping_add(scalar::sum_bit_patterns(burst));
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

    /// Lengths around the vector sizes.
    const LENGTHS: [usize; 10] = [0, 1, 7, 8, 31, 32, 33, 63, 64, 65];

    /// Three arrays of different numbers, at `offset` elements from the start of the allocation.
    fn numbers(length: usize, offset: usize) -> [Vec<f64>; 3] {
        let array = |k: usize| (0..offset + length).map(|i| (3 * i + k) as f64 * 0.37 - 5.0).collect();
        [array(0), array(1), array(2)]
    }

    fn passed(kernel: BandwidthKernel, with: InstructionSet, length: usize, offset: usize) -> (u64, [Vec<f64>; 3]) {
        let [mut a, mut b, mut c] = numbers(length, offset);
        let mut arrays = ThreadStreamArrays { a: &mut a[offset..], b: &mut b[offset..], c: &mut c[offset..] };
        let sum = kernel.run_pass(with, &mut arrays, 7);
        (sum, [a, b, c])
    }

    #[test]
    fn all_instruction_sets_do_the_same() {
        for kernel in BandwidthKernel::ALL_KERNELS {
            for (length, offset) in LENGTHS.into_iter().flat_map(|l| (0..9).map(move |o| (l, o))) {
                let expected = passed(kernel, InstructionSet::Scalar, length, offset);
                for with in InstructionSet::supported_instruction_sets() {
                    let found = passed(kernel, with, length, offset);
                    assert_eq!(found, expected, "{kernel:?} {with:?} of {length} at {offset}");
                }
            }
        }
    }

    #[test]
    fn the_stream_kernels_are_those_of_stream() {
        for with in InstructionSet::supported_instruction_sets() {
            let [a, b, c] = numbers(65, 0);
            let zip = |x: &[f64], y: &[f64], f: fn(f64, f64) -> f64| -> Vec<f64> {
                x.iter().zip(y).map(|(x, y)| f(*x, *y)).collect()
            };
            assert_eq!(passed(BandwidthKernel::Copy, with, 65, 0).1, [a.clone(), b.clone(), a.clone()]);
            let scaled = zip(&c, &c, |c, _| 3.0 * c);
            assert_eq!(passed(BandwidthKernel::Scale, with, 65, 0).1, [a.clone(), scaled, c.clone()]);
            let added = zip(&a, &b, |a, b| a + b);
            assert_eq!(passed(BandwidthKernel::Add, with, 65, 0).1, [a.clone(), b.clone(), added]);
            let triad = zip(&b, &c, |b, c| b + 3.0 * c);
            assert_eq!(passed(BandwidthKernel::Triad, with, 65, 0).1, [triad, b.clone(), c.clone()]);
            assert_eq!(passed(BandwidthKernel::CopyNt, with, 65, 0).1, [a.clone(), b.clone(), a.clone()]);
            for kernel in [BandwidthKernel::Write, BandwidthKernel::WriteNt] {
                assert_eq!(passed(kernel, with, 65, 0).1, [vec![3.0; 65], b.clone(), c.clone()]);
            }
            let sum = a.iter().fold(0u64, |sum, x| sum.wrapping_add(x.to_bits()));
            assert_eq!(passed(BandwidthKernel::Read, with, 65, 0), (sum, [a, b, c]));
        }
    }

    #[test]
    fn strided_accesses_step_through_distinct_bytes() {
        // 64 KiB: 1024 accesses 1009 bytes apart, each to a different byte, nearly all to different cache lines.
        let mut ring = vec![0.0f64; 8192];
        let touched = scalar::increment_strided_bytes(&mut ring);
        let bytes: &[u8] = bytemuck::cast_slice(&ring);
        assert_eq!((touched, bytes.iter().map(|b| u64::from(*b)).sum::<u64>()), (1024, 1024));
        assert!(bytes.iter().all(|b| *b <= 1));
        let lines = bytes.chunks(CACHE_LINE_BYTES).filter(|line| line.iter().any(|b| *b > 0)).count();
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
            let hits = scalar::read_random_cache_lines(&array, 1);
            assert!((900..1150).contains(&hits), "quarter {quarter}: {hits} of {lines} reads");
        }
    }

    #[test]
    fn bytes_are_counted_as_stream_does() {
        assert_eq!(BandwidthKernel::Copy.counted_bytes_per_pass(1000), 16_000);
        assert_eq!(BandwidthKernel::Triad.counted_bytes_per_pass(1000), 24_000);
        assert_eq!(BandwidthKernel::Random.counted_bytes_per_pass(8 * 1000), 64_000);
    }

    #[test]
    fn injectors_count_what_they_read() {
        let (part, stop) = (vec![1.0; 1000], AtomicBool::new(true));
        assert_eq!(read_with_pauses_until_stopped(&part, 0, &stop), 0);
        assert_eq!(read_with_pauses_until_stopped(&[], 0, &AtomicBool::new(false)), 0);
        let stop = AtomicBool::new(false);
        let read = std::thread::scope(|scope| {
            let reader = scope.spawn(|| read_with_pauses_until_stopped(&part, 3, &stop));
            std::thread::sleep(std::time::Duration::from_millis(20));
            stop.store(true, Ordering::Relaxed);
            reader.join().expect("an injector")
        });
        assert!(read > 8000 && read % 64 == 0, "{read} bytes");
    }
}
