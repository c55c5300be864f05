//! Scores a VCF file against itself, with or without a genome.
#![no_main]

use std::sync::OnceLock;

use genuma_fuzz::InputFile;
use genuma_simulate::evaluate::{EvaluationInputs, FilterMode, evaluate_calls, format_evaluation_tables, vcf};
use libfuzzer_sys::fuzz_target;

/// Two contigs of 400 and 200 bases.
fn genome() -> &'static InputFile {
    static GENOME: OnceLock<InputFile> = OnceLock::new();
    GENOME.get_or_init(|| {
        let bases = |n: usize| -> String { (0..n).map(|i| b"ACGTTGCAAC"[i * i % 10] as char).collect() };
        InputFile::new("genome", format!(">c\n{}\n>d\n{}\n", bases(400), bases(200)).as_bytes())
    })
}

fuzz_target!(|text: &[u8]| {
    let Ok(text) = std::str::from_utf8(text) else { return };
    if vcf::parse_vcf(text, "x.vcf".as_ref()).is_err() {
        return;
    }
    let calls = InputFile::new("calls", text.as_bytes());
    let (truth, calls) = (calls.path(), calls.path());
    let reference = (text.len() % 2 == 0).then(|| genome().path());
    let inputs =
        EvaluationInputs { truth, calls, contigs: None, reference, germline: None, filters: FilterMode::All };
    if let Ok(outcome) = evaluate_calls(&inputs) {
        format_evaluation_tables(&outcome, 10);
        outcome.to_json();
    }
});
