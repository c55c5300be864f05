//! Compares consequences with those of `bcftools csq` on a made genome.

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::process::Command;

use common::{GenomeMaker, MadeGenome, Random};
use genuma_annotate::gene_model::{Strand, Transcript};
use genuma_annotate::small_change::{self, SmallChange, TranscriptEffect};

/// Consequences and changed amino acids of one change for one transcript.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Prediction {
    consequences: BTreeSet<String>,
    amino_acids: String,
}

/// Predictions by change and transcript.
type Predictions = BTreeMap<(usize, String), Prediction>;

fn vcf_text(made: &MadeGenome, changes: &[SmallChange], sample: bool) -> String {
    let mut text = String::from("##fileformat=VCFv4.3\n");
    for contig in &made.genome.contigs {
        let _ = writeln!(text, "##contig=<ID={},length={}>", contig.name, contig.seq.len());
    }
    text +=
        "##FORMAT=<ID=GT,Number=1,Type=String,Description=\"Genotype\">\n#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO";
    text += if sample { "\tFORMAT\tS\n" } else { "\n" };
    for (n, change) in changes.iter().enumerate() {
        let bases = |bases: &[u8]| String::from_utf8_lossy(bases).into_owned();
        let (old, new) = (bases(&change.reference), bases(&change.alternative));
        let contig = &made.genome.contigs[change.contig].name;
        let _ = write!(text, "{contig}\t{}\t{n}\t{old}\t{new}\t.\t.\t.", change.position + 1);
        text += if sample { "\tGT\t0|1\n" } else { "\n" };
    }
    text
}

/// The values of BCSQ of each change; `None` without bcftools.
fn run_csq(made: &MadeGenome, changes: &[SmallChange], options: &[&str], sample: bool) -> Option<Vec<Vec<String>>> {
    let path = |name: &str| made.folder.path().join(name);
    std::fs::write(path("in.vcf"), vcf_text(made, changes, sample)).unwrap();
    let command = Command::new("bcftools")
        .args(["csq", "-f"])
        .arg(path("genome.fa"))
        .arg("-g")
        .arg(path("genes.gff3"))
        .args(options)
        .args(["-Ov", "-v", "0"])
        .arg(path("in.vcf"))
        .output();
    let Ok(out) = command else {
        println!("skipped: bcftools is not installed");
        return None;
    };
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let mut values = vec![Vec::new(); changes.len()];
    for line in String::from_utf8(out.stdout).unwrap().lines().filter(|line| !line.starts_with('#')) {
        let fields: Vec<&str> = line.split('\t').collect();
        let own = fields[7].split(';').find_map(|field| field.strip_prefix("BCSQ="));
        let id: usize = fields[2].parse().unwrap();
        values[id] = own.map(|own| own.split(',').map(str::to_owned).collect()).unwrap_or_default();
    }
    Some(values)
}

fn parse_values(values: &[Vec<String>]) -> Predictions {
    let mut predictions = Predictions::new();
    for (change, values) in values.iter().enumerate() {
        for value in values.iter().filter(|value| !value.starts_with('@')) {
            let fields: Vec<&str> = value.split('|').collect();
            // Without a transcript csq means the gene.
            let name = if fields[2].is_empty() { format!("gene {}", fields[1]) } else { fields[2].to_owned() };
            let entry = predictions.entry((change, name)).or_default();
            entry.consequences.extend(fields[0].split('&').map(str::to_owned));
            if let Some(amino_acids) = fields.get(5) {
                entry.amino_acids = (*amino_acids).to_owned();
            }
        }
    }
    predictions
}

fn own_values(made: &MadeGenome, haplotypes: &[&[SmallChange]]) -> Vec<Vec<String>> {
    let mut values = Vec::new();
    for haplotype in haplotypes {
        let effects: Vec<Vec<TranscriptEffect>> = small_change::predict_effects(&made.model, &made.genome, haplotype);
        values.extend(effects.iter().map(|effects| small_change::format_bcsq(&made.model, haplotype, effects)));
    }
    values
}

/// A change at a random place in or near an exon.
fn random_change(made: &MadeGenome, random: &mut Random) -> SmallChange {
    let transcripts = &made.model.transcripts;
    let transcript = &transcripts[random.below(transcripts.len())];
    let exon = &transcript.exons[random.below(transcript.exons.len())];
    let position = match random.below(4) {
        // Around the ends of exons.
        0 => exon.start - 14 + random.below(24),
        1 => exon.end - 12 + random.below(24),
        _ => random.range(exon.clone()),
    };
    let seq = &made.genome.contigs[transcript.contig].seq;
    let length = if random.below(8) == 0 { random.range(10..60) } else { random.range(1..8) };
    let (reference, alternative) = match random.below(10) {
        0..=4 => (seq[position..position + 1].to_vec(), random.bases(1)),
        5 => {
            let length = random.range(2..4);
            (seq[position..position + length].to_vec(), random.bases(length))
        }
        6 | 7 => (seq[position..position + 1].to_vec(), [&seq[position..position + 1], &random.bases(length)].concat()),
        _ => (seq[position..position + 1 + length].to_vec(), seq[position..position + 1].to_vec()),
    };
    SmallChange { contig: transcript.contig, position, reference, alternative }
}

/// Whether a change is normalised as `csq` expects: the alleles do not end alike, and only insertions and deletions start
/// alike.
fn is_normalised(change: &SmallChange) -> bool {
    let (old, new) = (&change.reference, &change.alternative);
    old.last() != new.last() && (old.len() != new.len() || old[0] != new[0])
}

fn random_changes(made: &MadeGenome, n: usize, seed: u64) -> Vec<SmallChange> {
    let mut random = Random(seed);
    let mut changes: Vec<SmallChange> = Vec::new();
    while changes.len() < n {
        changes.extend(Some(random_change(made, &mut random)).filter(is_normalised));
    }
    changes.sort();
    changes.dedup();
    changes
}

/// Amino acids without those that both sides share, with the position of the first. `csq` includes the codon of the base
/// before an insertion or deletion, and writes `?` where it does not translate.
fn trim_amino_acids(text: &str) -> Option<(usize, String, String)> {
    let (old, new) = text.split_once('>').unwrap_or((text, text));
    let split = |text: &str| {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        (text[..digits].parse::<usize>().ok(), text[digits..].to_owned())
    };
    let ((position, old), (_, new)) = (split(old), split(new));
    if text.contains('?') {
        return None;
    }
    let head = old.bytes().zip(new.bytes()).take_while(|(a, b)| a == b).count();
    let (old, new) = (&old[head..], &new[head..]);
    let tail = old.bytes().rev().zip(new.bytes().rev()).take_while(|(a, b)| a == b).count();
    let cut = |text: &str| text[..text.len() - tail].to_owned();
    Some((position? + head, cut(old), cut(new)))
}

/// Whether two texts mean the same amino acids. A repeated amino acid can be inserted before or after its copy; after a
/// stop nothing follows.
fn are_same_amino_acids(theirs: &str, ours: &str) -> bool {
    let Some((position, old, new)) = trim_amino_acids(theirs) else { return true };
    let Some((own_position, own_old, own_new)) = trim_amino_acids(ours) else { return theirs.is_empty() };
    let is_shifted = position.abs_diff(own_position) <= 1 && (&old, &new) == (&own_old, &own_new);
    is_shifted || new.ends_with('*') && new == own_new && old.starts_with(&own_old)
}

/// Differences from csq, each with its reason. The guide has the same list (docs/guide/annotation.md).
const DIFFERENCES: [&str; 8] = [
    // csq looks for splice sites in coding transcripts only.
    "splice sites of non-coding transcripts",
    // csq lets the inserted bases be part of the exon or of the splice site; here both stay intact.
    "insertions at the edge of an exon",
    // csq predicts a protein as if the exon ended elsewhere; here no protein is predicted.
    "changes across or next to the edge of an exon",
    // csq does not name the frameshift or deletion that removes the start codon.
    "more consequences of a lost start codon",
    // csq takes a shifted stop codon for the same one in some cases, and does not read beyond the coding sequence.
    "frameshifts in the stop codon",
    // csq predicts no lost stop or start codon for deletions that reach beyond the coding sequence.
    "changes across or next to the edge of the coding sequence",
    // csq names such a change after the first amino acid that changes.
    "a new stop after another new amino acid",
    // csq says nothing of the bases before the first complete codon.
    "the incomplete first codon",
];

/// Which of the known differences a prediction shows.
fn explain_difference(
    transcript: &Transcript,
    change: &SmallChange,
    theirs: &Prediction,
    ours: &Prediction,
) -> Option<&'static str> {
    let (start, end) = touched_bases(change);
    let is_insertion = change.alternative.len() > change.reference.len();
    let has = |set: &Prediction, name: &str| set.consequences.contains(name);
    let Some(coding) = &transcript.coding else {
        return theirs.consequences.is_empty().then_some(DIFFERENCES[0]);
    };
    let edges: Vec<usize> = transcript.exons.iter().flat_map(|exon| [exon.start, exon.end]).collect();
    let span = coding.coding_span();
    let coding_edges = [span.start, span.end];
    let is_across = |edges: &[usize]| edges.iter().any(|&edge| start < edge && edge < end);
    let is_near = |edges: &[usize]| edges.iter().any(|&edge| start.abs_diff(edge) <= 3 || end.abs_diff(edge) <= 3);
    let stop = match transcript.strand {
        Strand::Forward => span.end - 3..span.end,
        Strand::Reverse => span.start..span.start + 3,
    };
    let touches_stop = start < stop.end && stop.start < end;
    let cases = [
        is_insertion && is_near(&edges),
        !is_snv_or_mnv(change) && edges.iter().any(|&edge| start <= edge && edge <= end) || is_across(&edges),
        has(theirs, "start_lost") && has(ours, "start_lost"),
        has(theirs, "frameshift") && has(ours, "frameshift") && touches_stop,
        !is_snv_or_mnv(change) && is_near(&coding_edges) || is_across(&coding_edges),
        has(theirs, "missense") && has(ours, "stop_gained") && theirs.amino_acids == ours.amino_acids,
        coding.phase > 0 && theirs.consequences.is_empty() && has(ours, "coding_sequence"),
    ];
    cases.iter().zip(&DIFFERENCES[1..]).find(|(applies, _)| **applies).map(|(_, why)| *why)
}

fn is_snv_or_mnv(change: &SmallChange) -> bool {
    change.reference.len() == change.alternative.len()
}

/// The bases that a change touches, and the bases next to an insertion.
fn touched_bases(change: &SmallChange) -> (usize, usize) {
    let head = change.reference.iter().zip(&change.alternative).take_while(|(a, b)| a == b).count();
    let (start, end) = (change.position + head, change.position + change.reference.len());
    if start == end { (start - 1, end + 1) } else { (start, end) }
}

#[test]
fn consequences_are_those_of_bcftools_csq() {
    let made = GenomeMaker::make(7, 3, 60);
    let changes = random_changes(&made, 12_000, 11);
    assert!(changes.len() >= 10_000, "{}", changes.len());
    let Some(csq) = run_csq(&made, &changes, &["-l"], false) else { return };
    let haplotypes: Vec<&[SmallChange]> = changes.chunks(1).collect();
    let (csq, own) = (parse_values(&csq), parse_values(&own_values(&made, &haplotypes)));
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut unexplained: Vec<String> = Vec::new();
    // csq names only the gene where it finds introns or non-coding transcripts, and only if nothing else is hit.
    let mut keys: BTreeSet<(usize, String)> = csq.keys().chain(own.keys()).cloned().collect();
    keys.retain(|(_, name)| !name.starts_with("gene "));
    for key in keys {
        let [theirs, ours] = [&csq, &own].map(|all| {
            let mut prediction = all.get(&key).cloned().unwrap_or_default();
            prediction.consequences.retain(|name| name != "intron" && name != "non_coding");
            prediction
        });
        let change = &changes[key.0];
        let transcript = made.model.transcripts.iter().find(|transcript| transcript.id == key.1).unwrap();
        let is_same = theirs.consequences == ours.consequences;
        let why = match is_same && are_same_amino_acids(&theirs.amino_acids, &ours.amino_acids) {
            true if ours.consequences.is_empty() => continue,
            true => Some("same"),
            false => explain_difference(transcript, change, &theirs, &ours),
        };
        match why {
            Some(why) => *counts.entry(why).or_default() += 1,
            None => unexplained.push(format!("{change:?} {transcript:?}: csq {theirs:?}, here {ours:?}")),
        }
    }
    println!("{counts:?}");
    assert!(unexplained.is_empty(), "{} differences, the first: {}", unexplained.len(), unexplained.join("\n"));
    let same = counts.remove("same").unwrap_or_default();
    assert!(same > 9_000 && counts.values().sum::<usize>() * 10 < same, "{same} {counts:?}");
    for difference in DIFFERENCES {
        assert!(counts.contains_key(difference), "a listed difference does not occur: {difference}");
    }
}

#[test]
fn introns_and_non_coding_genes_are_those_of_csq() {
    let made = GenomeMaker::make(8, 2, 40);
    let changes = random_changes(&made, 3_000, 12);
    let Some(csq) = run_csq(&made, &changes, &["-l"], false) else { return };
    let haplotypes: Vec<&[SmallChange]> = changes.chunks(1).collect();
    let own = own_values(&made, &haplotypes);
    let mut checked = 0;
    for (theirs, ours) in csq.iter().zip(&own) {
        let names = |values: &[String]| -> BTreeSet<(String, String)> {
            let fields = values.iter().map(|value| value.split('|').collect::<Vec<_>>());
            fields.map(|fields| (fields[0].to_owned(), fields[1].to_owned())).collect()
        };
        let (theirs, ours) = (names(theirs), names(ours));
        // Where csq names introns, it has found nothing else.
        let is_gene_level = |(name, _): &(String, String)| name == "intron" || name == "non_coding";
        if !theirs.is_empty()
            && theirs.iter().all(is_gene_level)
            && !ours.iter().any(|(name, _)| name.contains("splice"))
        {
            assert!(theirs.is_subset(&ours), "csq {theirs:?}, here {ours:?}");
            checked += 1;
        }
    }
    assert!(checked > 100, "{checked}");
}

/// Two changes close to each other in one coding exon of each gene that has room for them.
fn change_pairs(made: &MadeGenome, seed: u64) -> Vec<[SmallChange; 2]> {
    let mut random = Random(seed);
    let mut pairs = Vec::new();
    let coding = made.model.transcripts.iter().filter(|t| t.coding.as_ref().is_some_and(|coding| coding.phase == 0));
    for transcript in coding.filter(|transcript| transcript.id.ends_with('0')) {
        let parts = &transcript.coding.as_ref().unwrap().parts;
        let Some(part) = parts.iter().find(|part| part.len() > 80) else { continue };
        let seq = &made.genome.contigs[transcript.contig].seq;
        let first = part.start + 30 + random.below(10);
        let distance = 1 + random.below(9);
        let substitution = |random: &mut Random, position: usize| {
            let alternative = loop {
                let base = random.base();
                if base != seq[position] {
                    break vec![base];
                }
            };
            SmallChange { contig: transcript.contig, position, reference: vec![seq[position]], alternative }
        };
        let pair = match random.below(3) {
            0 | 1 => [substitution(&mut random, first), substitution(&mut random, first + distance)],
            _ => {
                let second = first + 3 + distance;
                let reference = seq[first..first + 2].to_vec();
                let deletion = SmallChange {
                    contig: transcript.contig,
                    position: first,
                    alternative: vec![reference[0]],
                    reference,
                };
                let mut alternative = vec![seq[second]];
                alternative.extend(random.bases(1));
                let insertion = SmallChange {
                    contig: transcript.contig,
                    position: second,
                    reference: vec![seq[second]],
                    alternative,
                };
                [deletion, insertion]
            }
        };
        if pair.iter().all(is_normalised) {
            pairs.push(pair);
        }
    }
    pairs
}

#[test]
fn phased_changes_act_together_as_in_csq() {
    let made = GenomeMaker::make(9, 4, 60);
    let mut pairs = change_pairs(&made, 13);
    pairs.sort();
    let changes: Vec<SmallChange> = pairs.iter().flatten().cloned().collect();
    let Some(csq) = run_csq(&made, &changes, &["-p", "a"], true) else { return };
    let haplotypes: Vec<&[SmallChange]> = pairs.iter().map(|pair| &pair[..]).collect();
    let own = own_values(&made, &haplotypes);
    let (mut same, mut joint, mut unlike) = (0, 0, Vec::new());
    for (pair, (theirs, ours)) in csq.chunks(2).zip(own.chunks(2)).enumerate() {
        let describe = |values: &[Vec<String>]| -> BTreeSet<(usize, String, String, String)> {
            let values = values.iter().enumerate().flat_map(|(n, values)| values.iter().map(move |value| (n, value)));
            values
                .filter(|(_, value)| value.starts_with('@') || value.matches('|').count() == 6)
                .map(|(n, value)| {
                    let fields: Vec<&str> = value.split('|').collect();
                    let field = |i: usize| fields.get(i).map_or("", |field| *field).to_owned();
                    let mut names: Vec<&str> = fields[0].split('&').collect();
                    names.sort_unstable();
                    (n, names.join("&"), field(2), field(6))
                })
                .collect()
        };
        let (theirs, ours) = (describe(theirs), describe(ours));
        joint += usize::from(ours.iter().any(|value| value.1.starts_with('@')));
        match theirs == ours {
            true => same += 1,
            false => unlike.push(format!("{:?}\n  csq {theirs:?}\n  here {ours:?}", pairs[pair])),
        }
    }
    assert!(unlike.is_empty(), "{} of {}: {}", unlike.len(), pairs.len(), unlike[..3.min(unlike.len())].join("\n"));
    assert!(joint > 40 && same > 100, "{joint} {same}");
}
