//! Somatic variants that lie side by side on one haplotype: clusters, and substitutions of several bases.

use serde::Serialize;

use crate::error::Result;
use crate::rng::Rng;
use crate::site::{Site, TRIES, no_room};
use crate::small::{Kind, Made, SmallMaker};
use crate::tumour::Placed;
use crate::variant::{Cut, Span};

/// How many.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct LinkedParams {
    /// Clusters of 2–5 SNVs and short indels within 3–120 bp.
    pub clusters: usize,
    /// Substitutions of 2–3 adjacent bases.
    pub mnvs: usize,
}

/// Fewest and most variants of a cluster.
const MEMBERS: (usize, usize) = (2, 5);
/// Shortest and longest way from the first to the last variant of a cluster, bp.
const EXTENT: (usize, usize) = (3, 120);
/// Share of indels among them.
const INDELS: f64 = 0.3;
/// Longest of these, bp.
const LONGEST_INDEL: usize = 6;

/// Places clusters and substitutions of several bases, each on one haplotype of one clone.
pub fn place(site: &mut Site, params: &LinkedParams) -> Result<()> {
    if params.clusters + params.mnvs == 0 {
        return Ok(());
    }
    let maker = SmallMaker::new(site.genome, site.ground);
    for i in 0..params.clusters {
        let members = (0..TRIES)
            .find_map(|_| cluster(site, &maker))
            .ok_or_else(|| no_room("clusters of variants", i, params.clusters))?;
        settle(site, members, Some(i + 1));
    }
    for i in 0..params.mnvs {
        let made = (0..TRIES)
            .find_map(|_| {
                let at = site.ground.random(site.rng);
                let length = 2 + site.rng.below(2);
                let made = maker.make_substitution(at, site.rng, length)?;
                site.is_free(&made).then_some(made)
            })
            .ok_or_else(|| no_room("substitutions of several bases", i, params.mnvs))?;
        settle(site, vec![made], None);
    }
    site.tumour.small.sort_by_key(|p| p.variant.at);
    Ok(())
}

/// Places variants on one haplotype of one clone.
fn settle(site: &mut Site, members: Vec<Made>, cluster: Option<usize>) {
    let clone = site.random_clone();
    let (haplotype, carriers) = site.tumour.carriers(members[0].edit.at, site.rng);
    site.ground.take(extent(&members));
    for made in members {
        site.tumour.small.push(Placed { carriers, cluster, ..Placed::new(made.edit, haplotype, clone) });
    }
}

fn extent(members: &[Made]) -> Span {
    let (first, last) = (members[0].reserved, members[members.len() - 1].reserved);
    Span { end: last.end, ..first }
}

/// A cluster at a random place, if it is free.
fn cluster(site: &mut Site, maker: &SmallMaker) -> Option<Vec<Made>> {
    let at = site.ground.random(site.rng);
    let count = MEMBERS.0 + site.rng.below(MEMBERS.1 - MEMBERS.0 + 1);
    let offsets = offsets(site.rng, count)?;
    let mut members: Vec<Made> = vec![];
    for offset in offsets {
        let kind = if site.rng.chance(INDELS) { Kind::Indel } else { Kind::Snv };
        let place = Cut { pos: at.pos + offset, ..at };
        if place.pos >= site.genome.seqs[at.contig].len() {
            return None;
        }
        let made = maker.make_at(place, site.ground, site.rng, kind, LONGEST_INDEL)?;
        // However they are written, a base that stays as it is lies between two of them.
        if members.last().is_some_and(|before| before.reserved.end > made.reserved.start + 1) {
            return None;
        }
        members.push(made);
    }
    let whole = extent(&members);
    let fits =
        (EXTENT.0..=EXTENT.1).contains(&(members[members.len() - 1].edit.at.pos - members[0].edit.at.pos));
    let one_side = members.iter().all(|m| site.tumour.beside_same(members[0].edit.at, m.edit.at));
    let free = site.ground.is_free(whole, site.spacing) && site.tumour.has_room(members[0].edit.at);
    (fits && one_side && free).then_some(members)
}

/// Where the variants of a cluster lie: the first at 0, the last anywhere up to [`EXTENT`], as many near as far.
fn offsets(rng: &mut Rng, count: usize) -> Option<Vec<usize>> {
    let last = rng.log_uniform(EXTENT.0, EXTENT.1);
    let mut offsets = vec![0, last];
    offsets.extend((2..count).map(|_| rng.below(last)));
    offsets.sort_unstable();
    let apart = offsets.windows(2).all(|pair| pair[1] > pair[0] + 1);
    apart.then_some(offsets)
}
