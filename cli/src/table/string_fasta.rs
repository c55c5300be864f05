//! Writes the strings of a dictionary as FASTA, with headers like those of BCALM2 and GGCAT.

use std::io::Write;
use std::path::Path;

use anyhow::Context;
use genuma_dictionary::Dictionary;

/// Field of the headers that gives the kind of the sequences. They are no unitigs: they continue at branches.
const STRING_KIND_FIELD: &str = "tp:Z:simplitig";

/// Writes all strings of the dictionary of the file `path`, numbered from 0. `samples` has the numbers of the samples
/// whose counts are summed for the fields KC and km; `None` leaves these fields out.
///
/// # Errors
/// The output cannot be written, or the dictionary is damaged.
pub(super) fn write_string_fasta(
    dictionary: &Dictionary,
    path: &Path,
    samples: Option<&[usize]>,
    out: &mut impl Write,
) -> anyhow::Result<()> {
    for (id, string) in dictionary.strings().enumerate() {
        let string = string.with_context(|| path.display().to_string())?;
        write!(out, ">{id} LN:i:{}", string.num_bases())?;
        if let Some(samples) = samples {
            let num_kmers = string.kmer_numbers().end - string.kmer_numbers().start;
            let counts = string
                .kmer_numbers()
                .flat_map(|kmer| samples.iter().map(move |&sample| u64::from(dictionary.get_count(kmer, sample))));
            let sum: u64 = counts.sum();
            write!(out, " KC:i:{sum} km:f:{:.1}", sum as f64 / num_kmers as f64)?;
        }
        writeln!(out, " {STRING_KIND_FIELD}")?;
        string.write_bases(out)?;
        out.write_all(b"\n")?;
    }
    Ok(())
}
