//! What a call costs for each base: the one table of figures that plans are made of.
//!
//! A Gbase is 10⁹ bases of reads, a Gbp 10⁹ bases of the reference. CPU seconds are those of all threads together.

use serde::Serialize;

/// What a call costs, by unit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Rates {
    /// CPU s a Gbase of both samples: counting in one partition.
    pub(crate) count: f64,
    /// CPU s a Gbase of both samples: reading and cutting again for each further partition.
    pub(crate) again: f64,
    /// CPU s a Gbase of both samples: leaving a packed copy of the reads.
    pub(crate) record: f64,
    /// CPU s a Gbase: what a later pass takes more when it reads files instead of the copy.
    pub(crate) reread: f64,
    /// CPU s a Gbase of the tumour: finding its reads again in the copy, grouping and assembling.
    pub(crate) assemble: f64,
    /// CPU s a Gbp: a scan of the reference for contigs, of which there are two in each turn.
    pub(crate) scan: f64,
    /// CPU s a Gbase of the tumour: holding its contigs against what the scans found.
    pub(crate) compare: f64,
    /// CPU s a Gbase of both samples: finding reads in the copy.
    pub(crate) recruit: f64,
    /// CPU s a Gbase of both samples, at 30x.
    pub(crate) judge: f64,
    /// CPU s a Gbase of both samples, at 30x.
    pub(crate) write: f64,
    /// What `assemble` and `recruit` are more on a genome ten times [`SMALL`], as a share: repeats have more copies, tables are larger than caches.
    pub(crate) tenfold: f64,
    /// The same of `compare`, which goes with the places that fit contigs, ...
    pub(crate) tenfold_places: f64,
    /// ... and of `judge` and `write`, which go with what is found.
    pub(crate) tenfold_found: f64,
    /// s a Gbp, in one thread: reading the reference, which is done three times.
    pub(crate) reference: f64,
    /// s a Gbase, in one thread: inflating and cutting one file of reads.
    pub(crate) inflate: f64,
    /// Share of the time that a thread works where there is work for all.
    pub(crate) busy: f64,
    /// Bytes/s of the work folder's disk.
    pub(crate) disk: f64,
    /// Bytes of a process that holds nothing yet, and ...
    pub(crate) base_bytes: f64,
    /// ... of the reads that a thread holds.
    pub(crate) thread_bytes: f64,
    /// Bytes of memory a k-mer of the sample of roots, and ...
    pub(crate) sampled_bytes: f64,
    /// ... of each sample in each thread: what is noted of its library.
    pub(crate) library_bytes: f64,
    /// Bytes of memory a file of BAM, CRAM or CBQ: reads that wait for their mates.
    pub(crate) waiting_bytes: f64,
    /// CPU s a Gbase of the tumour: looking picked k-mers up in a panel, and ...
    pub(crate) panel: f64,
    /// ... bytes of memory of what it says of them.
    pub(crate) in_normals_bytes: f64,
    /// Bytes of memory a Gbase of the tumour while it is assembled: picked k-mers, and ...
    pub(crate) assemble_bytes: f64,
    /// ... the pairs that have them, as far as half of what is left has room for them.
    pub(crate) labelled_bytes: f64,
    /// Bytes of memory a Gbase of the tumour: contigs and where they lie, beside the tables by which they are looked for.
    pub(crate) place_bytes: f64,
    /// Bases of contigs, a Gbase of the tumour.
    pub(crate) contig_bases: f64,
    /// Bytes of memory a Gbase of both samples: contigs, their index and the shelves that are being filled.
    pub(crate) recruit_bytes: f64,
    /// Bytes of memory a Gbase of both samples beside the pairs of the range in hand: contigs and what is found of them.
    pub(crate) judge_bytes: f64,
    /// Bytes of memory a Gbase of both samples, beside those: reads of calls while they are placed.
    pub(crate) write_bytes: f64,
    /// Bytes of pairs recruited, a Gbase of both samples: in the work folder, and ...
    pub(crate) pair_bytes: f64,
    /// ... in memory while they are judged, if it has room.
    pub(crate) resident_bytes: f64,
    /// Bytes of the files of finished units, a Gbase of the tumour.
    pub(crate) unit_bytes: f64,
    /// Bytes of results a Gbase of both samples.
    pub(crate) result_bytes: f64,
    /// Bytes of gzip'd FASTQ a base, where no file says.
    pub(crate) gzip: f64,
    /// Bytes of the packed copy a base, where no file says: four qualities.
    pub(crate) copy: f64,
    /// W of the machine while it calls, if known.
    pub(crate) watts: Option<f64>,
}

/// Gbp of a genome whose units cost what the rates say.
pub(crate) const SMALL: f64 = 0.025;

/// Where [`MEASURED`] was measured.
pub(crate) const MACHINE: &str = "AMD EPYC virtual machine (Zen 4), 2 cores, 24 GB, a virtual disk";

/// Of runs on [`MACHINE`] of 2026-11-24 with 25, 100 and 300 Mbp of `simulate --genome-like human --library wgs` at 30x/30x, 2×150 bp; `again` and `scan` of earlier ones;
/// `busy` and `disk` are guesses. `--from` puts what was measured on the spot in their place.
pub(crate) const MEASURED: Rates = Rates {
    count: 19.0,
    again: 8.0,
    record: 1.2,
    reread: 3.2,
    assemble: 6.8,
    scan: 18.0,
    compare: 2.8,
    recruit: 3.9,
    judge: 1.25,
    write: 0.65,
    tenfold: 0.3,
    tenfold_places: 1.36,
    tenfold_found: 0.45,
    reference: 0.8,
    inflate: 4.5,
    busy: 0.9,
    disk: 5e8,
    base_bytes: 40e6,
    thread_bytes: 12e6,
    sampled_bytes: 70.0,
    library_bytes: 3e6,
    waiting_bytes: 10e6,
    panel: 3.0,
    in_normals_bytes: 20e6,
    assemble_bytes: 50e6,
    labelled_bytes: 60e6,
    place_bytes: 15e6,
    contig_bases: 2.5e6,
    recruit_bytes: 20e6,
    judge_bytes: 18e6,
    write_bytes: 20e6,
    pair_bytes: 43e6,
    resident_bytes: 145e6,
    unit_bytes: 20e6,
    result_bytes: 4e6,
    gzip: 0.46,
    copy: 0.55,
    watts: None,
};
