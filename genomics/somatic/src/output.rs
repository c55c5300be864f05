//! The files a call leaves: `somatic.vcf.gz`, `contigs.fa`, `supporting.bam`, `summary.json`. They are put into a set, and appear with
//! it; they depend on the calls alone, not on threads.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::Path;

use genuma_align::bam::{self, Heading, Program, Read, ReadGroup, Template, Templated};
use genuma_align::indexed::{self, IndexedFile, Place, Records};
use genuma_align::scan::Scan;
use genuma_reads::fasta::Reference;
use genuma_work::parallel::try_in_order;
use genuma_work::piles::{Piles, Room};
use genuma_work::publish::{AtomicFile, Set};
use genuma_work::{Meter, spill};
use serde::{Deserialize, Serialize};

use crate::change::{self, Change};
use crate::compare::{Compared, Finding};
use crate::judge::Finished;
use crate::locus::{Call, Locus};
use crate::means::Means;
use crate::ranges::resident;
use crate::record::Record;
use crate::recruit::Kept;
use crate::vcf;

/// Why a result could not be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be made or finished.
    #[error(transparent)]
    File(#[from] genuma_work::publish::Error),
    /// A write failed; the message names the file.
    #[error(transparent)]
    Write(#[from] io::Error),
    /// The VCF or its index cannot be written.
    #[error(transparent)]
    Vcf(#[from] indexed::Error),
    /// The BAM cannot be made.
    #[error(transparent)]
    Bam(#[from] bam::Error),
    /// What memory had no room for cannot be read.
    #[error(transparent)]
    Spill(#[from] spill::Error),
}

/// Letters of a FASTA line.
const WIDTH: usize = 80;

/// Writes a compressed VCF (BGZF) and its index: `.tbi`, or `.csi` when a sequence of `genome` is too long for that.
/// `records` must be sorted.
///
/// # Errors
/// A file cannot be written.
pub fn write_vcf(
    path: &Path,
    header: &str,
    records: &[Record],
    genome: &Reference,
    set: &mut Set,
) -> Result<(), Error> {
    let longest = genome.contigs.iter().map(|c| c.seq.len()).max().unwrap_or(0);
    let used: BTreeSet<usize> = records.iter().map(|r| r.chrom).collect();
    // The index knows only sequences that have records, as those of tabix do.
    let names = used.iter().map(|&c| genome.contigs[c].name.clone()).collect();
    let ranks: Vec<usize> = used.into_iter().collect();
    let mut file = IndexedFile::create(path, longest, Records::Vcf { names })?;
    file.head(header.as_bytes())?;
    for record in records {
        let text = vcf::line(record, genome) + "\n";
        let place = Place {
            sequence: ranks.partition_point(|&c| c < record.chrom),
            start: record.pos,
            end: record.end,
            aligned: true,
        };
        file.record(text.as_bytes(), Some(place))?;
    }
    Ok(file.finish(set)?)
}

/// Writes the contigs as FASTA: each tumour contig as `tN`, the N of the VCF's CONTIG, with its length, the pairs of
/// both samples that lie on it and the places of its changes; and after it, as `nN`, the normal allele of its first
/// change. Without a reference the normal contigs that calls are placed on follow under their own names instead.
///
/// # Errors
/// The file cannot be written.
pub fn write_contigs(path: &Path, finished: &Finished, set: &mut Set) -> Result<(), Error> {
    let mut file = AtomicFile::create(path)?;
    for (c, locus) in finished.ranges.loci().iter().enumerate() {
        let contig = &locus.contig;
        let (seq, places) = (&contig.seq[contig.assembled.clone()], places(contig, &finished.genome));
        let ([normal, tumour], n) = (locus.pairs, c + 1);
        writeln!(file, ">t{n} length={} tumour_pairs={tumour} normal_pairs={normal}{places}", seq.len())?;
        write_bases(&mut file, seq)?;
        if finished.on_reference
            && let Some(finding) = contig.findings.first()
        {
            let seq = normal_allele(contig, finding);
            writeln!(file, ">n{n} length={} normal_of=t{n}", seq.len())?;
            write_bases(&mut file, seq)?;
        }
    }
    if !finished.on_reference {
        for contig in &finished.genome.contigs {
            writeln!(file, ">{} length={}", contig.name, contig.seq.len())?;
            write_bases(&mut file, &contig.seq)?;
        }
    }
    set.add(file.complete()?);
    Ok(())
}

fn write_bases(file: &mut AtomicFile, seq: &[u8]) -> io::Result<()> {
    for line in seq.chunks(WIDTH) {
        file.write_all(line)?;
        file.write_all(b"\n")?;
    }
    Ok(())
}

/// ` changes=` and where the findings of a contig are, 1-based; both ends of a junction with `/` between.
fn places(contig: &Compared, genome: &Reference) -> String {
    let at = |chrom: usize, pos: usize| format!("{}:{}", genome.contigs[chrom].name, pos + 1);
    let places: Vec<String> = contig
        .findings
        .iter()
        .map(|f| match &f.change {
            Change::Allele { chrom, pos, .. } => at(*chrom, *pos),
            Change::Junction { ends: [a, b], .. } => format!("{}/{}", at(a.chrom, a.pos), at(b.chrom, b.pos)),
            Change::Novel { end, .. } => at(end.chrom, end.pos),
        })
        .collect();
    if places.is_empty() { String::new() } else { format!(" changes={}", places.join(",")) }
}

/// What the normal has where the contig was assembled: for a junction, the sequence that shares the left flank.
fn normal_allele<'a>(contig: &Compared, finding: &'a Finding) -> &'a [u8] {
    let (start, all) = (contig.assembled.start, &finding.left_normal);
    let end = match finding.change {
        // The bases beyond the contig's right end stand behind the normal allele too.
        Change::Allele { .. } => all.len().saturating_sub(contig.seq.len() - contig.assembled.end),
        _ => contig.assembled.end.min(all.len()),
    };
    all.get(start..end).unwrap_or_default()
}

/// A pair that speaks for the tumour allele of some call.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Supporting {
    /// Where its calls are: sequences and positions, both ends of a junction, sorted.
    pub places: Vec<(usize, usize)>,
    /// The pair.
    pub pair: Kept,
    /// How surely the contigs of its calls lie there: the best of their mapping qualities.
    pub quality: u8,
    /// Whether one of its calls passed.
    pub passed: bool,
}

impl Supporting {
    /// Takes what is known of the same pair from calls elsewhere.
    fn also(&mut self, other: &mut Supporting) {
        self.places.append(&mut other.places);
        self.quality = self.quality.max(other.quality);
        self.passed |= other.passed;
    }
}

impl Templated for Supporting {
    fn template(&self) -> Template<'_> {
        let Supporting { places, pair, quality, passed } = self;
        let mates = [0, 1].map(|m| Read { seq: &pair.mates[m].seq, qual: &pair.mates[m].qual });
        let group = usize::from(pair.sample);
        Template { name: &pair.name, group, mates, places, quality: *quality, anywhere: *passed }
    }
}

/// Pairs of a portion of those that support calls, about, and portions, at most.
const PORTION: usize = 8 << 10;
const MOST_PORTIONS: usize = 1024;
/// Pairs that a thread puts away at a time.
const CHUNK: usize = 256;

/// The pairs that speak for the tumour allele of any call, whether it passed or not, each once, in portions by place, in which they are
/// ordered by place, sample, name and bases. Portions lie in the folder `work` where they have no room in `memory` bytes; which pairs are
/// in which depends on the calls alone.
///
/// # Errors
/// What memory had no room for cannot be read, or not be put away.
pub fn supporting(
    finished: &mut Finished,
    work: &Path,
    memory: u64,
    threads: usize,
) -> Result<impl Iterator<Item = Result<Vec<Supporting>, Error>> + use<>, Error> {
    const WHAT: &str = "supporting reads'";
    let calls: Vec<&Call> = finished.events.iter().flat_map(|e| &e.calls).collect();
    let mut of_locus: Vec<Vec<usize>> = vec![Vec::new(); finished.ranges.loci().len()];
    let mut firsts: Vec<((usize, usize), usize)> = Vec::with_capacity(calls.len());
    for (c, call) in calls.iter().enumerate() {
        of_locus[call.locus].push(c);
        firsts.extend(
            change::places(&call.change).into_iter().min().map(|place| (place, call.supporting.len())),
        );
    }
    let starts = starts_of_portions(firsts);
    let said =
        |call: &Call, locus: &Locus| (change::places(&call.change), locus.contig.findings[call.finding].mapq);
    let of_call: Vec<_> = calls.iter().map(|call| said(call, &finished.ranges.loci()[call.locus])).collect();
    let room = Room::of(memory);
    let put = |piles: &Piles<Supporting>, pile: usize, one: Supporting| {
        let bytes = resident(&one.pair) + 64;
        piles.put(pile, one, bytes)
    };
    // A pair may stand in several ranges: all that is known of it comes together by its number.
    let by_number = Piles::new(WHAT, work, starts.len(), &room);
    finished.ranges.for_each(|_, contigs, pairs| {
        let mut own: Vec<(u32, usize)> = Vec::new();
        for &c in contigs.iter().flat_map(|&contig| &of_locus[contig as usize]) {
            own.extend(calls[c].supporting.iter().map(|&pair| (pair, c)));
        }
        own.sort_unstable();
        let of_pair: Vec<&[(u32, usize)]> = own.chunk_by(|a, b| a.0 == b.0).collect();
        let some: Vec<&[&[(u32, usize)]]> = of_pair.chunks(CHUNK).collect();
        let keep = |(): &mut (), i: usize| {
            some[i].iter().try_for_each(|own| {
                let one = Supporting {
                    places: own.iter().flat_map(|&(_, c)| of_call[c].0.iter().copied()).collect(),
                    pair: pairs[own[0].0 as usize].clone(),
                    quality: own.iter().map(|&(_, c)| of_call[c].1).max().unwrap_or(0),
                    passed: own.iter().any(|&(_, c)| calls[c].genotype.filters.is_empty()),
                };
                put(&by_number, one.pair.id as usize % by_number.len(), one)
            })
        };
        try_in_order(some.len(), threads, || (), keep).map(drop)
    })?;
    let portions = Piles::new(WHAT, work, starts.len(), &room);
    let sort = |(): &mut (), pile: usize| {
        let mut all = by_number.take(pile)?;
        all.sort_unstable_by_key(|one| one.pair.id);
        all.dedup_by(|again, kept| {
            let same = again.pair.id == kept.pair.id;
            if same {
                kept.also(again);
            }
            same
        });
        for mut one in all {
            one.places.sort_unstable();
            one.places.dedup();
            let portion =
                one.places.first().map_or(0, |first| starts.partition_point(|start| start <= first));
            put(&portions, portion.saturating_sub(1), one)?;
        }
        Ok::<(), spill::Error>(())
    };
    try_in_order(starts.len(), threads, || (), sort)?;
    drop(by_number);
    Ok((0..portions.len()).map(move |portion| {
        let mut all = portions.take(portion)?;
        all.sort_unstable();
        Ok(all)
    }))
}

/// The first place of each portion of pairs, of which so many support the call at each of these places.
fn starts_of_portions(mut firsts: Vec<((usize, usize), usize)>) -> Vec<(usize, usize)> {
    firsts.sort_unstable();
    let all: usize = firsts.iter().map(|(_, pairs)| pairs).sum();
    let portion = PORTION.max(all / MOST_PORTIONS);
    let (mut starts, mut held) = (vec![(0, 0)], 0);
    for (place, pairs) in firsts {
        if held + pairs > portion && starts.last() != Some(&place) {
            starts.push(place);
            held = 0;
        }
        held += pairs;
    }
    starts
}

/// Writes the supporting pairs of all samples, aligned to the reference, as a sorted BAM with its index. Without a
/// reference there is nothing to align to and nothing is written. What has no room in memory goes to the folder `work`. `meter` is told of the
/// bases of the reference that have gone past them.
///
/// # Errors
/// A file cannot be written.
pub fn write_supporting(
    path: &Path,
    finished: &mut Finished,
    command: &str,
    means: &Means,
    work: &Path,
    meter: &Meter,
    set: &mut Set,
) -> Result<(), Error> {
    if !finished.on_reference {
        return Ok(());
    }
    // A quarter each: pairs, those that wait to be looked for, looking, records.
    let (memory, threads) = (means.room() / 4, means.threads);
    let portions = supporting(finished, work, memory, threads)?;
    let program = Program { name: "genuma", version: env!("CARGO_PKG_VERSION"), command };
    // By sample: those of the VCF's columns.
    let groups: Vec<ReadGroup<'_>> =
        finished.samples.names().iter().map(|name| ReadGroup { id: name, sample: name }).collect();
    let heading = Heading { genome: &finished.genome, groups: &groups, program };
    let scan = Scan { genome: &finished.genome, parts: None, threads, memory, meter };
    bam::write_bam(path, &heading, portions, &scan, memory as usize, set)
}

/// Writes `value` as indented JSON.
///
/// # Errors
/// The file cannot be written, or the value has no JSON form.
pub fn write_json(path: &Path, value: &impl Serialize, set: &mut Set) -> Result<(), Error> {
    let mut file = AtomicFile::create(path)?;
    serde_json::to_writer_pretty(&mut file, value).map_err(io::Error::from)?;
    file.write_all(b"\n")?;
    set.add(file.complete()?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;
    use std::process::Command;

    use genuma_reads::dna::revcomp;
    use genuma_reads::fasta::Contig;

    use super::*;
    use crate::change::{Breakend, Side};
    use crate::errors::{Errors, Tally};
    use crate::event::{Class, Event, class_of};
    use crate::genotype::{Genotype, Kind};
    use crate::lay::{OFFSETS, Recruit};
    use crate::ledger::Ledger;
    use crate::packed;
    use crate::ranges::Ranges;
    use crate::record;
    use crate::recruit::Kept;
    use crate::samples::Samples;
    use crate::select::Depths;
    use crate::slippage::Slippage;

    fn random_bases(n: usize, seed: u64) -> Vec<u8> {
        let mut x = seed;
        let mut next = || {
            x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            b"ACGT"[(x >> 62) as usize]
        };
        (0..n).map(|_| next()).collect()
    }

    fn genome() -> Reference {
        let contig = |name: &str, n, seed| Contig { name: name.into(), seq: random_bases(n, seed) };
        Reference::from_contigs(vec![
            contig("chr1", 50_000, 1),
            contig("empty", 1_000, 2),
            contig("chr2", 40_000, 3),
        ])
    }

    fn call(change: Change, supporting: &[u32]) -> Call {
        let genotype = Genotype { quality: 50.0, ..Genotype::default() };
        let supporting = supporting.to_vec();
        Call {
            change,
            kind: Kind::Common,
            genotype,
            molecules: 0,
            panel: None,
            turns_back: false,
            locus: 0,
            finding: 0,
            supporting,
            in_phase: Vec::new(),
        }
    }

    fn allele(genome: &Reference, chrom: usize, pos: usize, deleted: usize, alternative: &[u8]) -> Change {
        let reference = genome.contigs[chrom].seq[pos..pos + 1 + deleted].to_vec();
        Change::Allele { chrom, pos, alternative: [&reference[..1], alternative].concat(), reference }
    }

    fn junction(ends: [(usize, usize, Side); 2], inserted: &[u8]) -> Change {
        let ends = ends.map(|(chrom, pos, side)| Breakend { chrom, pos, side });
        Change::Junction { ends, inserted: inserted.to_vec(), homology: 2 }
    }

    /// One event of every kind, and many substitutions.
    fn events(genome: &Reference) -> Vec<Event> {
        use Side::{Left, Right};
        let base = genome.contigs[0].seq[99];
        let other = if base == b'A' { b'C' } else { b'A' };
        let snv = Change::Allele { chrom: 0, pos: 99, reference: vec![base], alternative: vec![other] };
        let novel = |side, pos| Change::Novel {
            end: Breakend { chrom: 0, pos, side },
            sequence: b"GATTACAGATTACA".to_vec(),
        };
        let mut changes = vec![
            vec![snv],
            vec![allele(genome, 0, 200, 3, b"")],
            vec![allele(genome, 0, 300, 0, b"GATTACA")],
            vec![allele(genome, 2, 400, 80, b"")],
            vec![junction([(0, 5_000, Left), (0, 9_000, Right)], b"")],
            vec![junction([(0, 12_000, Right), (0, 13_000, Left)], b"AC")],
            vec![junction([(0, 20_000, Left), (2, 7_000, Left)], b"")],
            vec![novel(Left, 30_000), novel(Right, 30_001)],
        ];
        changes.extend((0..800).map(|i| {
            let (pos, r) = (1_000 + 40 * i, genome.contigs[2].seq[1_000 + 40 * i]);
            let alternative = vec![if r == b'G' { b'T' } else { b'G' }];
            vec![Change::Allele { chrom: 2, pos, reference: vec![r], alternative }]
        }));
        let event = |changes: Vec<Change>| Event {
            class: if changes.len() == 2 { Class::Ins } else { class_of(&changes[0]) },
            calls: changes.into_iter().map(|c| call(c, &[])).collect(),
            phase_set: None,
        };
        changes.into_iter().map(event).collect()
    }

    /// Output of a program that must succeed; `None` when it is not installed.
    fn output(program: &str, arguments: &[&str]) -> Option<String> {
        let Ok(out) = Command::new(program).args(arguments).output() else {
            println!("skipped: {program} is not installed");
            return None;
        };
        assert!(out.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&out.stderr));
        Some(String::from_utf8(out.stdout).unwrap())
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Puts files into a set, and publishes it.
    fn published(put: impl FnOnce(&mut Set) -> Result<(), Error>) -> Result<(), Error> {
        let mut set = Set::default();
        put(&mut set)?;
        Ok(set.publish()?)
    }

    struct Written {
        folder: tempfile::TempDir,
        genome: Reference,
        records: Vec<Record>,
    }

    impl Written {
        fn new() -> Written {
            let (folder, genome) = (tempfile::tempdir().unwrap(), genome());
            let records = record::records(&events(&genome), &genome);
            let written = Written { folder, genome, records };
            written.write(&written.path("somatic.vcf.gz")).unwrap();
            written
        }

        fn path(&self, name: &str) -> PathBuf {
            self.folder.path().join(name)
        }

        fn write(&self, path: &Path) -> Result<(), Error> {
            let header = vcf::header(&self.genome, &Samples::default(), "genuma call", false);
            published(|set| write_vcf(path, &header, &self.records, &self.genome, set))
        }
    }

    #[test]
    fn the_index_finds_what_filtering_finds() {
        let written = Written::new();
        let path = written.path("somatic.vcf.gz");
        let path = path.to_str().unwrap();
        let Some(all) = output("bcftools", &["view", "-H", path]) else { return };
        assert_eq!(all.lines().count(), written.records.len());
        let regions = [("chr1", 1, 50_000), ("chr1", 202, 204), ("chr1", 6_000, 6_001), ("chr1", 99, 99)];
        for (chrom, from, to) in regions.into_iter().chain([("chr2", 7_000, 9_123), ("empty", 1, 1_000)]) {
            let expected: Vec<&str> = written
                .records
                .iter()
                .filter(|l| written.genome.contigs[l.chrom].name == chrom && l.pos <= to && l.end >= from)
                .map(|l| &*l.id)
                .collect();
            let region = format!("{chrom}:{from}-{to}");
            let ids = |text: String| -> Vec<String> {
                text.lines().map(|l| l.split('\t').nth(2).unwrap().to_owned()).collect()
            };
            assert_eq!(
                ids(output("bcftools", &["view", "-H", "-r", &region, path]).unwrap()),
                expected,
                "{region}"
            );
            if let Some(found) = output("tabix", &[path, &region]) {
                assert_eq!(ids(found), expected, "{region}");
            }
        }
        if let Some(chroms) = output("tabix", &["-l", path]) {
            assert_eq!(chroms, "chr1\nchr2\n");
        }
        assert_eq!(
            output("bcftools", &["index", "-n", path]).unwrap(),
            format!("{}\n", written.records.len())
        );
    }

    #[test]
    fn alleles_agree_with_the_reference() {
        let written = Written::new();
        let fasta = written.path("genome.fa");
        written.genome.write(&fasta).unwrap();
        let path = written.path("somatic.vcf.gz");
        let arguments = ["norm", "--check-ref", "e", "-f", fasta.to_str().unwrap(), path.to_str().unwrap()];
        let Some(normalised) = output("bcftools", &arguments) else { return };
        let lines: Vec<&str> = normalised.lines().filter(|l| !l.starts_with('#')).collect();
        assert_eq!(lines.len(), written.records.len());
        for class in ["SNV", "INDEL", "DEL", "INS", "DUP", "BND"] {
            assert!(lines.iter().any(|l| l.contains(&format!("CLASS={class};"))), "{class}");
        }
    }

    #[test]
    fn same_bytes_again_and_no_calls() {
        let written = Written::new();
        let again = written.path("again.vcf.gz");
        written.write(&again).unwrap();
        for suffix in ["", ".tbi"] {
            let read = |name: &str| fs::read(written.path(&format!("{name}.vcf.gz{suffix}"))).unwrap();
            assert!(read("somatic") == read("again"), "{suffix}");
        }
        let header = vcf::header(&written.genome, &Samples::default(), "", false);
        published(|set| write_vcf(&again, &header, &[], &written.genome, set)).unwrap();
        let Some(none) = output("bcftools", &["view", "-H", "-r", "chr1", again.to_str().unwrap()]) else {
            return;
        };
        assert!(none.is_empty());
    }

    #[test]
    fn refusals_leave_nothing() {
        let written = Written::new();
        let path = written.path("no/such/somatic.vcf.gz");
        let refused = format!("{}: cannot write: No such file or directory (os error 2)", path.display());
        assert_eq!(written.write(&path).unwrap_err().to_string(), refused);

        let disk = tempfile::tempdir().unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=8k", "genuma-test"])
            .arg(disk.path())
            .output()
            .is_ok_and(|o| o.status.success());
        if !mounted {
            println!("skipped: no tmpfs can be mounted here");
            return;
        }
        let path = disk.path().join("x");
        let full = [written.write(&path), published(|set| write_json(&path, &vec![1; 100_000], set))]
            .map(|r| r.unwrap_err().to_string());
        let left = names(disk.path());
        Command::new("umount").arg(disk.path()).status().unwrap();
        let expected = format!("{}: cannot write: No space left on device (os error 28)", path.display());
        assert_eq!(full, [&*expected; 2]);
        assert!(left.is_empty(), "{left:?}");
    }

    #[test]
    fn json_is_indented_and_ends_its_last_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("summary.json");
        published(|set| write_json(&path, &("a", [1, 2]), set)).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "[\n  \"a\",\n  [\n    1,\n    2\n  ]\n]\n");
    }

    /// A call with a deletion of 20 bases at chr1:1001-1020, seen by pairs 1 and 2 of the tumour and 0 of the normal.
    fn finished(on_reference: bool) -> Finished {
        let genome = genome();
        let chr1 = &genome.contigs[0].seq;
        let contig = [&chr1[850..1_000], &chr1[1_020..1_170]].concat();
        let change = allele(&genome, 0, 999, 20, b"");
        let finding = Finding {
            change: change.clone(),
            at: 350..350,
            left_normal: chr1[650..1_370].to_vec(),
            right_normal: chr1[650..1_370].to_vec(),
            right_shift: 20,
            mapq: 60,
        };
        let compared = Compared {
            seq: [&chr1[650..850], &contig, &chr1[1_170..1_370]].concat(),
            novel: vec![false; 700],
            weight: vec![0; 700],
            assembled: 200..500,
            depth: 3,
            findings: vec![finding],
            diagonals: [None; 2],
        };
        let pair = |i: u8| {
            let from = usize::from(10 * i);
            let seqs = [contig[from..from + 150].to_vec(), revcomp(&chr1[1_200 + from..1_350 + from])];
            let mates = seqs.map(|seq| packed::Read { qual: vec![30; seq.len()], seq });
            Kept {
                name: format!("p{i}").into(),
                sample: u8::from(i > 1),
                mates,
                id: i.into(),
                contigs: vec![0],
            }
        };
        let recruit = |pair, mate| Recruit { pair, mate, forward: mate == 0, at: [0; OFFSETS] };
        let event = |supporting: &[u32]| Event {
            class: Class::Indel,
            calls: vec![call(change.clone(), supporting)],
            phase_set: None,
        };
        let pairs: Vec<Kept> = (0..5).map(pair).collect();
        let mut locus = Locus::new(compared, [1; 2]);
        locus.take_reads(vec![recruit(0, 0), recruit(2, 0), recruit(2, 1), recruit(3, 0)], &pairs);
        Finished {
            libraries: Default::default(),
            known: Default::default(),
            portraits: Default::default(),
            ranges: Ranges::in_memory(vec![locus], pairs),
            events: vec![event(&[3, 2]), event(&[0, 3])],
            samples: Samples::default(),
            spectra: vec![vec![]; 2],
            depths: Depths { kmer: vec![1.0; 2], error_share: 0.0 },
            bases: vec![0; 2],
            costs: vec![],
            errors: Errors::of(&Tally::default(), Slippage::default()),
            ledger: Ledger::default(),
            strangers: None,
            answers: vec![],
            on_reference,
            genome,
        }
    }

    #[test]
    fn contigs_stand_beside_their_normal_alleles() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("contigs.fa");
        let with = finished(true);
        published(|set| write_contigs(&path, &with, set)).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        let headers = |text: &str| -> Vec<String> {
            text.lines().filter(|l| l.starts_with('>')).map(str::to_owned).collect()
        };
        let tumour = ">t1 length=300 tumour_pairs=2 normal_pairs=1 changes=chr1:1000";
        assert_eq!(headers(&text), [tumour, ">n1 length=320 normal_of=t1"]);
        let read = Reference::read(&path).unwrap();
        let chr1 = &with.genome.contigs[0].seq;
        assert_eq!(read.contigs[0].seq, with.ranges.loci()[0].contig.seq[200..500]);
        assert_eq!(read.contigs[1].seq, chr1[850..1_170]);
        assert!(text.lines().all(|l| l.starts_with('>') || l.len() <= WIDTH));

        // Without a reference the sequences calls are placed on are the normal's contigs.
        let without = finished(false);
        published(|set| write_contigs(&path, &without, set)).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(
            headers(&text),
            [tumour, ">chr1 length=50000", ">empty length=1000", ">chr2 length=40000"]
        );
        assert_eq!(Reference::read(&path).unwrap().contigs[1..], without.genome.contigs[..]);
    }

    fn means() -> Means {
        Means { threads: 2, memory: 1 << 30, scratch: 1 << 30, devices: Default::default() }
    }

    #[test]
    fn supporting_pairs_are_those_of_any_call() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("supporting.bam");
        let mut without = finished(false);
        let portions = supporting(&mut without, folder.path(), 0, 2).unwrap();
        let all: Vec<Supporting> = portions.flat_map(Result::unwrap).collect();
        let ids: Vec<u64> = all.iter().map(|one| one.pair.id).collect();
        assert_eq!(ids, [0, 2, 3]);
        assert!(all.iter().all(|one| one.places == [(0, 999)] && one.quality == 60));
        published(|set| {
            write_supporting(
                &path,
                &mut without,
                "genuma call",
                &means(),
                folder.path(),
                &Meter::default(),
                set,
            )
        })
        .unwrap();
        assert!(!path.exists());

        let mut finished = finished(true);
        published(|set| {
            write_supporting(
                &path,
                &mut finished,
                "genuma call",
                &means(),
                folder.path(),
                &Meter::default(),
                set,
            )
        })
        .unwrap();
        let Some(sam) = output("samtools", &["view", path.to_str().unwrap(), "chr1"]) else { return };
        let mut found: Vec<[&str; 2]> = sam
            .lines()
            .map(|l| [l.split('\t').next().unwrap(), l.rsplit('\t').find(|t| t.starts_with("RG:")).unwrap()])
            .collect();
        found.sort_unstable();
        found.dedup();
        assert_eq!(found, [["p0", "RG:Z:NORMAL"], ["p2", "RG:Z:TUMOR"], ["p3", "RG:Z:TUMOR"]]);
        assert!(sam.contains("20D"), "{sam}");
    }

    #[test]
    fn portions_begin_where_calls_do() {
        let at = |n: usize| ((n % 3, n * 7919 % 100_000), 300);
        let starts = starts_of_portions((0..1_000).map(at).collect());
        assert!(starts.windows(2).all(|two| two[0] < two[1]), "{starts:?}");
        assert_eq!(starts.len(), (1_000 * 300_usize).div_ceil(PORTION / 300 * 300));
        // However many pairs one place has, it is not divided.
        assert_eq!(starts_of_portions(vec![((0, 5), 1 << 20); 9]), [(0, 0), (0, 5)]);
        assert_eq!(starts_of_portions(Vec::new()), [(0, 0)]);
    }
}
