//! Library preparation: makes molecules from fragments. The artefacts are added in the order in which they arise in the
//! laboratory.

use super::cfdna;
use super::chimera;
use super::damage;
use super::dna_pool::{DnaPool, DnaSource, DrawnFragment};
use super::fold_back::fold_molecule_back;
use super::molecule::Molecule;
use super::params::{InsertModel, SequencingParams};
use super::read_counts::ReadAndArtefactCounts;
use super::recurrent_errors::LibraryRecurrentErrors;
use super::slippage::{SlippageModel, SlippageStage};
use crate::rng::Rng;
use crate::tandem_repeats;

/// Minimum insert length in a library with adapters, bp. Clean-up of the library removes shorter molecules.
pub(crate) const MIN_INSERT_BP_WITH_ADAPTERS: usize = 30;
/// Share of adapter dimers among the short inserts.
const DIMER_SHARE: f64 = 0.02;

/// Distribution of the insert lengths of a library.
#[derive(Debug, Clone)]
pub(crate) struct InsertSizeDistribution {
    model: InsertModel,
    mean: f64,
    sd: f64,
    min_bp: f64,
    /// Share of short inserts, which are not longer than a read, and their maximum length, bp.
    short_share_and_max_bp: (f64, usize),
}

/// Kind and length of an insert.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DrawnInsert {
    /// An insert from the main length distribution of the library, with its length in bp.
    Regular(usize),
    /// A short insert, which is not longer than a read, with its length in bp.
    Short(usize),
    /// An adapter dimer, which has no insert.
    Dimer,
}

impl DrawnInsert {
    /// Returns the length of the insert, bp; 0 for an adapter dimer.
    pub(crate) fn insert_length_bp(self) -> usize {
        match self {
            DrawnInsert::Regular(length) | DrawnInsert::Short(length) => length,
            DrawnInsert::Dimer => 0,
        }
    }
}

impl InsertSizeDistribution {
    /// Creates the distribution. In a library without adapters no insert is shorter than a read.
    pub(crate) fn insert_sizes_from_params(params: &SequencingParams) -> Self {
        let read = params.longest_read_bp();
        let shortest =
            if params.adapter_type_in_reads().is_some() { MIN_INSERT_BP_WITH_ADAPTERS.min(read) } else { read };
        InsertSizeDistribution {
            model: params.library.insert_model,
            mean: params.insert_mean,
            sd: params.insert_sd,
            min_bp: shortest as f64,
            short_share_and_max_bp: (params.library.short_inserts, read),
        }
    }

    /// Draws the kind and length of an insert.
    pub(crate) fn draw_insert(&self, rng: &mut Rng) -> DrawnInsert {
        let (share, longest) = self.short_share_and_max_bp;
        if share > 0.0 && rng.draw_bernoulli(share) {
            let shortest = self.min_bp as usize;
            let length = shortest + rng.draw_below(longest - shortest + 1);
            return if rng.draw_bernoulli(DIMER_SHARE) { DrawnInsert::Dimer } else { DrawnInsert::Short(length) };
        }
        DrawnInsert::Regular(self.draw_regular_insert_length_bp(rng))
    }

    /// Draws an insert length from the main distribution of the library, bp.
    pub(crate) fn draw_regular_insert_length_bp(&self, rng: &mut Rng) -> usize {
        let draw = |rng: &mut Rng| match self.model {
            InsertModel::Normal => rng.draw_gaussian(self.mean, self.sd),
            InsertModel::Cfdna => cfdna::draw_cfdna_length(rng),
        };
        let length = (0..100).map(|_| draw(rng)).find(|&l| l >= self.min_bp);
        length.unwrap_or(self.min_bp) as usize
    }

    /// Returns a length that few inserts exceed, bp: the mean plus three standard deviations. For cell-free DNA these
    /// are those of fragments of two nucleosomes.
    pub(crate) fn rarely_exceeded_insert_bp(&self) -> usize {
        match self.model {
            InsertModel::Normal => (self.mean + 3.0 * self.sd) as usize,
            InsertModel::Cfdna => cfdna::RARELY_EXCEEDED_CFDNA_FRAGMENT_BP,
        }
    }
}

/// The sequencing library of a sample, from which molecules are drawn.
#[derive(Debug)]
pub(crate) struct Library<'a> {
    dna_pool: DnaPool<'a>,
    params: &'a SequencingParams,
    inserts: InsertSizeDistribution,
    slippage: Option<SlippageModel>,
    /// Recurrent errors with their shares in this library; `None` if none are simulated. Only molecules of the
    /// patient's nuclear DNA show them.
    recurrent: Option<LibraryRecurrentErrors>,
}

impl<'a> Library<'a> {
    /// Creates the library of a sample from its DNA. `recurrent` are the recurrent errors with their shares in this
    /// library.
    pub(crate) fn from_dna_pool(
        dna_pool: DnaPool<'a>,
        params: &'a SequencingParams,
        recurrent: Option<LibraryRecurrentErrors>,
    ) -> Self {
        let slippage = SlippageModel::for_stage(SlippageStage::Pcr, params.library.pcr_slippage);
        Library {
            dna_pool,
            params,
            inserts: InsertSizeDistribution::insert_sizes_from_params(params),
            slippage,
            recurrent,
        }
    }

    /// Draws a molecule and adds all artefacts of library preparation to it.
    pub(crate) fn draw_molecule(&self, rng: &mut Rng, counts: &mut ReadAndArtefactCounts) -> Molecule<'a> {
        counts.molecules += 1;
        let Some(drawn) = self.draw_insert_fragment(rng, counts) else { return Molecule::new_adapter_dimer() };
        let reverse = rng.draw_bernoulli(0.5);
        self.make_molecule_with_artefacts(Some(&drawn), reverse, None, rng, counts)
    }

    /// Draws an insert length, and a fragment of this length from the DNA pool. Returns `None` for an adapter dimer.
    pub(crate) fn draw_insert_fragment(
        &self,
        rng: &mut Rng,
        counts: &mut ReadAndArtefactCounts,
    ) -> Option<DrawnFragment<'a>> {
        let insert = self.inserts.draw_insert(rng);
        counts.short_inserts += u64::from(!matches!(insert, DrawnInsert::Regular(_)));
        if insert == DrawnInsert::Dimer {
            counts.adapter_dimers += 1;
            return None;
        }
        Some(self.dna_pool.draw_fragment(insert.insert_length_bp(), rng))
    }

    /// Makes a molecule from one strand of a fragment (`None`: an adapter dimer), with all artefacts of library
    /// preparation. If `reverse` is set, read 1 reads the reverse complement of the fragment. `prefixes` are the bases
    /// that are ligated before the template of read 1 and read 2.
    pub(crate) fn make_molecule_with_artefacts(
        &self,
        drawn: Option<&DrawnFragment<'a>>,
        reverse: bool,
        prefixes: Option<&[Vec<u8>; 2]>,
        rng: &mut Rng,
        counts: &mut ReadAndArtefactCounts,
    ) -> Molecule<'a> {
        let mut molecule = match drawn {
            Some(drawn) => self.damage_strand(drawn, reverse, rng, counts),
            None => Molecule::new_adapter_dimer(),
        };
        if let Some(prefixes) = prefixes {
            molecule.ligate_bases_before_template(prefixes);
        }
        self.apply_pcr(&mut molecule, rng, counts);
        molecule
    }

    /// Makes a molecule from one strand of a fragment, with the artefacts that arise before adapters are ligated.
    fn damage_strand(
        &self,
        drawn: &DrawnFragment<'a>,
        reverse: bool,
        rng: &mut Rng,
        counts: &mut ReadAndArtefactCounts,
    ) -> Molecule<'a> {
        let DrawnFragment { fragment, dna_source, captured, primers } = *drawn;
        let mut molecule = Molecule::from_fragment(fragment, reverse, dna_source);
        molecule.captured = captured;
        damage::oxidise_and_deaminate_molecule(&mut molecule, &self.params.library, rng, counts);
        if let Some(recurrent) = &self.recurrent
            && dna_source == DnaSource::Patient
        {
            recurrent.add_recurrent_errors(&mut molecule, &fragment, reverse, rng, counts);
        }
        if let Some([first, last]) = primers {
            molecule.replace_ends_by_primers(if reverse { [last, first] } else { [first, last] });
        }
        self.add_fold_back_or_chimera(&mut molecule, rng, counts);
        molecule
    }

    /// Makes the molecule a fold-back or a chimera, with the probabilities of the parameters.
    fn add_fold_back_or_chimera(&self, molecule: &mut Molecule<'a>, rng: &mut Rng, counts: &mut ReadAndArtefactCounts) {
        let (fold_backs, chimeras) = (self.params.library.fold_backs, self.params.library.chimeras);
        if fold_backs + chimeras == 0.0 {
            return;
        }
        let choice = rng.draw_unit_interval();
        if choice < fold_backs {
            let length = self.inserts.draw_regular_insert_length_bp(rng);
            counts.fold_backs += u64::from(fold_molecule_back(molecule, length, rng));
        } else if choice < fold_backs + chimeras {
            counts.chimeras += u64::from(chimera::make_molecule_chimeric(molecule, &self.dna_pool, rng));
        }
    }

    /// Adds tandem-repeat slippage and substitution errors of early PCR cycles. Finds the tandem repeats of the
    /// molecule if PCR or the sequencer makes slippage errors.
    fn apply_pcr(&self, molecule: &mut Molecule<'a>, rng: &mut Rng, counts: &mut ReadAndArtefactCounts) {
        if self.slippage.is_some() || self.params.machine.sequencing_slippage > 0.0 {
            let mut repeats = vec![];
            tandem_repeats::append_tandem_repeats(molecule.bases_on_stored_strand(), &mut repeats);
            molecule.repeats = repeats;
        }
        if let Some(slippage) = &self.slippage {
            slippage.apply_random_slips(molecule, rng, counts);
        }
        damage::add_pcr_errors(molecule, self.params.library.pcr_errors, rng, counts);
    }
}
