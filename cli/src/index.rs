//! `genuma index`: from a reference to what an aligner looks reads up in.

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::{ValueEnum, value_parser};
use genuma_align::engine::{genuma, minibwa, strobealign};
use genuma_reads::fasta::Reference;
use genuma_work::Watch;
use tracing::{info, warn};

use crate::call::budget;
use crate::progress::Progress;
use crate::sizes;
use genuma_work::signals;

use crate::command;

/// The aligners.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EngineName {
    /// genuma's own: seeds, and bases compared 32 at a time
    Genuma,
    /// Heng Li's successor of bwa-mem: the surest mapping qualities
    Minibwa,
    /// Fast, with seeds of two linked strobes
    Strobealign,
}

/// Index a reference for `genuma align`.
///
/// Writes beside the reference, for each engine its own files:
///   genuma        ref.fa.gnm: 1.1 bytes a base; made in 1.8 of memory
///   minibwa       ref.fa.l2b, ref.fa.mbw: 2.25 bytes a base; made in 11 of memory, 19 above 1 Gbp
///   strobealign   ref.fa.rLENGTH.sti: 10 bytes a base; depends on the length of the reads
///
/// A small file with sums (.seal) tells a whole index of this reference from any other.
/// `minibwa index` and `strobealign --create-index` make the same files as theirs here, without it.
#[derive(Debug, clap::Args)]
#[command(
    about = "Index a reference for `genuma align`",
    verbatim_doc_comment,
    after_help = "Examples:\n  \
    genuma index ref.fa\n  \
    genuma index --engine strobealign --read-length 100 ref.fa.gz"
)]
pub(crate) struct Args {
    /// Reference genome, plain or gzip'd FASTA
    #[arg(value_name = "FASTA")]
    reference: PathBuf,
    /// Aligner to index for
    #[arg(long, value_enum, default_value_t = EngineName::Minibwa)]
    engine: EngineName,
    /// Length of the reads in bases (strobealign): about right is enough
    #[arg(long, value_name = "BP", default_value_t = 150, value_parser = value_parser!(u32).range(1..))]
    read_length: u32,
    /// Threads [default: all processors]
    #[arg(short, long, value_name = "N", value_parser = command::threads())]
    threads: Option<u16>,
}

/// Builds the index.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let start = Instant::now();
    let reference = &args.reference;
    let threads = command::all_or(args.threads);
    let length = args.read_length as usize;
    // The engines take any text for a genome, and names that no SAM file may have.
    let bases = Reference::read(reference)?.contigs.iter().map(|contig| contig.seq.len() as u64).sum();
    if args.engine == EngineName::Minibwa
        && let Some(free) = budget::available(Path::new("/"))
        && let Some(told) = too_large(bases, free)
    {
        warn!("{told}");
    }
    let made = match args.engine {
        EngineName::Genuma => vec![genuma::index_path(reference)],
        EngineName::Minibwa => ["l2b", "mbw"].map(|extension| beside(reference, extension)).to_vec(),
        EngineName::Strobealign => vec![strobealign::index_path(reference, length)],
    };
    if args.engine == EngineName::Strobealign {
        forget_on_interruption(&made);
    }
    let progress = Progress::start();
    progress.begins("index", None);
    let built = match args.engine {
        EngineName::Genuma => genuma::build_index(reference, reference, threads),
        EngineName::Minibwa => minibwa::build_index(reference, reference, threads),
        EngineName::Strobealign => strobealign::build_index(reference, reference, length, threads),
    };
    drop(progress);
    signals::on_interruption(None);
    built?;
    let names: Vec<String> = made.iter().map(|path| path.display().to_string()).collect();
    info!("{} made in {:.1} s", names.join(", "), start.elapsed().as_secs_f64());
    Ok(())
}

/// What is to be told where minibwa's index of so many bases takes more memory to make than is free (bytes).
fn too_large(bases: u64, free: u64) -> Option<String> {
    let needed = minibwa::index_memory(bases);
    let (shown, free_shown) = (sizes::show(needed), sizes::show(free));
    let told = || {
        format!("minibwa's index takes {shown} of memory to make, {free_shown} are free: see --engine genuma")
    };
    (needed > free).then(told)
}

/// `path` with `.extension` behind all it has.
fn beside(path: &Path, extension: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(extension);
    PathBuf::from(name)
}

/// Removes what strobealign has half written when a signal comes.
fn forget_on_interruption(made: &[PathBuf]) {
    let partial: Vec<PathBuf> = made.iter().map(|path| beside(path, "partial")).collect();
    signals::on_interruption(Some(Box::new(move || {
        for path in &partial {
            // What was not begun is not there.
            let _ = std::fs::remove_file(path);
        }
        None
    })));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_that_memory_cannot_hold_is_told_before_it_is_made() {
        let told = "minibwa's index takes 54 GiB of memory to make, 16 GiB are free: see --engine genuma";
        assert_eq!(too_large(3_050_000_000, 16 << 30).as_deref(), Some(told));
        assert_eq!(too_large(100_000_000, 16 << 30), None);
    }
}
