//! What a finished call knows: everything the VCF, the summary and the report are made of.

use genuma_pair::library::facts::Libraries;
use genuma_pair::marks::facts::Known;
use genuma_work::clock::UnitCost;
use genuma_work::timeline::Timeline;
use serde::{Serialize, Serializer};

use crate::errors::Learned;
use crate::event::Class;
use crate::genotype::{Own, Support};
use crate::ledger::Ledger;
use crate::means::Means;
use crate::portrait::Portrait;
use crate::screened::Screened;
use crate::select::Depths;

/// The whole of a finished call.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    /// The command line as typed.
    pub command: String,
    /// Version of genuma.
    pub version: String,
    /// What the samples are called: columns of the VCF, read groups of the BAM. The normal first, as everywhere.
    pub samples: Vec<String>,
    /// Input files of each sample.
    pub inputs: Vec<Vec<String>>,
    /// The reference, if one was given.
    pub reference: Option<String>,
    /// The panel of normals, if one was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub panel: Option<String>,
    /// k-mer length.
    pub k: u32,
    /// What it might use.
    pub means: Means,
    /// What each unit cost, in the order they ran.
    pub units: Vec<UnitCost>,
    /// What it used over time.
    pub timeline: Timeline,
    /// Bases read of each sample.
    pub bases: Vec<u64>,
    /// `spectra[sample][m]`: distinct k-mers seen `m` times in the normal (0), in a tumour (1 and so on).
    pub spectra: Vec<Vec<u64>>,
    /// Depths read off the spectra.
    pub depths: Depths,
    /// What the reads say of the libraries.
    #[serde(rename = "library")]
    pub libraries: Libraries,
    /// What there is of the contigs of the reference, and of what is screened for.
    pub known: Known,
    /// What the samples say of themselves, and the calls of them.
    pub portrait: Portrait,
    /// What tumours beyond the first say, beside the normal, in their order; nothing where there is one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<Other>,
    /// Calls whose new sequence is that of something screened for.
    pub screened: Vec<Screened>,
    /// What each stage made and left out.
    pub ledger: Ledger,
    /// What the reads get wrong, as learned from them.
    pub errors: Learned,
    /// Share of the places known in both samples at which each has another allele alone, when that is more than one person has.
    pub strangers: Option<f64>,
    /// Names and lengths of the sequences calls are placed on.
    pub sequences: Vec<(String, u64)>,
    /// All calls by position, those that failed a filter too; of which only those that passed are serialized: the VCF has all.
    #[serde(serialize_with = "passed")]
    pub calls: Vec<Reported>,
}

impl Outcome {
    /// The same as if one of the other tumours were the only one, without its calls, and without what is known of the first alone.
    pub fn of_other(&self, other: &Other) -> Outcome {
        Outcome {
            command: self.command.clone(),
            version: self.version.clone(),
            samples: self.samples.iter().take(1).chain([&other.sample]).cloned().collect(),
            inputs: Vec::new(),
            reference: self.reference.clone(),
            panel: self.panel.clone(),
            k: self.k,
            means: self.means.clone(),
            units: Vec::new(),
            timeline: Timeline::default(),
            bases: Vec::new(),
            spectra: Vec::new(),
            depths: self.depths.clone(),
            libraries: other.libraries.clone(),
            known: Known::default(),
            portrait: other.portrait.clone(),
            others: Vec::new(),
            screened: Vec::new(),
            ledger: Ledger::default(),
            errors: self.errors.clone(),
            strangers: self.strangers,
            sequences: self.sequences.clone(),
            calls: Vec::new(),
        }
    }
}

/// What a tumour beyond the first says of itself.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Other {
    /// What it is called.
    pub sample: String,
    /// What its reads and the normal's say of the libraries.
    #[serde(rename = "library")]
    pub libraries: Libraries,
    /// What it and the normal say of themselves, and the calls that it has.
    pub portrait: Portrait,
}

fn passed<S: Serializer>(calls: &[Reported], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(calls.iter().filter(|call| call.filters.is_empty()))
}

/// One event as shown to people.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reported {
    /// ID in the VCF (of the event when it has several records).
    pub id: String,
    /// Sequence name.
    pub chrom: String,
    /// 1-based position.
    pub pos: u64,
    /// The other end of a structural event, when there is one: sequence name and 1-based position.
    pub other: Option<(String, u64)>,
    /// REF and ALT of the first record.
    pub alleles: [String; 2],
    /// Class.
    pub class: Class,
    /// Phred-scaled quality.
    pub quality: f64,
    /// Names of the filters it failed; empty means PASS.
    pub filters: Vec<String>,
    /// Support in the normal.
    pub normal: Support,
    /// Support in the tumour, in all of them together where there are several.
    pub tumour: Support,
    /// Each tumour by itself, where there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tumours: Vec<Own>,
    /// Name of the tumour contig in contigs.fa.
    pub contig: String,
    /// The reads side by side; nothing of calls whose reads are not shown. The report draws it, it is not serialized.
    #[serde(skip)]
    pub picture: Picture,
}

/// Reads of all samples laid on the two alleles, column by column.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Picture {
    /// The normal allele with `-` where the tumour has more; as long as `tumour`.
    pub normal: String,
    /// The tumour allele with `-` where the normal has more.
    pub tumour: String,
    /// First and one-past-last column of the change.
    pub change: (u32, u32),
    /// The reads, normal first, supporting reads of the tumour before the others; at most some dozens a sample.
    pub rows: Vec<Row>,
}

/// One read of a [`Picture`].
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// 0 normal, 1 tumour, or the number of another tumour.
    pub sample: u8,
    /// Which allele it supports: `Some(true)` the tumour's, `Some(false)` the normal's.
    pub alternative: Option<bool>,
    /// Whether it runs with the contig.
    pub forward: bool,
    /// Whether it was left out as a PCR copy.
    pub copy: bool,
    /// First column covered.
    pub from: u32,
    /// Bases from there on: `.` where it agrees with its allele, the base where it differs, `-` in a gap of its allele.
    pub cells: String,
}
