//! Tests library artefacts: short inserts, fold-backs, chimeras, damage, duplicates, slippage.

use std::collections::BTreeMap;

use genuma_simulate::{AdapterType, GermlineParams, LibraryParams, RecurrentErrorParams, SimulationParams};

use crate::common::{Made, Mate, clean, close, made, of_genome, revcomp, write_fasta};

fn with(library: LibraryParams, depth: f64) -> SimulationParams {
    let mut params = clean(300_000, 2, depth);
    params.sequencing.library = library;
    params
}

fn alike(read: &[u8], expected: &[u8]) -> bool {
    read.iter().zip(expected).filter(|(a, b)| a != b).count() <= 1 + expected.len() / 10
}

#[test]
fn short_molecules_are_read_into_adapters() {
    for (adapter, starts, ends) in [
        (AdapterType::Truseq, ["AGATCGGAAGAGCACACGTCTGAACTCCAGTCAC", "AGATCGGAAGAGCGTCGTGTAGGGAAAGAGTGT"], [34, 33]),
        (AdapterType::Nextera, ["CTGTCTCTTATACACATCTCCGAGCCCACGAGAC", "CTGTCTCTTATACACATCTGACGCTGCCGACGA"], [34, 33]),
    ] {
        let library = LibraryParams { adapter: Some(adapter), short_inserts: 0.3, ..Default::default() };
        let mut params = with(library, 5.0);
        params.sequencing.machine.two_colour = true;
        let made = made(&params);
        let indices = ["tumor", "normal"].map(|sample| {
            let pairs = made.pairs(sample);
            let (mut short, mut dimers, mut unlike) = (0, 0, 0);
            let mut indices: [BTreeMap<Vec<u8>, usize>; 2] = Default::default();
            for (number, mate) in pairs.iter().flat_map(|pair| pair.iter().enumerate()) {
                assert_eq!(mate.bases.len(), 150);
                let own = mate.place.as_ref().map_or(0, |p| p.end - p.start);
                assert!(own == 0 || own >= 30);
                let rest = &mate.bases[own..];
                short += usize::from(own < 150);
                dimers += usize::from(own == 0);
                let seen = rest.len().min(ends[number]);
                unlike += usize::from(!alike(&rest[..seen], &starts[number].as_bytes()[..seen]));
                if let Some(index) = rest.get(ends[number]..ends[number] + 8) {
                    *indices[number].entry(index.to_vec()).or_default() += 1;
                }
                if own == 0 {
                    // Without signal the base is G.
                    unlike += usize::from(!alike(&rest[72..], &[b'G'; 78]));
                }
            }
            // A few mates have a lost quality tail.
            assert!(unlike * 30 < short, "{unlike} of {short}");
            let mates = 2.0 * pairs.len() as f64;
            close(short as f64 / mates, 0.3, 0.1);
            if sample == "tumor" {
                close(dimers as f64 / short as f64, 0.02, 0.5);
                assert_eq!(made.count(sample, "adapter_mates"), short as f64);
            }
            indices.map(|seen| seen.into_iter().max_by_key(|s| s.1).unwrap().0)
        });
        assert!(indices[0][0] != indices[1][0] && indices[0][1] != indices[1][1], "samples have their own index");
    }
    let off = made(&with(LibraryParams::default(), 3.0));
    let all = off.pairs("tumor").into_iter().flatten();
    assert!(all.filter_map(|m| m.place).all(|p| p.end - p.start == 150));
}

#[test]
fn inserts_below_the_read_length_overlap_fully() {
    let mut params = clean(200_000, 1, 3.0);
    (params.sequencing.insert_mean, params.sequencing.insert_sd) = (120.0, 20.0);
    let made = made(&params);
    let pairs = made.pairs("tumor");
    let inside = pairs.iter().filter(|[a, b]| match (&a.place, &b.place) {
        (Some(a), Some(b)) => a.end - a.start < 150 && (a.start, a.end) == (b.start, b.end) && a.reverse != b.reverse,
        _ => false,
    });
    close(inside.count() as f64 / pairs.len() as f64, 0.933, 0.03);
    // The depth counts the molecules' own bases only.
    let depth = &made.depth("tumor")["chr1"];
    close(depth.iter().sum::<f64>() / depth.len() as f64, 3.0, 0.02);
}

/// Returns whether the read has a 20-mer and its reverse complement.
fn turns_back(bases: &[u8]) -> bool {
    let other = revcomp(bases);
    bases.windows(20).any(|word| other.windows(20).any(|w| w == word))
}

#[test]
fn molecules_fold_back() {
    let on = made(&with(LibraryParams { fold_backs: 0.2, ..Default::default() }, 3.0));
    let pairs = on.pairs("tumor");
    close(on.count("tumor", "fold_backs") / pairs.len() as f64, 0.2, 0.1);
    let (mut same_strand, mut crossing, mut turned) = (0, 0, 0);
    for [a, b] in &pairs {
        if let (Some(a), Some(b)) = (&a.place, &b.place) {
            let near = a.contig == b.contig && a.start.abs_diff(b.start) < 800;
            same_strand += usize::from(near && a.reverse == b.reverse);
        }
        for mate in [a, b].into_iter().filter(|m| m.place.is_none()) {
            crossing += 1;
            turned += usize::from(turns_back(&mate.bases));
        }
    }
    // Some folds are inside a mate, others between the mates.
    let share = |n: usize| n as f64 / pairs.len() as f64;
    assert!((0.02..0.15).contains(&share(same_strand)), "{same_strand} of {}", pairs.len());
    assert!((0.08..0.25).contains(&share(crossing)), "{crossing} of {}", pairs.len());
    // Loops and short arms hide the rest.
    assert!(turned * 3 > crossing, "{turned} of {crossing}");

    let off = made(&with(LibraryParams::default(), 3.0));
    let turned = off.pairs("tumor").iter().flatten().filter(|m| turns_back(&m.bases)).count();
    assert!(turned < 40, "{turned}");
}

#[test]
fn fold_backs_recur_at_the_same_stems() {
    let mut params = with(LibraryParams { fold_backs: 0.5, ..Default::default() }, 150.0);
    params.genome = genuma_simulate::GenomeSource::Made { length: 5_000, contigs: 1, repeats: None };
    let made = made(&params);
    // Number of reads that differ from the reference from a position on.
    let seq = &made.genome["chr1"];
    let mut stops: BTreeMap<usize, usize> = BTreeMap::new();
    for mate in made.pairs("tumor").iter().flatten().filter(|m| m.place.is_none()) {
        let word = &mate.bases[..25];
        if let Some(at) = seq.windows(25).position(|w| w == word) {
            let same = seq[at..].iter().zip(&mate.bases).take_while(|(a, b)| a == b).count();
            *stops.entry(at + same).or_default() += 1;
        }
    }
    let all: usize = stops.values().sum();
    let recurrent: usize = stops.values().filter(|&&n| n >= 5).sum();
    assert!(all > 300 && recurrent * 3 > all, "{recurrent} of {all}");
}

#[test]
fn chimeras_join_places() {
    let made = made(&with(LibraryParams { chimeras: 0.3, ..Default::default() }, 3.0));
    let pairs = made.pairs("tumor");
    close(made.count("tumor", "chimeras") / pairs.len() as f64, 0.3, 0.1);
    let (mut told, mut near, mut apart, mut other) = (0.0, 0.0, 0.0, 0.0);
    let mut broken = 0;
    for [a, b] in &pairs {
        let (Some(a), Some(b)) = (&a.place, &b.place) else {
            broken += 1;
            continue;
        };
        let usual = a.contig == b.contig && a.reverse != b.reverse && {
            let (left, right) = if a.reverse { (b, a) } else { (a, b) };
            left.start <= right.start && right.end - left.start < 800
        };
        if usual {
            continue;
        }
        told += 1.0;
        if a.contig != b.contig {
            other += 1.0;
        } else if a.start.abs_diff(b.start) <= 2000 {
            near += 1.0;
        } else {
            apart += 1.0;
        }
    }
    // The junction is in a mate or between the mates.
    close(broken as f64 / pairs.len() as f64, 0.3 * 0.75, 0.2);
    assert!(told > 50.0);
    // Half of the partners are near, but some of these look like normal pairs. A tenth, and some of the genome-wide
    // ones, are on the other contig.
    assert!((0.2..0.55).contains(&(near / told)), "{near} of {told}");
    assert!(other / told > 0.2 && apart / told > 0.2, "{other} {apart} of {told}");
}

/// Counts pairs of reference base and read base, in the direction of the read, by mate.
fn substitutions(made: &Made, mates: impl Fn(&[Mate; 2]) -> bool) -> [BTreeMap<(u8, u8), f64>; 2] {
    let mut seen: [BTreeMap<(u8, u8), f64>; 2] = Default::default();
    for pair in made.pairs("tumor").iter().filter(|p| mates(p)) {
        for (mate, seen) in pair.iter().zip(&mut seen) {
            let Some(place) = &mate.place else { continue };
            for (a, b) in made.expected(place).into_iter().zip(&mate.bases) {
                *seen.entry((a, *b)).or_default() += 1.0;
            }
        }
    }
    seen
}

fn rate(seen: &BTreeMap<(u8, u8), f64>, from: u8, to: u8) -> f64 {
    let all: f64 = seen.iter().filter(|(k, _)| k.0 == from).map(|(_, n)| n).sum();
    seen.get(&(from, to)).copied().unwrap_or(0.0) / all
}

#[test]
fn damage_is_on_the_strand_of_read_1() {
    let base = substitutions(&made(&with(LibraryParams::default(), 8.0)), |_| true);
    let background = rate(&base[0], b'G', b'T').max(rate(&base[1], b'G', b'T'));
    assert!(background < 2e-3, "{background}");
    for (library, [from, to]) in [
        (LibraryParams { oxidation: 0.01, ..Default::default() }, [b'G', b'T']),
        (LibraryParams { deamination: 0.01, ..Default::default() }, [b'C', b'T']),
    ] {
        let damaged = made(&with(library, 8.0));
        let seen = substitutions(&damaged, |_| true);
        let complement = |b: u8| revcomp(&[b])[0];
        let (first, second) = (rate(&seen[0], from, to), rate(&seen[1], complement(from), complement(to)));
        // Context factors: once in 3 of 4 cases, three times in slightly less than 1 of 4; ends add more.
        assert!((0.012..0.025).contains(&first), "{first}");
        // Read 2 reads the copied strand, far from the end of read 1.
        assert!((0.012..0.025).contains(&second), "{second}");
        assert!(rate(&seen[1], from, to) < 2e-3 && rate(&seen[0], complement(from), complement(to)) < 2e-3);
        // On the reference, F1R2 pairs show the substitution itself, F2R1 pairs its complement.
        for reverse in [false, true] {
            let of_strand = |pair: &[Mate; 2]| pair[0].place.as_ref().is_some_and(|p| p.reverse == reverse);
            let seen = substitutions(&damaged, of_strand);
            // A reverse read 1 has its bases complemented.
            let on_reference = |a: u8, b: u8| {
                if reverse { rate(&seen[0], complement(a), complement(b)) } else { rate(&seen[0], a, b) }
            };
            let (there, other) = (on_reference(from, to), on_reference(complement(from), complement(to)));
            let (high, low) = if reverse { (other, there) } else { (there, other) };
            assert!(high > 0.012 && low < 2e-3, "{high} {low}");
        }
    }
}

#[test]
fn damage_prefers_contexts_and_ends() {
    let of = |library: LibraryParams, from: u8, next: u8, ends: bool| {
        let made = made(&with(library, 6.0));
        let (mut inside, mut outside) = ([0.0; 2], [0.0; 2]);
        for [mate, _] in made.pairs("tumor") {
            let Some(place) = &mate.place else { continue };
            let expected = made.expected(place);
            for i in 0..149 {
                if expected[i] == from && (ends || i >= 10) {
                    let context = if ends { i < 10 } else { expected[i + 1] == next };
                    let counts = if context { &mut inside } else { &mut outside };
                    counts[0] += 1.0;
                    counts[1] += f64::from(u8::from(mate.bases[i] == b'T'));
                }
            }
        }
        (inside[1] / inside[0]) / (outside[1] / outside[0])
    };
    close(of(LibraryParams { oxidation: 0.02, ..Default::default() }, b'G', b'G', false), 3.0, 0.15);
    close(of(LibraryParams { deamination: 0.02, ..Default::default() }, b'C', b'G', false), 3.0, 0.15);
    close(of(LibraryParams { deamination: 0.02, ..Default::default() }, b'C', b'G', true), 5.0, 0.15);
}

/// Returns groups of at least three duplicates of one molecule.
fn families(made: &Made) -> Vec<Vec<[Mate; 2]>> {
    let mut by_ends: BTreeMap<_, Vec<[Mate; 2]>> = BTreeMap::new();
    for pair in made.pairs("tumor") {
        // A slip changes how far a read extends, but not where it begins.
        let begin = |mate: &Mate| {
            mate.place.as_ref().map(|p| (p.contig.clone(), if p.reverse { p.end } else { p.start }, p.reverse))
        };
        if let [Some(a), Some(b)] = [begin(&pair[0]), begin(&pair[1])] {
            by_ends.entry((a, b)).or_default().push(pair);
        }
    }
    by_ends.into_values().filter(|f| f.len() >= 3).collect()
}

#[test]
fn copies_share_errors_of_pcr_and_damage() {
    let mut params = with(LibraryParams { pcr_errors: 2e-3, deamination: 2e-3, ..Default::default() }, 10.0);
    params.sequencing.duplicates = 0.5;
    let made = made(&params);
    let (mut bases, mut shared, mut single) = (0.0, 0.0, 0.0);
    for family in families(&made) {
        for mate in 0..2 {
            let expected = made.expected(family[0][mate].place.as_ref().unwrap());
            for (i, &base) in expected.iter().enumerate() {
                let wrong = family.iter().filter(|pair| pair[mate].bases[i] != base).count();
                bases += 1.0;
                shared += f64::from(u8::from(wrong == family.len()));
                single += f64::from(u8::from(wrong > 0 && wrong < family.len()));
            }
        }
    }
    assert!(bases > 20_000.0, "{bases}");
    // A fifth of the bases are C, half of them on the molecule's own strand; a few are errors of one duplicate.
    assert!((0.002..0.0035).contains(&(shared / bases)), "{}", shared / bases);
    assert!(single / bases < 0.012, "{}", single / bases);
}

/// Creates a genome with a homopolymer of 12 every 600 bases.
fn with_homopolymers(folder: &std::path::Path) -> std::path::PathBuf {
    let mut state = 1u64;
    let mut base = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        b"ACGT"[(state >> 62) as usize]
    };
    let mut seq = vec![];
    for _ in 0..200 {
        let stretch: Vec<u8> = (0..588).map(|_| base()).collect();
        seq.extend(stretch);
        // Flanking bases that differ from the homopolymer.
        seq.extend(b"CGAAAAAAAAAAAAGC");
    }
    write_fasta(folder, &[("a", seq)])
}

/// Returns the length of the homopolymer in a read, if both flanks are in the read.
fn homopolymer(bases: &[u8]) -> Option<usize> {
    let both = [bases.to_vec(), revcomp(bases)];
    both.iter().find_map(|b| {
        let at = b.windows(9).position(|w| w == b"CGAAAAAAA")? + 2;
        let length = b[at..].iter().take_while(|&&b| b == b'A').count();
        (at + length + 2 <= b.len() && &b[at + length..at + length + 2] == b"GC").then_some(length)
    })
}

#[test]
fn tandem_repeats_slip_in_pcr_for_all_copies_and_in_sequencing_for_each() {
    let folder = tempfile::tempdir().unwrap();
    let genome = with_homopolymers(folder.path());
    let lengths = |pcr: f64, sequencing: f64| {
        let mut params = of_genome(&genome, 150.0);
        params.sequencing.library.pcr_slippage = pcr;
        params.sequencing.machine.sequencing_slippage = sequencing;
        params.sequencing.duplicates = 0.6;
        let made = made(&params);
        let all: Vec<usize> = made.pairs("tumor").iter().flatten().filter_map(|m| homopolymer(&m.bases)).collect();
        let in_families: Vec<Vec<usize>> = families(&made)
            .iter()
            .map(|family| family.iter().filter_map(|pair| homopolymer(&pair[0].bases)).collect::<Vec<usize>>())
            .filter(|lengths| lengths.len() >= 3 && lengths.iter().any(|&l| l != 12))
            .collect();
        (all, in_families)
    };
    let slipped = |all: &[usize]| all.iter().filter(|&&l| l != 12).count() as f64 / all.len() as f64;
    let (all, _) = lengths(0.0, 0.0);
    // Sequencing errors do not change lengths, because both flanks must be present.
    assert!(all.len() > 10_000 && slipped(&all) < 1e-3);

    let (all, families) = lengths(1.0, 0.0);
    close(slipped(&all), 0.04, 0.35);
    let lost = all.iter().filter(|&&l| l < 12).count() as f64 / all.iter().filter(|&&l| l != 12).count() as f64;
    close(lost, 0.75, 0.2);
    assert!(families.len() > 10 && families.iter().all(|f| f.iter().all(|l| l == &f[0])), "{families:?}");

    let (all, families) = lengths(0.0, 4.0);
    close(slipped(&all), 0.04, 0.35);
    let alike = families.iter().filter(|f| f.iter().all(|l| l == &f[0])).count();
    assert!(families.len() > 10 && alike * 5 < families.len(), "{families:?}");
}

#[test]
fn wrong_bases_recur_whoever_is_sequenced() {
    let folder = tempfile::tempdir().unwrap();
    let own = made(&clean(200_000, 1, 1.0));
    let genome = folder.path().join("genome.fa");
    std::fs::copy(own.folder.path().join("genome.fa"), &genome).unwrap();
    let person = |seed| {
        let mut params = SimulationParams { seed, ..of_genome(&genome, 60.0) };
        params.recurrent = RecurrentErrorParams { places: 400, seed: 1 };
        params.germline = GermlineParams { snv_rate: 2e-3, indel_rate: 1e-3, ..params.germline };
        made(&params)
    };
    let (one, other) = (person(1), person(2));
    let places = one.vcf("recurrent.vcf");
    assert!(places.len() > 395);
    let read = |made: &Made| std::fs::read_to_string(made.folder.path().join("recurrent.vcf")).unwrap();
    assert_eq!(read(&one), read(&other));
    assert!(!own.folder.path().join("recurrent.vcf").exists());

    let pairs = one.pairs("tumor");
    let [mut shown, mut expected, mut beside, mut all_beside] = [0.0; 4];
    for place in &places {
        let (pos, wrong) = (place.pos - 1, place.alternate.as_bytes()[0]);
        for pair in &pairs {
            let Some(against) = pair[0].place.as_ref().map(|place| place.reverse) else { continue };
            // One mate per molecule is enough, if its bases are consecutive in the reference.
            let base = pair.iter().find_map(|mate| {
                let at = mate.place.as_ref().filter(|at| at.start <= pos && pos < at.end)?;
                let plain = at.end - at.start == mate.bases.len();
                let read = plain.then(|| mate.bases[if at.reverse { at.end - 1 - pos } else { pos - at.start }])?;
                Some(if at.reverse { genuma_reads::dna::complement(read) } else { read })
            });
            let Some(base) = base else { continue };
            let struck = match &place.info["STRAND"][..] {
                "forward" => !against,
                "reverse" => against,
                _ => true,
            };
            let [is, of] = if struck { [&mut shown, &mut expected] } else { [&mut beside, &mut all_beside] };
            *is += f64::from(u8::from(base == wrong));
            *of += if struck { place.number("SHARE") } else { 1.0 };
        }
    }
    close(shown / expected, 1.0, 0.15);
    assert!(all_beside > 4000.0 && beside < 0.004 * all_beside, "{beside} of {all_beside}");
    assert!(one.count("tumor", "recurrent_errors") > shown);
}
