//! Summary of a finished call: the data that the VCF, `summary.json` and the report show.

use genuma_pair::library::metrics::SamplePairLibraryMetrics;
use genuma_pair::marker_kmers::contig_copies_and_screen::ContigCopiesAndScreen;
use genuma_work::cost::UnitCost;
use genuma_work::counters::RunCounters;
use genuma_work::timeline::Timeline;
use serde::{Serialize, Serializer};

use crate::candidate_kmer::KmerDepths;
use crate::event::EventClass;
use crate::gene_annotation::AnnotationSummary;
use crate::genotype::{Admixture, AlleleSupport, TumourSupport};
use crate::ledger::Ledger;
use crate::provenance::ReferenceIdentity;
use crate::resources::Resources;
use crate::result_warnings::ResultWarning;
use crate::sample_summary::SampleSummary;
use crate::screen_hits::ScreenHit;
use crate::sequence_families::SequenceFamily;
use crate::sequencing_errors::EstimatedErrorRates;
use crate::target_depth::CallTargetSummary;
use crate::target_gaps::TargetGap;
use crate::vcf_record::{GeneEffect, KnownInfoValue};

/// Summary of a finished call, for the VCF, `summary.json` and the report.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CallSummary {
    /// The command line, quoted for a shell, without `--resume`.
    pub command: String,
    /// Version of genuma that made the call, such as 0.2.0.
    pub version: String,
    /// Time at which the results were written, as `2026-01-31 12:00 UTC`.
    pub date: String,
    /// Names of the samples, the normal first. They are VCF columns and BAM read groups.
    pub samples: Vec<String>,
    /// Whether there is a normal sample. In a tumour-only call the reference replaces the normal in this summary.
    pub has_normal: bool,
    /// Input files of each sample.
    pub inputs: Vec<Vec<String>>,
    /// Path of the reference, if one was given.
    pub reference: Option<String>,
    /// Name and checksums that identify the sequences to which calls refer.
    pub reference_identity: ReferenceIdentity,
    /// Path of the panel of normals, if one was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub panel: Option<String>,
    /// Path of the VCF file of known variants, if one was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub known: Option<String>,
    /// IDs of the INFO fields of known variants that the calls have (`--known-info`).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub known_info_fields: Vec<String>,
    /// Summary of the genes and of the consequences of the calls, if a GFF3 file was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotation: Option<AnnotationSummary>,
    /// Target intervals and their depths, if targets were given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub targets: Option<CallTargetSummary>,
    /// Targets with nearly no coverage. Not serialized, because `targets.tsv` lists them.
    #[serde(skip)]
    pub target_gaps: Vec<TargetGap>,
    /// k-mer length in bp.
    pub k: u32,
    /// Resource limits of the call.
    pub resources: Resources,
    /// Run time and memory of each unit, in the order in which the units ran.
    pub units: Vec<UnitCost>,
    /// Memory, CPU and disk use of the process over time.
    pub timeline: Timeline,
    /// Resources that the process used: CPU time, page faults and others; `None` unless counters were requested
    /// (`--counters`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counters: Option<RunCounters>,
    /// Number of bases of each sample.
    pub bases: Vec<u64>,
    /// k-mer spectra: `spectra[sample][m]` is the number of distinct k-mers that occur `m` times in the sample. Sample
    /// 0 is the normal, samples from 1 on are tumours.
    pub spectra: Vec<Vec<u64>>,
    /// Depths that were estimated from the k-mer spectra.
    pub depths: KmerDepths,
    /// Library metrics of the normal and the first tumour: insert sizes, duplicates, damage and others.
    #[serde(rename = "library")]
    pub libraries: SamplePairLibraryMetrics,
    /// Depths of reference contigs and of screened sequences, from marker k-mers.
    pub known_sequences: ContigCopiesAndScreen,
    /// Facts about the normal, the first tumour and its calls: contamination, purity, mutation burden and others.
    pub sample_summary: SampleSummary,
    /// Summaries of the tumours after the first, in their order; empty with a single tumour.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub other_tumours: Vec<AdditionalTumourSummary>,
    /// Calls whose inserted sequence comes from a screened sequence, for example of a virus.
    pub screened_calls: Vec<ScreenHit>,
    /// Filtered calls grouped by sequence family: calls whose contigs or reads come from another copy of a sequence. The
    /// families with most calls are first.
    pub sequence_families: Vec<SequenceFamily>,
    /// Number of items that each stage produced and skipped, with reasons.
    #[serde(rename = "stages")]
    pub ledger: Ledger,
    /// Sequencing error rates, estimated from the recruited reads.
    pub errors: EstimatedErrorRates,
    /// Share of the sites known in both samples at which normal and tumour have different alleles. `None` if the share
    /// is low enough for samples of one person.
    pub genotype_mismatch_rate: Option<f64>,
    /// Reasons not to trust the calls. Some of them make genuma withhold the calls unless the user requests them.
    pub warnings: Vec<ResultWarning>,
    /// Tumour cells in the normal, and DNA of another person in the tumour, as genotyping took them into account.
    #[serde(skip)]
    pub admixture: Admixture,
    /// Names and lengths of the sequences to which calls refer.
    pub sequences: Vec<(String, u64)>,
    /// All calls by position, also those that failed a filter. Only passing calls are serialized, because the VCF has
    /// all of them.
    #[serde(serialize_with = "serialize_passing")]
    pub calls: Vec<ReportedEvent>,
}

impl CallSummary {
    /// Builds a summary for an additional tumour, as if it were the only tumour of the call. It has no calls, and none
    /// of the properties that are known for the first tumour only.
    pub fn summary_for_additional_tumour(&self, other: &AdditionalTumourSummary) -> CallSummary {
        let sample = self.samples.iter().position(|sample| *sample == other.sample).unwrap_or_default();
        CallSummary {
            command: self.command.clone(),
            version: self.version.clone(),
            date: self.date.clone(),
            samples: self.samples.iter().take(1).chain([&other.sample]).cloned().collect(),
            has_normal: self.has_normal,
            inputs: Vec::new(),
            reference: self.reference.clone(),
            reference_identity: self.reference_identity.clone(),
            panel: self.panel.clone(),
            known: self.known.clone(),
            known_info_fields: self.known_info_fields.clone(),
            annotation: self.annotation.clone(),
            targets: self.targets.as_ref().map(|targets| targets.summary_of_sample_pair(sample)),
            target_gaps: Vec::new(),
            k: self.k,
            resources: self.resources.clone(),
            units: Vec::new(),
            timeline: Timeline::default(),
            counters: None,
            bases: Vec::new(),
            spectra: Vec::new(),
            depths: self.depths.clone(),
            libraries: other.libraries.clone(),
            known_sequences: ContigCopiesAndScreen::default(),
            sample_summary: other.sample_summary.clone(),
            other_tumours: Vec::new(),
            screened_calls: Vec::new(),
            sequence_families: Vec::new(),
            ledger: Ledger::default(),
            errors: self.errors.clone(),
            genotype_mismatch_rate: self.genotype_mismatch_rate,
            warnings: Vec::new(),
            admixture: self.admixture,
            sequences: self.sequences.clone(),
            calls: Vec::new(),
        }
    }
}

/// Summary of one tumour after the first.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AdditionalTumourSummary {
    /// Name of the tumour sample.
    pub sample: String,
    /// Library metrics of this tumour and the normal.
    #[serde(rename = "library")]
    pub libraries: SamplePairLibraryMetrics,
    /// Facts about this tumour, the normal and the calls that this tumour has.
    pub sample_summary: SampleSummary,
}

/// Serializes the calls that pass all filters.
fn serialize_passing<S: Serializer>(calls: &[ReportedEvent], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(calls.iter().filter(|call| call.filters.is_empty()))
}

/// One event as `summary.json` and the report show it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReportedEvent {
    /// ID in the VCF: the ID column, or the INFO field EVENT if the event has several records.
    pub id: String,
    /// Name of the reference sequence.
    pub chrom: String,
    /// Position (1-based).
    pub pos: u64,
    /// The second breakend of a structural variant, if there is one: name of the sequence and position (1-based).
    pub other: Option<(String, u64)>,
    /// REF and ALT of the first VCF record.
    pub alleles: [String; 2],
    /// Class of the event: SNV, MNV, indel or kind of structural variant.
    pub class: EventClass,
    /// Somatic quality (Phred).
    pub quality: f64,
    /// IDs of the filters that the event failed; empty if it passes all.
    pub filters: Vec<String>,
    /// Numbers of molecules of the normal with the reference allele and with the tumour allele.
    pub normal: AlleleSupport,
    /// Numbers of molecules with each allele in the tumour, or in all tumours together.
    pub tumour: AlleleSupport,
    /// Numbers of molecules with each allele in every tumour; empty with a single tumour.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tumours: Vec<TumourSupport>,
    /// Name of the tumour contig in `contigs.fa` that shows the event.
    pub contig: String,
    /// Effect on a gene, if a GFF3 file was given and the event is in a gene.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gene: Option<GeneEffect>,
    /// INFO fields of known variants, if the event is a small variant that their file lists.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub known_info: Vec<KnownInfoValue>,
    /// Reads aligned to both alleles, for the report; empty for calls whose reads the report does not show. Not
    /// serialized.
    #[serde(skip)]
    pub picture: EventPileup,
}

/// Pileup for the report: reads of all samples aligned, column by column, to the normal and the tumour allele of an
/// event.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct EventPileup {
    /// Bases of the normal allele, with `-` where the tumour allele has additional bases. As long as `tumour`.
    pub normal: String,
    /// Bases of the tumour allele, with `-` where the normal allele has additional bases.
    pub tumour: String,
    /// First column of the changed bases, and the column after the last.
    pub change: (u32, u32),
    /// The reads, sorted by sample with the normal first. Of each sample, reads with the tumour allele come first. At
    /// most 30 reads of a sample.
    pub rows: Vec<PileupRow>,
}

/// One read of an [`EventPileup`].
#[derive(Debug, Clone, PartialEq)]
pub struct PileupRow {
    /// Number of the sample: 0 for the normal, 1 for the first tumour.
    pub sample: u8,
    /// Whether the read supports the tumour allele (`true`) or the normal allele (`false`); `None` if it supports
    /// neither.
    pub supports_tumour_allele: Option<bool>,
    /// Whether the read has the orientation of the contig.
    pub forward: bool,
    /// Whether the read is a duplicate, which is shown but not counted.
    pub is_duplicate: bool,
    /// First column that the read covers.
    pub start: u32,
    /// Characters of the columns from `start` on: `.` for a base equal to the allele that the read supports, the base
    /// where it differs, `-` in a gap of this allele, `…` where columns are left out.
    pub cells: String,
}
