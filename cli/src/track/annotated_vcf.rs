//! Writes a copy of the VCF of the known variants in which the sample columns are replaced by the tracking results of
//! the later samples (VCF 4.3).

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::Context;
use genuma_track::pipeline::TrackingResult;
use genuma_track::verdict::ChangeResult;
use genuma_work::publish::{AtomicFile, AtomicFileSet};

use super::table::format_tumour_detection_lines;
use crate::bgzf_writer::{BgzfWriter, remove_vcf_index_on_publish};

/// Number of leading VCF columns that are kept: CHROM to INFO.
const NUM_KEPT_COLUMNS: usize = 8;
/// Index of the column ALT.
const ALT_COLUMN: usize = 4;
const INFO_COLUMN: usize = 7;
const FORMAT_KEYS: &str = "TC:TM:TF:TI:TE:TP:TV";
/// Header lines of the FORMAT and INFO keys that tracking adds.
const HEADER_LINES: [&str; 8] = [
    "FORMAT=<ID=TC,Number=A,Type=Integer,Description=\"Molecules with the variant\">",
    "FORMAT=<ID=TM,Number=A,Type=Integer,Description=\"Informative molecules, with the variant or without\">",
    "FORMAT=<ID=TF,Number=A,Type=Float,Description=\"Share of the informative molecules with the variant\">",
    "FORMAT=<ID=TI,Number=.,Type=Float,Description=\"95% interval of TF: lower and upper end, by allele\">",
    "FORMAT=<ID=TE,Number=A,Type=Float,Description=\"Expected molecules with the variant from errors alone\">",
    "FORMAT=<ID=TP,Number=A,Type=Float,Description=\"Probability of at least as many molecules with the variant from errors alone\">",
    "FORMAT=<ID=TV,Number=A,Type=String,Description=\"Verdict: found, unsure, not_seen, no_molecules, in_normal, stands_out, cannot_be_tracked or not_looked_for\">",
    "INFO=<ID=TRACK_WHY,Number=A,Type=String,Description=\"Why the variant cannot be tracked\">",
];

/// Returns whether a path has the extension of a VCF file: `.vcf`, `.vcf.gz` or `.vcf.bgz`.
pub(crate) fn is_vcf_path(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy().to_ascii_lowercase());
    name.is_some_and(|name| [".vcf", ".vcf.gz", ".vcf.bgz"].iter().any(|end| name.ends_with(end)))
}

/// Tracking result of one ALT allele of a VCF line.
enum AlleleResult<'a> {
    /// Results of a tracked allele, one for each sample.
    Tracked(Vec<&'a ChangeResult>),
    Untracked(&'a str),
}

/// Returns the annotated VCF as text. `text` is the VCF of the known variants.
pub(crate) fn render_vcf_with_tracking_results(text: &str, tracking: &TrackingResult) -> String {
    let mut results: HashMap<(usize, usize), AlleleResult<'_>> = HashMap::new();
    for (i, change) in tracking.changes.iter().enumerate() {
        let each = tracking.samples.iter().map(|sample| &sample.changes[i]).collect();
        results.insert(change.record.file_position, AlleleResult::Tracked(each));
    }
    results.extend(tracking.untracked.iter().map(|u| (u.record.file_position, AlleleResult::Untracked(u.reason))));
    let first: HashMap<(usize, usize), (usize, usize)> =
        tracking.duplicate_records.iter().map(|[own, first]| (*own, *first)).collect();
    let names: Vec<&str> = tracking.samples.iter().map(|sample| &sample.name[..]).collect();
    let mut out = String::with_capacity(2 * text.len());
    if !text.starts_with("##fileformat") {
        out.push_str("##fileformat=VCFv4.3\n");
    }
    for (number, line) in text.lines().enumerate() {
        let line = line.trim_end_matches('\r');
        if line.starts_with("#CHROM") {
            for meant in HEADER_LINES {
                let _ = writeln!(out, "##{meant}");
            }
            for (name, whole) in names.iter().zip(format_tumour_detection_lines(tracking)) {
                let _ = writeln!(out, "##genumaTrack=<ID={name},Description=\"{}\">", whole.replace('"', "'"));
            }
            let kept: Vec<&str> = line.split('\t').take(NUM_KEPT_COLUMNS).collect();
            let _ = writeln!(out, "{}\tFORMAT\t{}", kept.join("\t"), names.join("\t"));
        } else if line.starts_with('#') {
            // FORMAT lines of the removed sample columns are removed too.
            if !line.starts_with("##FORMAT=") {
                let _ = writeln!(out, "{line}");
            }
        } else if !line.is_empty() {
            let kept: Vec<&str> = line.split('\t').take(NUM_KEPT_COLUMNS).collect();
            let alleles = kept.get(ALT_COLUMN).map_or(0, |alternates| alternates.split(',').count());
            let result_of = |allele: usize| {
                let key = (number, allele);
                results.get(first.get(&key).unwrap_or(&key))
            };
            let allele_results: Vec<Option<&AlleleResult<'_>>> = (0..alleles).map(result_of).collect();
            write_record(&mut out, &kept, &allele_results, names.len());
        }
    }
    out
}

/// Returns the result of an allele in one sample; `None` if the allele was not tracked.
fn result_in_sample<'a>(said: &Option<&AlleleResult<'a>>, sample: usize) -> Option<&'a ChangeResult> {
    match said {
        Some(AlleleResult::Tracked(each)) => each.get(sample).copied(),
        _ => None,
    }
}

/// Appends one VCF line to `out`: the columns `kept`, FORMAT, and a column for each sample. INFO gets the reasons why
/// alleles cannot be tracked.
fn write_record(out: &mut String, kept: &[&str], alleles: &[Option<&AlleleResult<'_>>], samples: usize) {
    let why = |said: &Option<&AlleleResult<'_>>| match said {
        Some(AlleleResult::Untracked(why)) => why.replace([',', ';', '='], "").replace(' ', "_"),
        _ => ".".to_owned(),
    };
    let whys: Vec<String> = alleles.iter().map(why).collect();
    for (column, value) in kept.iter().enumerate() {
        if column > 0 {
            out.push('\t');
        }
        if column == INFO_COLUMN && whys.iter().any(|why| why != ".") {
            let before = if *value == "." { String::new() } else { format!("{value};") };
            let _ = write!(out, "{before}TRACK_WHY={}", whys.join(","));
        } else {
            out.push_str(value);
        }
    }
    let _ = write!(out, "\t{FORMAT_KEYS}");
    for sample in 0..samples {
        let list = |of: &dyn Fn(&ChangeResult) -> String, none: &str| {
            let each = alleles.iter().map(|said| result_in_sample(said, sample).map_or_else(|| none.to_owned(), of));
            each.collect::<Vec<String>>().join(",")
        };
        let verdict = |said: &Option<&AlleleResult<'_>>| match (result_in_sample(said, sample), said) {
            (Some(tracked), _) => tracked.verdict.verdict_name(),
            (None, Some(_)) => "cannot_be_tracked",
            (None, None) => "not_looked_for",
        };
        let values = [
            list(&|t| t.changed.to_string(), "."),
            list(&|t| t.molecules.to_string(), "."),
            list(&|t| format!("{:.4e}", t.fraction), "."),
            list(&|t| format!("{:.4e},{:.4e}", t.low, t.high), ".,."),
            list(&|t| format!("{:.4}", t.expected), "."),
            list(&|t| format!("{:.3e}", t.p), "."),
            alleles.iter().map(verdict).collect::<Vec<&str>>().join(","),
        ];
        let _ = write!(out, "\t{}", values.join(":"));
    }
    out.push('\n');
}

/// Adds the VCF file to a set of output files, compressed with BGZF unless the name ends in `.vcf`. When the set is
/// published with a compressed file, an index of an earlier file of this name is removed.
///
/// # Errors
/// The file cannot be written.
pub(crate) fn add_vcf_file(path: &Path, text: &str, set: &mut AtomicFileSet) -> anyhow::Result<()> {
    use std::io::Write as _;
    let mut file = AtomicFile::create(path)?;
    if path.extension().is_some_and(|end| end.eq_ignore_ascii_case("vcf")) {
        file.write_all(text.as_bytes())?;
    } else {
        let mut compressed = BgzfWriter::with_default_level(file);
        compressed.write_all(text.as_bytes())?;
        file = compressed.finish()?;
        remove_vcf_index_on_publish(path, set);
    }
    set.add_file(file.flush_to_partial_file().with_context(|| path.display().to_string())?);
    Ok(())
}
