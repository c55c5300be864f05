//! Error rates that are learned from reads on contigs.

use crate::common::{Rng, other};
use genuma_reads::{NORMAL_SAMPLE, TUMOUR_SAMPLE};
use genuma_somatic::packed::OwnedRead;
use genuma_somatic::sequencing_errors::{BaseErrorCounts, ReadOnContig};

/// Reads of a sequence with some errors, all of one quality.
fn misread(
    seq: &[u8],
    n: usize,
    quality: u8,
    mut wrong: impl FnMut(usize, usize, u8) -> Option<u8>,
) -> Vec<(i32, OwnedRead)> {
    (0..n)
        .map(|i| {
            let at = i * 37 % (seq.len() - 110);
            let mut bases = seq[at..at + 110].to_vec();
            for (j, base) in bases.iter_mut().enumerate() {
                *base = wrong(i, at + j, *base).unwrap_or(*base);
            }
            (at as i32, OwnedRead { qual: vec![quality; bases.len()], seq: bases })
        })
        .collect()
}

fn tally(seq: &[u8], reads: &[(i32, OwnedRead)], first_forward: bool) -> BaseErrorCounts {
    let on: Vec<ReadOnContig<'_>> = reads
        .iter()
        .map(|(at, read)| ReadOnContig { sample: TUMOUR_SAMPLE, is_f1r2: first_forward, start: *at, read })
        .collect();
    BaseErrorCounts::count_wrong_bases(seq, &vec![false; seq.len()], &on, None)
}

#[test]
fn damage_is_that_of_good_bases_where_errors_are_measured() {
    let seq = Rng(97).sequence(4000);
    let reads = misread(&seq, 4000, 26, |_, _, _| None);
    let on: Vec<ReadOnContig<'_>> = reads
        .iter()
        .map(|(at, read)| ReadOnContig { sample: TUMOUR_SAMPLE, is_f1r2: true, start: *at, read })
        .collect();
    let rate = |error_rate| {
        let counts = BaseErrorCounts::count_wrong_bases(&seq, &vec![false; seq.len()], &on, error_rate);
        counts.substitution_rate(TUMOUR_SAMPLE, true, 0, 1)
    };
    assert_eq!([rate(None), rate(Some(1e-4))], [Some(0.0), None]);
}

#[test]
fn qualities_that_promise_too_much_are_lowered_to_what_the_reads_show() {
    let mut rng = Rng(97);
    let seq = rng.sequence(4000);
    // One base in 250 is wrong, all have quality 40; and there is a germline variant at 2000 in every second read.
    let mut draw = Rng(98);
    let reads =
        misread(&seq, 2000, 40, |i, at, base| (draw.chance(0.004) || i % 2 == 0 && at == 2000).then(|| other(base)));
    let found = tally(&seq, &reads, true);
    let rate = found.error_rate_at_quality(40).unwrap();
    assert!((0.0035..0.0045).contains(&rate), "{rate}");
    assert_eq!(found.error_rate_at_quality(30), None);
}

#[test]
fn damage_of_one_orientation_is_told_from_errors() {
    let mut rng = Rng(99);
    let seq = rng.sequence(4000);
    // Oxidised guanine: one G in a hundred is read as T if read 1 has the sequence's orientation.
    let mut draw = Rng(100);
    let oxidised = misread(&seq, 4000, 37, |_, _, base| (base == b'G' && draw.chance(0.01)).then_some(b'T'));
    let mut found = tally(&seq, &oxidised, true);
    found.merge_counts(&tally(&seq, &misread(&seq, 4000, 37, |_, _, _| None), false));
    let (g, t) = (2, 3);
    let rate = found.substitution_rate(TUMOUR_SAMPLE, true, g, t).unwrap();
    assert!((0.008..0.012).contains(&rate), "{rate}");
    assert_eq!(found.substitution_rate(TUMOUR_SAMPLE, false, g, t), Some(0.0));
    assert_eq!(found.substitution_rate(TUMOUR_SAMPLE, true, t, g), Some(0.0));
    assert_eq!(found.substitution_rate(NORMAL_SAMPLE, true, g, t), None);
}

#[test]
fn reads_of_another_place_say_nothing_of_errors() {
    let mut rng = Rng(101);
    let seq = rng.sequence(4000);
    let strange = misread(&seq, 500, 37, |i, at, base| ((i + at) % 8 == 0).then(|| other(base)));
    assert_eq!(tally(&seq, &strange, true), BaseErrorCounts::default());
}
