//! Heat maps of a quantity for pairs of NUMA nodes, with the value written in each cell.

use std::fmt::Write;

use crate::markup::escape_html;

/// A cell of a heat map: the value for one pair of nodes.
pub struct HeatMapCell {
    pub value: f64,
    /// Text in the cell.
    pub text: String,
    /// Tooltip of the cell.
    pub title: String,
}

/// A heat map of a quantity for pairs of nodes.
pub struct HeatMap<'a> {
    pub rows: &'a [u32],
    pub columns: &'a [u32],
    /// The cells, row by row; `None` if nothing was measured for the pair of nodes.
    pub cells: Vec<Option<HeatMapCell>>,
    /// CSS class that determines the colour.
    pub style: &'static str,
    /// Axis titles of the rows and of the columns.
    pub axes: (&'static str, &'static str),
    pub alt_text: String,
}

/// Number of shades of each colour in the style sheet.
const NUM_SHADES: f64 = 8.0;
const LEFT_MARGIN: f64 = 66.0;
const TOP_MARGIN: f64 = 44.0;

impl HeatMap<'_> {
    /// Draws the heat map as SVG. Larger values have stronger shades.
    pub fn to_svg(&self) -> String {
        let n = self.columns.len().max(1) as f64;
        let wide = (372.0 / n).clamp(34.0, 92.0);
        let high = (wide * 0.72).clamp(26.0, 44.0);
        let width = (LEFT_MARGIN + n * wide + 2.0).max(440.0);
        // Room for the row name, which is written vertically.
        let height = (TOP_MARGIN + self.rows.len() as f64 * high + 6.0).max(112.0);
        let left = LEFT_MARGIN.max((width - n * wide) / 2.0);
        let values = || self.cells.iter().flatten().map(|c| c.value);
        let (low, top) = (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max));
        // The scale spans at least a factor of two, so that similar values look alike.
        let low = low.min(top / 2.0);
        let shade = |value: f64| {
            let share = if top > low { (value - low) / (top - low) } else { 0.0 };
            (share * (NUM_SHADES - 1.0)).round().clamp(0.0, NUM_SHADES - 1.0)
        };
        let mut svg = format!(
            r#"<svg class="heat {}" viewBox="0 0 {width:.0} {height:.0}" style="min-width:{:.0}px" role="img" aria-label="{}"><text class="label" x="{:.1}" y="13" text-anchor="middle">{}</text><text class="label" transform="translate({:.1} {:.1}) rotate(-90)" text-anchor="middle">{}</text>"#,
            self.style,
            if n > 8.0 { width * 0.8 } else { 0.0 },
            escape_html(&self.alt_text),
            left + n * wide / 2.0,
            self.axes.1,
            left - 40.0,
            (TOP_MARGIN + self.rows.len() as f64 * high / 2.0).max(56.0),
            self.axes.0
        );
        for (i, node) in self.columns.iter().enumerate() {
            let x = left + (i as f64 + 0.5) * wide;
            let _ = write!(svg, r#"<text x="{x:.1}" y="{:.1}" text-anchor="middle">{node}</text>"#, TOP_MARGIN - 9.0);
        }
        for (j, node) in self.rows.iter().enumerate() {
            let y = TOP_MARGIN + j as f64 * high;
            let middle = y + high / 2.0 + 4.0;
            let _ = write!(svg, r#"<text x="{:.1}" y="{middle:.1}" text-anchor="end">{node}</text>"#, left - 9.0);
            for i in 0..self.columns.len() {
                let x = left + i as f64 * wide;
                let place = format!(
                    r#"x="{:.1}" y="{:.1}" width="{:.1}" height="{:.1}" rx="2""#,
                    x + 1.0,
                    y + 1.0,
                    wide - 2.0,
                    high - 2.0
                );
                match self.cells.get(j * self.columns.len() + i).and_then(Option::as_ref) {
                    Some(cell) => {
                        let _ = write!(
                            svg,
                            r#"<g class="h{:.0}"><title>{}</title><rect {place}/><text x="{:.1}" y="{middle:.1}" text-anchor="middle">{}</text></g>"#,
                            shade(cell.value),
                            escape_html(&cell.title),
                            x + wide / 2.0,
                            escape_html(&cell.text)
                        );
                    }
                    None => {
                        let _ = write!(svg, r#"<rect class="unmeasured" {place}><title>not measured</title></rect>"#);
                    }
                }
            }
        }
        svg + "</svg>"
    }
}
