//! Tests the sequencer: read lengths, qualities, N.

use genuma_simulate::{LibraryParams, SequencerParams};

use crate::common::{Made, Mate, clean, close, made};

fn with(machine: SequencerParams) -> Made {
    let mut params = clean(200_000, 1, 5.0);
    params.sequencing.machine = machine;
    made(&params)
}

fn mates(made: &Made) -> Vec<Mate> {
    made.pairs("tumor").into_iter().flatten().collect()
}

#[test]
fn reads_have_lengths_of_a_mix() {
    let made = with(SequencerParams { read_lengths: vec![100, 126, 150], ..Default::default() });
    let pairs = made.pairs("tumor");
    for length in [100, 126, 150] {
        let share = pairs.iter().filter(|p| p[0].bases.len() == length).count() as f64 / pairs.len() as f64;
        close(share, 1.0 / 3.0, 0.1);
    }
    assert!(pairs.iter().all(|[a, b]| a.bases.len() == b.bases.len()));
    let bases: usize = pairs.iter().flatten().map(|m| m.bases.len()).sum();
    close(bases as f64 / 200_000.0, 5.0, 0.02);
}

#[test]
fn some_mates_are_trimmed() {
    let made = with(SequencerParams { trimmed: 0.3, ..Default::default() });
    let mates = mates(&made);
    let short: Vec<usize> = mates.iter().map(|m| m.bases.len()).filter(|&l| l < 150).collect();
    close(short.len() as f64 / mates.len() as f64, 0.3, 0.06);
    assert!(short.iter().all(|&l| l >= 30));
    close(short.iter().sum::<usize>() as f64 / short.len() as f64, 89.5, 0.05);
    assert_eq!(made.count("tumor", "trimmed_mates"), short.len() as f64);
    let bases: usize = mates.iter().map(|m| m.bases.len()).sum();
    close(bases as f64 / 200_000.0, 5.0, 0.02);
}

#[test]
fn qualities_are_binned_and_errors_are_not() {
    let plain = with(SequencerParams::default());
    let binned = with(SequencerParams { binned_qualities: true, ..Default::default() });
    let values =
        |made: &Made| mates(made).iter().flat_map(|m| m.quals.clone()).collect::<std::collections::BTreeSet<u8>>();
    assert!(values(&plain).len() > 20);
    assert_eq!(values(&binned).into_iter().collect::<Vec<_>>(), [2, 12, 23, 37]);
    assert!(mates(&plain).iter().zip(mates(&binned)).all(|(a, b)| a.bases == b.bases));
}

#[test]
fn tails_have_quality_2_and_many_wrong_bases() {
    let made = with(SequencerParams { quality_tails: 0.2, ..Default::default() });
    let (mut tails, mut bases, mut wrong) = (0.0, 0.0, 0.0);
    let mates = mates(&made);
    for mate in &mates {
        let tail = mate.quals.iter().rev().take_while(|&&q| q == 2).count();
        // Single bases of quality 2 are common.
        if tail < 5 {
            continue;
        }
        tails += 1.0;
        let expected = made.expected(mate.place.as_ref().unwrap());
        let from = mate.bases.len() - tail;
        bases += tail as f64;
        wrong += (from..mate.bases.len()).filter(|&i| mate.bases[i] != expected[i]).count() as f64;
    }
    close(tails / mates.len() as f64, 0.2 * 146.0 / 150.0, 0.1);
    close(wrong / bases, 0.3, 0.05);
    close(made.count("tumor", "quality_tails") / mates.len() as f64, 0.2, 0.1);
}

#[test]
fn bases_are_called_n() {
    let share = |made: &Made| {
        let mates = mates(made);
        let ns = mates.iter().flat_map(|m| m.bases.iter().zip(&m.quals)).filter(|(b, _)| **b == b'N');
        assert!(ns.clone().all(|(_, &q)| q == 2));
        ns.count() as f64 / (150 * mates.len()) as f64
    };
    let few = share(&with(SequencerParams::default()));
    assert!(few < 5e-4, "{few}");
    close(share(&with(SequencerParams { n_rate: 0.01, ..Default::default() })) - few, 0.01, 0.06);
}

#[test]
fn four_colours_end_in_noise() {
    let mut params = clean(200_000, 1, 5.0);
    params.sequencing.library = LibraryParams { short_inserts: 0.2, ..Default::default() };
    let made = made(&params);
    let dimers: Vec<Mate> = mates(&made).into_iter().filter(|m| m.place.is_none()).collect();
    assert!(dimers.len() > 10);
    for mate in dimers {
        let behind = &mate.bases[72..];
        let a = behind.iter().filter(|&&b| b == b'A').count() as f64 / behind.len() as f64;
        assert!((0.5..0.95).contains(&a), "{a}");
        assert!(mate.quals[72..].iter().all(|q| (2..=16).contains(q)));
        assert!(mate.quals[..60].iter().filter(|q| **q > 30).count() > 40);
    }
}
