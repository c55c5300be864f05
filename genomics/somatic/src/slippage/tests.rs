use super::*;

#[test]
fn lengths_are_read_off_reads() {
    let seq = |copies: usize| [&b"GATTACCTGAGTCCGT"[..], &b"CA".repeat(copies), b"GTCCAGATTCGGATT"].concat();
    let contig = seq(10);
    let repeat = RepeatRange::find_repeat_around(&contig, 20, 2);
    assert_eq!((repeat.length_bp(), repeat.unit), (20, 2));
    for copies in [4, 9, 10, 11, 20] {
        assert_eq!(repeat.length_in_read(&contig, &seq(copies), &[0]), Some(2 * copies));
        assert_eq!(repeat.length_in_read(&contig, &seq(copies)[5..], &[5]), Some(2 * copies));
    }
    let mut wrong = seq(10);
    wrong[24] = b'G';
    assert_eq!(repeat.length_in_read(&contig, &wrong, &[0]), Some(20));
    // A flank is missing.
    assert_eq!(repeat.length_in_read(&contig, &contig[..38], &[0]), None);
    assert_eq!(repeat.length_in_read(&contig, &contig[12..], &[12]), None);
    assert_eq!(RepeatRange::find_countable_repeats(&contig), [repeat]);
}

#[test]
fn rates_follow_what_was_counted() {
    let mut tally = ReadCountsByRepeatLength::default();
    for _ in 0..1000 {
        tally.count_repeat_reads(1, 12, &[12, 12, 12, 12, 12, 12, 12, 12, 11, 13]);
    }
    // A germline variant is not slippage.
    tally.count_repeat_reads(1, 12, &[11; 400]);
    let slippage = SlippageModel::estimate_slippage_rates(&tally);
    for (shown, expected) in [(12, 0.8), (11, 0.09), (13, 0.09), (10, 0.009)] {
        let p = slippage.probability_of_shown_length(1, 12, shown);
        assert!((p - expected).abs() < 0.1 * expected, "{shown}: {p}");
    }
    assert!(
        slippage.probability_of_shown_length(1, 25, 24)
            > SlippageModel::default().probability_of_shown_length(1, 15, 14)
    );
    assert!(SlippageModel::default().probability_of_shown_length(1, 8, 7) < 0.002);
}

#[test]
fn a_few_reads_of_an_allele_are_no_slips() {
    let reads = |slipped: usize| [vec![11; slipped], vec![12; 100 - slipped]].concat();
    let learned = |outlier: bool| {
        let mut tally = ReadCountsByRepeatLength::default();
        (0..200).for_each(|i| tally.count_repeat_reads(1, 12, &reads(i % 3)));
        if outlier {
            (0..3).for_each(|_| tally.count_repeat_reads(1, 12, &reads(25)));
        }
        SlippageModel::estimate_slippage_rates(&tally).probability_of_shown_length(1, 12, 11)
    };
    assert!((learned(false) - 0.009).abs() < 0.002, "{}", learned(false));
    assert!((learned(true) - learned(false)).abs() < 1e-3);
}

#[test]
fn long_repeats_tell_of_long_ones() {
    let mut tally = ReadCountsByRepeatLength::default();
    // Short repeats slip more often than expected, long repeats never.
    (0..100).for_each(|_| tally.count_repeat_reads(2, 10, &[[10; 39].as_slice(), &[8]].concat()));
    (0..60).for_each(|_| tally.count_repeat_reads(1, 18, &[18; 40]));
    let times = |unit: usize, length: usize| {
        SlippageModel::estimate_slippage_rates(&tally).shortening_and_lengthening_rates(unit, length)[0].rate
            / SlippageModel::default().shortening_and_lengthening_rates(unit, length)[0].rate
    };
    assert!(times(2, 10) > 10.0, "{}", times(2, 10));
    for (unit, length) in [(1, 22), (2, 48), (3, 60)] {
        assert!(times(unit, length) < if unit == 1 { 0.3 } else { 1.5 }, "{unit}: {}", times(unit, length));
    }
}

#[test]
fn few_reads_and_places_apart_make_rates_uncertain() {
    let reads = |slipped: usize| [vec![11; slipped], vec![12; 200 - slipped]].concat();
    let spread = |sites: usize, slipped: [usize; 2]| {
        let mut tally = ReadCountsByRepeatLength::default();
        (0..sites).for_each(|i| tally.count_repeat_reads(1, 12, &reads(slipped[i % 2])));
        SlippageModel::estimate_slippage_rates(&tally).shortening_and_lengthening_rates(1, 12)[0].log_spread
    };
    let [none, few, many] = [0, 4, 400].map(|sites| spread(sites, [10, 10]));
    assert!(none > few && few > many && many < 0.05, "{none} {few} {many}");
    // Half of the sites slip three times as often as the other half: the variance is 25, of which 10 by chance,
    // where 10 are expected.
    let apart = spread(400, [5, 15]);
    assert!((apart - 0.15f64.sqrt()).abs() < 0.02, "{apart}");
}

#[test]
fn tallies_add_up_and_units_are_apart() {
    let (mut one, mut two, mut both) =
        (ReadCountsByRepeatLength::default(), ReadCountsByRepeatLength::default(), ReadCountsByRepeatLength::default());
    for i in 0..100 {
        let lengths = [20, 20, 20, 20, 18];
        both.count_repeat_reads(2, 20, &lengths);
        if i % 2 == 0 { &mut one } else { &mut two }.count_repeat_reads(2, 20, &lengths);
    }
    one.merge_counts(&two);
    let (sum, all, guess) = (
        SlippageModel::estimate_slippage_rates(&one),
        SlippageModel::estimate_slippage_rates(&both),
        SlippageModel::default(),
    );
    assert!((sum.probability_of_shown_length(2, 20, 18) - all.probability_of_shown_length(2, 20, 18)).abs() < 1e-12);
    assert!(all.probability_of_shown_length(2, 20, 18) > 0.1 && guess.probability_of_shown_length(2, 20, 18) < 0.03);
    let shorter =
        |s: &SlippageModel, unit: usize, length: usize| s.probability_of_shown_length(unit, length, length - unit);
    // Homopolymers do not affect longer units, and vice versa. Lengths without reads use the library's factor.
    assert!((shorter(&all, 1, 10) - shorter(&guess, 1, 10)).abs() < 1e-12);
    for (unit, length) in [(3, 30), (2, 60)] {
        let times = shorter(&all, unit, length) / shorter(&guess, unit, length);
        assert!(times > 1.4 && times <= SLIPPAGE_MODEL_PARAMS.scale_range[1] + 1e-9, "{unit} {length}: {times}");
    }
    // Slippage by half a unit is not possible.
    assert!(all.probability_of_shown_length(2, 20, 19) < 1e-3);
}
