//! `genuma index`: builds the index of a reference.

use std::path::{Path, PathBuf};
use std::time::Instant;

use genuma_align::engine::genuma;
use genuma_reads::fasta::Reference;
use genuma_work::ProgressListener;
use genuma_work::quantity;
use tracing::{info, warn};

use crate::call::memory_limits;
use crate::command_line;
use crate::progress::UnitProgressDisplay;

/// Memory that building the index takes, in tenths of a byte for each base of the reference ([`genuma::build_index`]).
const BUILD_BYTES_PER_10_BASES: u64 = 18;

/// Parses the value of the obsolete option `--engine`. Earlier versions could run the aligners of other projects as
/// engines.
///
/// # Errors
/// The engine is not `genuma`. For an earlier engine the message says how to run that aligner.
pub(crate) fn parse_obsolete_engine_option(name: &str) -> Result<(), String> {
    match name {
        "genuma" => Ok(()),
        "minibwa" | "strobealign" => Err(format!(
            "{name} is no longer built in: leave --engine out for genuma's own aligner, or install {name} and place it \
             with `genuma run -- {name} ...`"
        )),
        _ => Err("the only engine is genuma".to_owned()),
    }
}

/// Index a reference for `genuma align`.
///
/// Writes the index next to the reference: ref.fa.gnm, 1.1 bytes per base. It needs 1.8 bytes of memory per base to
/// build. A small file with checksums, ref.fa.gnm.seal, shows that the index is complete and belongs to this
/// reference.
#[derive(Debug, clap::Args)]
#[command(about = "Index a reference for `genuma align`", after_help = "Example:\n  genuma index ref.fa")]
pub(crate) struct Args {
    /// Reference genome, plain or compressed FASTA
    #[arg(value_name = "FASTA")]
    reference: PathBuf,
    /// Accepted from earlier versions; genuma is the only engine
    #[arg(long, hide = true, value_parser = parse_obsolete_engine_option)]
    engine: Option<()>,
    /// Threads [default: all CPUs]
    #[arg(short, long, value_name = "N", value_parser = command_line::thread_count_parser())]
    threads: Option<u16>,
}

/// Builds the index.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let start = Instant::now();
    let reference = &args.reference;
    let threads = command_line::threads_or_all_cpus(args.threads);
    // Checked here, because the index does not restrict the names of sequences, but SAM does.
    let bases = Reference::read_fasta_file(reference)?.contigs.iter().map(|contig| contig.seq.len() as u64).sum();
    if let Some(free) = memory_limits::available_memory_bytes(Path::new("/"))
        && let Some(warning) = index_memory_warning(bases, free)
    {
        warn!("{warning}");
    }
    let progress = UnitProgressDisplay::start();
    progress.unit_started("index", None);
    let built = genuma::build_index(reference, reference, threads);
    drop(progress);
    built?;
    info!("wrote {} in {:.1} s", genuma::index_path(reference).display(), start.elapsed().as_secs_f64());
    Ok(())
}

/// Returns a warning if building the index of `bases` bases takes more memory than the `free` bytes; otherwise `None`.
fn index_memory_warning(bases: u64, free: u64) -> Option<String> {
    let needed = bases * BUILD_BYTES_PER_10_BASES / 10;
    let (shown, free_shown) = (quantity::format_bytes(needed), quantity::format_bytes(free));
    (needed > free).then(|| {
        format!(
            "building the index needs {shown} of memory, but {free_shown} are free: it may fail or be very slow; use a \
             machine with more memory"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_little_memory_for_the_index_is_a_warning() {
        let warning = index_memory_warning(3_050_000_000, 4 << 30).unwrap_or_default();
        assert!(warning.starts_with("building the index needs 5.1 GiB of memory, but 4 GiB are free: "), "{warning}");
        assert_eq!(index_memory_warning(100_000_000, 4 << 30), None);
    }

    #[test]
    fn engines_of_earlier_versions_name_what_replaces_them() {
        assert_eq!(parse_obsolete_engine_option("genuma"), Ok(()));
        assert!(parse_obsolete_engine_option("minibwa").unwrap_err().contains("genuma run -- minibwa"));
        assert!(parse_obsolete_engine_option("bwa").is_err());
    }
}
