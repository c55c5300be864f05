//! VCF of truth and of calls, scored against itself, with a genome or without.
#![no_main]

use std::sync::OnceLock;

use genuma_fuzz::Input;
use genuma_simulate::evaluate::{Filters, Inputs, evaluate, render, vcf};
use libfuzzer_sys::fuzz_target;

/// Two contigs of 400 and 200 bases.
fn genome() -> &'static Input {
    static GENOME: OnceLock<Input> = OnceLock::new();
    GENOME.get_or_init(|| {
        let bases = |n: usize| -> String { (0..n).map(|i| b"ACGTTGCAAC"[i * i % 10] as char).collect() };
        Input::new("genome", format!(">c\n{}\n>d\n{}\n", bases(400), bases(200)).as_bytes())
    })
}

fuzz_target!(|text: &[u8]| {
    let Ok(text) = std::str::from_utf8(text) else { return };
    if vcf::parse(text, "x.vcf".as_ref()).is_err() {
        return;
    }
    let calls = Input::new("calls", text.as_bytes());
    let (truth, calls) = (calls.path(), calls.path());
    let reference = (text.len() % 2 == 0).then(|| genome().path());
    let inputs = Inputs { truth, calls, reference, germline: None, filters: Filters::All };
    if let Ok(outcome) = evaluate(&inputs) {
        render(&outcome, 10);
        outcome.to_json();
    }
});
