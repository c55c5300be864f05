use genuma_reads::fasta::Reference;
use std::path::PathBuf;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let reference = Reference::read(&PathBuf::from(&a[1])).unwrap();
    let placer = genuma_align::Placer::load(&PathBuf::from(format!("{}.idx", a[1]))).unwrap();
    let s = a[2].as_bytes();
    let hits = placer.mapper().map(b"x", &s.to_ascii_uppercase()).unwrap();
    for h in &hits { println!("{:?} {}-{} q {}-{} {:?} mapq {} prim {} supp {} sec {} {} score {}", h.contig, h.ref_start, h.ref_end, h.query_start, h.query_end, h.strand, h.mapq, h.is_primary, h.is_supplementary, h.is_secondary, h.cigar_string(), h.score); }
    let novel = s.iter().map(|b| b.is_ascii_uppercase()).collect();
    let c = genuma_somatic::assemble::Contig { seq: s.to_ascii_uppercase(), novel, reads: vec![] };
    let r = genuma_somatic::compare::compare(&c, &hits, &reference);
    for f in r.findings { println!("{:?} at {:?} shift {} mapq {}", f.change, f.at, f.right_shift, f.mapq); }
}
