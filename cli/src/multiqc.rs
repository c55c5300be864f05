//! Writes MultiQC custom content: files `*_mqc.json`, one for each section of the MultiQC report
//! (<https://docs.seqera.io/multiqc/custom_content>).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use genuma_pair::identity::Relation;
use genuma_pair::library::metrics::{LibraryMetrics, SamplePairLibraryMetrics};
use genuma_pair::pair_summary::SamplePairSummary;
use genuma_somatic::call_summary::CallSummary;
use genuma_somatic::mutation_context::mutation_context_names;
use genuma_somatic::sample_names;
use genuma_somatic::sample_summary::SampleSummary;
use genuma_work::publish::AtomicFileSet;
use serde_json::{Map, Value, json};

use crate::json_file;

/// One section of a MultiQC report, or columns of its general statistics table.
pub(crate) struct MultiqcSection {
    /// Identifier of the section, unique among all sections that genuma writes.
    id: &'static str,
    kind: SectionKind,
    /// The data: values by sample (row) and column. Unknown values have no entry.
    rows: BTreeMap<String, Map<String, Value>>,
}

enum SectionKind {
    /// Columns of the general statistics table.
    General(Vec<Column>),
    Table {
        name: &'static str,
        about: &'static str,
        columns: Vec<Column>,
    },
    Bars {
        name: &'static str,
        about: &'static str,
        axis: &'static str,
    },
    Lines {
        name: &'static str,
        about: &'static str,
        axes: [&'static str; 2],
    },
}

/// A table column: key, title, description, suffix of the numbers (`word` for a text column), number of decimals, and
/// the maximum of the colour scale.
struct Column(&'static str, &'static str, &'static str, &'static str, u8, Option<f64>);

impl MultiqcSection {
    fn new(id: &'static str, kind: SectionKind) -> MultiqcSection {
        MultiqcSection { id, kind, rows: BTreeMap::new() }
    }

    /// Replaces a column of the general statistics table.
    fn replace_column(&mut self, key: &str, column: Column) {
        if let SectionKind::General(columns) = &mut self.kind
            && let Some(replaced) = columns.iter_mut().find(|column| column.0 == key)
        {
            *replaced = column;
        }
    }

    /// Sets the value of a column for a sample, if the value is known.
    fn set_value(&mut self, row: &str, column: &str, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.rows.entry(row.to_owned()).or_default().insert(column.to_owned(), value.into());
        }
    }

    /// Returns the part of the file name after the prefix.
    fn file_suffix(&self) -> String {
        format!("{}_mqc.json", self.id)
    }

    fn to_json(&self) -> Value {
        let id = format!("genuma_{}", self.id);
        let data = match self.kind {
            SectionKind::Lines { .. } => {
                self.rows.iter().map(|(row, points)| (row.clone(), sort_points(points))).collect()
            }
            _ => json!(self.rows),
        };
        let section = |plot: &str, name: &str, about: &str, config: Value| {
            json!({
                "id": id,
                "parent_id": "genuma",
                "parent_name": "genuma",
                "parent_description": "finds somatic mutations without aligning the reads, aligns reads, and counts k-mers.",
                "section_name": name,
                "description": about,
                "plot_type": plot,
                "pconfig": config,
                "data": data,
            })
        };
        let title = |name: &str| format!("genuma: {}", name.to_lowercase());
        let plot = format!("{id}_plot");
        match &self.kind {
            SectionKind::General(columns) => {
                let columns: Vec<Value> = columns.iter().map(|column| json!({ column.0: column.to_json() })).collect();
                json!({ "id": id, "plot_type": "generalstats", "pconfig": columns, "data": data })
            }
            SectionKind::Table { name, about, columns } => {
                let headers: Map<String, Value> =
                    columns.iter().map(|column| (column.0.to_owned(), column.to_json())).collect();
                let mut value = section("table", name, about, json!({ "id": plot, "title": title(name) }));
                value["headers"] = Value::Object(headers);
                value
            }
            SectionKind::Bars { name, about, axis } => {
                section("bargraph", name, about, json!({ "id": plot, "title": title(name), "ylab": axis }))
            }
            SectionKind::Lines { name, about, axes: [x, y] } => section(
                "linegraph",
                name,
                about,
                json!({ "id": plot, "title": title(name), "xlab": x, "ylab": y, "ylog": true }),
            ),
        }
    }
}

impl Column {
    fn to_json(&self) -> Value {
        let Column(_, title, about, suffix, digits, most) = self;
        let mut value = json!({ "title": title, "description": format!("genuma: {about}"), "suffix": suffix, "namespace": "genuma" });
        if *suffix != "word" {
            value["format"] = format!("{{:,.{digits}f}}").into();
            value["min"] = 0.into();
        } else {
            value["suffix"] = "".into();
            value["scale"] = false.into();
        }
        if let Some(most) = most {
            value["max"] = (*most).into();
        }
        value
    }
}

/// Adds a file to `set` for each section that has data. File names start with `prefix`.
///
/// # Errors
/// A file cannot be written.
pub(crate) fn add_multiqc_section_files(
    prefix: &Path,
    sections: &[MultiqcSection],
    set: &mut AtomicFileSet,
) -> anyhow::Result<()> {
    sections.iter().filter(|section| !section.rows.is_empty()).try_for_each(|section| {
        json_file::add_json_file(&append_suffix(prefix, &section.file_suffix()), &section.to_json(), set)
    })
}

fn append_suffix(prefix: &Path, suffix: &str) -> PathBuf {
    let mut name = prefix.as_os_str().to_owned();
    name.push("_");
    name.push(suffix);
    PathBuf::from(name)
}

/// Sorts the points of a line plot by x.
fn sort_points(points: &Map<String, Value>) -> Value {
    let mut points: Vec<(u64, &Value)> = points.iter().filter_map(|(x, y)| Some((x.parse().ok()?, y))).collect();
    points.sort_by_key(|(x, _)| *x);
    json!(points)
}

/// Converts a share (0 to 1) to percent.
fn to_percent(share: f64) -> f64 {
    100.0 * share
}

/// Returns the name of a sample's row in a MultiQC report of many runs: the name of the sample. A default name, such as
/// NORMAL, is preceded by the last component of `results`, the output folder or the prefix of the files, to be unique.
fn row_name(sample: &str, results: &Path) -> String {
    let unnamed = sample == sample_names::DEFAULT_NORMAL_NAME || sample.starts_with(sample_names::DEFAULT_TUMOUR_NAME);
    // I/O error ignored: the name as given serves too.
    match results.canonicalize().ok().as_deref().unwrap_or(results).file_name() {
        Some(name) if unnamed => format!("{} {sample}", name.to_string_lossy()),
        _ => sample.to_owned(),
    }
}

/// Builds the sections of a finished call: libraries, sample pair, number of calls by class, and substitutions.
/// `passed` is the number of passed calls of each class; `folder` is the output folder.
pub(crate) fn build_call_sections(
    outcome: &CallSummary,
    passed: &BTreeMap<&str, u64>,
    folder: &Path,
) -> Vec<MultiqcSection> {
    let rows: Vec<String> = outcome.samples.iter().map(|sample| row_name(sample, folder)).collect();
    let others = || outcome.other_tumours.iter();
    let (mut general, mut warnings_table) = (general_section(), warnings_section());
    let tumours = [&outcome.libraries.tumor].into_iter().chain(others().map(|other| &other.libraries.tumor));
    let first = usize::from(!outcome.has_normal);
    for (row, library) in rows.iter().zip([&outcome.libraries.normal].into_iter().chain(tumours)).skip(first) {
        add_library(row, library, &mut general);
    }
    match &outcome.targets {
        // The modal depth of k-mers says nothing about a capture.
        Some(targets) => {
            general.replace_column(
                "depth",
                Column("target_depth", "Depth on target", "mean depth of the target bases, from k-mers", "x", 0, None),
            );
            for (row, covered) in rows.iter().zip(&targets.samples).skip(first) {
                general.set_value(row, "target_depth", Some(covered.mean_depth));
            }
        }
        None => {
            for (row, depth) in rows.iter().zip(&outcome.depths.kmer).skip(first) {
                general.set_value(row, "depth", Some(*depth));
            }
        }
    }
    let mut pair = pair_section();
    let mut spectrum = MultiqcSection::new(
        "spectrum",
        SectionKind::Bars {
            name: "Substitutions",
            about: "Substitutions among the calls that passed, on the strand of the pyrimidine. The 96 contexts are in each report.",
            axis: "Calls",
        },
    );
    let mut calls = MultiqcSection::new(
        "calls",
        SectionKind::Bars {
            name: "Somatic calls",
            about: "Calls that passed, by class; of several tumours of one person all together, in the row of the first. Filtered calls are in each VCF and report.",
            axis: "Calls",
        },
    );
    let portraits = [&outcome.sample_summary].into_iter().chain(others().map(|other| &other.sample_summary));
    for (number, (tumour, portrait)) in rows.iter().skip(1).zip(portraits).enumerate() {
        add_sample_summary(tumour, &rows[0], number == 0, portrait, &mut pair, &mut general);
        let mut changes: BTreeMap<&str, u64> = BTreeMap::new();
        let contexts = mutation_context_names();
        for (context, count) in contexts.iter().zip(&portrait.spectrum) {
            *changes.entry(&context[2..5]).or_default() += count;
        }
        for (change, count) in changes {
            spectrum.set_value(tumour, change, Some(count));
        }
    }
    if let Some(first) = rows.get(1) {
        for (class, count) in passed {
            calls.set_value(first, class, Some(*count));
        }
        calls.rows.entry(first.clone()).or_default();
        general.set_value(first, "calls", Some(passed.values().sum::<u64>()));
        let warnings: Vec<&str> = outcome.warnings.iter().map(|warning| &*warning.message).collect();
        general.set_value(first, "warnings", Some(warnings.len()));
        warnings_table.set_value(first, "messages", (!warnings.is_empty()).then(|| warnings.join("; ")));
    }
    vec![general, warnings_table, pair, calls, spectrum]
}

fn warnings_section() -> MultiqcSection {
    let about = "Reasons why the calls may not be valid. Samples without warnings are not listed.";
    let columns = vec![Column("messages", "Warnings", "warnings about the inputs and the results", "word", 0, None)];
    MultiqcSection::new("warnings", SectionKind::Table { name: "Warnings", about, columns })
}

fn general_section() -> MultiqcSection {
    MultiqcSection::new(
        "general",
        SectionKind::General(vec![
            Column("calls", "Calls", "somatic calls that passed", "", 0, None),
            Column("warnings", "Warnings", "warnings about the inputs and the results", "", 0, None),
            Column("purity", "Purity", "share of tumour cells in the tumour sample", "%", 0, Some(100.0)),
            Column("contamination", "Contamination", "share of DNA of another person", "%", 1, Some(10.0)),
            Column("depth", "k-mer depth", "modal depth of single-copy k-mers", "x", 0, None),
            Column("pcr_duplicates", "Duplicates", "share of read pairs that are duplicates", "%", 1, Some(100.0)),
            Column("insert", "Insert", "median insert size", " bp", 0, None),
            Column("errors", "Errors", "sequencing error rate, from overlapping mates", "%", 2, Some(5.0)),
            Column("q30", "Q30", "share of bases of quality 30 or more", "%", 0, Some(100.0)),
            Column("pairs", "Pairs", "read pairs, in millions", " M", 1, None),
        ]),
    )
}

fn add_library(row: &str, library: &LibraryMetrics, general: &mut MultiqcSection) {
    general.set_value(row, "pairs", Some(library.pairs as f64 / 1e6));
    let q30: Vec<f64> = library.mates.iter().filter_map(|mate| mate.q30).collect();
    general.set_value(row, "q30", (!q30.is_empty()).then(|| to_percent(q30.iter().sum::<f64>() / q30.len() as f64)));
    general.set_value(
        row,
        "insert",
        library.insert.quantiles[2].or(library.insert.mean_measured.map(|mean| mean.round() as u64)),
    );
    general.set_value(row, "errors", library.errors.rate.map(|rate| to_percent(rate.value)));
    general.set_value(row, "pcr_duplicates", library.duplicates.share.map(|share| to_percent(share.value)));
}

fn pair_section() -> MultiqcSection {
    let share = |key, title, about, most| Column(key, title, about, "%", 1, Some(most));
    MultiqcSection::new(
        "pair",
        SectionKind::Table {
            name: "Tumour and normal",
            about: "Properties of the samples, estimated from the reads. Intervals and more are in each report.",
            columns: vec![
                Column("relation", "Identity", "whether both samples are of one person", "word", 0, None),
                share("purity", "Purity", "share of tumour cells in the tumour sample", 100.0),
                Column("ploidy", "Ploidy", "mean number of copies of the genome in tumour cells", "", 2, None),
                share("loh", "LOH", "share of the genome with loss of heterozygosity", 100.0),
                share(
                    "contamination_tumor",
                    "Contamination, tumour",
                    "share of DNA of another person in the tumour",
                    10.0,
                ),
                share(
                    "contamination_normal",
                    "Contamination, normal",
                    "share of DNA of another person in the normal",
                    10.0,
                ),
                share("tumour_in_normal", "Tumour in normal", "share of tumour cells in the normal", 10.0),
                share(
                    "unstable_repeats",
                    "Unstable repeats",
                    "share of tandem repeats with a somatic length change",
                    30.0,
                ),
                Column("burden", "Burden", "somatic SNVs and indels per Mbp", " /Mbp", 1, None),
            ],
        },
    )
}

fn add_sample_summary(
    tumour: &str,
    normal: &str,
    first: bool,
    portrait: &SampleSummary,
    pair: &mut MultiqcSection,
    general: &mut MultiqcSection,
) {
    let SampleSummary { pair: facts, tumour_in_normal, burden, repeats, .. } = portrait;
    if let Some(facts) = facts {
        add_pair_facts(tumour, normal, first, facts, pair, general);
    }
    pair.set_value(tumour, "tumour_in_normal", tumour_in_normal.map(|share| to_percent(share.value)));
    pair.set_value(tumour, "unstable_repeats", repeats.as_ref().map(|repeats| to_percent(repeats.share.value)));
    pair.set_value(tumour, "burden", burden.map(|burden| burden.value));
}

/// Adds the facts of the sample pair to the row of a tumour and, if the tumour is the first, to the row of the normal.
fn add_pair_facts(
    tumour: &str,
    normal: &str,
    first: bool,
    facts: &SamplePairSummary,
    pair: &mut MultiqcSection,
    general: &mut MultiqcSection,
) {
    pair.set_value(tumour, "relation", Some(relation_label(facts.identity.relation)));
    let other = |sample: usize| facts.contamination[sample].as_ref().map(|other| to_percent(other.share.value));
    pair.set_value(tumour, "contamination_normal", other(0));
    pair.set_value(tumour, "contamination_tumor", other(1));
    general.set_value(tumour, "contamination", other(1));
    if first {
        general.set_value(normal, "contamination", other(0));
    }
    if let Some(told) = &facts.tumour {
        let purity = told.purity.map(|purity| to_percent(purity.value));
        pair.set_value(tumour, "purity", purity);
        general.set_value(tumour, "purity", purity);
        pair.set_value(tumour, "ploidy", told.ploidy.map(|ploidy| ploidy.value));
        pair.set_value(tumour, "loh", told.loh_fraction.map(to_percent));
    }
}

/// Returns a short label of a relation (same person, relatives, different people) for a table cell.
fn relation_label(relation: Relation) -> &'static str {
    match relation {
        Relation::Same => "same person",
        Relation::Relatives => "relatives",
        Relation::Unrelated => "different people",
        Relation::Different => "different people, possibly relatives",
        Relation::SameOrRelatives => "same person or relatives",
        Relation::Unknown => "unknown",
    }
}

/// Builds the sections of `genuma check`: libraries, and the facts of each tumour. `names` are the sample names, the
/// normal first.
pub(crate) fn build_check_sections(
    names: &[String],
    looked: &[(&SamplePairLibraryMetrics, &SamplePairSummary)],
    prefix: &Path,
) -> Vec<MultiqcSection> {
    let rows: Vec<String> = names.iter().map(|sample| row_name(sample, prefix)).collect();
    let (mut general, mut pair) = (general_section(), pair_section());
    for (number, (tumour, (libraries, facts))) in rows.iter().skip(1).zip(looked).enumerate() {
        if number == 0 {
            add_library(&rows[0], &libraries.normal, &mut general);
        }
        add_library(tumour, &libraries.tumor, &mut general);
        add_pair_facts(tumour, &rows[0], number == 0, facts, &mut pair, &mut general);
    }
    vec![general, pair]
}

/// Statistics of one sample of `genuma align`. Shares are in percent.
pub(crate) struct AlignmentStatistics {
    pub(crate) sample: String,
    pub(crate) reads: u64,
    pub(crate) mapped: f64,
    pub(crate) proper: Option<f64>,
    pub(crate) duplicates: Option<f64>,
    /// Median insert size (TLEN) of the proper pairs in bp.
    pub(crate) insert: Option<f64>,
}

/// Builds the section of `genuma align`.
pub(crate) fn build_align_sections(aligned: &AlignmentStatistics) -> Vec<MultiqcSection> {
    let mut general = MultiqcSection::new(
        "align",
        SectionKind::General(vec![
            Column("mapped", "Mapped", "share of mapped reads", "%", 1, Some(100.0)),
            Column("proper", "Proper", "share of properly paired reads", "%", 1, Some(100.0)),
            Column("duplicates", "Duplicates", "share of reads marked as duplicates", "%", 1, Some(100.0)),
            Column("template", "Template", "median template length of proper pairs", " bp", 0, None),
            Column("reads", "Reads", "reads, in millions", " M", 1, None),
        ]),
    );
    let row = &aligned.sample;
    general.set_value(row, "reads", Some(aligned.reads as f64 / 1e6));
    general.set_value(row, "mapped", Some(aligned.mapped));
    general.set_value(row, "proper", aligned.proper);
    general.set_value(row, "duplicates", aligned.duplicates);
    general.set_value(row, "template", aligned.insert);
    vec![general]
}

/// Statistics of one sample of `genuma kmers count`.
pub(crate) struct KmerCountStatistics<'a> {
    pub(crate) sample: &'a str,
    pub(crate) bases: u64,
    /// `spectrum[m]`: number of distinct k-mers that occur `m` times; in the last element, `m` times or more.
    pub(crate) spectrum: &'a [u64],
}

/// Builds the sections of `genuma kmers count`.
pub(crate) fn build_count_sections<'a>(
    samples: impl IntoIterator<Item = KmerCountStatistics<'a>>,
) -> Vec<MultiqcSection> {
    let mut general = MultiqcSection::new(
        "count",
        SectionKind::General(vec![
            Column("distinct", "k-mers", "distinct k-mers, in millions", " M", 1, None),
            Column("once", "Once", "share of distinct k-mers that occur once", "%", 0, Some(100.0)),
            Column("bases", "Bases", "sequenced bases, in millions", " M", 0, None),
        ]),
    );
    let mut spectrum = MultiqcSection::new(
        "kmers",
        SectionKind::Lines {
            name: "k-mer spectrum",
            about: "Number of distinct k-mers by number of occurrences, up to 500. k-mers that occur once or twice are mostly sequencing errors; the peak is the depth.",
            axes: ["Occurrences of a k-mer", "Distinct k-mers"],
        },
    );
    for KmerCountStatistics { sample, bases, spectrum: counts } in samples {
        let distinct: u64 = counts.iter().sum();
        general.set_value(sample, "bases", Some(bases as f64 / 1e6));
        general.set_value(sample, "distinct", Some(distinct as f64 / 1e6));
        let once = counts.get(1).copied().unwrap_or_default();
        general.set_value(sample, "once", (distinct > 0).then(|| to_percent(once as f64 / distinct as f64)));
        let last = counts.iter().rposition(|kmers| *kmers > 0).unwrap_or(0).min(MAX_SPECTRUM_COUNT);
        for (times, kmers) in counts.iter().enumerate().take(last + 1).skip(1) {
            spectrum.set_value(sample, &times.to_string(), Some(*kmers));
        }
    }
    vec![general, spectrum]
}

/// Maximum count (occurrences of a k-mer) in the plotted k-mer spectrum. Higher counts come from repeats, and would
/// only make the file larger.
const MAX_SPECTRUM_COUNT: usize = 500;
