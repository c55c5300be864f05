//! The simplex search of Nelder and Mead (1965), with their coefficients.

/// Finds a local minimum of `cost` near `start`. Returns the minimum and the parameters at which it is.
pub(crate) fn minimise_cost(cost: &dyn Fn(&[f64]) -> f64, start: &[f64]) -> (f64, Vec<f64>) {
    let mut found = search_simplex(cost, start, FIRST_STEP);
    // A simplex may collapse before it reaches the minimum: restart.
    for _ in 0..RESTARTS {
        found = search_simplex(cost, &found.1, FIRST_STEP / 2.0);
    }
    found
}

const FIRST_STEP: f64 = 0.7;
const RESTARTS: usize = 2;
const MAX_ROUNDS: usize = 400;
const COST_TOLERANCE: f64 = 1e-5;

fn search_simplex(cost: &dyn Fn(&[f64]) -> f64, start: &[f64], step: f64) -> (f64, Vec<f64>) {
    let corner = |at: Vec<f64>| (cost(&at), at);
    let mut corners = vec![corner(start.to_vec())];
    for axis in 0..start.len() {
        let mut at = start.to_vec();
        at[axis] += step;
        corners.push(corner(at));
    }
    let last = start.len();
    for _ in 0..MAX_ROUNDS {
        corners.sort_by(|a, b| a.0.total_cmp(&b.0));
        if corners[last].0 - corners[0].0 <= COST_TOLERANCE * (1.0 + corners[0].0.abs()) {
            break;
        }
        let middle: Vec<f64> =
            (0..last).map(|axis| corners[..last].iter().map(|c| c.1[axis]).sum::<f64>() / last as f64).collect();
        let towards = |share: f64| {
            let at = middle.iter().zip(&corners[last].1).map(|(m, worst)| m + share * (m - worst)).collect();
            corner(at)
        };
        let mirrored = towards(1.0);
        if mirrored.0 < corners[0].0 {
            let further = towards(2.0);
            corners[last] = if further.0 < mirrored.0 { further } else { mirrored };
        } else if mirrored.0 < corners[last - 1].0 {
            corners[last] = mirrored;
        } else {
            let nearer = towards(if mirrored.0 < corners[last].0 { 0.5 } else { -0.5 });
            if nearer.0 < corners[last].0.min(mirrored.0) {
                corners[last] = nearer;
            } else {
                let best = corners[0].1.clone();
                for c in &mut corners[1..] {
                    *c = corner(best.iter().zip(&c.1).map(|(b, x)| b + (x - b) / 2.0).collect());
                }
            }
        }
    }
    corners.swap_remove(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_bottom_of_a_bent_valley() {
        // Rosenbrock's function (1960): flat along a curve, steep across it.
        let valley = |at: &[f64]| (1.0 - at[0]).powi(2) + 100.0 * (at[1] - at[0] * at[0]).powi(2);
        let (cost, at) = minimise_cost(&valley, &[-1.2, 1.0]);
        assert!(cost < 1e-3 && (at[0] - 1.0).abs() < 0.05, "{at:?}");
        assert_eq!(minimise_cost(&valley, &[-1.2, 1.0]), (cost, at));
    }
}
