//! How deep both samples are at some roots of single places, so that copies of stretches of the genome can be told.

use std::collections::BinaryHeap;

use serde::{Deserialize, Serialize};

use crate::sampled::Sampled;

/// A root, and how many pairs of each sample have it, copies of one molecule among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Deep {
    /// The root, by which it can be found in a genome.
    pub root: u64,
    /// Pairs of the normal and of the tumour.
    pub depth: [u32; 2],
}

/// Roots that are kept: those of the smallest hashes. At 30x they tell the ratio of depths of a hundredth of a genome to some 1 %.
const KEPT: usize = 100_000;
/// A root is of a single place, of which the normal has as many copies as of others, if its depth is within these of the usual one.
const SINGLE: [f64; 2] = [0.6, 1.5];

/// Of what was sampled, where `usual` molecules of the normal cover a place.
pub fn deep(sampled: &Sampled, usual: f64) -> Vec<Deep> {
    let mut kept: BinaryHeap<(u64, Deep)> = BinaryHeap::new();
    for (root, depth, molecules) in sampled.depths() {
        let normal = f64::from(molecules[0]);
        if normal < SINGLE[0] * usual || normal > SINGLE[1] * usual {
            continue;
        }
        let hash = (root ^ (root >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let own = (hash ^ (hash >> 32), Deep { root, depth });
        if kept.len() < KEPT {
            kept.push(own);
        } else if kept.peek().is_some_and(|last| own < *last) {
            kept.pop();
            kept.push(own);
        }
    }
    let mut kept: Vec<Deep> = kept.into_iter().map(|(_, own)| own).collect();
    kept.sort_unstable();
    kept
}
