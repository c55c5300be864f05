//! The plots of a call.

use genuma_kmers::MAX_SAMPLES;
use genuma_somatic::event::Class;
use genuma_somatic::outcome::{Outcome, Reported};

use super::{name_of, tumours};
use crate::report::markup::{counted, escape, grouped, short};
use crate::report::plot::{self, Axis, Bar, Field, Key, SMALL, figure};

/// The classes in the order they are shown.
pub(crate) const CLASSES: [Class; 8] =
    [Class::Snv, Class::Mnv, Class::Indel, Class::Del, Class::Ins, Class::Dup, Class::Inv, Class::Bnd];

/// Classes of the samples in the style sheet.
const SAMPLES: [&str; MAX_SAMPLES] =
    ["normal", "tumour", "tumour t2", "tumour t3", "tumour t4", "tumour t5", "tumour t6", "tumour t7"];
const SUBSTITUTION: Key<'static> = Key { style: "snv", name: "SNV, MNV" };
const INDEL: Key<'static> = Key { style: "indel", name: "Indel" };
const STRUCTURAL: Key<'static> = Key { style: "sv", name: "Structural" };
const FILTERED: Key<'static> = Key { style: "filtered", name: "Filtered" };

/// The key of a class.
fn key(class: Class) -> Key<'static> {
    match class {
        Class::Snv | Class::Mnv => SUBSTITUTION,
        Class::Indel => INDEL,
        _ => STRUCTURAL,
    }
}

/// The plots of a call.
pub(crate) fn charts(outcome: &Outcome) -> String {
    let calls = &outcome.calls;
    [
        spectrum(outcome),
        per_class(calls),
        fractions(outcome),
        both_samples(calls),
        tumours_beside(outcome),
        qualities(calls),
        reasons(calls),
    ]
    .concat()
}

fn passed(call: &Reported) -> bool {
    call.filters.is_empty()
}

fn spectrum(outcome: &Outcome) -> String {
    let depths = &outcome.depths.kmer;
    let last = (depths.iter().copied().fold(0.0, f64::max) * 3.0).ceil().max(10.0);
    let shown = |sample: usize| outcome.spectra[sample].iter().take(last as usize + 1);
    let keys: Vec<Key<'_>> = (0..depths.len().min(outcome.spectra.len()))
        .map(|sample| Key { style: SAMPLES[sample], name: name_of(&outcome.samples, sample) })
        .collect();
    // The height of the peak that is not the errors'.
    let peak = (0..keys.len())
        .flat_map(|s| shown(s).skip(((depths[s] * 0.4) as usize).max(2)))
        .max()
        .map_or(1.0, |&n| n.max(1) as f64);
    let mut field = Field::new(
        SMALL,
        Axis::linear(last, "times a k-mer is seen", |n| grouped(n as u64)),
        Axis::linear(peak * 1.3, "distinct k-mers", short),
    );
    for (sample, &key) in keys.iter().enumerate() {
        field.curve(key, shown(sample).enumerate().skip(1).map(|(m, &n)| (m as f64, n as f64)));
    }
    for (sample, &key) in keys.iter().enumerate() {
        field.mark(
            key,
            depths[sample],
            &format!("{} {:.0}×", key.name.to_lowercase(), depths[sample]),
            sample as f64,
        );
    }
    figure(
        "How deep the samples were read",
        "The peak is the depth at which each sample covers its genome. k-mers seen once or twice are mostly \
         sequencing errors; they leave the plot at the top.",
        &keys,
        &field.finish("k-mer spectrum of the normal and the tumour"),
    )
}

/// Calls sorted into columns, one stack of keys each.
fn stacks<'a>(
    calls: impl Iterator<Item = &'a Reported>,
    keys: &[Key<'static>],
    columns: usize,
    place: impl Fn(&Reported) -> (f64, Key<'static>),
) -> Vec<Vec<(Key<'static>, u64)>> {
    let mut stacks = vec![keys.iter().map(|&k| (k, 0)).collect::<Vec<_>>(); columns];
    for call in calls {
        let (at, key) = place(call);
        let column = ((at * columns as f64) as usize).min(columns - 1);
        for (k, n) in &mut stacks[column] {
            *n += u64::from(k.style == key.style);
        }
    }
    stacks
}

fn highest(stacks: &[Vec<(Key<'static>, u64)>]) -> f64 {
    stacks.iter().map(|s| s.iter().map(|x| x.1).sum::<u64>()).max().unwrap_or(0).max(4) as f64
}

/// The allele fractions in the tumour, in each if there are several.
fn fractions(outcome: &Outcome) -> String {
    let calls = outcome.calls.iter().filter(|c| passed(c));
    let several = tumours(outcome);
    if several.is_empty() {
        return fractions_in("the tumour", calls, |c| c.tumour.fraction());
    }
    let of_one = |(t, name): (usize, &String)| {
        let own = calls.clone().filter(|c| c.tumours.get(t).is_some_and(|own| own.has));
        fractions_in(name, own, |c| c.tumours[t].support.fraction())
    };
    several.iter().enumerate().map(of_one).collect()
}

fn fractions_in<'a>(
    tumour: &str,
    calls: impl Iterator<Item = &'a Reported>,
    fraction: impl Fn(&Reported) -> f64,
) -> String {
    const COLUMNS: usize = 40;
    let keys = [SUBSTITUTION, INDEL, STRUCTURAL];
    let stacks = stacks(calls, &keys, COLUMNS, |c| (fraction(c), key(c.class)));
    let mut field = Field::new(
        SMALL,
        Axis::linear(1.0, "share of its read pairs with the change", |n| format!("{n:.1}")),
        Axis::linear(highest(&stacks) * 1.08, "calls", |n| grouped(n as u64)),
    );
    field.columns(1.0 / COLUMNS as f64, &stacks);
    figure(
        &format!("Allele fractions in {}", escape(tumour)),
        "PASS calls. Heterozygous changes of all tumour cells pile up at half the purity; subclones lie lower.",
        &keys,
        &field.finish(&format!("Histogram of allele fractions in {tumour} of PASS calls by class")),
    )
}

/// Of several tumours each after the first beside the first: each call that passes a point.
fn tumours_beside(outcome: &Outcome) -> String {
    let [first, others @ ..] = tumours(outcome) else { return String::new() };
    let tenths = |n: f64| format!("{n:.1}");
    let beside = |(t, name): (usize, &String)| {
        let [across, up] = [first, name].map(|name| format!("share in {name}"));
        let mut field = Field::new(SMALL, Axis::linear(1.0, &across, tenths), Axis::linear(1.0, &up, tenths));
        let keys = [SUBSTITUTION, INDEL, STRUCTURAL];
        for wanted in keys {
            let of = |c: &&Reported| passed(c) && key(c.class).style == wanted.style;
            let point = |c: &Reported| {
                Some((c.tumours.first()?.support.fraction(), c.tumours.get(t + 1)?.support.fraction()))
            };
            field.points(wanted, outcome.calls.iter().filter(of).take(MOST_POINTS).filter_map(point));
        }
        figure(
            &format!("{} against {}", escape(first), escape(name)),
            &drawn("PASS calls. Changes that only one of the two has lie on its axis.", &outcome.calls),
            &keys,
            &field.finish(&format!("Share of reads with the change in {first} and {name}, one point a call")),
        )
    };
    others.iter().enumerate().map(beside).collect()
}

/// More points than this would only cover each other.
const MOST_POINTS: usize = 5_000;

/// What a picture of points says, and that not all calls may be points.
fn drawn(what: &str, calls: &[Reported]) -> String {
    match calls.len() {
        n if n > MOST_POINTS => format!(
            "{what} Of {} calls, at most {} of a kind are drawn.",
            grouped(n as u64),
            grouped(MOST_POINTS as u64)
        ),
        _ => what.to_owned(),
    }
}

/// Each call as a point: its share in the tumour against its share in the normal.
fn both_samples(calls: &[Reported]) -> String {
    let tenths = |n: f64| format!("{n:.1}");
    let mut field = Field::new(
        SMALL,
        Axis::linear(1.0, "share in the tumour", tenths),
        Axis::linear(1.0, "share in the normal", tenths),
    );
    let keys = [FILTERED, SUBSTITUTION, INDEL, STRUCTURAL];
    for wanted in keys {
        let of = |c: &&Reported| if passed(c) { key(c.class) } else { FILTERED }.style == wanted.style;
        field.points(
            wanted,
            calls.iter().filter(of).take(MOST_POINTS).map(|c| (c.tumour.fraction(), c.normal.fraction())),
        );
    }
    figure(
        "Tumour against normal",
        &drawn(
            "Somatic changes lie on the floor. What the normal has, too, is germline, or tumour in the normal.",
            calls,
        ),
        &[SUBSTITUTION, INDEL, STRUCTURAL, FILTERED],
        &field.finish("Share of reads with the change in tumour and normal, one point a call"),
    )
}

fn qualities(calls: &[Reported]) -> String {
    const COLUMNS: usize = 40;
    let keys = [SUBSTITUTION, INDEL, STRUCTURAL, FILTERED];
    let mut all: Vec<f64> = calls.iter().map(|c| c.quality).collect();
    all.sort_by(f64::total_cmp);
    // The best hundredth share the last column.
    let top = all.get(all.len() * 99 / 100).copied().unwrap_or(0.0);
    let last = (top / 40.0).ceil().max(1.0) * 40.0;
    let stacks = stacks(calls.iter(), &keys, COLUMNS, |c| {
        (c.quality / last, if passed(c) { key(c.class) } else { FILTERED })
    });
    // The filtered calls of quality 0 may be many: they may leave the plot, the others not.
    let rest = highest(&stacks[1..]);
    let mut field = Field::new(
        SMALL,
        Axis::linear(last, "quality (Phred)", |n| grouped(n as u64)),
        Axis::linear(highest(&stacks).min(rest * 1.6) * 1.08, "calls", |n| grouped(n as u64)),
    );
    let most = field.y.to as u64;
    let clipped: Vec<Vec<(Key<'static>, u64)>> = stacks
        .iter()
        .map(|stack| {
            let mut room = most;
            stack
                .iter()
                .map(|&(k, n)| {
                    let part = n.min(room);
                    room -= part;
                    (k, part)
                })
                .collect()
        })
        .collect();
    field.columns(last / COLUMNS as f64, &clipped);
    let first: u64 = stacks[0].iter().map(|s| s.1).sum();
    let cut = if first > most {
        format!(" The first column is cut off: it stands for {}.", counted(first, "call"))
    } else {
        String::new()
    };
    figure(
        "How sure the calls are",
        &format!(
            "Quality 20 is one chance in a hundred that the change is not somatic, 30 one in a thousand.{cut}"
        ),
        &keys,
        &field.finish("Histogram of call qualities, PASS by class and filtered"),
    )
}

/// Horizontal bars of counts, each with its parts, and their numbers written out.
fn bars(rows: &[(String, Vec<(Key<'static>, u64)>)], described: &str) -> String {
    let rows: Vec<Bar> = rows
        .iter()
        .map(|(name, parts)| {
            let numbers: Vec<String> = parts.iter().map(|p| grouped(p.1)).collect();
            let part =
                |&(key, n): &(Key<'static>, u64)| (key, n as f64, format!("{}: {}", key.name, grouped(n)));
            Bar { name: name.clone(), parts: parts.iter().map(part).collect(), text: numbers.join(" + ") }
        })
        .collect();
    // Room for the longest of the numbers.
    let letters = rows.iter().map(|bar| bar.text.len()).max().unwrap_or(0);
    plot::bars(&rows, (122.0, (8.0 * letters as f64 + 8.0).max(96.0)), described)
}

fn per_class(calls: &[Reported]) -> String {
    let rows: Vec<(String, Vec<(Key<'static>, u64)>)> = CLASSES
        .into_iter()
        .map(|class| {
            let count =
                |pass: bool| calls.iter().filter(|c| c.class == class && passed(c) == pass).count() as u64;
            (class.name().to_string(), vec![(key(class), count(true)), (FILTERED, count(false))])
        })
        .filter(|(_, parts)| parts.iter().any(|p| p.1 > 0))
        .collect();
    figure(
        "What was called",
        "PASS calls in colour, filtered ones in grey after them.",
        &[SUBSTITUTION, INDEL, STRUCTURAL, FILTERED],
        &bars(&rows, "Number of calls by class, PASS and filtered"),
    )
}

fn reasons(calls: &[Reported]) -> String {
    let mut rows: Vec<(String, Vec<(Key<'static>, u64)>)> = Vec::new();
    for filter in calls.iter().flat_map(|c| &c.filters) {
        match rows.iter_mut().find(|r| r.0 == *filter) {
            Some(row) => row.1[0].1 += 1,
            None => rows.push((filter.clone(), vec![(FILTERED, 1)])),
        }
    }
    rows.sort_by(|a, b| b.1[0].1.cmp(&a.1[0].1).then_with(|| a.0.cmp(&b.0)));
    figure(
        "Why calls were filtered",
        "A call may fail several filters and is counted under each.",
        &[],
        &bars(&rows, "Number of filtered calls by filter"),
    )
}
