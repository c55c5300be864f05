//! UMI libraries: molecules whose strands are amplified to families of read pairs.

use std::fmt::Write as _;

use super::dna_pool::DrawnFragment;
use super::library::Library;
use super::molecule::Molecule;
use super::read_counts::ReadAndArtefactCounts;
use super::read_structure::{build_bases_before_template, draw_umi};
use super::umi_params::UmiParams;
use crate::rng::Rng;
use genuma_reads::ReadStructures;

/// Coefficient of variation of the amplification of molecules. Family sizes vary more, because reads are drawn at
/// random.
const AMPLIFICATION_CV: f64 = 0.5;
/// Maximum number of attempts to draw family sizes with at least one read pair.
const MAX_FAMILY_TRIES: usize = 1000;

/// A double-stranded molecule with UMIs, and the number of read pairs of each strand. Its end 0 is the first base on
/// the chromosome, its end 1 the last.
#[derive(Debug)]
pub(crate) struct UmiMolecule<'a> {
    /// The UMI at each end of the molecule.
    end_umis: [Vec<u8>; 2],
    /// Both strands after PCR. Read 1 of strand 0 begins at end 0, read 1 of strand 1 at end 1. `None` if the strand
    /// has no read pair.
    pub strands: [Option<Molecule<'a>>; 2],
    /// Number of read pairs of each strand.
    pub pairs: [usize; 2],
    /// The fragment of the molecule; `None` for adapter dimers.
    fragment: Option<DrawnFragment<'a>>,
    /// Whether both strands are amplified (duplex sequencing).
    is_duplex: bool,
}

impl<'a> UmiMolecule<'a> {
    /// Draws a molecule, its UMIs and the number of read pairs of its strands, and amplifies the strands by PCR.
    pub(super) fn draw_molecule(
        library: &Library<'a>,
        umi: &UmiParams,
        rng: &mut Rng,
        counts: &mut ReadAndArtefactCounts,
    ) -> Self {
        counts.molecules += 1;
        let fragment = library.draw_insert_fragment(rng, counts);
        let ReadStructures(structures) = &umi.structures;
        let amplified_strand = if umi.duplex { 0 } else { rng.draw_below(2) };
        let end_umis = [0, 1].map(|end| draw_umi(&structures[end ^ amplified_strand], rng));
        let is_amplified = [0, 1].map(|strand| umi.duplex || strand == amplified_strand);
        let pairs = draw_family_sizes(umi.mean_family_size, is_amplified, rng);
        let strands = [0, 1].map(|strand| {
            let prefix = |read: usize| build_bases_before_template(&structures[read], &end_umis[read ^ strand]);
            let prefixes = [prefix(0), prefix(1)];
            (pairs[strand] > 0).then(|| {
                library.make_molecule_with_artefacts(fragment.as_ref(), strand == 1, Some(&prefixes), rng, counts)
            })
        });
        UmiMolecule { end_umis, strands, pairs, fragment, is_duplex: umi.duplex }
    }

    /// Reduces the number of read pairs of both strands together to at most `num_pairs`.
    pub(super) fn limit_num_pairs(&mut self, num_pairs: usize) {
        self.pairs[0] = self.pairs[0].min(num_pairs);
        self.pairs[1] = self.pairs[1].min(num_pairs - self.pairs[0]);
    }

    /// Returns the number of read pairs of both strands.
    pub(super) fn num_pairs_of_both_strands(&self) -> usize {
        self.pairs.iter().sum()
    }

    /// Returns the strand (0 or 1) whose read 1 becomes read 1 of the consensus. If both strands are amplified, this is
    /// the strand that begins with the lower UMI.
    pub(super) fn strand_for_consensus_read1(&self) -> usize {
        let is_second = if self.is_duplex { self.end_umis[0] > self.end_umis[1] } else { self.pairs[1] > 0 };
        usize::from(is_second)
    }

    /// Appends the row of the molecule to the table of molecules, whose columns are those of [`MOLECULE_TABLE_HEADER`].
    pub(super) fn append_table_row(&self, name: &str, contigs: &[String], out: &mut Vec<u8>) {
        let fragment = self.fragment.as_ref().map(|drawn| drawn.fragment);
        let placement = fragment.and_then(|f| f.reference_placement_of_end_bases(f.len(), false));
        let mut row = name.to_owned();
        let _ = match placement {
            Some(p) => write!(row, "\t{}\t{}\t{}", contigs[p.span.contig], p.span.start + 1, p.span.end),
            None => write!(row, "\t*\t0\t0"),
        };
        // The chromosome may have the reverse complement of the reference.
        let is_reverse = placement.is_some_and(|p| p.reverse);
        let [left, right] = if is_reverse { [1, 0] } else { [0, 1] };
        let umis = [left, right].map(|end| String::from_utf8_lossy(&self.end_umis[end]).into_owned());
        let umi = if umis.iter().all(|u| !u.is_empty()) { umis.join("-") } else { umis.concat() };
        let variants = fragment.map_or(vec![], |f| f.list_names_of_carried_variants());
        let variants = if variants.is_empty() { ".".to_owned() } else { variants.join(",") };
        let _ = writeln!(row, "\t{umi}\t{}\t{}\t{variants}", self.pairs[left], self.pairs[right]);
        out.extend_from_slice(row.as_bytes());
    }
}

/// Header of the table of molecules. Positions are 1-based and inclusive. `umi` has the UMIs of the left and of the
/// right end. Read 1 of forward pairs begins at the left end, read 1 of reverse pairs at the right end.
pub(crate) const MOLECULE_TABLE_HEADER: &str =
    "name\tcontig\tstart\tend\tumi\tforward_pairs\treverse_pairs\tvariants\n";

/// Draws the number of read pairs of each strand; at least one strand has a pair.
fn draw_family_sizes(mean: f64, is_amplified: [bool; 2], rng: &mut Rng) -> [usize; 2] {
    let sd = (1.0 + AMPLIFICATION_CV * AMPLIFICATION_CV).ln().sqrt();
    let mut draw = || {
        let amplification = rng.draw_gaussian(-sd * sd / 2.0, sd).exp();
        is_amplified.map(|yes| if yes { rng.draw_poisson(mean * amplification) } else { 0 })
    };
    let drawn = (0..MAX_FAMILY_TRIES).map(|_| draw()).find(|sizes| sizes.iter().sum::<usize>() > 0);
    drawn.unwrap_or(is_amplified.map(usize::from))
}
