//! Places somatic variants that are close to each other on one haplotype: variant clusters and multi-nucleotide
//! variants (MNVs).

use serde::Serialize;

use crate::error::Result;
use crate::rng::Rng;
use crate::small_variants::{ProposedVariant, SmallVariantGenerator, SmallVariantKind};
use crate::tumour::PlacedVariant;
use crate::variant::{ContigSpan, GenomePosition};
use crate::variant_placer::{MAX_PLACEMENT_TRIES, VariantPlacer, no_space_error};

/// Numbers of variant clusters and of MNVs.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct LinkedVariantParams {
    /// Number of variant clusters: 2–5 SNVs and short indels within 3–120 bp on one haplotype.
    pub clusters: usize,
    /// Number of MNVs: substitutions of 2–3 adjacent bases.
    pub mnvs: usize,
}

/// Minimum and maximum number of variants in a cluster.
const CLUSTER_SIZE: (usize, usize) = (2, 5);
/// Minimum and maximum distance between the first and the last variant of a cluster, bp.
const CLUSTER_EXTENT_BP: (usize, usize) = (3, 120);
/// Share of indels among the variants of a cluster.
const INDEL_SHARE: f64 = 0.3;
/// Longest indel in a cluster, bp.
const MAX_CLUSTER_INDEL_BP: usize = 6;

/// Places variant clusters and MNVs, each on one haplotype of one clone.
pub(crate) fn place_variant_clusters_and_mnvs(placer: &mut VariantPlacer, params: &LinkedVariantParams) -> Result<()> {
    if params.clusters + params.mnvs == 0 {
        return Ok(());
    }
    let maker = SmallVariantGenerator::with_resizable_repeats_of_genome(placer.genome, placer.occupied);
    for i in 0..params.clusters {
        let members = (0..MAX_PLACEMENT_TRIES)
            .find_map(|_| propose_cluster(placer, &maker))
            .ok_or_else(|| no_space_error("clusters of variants", i, params.clusters))?;
        add_to_tumour(placer, members, Some(i + 1));
    }
    for i in 0..params.mnvs {
        let made = (0..MAX_PLACEMENT_TRIES)
            .find_map(|_| {
                let at = placer.occupied.draw_allowed_position(placer.rng);
                let length = 2 + placer.rng.draw_below(2);
                let made = maker.propose_substitution(at, placer.rng, length)?;
                placer.can_place_small_variant(&made).then_some(made)
            })
            .ok_or_else(|| no_space_error("substitutions of several bases", i, params.mnvs))?;
        add_to_tumour(placer, vec![made], None);
    }
    placer.tumour.small.sort_by_key(|p| p.variant.position);
    Ok(())
}

/// Adds the variants of a cluster, or one MNV, to one haplotype of a random clone. `cluster` is the number of the
/// cluster; `None` for an MNV.
fn add_to_tumour(placer: &mut VariantPlacer, members: Vec<ProposedVariant>, cluster: Option<usize>) {
    let clone = placer.draw_clone();
    let (haplotype, carriers) = placer.tumour.draw_haplotype_and_copies(members[0].edit.position, placer.rng);
    placer.occupied.occupy_span(reserved_span(&members));
    for made in members {
        placer.tumour.small.push(PlacedVariant {
            carriers,
            cluster,
            ..PlacedVariant::on_all_copies(made.edit, haplotype, clone)
        });
    }
}

fn reserved_span(members: &[ProposedVariant]) -> ContigSpan {
    let (first, last) = (members[0].reserved, members[members.len() - 1].reserved);
    ContigSpan { end: last.end, ..first }
}

/// Proposes a variant cluster at a random position; `None` if it does not fit there.
fn propose_cluster(placer: &mut VariantPlacer, maker: &SmallVariantGenerator) -> Option<Vec<ProposedVariant>> {
    let at = placer.occupied.draw_allowed_position(placer.rng);
    let count = CLUSTER_SIZE.0 + placer.rng.draw_below(CLUSTER_SIZE.1 - CLUSTER_SIZE.0 + 1);
    let offsets = draw_cluster_offsets(placer.rng, count)?;
    let mut members: Vec<ProposedVariant> = vec![];
    for offset in offsets {
        let kind = if placer.rng.draw_bernoulli(INDEL_SHARE) { SmallVariantKind::Indel } else { SmallVariantKind::Snv };
        let place = GenomePosition { pos: at.pos + offset, ..at };
        if place.pos >= placer.genome.seqs[at.contig].len() {
            return None;
        }
        let made = maker.propose_variant_at(place, placer.occupied, placer.rng, kind, MAX_CLUSTER_INDEL_BP)?;
        // At least one unchanged base is between two variants, in every notation.
        if members.last().is_some_and(|before| before.reserved.end > made.reserved.start + 1) {
            return None;
        }
        members.push(made);
    }
    let whole = reserved_span(&members);
    let fits = (CLUSTER_EXTENT_BP.0..=CLUSTER_EXTENT_BP.1)
        .contains(&(members[members.len() - 1].edit.position.pos - members[0].edit.position.pos));
    let one_side = members
        .iter()
        .all(|m| placer.tumour.are_in_same_or_no_structural_variant(members[0].edit.position, m.edit.position));
    let free = placer.occupied.can_place_at_span(whole, placer.min_spacing_bp)
        && placer.tumour.has_haplotype_for_variant_at(members[0].edit.position);
    (fits && one_side && free).then_some(members)
}

/// Draws the positions of the variants of a cluster relative to the first one, sorted. The distance of the last one is
/// log-uniform within [`CLUSTER_EXTENT_BP`]. `None` if two variants would be adjacent.
fn draw_cluster_offsets(rng: &mut Rng, count: usize) -> Option<Vec<usize>> {
    let last = rng.draw_log_uniform(CLUSTER_EXTENT_BP.0, CLUSTER_EXTENT_BP.1);
    let mut offsets = vec![0, last];
    offsets.extend((2..count).map(|_| rng.draw_below(last)));
    offsets.sort_unstable();
    let apart = offsets.windows(2).all(|pair| pair[1] > pair[0] + 1);
    apart.then_some(offsets)
}
