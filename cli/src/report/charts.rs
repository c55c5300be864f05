//! The plots, as inline SVG. Colours come from the page's style sheet, so that dark mode and print change them too.

use std::fmt::Write;

use genuma_somatic::event::Class;
use genuma_somatic::outcome::{Outcome, Reported};

use super::markup::{counted, escape, grouped, short};

const WIDTH: f64 = 440.0;
const HEIGHT: f64 = 250.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = 10.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 46.0;

/// The classes in the order they are shown.
pub const CLASSES: [Class; 7] =
    [Class::Snv, Class::Indel, Class::Del, Class::Ins, Class::Dup, Class::Inv, Class::Bnd];

/// A coloured part of a plot: its class in the style sheet and its name in the legend.
#[derive(Debug, Clone, Copy)]
struct Key {
    style: &'static str,
    name: &'static str,
}

const NORMAL: Key = Key { style: "normal", name: "Normal" };
const TUMOUR: Key = Key { style: "tumour", name: "Tumour" };
const SNV: Key = Key { style: "snv", name: "SNV" };
const INDEL: Key = Key { style: "indel", name: "Indel" };
const STRUCTURAL: Key = Key { style: "sv", name: "Structural" };
const FILTERED: Key = Key { style: "filtered", name: "Filtered" };

/// The key of a class.
fn key(class: Class) -> Key {
    match class {
        Class::Snv => SNV,
        Class::Indel => INDEL,
        _ => STRUCTURAL,
    }
}

/// One axis: from 0 to `max`.
struct Axis {
    max: f64,
    label: &'static str,
    write: fn(f64) -> String,
}

impl Axis {
    /// Round steps, about five of them.
    fn ticks(&self) -> impl Iterator<Item = f64> {
        let rough = self.max / 5.0;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|s| s * power).find(|&s| s >= rough * 0.999);
        let step = step.unwrap_or(1.0);
        let max = self.max;
        (0..).map(move |i| f64::from(i) * step).take_while(move |&t| t <= max * 1.0001)
    }
}

/// The field of a plot with its axes drawn.
struct Field {
    x: Axis,
    y: Axis,
    svg: String,
}

impl Field {
    fn new(x: Axis, y: Axis) -> Field {
        let mut field = Field { x, y, svg: String::new() };
        let mut svg = String::new();
        for tick in field.y.ticks() {
            let (at, text) = (field.down(tick), (field.y.write)(tick));
            let _ = write!(
                svg,
                r#"<path class="grid" d="M{LEFT} {at:.1}H{:.1}"/><text x="{:.1}" y="{:.1}" text-anchor="end">{text}</text>"#,
                WIDTH - RIGHT,
                LEFT - 8.0,
                at + 4.0
            );
        }
        let floor = HEIGHT - BOTTOM;
        for tick in field.x.ticks() {
            let (at, text) = (field.across(tick), (field.x.write)(tick));
            let _ = write!(
                svg,
                r#"<path class="axis" d="M{at:.1} {floor}v5"/><text x="{at:.1}" y="{}" text-anchor="middle">{text}</text>"#,
                floor + 19.0
            );
        }
        let (middle, high) = ((LEFT + WIDTH - RIGHT) / 2.0, (TOP + floor) / 2.0);
        let _ = write!(
            svg,
            r#"<path class="axis" d="M{LEFT} {floor}H{}"/><text class="label" x="{middle}" y="{}" text-anchor="middle">{}</text><text class="label" transform="translate(13 {high}) rotate(-90)" text-anchor="middle">{}</text>"#,
            WIDTH - RIGHT,
            HEIGHT - 7.0,
            escape(field.x.label),
            escape(field.y.label)
        );
        field.svg = svg;
        field
    }

    fn across(&self, x: f64) -> f64 {
        LEFT + (WIDTH - LEFT - RIGHT) * x / self.x.max
    }

    fn down(&self, y: f64) -> f64 {
        let floor = HEIGHT - BOTTOM;
        floor - (floor - TOP) * y / self.y.max
    }

    /// A line with the field under it tinted; what is higher than the field leaves it at the top.
    fn curve(&mut self, key: Key, points: impl Iterator<Item = (f64, f64)>) {
        let mut line = String::new();
        let mut ends: Option<(f64, f64)> = None;
        for (x, y) in points {
            let (across, down) = (self.across(x), self.down(y.min(self.y.max * 3.0)));
            let _ = write!(line, "{}{across:.1} {down:.1}", if ends.is_none() { "M" } else { "L" });
            ends = Some((ends.map_or(across, |e| e.0), across));
        }
        let Some((from, to)) = ends else { return };
        let (floor, style) = (HEIGHT - BOTTOM, key.style);
        let (width, height) = (WIDTH - LEFT - RIGHT, floor - TOP);
        // An inner drawing cuts off what is outside it.
        let _ = write!(
            self.svg,
            r#"<svg x="{LEFT}" y="{TOP}" width="{width}" height="{height}" viewBox="{LEFT} {TOP} {width} {height}"><path class="area {style}" d="{line}L{to:.1} {floor}L{from:.1} {floor}Z"/><path class="line {style}" d="{line}"/></svg>"#
        );
    }

    /// A dashed line across the field, named at its top in the given row of text.
    fn mark(&mut self, key: Key, x: f64, text: &str, row: f64) {
        let (at, floor) = (self.across(x), HEIGHT - BOTTOM);
        let (side, anchor) = if at > WIDTH * 0.7 { (-6.0, "end") } else { (6.0, "start") };
        let _ = write!(
            self.svg,
            r#"<path class="mark {0}" d="M{at:.1} {TOP}V{floor}"/><text class="halo ink-{0}" x="{1:.1}" y="{2:.1}" text-anchor="{anchor}">{3}</text>"#,
            key.style,
            at + side,
            TOP + 12.0 + 16.0 * row,
            escape(text)
        );
    }

    /// Columns `width` wide on the x axis, each a stack.
    fn columns(&mut self, width: f64, stacks: &[Vec<(Key, u64)>]) {
        for (i, stack) in stacks.iter().enumerate() {
            let (from, to) = (self.across(i as f64 * width), self.across((i + 1) as f64 * width));
            let mut base = 0.0;
            for (key, n) in stack.iter().filter(|s| s.1 > 0) {
                let (low, high) = (self.down(base), self.down(base + *n as f64));
                let _ = write!(
                    self.svg,
                    r#"<rect class="bar {}" x="{:.1}" y="{high:.1}" width="{:.1}" height="{:.1}"><title>{}: {}</title></rect>"#,
                    key.style,
                    from + 0.75,
                    to - from - 1.5,
                    low - high,
                    key.name,
                    grouped(*n)
                );
                base += *n as f64;
            }
        }
    }

    /// One dot each.
    fn points(&mut self, key: Key, points: impl Iterator<Item = (f64, f64)>) {
        let mut dots = String::new();
        for (x, y) in points {
            let _ = write!(dots, "M{:.1} {:.1}h0", self.across(x), self.down(y));
        }
        let _ = write!(self.svg, r#"<path class="dots {}" d="{dots}"/>"#, key.style);
    }

    fn finish(self, described: &str) -> String {
        format!(
            r#"<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{}">{}</svg>"#,
            escape(described),
            self.svg
        )
    }
}

/// A plot with its heading, what it says, and its legend.
fn figure(title: &str, caption: &str, keys: &[Key], svg: &str) -> String {
    let legend: String =
        keys.iter().map(|k| format!(r#"<li><i class="swatch {}"></i>{}</li>"#, k.style, k.name)).collect();
    let legend = if keys.is_empty() { String::new() } else { format!(r#"<ul class="legend">{legend}</ul>"#) };
    format!("<figure><figcaption><h3>{title}</h3><p>{caption}</p></figcaption>{legend}{svg}</figure>")
}

/// The plots of a call.
pub fn charts(outcome: &Outcome) -> String {
    let calls = &outcome.calls;
    [
        spectrum(outcome),
        per_class(calls),
        fractions(calls),
        both_samples(calls),
        qualities(calls),
        reasons(calls),
    ]
    .concat()
}

fn passed(call: &Reported) -> bool {
    call.filters.is_empty()
}

fn spectrum(outcome: &Outcome) -> String {
    let depths = outcome.depths.kmer;
    let last = (depths[0].max(depths[1]) * 3.0).ceil().max(10.0);
    let shown = |sample: usize| outcome.spectra[sample].iter().take(last as usize + 1);
    // The height of the peak that is not the errors'.
    let peak = (0..2)
        .flat_map(|s| shown(s).skip(((depths[s] * 0.4) as usize).max(2)))
        .max()
        .map_or(1.0, |&n| n.max(1) as f64);
    let mut field = Field::new(
        Axis { max: last, label: "times a k-mer is seen", write: |n| grouped(n as u64) },
        Axis { max: peak * 1.3, label: "distinct k-mers", write: short },
    );
    for (sample, key) in [(0, NORMAL), (1, TUMOUR)] {
        field.curve(key, shown(sample).enumerate().skip(1).map(|(m, &n)| (m as f64, n as f64)));
    }
    for (sample, key) in [(0, NORMAL), (1, TUMOUR)] {
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
        &[NORMAL, TUMOUR],
        &field.finish("k-mer spectrum of the normal and the tumour"),
    )
}

/// Calls sorted into columns, one stack of keys each.
fn stacks<'a>(
    calls: impl Iterator<Item = &'a Reported>,
    keys: &[Key],
    columns: usize,
    place: impl Fn(&Reported) -> (f64, Key),
) -> Vec<Vec<(Key, u64)>> {
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

fn highest(stacks: &[Vec<(Key, u64)>]) -> f64 {
    stacks.iter().map(|s| s.iter().map(|x| x.1).sum::<u64>()).max().unwrap_or(0).max(4) as f64
}

fn fractions(calls: &[Reported]) -> String {
    const COLUMNS: usize = 40;
    let keys = [SNV, INDEL, STRUCTURAL];
    let stacks =
        stacks(calls.iter().filter(|c| passed(c)), &keys, COLUMNS, |c| (c.tumour.fraction(), key(c.class)));
    let mut field = Field::new(
        Axis {
            max: 1.0,
            label: "share of the tumour's read pairs with the change",
            write: |n| format!("{n:.1}"),
        },
        Axis { max: highest(&stacks) * 1.08, label: "calls", write: |n| grouped(n as u64) },
    );
    field.columns(1.0 / COLUMNS as f64, &stacks);
    figure(
        "Allele fractions in the tumour",
        "PASS calls. Heterozygous changes of all tumour cells pile up at half the purity; subclones lie lower.",
        &keys,
        &field.finish("Histogram of tumour allele fractions of PASS calls by class"),
    )
}

/// Each call as a point: its share in the tumour against its share in the normal.
fn both_samples(calls: &[Reported]) -> String {
    /// More points than this would only cover each other.
    const MOST: usize = 5_000;
    let tenths = |n: f64| format!("{n:.1}");
    let mut field = Field::new(
        Axis { max: 1.0, label: "share in the tumour", write: tenths },
        Axis { max: 1.0, label: "share in the normal", write: tenths },
    );
    let keys = [FILTERED, SNV, INDEL, STRUCTURAL];
    for wanted in keys {
        let of = |c: &&Reported| if passed(c) { key(c.class) } else { FILTERED }.style == wanted.style;
        field.points(
            wanted,
            calls.iter().filter(of).take(MOST).map(|c| (c.tumour.fraction(), c.normal.fraction())),
        );
    }
    figure(
        "Tumour against normal",
        "Somatic changes lie on the floor. What the normal has, too, is germline, or tumour in the normal.",
        &[SNV, INDEL, STRUCTURAL, FILTERED],
        &field.finish("Share of reads with the change in tumour and normal, one point a call"),
    )
}

fn qualities(calls: &[Reported]) -> String {
    const COLUMNS: usize = 40;
    let keys = [SNV, INDEL, STRUCTURAL, FILTERED];
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
        Axis { max: last, label: "quality (Phred)", write: |n| grouped(n as u64) },
        Axis { max: highest(&stacks).min(rest * 1.6) * 1.08, label: "calls", write: |n| grouped(n as u64) },
    );
    let most = field.y.max as u64;
    let clipped: Vec<Vec<(Key, u64)>> = stacks
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

/// Horizontal bars, each with its parts, and their numbers written out.
fn bars(rows: &[(String, Vec<(Key, u64)>)], described: &str) -> String {
    const NAME: f64 = 122.0;
    let step = ((HEIGHT - 8.0) / rows.len().max(1) as f64).clamp(19.0, 34.0);
    let total = |parts: &[(Key, u64)]| parts.iter().map(|p| p.1).sum::<u64>();
    let most = rows.iter().map(|r| total(&r.1)).max().unwrap_or(0).max(1) as f64;
    let scale = (WIDTH - NAME - 96.0) / most;
    let height = HEIGHT.max(step * rows.len() as f64 + 8.0);
    let thick = step * 0.62;
    let mut svg =
        format!(r#"<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{}">"#, escape(described));
    if rows.is_empty() {
        let _ = write!(svg, r#"<text x="{LEFT}" y="20">none</text>"#);
    }
    for (i, (name, parts)) in rows.iter().enumerate() {
        let y = step * i as f64 + 8.0;
        let middle = y + thick / 2.0 + 4.0;
        let _ = write!(
            svg,
            r#"<text x="{}" y="{:.1}" text-anchor="end">{}</text>"#,
            NAME - 10.0,
            middle,
            escape(name)
        );
        let mut x = NAME;
        for (key, n) in parts.iter().filter(|p| p.1 > 0) {
            let width = (*n as f64 * scale).max(1.5);
            let _ = write!(
                svg,
                r#"<rect class="bar {}" x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{thick:.1}"><title>{}: {}</title></rect>"#,
                key.style,
                key.name,
                grouped(*n)
            );
            x += width + 1.0;
        }
        let numbers: Vec<String> = parts.iter().map(|p| grouped(p.1)).collect();
        let _ = write!(
            svg,
            r#"<text class="number" x="{:.1}" y="{middle:.1}">{}</text>"#,
            x + 7.0,
            numbers.join(" + ")
        );
    }
    svg + "</svg>"
}

fn per_class(calls: &[Reported]) -> String {
    let rows: Vec<(String, Vec<(Key, u64)>)> = CLASSES
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
        &[SNV, INDEL, STRUCTURAL, FILTERED],
        &bars(&rows, "Number of calls by class, PASS and filtered"),
    )
}

fn reasons(calls: &[Reported]) -> String {
    let mut rows: Vec<(String, Vec<(Key, u64)>)> = Vec::new();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_few() {
        let ticks = |max: f64| Axis { max, label: "", write: short }.ticks().collect::<Vec<f64>>();
        assert_eq!(ticks(69.0), [0.0, 20.0, 40.0, 60.0]);
        assert_eq!(ticks(4.3), [0.0, 1.0, 2.0, 3.0, 4.0]);
        for max in [1.0, 7.0, 12.5, 545_000.0, 3.2e9] {
            let ticks = ticks(max);
            assert!((3..=7).contains(&ticks.len()), "{max}: {ticks:?}");
        }
    }
}
