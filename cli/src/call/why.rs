//! `--why`: variants as a user names them → questions to a call.

use std::path::Path;

use anyhow::{Context, bail};
use genuma_reads::fasta::Reference;
use genuma_simulate::evaluate::vcf::{self, Record};
use genuma_somatic::change::{Breakend, Change, Side, left_align};
use genuma_somatic::why::{Answer, Question};

use tracing::warn;

use crate::failure::Usage;

/// Turns each of `asked`, a VCF file or `CHROM:POS:REF>ALT`, into questions.
///
/// # Errors
/// No file and no variant; a place or a base that is not the reference's; a record of a kind that has no sequence.
pub(crate) fn questions(asked: &[String], reference: Option<&Path>) -> anyhow::Result<Vec<Question>> {
    if asked.is_empty() {
        return Ok(Vec::new());
    }
    let Some(reference) = reference else {
        return Err(Usage("--why speaks of places in a reference: give one with --reference".into()).into());
    };
    let genome = Reference::read(reference)?;
    let mut all = Vec::new();
    for asked in asked {
        if Path::new(asked).is_file() {
            for record in vcf::read(Path::new(asked))? {
                let Record { chrom, pos, alternate, .. } = &record;
                // A caller's own file may hold such; the others are still asked for.
                if alternate == "<INS>" {
                    warn!("{asked}: {chrom}:{pos}: an insertion without its sequence cannot be looked for");
                    continue;
                }
                all.push(question(&record, &genome).with_context(|| format!("{asked}: {chrom}:{pos}"))?);
            }
        } else {
            let question = variant(asked).and_then(|record| question(&record, &genome));
            all.push(question.map_err(|e| Usage(format!("--why {asked}: {e:#}")))?);
        }
    }
    Ok(all)
}

/// `CHROM:POS:REF>ALT` as a record.
fn variant(words: &str) -> anyhow::Result<Record> {
    let usage = "neither a VCF file nor CHROM:POS:REF>ALT";
    let mut parts = words.rsplitn(3, ':');
    let (Some(alleles), Some(pos), Some(chrom)) = (parts.next(), parts.next(), parts.next()) else {
        bail!(usage)
    };
    let Some((reference, alternate)) = alleles.split_once('>') else { bail!(usage) };
    Ok(Record {
        chrom: chrom.to_owned(),
        pos: pos.parse().with_context(|| format!("no position: {pos}"))?,
        reference: reference.to_ascii_uppercase(),
        alternate: alternate.to_ascii_uppercase(),
        ..Record::default()
    })
}

fn question(record: &Record, genome: &Reference) -> anyhow::Result<Question> {
    let Record { chrom, pos, reference, alternate, .. } = record;
    let index = place(chrom, genome)?;
    let seq = &genome.contigs[index].seq;
    let Some(start) = pos.checked_sub(1).filter(|&p| p < seq.len()) else {
        bail!("{chrom} has {} bases, none at {pos}", seq.len());
    };
    let end = |pos: usize, side: Side| Breakend { chrom: index, pos, side };
    let last = || -> anyhow::Result<usize> {
        let last = record.length("END").context("no END")?;
        if last <= start + 1 || last >= seq.len() {
            bail!("END={last} is not behind POS or not on {chrom}");
        }
        Ok(last)
    };
    let join = |a: Breakend, b: Breakend| Change::Junction {
        ends: [a.min(b), a.max(b)],
        inserted: Vec::new(),
        homology: 0,
    };
    let changes = match alternate.as_str() {
        "<DEL>" => vec![join(end(start, Side::Left), end(last()?, Side::Right))],
        "<DUP>" | "<DUP:TANDEM>" => vec![join(end(start + 1, Side::Right), end(last()? - 1, Side::Left))],
        "<INV>" => {
            let last = last()?;
            vec![
                join(end(start, Side::Left), end(last - 1, Side::Left)),
                join(end(start + 1, Side::Right), end(last, Side::Right)),
            ]
        }
        _ if alternate.contains(['[', ']']) => vec![breakend(alternate, end(start, Side::Left), genome)?],
        _ => {
            let bases = |text: &str| text.bytes().all(|b| b"ACGTN".contains(&b)) && !text.is_empty();
            if !bases(reference) || !bases(alternate) {
                bail!("no sequence to look for: {reference}>{alternate}");
            }
            if seq.get(start..start + reference.len()) != Some(reference.as_bytes()) {
                let here = seq.get(start..start + reference.len()).map(String::from_utf8_lossy);
                bail!("the reference has {} at {chrom}:{pos}, not {reference}", here.unwrap_or_default());
            }
            let (pos, reference, alternative) =
                left_align(seq, start, reference.as_bytes(), alternate.as_bytes());
            vec![Change::Allele { chrom: index, pos, reference, alternative }]
        }
    };
    Ok(Question { text: format!("{chrom}:{pos}:{reference}>{alternate}"), changes })
}

fn place(chrom: &str, genome: &Reference) -> anyhow::Result<usize> {
    genome
        .contigs
        .iter()
        .position(|c| c.name == chrom)
        .with_context(|| format!("the reference has no {chrom}"))
}

/// A breakend's ALT: `t[p[`, `t]p]`, `]p]t` or `[p[t` (VCF 4.3, section 5.4).
fn breakend(alternative: &str, here: Breakend, genome: &Reference) -> anyhow::Result<Change> {
    let first = alternative.starts_with(['[', ']']);
    let bracket = if alternative.contains('[') { '[' } else { ']' };
    let mut parts = alternative.split(bracket);
    let (before, mate, after) = (parts.next(), parts.next(), parts.next());
    let (chrom, pos) = mate.and_then(|m| m.rsplit_once(':')).context("a breakend without a mate's place")?;
    let pos: usize = pos.parse().with_context(|| format!("no position: {pos}"))?;
    let there = Breakend {
        chrom: place(chrom, genome)?,
        pos: pos.checked_sub(1).context("positions begin at 1")?,
        side: if bracket == '[' { Side::Right } else { Side::Left },
    };
    let here = Breakend { side: if first { Side::Right } else { Side::Left }, ..here };
    let letters = if first { after } else { before }.unwrap_or_default().as_bytes();
    // One letter is the base at the breakend itself; the others stand between the ends.
    let inserted = if first { letters.split_last().map(|l| l.1) } else { letters.split_first().map(|l| l.1) };
    let inserted = inserted.unwrap_or_default().to_vec();
    let outwards = if first { genuma_reads::dna::revcomp(&inserted) } else { inserted };
    let (ends, inserted) = if here <= there {
        ([here, there], outwards)
    } else {
        ([there, here], genuma_reads::dna::revcomp(&outwards))
    };
    Ok(Change::Junction { ends, inserted, homology: 0 })
}

/// The answers as text.
pub(crate) fn told(answers: &[Answer]) -> String {
    let mut text = String::new();
    for answer in answers {
        text += &format!("{}\n", answer.question);
        answer.lines.iter().for_each(|line| text += &format!("  {line}\n"));
    }
    text
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

    fn asked(words: &str) -> anyhow::Result<Question> {
        question(&variant(words)?, &genome())
    }

    fn record(pos: usize, alternate: &str, info: &[(&str, &str)]) -> anyhow::Result<Vec<Change>> {
        let info = info.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        let record =
            Record { chrom: "chr1".into(), pos, alternate: alternate.into(), info, ..Record::default() };
        question(&record, &genome()).map(|q| q.changes)
    }

    fn ends(changes: &[Change]) -> Vec<[(usize, usize, Side); 2]> {
        let ends = |change: &Change| match change {
            Change::Junction { ends, .. } => ends.map(|e| (e.chrom, e.pos, e.side)),
            other => panic!("no junction: {other:?}"),
        };
        changes.iter().map(ends).collect()
    }

    #[test]
    fn alleles_are_taken_as_far_left_as_they_go() {
        let question = asked("chr1:3:g>t").unwrap();
        assert_eq!(question.text, "chr1:3:G>T");
        let allele = |pos, reference: &[u8], alternative: &[u8]| Change::Allele {
            chrom: 0,
            pos,
            reference: reference.to_vec(),
            alternative: alternative.to_vec(),
        };
        assert_eq!(question.changes, [allele(2, b"G", b"T")]);
        // The second of two G goes: the first.
        assert_eq!(asked("chr1:11:GG>G").unwrap().changes, [allele(9, b"CG", b"C")]);
        assert_eq!(asked("chr1:12:G>GG").unwrap().changes, [allele(9, b"C", b"CG")]);
        // A name with colons.
        assert!(matches!(
            asked("HLA:2:3:G>T").unwrap().changes[..],
            [Change::Allele { chrom: 1, pos: 2, .. }]
        ));
        for nonsense in
            ["chr1:3:A>T", "chr1:3:GT", "chr1:3", "chr2:3:G>T", "chr1:26:A>C", "chr1:x:G>T", "chr1:3:G>"]
        {
            assert!(asked(nonsense).is_err(), "{nonsense}");
        }
    }

    #[test]
    fn symbolic_alleles_are_the_junctions_they_make() {
        use Side::{Left, Right};
        // Bases 6 to 15 lost, twice there, or turned round.
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
        use Side::{Left, Right};
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
        // Read from the first end to the second, whichever of them the record stands at.
        assert_eq!(inserted(record(5, "AGT[HLA:2:9[", &[]).unwrap()), b"GT");
        assert_eq!(inserted(record(5, "]HLA:2:9]GTA", &[]).unwrap()), b"AC");
        assert_eq!(inserted(record(20, "]chr1:9]GTA", &[]).unwrap()), b"GT");
        assert!(record(5, "A[chr3:9[", &[]).is_err());
        assert!(record(5, "A[chr1:0[", &[]).is_err());
    }
}
