//! `--why`: variants as a user names them → questions to a call.

use std::path::Path;

use anyhow::{Context, bail};
use genuma_reads::fasta::Reference;
use genuma_simulate::evaluate::vcf::{self, Record};
use genuma_somatic::change::{Breakend, Change, Side, left_align};
use genuma_somatic::why::{Answer, Question};

use crate::failure::Usage;

/// Turns each of `asked`, a VCF file or `CHROM:POS:REF>ALT`, into questions.
///
/// # Errors
/// No file and no variant; a place or a base that is not the reference's; a record of a kind that has no sequence.
pub fn questions(asked: &[String], reference: Option<&Path>) -> anyhow::Result<Vec<Question>> {
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
                all.push(
                    question(&record, &genome)
                        .with_context(|| format!("{asked}: {}:{}", record.chrom, record.pos))?,
                );
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
pub fn told(answers: &[Answer]) -> String {
    let mut text = String::new();
    for answer in answers {
        text += &format!("{}\n", answer.question);
        answer.lines.iter().for_each(|line| text += &format!("  {line}\n"));
    }
    text
}
