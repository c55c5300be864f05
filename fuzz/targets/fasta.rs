//! Reads a reference FASTA, writes it, and reads the copy: both must be equal.
#![no_main]

use genuma_fuzz::InputFile;
use genuma_reads::fasta::Reference;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| {
    let input = InputFile::new("fasta", text);
    let Ok(genome) = Reference::read_fasta_file(input.path()) else { return };
    let again = InputFile::new("again", b"");
    genome.write_fasta_file(again.path()).expect("/dev/shm can be written");
    let same = Reference::read_fasta_file(again.path()).expect("what was written");
    let contigs = |genome: &Reference| -> Vec<(String, Vec<u8>)> {
        genome.contigs.iter().map(|contig| (contig.name.clone(), contig.seq.clone())).collect()
    };
    assert_eq!(contigs(&same), contigs(&genome));
});
