//! Summary of a finished call: all data of the VCF, `summary.json` and the report.

use genuma_pair::library::metrics::SamplePairLibraryMetrics;
use genuma_pair::marker_kmers::karyotype_and_screen::KnownSequenceResults;
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
use crate::sequencing_errors::EstimatedErrorRates;
use crate::target_depth::TargetSummary;
use crate::vcf_record::GeneEffect;

/// Summary of a finished call.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CallSummary {
    /// The command line as typed.
    pub command: String,
    /// Version of genuma that made the call, such as 0.2.0.
    pub version: String,
    /// Time at which the results were written, as `2026-01-31 12:00 UTC`.
    pub date: String,
    /// Names of the samples, the normal first. They are VCF columns and BAM read groups.
    pub samples: Vec<String>,
    /// Whether there is a normal. Without one, the reference takes the place of the normal in this summary.
    pub has_normal: bool,
    /// Input files of each sample.
    pub inputs: Vec<Vec<String>>,
    /// Path of the reference, if one was given.
    pub reference: Option<String>,
    /// Identity of the sequences that calls are placed on.
    pub reference_identity: ReferenceIdentity,
    /// Path of the panel of normals, if one was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub panel: Option<String>,
    /// Path of the known variants, if any were given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub known: Option<String>,
    /// The genes and the consequences of the calls, if a GFF3 file was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotation: Option<AnnotationSummary>,
    /// The targets and their depths, if targets were given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub targets: Option<TargetSummary>,
    /// k-mer length in bp.
    pub k: u32,
    /// Resource limits of the call.
    pub resources: Resources,
    /// Run time and memory of each unit, in the order in which the units ran.
    pub units: Vec<UnitCost>,
    /// Resource use over time.
    pub timeline: Timeline,
    /// Resources that the run used; `None` unless counters were requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counters: Option<RunCounters>,
    /// Number of bases of each sample.
    pub bases: Vec<u64>,
    /// `spectra[sample][m]` is the number of distinct k-mers that occur `m` times in the sample: the normal (0) or a
    /// tumour (1 and higher).
    pub spectra: Vec<Vec<u64>>,
    /// Depths estimated from the spectra.
    pub depths: KmerDepths,
    /// Library properties of the normal and the first tumour.
    #[serde(rename = "library")]
    pub libraries: SamplePairLibraryMetrics,
    /// Depths of reference contigs and of screened sequences, from marker k-mers.
    pub known_sequences: KnownSequenceResults,
    /// Summary of the normal, the first tumour and its calls.
    pub sample_summary: SampleSummary,
    /// Summaries of the tumours beyond the first, in their order; empty with a single tumour.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub other_tumours: Vec<AdditionalTumour>,
    /// Calls whose new sequence is that of a screened sequence, for example a virus.
    pub screened_calls: Vec<ScreenHit>,
    /// Counts of what each stage produced and skipped.
    #[serde(rename = "stages")]
    pub ledger: Ledger,
    /// Error rates of the reads, estimated from the recruited reads.
    pub errors: EstimatedErrorRates,
    /// Share of the sites known in both samples at which the normal and the tumour have different alleles. `None` if
    /// the share is so small that the samples may be of one person.
    pub genotype_mismatch_rate: Option<f64>,
    /// Reasons not to trust the calls. If one of them withholds results, the user asked for them.
    pub warnings: Vec<ResultWarning>,
    /// Tumour cells in the normal, and DNA of another person in the tumour, that genotyping allowed for.
    #[serde(skip)]
    pub admixture: Admixture,
    /// Names and lengths of the sequences that calls are placed on.
    pub sequences: Vec<(String, u64)>,
    /// All calls by position, including those that failed a filter. Only calls that pass are serialized, because the
    /// VCF has all.
    #[serde(serialize_with = "serialize_passing")]
    pub calls: Vec<ReportedEvent>,
}

impl CallSummary {
    /// The summary of an additional tumour, as if it were the only tumour of the call. Calls, and properties that are
    /// known of the first tumour only, are left out.
    pub fn summary_for_additional_tumour(&self, other: &AdditionalTumour) -> CallSummary {
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
            annotation: self.annotation.clone(),
            targets: self.targets.as_ref().map(|targets| targets.summary_of_pair(sample)),
            k: self.k,
            resources: self.resources.clone(),
            units: Vec::new(),
            timeline: Timeline::default(),
            counters: None,
            bases: Vec::new(),
            spectra: Vec::new(),
            depths: self.depths.clone(),
            libraries: other.libraries.clone(),
            known_sequences: KnownSequenceResults::default(),
            sample_summary: other.sample_summary.clone(),
            other_tumours: Vec::new(),
            screened_calls: Vec::new(),
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

/// Summary of one tumour of the call other than the first.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AdditionalTumour {
    /// Name of the tumour sample.
    pub sample: String,
    /// Library properties of this tumour and the normal.
    #[serde(rename = "library")]
    pub libraries: SamplePairLibraryMetrics,
    /// Summary of this tumour, the normal and the calls that this tumour has.
    pub sample_summary: SampleSummary,
}

/// Serializes the calls that pass all filters.
fn serialize_passing<S: Serializer>(calls: &[ReportedEvent], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(calls.iter().filter(|call| call.filters.is_empty()))
}

/// One event as the summary and the report show it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReportedEvent {
    /// ID in the VCF: of the record, or of the event if it has several records.
    pub id: String,
    /// Name of the reference sequence.
    pub chrom: String,
    /// Position (1-based).
    pub pos: u64,
    /// The other end of a structural event, if there is one: sequence name and position (1-based).
    pub other: Option<(String, u64)>,
    /// REF and ALT of the first record.
    pub alleles: [String; 2],
    /// Class of the event: SNV, MNV, indel or kind of structural variant.
    pub class: EventClass,
    /// Somatic quality (Phred).
    pub quality: f64,
    /// IDs of the filters that the event failed; empty if it passes.
    pub filters: Vec<String>,
    /// Number of molecules of the normal with and without the tumour allele.
    pub normal: AlleleSupport,
    /// Support in the tumour, or in all tumours together.
    pub tumour: AlleleSupport,
    /// Support in each tumour; empty with a single tumour.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tumours: Vec<TumourSupport>,
    /// Name of the tumour contig in `contigs.fa`.
    pub contig: String,
    /// Effect on the gene, if a GFF3 file was given and the event is in a gene.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gene: Option<GeneEffect>,
    /// Alignment of the reads to both alleles, for the report; empty for calls whose reads are not shown. Not
    /// serialized.
    #[serde(skip)]
    pub picture: EventPileup,
}

/// Reads of all samples aligned to the normal and the tumour allele of an event, in columns, for the report.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct EventPileup {
    /// The normal allele, with `-` where the tumour has additional bases. As long as `tumour`.
    pub normal: String,
    /// The tumour allele, with `-` where the normal has additional bases.
    pub tumour: String,
    /// First column of the change, and the column after its last.
    pub change: (u32, u32),
    /// The reads: normal first; in a tumour, reads that support its allele first. At most some dozens per sample.
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
    /// Whether the read is a duplicate and does not count.
    pub is_duplicate: bool,
    /// First column of the read.
    pub start: u32,
    /// Bases from the first column on: `.` where the read agrees with its allele, the base where it differs, `-` in a
    /// gap of its allele.
    pub cells: String,
}
