//! The file of known changes once more, with what was tracked as columns of the later samples (VCF 4.3).

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context;
use genuma_align::bgzf::{Deflater, END, Level, PAYLOAD};
use genuma_track::judge::Tracked;
use genuma_track::pipeline::Tracking;
use genuma_work::publish::{AtomicFile, Set};

use super::table::wholes;

/// Columns that stay as they are.
const KEPT: usize = 8;
/// Columns of ALT and INFO.
const ALTERNATE: usize = 4;
const INFO: usize = 7;
const FORMAT: &str = "TC:TM:TF:TI:TE:TP:TV";
/// What the header says of them, and of why a change was not looked for.
const MEANT: [&str; 8] = [
    "FORMAT=<ID=TC,Number=A,Type=Integer,Description=\"Molecules with the change\">",
    "FORMAT=<ID=TM,Number=A,Type=Integer,Description=\"Molecules that tell\">",
    "FORMAT=<ID=TF,Number=A,Type=Float,Description=\"Share of the molecules that have the change\">",
    "FORMAT=<ID=TI,Number=.,Type=Float,Description=\"Its interval of 95%: lower and upper end, by allele\">",
    "FORMAT=<ID=TE,Number=A,Type=Float,Description=\"Molecules that errors make\">",
    "FORMAT=<ID=TP,Number=A,Type=Float,Description=\"Probability that errors make as many or more\">",
    "FORMAT=<ID=TV,Number=A,Type=String,Description=\"found, unsure, not_seen, no_molecules, in_normal, stands_out, cannot_be_tracked or not_looked_for\">",
    "INFO=<ID=TRACK_WHY,Number=A,Type=String,Description=\"Why the change cannot be tracked\">",
];

/// Whether a file of this name is to be a VCF file.
pub(crate) fn is_wanted(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy().to_ascii_lowercase());
    name.is_some_and(|name| [".vcf", ".vcf.gz", ".vcf.bgz"].iter().any(|end| name.ends_with(end)))
}

/// What is said of one alternate allele of a line.
enum Said<'a> {
    /// By sample.
    Tracked(Vec<&'a Tracked>),
    Untracked(&'a str),
}

/// The text of the file: of `text`, the known changes as they came.
pub(crate) fn render(text: &str, tracking: &Tracking) -> String {
    let mut said: HashMap<(usize, usize), Said<'_>> = HashMap::new();
    for (i, change) in tracking.changes.iter().enumerate() {
        let each = tracking.samples.iter().map(|sample| &sample.tracked[i]).collect();
        said.insert(change.record.stands, Said::Tracked(each));
    }
    said.extend(tracking.untracked.iter().map(|u| (u.record.stands, Said::Untracked(u.why))));
    let first: HashMap<(usize, usize), (usize, usize)> =
        tracking.repeated.iter().map(|[own, first]| (*own, *first)).collect();
    let names: Vec<&str> = tracking.samples.iter().map(|sample| &sample.name[..]).collect();
    let mut out = String::with_capacity(2 * text.len());
    if !text.starts_with("##fileformat") {
        out.push_str("##fileformat=VCFv4.3\n");
    }
    for (number, line) in text.lines().enumerate() {
        let line = line.trim_end_matches('\r');
        if line.starts_with("#CHROM") {
            for meant in MEANT {
                let _ = writeln!(out, "##{meant}");
            }
            for (name, whole) in names.iter().zip(wholes(tracking)) {
                let _ =
                    writeln!(out, "##genumaTrack=<ID={name},Description=\"{}\">", whole.replace('"', "'"));
            }
            let kept: Vec<&str> = line.split('\t').take(KEPT).collect();
            let _ = writeln!(out, "{}\tFORMAT\t{}", kept.join("\t"), names.join("\t"));
        } else if line.starts_with('#') {
            // Columns that these speak of go.
            if !line.starts_with("##FORMAT=") {
                let _ = writeln!(out, "{line}");
            }
        } else if !line.is_empty() {
            let kept: Vec<&str> = line.split('\t').take(KEPT).collect();
            let alleles = kept.get(ALTERNATE).map_or(0, |alternates| alternates.split(',').count());
            let of = |allele: usize| {
                let own = (number, allele);
                said.get(first.get(&own).unwrap_or(&own))
            };
            let all: Vec<Option<&Said<'_>>> = (0..alleles).map(of).collect();
            record(&mut out, &kept, &all, names.len());
        }
    }
    out
}

/// What is said of an allele in one of the samples, if it was looked for.
fn tracked<'a>(said: &Option<&Said<'a>>, sample: usize) -> Option<&'a Tracked> {
    match said {
        Some(Said::Tracked(each)) => each.get(sample).copied(),
        _ => None,
    }
}

/// Writes one line.
fn record(out: &mut String, kept: &[&str], alleles: &[Option<&Said<'_>>], samples: usize) {
    let why = |said: &Option<&Said<'_>>| match said {
        Some(Said::Untracked(why)) => why.replace([',', ';', '='], "").replace(' ', "_"),
        _ => ".".to_owned(),
    };
    let whys: Vec<String> = alleles.iter().map(why).collect();
    for (column, value) in kept.iter().enumerate() {
        if column > 0 {
            out.push('\t');
        }
        if column == INFO && whys.iter().any(|why| why != ".") {
            let before = if *value == "." { String::new() } else { format!("{value};") };
            let _ = write!(out, "{before}TRACK_WHY={}", whys.join(","));
        } else {
            out.push_str(value);
        }
    }
    let _ = write!(out, "\t{FORMAT}");
    for sample in 0..samples {
        let list = |of: &dyn Fn(&Tracked) -> String, none: &str| {
            let each = alleles.iter().map(|said| tracked(said, sample).map_or_else(|| none.to_owned(), of));
            each.collect::<Vec<String>>().join(",")
        };
        let verdict = |said: &Option<&Said<'_>>| match (tracked(said, sample), said) {
            (Some(tracked), _) => tracked.verdict.name(),
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

/// Puts the file into a set: BGZF where its name says so. An index of what stood there before goes.
///
/// # Errors
/// It cannot be written.
pub(crate) fn add(path: &Path, text: &str, set: &mut Set) -> anyhow::Result<()> {
    use std::io::Write as _;
    let mut file = AtomicFile::create(path)?;
    if path.extension().is_some_and(|end| end.eq_ignore_ascii_case("vcf")) {
        file.write_all(text.as_bytes())?;
    } else {
        let (mut deflater, mut packed) = (Deflater::new(Level::default()), Vec::new());
        for block in text.as_bytes().chunks(PAYLOAD) {
            packed.clear();
            deflater.block(block, &mut packed);
            file.write_all(&packed)?;
        }
        file.write_all(&END)?;
        for index in ["tbi", "csi"] {
            let mut name = path.as_os_str().to_owned();
            name.push(format!(".{index}"));
            set.forget(PathBuf::from(name));
        }
    }
    set.add(file.complete().with_context(|| path.display().to_string())?);
    Ok(())
}
