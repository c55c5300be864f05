//! Annotates VCF records with genes and consequences from a GFF3 file.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use genuma_annotate::gene_model::GenesAndTranscripts;
use genuma_annotate::gff;
use genuma_annotate::small_change::{self, SmallChange, TranscriptEffect};
use genuma_annotate::structural_effect::{
    DeletionOrDuplication, JunctionEnd, KeptSide, StructuralEffect, predict_structural_effect,
};
use genuma_reads::fasta::Reference;
use serde::{Deserialize, Serialize};

use crate::change::{Breakend, RetainedSide};
use crate::event::EventClass;
use crate::target_gaps::TargetGap;
use crate::vcf_record::{AltAllele, GeneEffect, RecordGeneAnnotation, VcfRecord, percent_encode};

/// Path of a GFF3 file with genes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GeneFile {
    /// Path of the GFF3 file, as the user gave it.
    pub path: PathBuf,
}

/// The genes of a GFF3 file that fit the reference, and counts of skipped features.
#[derive(Debug)]
pub struct GeneAnnotation {
    model: GenesAndTranscripts,
    counts: gff::GffFeatureCounts,
}

/// Summary of the gene annotation of a call, for `summary.json`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct AnnotationSummary {
    /// Path of the GFF3 file.
    pub path: String,
    /// Size of the file in bytes.
    pub bytes: u64,
    /// Number of genes with a transcript on the reference.
    pub genes: u64,
    /// Number of transcripts in the GFF3 file on contigs of the reference.
    pub transcripts: u64,
    /// Number of transcripts with a coding sequence.
    pub coding_transcripts: u64,
    /// Number of features on contigs that the reference lacks.
    pub features_on_unknown_contigs: u64,
    /// Number of passing calls with each consequence in the tables (Sequence Ontology term); `intergenic_variant` for
    /// calls outside of genes.
    pub consequences: BTreeMap<String, u64>,
}

/// Consequence of calls outside of genes, as VEP writes it.
const INTERGENIC: &str = "intergenic_variant";

impl GeneFile {
    /// Reads the genes and checks that they fit the reference.
    ///
    /// # Errors
    /// The file cannot be read, is no GFF3 file or does not fit the reference.
    pub fn read_genes(&self, genome: &Reference) -> Result<GeneAnnotation, gff::Error> {
        let (model, counts) = gff::read_genes(&self.path, genome)?;
        Ok(GeneAnnotation { model, counts })
    }

    /// Name of the file without its folder.
    pub fn file_name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }
}

impl GeneAnnotation {
    /// Text for the log: numbers of genes and transcripts that were read.
    pub fn describe_gene_counts(&self) -> String {
        format!("{} genes, {} transcripts", self.model.genes.len(), self.model.transcripts.len())
    }

    /// Sentences for the log: numbers of features of the file that were skipped, with reasons, and of transcripts for
    /// which no protein is predicted.
    pub fn describe_skipped_features(&self) -> Vec<String> {
        let counts = &self.counts;
        let names: Vec<&str> = counts.unknown_contigs.keys().take(3).map(String::as_str).collect();
        let mut sentences = vec![(
            counts.num_features_on_unknown_contigs(),
            format!(
                "features are on contigs that the reference lacks ({}…), so their genes get no annotation; use GFF3 with the contig names of the reference",
                names.join(", ")
            ),
        )];
        sentences.push((
            counts.transcripts_without_strand,
            "transcripts have no strand and are left out: variants in them get no consequence. Correct column 7 of the \
             GFF3"
                .into(),
        ));
        sentences.push((
            counts.features_without_parent,
            "exons and CDS name a Parent that is not in the file and are left out, so their transcripts are missing or \
             incomplete; use the complete GFF3"
                .into(),
        ));
        sentences.push((
            counts.overlapping_coding_transcripts,
            "transcripts have overlapping CDS parts: variants in them get no protein change. Check these records, or \
             use an unmodified Ensembl, GENCODE or RefSeq file"
                .into(),
        ));
        let some = sentences.into_iter().filter(|(count, _)| *count > 0);
        some.map(|(count, sentence)| format!("{count} {sentence}")).collect()
    }

    /// Adds genes and consequences to all records. The passing small variants of a phase set are translated together,
    /// all other small variants on their own.
    pub fn annotate_records(&self, genome: &Reference, records: &mut [VcfRecord]) {
        for group in group_by_haplotype(records) {
            let haplotype: Vec<SmallChange> = group.iter().filter_map(|&r| small_change(&records[r])).collect();
            let effects = small_change::predict_effects(&self.model, genome, &haplotype);
            for ((&record, change), effects) in group.iter().zip(&haplotype).zip(&effects) {
                records[record].annotation = Some(self.describe_small_change(&haplotype, change, effects));
            }
        }
        let mut junctions: HashMap<usize, Vec<[JunctionEnd; 2]>> = HashMap::new();
        for record in &*records {
            let own = record.structural.iter().flat_map(|structural| &structural.junctions);
            junctions.entry(record.event).or_default().extend(own.map(|ends| ends.map(|end| junction_end(&end))));
        }
        for record in records.iter_mut().filter(|record| record.annotation.is_none()) {
            record.annotation = Some(self.describe_structural_variant(record, &junctions[&record.event]));
        }
    }

    /// Adds the names of the genes that they overlap to targets without coverage.
    pub fn annotate_target_gaps(&self, gaps: &mut [TargetGap]) {
        for gap in gaps {
            gap.genes = self.model.names_of_overlapping_genes(gap.contig, gap.start as usize - 1..gap.end as usize);
        }
    }

    /// Counts genes, transcripts and annotated records, for `summary.json`.
    pub fn summarise_annotation(&self, path: &Path, bytes: u64, records: &[VcfRecord]) -> AnnotationSummary {
        let mut consequences: BTreeMap<String, u64> = BTreeMap::new();
        let mut counted = std::collections::BTreeSet::new();
        for record in records.iter().filter(|record| record.genotype.filters.is_empty()) {
            // Of an event with several records the first counts.
            if counted.insert(record.event) {
                let gene = record.annotation.as_ref().and_then(|annotation| annotation.gene.as_ref());
                let name = gene.map_or(INTERGENIC, |gene| &gene.consequence);
                *consequences.entry(name.to_owned()).or_default() += 1;
            }
        }
        AnnotationSummary {
            path: path.display().to_string(),
            bytes,
            genes: self.model.genes.len() as u64,
            transcripts: self.model.transcripts.len() as u64,
            coding_transcripts: self.model.num_coding_transcripts() as u64,
            features_on_unknown_contigs: self.counts.num_features_on_unknown_contigs(),
            consequences,
        }
    }

    fn describe_small_change(
        &self,
        haplotype: &[SmallChange],
        change: &SmallChange,
        effects: &[TranscriptEffect],
    ) -> RecordGeneAnnotation {
        let hgvs = |effect: &TranscriptEffect| {
            let transcript = small_change::format_hgvs_c(&self.model, effect)?;
            let gene = &self.model.gene_of_transcript(effect.transcript).name;
            Some(format!("{gene}|{transcript}|{}", effect.hgvs_p.as_deref().unwrap_or_default()))
        };
        let gene = effects.first().map(|effect| GeneEffect {
            gene: self.model.gene_of_transcript(effect.transcript).name.clone(),
            transcript: self.model.transcripts[effect.transcript].versioned_id(),
            consequence: effect.consequences.ontology_terms(),
            classification: effect.consequences.maf_classification(change.length_difference()).to_owned(),
            hgvs_c: effect.hgvs_c.clone(),
            hgvs_p: effect.hgvs_p.clone(),
        });
        RecordGeneAnnotation {
            bcsq: escape_values(small_change::format_bcsq(&self.model, haplotype, effects)),
            hgvs: escape_values(effects.iter().filter_map(hgvs).collect()),
            fusions: Vec::new(),
            exons: Vec::new(),
            gene,
        }
    }

    fn describe_structural_variant(&self, record: &VcfRecord, junctions: &[[JunctionEnd; 2]]) -> RecordGeneAnnotation {
        let range = record.pos..record.end.max(record.pos + 1);
        let event = match record.class {
            EventClass::Del => Some(DeletionOrDuplication::Deletion),
            // An insertion lengthens the exon that it is in.
            EventClass::Dup | EventClass::Ins => Some(DeletionOrDuplication::Duplication),
            _ => None,
        };
        let is_insertion = record.class == EventClass::Ins;
        let junctions = if is_insertion { &[] } else { junctions };
        let inserted = record.structural.as_ref().map_or(0, |structural| structural.inserted.len());
        let interval = event.map(|event| (event, record.chrom, range));
        let effect = predict_structural_effect(&self.model, junctions, inserted, interval);
        let exons = if is_insertion { Vec::new() } else { effect.format_exon_changes(&self.model) };
        RecordGeneAnnotation {
            bcsq: escape_values(effect.format_bcsq(&self.model, event)),
            hgvs: Vec::new(),
            fusions: escape_values(effect.format_fusions(&self.model)),
            exons: escape_values(exons),
            gene: self.structural_gene_effect(&effect, event),
        }
    }

    fn structural_gene_effect(
        &self,
        effect: &StructuralEffect,
        event: Option<DeletionOrDuplication>,
    ) -> Option<GeneEffect> {
        let transcript = *effect.affected_transcripts().first()?;
        let consequences = effect.consequences_for_transcript(transcript, event);
        let own = self.model.gene_of_transcript(transcript).name.clone();
        let gene = effect.fusions.first().map_or(own, |fusion| {
            let name = |transcript: usize| &self.model.gene_of_transcript(transcript).name;
            format!("{}::{}", name(fusion.five_prime), name(fusion.three_prime))
        });
        Some(GeneEffect {
            gene,
            transcript: self.model.transcripts[transcript].versioned_id(),
            consequence: consequences.ontology_terms(),
            classification: consequences.maf_classification(0).to_owned(),
            hgvs_c: None,
            hgvs_p: None,
        })
    }
}

fn junction_end(end: &Breakend) -> JunctionEnd {
    let kept = match end.side {
        RetainedSide::Left => KeptSide::Left,
        RetainedSide::Right => KeptSide::Right,
    };
    JunctionEnd { contig: end.chrom, position: end.pos, kept }
}

/// Converts a record to a small variant; `None` if ALT is not a sequence of bases (breakends, symbolic alleles).
fn small_change(record: &VcfRecord) -> Option<SmallChange> {
    let AltAllele::Bases(alternative) = &record.alternative else { return None };
    Some(SmallChange {
        contig: record.chrom,
        position: record.pos - 1,
        reference: record.reference.clone().into_bytes(),
        alternative: alternative.clone().into_bytes(),
    })
}

/// Groups the indices of the records with known bases: the passing records of one haplotype form a group, others are
/// alone.
fn group_by_haplotype(records: &[VcfRecord]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut group_of_set: HashMap<(usize, usize), usize> = HashMap::new();
    for (index, record) in records.iter().enumerate() {
        if !matches!(record.alternative, AltAllele::Bases(_)) {
            continue;
        }
        let set = record.phase_set.filter(|_| record.genotype.filters.is_empty());
        let known = set.and_then(|set| group_of_set.get(&(record.chrom, set)).copied());
        match (known, set) {
            (Some(group), _) => groups[group].push(index),
            (None, set) => {
                group_of_set.extend(set.map(|set| ((record.chrom, set), groups.len())));
                groups.push(vec![index]);
            }
        }
    }
    groups
}

/// Percent-encodes the characters that INFO values must not contain (section 1.2 of VCF 4.3).
fn escape_values(values: Vec<String>) -> Vec<String> {
    values.iter().map(|value| percent_encode(value, &[';', '=', ',', ' ', '\t'])).collect()
}
