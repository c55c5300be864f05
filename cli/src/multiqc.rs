//! What MultiQC shows of a run, as its custom content: files `*_mqc.json`, one a section, which it finds by their names
//! (<https://docs.seqera.io/multiqc/custom_content>).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use genuma_pair::facts::PairFacts;
use genuma_pair::identity::Relation;
use genuma_pair::library::facts::{Libraries, Library};
use genuma_somatic::outcome::Outcome;
use genuma_somatic::portrait::{Portrait, contexts};
use genuma_somatic::samples;
use genuma_work::publish::Set;
use serde_json::{Map, Value, json};

use crate::json;

/// A section of MultiQC's page, or columns of the table at its top.
pub(crate) struct Section {
    /// Its own among all that genuma writes.
    id: &'static str,
    kind: Kind,
    /// A row a sample, a column a value; what is not known is not there.
    rows: BTreeMap<String, Map<String, Value>>,
}

enum Kind {
    /// Columns of the general statistics.
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

/// A column: key, title, what it is, behind each number, digits, and the largest number that there can be.
struct Column(&'static str, &'static str, &'static str, &'static str, u8, Option<f64>);

impl Section {
    fn new(id: &'static str, kind: Kind) -> Section {
        Section { id, kind, rows: BTreeMap::new() }
    }

    /// Puts a value of a sample, if it is known.
    fn put(&mut self, row: &str, column: &str, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.rows.entry(row.to_owned()).or_default().insert(column.to_owned(), value.into());
        }
    }

    /// The file's name behind a prefix.
    fn suffix(&self) -> String {
        format!("{}_mqc.json", self.id)
    }

    fn value(&self) -> Value {
        let id = format!("genuma_{}", self.id);
        let data = match self.kind {
            Kind::Lines { .. } => {
                self.rows.iter().map(|(row, points)| (row.clone(), curve(points))).collect()
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
            Kind::General(columns) => {
                let columns: Vec<Value> =
                    columns.iter().map(|column| json!({ column.0: column.value() })).collect();
                json!({ "id": id, "plot_type": "generalstats", "pconfig": columns, "data": data })
            }
            Kind::Table { name, about, columns } => {
                let headers: Map<String, Value> =
                    columns.iter().map(|column| (column.0.to_owned(), column.value())).collect();
                let mut value = section("table", name, about, json!({ "id": plot, "title": title(name) }));
                value["headers"] = Value::Object(headers);
                value
            }
            Kind::Bars { name, about, axis } => {
                section("bargraph", name, about, json!({ "id": plot, "title": title(name), "ylab": axis }))
            }
            Kind::Lines { name, about, axes: [x, y] } => section(
                "linegraph",
                name,
                about,
                json!({ "id": plot, "title": title(name), "xlab": x, "ylab": y, "ylog": true }),
            ),
        }
    }
}

impl Column {
    fn value(&self) -> Value {
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

/// Writes each section to a file of `set`, `prefix` before its name.
///
/// # Errors
/// A file cannot be written.
pub(crate) fn add(prefix: &Path, sections: &[Section], set: &mut Set) -> anyhow::Result<()> {
    sections
        .iter()
        .filter(|section| !section.rows.is_empty())
        .try_for_each(|section| json::add(&joined(prefix, &section.suffix()), &section.value(), set))
}

fn joined(prefix: &Path, suffix: &str) -> PathBuf {
    let mut name = prefix.as_os_str().to_owned();
    name.push("_");
    name.push(suffix);
    PathBuf::from(name)
}

/// Points in the order of their first number.
fn curve(points: &Map<String, Value>) -> Value {
    let mut points: Vec<(u64, &Value)> =
        points.iter().filter_map(|(x, y)| Some((x.parse().ok()?, y))).collect();
    points.sort_by_key(|(x, _)| *x);
    json!(points)
}

/// Percent.
fn hundredths(share: f64) -> f64 {
    100.0 * share
}

/// Who a sample is in a page of many runs: by its own name, or, where it has none, by what the results are called too.
fn row(sample: &str, results: &Path) -> String {
    let unnamed = sample == samples::NORMAL || sample.starts_with(samples::TUMOUR);
    match results.canonicalize().ok().as_deref().unwrap_or(results).file_name() {
        Some(name) if unnamed => format!("{} {sample}", name.to_string_lossy()),
        _ => sample.to_owned(),
    }
}

/// Sections of a finished call, whose results go to `folder`, and of which `passed` says how many of each class did: its libraries, the pair, calls that passed, and their substitutions.
pub(crate) fn of_call(outcome: &Outcome, passed: &BTreeMap<&str, u64>, folder: &Path) -> Vec<Section> {
    let rows: Vec<String> = outcome.samples.iter().map(|sample| row(sample, folder)).collect();
    let others = || outcome.others.iter();
    let mut general = general();
    let tumours = [&outcome.libraries.tumor].into_iter().chain(others().map(|other| &other.libraries.tumor));
    for (row, library) in rows.iter().zip([&outcome.libraries.normal].into_iter().chain(tumours)) {
        of_library(row, library, &mut general);
    }
    for (row, depth) in rows.iter().zip(&outcome.depths.kmer) {
        general.put(row, "depth", Some(*depth));
    }
    let mut pair = pair_table();
    let mut spectrum = Section::new(
        "spectrum",
        Kind::Bars {
            name: "Substitutions",
            about: "Substitutions among the calls that passed, from the pyrimidine of the pair. The 96 contexts are in each report.",
            axis: "Calls",
        },
    );
    let mut calls = Section::new(
        "calls",
        Kind::Bars {
            name: "Somatic calls",
            about: "Calls that passed, by class; of several tumours of one person all together, in the row of the first. What was filtered, and why, is in each VCF and report.",
            axis: "Calls",
        },
    );
    let portraits = [&outcome.portrait].into_iter().chain(others().map(|other| &other.portrait));
    for (number, (tumour, portrait)) in rows.iter().skip(1).zip(portraits).enumerate() {
        of_portrait(tumour, &rows[0], number == 0, portrait, &mut pair, &mut general);
        let mut changes: BTreeMap<&str, u64> = BTreeMap::new();
        let contexts = contexts();
        for (context, count) in contexts.iter().zip(&portrait.spectrum) {
            *changes.entry(&context[2..5]).or_default() += count;
        }
        for (change, count) in changes {
            spectrum.put(tumour, change, Some(count));
        }
    }
    if let Some(first) = rows.get(1) {
        for (class, count) in passed {
            calls.put(first, class, Some(*count));
        }
        calls.rows.entry(first.clone()).or_default();
        general.put(first, "calls", Some(passed.values().sum::<u64>()));
    }
    vec![general, pair, calls, spectrum]
}

fn general() -> Section {
    Section::new(
        "general",
        Kind::General(vec![
            Column("calls", "Calls", "somatic calls that passed", "", 0, None),
            Column("purity", "Purity", "share of the cells that are the tumour's", "%", 0, Some(100.0)),
            Column("other", "Other person", "share of the DNA that is another person's", "%", 1, Some(10.0)),
            Column("depth", "k-mer depth", "times that a k-mer of a single place is there", "x", 0, None),
            Column("copied", "Copies", "share of the pairs that are copies of others", "%", 1, Some(100.0)),
            Column("insert", "Insert", "half of the inserts are at most that long", " bp", 0, None),
            Column(
                "errors",
                "Errors",
                "share of the bases that are wrong, where mates overlap",
                "%",
                2,
                Some(5.0),
            ),
            Column("q30", "Q30", "share of the bases of quality 30 and more", "%", 0, Some(100.0)),
            Column("pairs", "Pairs", "pairs of reads, in millions", " M", 1, None),
        ]),
    )
}

fn of_library(row: &str, library: &Library, general: &mut Section) {
    general.put(row, "pairs", Some(library.pairs as f64 / 1e6));
    let q30: Vec<f64> = library.mates.iter().filter_map(|mate| mate.q30).collect();
    general.put(
        row,
        "q30",
        (!q30.is_empty()).then(|| hundredths(q30.iter().sum::<f64>() / q30.len() as f64)),
    );
    general.put(
        row,
        "insert",
        library.insert.quantiles[2].or(library.insert.mean_of_seen.map(|mean| mean.round() as u64)),
    );
    general.put(row, "errors", library.errors.rate.map(|rate| hundredths(rate.value)));
    general.put(row, "copied", library.duplicates.share.map(|share| hundredths(share.value)));
}

fn pair_table() -> Section {
    let share = |key, title, about, most| Column(key, title, about, "%", 1, Some(most));
    Section::new(
        "pair",
        Kind::Table {
            name: "Tumour and normal",
            about: "What the samples say of themselves, from reads alone. Intervals and more are in each report.",
            columns: vec![
                Column("relation", "Who", "whether both samples are of one person", "word", 0, None),
                share("purity", "Purity", "share of the cells that are the tumour's", 100.0),
                Column("ploidy", "Ploidy", "copies of the genome in a tumour cell, on average", "", 2, None),
                share("lost", "LOH", "share of the genome of which one parent's copy is lost", 100.0),
                share(
                    "other_tumor",
                    "Other in tumour",
                    "share of the tumour's DNA that is another person's",
                    10.0,
                ),
                share(
                    "other_normal",
                    "Other in normal",
                    "share of the normal's DNA that is another person's",
                    10.0,
                ),
                share(
                    "in_normal",
                    "Tumour in normal",
                    "share of the normal's cells that are the tumour's",
                    10.0,
                ),
                share("unstable", "Unstable repeats", "share of tandem repeats that changed", 30.0),
                Column("burden", "Burden", "mutations", " /Mbp", 1, None),
            ],
        },
    )
}

fn of_portrait(
    tumour: &str,
    normal: &str,
    first: bool,
    portrait: &Portrait,
    pair: &mut Section,
    general: &mut Section,
) {
    let Portrait { pair: facts, tumour_in_normal, burden, repeats, .. } = portrait;
    if let Some(facts) = facts {
        of_facts(tumour, normal, first, facts, pair, general);
    }
    pair.put(tumour, "in_normal", tumour_in_normal.map(|share| hundredths(share.value)));
    pair.put(tumour, "unstable", repeats.as_ref().map(|repeats| hundredths(repeats.share.value)));
    pair.put(tumour, "burden", burden.map(|burden| burden.value));
}

/// Of a tumour, and of the normal beside the first of them.
fn of_facts(
    tumour: &str,
    normal: &str,
    first: bool,
    facts: &PairFacts,
    pair: &mut Section,
    general: &mut Section,
) {
    pair.put(tumour, "relation", Some(word(facts.identity.relation)));
    let other =
        |sample: usize| facts.contamination[sample].as_ref().map(|other| hundredths(other.share.value));
    pair.put(tumour, "other_normal", other(0));
    pair.put(tumour, "other_tumor", other(1));
    general.put(tumour, "other", other(1));
    if first {
        general.put(normal, "other", other(0));
    }
    if let Some(told) = &facts.tumour {
        let purity = told.purity.map(|purity| hundredths(purity.value));
        pair.put(tumour, "purity", purity);
        general.put(tumour, "purity", purity);
        pair.put(tumour, "ploidy", told.ploidy.map(|ploidy| ploidy.value));
        pair.put(tumour, "lost", told.lost.map(hundredths));
    }
}

/// Few words for a cell of a table.
fn word(relation: Relation) -> &'static str {
    match relation {
        Relation::Same => "one person",
        Relation::Relatives => "relatives",
        Relation::Strangers => "two people",
        Relation::Different => "not one person",
        Relation::SameOrRelatives => "one person or relatives",
        Relation::Unknown => "not known",
    }
}

/// Sections of samples that were only looked at: of each tumour what it and the normal say of their libraries and of themselves. `names` has the normal's first.
pub(crate) fn of_pairs(names: &[String], looked: &[(&Libraries, &PairFacts)], prefix: &Path) -> Vec<Section> {
    let rows: Vec<String> = names.iter().map(|sample| row(sample, prefix)).collect();
    let (mut general, mut pair) = (general(), pair_table());
    for (number, (tumour, (libraries, facts))) in rows.iter().skip(1).zip(looked).enumerate() {
        if number == 0 {
            of_library(&rows[0], &libraries.normal, &mut general);
        }
        of_library(tumour, &libraries.tumor, &mut general);
        of_facts(tumour, &rows[0], number == 0, facts, &mut pair, &mut general);
    }
    vec![general, pair]
}

/// What `genuma align` says of a sample; shares of its reads in percent.
pub(crate) struct Aligned {
    pub(crate) sample: String,
    pub(crate) reads: u64,
    pub(crate) mapped: f64,
    pub(crate) proper: Option<f64>,
    pub(crate) duplicates: Option<f64>,
    /// Half of the proper pairs' templates are at most that long.
    pub(crate) insert: Option<f64>,
}

/// Columns for `genuma align`.
pub(crate) fn of_alignment(aligned: &Aligned) -> Vec<Section> {
    let mut general = Section::new(
        "align",
        Kind::General(vec![
            Column("mapped", "Mapped", "share of the reads that are mapped", "%", 1, Some(100.0)),
            Column("proper", "Proper", "share of the paired reads that lie as pairs do", "%", 1, Some(100.0)),
            Column(
                "duplicates",
                "Duplicates",
                "share of the reads that are marked as duplicates",
                "%",
                1,
                Some(100.0),
            ),
            Column("template", "Template", "half of the proper pairs span at most that much", " bp", 0, None),
            Column("reads", "Reads", "reads, in millions", " M", 1, None),
        ]),
    );
    let row = &aligned.sample;
    general.put(row, "reads", Some(aligned.reads as f64 / 1e6));
    general.put(row, "mapped", Some(aligned.mapped));
    general.put(row, "proper", aligned.proper);
    general.put(row, "duplicates", aligned.duplicates);
    general.put(row, "template", aligned.insert);
    vec![general]
}

/// A sample of `genuma count`.
pub(crate) struct Counted<'a> {
    pub(crate) sample: &'a str,
    pub(crate) bases: u64,
    /// `spectrum[m]`: distinct k-mers that are there `m` times.
    pub(crate) spectrum: &'a [u64],
}

/// Columns and the spectrum for `genuma count`.
pub(crate) fn of_counts<'a>(samples: impl IntoIterator<Item = Counted<'a>>) -> Vec<Section> {
    let mut general = Section::new(
        "count",
        Kind::General(vec![
            Column("distinct", "k-mers", "distinct k-mers, in millions", " M", 1, None),
            Column("once", "Once", "share of the distinct k-mers that are there once", "%", 0, Some(100.0)),
            Column("bases", "Bases", "bases of reads, in millions", " M", 0, None),
        ]),
    );
    let mut spectrum = Section::new(
        "kmers",
        Kind::Lines {
            name: "Counts of k-mers",
            about: "How many distinct k-mers are there how often, up to 500 times. What is there once or twice is mostly error; the peak is the depth.",
            axes: ["Times that a k-mer is there", "Distinct k-mers"],
        },
    );
    for Counted { sample, bases, spectrum: counts } in samples {
        let distinct: u64 = counts.iter().sum();
        general.put(sample, "bases", Some(bases as f64 / 1e6));
        general.put(sample, "distinct", Some(distinct as f64 / 1e6));
        let once = counts.get(1).copied().unwrap_or_default();
        general.put(sample, "once", (distinct > 0).then(|| hundredths(once as f64 / distinct as f64)));
        let last = counts.iter().rposition(|kmers| *kmers > 0).unwrap_or(0).min(SHOWN);
        for (times, kmers) in counts.iter().enumerate().take(last + 1).skip(1) {
            spectrum.put(sample, &times.to_string(), Some(*kmers));
        }
    }
    vec![general, spectrum]
}

/// Counts that a curve goes to: beyond there are repeats, and a page would carry a number for each.
const SHOWN: usize = 500;
