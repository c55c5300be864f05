//! Plots as inline SVG. Colours come from the style sheet of the page, so they follow dark mode and print.

use std::fmt::Write;

use genuma_work::quantity::group_thousands;

use super::markup::escape_html;

/// A legend entry: CSS class and name.
#[derive(Debug, Clone, Copy)]
pub struct LegendKey<'a> {
    /// CSS class of the mark.
    pub style: &'static str,
    /// Text of the entry.
    pub name: &'a str,
}

/// An axis with its range, ticks, label and number format.
pub struct Axis<'a> {
    from: f64,
    to: f64,
    logarithmic: bool,
    ticks: Vec<f64>,
    label: &'a str,
    write: fn(f64) -> String,
}

impl<'a> Axis<'a> {
    /// Creates a linear axis from 0 to `to` with about five round ticks, formatted by `write`.
    pub fn with_linear_scale(to: f64, label: &'a str, write: fn(f64) -> String) -> Axis<'a> {
        let rough = to / 5.0;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|s| s * power).find(|&s| s >= rough * 0.999);
        let step = step.unwrap_or(1.0);
        let ticks = (0..).map(|i| f64::from(i) * step).take_while(|&t| t <= to * 1.0001).collect();
        Axis { from: 0.0, to, logarithmic: false, ticks, label, write }
    }

    /// Creates a linear axis from 0 to `to` for counts. It has ticks at whole numbers only.
    pub fn with_whole_number_ticks(to: f64, label: &'a str) -> Axis<'a> {
        let mut axis = Axis::with_linear_scale(to, label, |n| group_thousands(n as u64));
        axis.ticks.retain(|tick| (tick - tick.round()).abs() < 1e-6);
        axis
    }

    /// Creates a linear axis from 0 to `to` without ticks, for plots that label their elements themselves.
    pub fn without_ticks(to: f64, label: &'a str) -> Axis<'a> {
        Axis { from: 0.0, to, logarithmic: false, ticks: Vec::new(), label, write: |_| String::new() }
    }

    /// Creates a logarithmic axis. `from` must be positive. Ticks outside the range are left out.
    pub fn with_logarithmic_scale(
        (from, to): (f64, f64),
        ticks: impl Iterator<Item = f64>,
        label: &'a str,
        write: fn(f64) -> String,
    ) -> Axis<'a> {
        let ticks = ticks.filter(|&t| t >= from * 0.9999 && t <= to * 1.0001).collect();
        Axis { from, to, logarithmic: true, ticks, label, write }
    }

    /// Returns the position of a value on the axis: 0 at its start, 1 at its end.
    fn relative_position(&self, value: f64) -> f64 {
        if self.logarithmic {
            (value.max(self.from / 2.0) / self.from).ln() / (self.to / self.from).ln()
        } else {
            (value - self.from) / (self.to - self.from)
        }
    }
}

/// Width, height and margins of a plot in SVG units.
#[derive(Debug, Clone, Copy)]
pub struct PlotSize {
    /// Width of the whole plot.
    pub width: f64,
    /// Height of the whole plot.
    pub height: f64,
    /// Margin to the left of the plot area.
    pub left: f64,
    /// Margin to the right of it.
    pub right: f64,
    /// Margin above it.
    pub top: f64,
    /// Margin below it.
    pub bottom: f64,
}

/// Size of a plot that shares a row of the page with one or two others.
pub const SMALL_PLOT_SIZE: PlotSize =
    PlotSize { width: 440.0, height: 250.0, left: 62.0, right: 10.0, top: 10.0, bottom: 46.0 };

/// A plot to which curves, points, bars and texts are added, and which then becomes an SVG.
pub struct PlotArea<'a> {
    size: PlotSize,
    x: Axis<'a>,
    y: Axis<'a>,
    svg: String,
}

impl<'a> PlotArea<'a> {
    /// Upper end of the y-axis.
    pub fn max_y(&self) -> f64 {
        self.y.to
    }

    /// Creates an empty plot: axes, ticks and labels.
    pub fn empty(size: PlotSize, x: Axis<'a>, y: Axis<'a>) -> PlotArea<'a> {
        let mut field = PlotArea { size, x, y, svg: String::new() };
        let PlotSize { width, height, left, right, top, bottom } = size;
        let mut svg = String::new();
        for &tick in &field.y.ticks {
            let (at, text) = (field.y_position(tick), (field.y.write)(tick));
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
            let (at, text) = (field.x_position(tick), (field.x.write)(tick));
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
            escape_html(field.x.label),
            escape_html(field.y.label)
        );
        field.svg = svg;
        field
    }

    /// Returns the SVG x coordinate of a value on the x axis.
    pub fn x_position(&self, x: f64) -> f64 {
        self.size.left + (self.size.width - self.size.left - self.size.right) * self.x.relative_position(x)
    }

    /// Returns the SVG y coordinate of a value on the y axis.
    pub fn y_position(&self, y: f64) -> f64 {
        self.baseline() - (self.baseline() - self.size.top) * self.y.relative_position(y)
    }

    fn baseline(&self) -> f64 {
        self.size.height - self.size.bottom
    }

    /// Colours the background of every other range of the x axis, and writes the names of the ranges at the top where
    /// they fit. `bands`: start, end, name.
    pub fn add_named_x_axis_bands(&mut self, bands: &[(f64, f64, &str)]) {
        let (top, high) = (self.size.top, self.baseline() - self.size.top);
        for (i, &(from, to, name)) in bands.iter().enumerate() {
            let (x, end) = (self.x_position(from), self.x_position(to));
            let (width, name) = (end - x, escape_html(name));
            if i % 2 == 0 {
                let _ = write!(
                    self.svg,
                    r#"<rect class="span" x="{x:.1}" y="{top}" width="{width:.1}" height="{high:.1}"><title>{name}</title></rect>"#
                );
            }
            // A letter of this font size is about 7 units wide.
            if width > 7.0 * name.len() as f64 {
                let (middle, y) = (x + width / 2.0, top + 12.0);
                let _ = write!(
                    self.svg,
                    r#"<text class="halo" x="{middle:.1}" y="{y:.1}" text-anchor="middle">{name}</text>"#
                );
            }
        }
    }

    /// Adds a curve with the area below it filled. The curve is clipped at the top of the plot.
    pub fn add_filled_curve(&mut self, key: LegendKey, points: impl Iterator<Item = (f64, f64)>) {
        let mut line = String::new();
        let mut ends: Option<(f64, f64)> = None;
        for (x, y) in points {
            let (across, down) = (self.x_position(x), self.y_position(y.min(self.y.to * 3.0)));
            let _ = write!(line, "{}{across:.1} {down:.1}", if ends.is_none() { "M" } else { "L" });
            ends = Some((ends.map_or(across, |e| e.0), across));
        }
        let Some((from, to)) = ends else { return };
        let (floor, style) = (self.baseline(), key.style);
        let PlotSize { width, left, right, top, .. } = self.size;
        let (width, height) = (width - left - right, floor - top);
        // The nested SVG clips what is outside it.
        let _ = write!(
            self.svg,
            r#"<svg x="{left}" y="{top}" width="{width}" height="{height}" viewBox="{left} {top} {width} {height}"><path class="area {style}" d="{line}L{to:.1} {floor}L{from:.1} {floor}Z"/><path class="line {style}" d="{line}"/></svg>"#
        );
    }

    /// Adds a line. A point that is `None` is a gap in the line.
    pub fn add_line(&mut self, key: LegendKey, points: impl Iterator<Item = Option<(f64, f64)>>) {
        let (mut line, mut broken) = (String::new(), true);
        for point in points {
            if let Some((x, y)) = point {
                let (across, down) = (self.x_position(x), self.y_position(y.min(self.y.to)));
                let _ = write!(line, "{}{across:.1} {down:.1}", if broken { "M" } else { "L" });
            }
            broken = point.is_none();
        }
        let _ = write!(self.svg, r#"<path class="line {}" d="{line}"/>"#, key.style);
    }

    /// Adds a dashed horizontal line at a value of the y axis.
    pub fn add_horizontal_line(&mut self, y: f64) {
        let (left, end, at) = (self.size.left, self.size.width - self.size.right, self.y_position(y));
        let _ = write!(self.svg, r#"<path class="level" d="M{left} {at:.1}H{end}"/>"#);
    }

    /// Adds a bar from the x axis up to `height`, over a range of the x axis. `title` is its tooltip.
    pub fn add_vertical_bar(&mut self, style: &str, (from, to): (f64, f64), height: f64, title: &str) {
        let (x, end, top) = (self.x_position(from), self.x_position(to), self.y_position(height.min(self.y.to)));
        let _ = write!(
            self.svg,
            r#"<rect class="bar {style}" x="{x:.1}" y="{top:.1}" width="{:.1}" height="{:.1}"><title>{}</title></rect>"#,
            end - x,
            self.baseline() - top,
            escape_html(title)
        );
    }

    /// Adds a point with an error bar and a tooltip.
    pub fn add_point_with_error_bar(&mut self, style: &str, point: &PlotPoint) {
        let [low, y, high] = [point.low, point.y, point.high].map(|y| self.y_position(y.min(self.y.to)));
        let x = self.x_position(point.x);
        let _ = write!(
            self.svg,
            r#"<g class="{style}"><title>{}</title><path class="whisker" d="M{x:.1} {low:.1}V{high:.1}"/><path class="dots" d="M{x:.1} {y:.1}h0"/></g>"#,
            escape_html(&point.title)
        );
    }

    /// Adds a small vertical label below the x axis.
    pub fn add_label_below_axis(&mut self, x: f64, name: &str) {
        let (x, y) = (self.x_position(x) + 3.0, self.baseline() + 5.0);
        let _ = write!(
            self.svg,
            r#"<text class="tiny" transform="translate({x:.1} {y:.1}) rotate(-90)" text-anchor="end">{}</text>"#,
            escape_html(name)
        );
    }

    /// Adds a dashed vertical line at `x`, with a label at the top. `row` is the line of text of the label, from 0, so
    /// that labels do not overlap.
    pub fn add_vertical_line(&mut self, key: LegendKey, x: f64, text: &str, row: f64) {
        let (at, floor, top) = (self.x_position(x), self.baseline(), self.size.top);
        let (side, anchor) = if at > self.size.width * 0.7 { (-6.0, "end") } else { (6.0, "start") };
        let _ = write!(
            self.svg,
            r#"<path class="mark {0}" d="M{at:.1} {top}V{floor}"/><text class="halo ink-{0}" x="{1:.1}" y="{2:.1}" text-anchor="{anchor}">{3}</text>"#,
            key.style,
            at + side,
            top + 12.0 + 16.0 * row,
            escape_html(text)
        );
    }

    /// Adds a histogram of stacked columns. Each column is `width` wide in units of the x axis; the first one starts at
    /// 0.
    pub fn add_stacked_columns(&mut self, width: f64, stacks: &[Vec<(LegendKey, u64)>]) {
        for (i, stack) in stacks.iter().enumerate() {
            let (from, to) = (self.x_position(i as f64 * width), self.x_position((i + 1) as f64 * width));
            let mut base = 0.0;
            for (key, n) in stack.iter().filter(|s| s.1 > 0) {
                let (low, high) = (self.y_position(base), self.y_position(base + *n as f64));
                let _ = write!(
                    self.svg,
                    r#"<rect class="bar {}" x="{:.1}" y="{high:.1}" width="{:.1}" height="{:.1}"><title>{}: {}</title></rect>"#,
                    key.style,
                    from + 0.75,
                    to - from - 1.5,
                    low - high,
                    key.name,
                    group_thousands(*n)
                );
                base += *n as f64;
            }
        }
    }

    /// Adds a dot for each point.
    pub fn add_points(&mut self, key: LegendKey, points: impl Iterator<Item = (f64, f64)>) {
        let mut dots = String::new();
        for (x, y) in points {
            let _ = write!(dots, "M{:.1} {:.1}h0", self.x_position(x), self.y_position(y));
        }
        let _ = write!(self.svg, r#"<path class="dots {}" d="{dots}"/>"#, key.style);
    }

    /// Adds a horizontal line at `y` over a range of the x axis. `title` is its tooltip.
    pub fn add_horizontal_segment(&mut self, style: &str, (from, to): (f64, f64), y: f64, title: &str) {
        let (x, end, at) = (self.x_position(from), self.x_position(to), self.y_position(y.min(self.y.to)));
        let _ = write!(
            self.svg,
            r#"<g class="{style}"><title>{}</title><path class="line" d="M{x:.1} {at:.1}H{end:.1}"/></g>"#,
            escape_html(title)
        );
    }

    /// Adds a line through points, each with an error bar and a tooltip.
    pub fn add_line_with_error_bars(&mut self, key: LegendKey, points: &[PlotPoint]) {
        let mut line = String::new();
        let mut dots = String::new();
        for point in points {
            let (x, y) = (self.x_position(point.x), self.y_position(point.y));
            let _ = write!(line, "{}{x:.1} {y:.1}", if line.is_empty() { "M" } else { "L" });
            let _ = write!(
                dots,
                r#"<g><title>{}</title><path class="whisker" d="M{x:.1} {:.1}V{:.1}"/><path class="dots" d="M{x:.1} {y:.1}h0"/></g>"#,
                escape_html(&point.title),
                self.y_position(point.low),
                self.y_position(point.high)
            );
        }
        let _ = write!(self.svg, r#"<g class="{}"><path class="line" d="{line}"/>{dots}</g>"#, key.style);
    }

    /// Adds a text centred at a position in SVG units.
    pub fn add_text(&mut self, x: f64, y: f64, text: &str) {
        let _ = write!(
            self.svg,
            r#"<text class="halo named" x="{x:.1}" y="{y:.1}" text-anchor="middle">{}</text>"#,
            escape_html(text)
        );
    }

    /// Returns the plot as SVG. `described` is the text for screen readers.
    pub fn into_svg(self, described: &str) -> String {
        format!(
            r#"<svg viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>"#,
            self.size.width,
            self.size.height,
            escape_html(described),
            self.svg
        )
    }
}

/// A point of a plot with its error bar and tooltip.
#[derive(Debug, Clone, PartialEq)]
pub struct PlotPoint {
    /// Value on the x-axis.
    pub x: f64,
    /// Value on the y-axis.
    pub y: f64,
    /// Lower end of the error bar.
    pub low: f64,
    /// Upper end of the error bar.
    pub high: f64,
    /// Text of the tooltip.
    pub title: String,
}

/// A horizontal bar of several segments, with its name to the left and a text to the right.
pub struct StackedHorizontalBar<'a> {
    /// Name to the left of the bar.
    pub name: String,
    /// Legend entry, length and tooltip of each segment.
    pub parts: Vec<(LegendKey<'a>, f64, String)>,
    /// Text to the right of the bar.
    pub text: String,
}

/// Draws horizontal bars below each other. `names` and `texts` are the widths reserved for the names and for the texts,
/// in SVG units; `described` is the text for screen readers.
pub fn horizontal_bar_chart(rows: &[StackedHorizontalBar], (names, texts): (f64, f64), described: &str) -> String {
    let step = ((SMALL_PLOT_SIZE.height - 8.0) / rows.len().max(1) as f64).clamp(19.0, 34.0);
    let total = |bar: &StackedHorizontalBar| bar.parts.iter().map(|p| p.1).sum::<f64>();
    let longest = rows.iter().map(total).fold(0.0, f64::max);
    let scale = (SMALL_PLOT_SIZE.width - names - texts) / if longest > 0.0 { longest } else { 1.0 };
    let height = SMALL_PLOT_SIZE.height.max(step * rows.len() as f64 + 8.0);
    let thick = step * 0.62;
    let mut svg = format!(
        r#"<svg viewBox="0 0 {} {height}" role="img" aria-label="{}">"#,
        SMALL_PLOT_SIZE.width,
        escape_html(described)
    );
    if rows.is_empty() {
        let _ = write!(svg, r#"<text x="{}" y="20">none</text>"#, SMALL_PLOT_SIZE.left);
    }
    for (i, bar) in rows.iter().enumerate() {
        let y = step * i as f64 + 8.0;
        let middle = y + thick / 2.0 + 4.0;
        let _ = write!(
            svg,
            r#"<text x="{}" y="{:.1}" text-anchor="end">{}</text>"#,
            names - 10.0,
            middle,
            escape_html(&bar.name)
        );
        let mut x = names;
        for (key, length, title) in bar.parts.iter().filter(|p| p.1 > 0.0) {
            let width = (length * scale).max(1.5);
            let _ = write!(
                svg,
                r#"<rect class="bar {}" x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{thick:.1}"><title>{}</title></rect>"#,
                key.style,
                escape_html(title)
            );
            x += width + 1.0;
        }
        let _ =
            write!(svg, r#"<text class="number" x="{:.1}" y="{middle:.1}">{}</text>"#, x + 7.0, escape_html(&bar.text));
    }
    svg + "</svg>"
}

/// Returns an HTML figure with title and caption (both HTML), legend, and plot (SVG).
pub fn html_figure(title: &str, caption: &str, keys: &[LegendKey], svg: &str) -> String {
    let legend: String =
        keys.iter().map(|k| format!(r#"<li><i class="swatch {}"></i>{}</li>"#, k.style, escape_html(k.name))).collect();
    let legend = if keys.is_empty() { String::new() } else { format!(r#"<ul class="legend">{legend}</ul>"#) };
    format!("<figure><figcaption><h3>{title}</h3><p>{caption}</p></figcaption>{legend}{svg}</figure>")
}

#[cfg(test)]
mod tests {
    use genuma_work::quantity::format_with_si_prefix;

    use super::*;

    #[test]
    fn ticks_are_round_and_few() {
        let ticks = |max: f64| Axis::with_linear_scale(max, "", format_with_si_prefix).ticks;
        assert_eq!(ticks(69.0), [0.0, 20.0, 40.0, 60.0]);
        assert_eq!(ticks(4.3), [0.0, 1.0, 2.0, 3.0, 4.0]);
        for max in [1.0, 7.0, 12.5, 545_000.0, 3.2e9] {
            let ticks = ticks(max);
            assert!((3..=7).contains(&ticks.len()), "{max}: {ticks:?}");
        }
        assert_eq!(Axis::with_whole_number_ticks(2.1, "threads").ticks, [0.0, 1.0, 2.0]);
    }

    #[test]
    fn equal_factors_are_equal_steps_on_a_logarithmic_axis() {
        let axis =
            Axis::with_logarithmic_scale((1.0, 1000.0), [0.1, 1.0, 10.0, 1e4].into_iter(), "", format_with_si_prefix);
        assert_eq!(axis.ticks, [1.0, 10.0], "ticks outside are left out");
        let shares = [1.0, 10.0, 100.0, 1000.0].map(|v| (axis.relative_position(v) * 3.0).round());
        assert_eq!(shares, [0.0, 1.0, 2.0, 3.0]);
        assert!(axis.relative_position(0.0).is_finite(), "zero has no logarithm");
    }
}
