//! What the units between counting and judging leave, and how it is made of what came before, in one process or in parts.

use genuma_reads::fasta::Reference;
use genuma_work::Meter;
use serde::{Deserialize, Serialize};

use crate::assemble::{Assembled, Contig};
use crate::compare::Compared;
use crate::gather::Gathered;
use crate::ledger::Ledger;
use crate::place::{Placing, place};
use crate::recruit::Wanted;
use crate::why::Why;

/// What assembling leaves.
#[derive(Debug, Serialize, Deserialize)]
pub struct Contigs {
    /// The contigs, in the order of their groups.
    pub contigs: Vec<Contig>,
    /// What was made and left out.
    pub ledger: Ledger,
}

impl Contigs {
    /// What came of all groups.
    pub fn of(gathered: Gathered) -> Contigs {
        let Gathered { pairs, copies, errors, groups, lone, not_parting, assembled, .. } = gathered;
        let mut ledger = Ledger::default();
        ledger.made("assemble", "pairs with such k-mers", pairs);
        ledger.left_out("assemble", "of them, PCR copies", copies);
        ledger.left_out("assemble", "k-mers in reads, of errors that recur at their depth", errors);
        ledger.made("assemble", "groups of pairs", groups);
        ledger.left_out("assemble", "pairs in groups too small", lone);
        ledger.left_out("assemble", "pairs in groups where the samples do not part", not_parting);
        let Assembled { contigs, few, poor, deep } = assembled;
        ledger.left_out("assemble", "stacks of too few pairs", few);
        ledger.left_out("assemble", "stacks with too few good bases where they differ from the normal", poor);
        ledger.left_out(
            "assemble",
            "times a read was not stacked, beyond the 4,096 at its k-mer or beside it",
            deep,
        );
        ledger.made("assemble", "contigs", contigs.len() as u64);
        Contigs { contigs, ledger }
    }
}

/// What placing leaves.
#[derive(Debug, Serialize, Deserialize)]
pub struct Places {
    /// The contigs that reads are looked for, with what differs.
    pub contigs: Vec<Compared>,
    /// By what these reads are known.
    pub wanted: Wanted,
    /// What was made and left out.
    pub ledger: Ledger,
}

/// What contigs are placed with.
pub(crate) struct Surroundings<'a> {
    /// The reference, if there is one; without it contigs lie nowhere.
    pub genome: Option<&'a Reference>,
    /// Length of the k-mers that recruit.
    pub k: u32,
    /// Threads, at least 1.
    pub threads: usize,
    /// Bytes for looking, and what is found.
    pub memory: u64,
    /// Whether molecules of the library fold back on themselves.
    pub folds: bool,
    /// Told of the bases of the reference that have gone past.
    pub meter: &'a Meter,
}

impl Places {
    /// Of all contigs, which go if there is a reference: only calls without one look at them once more.
    pub fn of(contigs: &mut Vec<Contig>, with: &Surroundings<'_>, mut why: Option<&mut Why>) -> Places {
        let &Surroundings { genome, k, threads, memory, folds, meter } = with;
        let mut ledger = Ledger::default();
        let (numbers, mut contigs): (Vec<usize>, Vec<Compared>) = match genome {
            Some(genome) => {
                let asked = why.as_ref().map(|why| why.contigs()).unwrap_or_default();
                let placing = Placing { genome, threads, memory, folds, asked: &asked, meter };
                let placed = place(std::mem::take(contigs), &placing, &mut ledger);
                if let Some(why) = &mut why {
                    why.compared(&placed, genome);
                }
                let worth = placed.into_iter().filter(|placed| placed.unworthy.is_none());
                worth.map(|placed| (placed.number, placed.compared)).unzip()
            }
            None => contigs.iter().map(Compared::unplaced).enumerate().unzip(),
        };
        let wanted = Wanted::among(&mut contigs, k, genome, threads);
        if let Some(why) = why {
            why.not_looked_for(wanted.families.iter().map(|&c| numbers[c as usize]));
        }
        let families = wanted.families.len() as u64;
        ledger.left_out(
            "recruit",
            "contigs in repeats of so many copies that changes cannot be told apart",
            families,
        );
        ledger.made("recruit", "contigs that reads were looked for", contigs.len() as u64);
        ledger.made("recruit", "of them without a k-mer of their own", wanted.nowhere_unique - families);
        Places { contigs, wanted, ledger }
    }
}
