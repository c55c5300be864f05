//! `genuma index`: builds an aligner's index of a reference.

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::{ValueEnum, value_parser};
use genuma_align::engine::{genuma, minibwa, strobealign};
use genuma_reads::fasta::Reference;
use genuma_work::ProgressListener;
use tracing::{info, warn};

use crate::call::memory_limits;
use crate::progress::UnitProgress;
use crate::size_format;
use genuma_work::signals;

use crate::command_line;

/// The aligners of `genuma align`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EngineName {
    /// genuma's own aligner: syncmer seeds and vectorised comparison, the smallest index
    Genuma,
    /// minibwa, Heng Li's successor of bwa-mem: the most reliable mapping qualities
    Minibwa,
    /// strobealign: fast, with strobemer seeds
    Strobealign,
}

/// Index a reference for `genuma align`.
///
/// Writes the index next to the reference. Each engine has its own files:
///   genuma        ref.fa.gnm: 1.1 bytes per base; needs 1.8 bytes of memory per base to build
///   minibwa       ref.fa.l2b, ref.fa.mbw: 2.25 bytes per base; needs 11 bytes of memory per base
///                 to build, 19 above 1 Gbp
///   strobealign   ref.fa.rLENGTH.sti: 10 bytes per base; depends on the length of the reads
///
/// A small file with checksums (.seal) shows that an index is complete and belongs to this reference.
/// The index files are identical to those of `minibwa index` and `strobealign --create-index`, which
/// `genuma align` also accepts, although they have no .seal file.
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
    /// Aligner to build the index for
    #[arg(long, value_enum, default_value_t = EngineName::Minibwa)]
    engine: EngineName,
    /// Length of the reads in bases; an approximate value will do. Only strobealign uses it
    #[arg(long, value_name = "BP", default_value_t = 150, value_parser = value_parser!(u32).range(1..))]
    read_length: u32,
    /// Threads [default: all CPUs]
    #[arg(short, long, value_name = "N", value_parser = command_line::thread_count_parser())]
    threads: Option<u16>,
}

/// Builds the index.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let start = Instant::now();
    let reference = &args.reference;
    let threads = command_line::threads_or_all_cpus(args.threads);
    let length = args.read_length as usize;
    // Checked here, because the engines accept any text as a genome, and sequence names that SAM forbids.
    let bases = Reference::read(reference)?.contigs.iter().map(|contig| contig.seq.len() as u64).sum();
    if args.engine == EngineName::Minibwa
        && let Some(free) = memory_limits::available_memory_bytes(Path::new("/"))
        && let Some(warning) = index_memory_warning(bases, free)
    {
        warn!("{warning}");
    }
    let index_files = match args.engine {
        EngineName::Genuma => vec![genuma::index_path(reference)],
        EngineName::Minibwa => ["l2b", "mbw"].map(|extension| append_extension(reference, extension)).to_vec(),
        EngineName::Strobealign => vec![strobealign::index_path(reference, length)],
    };
    if args.engine == EngineName::Strobealign {
        remove_partial_files_on_interruption(&index_files);
    }
    let progress = UnitProgress::start();
    progress.unit_started("index", None);
    let built = match args.engine {
        EngineName::Genuma => genuma::build_index(reference, reference, threads),
        EngineName::Minibwa => minibwa::build_index(reference, reference, threads),
        EngineName::Strobealign => strobealign::build_index(reference, reference, length, threads),
    };
    drop(progress);
    signals::set_interrupt_handler(None);
    built?;
    let names: Vec<String> = index_files.iter().map(|path| path.display().to_string()).collect();
    info!("wrote {} in {:.1} s", names.join(", "), start.elapsed().as_secs_f64());
    Ok(())
}

/// A warning if building minibwa's index of this many bases takes more memory than is free (bytes).
fn index_memory_warning(bases: u64, free: u64) -> Option<String> {
    let needed = minibwa::index_memory(bases);
    let (shown, free_shown) = (size_format::format_bytes(needed), size_format::format_bytes(free));
    let warning = || {
        format!(
            "building minibwa's index needs {shown} of memory, but {free_shown} are free: it may fail or be very slow; \
             use a machine with more memory, or --engine genuma, which needs less"
        )
    };
    (needed > free).then(warning)
}

/// Appends `.extension` to the whole name of a file.
fn append_extension(path: &Path, extension: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(extension);
    PathBuf::from(name)
}

/// On an interruption, removes the partly written index files of strobealign.
fn remove_partial_files_on_interruption(index_files: &[PathBuf]) {
    let partial: Vec<PathBuf> = index_files.iter().map(|path| append_extension(path, "partial")).collect();
    signals::set_interrupt_handler(Some(Box::new(move || {
        for path in &partial {
            // A file that was not created yet is missing.
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
        let warning = index_memory_warning(3_050_000_000, 16 << 30).unwrap_or_default();
        assert!(
            warning.starts_with("building minibwa's index needs 54 GiB of memory, but 16 GiB are free: "),
            "{warning}"
        );
        assert!(warning.contains("--engine genuma"), "{warning}");
        assert_eq!(index_memory_warning(100_000_000, 16 << 30), None);
    }
}
