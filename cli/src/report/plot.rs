//! The plots, as inline SVG. Colours come from the page's style sheet, so that dark mode and print change them too.

use std::fmt::Write;

use super::markup::{escape, grouped};

/// A coloured part of a plot: its class in the style sheet and its name in the legend.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Key<'a> {
    pub(crate) style: &'static str,
    pub(crate) name: &'a str,
}

/// One axis.
pub(crate) struct Axis<'a> {
    pub(crate) from: f64,
    pub(crate) to: f64,
    logarithmic: bool,
    ticks: Vec<f64>,
    label: &'a str,
    write: fn(f64) -> String,
}

impl<'a> Axis<'a> {
    /// From 0 to `to`, with about five round ticks.
    pub(crate) fn linear(to: f64, label: &'a str, write: fn(f64) -> String) -> Axis<'a> {
        let rough = to / 5.0;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|s| s * power).find(|&s| s >= rough * 0.999);
        let step = step.unwrap_or(1.0);
        let ticks = (0..).map(|i| f64::from(i) * step).take_while(|&t| t <= to * 1.0001).collect();
        Axis { from: 0.0, to, logarithmic: false, ticks, label, write }
    }

    /// From 0 to `to` of things that are counted: no ticks between whole numbers.
    pub(crate) fn whole(to: f64, label: &'a str) -> Axis<'a> {
        let mut axis = Axis::linear(to, label, |n| grouped(n as u64));
        axis.ticks.retain(|tick| (tick - tick.round()).abs() < 1e-6);
        axis
    }

    /// From 0 to `to` without ticks: what is drawn on it names itself.
    pub(crate) fn bare(to: f64, label: &'a str) -> Axis<'a> {
        Axis { from: 0.0, to, logarithmic: false, ticks: Vec::new(), label, write: |_| String::new() }
    }

    /// Equal steps are equal factors. `from` is positive; ticks outside the axis are left out.
    pub(crate) fn logarithmic(
        (from, to): (f64, f64),
        ticks: impl Iterator<Item = f64>,
        label: &'a str,
        write: fn(f64) -> String,
    ) -> Axis<'a> {
        let ticks = ticks.filter(|&t| t >= from * 0.9999 && t <= to * 1.0001).collect();
        Axis { from, to, logarithmic: true, ticks, label, write }
    }

    /// Where a value lies: 0 at the axis's beginning, 1 at its end.
    fn share(&self, value: f64) -> f64 {
        if self.logarithmic {
            (value.max(self.from / 2.0) / self.from).ln() / (self.to / self.from).ln()
        } else {
            (value - self.from) / (self.to - self.from)
        }
    }
}

/// The size of a plot and of its margins, in the SVG's own units.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    pub(crate) width: f64,
    pub(crate) height: f64,
    pub(crate) left: f64,
    pub(crate) right: f64,
    pub(crate) top: f64,
    pub(crate) bottom: f64,
}

/// Two or three of this size stand in a row.
pub(crate) const SMALL: Size =
    Size { width: 440.0, height: 250.0, left: 62.0, right: 10.0, top: 10.0, bottom: 46.0 };

/// The field of a plot with its axes drawn.
pub(crate) struct Field<'a> {
    size: Size,
    x: Axis<'a>,
    pub(crate) y: Axis<'a>,
    svg: String,
}

impl<'a> Field<'a> {
    pub(crate) fn new(size: Size, x: Axis<'a>, y: Axis<'a>) -> Field<'a> {
        let mut field = Field { size, x, y, svg: String::new() };
        let Size { width, height, left, right, top, bottom } = size;
        let mut svg = String::new();
        for &tick in &field.y.ticks {
            let (at, text) = (field.down(tick), (field.y.write)(tick));
            let _ = write!(
                svg,
                r#"<path class="grid" d="M{left} {at:.1}H{:.1}"/><text x="{:.1}" y="{:.1}" text-anchor="end">{text}</text>"#,
                width - right,
                left - 8.0,
                at + 4.0
            );
        }
        let floor = height - bottom;
        for &tick in &field.x.ticks {
            let (at, text) = (field.across(tick), (field.x.write)(tick));
            let _ = write!(
                svg,
                r#"<path class="axis" d="M{at:.1} {floor}v5"/><text x="{at:.1}" y="{}" text-anchor="middle">{text}</text>"#,
                floor + 19.0
            );
        }
        let (middle, high) = ((left + width - right) / 2.0, (top + floor) / 2.0);
        let _ = write!(
            svg,
            r#"<path class="axis" d="M{left} {floor}H{}"/><text class="label" x="{middle}" y="{}" text-anchor="middle">{}</text><text class="label" transform="translate(13 {high}) rotate(-90)" text-anchor="middle">{}</text>"#,
            width - right,
            height - 7.0,
            escape(field.x.label),
            escape(field.y.label)
        );
        field.svg = svg;
        field
    }

    /// Where a value of the x axis is drawn.
    pub(crate) fn across(&self, x: f64) -> f64 {
        self.size.left + (self.size.width - self.size.left - self.size.right) * self.x.share(x)
    }

    /// Where a value of the y axis is drawn.
    pub(crate) fn down(&self, y: f64) -> f64 {
        self.floor() - (self.floor() - self.size.top) * self.y.share(y)
    }

    fn floor(&self) -> f64 {
        self.size.height - self.size.bottom
    }

    /// Spans of the x axis, every other one tinted, with their names at the top where there is room: from, to, name.
    pub(crate) fn bands(&mut self, bands: &[(f64, f64, &str)]) {
        let (top, high) = (self.size.top, self.floor() - self.size.top);
        for (i, &(from, to, name)) in bands.iter().enumerate() {
            let (x, end) = (self.across(from), self.across(to));
            let (width, name) = (end - x, escape(name));
            if i % 2 == 0 {
                let _ = write!(
                    self.svg,
                    r#"<rect class="span" x="{x:.1}" y="{top}" width="{width:.1}" height="{high:.1}"><title>{name}</title></rect>"#
                );
            }
            // A letter of this size is about seven wide.
            if width > 7.0 * name.len() as f64 {
                let (middle, y) = (x + width / 2.0, top + 12.0);
                let _ = write!(
                    self.svg,
                    r#"<text class="halo" x="{middle:.1}" y="{y:.1}" text-anchor="middle">{name}</text>"#
                );
            }
        }
    }

    /// A line with the field under it tinted; what is higher than the field leaves it at the top.
    pub(crate) fn curve(&mut self, key: Key, points: impl Iterator<Item = (f64, f64)>) {
        let mut line = String::new();
        let mut ends: Option<(f64, f64)> = None;
        for (x, y) in points {
            let (across, down) = (self.across(x), self.down(y.min(self.y.to * 3.0)));
            let _ = write!(line, "{}{across:.1} {down:.1}", if ends.is_none() { "M" } else { "L" });
            ends = Some((ends.map_or(across, |e| e.0), across));
        }
        let Some((from, to)) = ends else { return };
        let (floor, style) = (self.floor(), key.style);
        let Size { width, left, right, top, .. } = self.size;
        let (width, height) = (width - left - right, floor - top);
        // An inner drawing cuts off what is outside it.
        let _ = write!(
            self.svg,
            r#"<svg x="{left}" y="{top}" width="{width}" height="{height}" viewBox="{left} {top} {width} {height}"><path class="area {style}" d="{line}L{to:.1} {floor}L{from:.1} {floor}Z"/><path class="line {style}" d="{line}"/></svg>"#
        );
    }

    /// A line without a field; it is broken where there is no value.
    pub(crate) fn line(&mut self, key: Key, points: impl Iterator<Item = Option<(f64, f64)>>) {
        let (mut line, mut broken) = (String::new(), true);
        for point in points {
            if let Some((x, y)) = point {
                let (across, down) = (self.across(x), self.down(y.min(self.y.to)));
                let _ = write!(line, "{}{across:.1} {down:.1}", if broken { "M" } else { "L" });
            }
            broken = point.is_none();
        }
        let _ = write!(self.svg, r#"<path class="line {}" d="{line}"/>"#, key.style);
    }

    /// A dashed line at a height.
    pub(crate) fn level(&mut self, y: f64) {
        let (left, end, at) = (self.size.left, self.size.width - self.size.right, self.down(y));
        let _ = write!(self.svg, r#"<path class="level" d="M{left} {at:.1}H{end}"/>"#);
    }

    /// A column from the floor up, that says what it is when pointed at.
    pub(crate) fn column(&mut self, style: &str, (from, to): (f64, f64), height: f64, title: &str) {
        let (x, end, top) = (self.across(from), self.across(to), self.down(height.min(self.y.to)));
        let _ = write!(
            self.svg,
            r#"<rect class="bar {style}" x="{x:.1}" y="{top:.1}" width="{:.1}" height="{:.1}"><title>{}</title></rect>"#,
            end - x,
            self.floor() - top,
            escape(title)
        );
    }

    /// A dot with its spread as a whisker, that says what it is when pointed at.
    pub(crate) fn whisker(&mut self, style: &str, point: &Point) {
        let [low, y, high] = [point.low, point.y, point.high].map(|y| self.down(y.min(self.y.to)));
        let x = self.across(point.x);
        let _ = write!(
            self.svg,
            r#"<g class="{style}"><title>{}</title><path class="whisker" d="M{x:.1} {low:.1}V{high:.1}"/><path class="dots" d="M{x:.1} {y:.1}h0"/></g>"#,
            escape(&point.title)
        );
    }

    /// A small name under the x axis, written upwards.
    pub(crate) fn name_below(&mut self, x: f64, name: &str) {
        let (x, y) = (self.across(x) + 3.0, self.floor() + 5.0);
        let _ = write!(
            self.svg,
            r#"<text class="tiny" transform="translate({x:.1} {y:.1}) rotate(-90)" text-anchor="end">{}</text>"#,
            escape(name)
        );
    }

    /// A dashed line across the field, named at its top in the given row of text.
    pub(crate) fn mark(&mut self, key: Key, x: f64, text: &str, row: f64) {
        let (at, floor, top) = (self.across(x), self.floor(), self.size.top);
        let (side, anchor) = if at > self.size.width * 0.7 { (-6.0, "end") } else { (6.0, "start") };
        let _ = write!(
            self.svg,
            r#"<path class="mark {0}" d="M{at:.1} {top}V{floor}"/><text class="halo ink-{0}" x="{1:.1}" y="{2:.1}" text-anchor="{anchor}">{3}</text>"#,
            key.style,
            at + side,
            top + 12.0 + 16.0 * row,
            escape(text)
        );
    }

    /// Columns `width` wide on the x axis, each a stack.
    pub(crate) fn columns(&mut self, width: f64, stacks: &[Vec<(Key, u64)>]) {
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
    pub(crate) fn points(&mut self, key: Key, points: impl Iterator<Item = (f64, f64)>) {
        let mut dots = String::new();
        for (x, y) in points {
            let _ = write!(dots, "M{:.1} {:.1}h0", self.across(x), self.down(y));
        }
        let _ = write!(self.svg, r#"<path class="dots {}" d="{dots}"/>"#, key.style);
    }

    /// A line through points, each with its spread as a whisker and its figures as a tooltip.
    pub(crate) fn series(&mut self, key: Key, points: &[Point]) {
        let mut line = String::new();
        let mut dots = String::new();
        for point in points {
            let (x, y) = (self.across(point.x), self.down(point.y));
            let _ = write!(line, "{}{x:.1} {y:.1}", if line.is_empty() { "M" } else { "L" });
            let _ = write!(
                dots,
                r#"<g><title>{}</title><path class="whisker" d="M{x:.1} {:.1}V{:.1}"/><path class="dots" d="M{x:.1} {y:.1}h0"/></g>"#,
                escape(&point.title),
                self.down(point.low),
                self.down(point.high)
            );
        }
        let _ = write!(self.svg, r#"<g class="{}"><path class="line" d="{line}"/>{dots}</g>"#, key.style);
    }

    /// Text in the field, its middle at a place given in the SVG's units.
    pub(crate) fn text(&mut self, x: f64, y: f64, text: &str) {
        let _ = write!(
            self.svg,
            r#"<text class="halo named" x="{x:.1}" y="{y:.1}" text-anchor="middle">{}</text>"#,
            escape(text)
        );
    }

    /// The finished drawing; `described` says what it shows to those who cannot see it.
    pub(crate) fn finish(self, described: &str) -> String {
        format!(
            r#"<svg viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>"#,
            self.size.width,
            self.size.height,
            escape(described),
            self.svg
        )
    }
}

/// A point of a series.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Point {
    pub(crate) x: f64,
    pub(crate) y: f64,
    /// The lower end of its spread.
    pub(crate) low: f64,
    /// The upper end.
    pub(crate) high: f64,
    /// What it says when pointed at.
    pub(crate) title: String,
}

/// A horizontal bar: its parts end to end, and what is written after it.
pub(crate) struct Bar<'a> {
    pub(crate) name: String,
    /// Key, length, and what the part says when pointed at.
    pub(crate) parts: Vec<(Key<'a>, f64, String)>,
    pub(crate) text: String,
}

/// Horizontal bars under each other. `names` and `texts` are the widths kept free for names and texts.
pub(crate) fn bars(rows: &[Bar], (names, texts): (f64, f64), described: &str) -> String {
    let step = ((SMALL.height - 8.0) / rows.len().max(1) as f64).clamp(19.0, 34.0);
    let total = |bar: &Bar| bar.parts.iter().map(|p| p.1).sum::<f64>();
    let most = rows.iter().map(total).fold(0.0, f64::max);
    let scale = (SMALL.width - names - texts) / if most > 0.0 { most } else { 1.0 };
    let height = SMALL.height.max(step * rows.len() as f64 + 8.0);
    let thick = step * 0.62;
    let mut svg = format!(
        r#"<svg viewBox="0 0 {} {height}" role="img" aria-label="{}">"#,
        SMALL.width,
        escape(described)
    );
    if rows.is_empty() {
        let _ = write!(svg, r#"<text x="{}" y="20">none</text>"#, SMALL.left);
    }
    for (i, bar) in rows.iter().enumerate() {
        let y = step * i as f64 + 8.0;
        let middle = y + thick / 2.0 + 4.0;
        let _ = write!(
            svg,
            r#"<text x="{}" y="{:.1}" text-anchor="end">{}</text>"#,
            names - 10.0,
            middle,
            escape(&bar.name)
        );
        let mut x = names;
        for (key, length, title) in bar.parts.iter().filter(|p| p.1 > 0.0) {
            let width = (length * scale).max(1.5);
            let _ = write!(
                svg,
                r#"<rect class="bar {}" x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{thick:.1}"><title>{}</title></rect>"#,
                key.style,
                escape(title)
            );
            x += width + 1.0;
        }
        let _ = write!(
            svg,
            r#"<text class="number" x="{:.1}" y="{middle:.1}">{}</text>"#,
            x + 7.0,
            escape(&bar.text)
        );
    }
    svg + "</svg>"
}

/// A plot with its heading, what it says (HTML, both), and its legend.
pub(crate) fn figure(title: &str, caption: &str, keys: &[Key], svg: &str) -> String {
    let legend: String = keys
        .iter()
        .map(|k| format!(r#"<li><i class="swatch {}"></i>{}</li>"#, k.style, escape(k.name)))
        .collect();
    let legend = if keys.is_empty() { String::new() } else { format!(r#"<ul class="legend">{legend}</ul>"#) };
    format!("<figure><figcaption><h3>{title}</h3><p>{caption}</p></figcaption>{legend}{svg}</figure>")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::markup::short;

    #[test]
    fn ticks_are_round_and_few() {
        let ticks = |max: f64| Axis::linear(max, "", short).ticks;
        assert_eq!(ticks(69.0), [0.0, 20.0, 40.0, 60.0]);
        assert_eq!(ticks(4.3), [0.0, 1.0, 2.0, 3.0, 4.0]);
        for max in [1.0, 7.0, 12.5, 545_000.0, 3.2e9] {
            let ticks = ticks(max);
            assert!((3..=7).contains(&ticks.len()), "{max}: {ticks:?}");
        }
        assert_eq!(Axis::whole(2.1, "threads").ticks, [0.0, 1.0, 2.0]);
    }

    #[test]
    fn equal_factors_are_equal_steps_on_a_logarithmic_axis() {
        let axis = Axis::logarithmic((1.0, 1000.0), [0.1, 1.0, 10.0, 1e4].into_iter(), "", short);
        assert_eq!(axis.ticks, [1.0, 10.0], "ticks outside are left out");
        let shares = [1.0, 10.0, 100.0, 1000.0].map(|v| (axis.share(v) * 3.0).round());
        assert_eq!(shares, [0.0, 1.0, 2.0, 3.0]);
        assert!(axis.share(0.0).is_finite(), "zero has no logarithm");
    }
}
