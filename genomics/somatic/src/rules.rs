//! The rule that picks k-mers, for each tumour alone and, where there are several of one person, for all of them together.
//!
//! A change that each tumour shows in too few reads to tell is picked where all together show enough: by the depth of all together, and with
//! the errors that are expected there.

use genuma_kmers::RootCounters;
use genuma_reads::{NORMAL, TUMOUR};

use crate::own_alleles::OwnAlleles;
use crate::select::{Pick, Select, TOGETHER};

/// The rules of a call.
#[derive(Debug)]
pub struct Rules {
    /// By tumour.
    each: Vec<Select>,
    /// Of all tumours, where there are several.
    together: Option<Select>,
}

impl Rules {
    /// For samples of so many k-mers, the normal's first, of a genome of so many bases, if that is known. Each rule gives out about `wanted` picks at
    /// most where the normal does not know the root.
    pub fn new(k: u32, least: u32, kmers: &[u64], genome_bases: Option<u64>, wanted: u64) -> Rules {
        let (normal, tumours) = (kmers[usize::from(NORMAL)], &kmers[usize::from(TUMOUR)..]);
        let rule = |number: u8, tumour: u64| {
            let depth = genome_bases.map_or(0.0, |bases| tumour as f64 / bases.max(1) as f64);
            Select::new(k, least, [normal, tumour], depth).with_unknown(wanted).with_rule(number)
        };
        Rules {
            each: (TUMOUR..).zip(tumours).map(|(number, &tumour)| rule(number, tumour)).collect(),
            together: (tumours.len() > 1).then(|| rule(TOGETHER, tumours.iter().sum())),
        }
    }

    /// Pushes what any of the rules picks of a root. What one of the tumours shows clearly is not picked of all of them again.
    pub fn root<const S: usize>(&self, root: &RootCounters<S>, picks: &mut Vec<Pick>) {
        let before = picks.len();
        for (tumour, rule) in (usize::from(TUMOUR)..).zip(&self.each) {
            rule.root_of(root, |counts| [counts[usize::from(NORMAL)], counts[tumour]], picks);
        }
        let Some(together) = &self.together else { return };
        let of_each = picks.len();
        let sum = |counts: &[u32; S]| {
            let (normal, tumours) = counts.split_at(TUMOUR.into());
            [normal[0], tumours.iter().fold(0, |sum: u32, &n| sum.saturating_add(n))]
        };
        together.root_of(root, sum, picks);
        let mut kept = of_each;
        for at in of_each..picks.len() {
            let pick = picks[at];
            let clear = |own: &Pick| own.kmer == pick.kmer && !own.wants_good_bases();
            if !picks[before..of_each].iter().any(clear) {
                picks[kept] = pick;
                kept += 1;
            }
        }
        picks.truncate(kept);
    }

    /// Picks of each tumour alone where the normal does not know the root, those too that were not given out.
    pub fn unknown(&self) -> u64 {
        self.each.iter().map(Select::unknown).sum()
    }

    /// For each tumour the alleles that it clearly has, and what the normal has of them.
    pub fn own(&self) -> Vec<OwnAlleles> {
        self.each.iter().map(Select::own).collect()
    }

    /// For each tumour the roots at which it and the normal differ as two people do.
    pub fn strangers(&self) -> Vec<u64> {
        self.each.iter().map(Select::strangers).collect()
    }
}
