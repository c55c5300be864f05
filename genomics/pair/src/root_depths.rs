//! Depths of both samples at sampled single-copy roots: the data from which copy numbers of the tumour are estimated.

use std::collections::BinaryHeap;

use serde::{Deserialize, Serialize};

use crate::purity_params::PURITY_PARAMS;
use crate::sketch::KmerSketch;

/// A root and its depth in both samples. Depths are numbers of read pairs, duplicates included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct RootDepth {
    /// The root: the canonical (k−2)-mer, which can be located on a reference.
    pub root: u64,
    /// Number of read pairs with the root, in the normal and in the tumour.
    pub depth: [u32; 2],
}

/// Selects up to `PURITY_PARAMS.max_roots` single-copy roots of a sketch, those with the smallest hashes, and sorts
/// them by root. `modal_depth` is the modal depth of the normal in molecules.
pub(crate) fn select_single_copy_roots(sampled: &KmerSketch, modal_depth: f64) -> Vec<RootDepth> {
    let mut kept: BinaryHeap<(u64, RootDepth)> = BinaryHeap::new();
    for (root, depth, molecules) in sampled.pairs_and_molecules_by_root() {
        let normal = f64::from(molecules[0]);
        if normal < PURITY_PARAMS.single_copy_range[0] * modal_depth
            || normal > PURITY_PARAMS.single_copy_range[1] * modal_depth
        {
            continue;
        }
        let hash = (root ^ (root >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let own = (hash ^ (hash >> 32), RootDepth { root, depth });
        if kept.len() < PURITY_PARAMS.max_roots {
            kept.push(own);
        } else if kept.peek().is_some_and(|last| own < *last) {
            kept.pop();
            kept.push(own);
        }
    }
    let mut kept: Vec<RootDepth> = kept.into_iter().map(|(_, own)| own).collect();
    kept.sort_unstable();
    kept
}
