//! Safe wrappers of minibwa's C functions.
//!
//! minibwa's public header maps single reads, and pairs with a given insert size. Its command line does more: it maps
//! a batch of reads, estimates the insert size from all of them, then pairs. These steps are functions of the same
//! library (`mb_pair` and others) that the header does not declare, so they are declared here as in the version that
//! `Cargo.toml` pins. The structures of an index are declared here, too: minibwa's own loader and builder ignore read
//! and write errors, so this crate loads and builds the index and passes arrays to the C code.
#![allow(unsafe_code)] // C functions and the structures that they return.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::io;
use std::ptr::{NonNull, null};

use memmap2::MmapMut;
use minibwa_sys as sys;

use super::index_files::{BurrowsWheelerTransform, PackedSequences};

/// Option flag: pair mates.
pub(super) const PAIR_MATES: u64 = sys::MB_F_PE as u64;
/// Option flag of `-Y`: soft-clip supplementary records.
pub(super) const SOFT_CLIP_SUPPLEMENTARY: u64 = sys::MB_F_SUPP_SOFT as u64;
/// Option flag of `-5`: the leftmost segment of a read is primary.
pub(super) const LEFTMOST_IS_PRIMARY: u64 = sys::MB_F_PRIMARY5 as u64;
/// Preset of `-x` for long reads.
pub(super) const LONG_READ_PRESET: &CStr = c"lr";
/// Preset of `-x` for short reads.
pub(super) const SHORT_READ_PRESET: &CStr = c"sr";

/// `mb_pestat_t` (mbpriv.h): insert sizes of one orientation.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct InsertSizeRange {
    /// Minimum and maximum insert size of a proper pair (bp).
    pub low: c_int,
    pub high: c_int,
    /// Not zero if too few pairs have this orientation.
    pub failed: c_int,
    pub mean: f64,
    pub deviation: f64,
}

/// `mb_idx_s` (mbpriv.h): an index.
#[repr(C)]
struct RawIndex {
    is_meth: i32,
    l2b: *const RawSequences,
    bwt: *const RawTransform,
}

/// `l2b_ctg_t` (l2bit.h): a reference sequence.
#[repr(C)]
struct RawContig {
    name: *const c_char,
    comment: *const c_char,
    length: u64,
    offset: u64,
}

/// `l2b_t` (l2bit.h): the packed reference. A pair of numbers is length and capacity.
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

/// `mb_sai_t` (bwt.h): a range of rows of the Burrows-Wheeler transform with a common prefix.
#[repr(C)]
struct RowRange([u64; 4]);

/// `mb_bwt_t` (bwt.h): the Burrows-Wheeler transform.
#[repr(C)]
struct RawTransform {
    end: u64,
    less: [u64; 5],
    length: u64,
    words: u64,
    word: *const u64,
    /// For each byte of packed bases: the count of each base, one byte per count.
    counts: [u32; 256],
    prefix_length: u32,
    prefixes: *const RowRange,
    rate: u32,
    samples: u64,
    sample: *const u64,
    mapped: *const c_void,
    mapped_bytes: usize,
}

unsafe extern "C" {
    fn mb_tbuf_km(arena: *mut sys::mb_tbuf_t) -> *mut c_void;
    fn mb_pair(
        km: *mut c_void,
        opt: *const sys::mb_opt_t,
        l2b: *const RawSequences,
        n_hit: *mut i32,
        hit: *mut *mut sys::mb_hit_t,
        pes: *const InsertSizeRange,
        qlen: *mut i32,
        qseq: *const *const c_char,
    );
    fn mb_bwt_count_kmer(bwt: *const RawTransform, depth: i32, a: *mut RowRange);
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
        pes: *mut InsertSizeRange,
    );
    #[cfg(test)]
    static mut kom_verbose: c_int;
}

/// Options of minibwa's command line.
#[derive(Clone)]
pub(super) struct MappingOptions(sys::mb_opt_t);

impl MappingOptions {
    /// Creates minibwa's default options, or the options of a preset.
    pub(super) fn new(preset: Option<&CStr>) -> Self {
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
        MappingOptions(opts)
    }

    /// The C structure, for changes.
    pub(super) fn raw_options_mut(&mut self) -> &mut sys::mb_opt_t {
        &mut self.0
    }

    /// The options as the C structure.
    pub(super) fn raw_options(&self) -> &sys::mb_opt_t {
        &self.0
    }
}

/// Number of bases of the prefixes whose rows are stored in a table.
const PREFIX_BASES: u32 = 10;

/// A read-only index in memory, as the C code needs it.
pub(super) struct Index {
    sequences: PackedSequences,
    transform: BurrowsWheelerTransform,
    /// Rows of the transform that begin with each prefix; `raw` points to them.
    prefixes: MmapMut,
    _contigs: Vec<RawContig>,
    /// The structures for the C code. They point into the fields above; `raw.l2b` and `raw.bwt` are owned by this
    /// value.
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
    /// Creates the index from both files. They must be complete and belong together, because the C code does not
    /// check them. The calling thread touches the table of prefixes first.
    ///
    /// # Errors
    /// There is too little memory.
    pub(super) fn new(sequences: PackedSequences, transform: BurrowsWheelerTransform) -> io::Result<Index> {
        // The arrays do not move when the structures that own them are moved.
        let mut contigs: Vec<RawContig> = Vec::with_capacity(sequences.contig_lengths().len());
        let [names, comments] = sequences.names_and_comments();
        let mut offset = 0;
        for ((name, comment), &length) in names.zip(comments).zip(sequences.contig_lengths()) {
            let comment = if comment.len() > 1 { comment.as_ptr().cast() } else { null() };
            contigs.push(RawContig { name: name.as_ptr().cast(), comment, length, offset });
            offset += length;
        }
        let twice = |n: usize| [n as u64; 2];
        let l2b = RawSequences {
            bases: sequences.bases,
            contigs: twice(contigs.len()),
            contig: contigs.as_ptr(),
            words: twice(sequences.base_words().len()),
            ambiguous: twice(sequences.ambiguous_ranges().len()),
            masked: [0; 2],
            ambiguous_at: sequences.ambiguous_ranges().as_ptr(),
            masked_at: null(),
            word: sequences.base_words().as_ptr(),
            names: null(),
            comments: null(),
            mapped: null(),
            mapped_bytes: 0,
        };
        let counts = std::array::from_fn(|byte| (0..4).map(|i| 1 << (8 * (byte >> (2 * i) & 3))).sum::<u32>());
        let mut bwt = RawTransform {
            end: transform.end,
            less: transform.less,
            length: transform.text_len(),
            words: transform.transform_blocks().len() as u64,
            word: transform.transform_blocks().as_ptr(),
            counts,
            prefix_length: 0,
            prefixes: null(),
            rate: transform.rate,
            samples: transform.suffix_array_samples().len() as u64,
            sample: transform.suffix_array_samples().as_ptr(),
            mapped: null(),
            mapped_bytes: 0,
        };
        let mut prefixes = MmapMut::map_anon(size_of::<RowRange>() << (2 * PREFIX_BASES))?;
        // SAFETY: the transform is whole, and the call writes 4^PREFIX items, which is the length of the buffer.
        unsafe { mb_bwt_count_kmer(&bwt, PREFIX_BASES as i32, prefixes.as_mut_ptr().cast()) };
        (bwt.prefix_length, bwt.prefixes) = (PREFIX_BASES, prefixes.as_ptr().cast());
        let (l2b, bwt) = (Box::into_raw(Box::new(l2b)), Box::into_raw(Box::new(bwt)));
        let raw = RawIndex { is_meth: 0, l2b, bwt };
        Ok(Index { sequences, transform, prefixes, _contigs: contigs, raw })
    }

    /// Names and lengths (bp) of the sequences.
    pub(super) fn contigs(&self) -> impl Iterator<Item = (String, u64)> {
        self.sequences.contigs()
    }

    /// Memory of the index (bytes).
    pub(super) fn memory_bytes(&self) -> u64 {
        (self.sequences.file_bytes().len() + self.transform.file_bytes().len() + self.prefixes.len()) as u64
    }

    /// The Burrows-Wheeler transform and the sampled suffix array, as bytes.
    pub(super) fn large_arrays(&self) -> [&[u8]; 2] {
        [self.transform.transform_blocks(), self.transform.suffix_array_samples()].map(bytemuck::cast_slice)
    }

    fn raw(&self) -> *const sys::mb_idx_t {
        std::ptr::from_ref(&self.raw).cast()
    }
}

/// Number of extra items after a suffix array with which libsais sorts faster.
pub(super) const LIBSAIS_EXTRA_ITEMS: usize = 10_000;

/// An integer type for suffix positions.
pub(super) trait SuffixPosition: Copy + Sized {
    const ZERO: Self;

    fn from_usize(position: usize) -> Self;

    /// Writes the suffix array of `text` to `positions`. Returns whether libsais succeeded.
    ///
    /// # Safety
    /// `positions` must have room for the length of `text` plus [`LIBSAIS_EXTRA_ITEMS`] items.
    unsafe fn sort(text: &[u8], positions: *mut Self) -> bool;
}

impl SuffixPosition for i32 {
    const ZERO: i32 = 0;

    fn from_usize(position: usize) -> i32 {
        position as i32
    }

    unsafe fn sort(text: &[u8], positions: *mut i32) -> bool {
        // SAFETY: the length is that of `text`. By the contract of `sort`, `positions` has room for its suffixes and
        // for `LIBSAIS_EXTRA_ITEMS` more. A null pointer means that libsais returns no counts.
        unsafe {
            libsais(text.as_ptr(), positions, text.len() as i32, LIBSAIS_EXTRA_ITEMS as i32, null::<i32>().cast_mut())
                == 0
        }
    }
}

impl SuffixPosition for i64 {
    const ZERO: i64 = 0;

    fn from_usize(position: usize) -> i64 {
        position as i64
    }

    unsafe fn sort(text: &[u8], positions: *mut i64) -> bool {
        // SAFETY: as for 32 bits.
        unsafe {
            libsais64(text.as_ptr(), positions, text.len() as i64, LIBSAIS_EXTRA_ITEMS as i64, null::<i64>().cast_mut())
                == 0
        }
    }
}

/// The suffix array of a text, beginning with the empty suffix; `None` if there is too little memory. 32-bit
/// positions are for texts shorter than 2^31 bytes minus [`LIBSAIS_EXTRA_ITEMS`].
pub(super) fn suffix_array<P: SuffixPosition>(text: &[u8]) -> Option<Vec<P>> {
    let mut positions: Vec<P> = Vec::new();
    let all = text.len() + 1 + LIBSAIS_EXTRA_ITEMS;
    positions.try_reserve_exact(all).ok()?;
    positions.resize(all, P::ZERO);
    positions[0] = P::from_usize(text.len());
    // SAFETY: behind the first item there is room for both.
    let sorted = unsafe { P::sort(text, positions[1..].as_mut_ptr()) };
    positions.truncate(text.len() + 1);
    sorted.then_some(positions)
}

/// Scratch memory (arena) of a thread.
pub(super) struct ThreadArena(NonNull<sys::mb_tbuf_t>);

// SAFETY: the arena belongs to the buffer alone; it may move between threads.
unsafe impl Send for ThreadArena {}

impl Drop for ThreadArena {
    fn drop(&mut self) {
        // SAFETY: it came from `mb_tbuf_init` and is destroyed once.
        unsafe { sys::mb_tbuf_destroy(self.0.as_ptr()) };
    }
}

impl ThreadArena {
    pub(super) fn new() -> Self {
        // SAFETY: no arguments to get wrong.
        let arena = NonNull::new(unsafe { sys::mb_tbuf_init(0) });
        ThreadArena(arena.expect("minibwa could not allocate a thread buffer"))
    }

    /// Frees memory if a read has made the arena too large.
    pub(super) fn shrink_memory(&mut self, opts: &MappingOptions) {
        // SAFETY: the buffer is alive and nothing points into its arena between calls.
        unsafe { sys::mb_tbuf_reset(self.0.as_ptr(), opts.0.cap_kalloc) };
    }
}

/// One alignment of a read.
#[repr(transparent)]
pub(super) struct Hit(sys::mb_hit_t);

impl Hit {
    /// The alignment as the C structure.
    pub(super) fn raw_hit(&self) -> &sys::mb_hit_t {
        &self.0
    }

    /// Whether the read aligns to the reverse strand.
    pub(super) fn is_reverse(&self) -> bool {
        self.0.rev() != 0
    }

    /// Result of the base-level alignment; `None` if it was not done.
    pub(super) fn alignment(&self) -> Option<&sys::mb_extra_t> {
        // SAFETY: NULL or a structure that lives as long as the hit: only `Hits` frees it.
        unsafe { self.0.p.as_ref() }
    }

    /// CIGAR operations, encoded as in BAM.
    pub(super) fn cigar(&self) -> &[u32] {
        let Some(alignment) = self.alignment() else { return &[] };
        // SAFETY: `n_cigar` operations stand behind the structure, in the same allocation.
        unsafe { std::slice::from_raw_parts((*self.0.p).cigar.as_ptr(), alignment.n_cigar.max(0) as usize) }
    }
}

/// The hits of each read of a batch.
pub(super) struct Hits {
    counts: Vec<i32>,
    /// One array per count, from C's allocator; NULL before the first batch.
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
    /// Frees all hits.
    pub(super) fn clear(&mut self) {
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

    /// Hits of read `i`.
    pub(super) fn hits_of_read(&self, i: usize) -> &[Hit] {
        match self.counts.get(i) {
            // SAFETY: array `i` holds that many hits, and `Hit` has their layout.
            Some(&count) if count > 0 => unsafe {
                std::slice::from_raw_parts((*self.arrays.add(i)).cast(), count as usize)
            },
            _ => &[],
        }
    }
}

/// The index and the options with which reads are mapped.
#[derive(Clone, Copy)]
pub(super) struct MappingTarget<'a> {
    pub index: &'a Index,
    pub(crate) opts: &'a MappingOptions,
}

/// Reusable arrays through which a batch of reads is passed to the C code.
#[derive(Default)]
pub(super) struct QueryBatch {
    /// Read names, each with a NUL at its end.
    names: Vec<u8>,
    name_at: Vec<usize>,
    /// Bases of the reads that must be changed before mapping.
    seqs: Vec<u8>,
}

impl QueryBatch {
    /// Maps each read separately and stores its alignments in `hits`. Reads are given as `(name, bases)`.
    ///
    /// If the options ask for pairing, two consecutive reads are paired with the insert size of the options. Names
    /// must not contain NUL, and reads must be shorter than 2 Gbp.
    pub(super) fn map_reads<'r>(
        &mut self,
        target: MappingTarget<'_>,
        arena: &mut ThreadArena,
        reads: impl ExactSizeIterator<Item = (&'r [u8], &'r [u8])> + Clone,
        hits: &mut Hits,
    ) {
        let MappingTarget { index, opts } = target;
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
        let mut names: Vec<*const c_char> = self.name_at.iter().map(|&at| self.names[at..].as_ptr().cast()).collect();
        let (mut seqs, mut lengths) = (vec![std::ptr::null(); n], vec![0; n]);
        self.base_pointers(reads.map(|(_, seq)| seq), &mut seqs, &mut lengths);
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
                arena.0.as_ptr(),
                names.as_mut_ptr(),
            )
        };
        if hits.arrays.is_null() {
            hits.counts.clear();
        }
    }

    /// Pairs reads `first` and `first` + 1, whose bases are `mates`. Hits may be added, moved and removed.
    pub(super) fn pair_mates(
        &mut self,
        target: MappingTarget<'_>,
        arena: &mut ThreadArena,
        mates: [&[u8]; 2],
        inserts: &[InsertSizeRange; 4],
        hits: &mut Hits,
        first: usize,
    ) {
        if hits.counts.len() < first + 2 {
            return;
        }
        let MappingTarget { index, opts } = target;
        let (mut seqs, mut lengths) = ([std::ptr::null(); 2], [0; 2]);
        self.base_pointers(mates.into_iter(), &mut seqs, &mut lengths);
        // SAFETY: both reads have an array and a count, which the call keeps in step; four inserts are what it reads; the
        // sequences are as long as `lengths` says and are only read; the arena is this thread's.
        unsafe {
            mb_pair(
                mb_tbuf_km(arena.0.as_ptr()),
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

    /// Pointers to the bases and their lengths. Replaces U by T, as minibwa's reader does; its mapper does not accept
    /// U.
    fn base_pointers<'r>(
        &mut self,
        reads: impl Iterator<Item = &'r [u8]> + Clone,
        seqs: &mut [*const c_char],
        lengths: &mut [i32],
    ) {
        let uracil = |seq: &[u8]| memchr::memchr2(b'U', b'u', seq).is_some();
        self.seqs.clear();
        for seq in reads.clone().filter(|seq| uracil(seq)) {
            self.seqs.extend(seq.iter().map(|&base| if matches!(base, b'U' | b'u') { base - 1 } else { base }));
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

/// minibwa's own estimate, for comparison in tests.
#[cfg(test)]
pub(super) mod oracle {
    use super::super::insert_size::{self, InsertSizesByOrientation};
    use super::*;

    fn hit(position: i64, reverse: bool) -> sys::mb_hit_t {
        // SAFETY: a structure of numbers and one pointer, for which zeros are values.
        let mut hit: sys::mb_hit_t = unsafe { std::mem::zeroed() };
        (hit.ts, hit.te, hit.mapq) = (position, position, 60);
        hit.set_rev(u32::from(reverse));
        hit
    }

    /// Makes read pairs with the given insert sizes. Returns minibwa's estimate, and the insert sizes that
    /// [`insert_size::add_pair`] finds.
    pub(crate) fn estimate(
        opts: &MappingOptions,
        insert_sizes: &InsertSizesByOrientation,
    ) -> ([InsertSizeRange; 4], InsertSizesByOrientation) {
        let mut hits = Vec::new();
        for (strands, insert_sizes) in insert_sizes.iter().enumerate() {
            for (i, &distance) in insert_sizes.iter().enumerate() {
                // Mates at the same position count as the second one before the first one.
                let (strands, from, to) = if i % 2 == 0 && distance > 0 {
                    (strands, 20_000, 20_000 + i64::from(distance))
                } else {
                    (strands ^ 3, 20_000, 20_000 - i64::from(distance))
                };
                hits.push(hit(from, strands & 2 != 0));
                hits.push(hit(to, strands & 1 != 0));
            }
        }
        let mut seen = InsertSizesByOrientation::default();
        for pair in hits.chunks_exact(2) {
            let mates = [&pair[..1], &pair[1..]].map(|one| {
                // SAFETY: `Hit` has the layout of the structure.
                unsafe { std::slice::from_raw_parts(one.as_ptr().cast::<Hit>(), 1) }
            });
            insert_size::add_pair(&mut seen, mates, opts);
        }
        let mut arrays: Vec<*mut sys::mb_hit_t> = hits.iter_mut().map(std::ptr::from_mut).collect();
        let pairs = arrays.len() / 2;
        let offsets: Vec<i32> = (0..pairs as i32).map(|i| 2 * i).collect();
        let mut inserts = [InsertSizeRange::default(); 4];
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
