//! The samples: whether they can be trusted, and what is known of each.

use std::fmt::Write;

use genuma_pair::identity::Relation;
use genuma_pair::interval::Estimate;
use genuma_pair::library::Library;
use genuma_pair::roots::SUBSTITUTIONS;
use genuma_pair::tumour::Other;
use genuma_somatic::outcome::Outcome;
use genuma_somatic::unstable::Repeats;

use super::verdict::{self, Level};
use super::words::{number, percent, share};
use crate::report::markup::{counted, escape, grouped, short};

/// A mark that says the level by its form, too.
fn mark(level: Level) -> String {
    let (style, word, form) = match level {
        Level::Good => {
            ("good", "Good", r#"<circle cx="8" cy="8" r="7.5"/><path d="M4.4 8.3l2.6 2.6 4.7-5.4"/>"#)
        }
        Level::Look => {
            ("look", "Look", r#"<path class="form" d="M8 .8l7.6 13.9H.4z"/><path d="M8 5.6v4.3M8 12.2v.3"/>"#)
        }
        Level::Bad => (
            "bad",
            "Bad",
            r#"<rect x=".5" y=".5" width="15" height="15" rx="2"/><path d="M4.7 4.7l6.6 6.6M11.3 4.7l-6.6 6.6"/>"#,
        ),
        Level::Untold => (
            "untold",
            "Not told",
            r#"<circle cx="8" cy="8" r="7"/><path d="M5.8 6.3c.2-3 4.6-2.8 4.3-.2-.2 1.4-2 1.5-2.1 3.1M8 11.7v.3"/>"#,
        ),
    };
    format!(
        r#"<span class="level {style}"><svg viewBox="0 0 16 16" aria-hidden="true">{form}</svg>{word}</span>"#
    )
}

/// Whether the pair can be trusted, in a line, and why, in a line each; of several tumours each.
pub(crate) fn verdict(outcome: &Outcome) -> String {
    let mut html = String::new();
    if let [first, ..] = super::tumours(outcome) {
        let _ = write!(html, r#"<p class="note">{}</p>"#, escape(first));
    }
    html.push_str(&findings(outcome));
    for other in &outcome.others {
        let _ = write!(html, r#"<p class="note">{}</p>"#, escape(&other.sample));
        html.push_str(&findings(&outcome.of_other(other)));
    }
    html
}

fn findings(outcome: &Outcome) -> String {
    let findings = verdict::findings(outcome);
    let (level, says) = verdict::together(&findings);
    let mut html = format!(r#"<p class="verdict">{} <b>{says}</b></p><ul class="findings">"#, mark(level));
    for finding in &findings {
        let _ = write!(
            html,
            "<li>{}<span><b>{}</b> {}</span></li>",
            mark(finding.level),
            finding.about,
            escape(&finding.says)
        );
    }
    html.push_str("</ul>");
    html
}

/// Rows of the table.
#[derive(Default)]
struct Rows(String);

impl Rows {
    fn group(&mut self, name: &str) {
        let _ = write!(self.0, r#"<tr class="group"><th colspan="3" scope="rowgroup">{name}</th></tr>"#);
    }

    /// A fact of each sample; HTML.
    fn each(&mut self, name: &str, [normal, tumour]: [String; 2]) {
        let _ = write!(self.0, r#"<tr><th scope="row">{name}</th><td>{normal}</td><td>{tumour}</td></tr>"#);
    }

    /// A fact of both together; HTML.
    fn both(&mut self, name: &str, value: &str) {
        let _ = write!(self.0, r#"<tr><th scope="row">{name}</th><td colspan="2">{value}</td></tr>"#);
    }

    /// A fact that only the tumour can have.
    fn tumour(&mut self, name: &str, value: String) {
        self.each(name, [String::new(), value]);
    }
}

/// What cannot be told, and why.
fn untold(why: &str) -> String {
    format!(r#"<span class="of">not told: {}</span>"#, escape(why))
}

/// A value with a remark.
fn remarked(value: &str, remark: &str) -> String {
    format!(r#"{value} <span class="of">{remark}</span>"#)
}

fn or_untold(found: Option<Estimate>, write: fn(Estimate) -> String, why: &str) -> String {
    found.map_or_else(|| untold(why), write)
}

/// All facts, as rows of a table: of several tumours those of the first, of which alone contigs and what is screened for are told, and then of each other.
pub(crate) fn facts(outcome: &Outcome) -> String {
    let mut rows = Rows::default();
    if let [first, ..] = super::tumours(outcome) {
        rows.group(&format!("Normal and {}", escape(first)));
    }
    mixture(&mut rows, outcome);
    rows.group("The genome");
    contigs(&mut rows, outcome);
    changed(&mut rows, outcome);
    coverage(&mut rows, outcome);
    libraries(&mut rows, outcome);
    screen(&mut rows, outcome);
    for other in &outcome.others {
        rows.group(&format!("Normal and {}", escape(&other.sample)));
        let of = outcome.of_other(other);
        mixture(&mut rows, &of);
        rows.group("The genome");
        changed(&mut rows, &of);
        coverage(&mut rows, &of);
        libraries(&mut rows, &of);
    }
    rows.0
}

fn mixture(rows: &mut Rows, outcome: &Outcome) {
    let pair = outcome.portrait.pair.as_ref();
    rows.group("Whose cells they are");
    let Some(pair) = pair else {
        rows.both("Person, contamination, purity", &untold("the samples were not compared"));
        return;
    };
    let identity = &pair.identity;
    let relation = match identity.relation {
        Relation::Same => "the same person",
        Relation::Relatives => "close relatives",
        Relation::Strangers => "two people",
        Relation::Different => "two people, perhaps relatives",
        Relation::SameOrRelatives => "the same person, or close relatives",
        Relation::Unknown => "",
    };
    let basis = match identity.distance {
        Some(distance) => format!(
            "their distance is {}, of two strangers 1; {} sites",
            number(distance),
            grouped(identity.sites)
        ),
        None => format!("by {} pairs of reads", grouped(identity.sites)),
    };
    let person =
        if relation.is_empty() { untold("too little that both show") } else { remarked(relation, &basis) };
    rows.both("Person", &person);
    let shallow = || untold("too shallow, or too few places");
    let het = |s: usize| identity.heterozygous.map_or_else(shallow, |own| percent(own[s]));
    rows.each("Heterozygous places", [het(0), het(1)]);
    let why = verdict::why_no_contamination(Some(pair));
    let foreign = |s: usize| or_untold(pair.contamination[s].map(|own| own.share), share, why);
    rows.each("Another person's DNA", [foreign(0), foreign(1)]);
    let of_one = identity.is_pair();
    let why = outcome.portrait.why_no_tumour_in_normal.as_deref();
    let few = if of_one { why.unwrap_or(verdict::FEW_CHANGES) } else { "the samples are not of one person" };
    let in_normal = outcome.portrait.tumour_in_normal.filter(|_| of_one);
    rows.each(
        "Tumour cells",
        [
            or_untold(in_normal, share, few),
            or_untold(
                pair.tumour.as_ref().and_then(|t| t.purity),
                share,
                &verdict::why_no_purity(Some(pair)),
            ),
        ],
    );
    let why = &verdict::why_no_purity(Some(pair));
    rows.tumour(
        "Copies of the genome in a tumour cell",
        or_untold(pair.tumour.as_ref().and_then(|t| t.ploidy), number, why),
    );
    rows.tumour(
        "One parent’s copy lost (LOH)",
        pair.tumour.as_ref().and_then(|t| t.lost).map_or_else(
            || untold(why),
            |lost| {
                if lost < HARDLY { "hardly any".into() } else { format!("{} of the genome", percent(lost)) }
            },
        ),
    );
    let also = pair.tumour.as_ref().map_or(&[][..], |t| &t.also);
    if !also.is_empty() {
        let other =
            |other: &Other| format!("{} of the cells, {:.2} copies", percent(other.purity), other.ploidy);
        let all: Vec<String> = also.iter().map(other).collect();
        rows.tumour("Purity and copies that explain it not much worse", all.join("; "));
    }
}

/// Share of the genome below which nothing is lost that a place or two do not make.
const HARDLY: f64 = 0.001;
/// Names that are written out.
const NAMES: usize = 8;

fn names<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let all: Vec<String> = names.map(escape).collect();
    match all.len() {
        0 => "none".into(),
        n if n <= NAMES => all.join(", "),
        n => format!("{}, and {} more", all[..NAMES].join(", "), n - NAMES),
    }
}

fn contigs(rows: &mut Rows, outcome: &Outcome) {
    match &outcome.known.karyotype {
        None => rows.both("Sex, contigs, mitochondria", &untold("no reference")),
        Some(karyotype) => {
            let sex = |s: usize| match karyotype.sex[s].strip_prefix("not known: ") {
                Some(why) => untold(why),
                None => escape(&karyotype.sex[s]),
            };
            rows.each("Sex", [sex(0), sex(1)]);
            if let Some(lost) = karyotype.y_lost {
                rows.tumour("Y lost", format!("in {} of the cells", share(lost)));
            }
            let known = karyotype.contigs.iter().any(|contig| contig.ratio.is_some());
            for (name, word) in [("Contigs gained", "gained"), ("Contigs lost", "lost")] {
                let those = karyotype.contigs.iter().filter(|c| c.word == word).map(|c| &*c.name);
                let told = if known { names(those) } else { untold("too few reads") };
                rows.tumour(name, told);
            }
            let mitochondria = |s: usize| {
                or_untold(
                    karyotype.mitochondria[s],
                    number,
                    "no sequence called MT or chrM, or too few reads",
                )
            };
            rows.each("Mitochondria for two copies of the genome", [mitochondria(0), mitochondria(1)]);
        }
    }
}

/// How much of it changed.
fn changed(rows: &mut Rows, outcome: &Outcome) {
    let burden = outcome.portrait.burden.map_or_else(|| untold("no bases known in both samples"), number);
    rows.tumour("SNVs and indels a million bases (burden)", burden);
    rows.tumour("Tandem repeats of another length", repeats(outcome.portrait.repeats));
}

/// Shares of unstable repeats above which there are some, and many: stable tumours have fewer than one in a hundred (MSIsensor, Niu 2014, takes 3.5 %).
const UNSTABLE: [f64; 2] = [0.01, 0.035];
/// Fewest repeats that say whether they are stable.
const REPEATS: u64 = 100;

fn repeats(repeats: Option<Repeats>) -> String {
    let Some(repeats) = repeats else { return untold("no reference, or no repeats in it") };
    let word = match repeats.share.value {
        _ if repeats.tracts < REPEATS => "too few to tell",
        share if share < UNSTABLE[0] => "stable",
        share if share <= UNSTABLE[1] => "some",
        _ => "many: microsatellites are unstable (MSI-high)",
    };
    let basis = format!("{word}; {} of {}", grouped(repeats.unstable), grouped(repeats.tracts));
    remarked(&share(repeats.share), &basis)
}

fn coverage(rows: &mut Rows, outcome: &Outcome) {
    rows.group("Coverage");
    let Some(pair) = &outcome.portrait.pair else {
        rows.both("Depth, evenness", &untold("the samples were not compared"));
        return;
    };
    let each = |of: &dyn Fn(usize) -> String| [of(0), of(1)];
    let covered = |s: usize| &pair.coverage[s];
    rows.each("Molecules at a place, in good bases", each(&|s| format!("{:.1}", covered(s).depth)));
    rows.each("Unevenness of the depth, beyond chance", each(&|s| format!("{:.2}", covered(s).unevenness)));
    rows.each("Places of less than a fifth of the depth", each(&|s| percent(covered(s).thin)));
    rows.each(
        "Depth over the average, by GC",
        each(&|s| {
            let by_gc = &covered(s).by_gc;
            let least = by_gc.iter().min_by(|a, b| a.1.total_cmp(&b.1));
            let most = by_gc.iter().max_by(|a, b| a.1.total_cmp(&b.1));
            match least.zip(most) {
                Some((least, most)) if by_gc.len() > 1 => {
                    let at = |(gc, depth): &(f64, f64)| format!("{depth:.2} at {:.0}\u{a0}% GC", gc * 100.0);
                    format!("{} to {}", at(least), at(most))
                }
                _ => untold("too few places"),
            }
        }),
    );
    rows.each(
        "Most frequent among wrong bases",
        each(&|s| {
            let worst = pair.wrong[s].iter().flatten().enumerate().max_by(|a, b| a.1.total_cmp(b.1));
            let told = worst.filter(|(_, rate)| **rate > 0.0).map(|(at, rate)| {
                let usual = "no more than usual";
                let much = verdict::damaged(pair, s).map(|(_, times)| format!("{times:.1} times the usual"));
                remarked(
                    &format!("{} {}", escape(SUBSTITUTIONS[at]), percent(*rate)),
                    much.as_deref().unwrap_or(usual),
                )
            });
            told.unwrap_or_else(|| untold("too few bases"))
        }),
    );
}

fn libraries(rows: &mut Rows, outcome: &Outcome) {
    let both = [&outcome.libraries.normal, &outcome.libraries.tumor];
    rows.group("Reads and their library");
    if both.iter().all(|library| library.pairs == 0) {
        rows.both("Reads", &untold("they were not looked at"));
        return;
    }
    let each = |of: &dyn Fn(&Library) -> String| both.map(of);
    const FEW: &str = "too few reads";
    rows.each("Pairs", each(&|own| remarked(&grouped(own.pairs), &format!("{}bp", short(own.bases as f64)))));
    rows.each("Lengths of reads", each(&lengths));
    rows.each("Quality of both mates", each(&quality));
    rows.each("G and C", each(&|own| own.gc.map_or_else(|| untold(FEW), percent)));
    rows.each("Pairs with adapters", each(&|own| or_untold(own.adapters, share, FEW)));
    rows.each("Insert size", each(&insert));
    rows.each(
        "Wrong bases",
        each(&|own| {
            let rate = |rate| match (own.errors.compared_rate, own.errors.promised) {
                (Some(compared), Some(promised)) => remarked(
                    &share(rate),
                    &format!(
                        "where mates overlap {}; qualities promise {}",
                        percent(compared.value),
                        percent(promised)
                    ),
                ),
                _ => share(rate),
            };
            own.errors.rate.map_or_else(|| untold("mates overlap too seldom"), rate)
        }),
    );
    rows.each(
        "PCR copies",
        each(&|own| {
            let word = own.duplicates.word.strip_prefix("not known: ");
            match (own.duplicates.copied, word) {
                (Some(copied), None) => remarked(&share(copied), &escape(&own.duplicates.word)),
                (_, why) => untold(why.unwrap_or("depth is not known")),
            }
        }),
    );
    rows.each(
        "Molecules in the library",
        each(&|own| {
            let told = |n: Estimate| {
                let [value, low, high] = [n.value, n.low, n.high].map(short);
                format!("{value} ({low}–\u{2060}{high})")
            };
            own.duplicates.molecules.map_or_else(|| untold("too few copies"), told)
        }),
    );
    rows.each("Telomeres in a million pairs", each(&telomeres));
    if let Some(ratio) = outcome.libraries.telomeres {
        rows.tumour("Telomeres over the normal’s", number(ratio));
    }
}

fn lengths(own: &Library) -> String {
    let of = |[least, usual, most]: [u64; 3]| match least == most {
        true => usual.to_string(),
        false => format!("{usual} ({least}–{most})"),
    };
    match own.mates.each_ref().map(|mate| of(mate.lengths)) {
        [one, two] if one == two => one,
        [one, two] => format!("{one} and {two}"),
    }
}

fn quality(own: &Library) -> String {
    let [one, two] = own.mates.each_ref().map(|mate| mate.quality.zip(mate.q30));
    match one.zip(two) {
        Some((one, two)) => remarked(
            &format!("{:.1} and {:.1}", one.0, two.0),
            &format!("on average; 30 or more: {} and {}", percent(one.1), percent(two.1)),
        ),
        None => untold("too few reads"),
    }
}

fn insert(own: &Library) -> String {
    let insert = &own.insert;
    let overlapping =
        insert.overlapping.map_or_else(String::new, |o| format!("; mates of {} overlap", percent(o.value)));
    match insert.quantiles {
        [Some(least), Some(quarter), Some(middle), Some(three)] => remarked(
            &format!("{middle} ({quarter}–{three})"),
            &format!("half, and quarters; a twentieth up to {least}"),
        ),
        [_, _, Some(middle), _] => {
            remarked(&format!("half up to {middle}"), &overlapping[2.min(overlapping.len())..])
        }
        [Some(least), ..] => remarked(
            &format!("most beyond {}", insert.longest_seen),
            &format!("longer ones cannot be seen; a twentieth up to {least}{overlapping}"),
        ),
        _ if own.looked_at > 0 && insert.overlapping.is_some() => remarked(
            &format!("nearly all beyond {}", insert.longest_seen),
            &format!("longer ones cannot be seen{overlapping}"),
        ),
        _ => untold("too few pairs"),
    }
}

fn telomeres(own: &Library) -> String {
    let telomeres = &own.telomeres;
    match (telomeres.per_million, &telomeres.motif) {
        (Some(rate), Some(motif)) => {
            let of = telomeres.of.as_ref().map_or_else(String::new, |of| format!(" ({})", escape(of)));
            remarked(&number(rate), &format!("{}{of}", escape(motif)))
        }
        (Some(_), None) => "hardly any".into(),
        _ => untold("too few pairs"),
    }
}

/// Sequences that were screened for that are shown, and calls of them.
const SCREENED: usize = 12;

fn screen(rows: &mut Rows, outcome: &Outcome) {
    let Some(screen) = &outcome.known.screen else { return };
    rows.group("Screened for");
    for found in screen.found.iter().take(SCREENED) {
        let name = match &found.like {
            Some(like) => remarked(&escape(&found.name), &format!("like {}", escape(like))),
            None => escape(&found.name),
        };
        let of = |s: usize| {
            let own = &found.samples[s];
            let remark = format!(
                "{} reads, {} in a million; {} of it seen",
                grouped(own.reads.round() as u64),
                short(own.per_million),
                percent(own.breadth)
            );
            if own.reads < 0.5 { escape(&own.word) } else { remarked(&escape(&own.word), &remark) }
        };
        rows.each(&name, [of(0), of(1)]);
    }
    let mut rest = match screen.others {
        0 => "no other sequences".into(),
        n => counted(n, "sequence") + " not there",
    };
    let more = screen.found.len().saturating_sub(SCREENED);
    if more > 0 {
        let _ =
            write!(rest, "; {} there, of which summary.json tells", counted(more as u64, "more sequence"));
    }
    if screen.not_told_apart > 0 {
        let _ = write!(
            rest,
            "; {} cannot be told from others or from the reference",
            grouped(screen.not_told_apart)
        );
    }
    rows.both("Others", &rest);
    let calls: Vec<String> = outcome
        .screened
        .iter()
        .take(SCREENED)
        .map(|call| {
            let strand = if call.forward { "" } else { ", the other strand" };
            format!(
                "{}:{} {}",
                escape(&call.chrom),
                grouped(call.pos),
                remarked(
                    &escape(&call.name),
                    &format!("from {}{strand}; {}", grouped(call.place), escape(&call.id))
                )
            )
        })
        .collect();
    if !calls.is_empty() {
        let more = match outcome.screened.len().saturating_sub(SCREENED) {
            0 => String::new(),
            n => format!("<br>and {}", counted(n as u64, "more call")),
        };
        rows.tumour("Calls whose new sequence it is", calls.join("<br>") + &more);
    }
}
