use std::path::PathBuf;
use genuma_somatic::*;
use genuma_reads::*;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let dir = PathBuf::from(&a[1]);
    let out = &a[3];
    let k: u32 = a[4].parse().unwrap();
    let q: u8 = a[5].parse().unwrap();
    let least: u32 = a[6].parse().unwrap();
    let f = |s: &str| [dir.join(format!("{s}_1.fq.gz")), dir.join(format!("{s}_2.fq.gz"))];
    let mut lanes = Lane::from_files(NORMAL, &f("normal"), Layout::Pairs).unwrap();
    lanes.extend(Lane::from_files(TUMOUR, &f("tumor"), Layout::Pairs).unwrap());
    let work = PathBuf::from(format!("{out}.work"));
    std::fs::create_dir_all(&work).unwrap();
    let nref = a.get(7).is_some();
    struct W(std::time::Instant);
    impl pipeline::Watch for W { fn begins(&self, u: &'static str, _: Option<std::sync::Arc<Meter>>) { eprintln!("{:?} {u}", self.0.elapsed()); } }
    let job = pipeline::Job { lanes, reference: (!nref).then(|| PathBuf::from(&a[2])),
        params: pipeline::Params { k, min_base_quality: q, least_tumour: least, least_quality: 12.0 },
        means: pipeline::Means { threads: 2, memory: 8 << 30 },
        store: unit::Store { work, fingerprint: String::new(), resume: false } };
    let w = W(std::time::Instant::now());
    let done = job.run(&w).unwrap();
    eprintln!("{:?} judged {:?} labelled {}", w.0.elapsed(), done.costs, done.pairs.len());
    let reference = &done.genome; let (events, contigs) = (&done.events, &done.contigs);
    let mut text = vcf::header(reference, "proto");
    for l in vcf::lines(events, reference) { text += &l.text; text.push('\n'); }
    std::fs::write(out, text).unwrap();
    let mut fa = String::new();
    for (i, c) in contigs.iter().enumerate() {
        let s: String = c.seq.iter().zip(&c.novel).map(|(b, n)| if *n { *b as char } else { b.to_ascii_lowercase() as char }).collect();
        fa += &format!(">t{}\n{}\n", i + 1, s);
    }
    std::fs::write(format!("{out}.fa"), fa).unwrap();
}
