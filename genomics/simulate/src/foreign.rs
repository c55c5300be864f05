//! Another person whose reads are in the samples.

use std::path::PathBuf;

use serde::Serialize;

use crate::genome::Genome;
use crate::germline::{self, Germline, GermlineParams};
use crate::ground::Ground;
use crate::ploidy::Ploidy;
use crate::rng::Rng;
use crate::variant::Span;

/// How many reads are not the patient's.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ForeignParams {
    /// Share of the tumour sample's reads.
    pub tumor: f64,
    /// Share of the normal sample's reads.
    pub normal: f64,
    /// The genome that they come from, FASTA; without it that of another person.
    pub genome: Option<PathBuf>,
}

/// Part of the patient's SNVs that the other person has, too.
const COMMON: f64 = 0.5;

/// The variants of another person: half of the patient's SNVs, as common polymorphisms are shared, and as many other
/// ones as the patient has beyond those.
pub fn person(
    genome: &Genome,
    ploidy: &Ploidy,
    params: &GermlineParams,
    patient: &[Germline],
    rng: &mut Rng,
) -> Vec<Germline> {
    let mut ground = Ground::new(genome);
    let mut variants: Vec<Germline> = vec![];
    for g in patient.iter().filter(|g| g.edit.is_snv()) {
        if rng.chance(COMMON) {
            let at = g.edit.at.pos;
            ground.take(Span { start: at.saturating_sub(1), end: at + 2, ..g.edit.span() });
            let there = ploidy.haplotypes(g.edit.at.contig);
            variants.push(Germline { edit: g.edit.clone(), haplotypes: params.carriers(there, rng) });
        }
    }
    let own = GermlineParams { snv_rate: params.snv_rate * (1.0 - COMMON), ..params.clone() };
    variants.extend(germline::place(genome, ploidy, &own, &mut ground, rng));
    variants.sort_by_key(|g| g.edit.at);
    variants
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made;
    use crate::variant::Edit;

    #[test]
    fn two_people_share_half_of_their_snvs() {
        let genome = made::make(1_000_000, 2, None, &mut Rng::stream(1, &[]));
        let (params, ploidy) = (GermlineParams::default(), Ploidy::diploid());
        let mut rng = Rng::stream(2, &[]);
        let one = germline::place(&genome, &ploidy, &params, &mut Ground::new(&genome), &mut rng);
        let other = person(&genome, &ploidy, &params, &one, &mut rng);
        let snvs = |g: &[Germline]| {
            g.iter().filter(|g| g.edit.is_snv()).map(|g| g.edit.clone()).collect::<Vec<Edit>>()
        };
        let (one, other) = (snvs(&one), snvs(&other));
        let shared = other.iter().filter(|e| one.contains(e)).count();
        assert!((450..550).contains(&shared), "{shared}");
        assert!(one.len().abs_diff(other.len()) < 80, "{} {}", one.len(), other.len());
    }
}
