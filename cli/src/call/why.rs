//! The option `--why`: reads the variants whose calling the user wants explained, from a VCF file or the command line.

use std::path::Path;

use anyhow::{Context, bail};
use genuma_planner::min_memory::min_call_memory_bytes;
use genuma_reads::fasta::Reference;
use genuma_simulate::evaluate::vcf::{self, VcfRecord};
use genuma_somatic::change::{Breakend, Change, RetainedSide, left_align_allele};
use genuma_somatic::pipeline::{CallJob, Resources};
use genuma_somatic::variant_trace::{TraceReport, TracedVariant};
use genuma_work::quantity;

use tracing::warn;

use crate::errors::UsageError;

/// Maximum number of reports that are formatted at a time.
const MAX_REPORTS_PER_TEXT: usize = 4096;

/// Parses the values of `--why`: each is a VCF file, or a variant written as `CHROM:POS:REF>ALT`. Insertions without
/// sequence in a VCF file are skipped with a warning.
///
/// # Errors
/// There is no reference, a value is neither a file nor a variant, a file cannot be read, a position or REF base does
/// not match the reference, or an ALT is neither sequence, a breakend, `<DEL>`, `<DUP>` nor `<INV>`.
pub(crate) fn parse_traced_variants(asked: &[String], reference: Option<&Path>) -> anyhow::Result<Vec<TracedVariant>> {
    if asked.is_empty() {
        return Ok(Vec::new());
    }
    let Some(reference) = reference else {
        return Err(UsageError("--why needs a reference: give one with --reference".into()).into());
    };
    let genome = Reference::read_fasta_file(reference)?;
    let mut questions = Vec::new();
    for asked in asked {
        // I/O error ignored: the argument is then refused as a variant.
        if Path::new(asked).is_file() {
            for record in vcf::read_vcf(Path::new(asked))? {
                let VcfRecord { chrom, pos, alternate, .. } = &record;
                // A VCF file can contain records without sequence. They are skipped with a warning.
                if alternate == "<INS>" {
                    warn!(
                        "{asked}: {chrom}:{pos} is not explained because the insertion has no sequence: give the sequence in ALT"
                    );
                    continue;
                }
                questions.push(
                    traced_variant_from_record(&record, &genome).with_context(|| format!("{asked}: {chrom}:{pos}"))?,
                );
            }
        } else {
            let question = parse_variant(asked).and_then(|record| traced_variant_from_record(&record, &genome));
            questions.push(question.map_err(|e| UsageError(format!("--why {asked}: {e:#}")))?);
        }
    }
    Ok(questions)
}

/// Parses `CHROM:POS:REF>ALT` into a VCF record.
fn parse_variant(words: &str) -> anyhow::Result<VcfRecord> {
    let usage = "neither a VCF file nor CHROM:POS:REF>ALT, such as chr1:12345:A>T";
    let mut parts = words.rsplitn(3, ':');
    let (Some(alleles), Some(pos), Some(chrom)) = (parts.next(), parts.next(), parts.next()) else { bail!(usage) };
    let Some((reference, alternate)) = alleles.split_once('>') else { bail!(usage) };
    Ok(VcfRecord {
        chrom: chrom.to_owned(),
        pos: pos.parse().with_context(|| format!("not a position: {pos}"))?,
        reference: reference.to_ascii_uppercase(),
        alternate: alternate.to_ascii_uppercase(),
        ..VcfRecord::default()
    })
}

fn traced_variant_from_record(record: &VcfRecord, genome: &Reference) -> anyhow::Result<TracedVariant> {
    let VcfRecord { chrom, pos, reference, alternate, .. } = record;
    let index = contig_index(chrom, genome)?;
    let seq = &genome.contigs[index].seq;
    let Some(start) = pos.checked_sub(1).filter(|&p| p < seq.len()) else {
        bail!("{chrom} has {} bases, so there is no position {pos}", seq.len());
    };
    let end = |pos: usize, side: RetainedSide| Breakend { chrom: index, pos, side };
    let last = || -> anyhow::Result<usize> {
        let last = record.absolute_info_value("END").context("INFO has no END")?;
        if last <= start + 1 || last >= seq.len() {
            bail!("END={last} is not after POS or not on {chrom}");
        }
        Ok(last)
    };
    let join =
        |a: Breakend, b: Breakend| Change::Junction { ends: [a.min(b), a.max(b)], inserted: Vec::new(), homology: 0 };
    let changes = match alternate.as_str() {
        "<DEL>" => vec![join(end(start, RetainedSide::Left), end(last()?, RetainedSide::Right))],
        "<DUP>" | "<DUP:TANDEM>" => {
            vec![join(end(start + 1, RetainedSide::Right), end(last()? - 1, RetainedSide::Left))]
        }
        "<INV>" => {
            let last = last()?;
            vec![
                join(end(start, RetainedSide::Left), end(last - 1, RetainedSide::Left)),
                join(end(start + 1, RetainedSide::Right), end(last, RetainedSide::Right)),
            ]
        }
        _ if alternate.contains(['[', ']']) => vec![parse_breakend(alternate, end(start, RetainedSide::Left), genome)?],
        _ => {
            let bases = |text: &str| text.bytes().all(|b| b"ACGTN".contains(&b)) && !text.is_empty();
            if !bases(reference) || !bases(alternate) {
                bail!("no sequence to search for: {reference}>{alternate}");
            }
            if seq.get(start..start + reference.len()) != Some(reference.as_bytes()) {
                let found = seq.get(start..start + reference.len()).map(String::from_utf8_lossy);
                bail!("the reference has {} at {chrom}:{pos}, not {reference}", found.unwrap_or_default());
            }
            let (pos, reference, alternative) =
                left_align_allele(seq, start, reference.as_bytes(), alternate.as_bytes());
            vec![Change::Allele { chrom: index, pos, reference, alternative }]
        }
    };
    Ok(TracedVariant { description: format!("{chrom}:{pos}:{reference}>{alternate}"), changes })
}

fn contig_index(chrom: &str, genome: &Reference) -> anyhow::Result<usize> {
    genome
        .contigs
        .iter()
        .position(|c| c.name == chrom)
        .with_context(|| format!("the reference has no sequence {chrom}"))
}

/// Converts the ALT of a breakend record, `t[p[`, `t]p]`, `]p]t` or `[p[t` (VCF 4.3, section 5.4), into a junction.
/// `here` is the position of the record.
fn parse_breakend(alternative: &str, here: Breakend, genome: &Reference) -> anyhow::Result<Change> {
    let first = alternative.starts_with(['[', ']']);
    let bracket = if alternative.contains('[') { '[' } else { ']' };
    let mut parts = alternative.split(bracket);
    let (before, mate, after) = (parts.next(), parts.next(), parts.next());
    let (chrom, pos) = mate.and_then(|m| m.rsplit_once(':')).context("the breakend has no mate position")?;
    let pos: usize = pos.parse().with_context(|| format!("not a position: {pos}"))?;
    let mate_end = Breakend {
        chrom: contig_index(chrom, genome)?,
        pos: pos.checked_sub(1).context("positions start at 1")?,
        side: if bracket == '[' { RetainedSide::Right } else { RetainedSide::Left },
    };
    let here = Breakend { side: if first { RetainedSide::Right } else { RetainedSide::Left }, ..here };
    let letters = if first { after } else { before }.unwrap_or_default().as_bytes();
    // One letter is the base at the breakend. The other letters are inserted between the two ends.
    let inserted = if first { letters.split_last().map(|l| l.1) } else { letters.split_first().map(|l| l.1) };
    let inserted = inserted.unwrap_or_default().to_vec();
    let outwards = if first { genuma_reads::dna::reverse_complement(&inserted) } else { inserted };
    let (ends, inserted) = if here <= mate_end {
        ([here, mate_end], outwards)
    } else {
        ([mate_end, here], genuma_reads::dna::reverse_complement(&outwards))
    };
    Ok(Change::Junction { ends, inserted, homology: 0 })
}

/// Formats the explanations of traced variants as texts of some thousand variants each: each variant, followed by the
/// indented lines of its explanation.
pub(crate) fn format_trace_reports(answers: &[TraceReport]) -> impl Iterator<Item = String> {
    answers.chunks(MAX_REPORTS_PER_TEXT).map(|answers| {
        let mut text = String::new();
        for answer in answers {
            text.extend([answer.variant.as_str(), "\n"]);
            answer.lines.lines().for_each(|line| text.extend(["  ", line, "\n"]));
        }
        text
    })
}

/// Checks that the traced variants fit into the memory budget, besides a call with a reference of `reference` bases.
///
/// # Errors
/// They need more memory.
pub(crate) fn check_memory_of_traces(job: &CallJob, reference: Option<u64>) -> Result<(), UsageError> {
    let Resources { threads, memory, .. } = job.resources;
    let traced: u64 = job.traced_variants.iter().map(|variant| variant.memory_bytes(job.params.k)).sum();
    let min_memory = (min_call_memory_bytes(threads, reference) + traced).next_multiple_of(1 << 20);
    if traced == 0 || memory >= min_memory {
        return Ok(());
    }
    let [have, need] = [memory, min_memory].map(quantity::format_bytes);
    Err(UsageError(format!(
        "{have} of memory is too little for --why of {} variants, which needs {need}: raise --memory or ask for fewer",
        job.traced_variants.len()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use genuma_reads::fasta::Contig;

    fn genome() -> Reference {
        //          1234567890123456789012345
        let one = b"ACGTACGTACGGTTAACCGGTTAAC";
        let contig = |name: &str| Contig { name: name.to_owned(), seq: one.to_vec() };
        Reference::from_contigs(vec![contig("chr1"), contig("HLA:2")])
    }

    fn asked(words: &str) -> anyhow::Result<TracedVariant> {
        traced_variant_from_record(&parse_variant(words)?, &genome())
    }

    fn record(pos: usize, alternate: &str, info: &[(&str, &str)]) -> anyhow::Result<Vec<Change>> {
        let info = info.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        let record = VcfRecord { chrom: "chr1".into(), pos, alternate: alternate.into(), info, ..VcfRecord::default() };
        traced_variant_from_record(&record, &genome()).map(|q| q.changes)
    }

    fn ends(changes: &[Change]) -> Vec<[(usize, usize, RetainedSide); 2]> {
        let ends = |change: &Change| match change {
            Change::Junction { ends, .. } => ends.map(|e| (e.chrom, e.pos, e.side)),
            other => panic!("no junction: {other:?}"),
        };
        changes.iter().map(ends).collect()
    }

    #[test]
    fn alleles_are_taken_as_far_left_as_they_go() {
        let question = asked("chr1:3:g>t").unwrap();
        assert_eq!(question.description, "chr1:3:G>T");
        let allele = |pos, reference: &[u8], alternative: &[u8]| Change::Allele {
            chrom: 0,
            pos,
            reference: reference.to_vec(),
            alternative: alternative.to_vec(),
        };
        assert_eq!(question.changes, [allele(2, b"G", b"T")]);
        // Of two G the second is deleted; left-aligned, the first.
        assert_eq!(asked("chr1:11:GG>G").unwrap().changes, [allele(9, b"CG", b"C")]);
        assert_eq!(asked("chr1:12:G>GG").unwrap().changes, [allele(9, b"C", b"CG")]);
        // A sequence name that contains colons.
        assert!(matches!(asked("HLA:2:3:G>T").unwrap().changes[..], [Change::Allele { chrom: 1, pos: 2, .. }]));
        for nonsense in ["chr1:3:A>T", "chr1:3:GT", "chr1:3", "chr2:3:G>T", "chr1:26:A>C", "chr1:x:G>T", "chr1:3:G>"] {
            assert!(asked(nonsense).is_err(), "{nonsense}");
        }
    }

    #[test]
    fn symbolic_alleles_are_the_junctions_they_make() {
        use RetainedSide::{Left, Right};
        // Bases 6 to 15 are deleted, duplicated or inverted.
        let end: &[(&str, &str)] = &[("END", "15")];
        assert_eq!(ends(&record(5, "<DEL>", end).unwrap()), [[(0, 4, Left), (0, 15, Right)]]);
        assert_eq!(ends(&record(5, "<DUP>", end).unwrap()), [[(0, 5, Right), (0, 14, Left)]]);
        assert_eq!(
            ends(&record(5, "<INV>", end).unwrap()),
            [[(0, 4, Left), (0, 14, Left)], [(0, 5, Right), (0, 15, Right)]]
        );
        assert!(record(5, "<DEL>", &[]).is_err());
        assert!(record(5, "<DEL>", &[("END", "99")]).is_err());
        assert!(record(5, "<INS>", end).is_err());
    }

    #[test]
    fn breakends_are_read_as_they_are_written() {
        use RetainedSide::{Left, Right};
        for (alternate, expected) in [
            ("A[HLA:2:9[", [(0, 4, Left), (1, 8, Right)]),
            ("A]HLA:2:9]", [(0, 4, Left), (1, 8, Left)]),
            ("]HLA:2:9]A", [(0, 4, Right), (1, 8, Left)]),
            ("[HLA:2:9[A", [(0, 4, Right), (1, 8, Right)]),
        ] {
            assert_eq!(ends(&record(5, alternate, &[]).unwrap()), [expected], "{alternate}");
        }
        let inserted = |changes: Vec<Change>| match &changes[..] {
            [Change::Junction { inserted, .. }] => inserted.clone(),
            other => panic!("{other:?}"),
        };
        // The inserted bases are given from the first end to the second, whichever end the record is at.
        assert_eq!(inserted(record(5, "AGT[HLA:2:9[", &[]).unwrap()), b"GT");
        assert_eq!(inserted(record(5, "]HLA:2:9]GTA", &[]).unwrap()), b"AC");
        assert_eq!(inserted(record(20, "]chr1:9]GTA", &[]).unwrap()), b"GT");
        assert!(record(5, "A[chr3:9[", &[]).is_err());
        assert!(record(5, "A[chr1:0[", &[]).is_err());
    }
}
