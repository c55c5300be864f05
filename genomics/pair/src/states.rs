//! States of copies that a stretch of a tumour's genome may be in, and how likely each is before anything is seen.

/// Copies of the one parent's allele and of the other's, the more frequent one first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct State {
    /// Copies on average over the tumour's cells.
    pub copies: [f64; 2],
    /// Those of cells that have the fewest.
    pub whole: [u8; 2],
    /// Share of the tumour's cells of which one parent's copy is lost.
    pub lost: f64,
    /// Natural logarithm of how likely it is in a genome that was not doubled, and in one that was.
    pub prior: [f64; 2],
}

/// Copies, and how likely: of a genome that changed bit by bit, and of one that was doubled as a whole and then changed.
const WHOLE: [([u8; 2], [f64; 2]); 24] = [
    ([1, 1], [0.50, 0.04]),
    ([1, 0], [0.13, 0.03]),
    ([2, 1], [0.13, 0.13]),
    ([2, 0], [0.06, 0.09]),
    ([2, 2], [0.05, 0.36]),
    ([3, 1], [0.03, 0.05]),
    ([3, 0], [0.015, 0.015]),
    ([3, 2], [0.012, 0.12]),
    ([4, 1], [0.01, 0.015]),
    ([3, 3], [0.006, 0.04]),
    ([4, 2], [0.006, 0.04]),
    ([4, 0], [0.005, 0.015]),
    ([5, 1], [0.004, 0.006]),
    ([4, 3], [0.003, 0.01]),
    ([5, 0], [0.002, 0.003]),
    ([5, 2], [0.002, 0.006]),
    ([4, 4], [0.002, 0.006]),
    ([6, 1], [0.002, 0.003]),
    ([5, 3], [0.001, 0.004]),
    ([6, 2], [0.001, 0.003]),
    ([7, 1], [0.001, 0.001]),
    ([8, 1], [0.001, 0.001]),
    ([8, 2], [0.0005, 0.001]),
    ([0, 0], [0.003, 0.003]),
];
/// How likely a stretch is to be in two states in two parts of the cells, and the parts that are tried.
const PARTLY: f64 = 0.03;
const PARTS: [f64; 7] = [0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875];
/// Parts of the cells that one large subclone may be, as many as are tried.
const SUBCLONES: u32 = 17;
/// Copies from which on a stretch is not in two states.
const FEW: u8 = 4;

/// States of all cells.
pub fn whole() -> Vec<State> {
    WHOLE
        .iter()
        .map(|&(whole, prior)| State {
            copies: whole.map(f64::from),
            whole,
            lost: f64::from(u8::from(whole[1] == 0 && whole[0] > 0)),
            prior: prior.map(f64::ln),
        })
        .collect()
}

/// States of parts of the cells: a copy of one allele more in some than in the others.
pub fn partly() -> Vec<State> {
    PARTS.iter().flat_map(|part| in_part(*part, (PARTLY / PARTS.len() as f64).ln())).collect()
}

/// Those where all stretches that differ do so in the same part of the cells, for each such part.
pub fn subclones() -> Vec<Vec<State>> {
    (0..SUBCLONES).map(|i| in_part(0.1 + 0.8 * f64::from(i) / f64::from(SUBCLONES - 1), 0.0)).collect()
}

/// States of one part of the cells.
fn in_part(part: f64, unlikely: f64) -> Vec<State> {
    let mut all = Vec::new();
    for from in whole() {
        let [a, b] = from.whole;
        if a + b >= FEW || a + b == 0 {
            continue;
        }
        // Where both alleles are alike it is the same, whichever there is more of.
        let more = [[a + 1, b], [a, b + 1]];
        for [c, d] in more.into_iter().take(if a == b { 1 } else { 2 }) {
            let copies = [f64::from(a) + part * f64::from(c - a), f64::from(b) + part * f64::from(d - b)];
            let lost = f64::from(u8::from(b == 0)) * (1.0 - part) + f64::from(u8::from(d == 0)) * part;
            let prior = from.prior.map(|log| log + unlikely);
            all.push(State { copies, whole: from.whole, lost, prior });
        }
    }
    all
}
