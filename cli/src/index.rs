//! `genuma index`: from a reference to what an aligner looks reads up in.

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::{ValueEnum, value_parser};
use genuma_align::engine::{genuma, minibwa, strobealign};
use genuma_reads::fasta::Reference;
use genuma_work::Watch;
use tracing::info;

use crate::progress::Progress;
use genuma_work::signals;

use crate::command;

/// The aligners.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EngineName {
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
pub struct Args {
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
pub fn run(args: &Args) -> anyhow::Result<()> {
    let start = Instant::now();
    let reference = &args.reference;
    let all = || std::thread::available_parallelism().map_or(1, usize::from);
    let threads = args.threads.map_or_else(all, usize::from);
    let length = args.read_length as usize;
    // The engines take any text for a genome, and names that no SAM file may have.
    Reference::read(reference)?;
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
