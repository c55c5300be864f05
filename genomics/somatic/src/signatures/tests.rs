use std::fmt::Write;

use genuma_reads::fasta::Contig;

use super::*;

const MIN_SNVS: u64 = SIGNATURE_MODEL_PARAMS.min_snvs;

/// Made signatures: a few contexts are frequent, the others rare, and neighbouring signatures share contexts.
fn made_signatures(num: usize) -> Vec<Signature> {
    let mut random = Random(1 << 20);
    (0..num)
        .map(|own| {
            let weights: Vec<f64> = (0..NUM_CONTEXTS).map(|_| random.uniform_number().powi(6) + 1e-3).collect();
            let sum: f64 = weights.iter().sum();
            let probabilities = weights.iter().map(|weight| weight / sum).collect();
            Signature { name: format!("S{own}"), probabilities }
        })
        .collect()
}

fn matrix(signatures: Vec<Signature>) -> SignatureMatrix {
    SignatureMatrix { path: "made.txt".into(), signatures }
}

/// Counts of `num_snvs` SNVs of signatures with these shares.
fn spectrum_of_mixture(matrix: &SignatureMatrix, shares: &[(usize, f64)], num_snvs: f64, seed: u64) -> Vec<u64> {
    let mut random = Random(seed << 24);
    let rate = |context: usize| {
        shares.iter().map(|(own, share)| num_snvs * share * matrix.signatures[*own].probabilities[context]).sum()
    };
    (0..NUM_CONTEXTS).map(|context| random.poisson_number(rate(context)) as u64).collect()
}

fn share_of(fit: &SignatureExposures, name: &str) -> Estimate {
    let found = fit.exposures.iter().find(|exposure| exposure.signature == name);
    found.map_or(Estimate { value: 0.0, low: 0.0, high: 0.0 }, |exposure| exposure.share)
}

/// The matrix as a file has it.
fn matrix_text(signatures: &[Signature]) -> String {
    let mut text = String::from("Type");
    signatures.iter().for_each(|signature| write!(text, "\t{}", signature.name).expect("memory"));
    for (context, name) in mutation_context_names().iter().enumerate() {
        write!(text, "\n{name}").expect("memory");
        let numbers = signatures.iter().map(|signature| signature.probabilities[context]);
        numbers.for_each(|number| write!(text, "\t{number}").expect("memory"));
    }
    text
}

#[test]
fn mixtures_are_recovered() {
    let matrix = matrix(made_signatures(30));
    let shares = [(3, 0.5), (11, 0.3), (20, 0.2)];
    // Number of SNVs, largest error of a share, and smallest similarity.
    for (num_snvs, max_error, min_similarity) in [(600.0, 0.12, 0.92), (2000.0, 0.05, 0.97)] {
        let (mut covered, mut false_signatures) = (0, 0);
        for seed in 1..=10 {
            let spectrum = spectrum_of_mixture(&matrix, &shares, num_snvs, seed);
            let fit = matrix.fit_exposures(&spectrum, None);
            assert_eq!(fit.num_snvs, spectrum.iter().sum::<u64>());
            assert!(fit.cosine_similarity > Some(min_similarity), "{fit:?}");
            let total: f64 = fit.exposures.iter().map(|exposure| exposure.share.value).sum();
            assert!(total > 0.85 && total < 1.0 + 1e-9, "{total}");
            for (own, share) in shares {
                let found = share_of(&fit, &format!("S{own}"));
                assert!((found.value - share).abs() < max_error, "{num_snvs}: S{own} {found:?}");
                assert!(found.low > 0.0 && found.low <= found.value && found.value <= found.high);
                covered += u32::from(found.low <= share && share <= found.high);
            }
            false_signatures += fit.exposures.iter().filter(|exposure| exposure.share.low > 0.0).count() - 3;
        }
        assert!(covered >= 24, "{num_snvs}: {covered} of 30 intervals have the true share");
        assert!(false_signatures <= 8, "{num_snvs}: {false_signatures}");
    }
}

#[test]
fn equal_input_gives_equal_results() {
    let matrix = matrix(made_signatures(8));
    let spectrum = spectrum_of_mixture(&matrix, &[(0, 0.6), (5, 0.4)], 800.0, 4);
    assert_eq!(matrix.fit_exposures(&spectrum, None), matrix.fit_exposures(&spectrum, None));
}

#[test]
fn too_few_snvs_are_not_fitted() {
    let matrix = matrix(made_signatures(3));
    for num_snvs in [0, 1, MIN_SNVS - 1] {
        let mut spectrum = vec![0; NUM_CONTEXTS];
        spectrum[7] = num_snvs;
        let fit = matrix.fit_exposures(&spectrum, None);
        assert_eq!((fit.num_snvs, fit.cosine_similarity, fit.exposures.len()), (num_snvs, None, 0));
        let noun = if num_snvs == 1 { "SNV" } else { "SNVs" };
        let why = format!("{num_snvs} {noun} with a mutation context passed, and a fit needs at least {MIN_SNVS}");
        assert_eq!(fit.why_no_exposures, Some(why));
    }
    let enough = spectrum_of_mixture(&matrix, &[(0, 1.0)], 1.2 * MIN_SNVS as f64, 1);
    assert_eq!(matrix.fit_exposures(&enough, None).why_no_exposures, None);
}

#[test]
fn equal_signatures_do_not_fail() {
    let one = made_signatures(1).remove(0);
    let matrix = matrix(vec![one.clone(), Signature { name: "again".into(), ..one.clone() }]);
    let fit = matrix.fit_exposures(&spectrum_of_mixture(&matrix, &[(0, 1.0)], 1000.0, 1), None);
    let total = fit.exposures.iter().map(|exposure| exposure.share.value).sum::<f64>();
    assert!(fit.exposures.len() == 1 && total > 0.9 && total < 1.0 + 1e-9, "{fit:?}");
}

/// Made signatures in groups of `group_size`: the others of a group have this cosine similarity to its first.
fn made_groups(num_groups: usize, group_size: usize, similarity: f64) -> Vec<Signature> {
    let all = made_signatures(num_groups * group_size);
    let similar_to = |first: &Signature, other: &Signature| {
        let mix = |part: f64| -> Vec<f64> {
            let pairs = first.probabilities.iter().zip(&other.probabilities);
            pairs.map(|(a, b)| part * a + (1.0 - part) * b).collect()
        };
        let [mut less, mut more] = [0.0, 1.0];
        for _ in 0..50 {
            let middle = (less + more) / 2.0;
            let is_below = cosine_similarity(&first.probabilities, &mix(middle)) < similarity;
            *(if is_below { &mut less } else { &mut more }) = middle;
        }
        Signature { name: other.name.clone(), probabilities: mix(more) }
    };
    let groups = all.chunks(group_size);
    groups
        .flat_map(|group| {
            group.iter().enumerate().map(|(i, own)| if i == 0 { own.clone() } else { similar_to(&group[0], own) })
        })
        .collect()
}

#[test]
fn a_group_of_similar_signatures_is_never_lost() {
    // Size of the groups of similar signatures, and shares by signature.
    for (group_size, shares) in [
        (2, vec![(0, 0.25), (1, 0.25), (2, 0.5)]),
        (3, vec![(0, 0.2), (1, 0.2), (2, 0.2), (3, 0.4)]),
        (2, vec![(2, 0.5), (4, 0.5)]),
    ] {
        let matrix = matrix(made_groups(4, group_size, 0.95));
        let columns: Vec<Vec<f64>> = matrix.signatures.iter().map(|own| own.probabilities.clone()).collect();
        for seed in 1..=6 {
            let spectrum = spectrum_of_mixture(&matrix, &shares, 300.0, seed);
            let counts: Vec<f64> = spectrum.iter().map(|&n| n as f64).collect();
            let selected = select_signatures(&columns, &counts);
            let mut groups: Vec<usize> = selected.iter().map(|at| at / group_size).collect();
            groups.dedup();
            for (own, _) in &shares {
                assert!(groups.contains(&(own / group_size)), "{shares:?}, seed {seed}: {selected:?}");
            }
            assert!(groups.len() <= 3 && selected.len() <= shares.len() + 1, "{shares:?}, seed {seed}: {selected:?}");
        }
    }
}

#[test]
fn shares_are_of_all_snvs() {
    let matrix = matrix(made_signatures(2));
    // Half of the SNVs are of a process that the matrix lacks: one context.
    let mut spectrum = spectrum_of_mixture(&matrix, &[(0, 1.0)], 1000.0, 1);
    let rarest = (0..NUM_CONTEXTS)
        .min_by(|&a, &b| {
            let [a, b] =
                [a, b].map(|at| matrix.signatures[0].probabilities[at] + matrix.signatures[1].probabilities[at]);
            a.total_cmp(&b)
        })
        .expect("contexts");
    spectrum[rarest] += 1000;
    let fit = matrix.fit_exposures(&spectrum, None);
    let share = share_of(&fit, "S0");
    assert!((share.value - 0.5).abs() < 0.06, "{fit:?}");
    assert!(fit.is_poor_fit() && !SignatureExposures::default().is_poor_fit());
    let good = matrix.fit_exposures(&spectrum_of_mixture(&matrix, &[(0, 0.5), (1, 0.5)], 2000.0, 1), None);
    assert!(!good.is_poor_fit(), "{good:?}");
}

#[test]
fn an_empty_or_degenerate_problem_ends() {
    assert_eq!(select_signatures(&[], &[1.0; NUM_CONTEXTS]), Vec::<usize>::new());
    let zero = vec![vec![0.0; NUM_CONTEXTS]; 3];
    assert_eq!(select_signatures(&zero, &[1.0; NUM_CONTEXTS]), Vec::<usize>::new());
    let matrix = matrix(made_signatures(2));
    let none = TargetToGenomeContextRatios(vec![0.0; NUM_CONTEXTS]);
    let fit = matrix.fit_exposures(&[50; NUM_CONTEXTS], Some(&none));
    assert_eq!(fit.why_no_exposures.as_deref(), Some("no signature explains the SNVs"));
}

#[test]
fn least_squares_fulfil_their_conditions() {
    // Without the limit the second coefficient would be negative.
    let columns = vec![vec![1.0, 1.0, 0.0], vec![1.0, 0.0, 1.0], vec![0.0, 0.5, 0.5]];
    let counts = [3.0, 2.0, 0.5];
    let problem = LeastSquares::new(&columns);
    let solution = problem.solve(&counts);
    for (column, value) in solution.iter().enumerate() {
        let gradient = dot(&columns[column], &counts) - dot(&problem.products[column], &solution);
        assert!(*value >= 0.0 && gradient < 1e-9 && (gradient * value).abs() < 1e-9, "{solution:?}");
    }
    assert!(solution[0] > 2.0 && solution[2] == 0.0, "{solution:?}");
}

#[test]
fn signatures_are_normalised_to_targets() {
    // C in the targets is before G only; the genome has equally many CA and CG.
    let contig = |name: &str, unit: &[u8]| Contig { name: name.into(), seq: unit.repeat(20) };
    let genome = Reference::from_contigs(vec![contig("a", b"ACGACGACGACG"), contig("b", b"ACAACAACAACA")]);
    let target = Target { contig: 0, start: 30, end: 150, name: String::new() };
    let targets = Targets::merge_overlapping_intervals(vec![target]);
    let ratios = TargetToGenomeContextRatios::compare_targets_with_genome(&genome, &targets, 10, 1);
    let contexts = mutation_context_names();
    let at = |name: &str| contexts.iter().position(|context| context == name).expect("a context");
    assert_eq!(ratios.0[at("A[C>T]A")], 0.0);
    assert!(ratios.0[at("A[C>T]G")] > 1.5, "{}", ratios.0[at("A[C>T]G")]);
    let mut probabilities = vec![0.0; NUM_CONTEXTS];
    (probabilities[at("A[C>T]A")], probabilities[at("A[C>T]G")]) = (0.7, 0.3);
    let normalised = Signature { name: "S".into(), probabilities }.normalised(Some(&ratios));
    assert_eq!((normalised[at("A[C>T]A")], normalised[at("A[C>T]G")]), (0.0, 1.0));
}

#[test]
fn matrices_are_read_in_any_order_of_rows() {
    let signatures = made_signatures(2);
    let text = matrix_text(&signatures);
    let mut lines: Vec<&str> = text.lines().collect();
    lines[1..].reverse();
    let read = parse_signatures(&(lines.join("\r\n") + "\r\n")).expect("a matrix");
    for (read, made) in read.iter().zip(&signatures) {
        assert_eq!(read.name, made.name);
        assert!(read.probabilities.iter().zip(&made.probabilities).all(|(a, b)| (a - b).abs() < 1e-12));
    }
}

#[test]
fn malformed_matrices_are_refused() {
    let text = matrix_text(&made_signatures(2));
    let lines: Vec<&str> = text.lines().collect();
    let without_last = lines[..96].join("\n");
    let number = lines[1].split('\t').nth(1).expect("a number");
    let many: String = (0..=MAX_SIGNATURES).map(|at| format!("\tS{at}")).collect();
    for (changed, fault) in [
        (String::new(), "is empty"),
        (text.replacen("Type", "Trinucleotide", 1), "the first column is \"Trinucleotide\""),
        (text.replacen("S1", "S0", 1), "\"S0\" of a signature is empty or given twice"),
        ("Type\nA[C>A]A".to_owned(), "has no signature"),
        (format!("Type{many}"), "has 1001 signatures, and at most 1000 are allowed"),
        (without_last.clone(), "the context T[T>G]T is missing (1 of 96 are)"),
        (format!("{text}\n{}", lines[5]), "line 98: the context C[C>A]A is given twice"),
        (text.replacen("A[C>A]A", "A[G>A]A", 1), "line 2: \"A[G>A]A\" is not a context"),
        (text.replacen(number, "-0.01", 1), "line 2, S0: -0.01 is not a probability"),
        (text.replacen(number, "NaN", 1), "line 2, S0: NaN is not a probability"),
        (text.replacen(number, "0,1", 1), "line 2, S0: \"0,1\" is not a number"),
        (text.replacen(number, "0.5", 1), "the probabilities of S0 sum to 1."),
        (format!("{without_last}\nT[T>G]T\t0.1"), "line 97: has 1 numbers for 2 signatures"),
    ] {
        let refused = parse_signatures(&changed).expect_err(fault);
        assert!(refused.contains(fault), "{refused}");
    }
    assert!(SignatureMatrix::read(Path::new("/none")).expect_err("no file").to_string().contains("/none: cannot read"));
}
