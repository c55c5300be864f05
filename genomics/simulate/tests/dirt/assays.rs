//! Tests libraries of assays: amplicons, UMIs, consensus reads, cell-free DNA, homopolymer errors.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;

use genuma_simulate::{
    AmpliconParams, CaptureParams, GermlineParams, InsertModel, SimulationParams, TargetSource, UmiParams,
};

use crate::common::{Made, Mate, clean, close, made, of_genome, revcomp, write_fasta};

/// A primer of `primers.bed`.
struct Primer {
    contig: String,
    start: usize,
    end: usize,
    reverse: bool,
}

/// Returns the left and right primer of each amplicon.
fn primers(made: &Made) -> Vec<[Primer; 2]> {
    let text = fs::read_to_string(made.folder.path().join("primers.bed")).unwrap();
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split('\t').collect()).collect();
    let primer = |f: &[&str]| Primer {
        contig: f[0].into(),
        start: f[1].parse().unwrap(),
        end: f[2].parse().unwrap(),
        reverse: f[5] == "-",
    };
    let pair = |(i, pair): (usize, &[Vec<&str>])| {
        assert_eq!(pair[0][3], format!("amplicon{}_LEFT", i + 1));
        assert_eq!(pair[1][3], format!("amplicon{}_RIGHT", i + 1));
        let primers = [primer(&pair[0]), primer(&pair[1])];
        assert!(!primers[0].reverse && primers[1].reverse);
        primers
    };
    lines.chunks(2).enumerate().map(pair).collect()
}

fn amplified(mut params: SimulationParams) -> SimulationParams {
    params.sequencing.library.amplicons = Some(AmpliconParams::default());
    params
}

#[test]
fn reads_of_amplicons_begin_with_primers() {
    let made = made(&amplified(clean(100_000, 2, 100.0)));
    let primers = primers(&made);
    let lengths =
        |[left, right]: &[Primer; 2]| (right.end - left.start, left.end - left.start, right.end - right.start);
    assert!(primers.iter().map(lengths).all(|(all, left, right)| {
        (120..=250).contains(&all) && (18..=25).contains(&left) && (18..=25).contains(&right)
    }));
    let mut pairs_of_amplicon: BTreeMap<(&str, usize, usize), f64> = BTreeMap::new();
    for [left, right] in &primers {
        pairs_of_amplicon.insert((&left.contig, left.start, right.end), 0.0);
    }
    let pairs = made.pairs("tumor");
    for [first, second] in &pairs {
        let (first, second) = (first.place.as_ref().unwrap(), second.place.as_ref().unwrap());
        assert!(first.reverse != second.reverse);
        let (left, right) = if first.reverse { (second, first) } else { (first, second) };
        *pairs_of_amplicon.get_mut(&(left.contig.as_str(), left.start, right.end)).unwrap() += 1.0;
    }
    let depths: Vec<f64> = pairs_of_amplicon.into_values().collect();
    let mean = depths.iter().sum::<f64>() / depths.len() as f64;
    let variance = depths.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / depths.len() as f64;
    // The variance of the Poisson distribution is its mean.
    close((variance - mean).sqrt() / mean, 0.4, 0.15);
    let depth: Vec<f64> = made.depth("tumor").into_values().flatten().filter(|&d| d > 0.0).collect();
    close(depth.iter().sum::<f64>() / depth.len() as f64, 100.0, 0.02);
    assert!(depth.len() > 99_000);
}

/// Returns the share of the mates with an error in the bases `from..to` of the reads that begin at a primer.
fn differing_share(made: &Made, mates: &[&Mate], from: usize, to: usize) -> f64 {
    let differs = |mate: &&&Mate| {
        let expected = made.expected(mate.place.as_ref().unwrap());
        mate.bases[from..to] != expected[from..to]
    };
    mates.iter().filter(differs).count() as f64 / mates.len() as f64
}

#[test]
fn primers_hide_variants() {
    let mut params = amplified(clean(60_000, 1, 40.0));
    params.germline = GermlineParams { snv_rate: 0.02, homozygous_share: 1.0, ..params.germline };
    let made = made(&params);
    let pairs = made.pairs("tumor");
    let mates: Vec<&Mate> = pairs.iter().flatten().collect();
    // 18 bases with an error rate of 0.001, and with SNVs at 0.02.
    assert!(differing_share(&made, &mates, 0, 18) < 0.04);
    close(differing_share(&made, &mates, 30, 48), 0.31, 0.15);
}

#[test]
fn amplicons_tile_the_targets_on_both_strands() {
    let folder = tempfile::tempdir().unwrap();
    let source = made(&clean(50_000, 1, 1.0)).genome["chr1"].clone();
    let genome = write_fasta(folder.path(), &[("a", source)]);
    let bed = folder.path().join("t.bed");
    fs::write(&bed, "a\t10000\t10900\na\t30000\t30100\n").unwrap();
    let mut params = amplified(of_genome(&genome, 200.0));
    params.capture = Some(CaptureParams { targets: TargetSource::File(bed), off_target: 0.0, fewer_variants: true });
    params.somatic.snvs = 5;
    let made = made(&params);
    let depth = &made.depth("tumor")["a"];
    assert!((10_000..10_900).chain(30_000..30_100).all(|at| depth[at] > 20.0));
    assert_eq!(depth[..9_970].iter().chain(&depth[11_150..29_970]).sum::<f64>(), 0.0);
    let strands = made.pairs("tumor").iter().filter(|[a, _]| a.place.as_ref().unwrap().reverse).count();
    close(strands as f64, made.pairs("tumor").len() as f64 / 2.0, 0.1);
    let [left, right] = &primers(&made)[0];
    let primer = |p: &Primer| made.genome["a"][p.start..p.end].to_vec();
    let (left, right) = (primer(left), revcomp(&primer(right)));
    let begins = |mate: &Mate| mate.bases.starts_with(&left) || mate.bases.starts_with(&right);
    assert!(made.pairs("tumor").iter().filter(|[a, b]| begins(a) && begins(b)).count() > 50);
}

fn with_umis(structure: &str, duplex: bool, consensus: bool) -> SimulationParams {
    let mut params = clean(20_000, 1, 60.0);
    let structures = structure.parse().unwrap();
    params.sequencing.library.umi = Some(UmiParams { structures, duplex, mean_family_size: 4.0, consensus });
    params.sequencing.machine.two_colour = true;
    params
}

/// A line of the table of molecules.
#[derive(Debug)]
struct Molecule {
    contig: String,
    /// First base, 0-based.
    start: usize,
    end: usize,
    umis: Vec<String>,
    /// Number of pairs whose read 1 is on the forward and on the reverse strand.
    pairs: [usize; 2],
    variants: Vec<String>,
}

fn decompress(made: &Made, file: &str) -> String {
    let file = fs::File::open(made.folder.path().join(file)).unwrap();
    let mut text = String::new();
    flate2::read::MultiGzDecoder::new(file).read_to_string(&mut text).unwrap();
    text
}

/// Returns the molecules of the tumour sample by name.
fn molecules(made: &Made) -> BTreeMap<String, Molecule> {
    let text = decompress(made, "tumor_molecules.tsv.gz");
    let (header, lines) = text.split_once('\n').unwrap();
    assert_eq!(header, "name\tcontig\tstart\tend\tumi\tforward_pairs\treverse_pairs\tvariants");
    let molecule = |line: &str| {
        let f: Vec<&str> = line.split('\t').collect();
        let number = |i: usize| f[i].parse::<usize>().unwrap();
        let variants = f[7].split(',').filter(|v| *v != ".").map(str::to_owned).collect();
        let (umis, pairs) = (f[4].split('-').map(str::to_owned).collect(), [number(5), number(6)]);
        let (contig, start, end) = (f[1].to_owned(), number(2).max(1) - 1, number(3));
        (f[0].to_owned(), Molecule { contig, start, end, umis, pairs, variants })
    };
    lines.lines().map(molecule).collect()
}

/// Returns the pairs of the tumour sample with their names up to the true positions.
fn named_pairs(made: &Made) -> Vec<(String, [Mate; 2])> {
    let text = decompress(made, "tumor_1.fq.gz");
    let names = text.lines().step_by(4).map(|line| line[1..].split(',').next().unwrap().to_owned());
    names.zip(made.pairs("tumor")).collect()
}

#[test]
fn strands_of_duplex_molecules_have_swapped_umis() {
    let made = made(&with_umis("3M1S+T", true, false));
    let molecules = molecules(&made);
    let (mut found, mut clean, mut total): (BTreeMap<String, [usize; 2]>, usize, usize) = Default::default();
    for (name, pair) in named_pairs(&made) {
        let molecule = &molecules[name.rsplit_once(':').unwrap().0];
        let [first, second] = pair.each_ref().map(|mate| mate.place.as_ref().unwrap());
        found.entry(name.rsplit_once(':').unwrap().0.to_owned()).or_default()[usize::from(first.reverse)] += 1;
        let (left, right) = if first.reverse { (second, first) } else { (first, second) };
        assert_eq!((&left.contig, left.start, right.end), (&molecule.contig, molecule.start, molecule.end));
        assert_eq!(left.end - left.start, 146);
        for mate in &pair {
            let place = mate.place.as_ref().unwrap();
            let umi = &molecule.umis[usize::from(place.reverse)];
            assert_eq!((umi.len(), mate.bases.len()), (3, 150));
            total += 1;
            let differing = mate.bases[4..].iter().zip(made.expected(place)).filter(|(a, b)| **a != *b).count();
            clean += usize::from(mate.bases[..4] == *format!("{umi}T").as_bytes() && differing < 6);
        }
    }
    assert!(clean > total * 97 / 100, "{clean} of {total}");
    assert_eq!(found.len(), molecules.len());
    assert!(molecules.iter().all(|(name, molecule)| found[name] == molecule.pairs));
    let sizes: Vec<f64> = molecules.values().flat_map(|m| m.pairs).map(|n| n as f64).collect();
    close(sizes.iter().sum::<f64>() / sizes.len() as f64, 4.0, 0.06);
    let depth = &made.depth("tumor")["chr1"];
    close(depth.iter().sum::<f64>() / depth.len() as f64, 60.0, 0.03);
}

#[test]
fn one_strand_is_amplified_without_duplex() {
    let made = made(&with_umis("8M+T,+T", false, false));
    let molecules = molecules(&made);
    assert!(molecules.values().all(|m| m.pairs.contains(&0) && m.umis.len() == 1 && m.umis[0].len() == 8));
    let forward = molecules.values().filter(|m| m.pairs[0] > 0).count() as f64;
    close(forward, molecules.len() as f64 / 2.0, 0.1);
    let pairs = named_pairs(&made);
    let begins = pairs.iter().filter(|(name, [first, _])| {
        first.bases.starts_with(molecules[name.rsplit_once(':').unwrap().0].umis[0].as_bytes())
    });
    assert!(begins.count() > pairs.len() * 95 / 100);
    assert!(pairs.iter().all(|(_, [_, second])| second.place.as_ref().is_some_and(|p| p.end - p.start == 150)));
}

#[test]
fn molecules_list_the_variants_that_their_reads_show() {
    let mut params = with_umis("3M1S+T", true, true);
    params.germline = GermlineParams { snv_rate: 2e-3, indel_rate: 5e-4, ..params.germline };
    (params.somatic.snvs, params.somatic.indels, params.somatic.spacing) = (10, 6, 150);
    let made = made(&params);
    let pairs: BTreeMap<String, [Mate; 2]> = named_pairs(&made).into_iter().collect();
    let molecules = molecules(&made);
    assert_eq!(pairs.len(), molecules.len());
    let (mut carriers, mut covering) = (0, 0);
    for variant in made.vcf("truth.vcf").iter().chain(&made.vcf("germline.vcf")) {
        let name = format!("{}:{}:{}:{}", variant.contig, variant.pos, variant.reference, variant.alternate);
        let is_snv = variant.reference.len() == 1 && variant.alternate.len() == 1;
        let mut carried = 0;
        for (molecule_name, molecule) in &molecules {
            let carries = molecule.variants.contains(&name);
            carried += usize::from(carries);
            for mate in &pairs[molecule_name] {
                let Some(place) = &mate.place else { continue };
                let inside = place.start + 5 < variant.pos && variant.pos + 5 < place.end;
                if is_snv && inside && mate.bases.len() == place.end - place.start {
                    let bases = if place.reverse { revcomp(&mate.bases) } else { mate.bases.clone() };
                    let shows = bases[variant.pos - 1 - place.start] == variant.alternate.as_bytes()[0];
                    covering += 1;
                    carriers += usize::from(shows == carries);
                }
            }
        }
        assert!(carried > 0, "{name}");
    }
    assert!(covering > 500 && carriers > covering * 98 / 100, "{carriers} of {covering}");
}

#[test]
fn consensus_reads_have_fewer_errors_and_high_qualities() {
    let mut raw = with_umis("3M1S+T", true, false);
    raw.sequencing.error_rate = 0.005;
    let mut consensus = raw.clone();
    consensus.sequencing.library.umi.as_mut().unwrap().consensus = true;
    let rate = |made: &Made, skipped: usize, min_quality: u8| {
        let (mut wrong, mut bases) = (0, 0);
        for mate in made.pairs("tumor").into_iter().flatten() {
            let expected = made.expected(mate.place.as_ref().unwrap());
            assert_eq!(mate.bases.len() - skipped, expected.len());
            let shown = mate.bases[skipped..].iter().zip(&expected).zip(&mate.quals[skipped..]);
            for ((base, expected), _) in shown.filter(|((base, _), q)| **base != b'N' && **q >= min_quality) {
                bases += 1;
                wrong += usize::from(base != expected);
            }
        }
        wrong as f64 / bases as f64
    };
    let (raw, consensus) = (made(&raw), made(&consensus));
    close(rate(&raw, 4, 0), 0.005, 0.2);
    let rates = [0, 60].map(|min_quality| rate(&consensus, 0, min_quality));
    assert!(rates[0] < 1e-3 && rates[1] < 2e-5, "{rates:?}");
    let quals: Vec<u8> = consensus.pairs("tumor").into_iter().flatten().flat_map(|m| m.quals).collect();
    assert_eq!(quals.iter().max(), Some(&90));
    assert!(quals.iter().filter(|q| **q > 60).count() > quals.len() * 8 / 10);
    close(consensus.pairs("tumor").len() as f64, molecules(&consensus).len() as f64, 0.0);
}

#[test]
fn families_share_errors_of_pcr() {
    let mut params = with_umis("3M1S+T", false, true);
    params.sequencing.library.pcr_errors = 2e-3;
    let made = made(&params);
    let mates: Vec<Mate> = made.pairs("tumor").into_iter().flatten().collect();
    let differing = mates.iter().map(|m| {
        m.bases.iter().zip(made.expected(m.place.as_ref().unwrap())).filter(|(a, b)| **a != b'N' && **a != *b).count()
    });
    close(differing.sum::<usize>() as f64 / (146 * mates.len()) as f64, 2e-3, 0.25);
}

#[test]
fn cell_free_fragments_have_the_lengths_of_nucleosomes() {
    let mut params = clean(400_000, 1, 40.0);
    params.sequencing.library.insert_model = InsertModel::Cfdna;
    let made = made(&params);
    let mut fragments = [0.0; 500];
    for [first, second] in made.pairs("tumor") {
        let (Some(first), Some(second)) = (first.place, second.place) else { continue };
        fragments[first.end.max(second.end) - first.start.min(second.start)] += 1.0;
    }
    let all: f64 = fragments.iter().sum();
    let peak = |from: usize, to: usize| (from..to).max_by(|a, b| fragments[*a].total_cmp(&fragments[*b])).unwrap();
    assert!((164..=169).contains(&peak(30, 250)), "{}", peak(30, 250));
    let mean = |from: usize, to: usize| {
        let weighted: f64 = (from..to).map(|bp| bp as f64 * fragments[bp]).sum();
        weighted / fragments[from..to].iter().sum::<f64>()
    };
    close(mean(260, 400), 330.0, 0.005);
    close(fragments[260..400].iter().sum::<f64>() / all, 0.12, 0.05);
    for sub_peak in [97, 107, 117, 127, 137] {
        let around = |at: usize| fragments[at - 1..=at + 1].iter().sum::<f64>();
        assert!(around(sub_peak) > 1.5 * around(sub_peak - 5).max(around(sub_peak + 5)), "{sub_peak}");
    }
    let depth = &made.depth("tumor")["chr1"];
    close(depth.iter().sum::<f64>() / depth.len() as f64, 40.0, 0.02);
}

#[test]
fn homopolymer_errors_grow_with_the_length() {
    let folder = tempfile::tempdir().unwrap();
    // Homopolymers of 2, 4 and 8 bases between unique flanks.
    let mut bases = made(&clean(60_000, 1, 1.0)).genome["chr1"].clone();
    let runs: Vec<(usize, usize)> = (0..140).map(|i| (300 + 400 * i, [2, 4, 8][i % 3])).collect();
    for &(at, n) in &runs {
        bases[at - 12..at].copy_from_slice(b"CATGACTGCTAC");
        bases[at..at + n].fill(b'A');
        bases[at + n..at + n + 12].copy_from_slice(b"GTCAGATCGTGC");
    }
    let mut params = of_genome(&write_fasta(folder.path(), &[("a", bases.clone())]), 60.0);
    params.sequencing.machine.homopolymer_errors = 0.007;
    let made = made(&params);
    let mut crossing = BTreeMap::new();
    for mate in made.pairs("tumor").into_iter().flatten() {
        let Some(place) = &mate.place else { continue };
        let read = if place.reverse { revcomp(&mate.bases) } else { mate.bases.clone() };
        let find = |word: &[u8]| read.windows(12).position(|w| w == word);
        let inside = |run: &&(usize, usize)| place.start + 20 < run.0 && run.0 + 30 < place.end;
        let (Some(&(_, n)), Some(left), Some(right)) =
            (runs.iter().find(inside), find(b"CATGACTGCTAC"), find(b"GTCAGATCGTGC"))
        else {
            continue;
        };
        let [all, changed, lost]: &mut [f64; 3] = crossing.entry(n).or_default();
        let length = right.saturating_sub(left + 12);
        *all += 1.0;
        *changed += f64::from(u8::from(length != n));
        *lost += f64::from(u8::from(length < n));
    }
    for (n, [all, changed, lost]) in crossing {
        assert!(all > 800.0, "{all}");
        close(changed / all, 0.007 * n as f64, 0.4);
        assert!((0.3..0.9).contains(&(lost / changed)), "{lost} of {changed}");
    }
    assert!(made.count("tumor", "homopolymer_errors") > 1000.0);
}
