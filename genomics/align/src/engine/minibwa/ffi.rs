//! minibwa's C functions behind safe types.
//!
//! Its public header maps single reads, and pairs with an insert size that it is told. Its command line does more:
//! it maps a batch of reads, estimates the insert size from all of them, then pairs. Those steps are functions of the
//! same library (`mb_pair` and what it takes), but not in that header, so they are declared here, as they
//! stand in the very version that `Cargo.toml` names. So are the structures of an index: its own loader and its own builder do not look at
//! what reading and writing return, so both are done here, and the C code is given arrays.
#![allow(unsafe_code)] // C functions and the structures that they return.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::io;
use std::ptr::{NonNull, null};

use memmap2::MmapMut;
use minibwa_sys as sys;

use super::image::{Sequences, Transform};

/// Pairs mates whatever the options say.
pub(super) const PAIRED: u64 = sys::MB_F_PE as u64;
/// `-Y` and `-5`.
pub(super) const SOFT_CLIPS: u64 = sys::MB_F_SUPP_SOFT as u64;
pub(super) const PRIMARY_FIRST: u64 = sys::MB_F_PRIMARY5 as u64;
/// Presets of `-x`.
pub(super) const LONG: &CStr = c"lr";
pub(super) const SHORT: &CStr = c"sr";

/// `mb_pestat_t` (mbpriv.h): insert sizes of one orientation.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Insert {
    /// Smallest and largest distance of a proper pair (bp).
    pub low: c_int,
    pub high: c_int,
    /// Whether too few pairs have this orientation.
    pub failed: c_int,
    pub mean: f64,
    pub deviation: f64,
}

/// `mb_idx_s` (mbpriv.h).
#[repr(C)]
struct RawIndex {
    is_meth: i32,
    l2b: *const RawSequences,
    bwt: *const RawTransform,
}

/// `l2b_ctg_t` (l2bit.h).
#[repr(C)]
struct RawContig {
    name: *const c_char,
    comment: *const c_char,
    length: u64,
    offset: u64,
}

/// `l2b_t` (l2bit.h). Numbers come in pairs: items, and those that there is room for.
#[repr(C)]
struct RawSequences {
    bases: u64,
    contigs: [u64; 2],
    contig: *const RawContig,
    words: [u64; 2],
    ambiguous: [u64; 2],
    masked: [u64; 2],
    ambiguous_at: *const [u64; 2],
    masked_at: *const [u64; 2],
    word: *const u64,
    names: *const c_char,
    comments: *const c_char,
    mapped: *const c_void,
    mapped_bytes: usize,
}

/// `mb_sai_t` (bwt.h): rows of the transform that begin alike.
#[repr(C)]
struct Rows([u64; 4]);

/// `mb_bwt_t` (bwt.h).
#[repr(C)]
struct RawTransform {
    end: u64,
    less: [u64; 5],
    length: u64,
    words: u64,
    word: *const u64,
    /// How many of each base a byte of bases has, a byte a count.
    counts: [u32; 256],
    prefix_length: u32,
    prefixes: *const Rows,
    rate: u32,
    samples: u64,
    sample: *const u64,
    mapped: *const c_void,
    mapped_bytes: usize,
}

unsafe extern "C" {
    fn mb_tbuf_km(buffer: *mut sys::mb_tbuf_t) -> *mut c_void;
    fn mb_pair(
        km: *mut c_void,
        opt: *const sys::mb_opt_t,
        l2b: *const RawSequences,
        n_hit: *mut i32,
        hit: *mut *mut sys::mb_hit_t,
        pes: *const Insert,
        qlen: *mut i32,
        qseq: *const *const c_char,
    );
    fn mb_bwt_count_kmer(bwt: *const RawTransform, depth: i32, a: *mut Rows);
    fn libsais(t: *const u8, sa: *mut i32, n: i32, fs: i32, freq: *mut i32) -> i32;
    fn libsais64(t: *const u8, sa: *mut i64, n: i64, fs: i64, freq: *mut i64) -> i64;
    #[cfg(test)]
    fn mb_pestat(
        km: *mut c_void,
        opt: *const sys::mb_opt_t,
        n_seg: i32,
        seg_off: *const i32,
        seg_cnt: *const i32,
        n_hit: *const i32,
        hit: *const *mut sys::mb_hit_t,
        pes: *mut Insert,
    );
    #[cfg(test)]
    static mut kom_verbose: c_int;
}

/// Options of the command line.
#[derive(Clone)]
pub(super) struct Opts(sys::mb_opt_t);

impl Opts {
    /// The defaults, or those of a preset.
    pub fn new(preset: Option<&CStr>) -> Self {
        // SAFETY: a structure of numbers, for which zeros are values; the call fills it.
        let mut opts = unsafe {
            let mut opts = std::mem::zeroed();
            sys::mb_opt_init(&mut opts);
            opts
        };
        if let Some(preset) = preset {
            // SAFETY: `preset` ends with NUL; a name that is unknown leaves the defaults.
            unsafe { sys::mb_opt_preset(&mut opts, preset.as_ptr()) };
        }
        Opts(opts)
    }

    /// The numbers, for reading and changing.
    pub fn raw(&mut self) -> &mut sys::mb_opt_t {
        &mut self.0
    }

    pub fn get(&self) -> &sys::mb_opt_t {
        &self.0
    }
}

/// Bases of the prefixes whose rows are looked up at once.
const PREFIX: u32 = 10;

/// An index in memory. Read-only.
pub(super) struct Index {
    sequences: Sequences,
    transform: Transform,
    /// Rows of the transform that begin with each prefix; `raw` points to them.
    prefixes: MmapMut,
    _contigs: Vec<RawContig>,
    /// What the C code is given; it points into all of the above, and `raw.l2b` and `raw.bwt` are this value's own.
    raw: RawIndex,
}

// SAFETY: mapping takes the index as `const` and writes nothing into it; minibwa's own threads share one.
unsafe impl Send for Index {}
// SAFETY: as above.
unsafe impl Sync for Index {}

impl Drop for Index {
    fn drop(&mut self) {
        // SAFETY: both came from `Box::into_raw` and are given back once.
        unsafe {
            drop(Box::from_raw(self.raw.l2b.cast_mut()));
            drop(Box::from_raw(self.raw.bwt.cast_mut()));
        }
    }
}

impl Index {
    /// The index of these two, which must be whole and belong together: the C code trusts what it reads. The calling thread touches the
    /// table of prefixes first.
    ///
    /// # Errors
    /// There is not the memory.
    pub fn new(sequences: Sequences, transform: Transform) -> io::Result<Index> {
        // The arrays are where they are, wherever the structures that own them are moved to.
        let mut contigs: Vec<RawContig> = Vec::with_capacity(sequences.lengths().len());
        let [names, comments] = sequences.texts();
        let mut offset = 0;
        for ((name, comment), &length) in names.zip(comments).zip(sequences.lengths()) {
            let comment = if comment.len() > 1 { comment.as_ptr().cast() } else { null() };
            contigs.push(RawContig { name: name.as_ptr().cast(), comment, length, offset });
            offset += length;
        }
        let twice = |n: usize| [n as u64; 2];
        let l2b = RawSequences {
            bases: sequences.bases,
            contigs: twice(contigs.len()),
            contig: contigs.as_ptr(),
            words: twice(sequences.words().len()),
            ambiguous: twice(sequences.ambiguous().len()),
            masked: [0; 2],
            ambiguous_at: sequences.ambiguous().as_ptr(),
            masked_at: null(),
            word: sequences.words().as_ptr(),
            names: null(),
            comments: null(),
            mapped: null(),
            mapped_bytes: 0,
        };
        let counts =
            std::array::from_fn(|byte| (0..4).map(|i| 1 << (8 * (byte >> (2 * i) & 3))).sum::<u32>());
        let mut bwt = RawTransform {
            end: transform.end,
            less: transform.less,
            length: transform.length(),
            words: transform.blocks().len() as u64,
            word: transform.blocks().as_ptr(),
            counts,
            prefix_length: 0,
            prefixes: null(),
            rate: transform.rate,
            samples: transform.samples().len() as u64,
            sample: transform.samples().as_ptr(),
            mapped: null(),
            mapped_bytes: 0,
        };
        let mut prefixes = MmapMut::map_anon(size_of::<Rows>() << (2 * PREFIX))?;
        // SAFETY: the transform is whole, and the call writes 4^PREFIX items, as many as there is room for.
        unsafe { mb_bwt_count_kmer(&bwt, PREFIX as i32, prefixes.as_mut_ptr().cast()) };
        (bwt.prefix_length, bwt.prefixes) = (PREFIX, prefixes.as_ptr().cast());
        let (l2b, bwt) = (Box::into_raw(Box::new(l2b)), Box::into_raw(Box::new(bwt)));
        let raw = RawIndex { is_meth: 0, l2b, bwt };
        Ok(Index { sequences, transform, prefixes, _contigs: contigs, raw })
    }

    /// Names and lengths (bp) of the sequences.
    pub fn contigs(&self) -> impl Iterator<Item = (String, u64)> {
        self.sequences.contigs()
    }

    /// Memory that it takes (bytes).
    pub fn bytes(&self) -> u64 {
        (self.sequences.bytes().len() + self.transform.bytes().len() + self.prefixes.len()) as u64
    }

    /// The Burrows-Wheeler transform and the sampled suffix array, as bytes.
    pub fn arrays(&self) -> [&[u8]; 2] {
        [self.transform.blocks(), self.transform.samples()].map(bytemuck::cast_slice)
    }

    fn raw(&self) -> *const sys::mb_idx_t {
        std::ptr::from_ref(&self.raw).cast()
    }
}

/// Items behind a suffix array that sorting is faster with.
pub(super) const SORTING_ROOM: usize = 10_000;

/// A number that suffixes are sorted with.
pub(super) trait Place: Copy + Sized {
    const ZERO: Self;

    fn of(place: usize) -> Self;

    /// # Safety
    /// `places` has room for `text` and [`SORTING_ROOM`].
    unsafe fn sort(text: &[u8], places: *mut Self) -> bool;
}

impl Place for i32 {
    const ZERO: i32 = 0;

    fn of(place: usize) -> i32 {
        place as i32
    }

    unsafe fn sort(text: &[u8], places: *mut i32) -> bool {
        // SAFETY: the text is as long as said; there is room for its places and `SORTING_ROOM` more; no counts are asked for.
        unsafe {
            libsais(text.as_ptr(), places, text.len() as i32, SORTING_ROOM as i32, null::<i32>().cast_mut())
                == 0
        }
    }
}

impl Place for i64 {
    const ZERO: i64 = 0;

    fn of(place: usize) -> i64 {
        place as i64
    }

    unsafe fn sort(text: &[u8], places: *mut i64) -> bool {
        // SAFETY: as for 32 bits.
        unsafe {
            libsais64(text.as_ptr(), places, text.len() as i64, SORTING_ROOM as i64, null::<i64>().cast_mut())
                == 0
        }
    }
}

/// The suffix array of a text, the empty suffix first; none where there is not the memory. 32 bits are for texts shorter than 2^31 bytes
/// less [`SORTING_ROOM`].
pub(super) fn suffixes<P: Place>(text: &[u8]) -> Option<Vec<P>> {
    let mut places: Vec<P> = Vec::new();
    let all = text.len() + 1 + SORTING_ROOM;
    places.try_reserve_exact(all).ok()?;
    places.resize(all, P::ZERO);
    places[0] = P::of(text.len());
    // SAFETY: behind the first item there is room for both.
    let sorted = unsafe { P::sort(text, places[1..].as_mut_ptr()) };
    places.truncate(text.len() + 1);
    sorted.then_some(places)
}

/// A thread's scratch memory: an arena.
pub(super) struct Buffer(NonNull<sys::mb_tbuf_t>);

// SAFETY: the arena belongs to the buffer alone; it may move between threads.
unsafe impl Send for Buffer {}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: it came from `mb_tbuf_init` and is destroyed once.
        unsafe { sys::mb_tbuf_destroy(self.0.as_ptr()) };
    }
}

impl Buffer {
    pub fn new() -> Self {
        // SAFETY: no arguments to get wrong.
        let buffer = NonNull::new(unsafe { sys::mb_tbuf_init(0) });
        Buffer(buffer.expect("minibwa could not allocate a thread buffer"))
    }

    /// Gives memory back if a read has made the arena grow too large.
    pub fn shrink(&mut self, opts: &Opts) {
        // SAFETY: the buffer is alive and nothing points into its arena between calls.
        unsafe { sys::mb_tbuf_reset(self.0.as_ptr(), opts.0.cap_kalloc) };
    }
}

/// One alignment of a read.
#[repr(transparent)]
pub(super) struct Hit(sys::mb_hit_t);

impl Hit {
    pub fn get(&self) -> &sys::mb_hit_t {
        &self.0
    }

    pub fn reverse(&self) -> bool {
        self.0.rev() != 0
    }

    /// What base-level alignment found; none if it was not done.
    pub fn alignment(&self) -> Option<&sys::mb_extra_t> {
        // SAFETY: NULL or a structure that lives as long as the hit: only `Hits` frees it.
        unsafe { self.0.p.as_ref() }
    }

    /// The operations of the alignment, as BAM has them.
    pub fn cigar(&self) -> &[u32] {
        let Some(alignment) = self.alignment() else { return &[] };
        // SAFETY: `n_cigar` operations stand behind the structure, in the same allocation.
        unsafe { std::slice::from_raw_parts((*self.0.p).cigar.as_ptr(), alignment.n_cigar.max(0) as usize) }
    }
}

/// The alignments of each read of a batch.
pub(super) struct Hits {
    counts: Vec<i32>,
    /// As many arrays as counts, from C's allocator; NULL before the first batch.
    arrays: *mut *mut sys::mb_hit_t,
}

// SAFETY: the arrays belong to this value alone and C's allocator lets any thread free them.
unsafe impl Send for Hits {}

impl Default for Hits {
    fn default() -> Self {
        Hits { counts: Vec::new(), arrays: std::ptr::null_mut() }
    }
}

impl Drop for Hits {
    fn drop(&mut self) {
        self.clear();
    }
}

impl Hits {
    /// Frees them.
    pub fn clear(&mut self) {
        if !self.arrays.is_null() {
            for (i, &count) in self.counts.iter().enumerate() {
                // SAFETY: array `i` holds `count` hits, or is NULL when there is none; each, and what it points to, was
                // allocated by C and is freed once, as `arrays` is forgotten below.
                unsafe {
                    let array = *self.arrays.add(i);
                    for hit in 0..count.max(0) as usize {
                        libc::free((*array.add(hit)).p.cast());
                    }
                    libc::free(array.cast());
                }
            }
            // SAFETY: the outer array came from C as well.
            unsafe { libc::free(self.arrays.cast()) };
            self.arrays = std::ptr::null_mut();
        }
        self.counts.clear();
    }

    /// Those of read `i`.
    pub fn of(&self, i: usize) -> &[Hit] {
        match self.counts.get(i) {
            // SAFETY: array `i` holds that many hits, and `Hit` has their layout.
            Some(&count) if count > 0 => unsafe {
                std::slice::from_raw_parts((*self.arrays.add(i)).cast(), count as usize)
            },
            _ => &[],
        }
    }
}

/// What reads are mapped against, and how.
#[derive(Clone, Copy)]
pub(super) struct Target<'a> {
    pub index: &'a Index,
    pub(crate) opts: &'a Opts,
}

/// What a batch of reads looks like to C.
#[derive(Default)]
pub(super) struct Queries {
    /// Names, each with its NUL.
    names: Vec<u8>,
    name_at: Vec<usize>,
    /// Bases of those reads that are not mapped as they stand.
    seqs: Vec<u8>,
}

impl Queries {
    /// Maps each read alone and leaves its alignments in `hits`. Reads are `(name, bases)`.
    ///
    /// Options that ask for pairing pair two reads at a time, by the insert size that the options say. Names must be without NUL, reads
    /// shorter than 2 Gbp.
    pub fn map<'r>(
        &mut self,
        target: Target<'_>,
        buffer: &mut Buffer,
        reads: impl ExactSizeIterator<Item = (&'r [u8], &'r [u8])> + Clone,
        hits: &mut Hits,
    ) {
        let Target { index, opts } = target;
        hits.clear();
        let n = reads.len();
        if n == 0 {
            return;
        }
        self.names.clear();
        self.name_at.clear();
        for (name, _) in reads.clone() {
            self.name_at.push(self.names.len());
            self.names.extend_from_slice(name);
            self.names.push(0);
        }
        let mut names: Vec<*const c_char> =
            self.name_at.iter().map(|&at| self.names[at..].as_ptr().cast()).collect();
        let (mut seqs, mut lengths) = (vec![std::ptr::null(); n], vec![0; n]);
        self.bases(reads.map(|(_, seq)| seq), &mut seqs, &mut lengths);
        hits.counts.resize(n, 0);
        // SAFETY: all arrays have `n` items and outlive the call; names end with NUL; each sequence is as long as
        // `lengths` says and is only read. The result is NULL or `n` arrays of C's allocator, as long as
        // `hits.counts` says.
        hits.arrays = unsafe {
            sys::mb_map_batch(
                &opts.0,
                index.raw(),
                n as i32,
                lengths.as_ptr(),
                seqs.as_mut_ptr(),
                hits.counts.as_mut_ptr(),
                buffer.0.as_ptr(),
                names.as_mut_ptr(),
            )
        };
        if hits.arrays.is_null() {
            hits.counts.clear();
        }
    }

    /// Pairs reads `first` and `first` + 1, whose bases are `mates`; hits may be added, moved and dropped.
    pub fn pair(
        &mut self,
        target: Target<'_>,
        buffer: &mut Buffer,
        mates: [&[u8]; 2],
        inserts: &[Insert; 4],
        hits: &mut Hits,
        first: usize,
    ) {
        if hits.counts.len() < first + 2 {
            return;
        }
        let Target { index, opts } = target;
        let (mut seqs, mut lengths) = ([std::ptr::null(); 2], [0; 2]);
        self.bases(mates.into_iter(), &mut seqs, &mut lengths);
        // SAFETY: both reads have an array and a count, which the call keeps in step; four inserts are what it reads; the
        // sequences are as long as `lengths` says and are only read; the arena is this thread's.
        unsafe {
            mb_pair(
                mb_tbuf_km(buffer.0.as_ptr()),
                &opts.0,
                index.raw.l2b,
                hits.counts[first..].as_mut_ptr(),
                hits.arrays.add(first),
                inserts.as_ptr(),
                lengths.as_mut_ptr(),
                seqs.as_ptr(),
            );
        }
    }

    /// Pointers to and lengths of the bases. minibwa's reader turns U into T, its mapper does not know U.
    fn bases<'r>(
        &mut self,
        reads: impl Iterator<Item = &'r [u8]> + Clone,
        seqs: &mut [*const c_char],
        lengths: &mut [i32],
    ) {
        let uracil = |seq: &[u8]| memchr::memchr2(b'U', b'u', seq).is_some();
        self.seqs.clear();
        for seq in reads.clone().filter(|seq| uracil(seq)) {
            self.seqs
                .extend(seq.iter().map(|&base| if matches!(base, b'U' | b'u') { base - 1 } else { base }));
        }
        let mut changed = &self.seqs[..];
        for ((seq, pointer), length) in reads.zip(seqs).zip(lengths) {
            let mut bases = seq;
            if uracil(seq) {
                (bases, changed) = changed.split_at(seq.len());
            }
            (*pointer, *length) = (bases.as_ptr().cast(), bases.len() as i32);
        }
    }
}

/// minibwa's own estimate, to hold ours against.
#[cfg(test)]
pub(super) mod oracle {
    use super::super::estimate::{self, Distances};
    use super::*;

    fn hit(position: i64, reverse: bool) -> sys::mb_hit_t {
        // SAFETY: a structure of numbers and one pointer, for which zeros are values.
        let mut hit: sys::mb_hit_t = unsafe { std::mem::zeroed() };
        (hit.ts, hit.te, hit.mapq) = (position, position, 60);
        hit.set_rev(u32::from(reverse));
        hit
    }

    /// Makes pairs of mates that lie as far apart as said; what minibwa estimates from them, and what distances our side
    /// sees in them.
    pub fn estimate(opts: &Opts, distances: &Distances) -> ([Insert; 4], Distances) {
        let mut hits = Vec::new();
        for (strands, distances) in distances.iter().enumerate() {
            for (i, &distance) in distances.iter().enumerate() {
                // Mates at the same place count as the second lying before the first.
                let (strands, from, to) = if i % 2 == 0 && distance > 0 {
                    (strands, 20_000, 20_000 + i64::from(distance))
                } else {
                    (strands ^ 3, 20_000, 20_000 - i64::from(distance))
                };
                hits.push(hit(from, strands & 2 != 0));
                hits.push(hit(to, strands & 1 != 0));
            }
        }
        let mut seen = Distances::default();
        for pair in hits.chunks_exact(2) {
            let mates = [&pair[..1], &pair[1..]].map(|one| {
                // SAFETY: `Hit` has the layout of the structure.
                unsafe { std::slice::from_raw_parts(one.as_ptr().cast::<Hit>(), 1) }
            });
            estimate::add(&mut seen, mates, opts);
        }
        let mut arrays: Vec<*mut sys::mb_hit_t> = hits.iter_mut().map(std::ptr::from_mut).collect();
        let pairs = arrays.len() / 2;
        let offsets: Vec<i32> = (0..pairs as i32).map(|i| 2 * i).collect();
        let mut inserts = [Insert::default(); 4];
        // SAFETY: `pairs` offsets and counts, two arrays of one hit for each pair; without an arena the call
        // allocates and frees for itself. The verbosity is written by no other code.
        unsafe {
            kom_verbose = 0;
            mb_pestat(
                std::ptr::null_mut(),
                &opts.0,
                pairs as i32,
                offsets.as_ptr(),
                vec![2; pairs].as_ptr(),
                vec![1; 2 * pairs].as_ptr(),
                arrays.as_mut_ptr(),
                inserts.as_mut_ptr(),
            );
        }
        (inserts, seen)
    }
}
