//! All that sampled roots say of a pair of samples.

use serde::{Deserialize, Serialize};

use crate::changes::Change;
use crate::coverage::Covered;
use crate::depths::{Deep, deep};
use crate::identity::Identity;
use crate::mixture::{Contamination, Known, contamination};
use crate::others::Beside;
use crate::roots::{RootTally, Site};
use crate::sampled::{Sampled, Shape};
use crate::segments::Place;
use crate::tumour::{self, Clone};
use crate::usual::usual;

/// What two samples say of themselves; of two values the normal's is the first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PairFacts {
    /// Share of all roots that were looked at.
    pub share: f64,
    /// How many they are.
    pub roots: u64,
    /// Who the samples are of.
    pub identity: Identity,
    /// How much of each is another person's; nothing where there is too little to tell.
    pub contamination: [Option<Contamination>; 2],
    /// Share of each sample's pairs that are PCR copies, as far as sampled roots show.
    pub copies: [f64; 2],
    /// How each covers its genome.
    pub coverage: [Covered; 2],
    /// Wrong bases of each sample among those of quality 30 and more, by substitution (both strands together: [`crate::roots::SUBSTITUTIONS`]); what is much
    /// more frequent than others is damage (C>T deaminated, C>A oxidised). Nothing of shallow samples, where single molecules are not known to be wrong.
    pub wrong: [Option<[f64; 6]>; 2],
    /// What the tumour is like; nothing of two people's samples.
    pub tumour: Option<Clone>,
}

/// Facts, and what is needed to say what the tumour is like when more is known of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Looked {
    facts: PairFacts,
    /// What the roots are like.
    pub shape: Shape,
    /// Sites where the normal has two alleles.
    het: Vec<Site>,
    /// Sites where only the tumour has an allele.
    changed: Vec<Site>,
    /// Sites where the normal has one allele, and two, by its molecules: of as many as those were found among.
    zygosities: Vec<[f64; 2]>,
    /// Share of the sites at which the normal has two alleles.
    heterozygosity: f64,
    /// How deep both samples are at roots of single places.
    deep: Vec<Deep>,
}

/// Molecules at a place from which one that differs alone is wrong.
const KNOWN: f64 = 5.0;

/// Places, drawn by their hashes, whose depths stand for all of the tumour's: an average is made of them.
const DEPTHS: usize = 1_000;

/// How often shares that depend on each other are found anew at most, and what they differ by at most when that is done.
const ROUNDS: usize = 5;
const SAME: f64 = 0.001;

/// Contamination of both samples; of two people each is all of another.
fn mixtures(
    tally: &RootTally,
    identity: &Identity,
    usual: [f64; 2],
    copies: [f64; 2],
) -> [Option<Contamination>; 2] {
    if !identity.is_pair() || identity.heterozygous.is_none() {
        return [None; 2];
    }
    let (het, lost) = (tally.heterozygosity(usual[0]), tally.lost());
    let of = |sample: usize, other: f64, both: bool| {
        let [own, beside] = [usual[sample], usual[1 - sample]];
        let (copies, lost) = (copies[sample], lost[sample]);
        contamination(tally, &Known { sample, usual: [own, beside], copies, het, lost, other, both })
    };
    // Where both have a foreign person's alleles each hides some of the other's: the more of one is known, the more of the other is seen. When both are about known what they
    // have in common counts, too.
    let mut known = [0.0; 2];
    let mut found = [0, 1].map(|s| of(s, known[s], false));
    for both in [false, true] {
        for round in 0..ROUNDS {
            let before = known;
            for s in 0..2 {
                let other = found[1 - s].map_or(0.0, |found| found.share.value);
                if (other - known[s]).abs() >= SAME || (both && round == 0) {
                    (known[s], found[s]) = (other, of(s, other, both));
                }
            }
            if known == before && round > 0 {
                break;
            }
        }
    }
    found
}

impl Looked {
    /// At what was sampled.
    pub fn at(sampled: &Sampled) -> Looked {
        let tally = RootTally::of(sampled);
        let copies = sampled.copies();
        let each = [0, 1].map(|s| usual(&tally.depths[s]));
        let identity = Identity::of(&tally, each);
        let mixed = mixtures(&tally, &identity, each, copies);
        let single = |site: &&Site| {
            let depth = f64::from(site.normal[0]);
            site.normal[1] == 0 && depth >= 0.5 * each[0] && depth <= 1.6 * each[0]
        };
        let changed = tally.changed().into_iter().filter(|site| single(&site)).collect();
        let bases = sampled.root_bases();
        let coverage = [0, 1].map(|s| Covered::of(&tally, s, bases));
        let facts = PairFacts {
            share: sampled.share(),
            roots: tally.roots,
            identity,
            contamination: mixed,
            copies,
            wrong: [0, 1].map(|s| (coverage[s].depth >= KNOWN).then(|| tally.wrong(s))),
            coverage,
            tumour: None,
        };
        Looked {
            facts,
            shape: sampled.shape(),
            het: tally.het(),
            changed,
            zygosities: tally.zygosities(),
            heterozygosity: tally.heterozygosity(each[0]),
            deep: deep(sampled, each[0]),
        }
    }

    /// Roots of which it helps to know where they stand.
    pub fn roots(&self) -> Vec<u64> {
        let sites = self.het.iter().chain(&self.changed).map(|site| site.root);
        sites.chain(self.deep.iter().map(|own| own.root)).collect()
    }

    /// All of it. `places` say where [`Self::roots`] stand, none if nobody knows. `changes` are the tumour's own where a call has found them.
    pub fn finish(&self, places: &[Place], changes: Option<&[Change]>) -> PairFacts {
        let mut places = places.iter().copied().chain(std::iter::repeat(None));
        let het: Vec<(Site, Place)> = self.het.iter().copied().zip(places.by_ref()).collect();
        let changed: Vec<Change> = self
            .changed
            .iter()
            .zip(places.by_ref())
            .map(|(site, place)| Change { place, molecules: site.tumour, normal: site.normal[0] })
            .collect();
        let deep: Vec<(Deep, Place)> = self.deep.iter().copied().zip(places).collect();
        // Where there are many molecules of the normal there may be copies of the place.
        let usual = self.facts.coverage[0].depth;
        let single =
            |site: &&Site| (0.6..1.2).contains(&(f64::from(site.normal[0] + site.normal[1]) / usual));
        let single = self.het.iter().filter(single).take(DEPTHS);
        let depths: Vec<u32> = single.map(|site| site.tumour.iter().sum()).collect();
        let seen = tumour::Seen {
            het: &het,
            deep: &deep,
            changes: changes.unwrap_or(&changed),
            beside: Beside {
                zygosities: if changes.is_some() { &[] } else { &self.zygosities },
                het: self.heterozygosity,
                foreign: self.facts.contamination[1].map(|found| found.share),
                depths: &depths,
            },
            usual,
            bases: self.shape.bases,
        };
        PairFacts {
            tumour: self.facts.identity.is_pair().then(|| tumour::clone(&seen)),
            ..self.facts.clone()
        }
    }
}
