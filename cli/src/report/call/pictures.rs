//! What the samples are like, drawn. What there is nothing of is not drawn.

use genuma_pair::library::Library;
use genuma_pair::library::facts::CycleFacts;
use genuma_somatic::outcome::Outcome;
use genuma_somatic::portrait::contexts;

use crate::report::markup::{escape, grouped};
use crate::report::plot::{Axis, Field, Key, Point, Size, figure};

const NORMAL: Key<'static> = Key { style: "normal", name: "Normal" };
const TUMOUR: Key<'static> = Key { style: "tumour", name: "Tumour" };
/// Of both samples, each mate.
const MATES: [[Key<'static>; 2]; 2] = [
    [Key { style: "normal", name: "Normal, read 1" }, Key { style: "normal second", name: "Normal, read 2" }],
    [Key { style: "tumour", name: "Tumour, read 1" }, Key { style: "tumour second", name: "Tumour, read 2" }],
];

/// Two stand beside the table. There is room for `100 %` at the end of the x axis.
const HALF: Size = Size { width: 340.0, height: 220.0, left: 68.0, right: 20.0, top: 10.0, bottom: 46.0 };

/// All of both samples, side by side.
pub(crate) fn pictures(outcome: &Outcome) -> String {
    let libraries = [&outcome.libraries.normal, &outcome.libraries.tumor];
    [by_gc(outcome), inserts(libraries), errors(libraries), qualities(libraries), contigs(outcome)].concat()
}

fn percent(share: f64) -> String {
    let percent = share * 100.0;
    // Ticks are round.
    let digits = if (percent - percent.round()).abs() < 1e-6 {
        0
    } else if percent >= 0.1 {
        1
    } else {
        2
    };
    format!("{percent:.digits$}\u{a0}%")
}

/// One of six small pictures.
const SIXTH: Size = Size { width: 210.0, height: 190.0, left: 34.0, right: 4.0, top: 24.0, bottom: 34.0 };
/// Styles of the six substitutions.
const SUBSTITUTIONS: [&str; 6] = ["s1", "s2", "s3", "s4", "s5", "s6"];

/// The mutational spectrum: substitutions by the bases beside them.
pub(crate) fn spectrum(outcome: &Outcome) -> String {
    let counts = &outcome.portrait.spectrum;
    let all: u64 = counts.iter().sum();
    if all == 0 || counts.len() != 96 {
        return String::new();
    }
    let most = counts.iter().copied().max().unwrap_or(0).max(4) as f64;
    let contexts = contexts();
    let mut svg = String::from(r#"<div class="sixths">"#);
    for (kind, own) in counts.chunks(16).enumerate() {
        // `A[C>A]A`
        let name = &contexts[kind * 16][2..5];
        let mut field = Field::new(SIXTH, Axis::bare(16.0, ""), Axis::whole(most * 1.05, ""));
        for (i, (&n, context)) in own.iter().zip(&contexts[kind * 16..]).enumerate() {
            let i = i as f64;
            let title = format!("{context}: {}", grouped(n));
            field.column(SUBSTITUTIONS[kind], (i + 0.12, i + 0.88), n as f64, &title);
            let three: String = [&context[..1], &context[2..3], &context[6..]].concat();
            field.name_below(i + 0.5, &three);
        }
        field.text(
            (SIXTH.left + SIXTH.width - SIXTH.right) / 2.0,
            14.0,
            &format!("{name}  {}", grouped(own.iter().sum())),
        );
        svg.push_str(
            &field.finish(&format!("{name} by the bases on both sides: {} SNVs", own.iter().sum::<u64>())),
        );
    }
    svg.push_str("</div>");
    figure(
        "Substitutions by the bases beside them",
        &format!(
            "{} SNVs that passed, as on the strand of the C or T. What made the mutations shows in their pattern: C&gt;T before G is age, \
             C&gt;A is smoke, TC to T or G is APOBEC.",
            grouped(all)
        ),
        &[],
        &svg,
    )
}

fn by_gc(outcome: &Outcome) -> String {
    let Some(pair) = &outcome.portrait.pair else { return String::new() };
    let both = pair.coverage.each_ref().map(|covered| &covered.by_gc);
    if both.iter().all(|own| own.len() < 3) {
        return String::new();
    }
    let points = || both.into_iter().flatten();
    let most = points().map(|p| p.1).fold(1.2, f64::max).min(4.0);
    let mut field = Field::new(
        HALF,
        Axis::linear(1.0, "share of G and C in 30 bases or so", percent),
        Axis::linear(most * 1.05, "depth over the average", |n| format!("{n:.1}")),
    );
    field.level(1.0);
    for (key, own) in [NORMAL, TUMOUR].into_iter().zip(both) {
        field.line(key, own.iter().copied().map(Some));
    }
    figure(
        "Depth by GC",
        "Flat where every place is read alike. Where the two differ, depth says less of copies.",
        &[NORMAL, TUMOUR],
        &field.finish("Depth over the average by the share of G and C, of both samples"),
    )
}

/// Fewest pairs whose length is known, of which it is drawn.
const FEWEST_PAIRS: u64 = 100;
/// Bases of a column of the histogram.
const STEP: u64 = 10;

fn inserts(libraries: [&Library; 2]) -> String {
    // What is longer than can be seen, hardly shows.
    let shown = libraries.map(|own| {
        let whole = own.insert.longest_seen / STEP;
        let counts = own.insert.histogram.iter().take(whole as usize);
        let pairs = own.looked_at.max(1) as f64;
        let enough = own.insert.histogram.iter().sum::<u64>() >= FEWEST_PAIRS;
        if enough { counts.map(|&n| n as f64 / pairs).collect() } else { Vec::new() }
    });
    let most = shown.iter().flatten().copied().fold(0.0, f64::max);
    if most <= 0.0 {
        return String::new();
    }
    let longest =
        shown.iter().map(|own| own.iter().rposition(|&n| n > 0.0).unwrap_or(0) + 2).max().unwrap_or(1);
    let mut field = Field::new(
        HALF,
        Axis::linear(longest as f64 * STEP as f64, "bases of a fragment", |n| grouped(n as u64)),
        Axis::linear(most * 1.1, "pairs, for each 10 bases", percent),
    );
    for (key, own) in [NORMAL, TUMOUR].into_iter().zip(&shown).filter(|(_, own)| !own.is_empty()) {
        let middle = |i: usize| (i as f64 + 0.5) * STEP as f64;
        field.curve(key, own.iter().take(longest).enumerate().map(|(i, &n)| (middle(i), n)));
    }
    let seen = libraries.map(|own| own.insert.longest_seen).into_iter().max().unwrap_or(0);
    figure(
        "Insert size",
        &format!(
            "Of pairs whose mates overlap. Fragments beyond {seen} bases cannot be seen with these reads."
        ),
        &[NORMAL, TUMOUR],
        &field.finish("Share of pairs by the length of their fragment, of both samples"),
    )
}

/// Fewest cycles that make a line.
const FEWEST_CYCLES: usize = 10;
/// Cycles that are taken together where few bases of each were compared.
const SMOOTH: usize = 5;

/// A line for each mate of each sample, by cycle, each point the mean of `step` cycles.
fn by_cycle(
    libraries: [&Library; 2],
    of: impl Fn(&CycleFacts) -> Option<f64>,
    step: usize,
    (label, write): (&str, fn(f64) -> String),
    [title, caption, described]: [&str; 3],
) -> String {
    let mean = |cycles: &[CycleFacts]| {
        let known: Vec<f64> = cycles.iter().filter_map(&of).collect();
        (known.len() * 2 > step).then(|| known.iter().sum::<f64>() / known.len() as f64)
    };
    let values = libraries.map(|own| {
        own.mates.each_ref().map(|mate| mate.cycles.chunks(step).map(mean).collect::<Vec<Option<f64>>>())
    });
    let known = |own: &&Vec<Option<f64>>| own.iter().flatten().count() * step >= FEWEST_CYCLES;
    let lines = || {
        values
            .iter()
            .zip(MATES)
            .flat_map(|(mates, keys)| mates.iter().zip(keys))
            .filter(|(own, _)| known(own))
    };
    let cycles = lines().map(|(own, _)| own.len() * step).max().unwrap_or(0);
    let most = lines().flat_map(|(own, _)| own.iter().flatten()).copied().fold(0.0, f64::max);
    if cycles == 0 || most <= 0.0 {
        return String::new();
    }
    let mut field = Field::new(
        HALF,
        Axis::linear(cycles as f64 * 1.04, "cycle", |n| grouped(n as u64)),
        Axis::linear(most * 1.08, label, write),
    );
    for (own, key) in lines() {
        field.line(
            key,
            own.iter()
                .enumerate()
                .map(|(i, value)| value.map(|value| ((i * step) as f64 + (step + 1) as f64 / 2.0, value))),
        );
    }
    let keys: Vec<Key<'_>> = lines().map(|(_, key)| key).collect();
    figure(title, caption, &keys, &field.finish(described))
}

fn errors(libraries: [&Library; 2]) -> String {
    by_cycle(
        libraries,
        |cycle| cycle.errors,
        SMOOTH,
        ("wrong bases", percent),
        [
            "Wrong bases by cycle",
            "Where mates overlap and disagree. Reads get worse towards their end; a peak is a fault of the run.",
            "Share of wrong bases by cycle, of both reads of both samples",
        ],
    )
}

fn qualities(libraries: [&Library; 2]) -> String {
    by_cycle(
        libraries,
        |cycle| Some(cycle.quality),
        1,
        ("mean quality (Phred)", |n| grouped(n as u64)),
        [
            "Quality by cycle",
            "What the sequencer promises: 20 is one wrong base in a hundred, 30 one in a thousand.",
            "Mean quality by cycle, of both reads of both samples",
        ],
    )
}

/// Most contigs that can be named side by side, the longest of which stay.
const CONTIGS: usize = 30;
/// Letters of their names.
const LETTERS: usize = 12;
/// More copies than this leave the picture at its top.
const COPIES: f64 = 4.0;
const NAMED: Size = Size { bottom: 80.0, height: 254.0, ..HALF };

/// Copies of contigs in the tumour over those in the normal.
fn contigs(outcome: &Outcome) -> String {
    let Some(karyotype) = &outcome.known.karyotype else { return String::new() };
    let known = || karyotype.contigs.iter().filter(|c| c.ratio.is_some() && c.word != "of an organelle");
    if known().count() < 2 {
        return String::new();
    }
    let mut lengths: Vec<u64> = known().map(|contig| contig.bases).collect();
    lengths.sort_unstable_by(|a, b| b.cmp(a));
    let least = lengths.get(CONTIGS - 1).copied().unwrap_or(0);
    let shown: Vec<_> = known().filter(|contig| contig.bases >= least).take(CONTIGS).collect();
    let most = shown.iter().filter_map(|c| c.ratio).map(|r| r.high).fold(1.6, f64::max).min(COPIES);
    let mut field = Field::new(
        NAMED,
        Axis::bare(shown.len() as f64, ""),
        Axis::linear(most * 1.05, "tumour over normal", |n| format!("{n:.1}")),
    );
    field.level(1.0);
    for (i, contig) in shown.iter().enumerate() {
        let Some(ratio) = contig.ratio else { continue };
        let style = match &contig.word[..] {
            "gained" => "gained",
            "lost" => "lost",
            _ => "kept",
        };
        let title = format!("{}: {}, {}", contig.name, super::words::number(ratio), contig.word);
        let x = i as f64 + 0.5;
        field.whisker(style, &Point { x, y: ratio.value, low: ratio.low, high: ratio.high, title });
        let name: String = match contig.name.chars().count() {
            n if n > LETTERS => contig.name.chars().take(LETTERS - 1).chain(['…']).collect(),
            _ => contig.name.clone(),
        };
        field.name_below(x, &name);
    }
    let left_out = known().count() - shown.len();
    let rest = if left_out > 0 {
        format!(" The {} longest; {} others are in summary.json.", shown.len(), grouped(left_out as u64))
    } else {
        String::new()
    };
    let keys = [
        Key { style: "gained", name: "gained" },
        Key { style: "lost", name: "lost" },
        Key { style: "kept", name: "as usual" },
    ];
    figure(
        "Copies of the contigs",
        &escape(&format!(
            "How often the tumour has each for what the normal has, with the 95 % interval.{rest}"
        )),
        &keys,
        &field.finish("Copies of each contig in the tumour over those in the normal"),
    )
}
