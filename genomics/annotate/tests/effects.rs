//! Consequences and HGVS names of single changes of a small gene, and fusions of made genes.

mod common;

use std::ops::Range;

use common::{GenomeMaker, MadeGenome, Random};
use genuma_annotate::gene_model::{GenesAndTranscripts, Strand, Transcript};
use genuma_annotate::genetic_code::GeneticCode;
use genuma_annotate::gff;
use genuma_annotate::hgvs::shorten_protein_change;
use genuma_annotate::small_change::{self, SmallChange};
use genuma_annotate::structural_effect::{
    DeletionOrDuplication, JunctionEnd, KeptSide, ReadingFrame, predict_structural_effect,
};
use genuma_reads::dna::reverse_complement;
use genuma_reads::fasta::{Contig, Reference};

/// A transcript of two exons: M K R C W stop. Exon 1 has 5 bases before the start codon, exon 2 7 bases after the stop.
const EXON_1: &str = "CCTCAATGAAAC";
const INTRON: &str = "GTAAGTCCTTACTTTTCCCAG";
const EXON_2: &str = "GATGTTGGTGATTTGCCA";
const FLANK: &str = "TTGACCTTGA";

fn small_genome(strand: char, contig: &str) -> (Reference, GenesAndTranscripts) {
    let forward = [FLANK, EXON_1, INTRON, EXON_2, FLANK].concat().into_bytes();
    let total = forward.len();
    let seq = if strand == '+' { forward } else { reverse_complement(&forward) };
    let genome = Reference::from_contigs(vec![Contig { name: contig.into(), seq }]);
    let place = |start: usize, length: usize| match strand {
        '+' => start + 1..start + length,
        _ => total - start - length + 1..total - start,
    };
    let first = FLANK.len();
    let second = first + EXON_1.len() + INTRON.len();
    let mut text = String::new();
    let mut line = |kind: &str, range: Range<usize>, phase: &str, attributes: &str| {
        text += &format!("{contig}\tt\t{kind}\t{}\t{}\t.\t{strand}\t{phase}\t{attributes}\n", range.start, range.end);
    };
    let all = EXON_1.len() + INTRON.len() + EXON_2.len();
    line("gene", place(first, all), ".", "ID=gene:G;Name=ABC");
    line("mRNA", place(first, all), ".", "ID=transcript:T;Parent=gene:G;biotype=protein_coding;version=3");
    line("exon", place(first, EXON_1.len()), ".", "Parent=transcript:T");
    line("exon", place(second, EXON_2.len()), ".", "Parent=transcript:T");
    line("CDS", place(first + 5, EXON_1.len() - 5), "0", "Parent=transcript:T");
    line("CDS", place(second, 11), "2", "Parent=transcript:T");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("genes.gff3");
    std::fs::write(&path, text).unwrap();
    let (model, _) = gff::read_genes(&path, &genome).unwrap();
    (genome, model)
}

/// Describes a change of the forward sequence: `offset` from the first base of exon 1.
fn describe(strand: char, contig: &str, offset: isize, old: &str, new: &str) -> String {
    let (genome, model) = small_genome(strand, contig);
    let position = (FLANK.len() as isize + offset) as usize;
    let change = match strand {
        '+' => SmallChange { contig: 0, position, reference: old.into(), alternative: new.into() },
        _ => SmallChange {
            contig: 0,
            position: genome.contigs[0].seq.len() - position - old.len(),
            reference: reverse_complement(old.as_bytes()),
            alternative: reverse_complement(new.as_bytes()),
        },
    };
    let seq = &genome.contigs[0].seq;
    assert_eq!(seq[change.position..change.position + old.len()], change.reference, "the case fits the sequence");
    let effects = small_change::predict_effects(&model, &genome, std::slice::from_ref(&change));
    let Some(effect) = effects[0].first() else { return "none".to_owned() };
    let c = small_change::format_hgvs_c(&model, effect).unwrap_or_default();
    let p = effect.hgvs_p.as_deref().map(shorten_protein_change).unwrap_or_default();
    let class = effect.consequences.maf_classification(change.length_difference());
    format!("{} {c} {p} {class}", effect.consequences.ontology_terms())
}

#[test]
fn small_changes() {
    // Offset, old, new, expected; the same on both strands.
    let cases = [
        (-1, "A", "C", "none"),
        (2, "T", "C", "5_prime_UTR_variant T.3:c.-3T>C  5'UTR"),
        (5, "A", "G", "start_lost T.3:c.1A>G p.M1? Translation_Start_Site"),
        (8, "A", "C", "missense_variant T.3:c.4A>C p.K2Q Missense_Mutation"),
        (8, "A", "T", "stop_gained T.3:c.4A>T p.K2* Nonsense_Mutation"),
        (10, "A", "G", "splice_region_variant&synonymous_variant T.3:c.6A>G p.K2= Splice_Region"),
        (12, "G", "C", "splice_donor_variant T.3:c.7+1G>C  Splice_Site"),
        (15, "A", "C", "splice_region_variant T.3:c.7+4A>C  Splice_Region"),
        (21, "T", "C", "intron_variant T.3:c.7+10T>C  Intron"),
        (32, "G", "C", "splice_acceptor_variant T.3:c.8-1G>C  Splice_Site"),
        (37, "T", "C", "synonymous_variant T.3:c.12T>C p.C4= Silent"),
        (38, "T", "A", "missense_variant T.3:c.13T>A p.W5R Missense_Mutation"),
        (41, "T", "C", "stop_lost T.3:c.16T>C p.*6Rext*? Nonstop_Mutation"),
        (42, "G", "A", "stop_retained_variant T.3:c.17G>A p.*6= Silent"),
        (46, "T", "C", "3_prime_UTR_variant T.3:c.*3T>C  3'UTR"),
        (8, "AAA", "A", "frameshift_variant&splice_region_variant T.3:c.5_6del p.K2Tfs*? Frame_Shift_Del"),
        (37, "T", "TT", "frameshift_variant T.3:c.13dup p.W5Lfs*? Frame_Shift_Ins"),
        (34, "A", "AACG", "inframe_insertion&splice_region_variant T.3:c.9_10insACG p.R3_C4insT In_Frame_Ins"),
        (37, "TTGG", "T", "inframe_deletion T.3:c.15_17del p.W5del In_Frame_Del"),
        (36, "GT", "TG", "missense_variant T.3:c.11_12delinsTG p.C4L Missense_Mutation"),
    ];
    let mut wrong = Vec::new();
    for (offset, old, new, expected) in cases {
        for strand in ['+', '-'] {
            let found = describe(strand, "chr1", offset, old, new);
            if found != expected {
                wrong.push(format!("({offset}, \"{old}\", \"{new}\", \"{found}\"), // {strand} {expected}"));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn the_mitochondrion_has_its_own_code() {
    // W5: TGG>TGA is a stop in the standard code only.
    let expected = |contig| describe('+', contig, 40, "G", "A");
    assert!(expected("chr1").starts_with("stop_gained"), "{}", expected("chr1"));
    assert!(expected("chrM").starts_with("synonymous_variant"), "{}", expected("chrM"));
}

/// Bases of a transcript that stay on one side of a junction, in its direction, with whether they are coding.
fn kept_bases(made: &MadeGenome, transcript: &Transcript, keep: impl Fn(usize) -> bool) -> Vec<(u8, bool)> {
    let seq = &made.genome.contigs[transcript.contig].seq;
    let coding = &transcript.coding.as_ref().unwrap().parts;
    let positions = transcript.exons.iter().cloned().flatten().filter(|&position| keep(position));
    let is_coding = |position: usize| coding.iter().any(|part| part.contains(&position));
    let mut bases: Vec<(u8, bool)> = positions.map(|position| (seq[position], is_coding(position))).collect();
    if transcript.strand == Strand::Reverse {
        bases.reverse();
        bases.iter_mut().for_each(|(base, _)| *base = reverse_complement(&[*base])[0]);
    }
    bases
}

/// An intron that is followed by coding bases and preceded by some.
fn coding_intron(transcript: &Transcript, random: &mut Random) -> Option<Range<usize>> {
    let span = transcript.coding.as_ref()?.coding_span();
    let introns: Vec<Range<usize>> =
        transcript.introns().filter(|intron| span.start < intron.start && intron.end < span.end).collect();
    (!introns.is_empty()).then(|| introns[random.below(introns.len())].clone())
}

#[test]
fn fusions_of_made_translocations_have_the_frame_of_their_protein() {
    let made = GenomeMaker::make(21, 4, 60);
    let mut random = Random(22);
    let complete: Vec<usize> = (0..made.model.transcripts.len())
        .filter(|&t| {
            made.model.is_representative(t) && made.model.transcripts[t].coding.as_ref().is_some_and(|c| c.phase == 0)
        })
        .collect();
    let (mut in_frame, mut out_of_frame) = (0, 0);
    while in_frame + out_of_frame < 60 {
        let [a, b] = [0, 1].map(|_| complete[random.below(complete.len())]);
        let [first, second] = [a, b].map(|t| &made.model.transcripts[t]);
        let introns = [first, second].map(|transcript| coding_intron(transcript, &mut random));
        let [Some(first_intron), Some(second_intron)] = introns else { continue };
        if first.gene == second.gene {
            continue;
        }
        let [here, there] = [&first_intron, &second_intron].map(|intron| random.range(intron.clone()));
        let kept = |start: bool, strand: Strand| match start == (strand == Strand::Forward) {
            true => KeptSide::Left,
            false => KeptSide::Right,
        };
        let ends = [
            JunctionEnd { contig: first.contig, position: here, kept: kept(true, first.strand) },
            JunctionEnd { contig: second.contig, position: there, kept: kept(false, second.strand) },
        ];
        let keep = |kept: KeptSide, at: usize| move |position: usize| (position <= at) == (kept == KeptSide::Left);
        let start = kept_bases(&made, first, keep(ends[0].kept, here));
        let end = kept_bases(&made, second, keep(ends[1].kept, there));
        // The start has bases from its first coding base on; the end has bases up to its last coding base.
        let from = start.iter().position(|base| base.1).unwrap();
        let to = end.iter().rposition(|base| base.1).unwrap() + 1;
        let joined: Vec<u8> = start[from..].iter().chain(&end[..to]).map(|base| base.0).collect();
        // The second protein ends as ever if the frame fits.
        let code = GeneticCode::Standard;
        let own_end: Vec<u8> = end[..to].iter().map(|base| base.0).collect();
        let protein = code.translate_all_codons(&joined);
        let own = code.translate_all_codons(&own_end[own_end.len() % 3..]);
        let reaches_the_end = joined.len().is_multiple_of(3) && protein.ends_with(&own[own.len().saturating_sub(6)..]);
        let effect = predict_structural_effect(&made.model, &[ends], 0, None);
        let fusion = effect.fusions.iter().find(|fusion| (fusion.five_prime, fusion.three_prime) == (a, b)).unwrap();
        assert_eq!(
            fusion.frame,
            if reaches_the_end { ReadingFrame::InFrame } else { ReadingFrame::OutOfFrame },
            "{first:?} {second:?} {ends:?}"
        );
        let (genes, value) = (&made.model, effect.format_fusions(&made.model).join(","));
        assert!(
            value.contains(&format!("{}::{}|", genes.gene_of_transcript(a).name, genes.gene_of_transcript(b).name)),
            "{value}"
        );
        // Seen from the other end it is the same fusion.
        let mirrored = predict_structural_effect(&made.model, &[[ends[1], ends[0]]], 0, None);
        assert!(mirrored.fusions.contains(fusion));
        *(if reaches_the_end { &mut in_frame } else { &mut out_of_frame }) += 1;
    }
    assert!(in_frame > 10 && out_of_frame > 20, "{in_frame} {out_of_frame}");
}

#[test]
fn exons_of_deletions_and_duplications() {
    let made = GenomeMaker::make(23, 1, 40);
    let number = (0..made.model.transcripts.len())
        .find(|&t| {
            made.model.is_representative(t)
                && made.model.transcripts[t].coding.is_some()
                && made.model.transcripts[t].exons.len() > 4
        })
        .unwrap();
    let transcript = &made.model.transcripts[number];
    let exons = &transcript.exons;
    let end = |position: usize, kept| JunctionEnd { contig: transcript.contig, position, kept };
    let describe = |event: DeletionOrDuplication, range: Range<usize>| {
        let ends = [end(range.start - 1, KeptSide::Left), end(range.end, KeptSide::Right)];
        let effect = predict_structural_effect(&made.model, &[ends], 0, Some((event, transcript.contig, range)));
        let names = effect.consequences_for_transcript(number, Some(event)).bcftools_csq_names();
        let own = format!("|{}|", transcript.id);
        let exons = effect.format_exon_changes(&made.model).into_iter().find(|value| value.contains(&own));
        (names, exons.unwrap_or_default())
    };
    // Exons 2 and 3 of the ascending order, from intron to intron.
    let range = exons[1].start - 10..exons[2].end + 10;
    let bases: usize = exons[1].len() + exons[2].len();
    let (frame, name) = if bases.is_multiple_of(3) {
        ("in_frame", "exon_loss&inframe_deletion")
    } else {
        ("out_of_frame", "frameshift&exon_loss")
    };
    let numbers = [transcript.exon_number_in_transcript(1), transcript.exon_number_in_transcript(2)];
    let (low, high) = (numbers[0].min(numbers[1]), numbers[0].max(numbers[1]));
    let (names, value) = describe(DeletionOrDuplication::Deletion, range.clone());
    assert_eq!(names, name);
    assert!(value.ends_with(&format!("|{low}-{high}|{}|{frame}", exons.len())), "{value}");
    assert_eq!(describe(DeletionOrDuplication::Duplication, range).0, "feature_elongation");
    let span = transcript.transcript_span();
    assert_eq!(describe(DeletionOrDuplication::Deletion, span.start - 5..span.end + 5).0, "transcript_ablation");
    assert_eq!(
        describe(DeletionOrDuplication::Duplication, span.start - 5..span.end + 5).0,
        "transcript_amplification"
    );
    assert_eq!(
        describe(DeletionOrDuplication::Deletion, exons[0].end + 10..exons[0].end + 30),
        ("intron".into(), String::new())
    );
}
