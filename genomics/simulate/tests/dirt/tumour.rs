//! Tests copy numbers and linked variants: the reads show what the truth says.

use genuma_simulate::evaluate::{EvaluationInputs, FilterMode, VariantClass, evaluate_calls};
use genuma_simulate::{CopyNumberParams, LinkedVariantParams, SimulationParams, SomaticParams};

use crate::common::{Made, Mate, clean, close, made};

fn with(copies: CopyNumberParams, depth: f64) -> SimulationParams {
    let mut params = clean(600_000, 3, depth);
    params.copies = copies;
    params
}

/// Checks that the SNVs of the truth have their expected share of the reads. Returns the number of checked SNVs.
fn check_fractions(made: &Made, mates: &[Mate], wanted: impl Fn(&crate::common::Variant) -> bool) -> usize {
    let (mut checked, mut surprise) = (0, 0.0);
    for v in made.vcf("truth.vcf").iter().filter(|v| v.class() == "SNV" && wanted(v)) {
        let seen = made.alleles(mates, &v.contig, v.pos);
        let all: usize = seen.values().sum();
        let shown = seen.get(&v.alternate.as_bytes()[0]).copied().unwrap_or(0) as f64;
        let af = v.number("AF");
        if all < 8 {
            continue;
        }
        let sd = (all as f64 * af * (1.0 - af)).sqrt().max(1.0);
        let off = (shown - all as f64 * af) / sd;
        assert!(off.abs() < 5.0, "{v:?}: {shown} of {all}");
        surprise += off * off;
        checked += 1;
    }
    // Both mates of a pair may cover a site, so that the spread is slightly larger than binomial.
    assert!(surprise / checked as f64 <= 2.0, "{surprise} of {checked}");
    checked
}

#[test]
fn amplified_spans_have_their_copies_and_variants() {
    let copies = CopyNumberParams { amplifications: 3, amplified_copies: vec![6, 20, 40], ..Default::default() };
    let mut params = with(copies, 20.0);
    params.samples.purity = 0.7;
    params.somatic = SomaticParams { snvs: 150, indels: 0, svs: 0, spacing: 200, ..Default::default() };
    let made = made(&params);
    let truth = made.vcf("truth.vcf");
    let depth = made.depth("tumor");
    let mates: Vec<Mate> = made.pairs("tumor").into_iter().flatten().collect();
    let amplicons: Vec<_> = truth.iter().filter(|v| v.class() == "DUP").collect();
    let mut copies: Vec<f64> = amplicons.iter().map(|v| v.number("CN")).collect();
    copies.sort_by(f64::total_cmp);
    assert_eq!(copies, [6.0, 20.0, 40.0]);
    let (mut all, mut half) = (0, 0);
    for a in &amplicons {
        let (start, end) = (a.pos, a.number("END") as usize);
        assert!((10_000..=40_000).contains(&(end - start)));
        let inner = &depth[&a.contig][start + 500..end - 500];
        let cells = 0.7 * a.number("CN") + 0.3 * 2.0;
        // The deletion inside removes some reads.
        close(inner.iter().sum::<f64>() / inner.len() as f64, 20.0 * cells / 2.0, 0.05);
        close(a.number("AF"), 0.7 * (a.number("CN") - 2.0) / cells, 1e-3);
        let inside: Vec<_> = truth.iter().filter(|v| v.contig == a.contig && v.pos > start && v.pos < end).collect();
        let of = |class: &str| inside.iter().filter(|v| v.class() == class).collect::<Vec<_>>();
        assert!(of("SNV").len() >= 3 && of("INDEL").len() == 2 && of("DEL").len() == 1);
        let deletion = of("DEL")[0];
        assert!((-300.0..=-50.0).contains(&deletion.number("SVLEN")) && deletion.number("END") < end as f64);
        for v in inside {
            let carried = v.number("AF") * cells / 0.7;
            let on_haplotype = a.number("CN") - 1.0;
            all += usize::from((carried - on_haplotype).abs() < 0.1);
            half += usize::from((carried / on_haplotype - 0.5).abs() < 0.11);
        }
    }
    assert!(all >= 9 && half >= 6, "{all} {half}");
    // Elsewhere the depth is as requested.
    let outside = |contig: &str, at: usize| {
        amplicons.iter().all(|a| a.contig != contig || at + 2000 < a.pos || at > a.number("END") as usize + 2000)
    };
    let rest: Vec<f64> = depth
        .iter()
        .flat_map(|(c, d)| d.iter().enumerate().map(move |(i, x)| (c, i, *x)))
        .filter(|(c, i, _)| outside(c, *i))
        .map(|x| x.2)
        .collect();
    close(rest.iter().sum::<f64>() / rest.len() as f64, 20.0, 0.03);
    assert!(check_fractions(&made, &mates, |_| true) > 100);
    // The normal sample has two copies everywhere.
    let normal = made.depth("normal");
    for a in &amplicons {
        let inner = &normal[&a.contig][a.pos..a.number("END") as usize];
        assert!(inner.iter().sum::<f64>() / (inner.len() as f64) < 1.5);
    }
}

#[test]
fn whole_chromosomes_are_lost_and_gained() {
    let mut seen = std::collections::BTreeSet::new();
    for seed in 0..6 {
        let mut params = with(CopyNumberParams { aneuploidy: 0.5, ..Default::default() }, 12.0);
        params.seed = seed;
        params.samples.purity = 0.8;
        params.somatic = SomaticParams { snvs: 200, indels: 0, svs: 0, spacing: 200, ..Default::default() };
        if seed == 0 {
            params.somatic.svs = 12;
        }
        params.somatic.largest_sv = 2_000;
        let made = made(&params);
        let mates: Vec<Mate> = made.pairs("tumor").into_iter().flatten().collect();
        assert!(check_fractions(&made, &mates, |_| true) > 50);
        assert!(made.vcf("truth.vcf").iter().all(|v| v.number("AF") > 0.0));
        let copies = |contig: &str| -> [f64; 2] {
            let list = made.report["made"]["aneuploid"].as_array().cloned().unwrap_or_default();
            let found = list.iter().find(|a| a["contig"] == contig);
            found.map_or([1.0; 2], |a| [0, 1].map(|h| a["copies"][h].as_f64().unwrap()))
        };
        if seed == 0 {
            // Translocations move parts of contigs.
            continue;
        }
        let depth = made.depth("tumor");
        let of = |contig: &str| {
            let d = &depth[contig][500..depth[contig].len() - 500];
            d.iter().sum::<f64>() / d.len() as f64
        };
        let cells = |contig: &str| 0.8 * copies(contig).iter().sum::<f64>() + 0.4;
        for contig in ["chr2", "chr3"] {
            close(of(contig) / of("chr1"), cells(contig) / cells("chr1"), 0.05);
        }
        seen.extend(["chr1", "chr2", "chr3"].map(|c| copies(c).map(|n| n as usize)));
    }
    assert!(!seen.contains(&[0, 0]) && seen.len() >= 5, "{seen:?}");
}

#[test]
fn spans_are_lost() {
    let made = made(&with(CopyNumberParams { losses: 3, ..Default::default() }, 20.0));
    let lost = made.vcf("truth.vcf");
    assert_eq!(lost.len(), 3);
    let depth = made.depth("tumor");
    for v in &lost {
        let (start, end) = (v.pos, v.number("END") as usize);
        assert!(v.class() == "DEL" && end - start >= 20_000);
        let inner = &depth[&v.contig][start..end];
        close(inner.iter().sum::<f64>() / inner.len() as f64, 10.0, 0.15);
    }
}

#[test]
fn clusters_lie_on_one_haplotype() {
    let mut params = with(CopyNumberParams::default(), 30.0);
    params.linked = LinkedVariantParams { clusters: 25, mnvs: 15 };
    let made = made(&params);
    let truth = made.vcf("truth.vcf");
    let mates: Vec<Mate> = made.pairs("tumor").into_iter().flatten().collect();
    let mut together = [0.0; 2];
    for cluster in 1..=25 {
        let members: Vec<_> =
            truth.iter().filter(|v| v.info.get("CLUSTER").is_some_and(|c| *c == cluster.to_string())).collect();
        assert!((2..=5).contains(&members.len()));
        let extent = members[members.len() - 1].pos - members[0].pos;
        assert!((2..=122).contains(&extent), "{extent}");
        assert!(members.iter().all(|v| ["SNV", "INDEL"].contains(&v.class())));
        if !members.iter().all(|v| v.class() == "SNV") {
            continue;
        }
        for mate in &mates {
            let Some(place) = &mate.place else { continue };
            let inside =
                |v: &crate::common::Variant| v.contig == place.contig && v.pos > place.start && v.pos <= place.end;
            if members.iter().all(|v| inside(v)) {
                let forward = if place.reverse { crate::common::revcomp(&mate.bases) } else { mate.bases.clone() };
                let has = |v: &&&crate::common::Variant| forward[v.pos - 1 - place.start] == v.alternate.as_bytes()[0];
                let shown = members.iter().filter(has).count();
                together[0] += 1.0;
                together[1] += f64::from(u8::from(shown == 0 || shown == members.len()));
            }
        }
    }
    assert!(together[0] > 50.0 && together[1] > 0.97 * together[0], "{together:?}");

    let mnvs: Vec<_> = truth.iter().filter(|v| v.class() == "MNV").collect();
    assert_eq!(mnvs.len(), 15);
    for v in mnvs {
        assert!((2..=3).contains(&v.reference.len()) && v.reference.len() == v.alternate.len());
        assert_eq!(&made.genome[&v.contig][v.pos - 1..v.pos - 1 + v.reference.len()], v.reference.as_bytes());
        assert!(v.reference.bytes().zip(v.alternate.bytes()).all(|(a, b)| a != b));
    }
}

#[test]
fn clusters_and_mnvs_count_alike_in_one_record_or_in_many() {
    let mut params = with(CopyNumberParams::default(), 0.1);
    params.linked = LinkedVariantParams { clusters: 60, mnvs: 30 };
    let made = made(&params);
    let truth = made.vcf("truth.vcf");
    let mut calls: Vec<(String, usize, String, String)> = vec![];
    for v in truth.iter().filter(|v| v.class() == "MNV") {
        for (i, (a, b)) in v.reference.chars().zip(v.alternate.chars()).enumerate() {
            calls.push((v.contig.clone(), v.pos + i, a.into(), b.into()));
        }
    }
    for cluster in 1..=60 {
        let members: Vec<_> =
            truth.iter().filter(|v| v.info.get("CLUSTER").is_some_and(|c| *c == cluster.to_string())).collect();
        let seq = &made.genome[&members[0].contig];
        let (mut at, mut joined) = (members[0].pos - 1, String::new());
        for v in &members {
            joined += std::str::from_utf8(&seq[at..v.pos - 1]).unwrap();
            joined += &v.alternate;
            at = v.pos - 1 + v.reference.len();
        }
        let reference = String::from_utf8(seq[members[0].pos - 1..at].to_vec()).unwrap();
        calls.push((members[0].contig.clone(), members[0].pos, reference, joined));
    }
    let lines = calls.iter().map(|(c, p, r, a)| format!("{c}\t{p}\t.\t{r}\t{a}\t.\tPASS\t.\n"));
    let file = |name: &str| made.folder.path().join(name);
    std::fs::write(file("calls.vcf"), format!("##fileformat=VCFv4.2\n{}", lines.collect::<String>())).unwrap();
    let (truth, calls, reference) = (file("truth.vcf"), file("calls.vcf"), file("genome.fa"));
    for (truth, calls) in [(&truth, &calls), (&calls, &truth)] {
        let inputs = EvaluationInputs {
            truth,
            calls,
            contigs: None,
            reference: Some(&reference),
            germline: None,
            filters: FilterMode::PassOnly,
        };
        let outcome = evaluate_calls(&inputs).unwrap();
        for (class, least) in [(VariantClass::Snv, 150), (VariantClass::Indel, 40)] {
            let scores = outcome.scores_of_class(class, None);
            assert_eq!((scores.recall(), scores.precision()), (Some(1.0), Some(1.0)), "{:?}", outcome.misses);
            assert!(scores.true_positives > least, "{}", scores.true_positives);
        }
        assert_eq!(outcome.scores_of_class(VariantClass::Sv, None).precision(), None);
    }
}
