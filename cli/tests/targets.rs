//! `genuma call --targets`: calls outside the targets are not written, and the depth of each target is reported.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{
    DETERMINISTIC_RESULTS, Data, PATIENT, SharedFixture, called, data, gunzip, gzip, names, read_without_provenance,
    run, scratch, text,
};

/// Padding of the targets in these tests, in bp.
const PADDING_BP: usize = 150;

/// A target as in BED.
type Interval = (String, usize, usize);

/// Targets on the genome of [`data`], whose reference has a further contig without reads.
struct Capture {
    data: Data,
    bed: PathBuf,
    /// The intervals with reads: 600 bp in each 3,000.
    intervals: Vec<Interval>,
}

fn capture() -> &'static Capture {
    static CAPTURE: SharedFixture<Capture> = SharedFixture::new();
    CAPTURE.get_or_init(|| {
        let folder = scratch("capture");
        let genome = fs::read_to_string(data().folder.join("genome.fa")).expect("the genome");
        let index = fs::read_to_string(data().folder.join("genome.fa.fai")).expect("an index");
        let mut intervals = Vec::new();
        for line in index.lines() {
            let fields: Vec<&str> = line.split('\t').collect();
            let length: usize = fields[1].parse().expect("a length");
            let starts = (1_000..length - 1_000).step_by(3_000);
            intervals.extend(starts.map(|start| (fields[0].to_owned(), start, start + 600)));
        }
        let bases = |seed: u64| -> String {
            let mut x = seed;
            let mut base = || {
                x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                char::from(b"ACGT"[(x >> 62) as usize])
            };
            (0..1_000).map(|_| base()).collect()
        };
        // The second thousand of the contig is repeated.
        let extra = format!(">extra\n{}\n{}\n{}\n", bases(1), bases(2), bases(2));
        let reference = folder.join("genome.fa");
        fs::write(&reference, genome + &extra).expect("a reference");
        let mut lines: Vec<String> = intervals
            .iter()
            .enumerate()
            .map(|(i, (contig, start, end))| format!("{contig}\t{start}\t{end}\ttarget{i}\n"))
            .collect();
        // Neither the order nor overlaps matter.
        lines.reverse();
        lines.push(format!("{}\t{}\t{}\tagain\n", intervals[0].0, intervals[0].1 + 100, intervals[0].2));
        lines.push("extra\t100\t400\tno_reads\nextra\t1200\t1800\trepeat\n".to_owned());
        let bed = folder.join("targets.bed");
        fs::write(&bed, format!("track name=capture\n# exons\n{}", lines.concat())).expect("a file");
        Capture { data: Data { reference: Some(reference), folder, ..data().clone() }, bed, intervals }
    })
}

/// Results of the call of [`capture`].
fn targeted() -> &'static Path {
    static TARGETED: SharedFixture<PathBuf> = SharedFixture::new();
    TARGETED.get_or_init(|| {
        let Capture { data, bed, .. } = capture();
        let out = scratch("targeted");
        let tables = [out.join("calls.maf"), out.join("calls.bedpe")];
        let options = ["--threads", "2", "--targets", text(bed), "--target-padding", "150"];
        let more = ["--maf", text(&tables[0]), "--bedpe", text(&tables[1])];
        let ended = run(data.call_with(&out, &[&options[..], &more].concat())).assert_success();
        assert!(ended.stderr.contains("; 1 interval merged"), "{}", ended.stderr);
        assert!(!ended.stderr.contains("shallow") && !ended.stderr.contains("species"), "{}", ended.stderr);
        out
    })
}

/// One record of a VCF.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Record {
    contig: String,
    pos: usize,
    reference: String,
    alternative: String,
    filter: String,
    /// Contig and position of both ends.
    ends: Vec<(String, usize)>,
}

fn records(out: &Path) -> Vec<Record> {
    let vcf = String::from_utf8(gunzip(&out.join("somatic.vcf.gz"))).expect("UTF-8");
    let record = |line: &str| {
        let fields: Vec<&str> = line.split('\t').collect();
        let (contig, pos) = (fields[0].to_owned(), fields[1].parse::<usize>().expect("POS"));
        let mut ends = vec![(contig.clone(), pos)];
        if let Some(end) = fields[7].split(';').find_map(|field| field.strip_prefix("END=")) {
            ends.push((contig.clone(), end.parse().expect("END")));
        }
        if let Some(mate) = fields[4].split(['[', ']']).nth(1) {
            let (contig, pos) = mate.rsplit_once(':').expect("a mate");
            ends.push((contig.to_owned(), pos.parse().expect("a position")));
        }
        let [reference, alternative, filter] = [3, 4, 6].map(|i| fields[i].to_owned());
        Record { contig, pos, reference, alternative, filter, ends }
    };
    vcf.lines().filter(|line| !line.starts_with('#')).map(record).collect()
}

/// Number of bases from a position (1-based) to the nearest padded target; negative inside it.
fn distance(intervals: &[Interval], contig: &str, pos: usize) -> i64 {
    let to = |(_, start, end): &Interval| {
        let (first, last) = ((start + 1) as i64 - PADDING_BP as i64, (end + PADDING_BP) as i64);
        (first - pos as i64).max(pos as i64 - last)
    };
    intervals.iter().filter(|interval| interval.0 == contig).map(to).min().unwrap_or(i64::MAX)
}

#[test]
fn calls_outside_the_targets_are_not_written() {
    let intervals = &capture().intervals;
    let [all, kept] = [records(called()), records(targeted())];
    assert!(kept.len() > 8 && kept.len() * 3 < all.len() * 2, "{} of {}", kept.len(), all.len());
    // An indel may begin a few bases before the targets.
    let nearest = |record: &Record| record.ends.iter().map(|(contig, pos)| distance(intervals, contig, *pos)).min();
    for record in &kept {
        assert!(nearest(record).is_some_and(|bases| bases < 50), "{record:?}");
    }
    let of_set = |records: &[Record]| records.iter().cloned().collect::<BTreeSet<Record>>();
    let (all_set, kept_set) = (of_set(&all), of_set(&kept));
    assert!(kept_set.is_subset(&all_set), "targets change no call");
    let missing: Vec<&Record> =
        all.iter().filter(|record| !kept_set.contains(record) && nearest(record).is_some_and(|n| n <= 0)).collect();
    assert!(missing.is_empty(), "{missing:?}");

    let out = targeted();
    let table = |name: &str| fs::read_to_string(out.join(name)).expect("a table");
    let maf = table("calls.maf");
    let mut rows = maf.lines().filter(|line| !line.starts_with('#'));
    let columns: Vec<&str> = rows.next().expect("a header").split('\t').collect();
    let column = |name: &str| columns.iter().position(|column| *column == name).expect("a column");
    let mut num_rows = 0;
    for row in rows {
        let fields: Vec<&str> = row.split('\t').collect();
        // A long deletion stays if either end is inside.
        let inside = ["Start_Position", "End_Position"].iter().any(|end| {
            let pos = fields[column(end)].parse().expect("a position");
            distance(intervals, fields[column("Chromosome")], pos) < 50
        });
        assert!(inside, "{row}");
        num_rows += 1;
    }
    assert!(num_rows > 3, "{maf}");
    for row in table("calls.bedpe").lines().filter(|line| !line.starts_with('#')) {
        let fields: Vec<&str> = row.split('\t').collect();
        let inside = |contig: usize, pos: usize| {
            distance(intervals, fields[contig], fields[pos].parse().expect("a position")) < 50
        };
        assert!(inside(0, 2) || inside(3, 5), "{row}");
    }
    let header = String::from_utf8(gunzip(&out.join("somatic.vcf.gz"))).expect("UTF-8");
    assert!(header.contains(" --targets targets.bed --target-padding 150\n"), "the header names the targets");
}

/// Rows of `targets.tsv`, without the header.
fn target_rows(out: &Path) -> (String, Vec<Vec<String>>) {
    let table = fs::read_to_string(out.join("targets.tsv")).expect("a table");
    let (header, rows) = table.split_once('\n').expect("a header");
    (header.to_owned(), rows.lines().map(|row| row.split('\t').map(str::to_owned).collect()).collect())
}

/// Share of the rows whose depth in a column is within a factor of 1.5 of `depth`, and the median.
fn depths_near(rows: &[Vec<String>], column: usize, depth: f64) -> (f64, f64) {
    let mut depths: Vec<f64> = rows.iter().map(|row| row[column].parse().expect("a depth")).collect();
    depths.sort_unstable_by(f64::total_cmp);
    let near = depths.iter().filter(|&&found| found > depth / 1.5 && found < depth * 1.5).count();
    (near as f64 / depths.len() as f64, depths[depths.len() / 2])
}

#[test]
fn depths_of_targets_are_those_simulated() {
    let Capture { intervals, .. } = capture();
    let out = targeted();
    let (header, rows) = target_rows(out);
    assert_eq!(header, "#chrom\tstart\tend\tname\tdepth_TUMOR\tdepth_NORMAL\tstatus");
    assert_eq!(rows.len(), intervals.len() + 2);
    let (with_reads, without) = rows.split_at(intervals.len());
    for ((contig, start, end), row) in intervals.iter().zip(with_reads) {
        assert_eq!(row[..3], [contig.clone(), start.to_string(), end.to_string()]);
    }
    assert_eq!(with_reads[0][3], "target0,again");
    // Sequencing errors and variants interrupt k-mers.
    for (column, simulated) in [(4, 30.0), (5, 30.0)] {
        let (near, median) = depths_near(with_reads, column, simulated);
        assert!(near > 0.9 && (25.0..33.0).contains(&median), "column {column}: {near} near, median {median}");
    }
    assert_eq!(without[0][3..], ["no_reads", "0.0", "0.0", "uncovered"]);
    assert_eq!(without[1][3..], ["repeat", ".", ".", "unknown"]);

    let bytes = fs::read(out.join("summary.json")).expect("a summary");
    let summary: serde_json::Value = serde_json::from_slice(&bytes).expect("JSON");
    let targets = &summary["targets"];
    let count = intervals.len() as u64;
    assert_eq!(
        [
            &targets["intervals"],
            &targets["targets"],
            &targets["bases"],
            &targets["not_assessed"],
            &targets["padding_bp"]
        ],
        [count + 3, count + 2, 600 * count + 900, 1, 150].map(serde_json::Value::from).each_ref()
    );
    for sample in 0..2 {
        let covered = &targets["samples"][sample];
        let number = |key: &str| covered[key].as_f64().expect("a number");
        assert!((24.0..33.0).contains(&number("mean_depth")) && (24.0..33.0).contains(&number("median_depth")));
        assert!((0.75..1.0).contains(&number("share_at_20x")), "{covered}");
        assert_eq!(covered["uncovered_targets"], 1);
    }
    let lines = summary["stages"].as_array().expect("lines");
    let outside = lines.iter().find(|line| line["description"] == "calls outside the targets").expect("a line");
    assert_eq!((&outside["count"], &outside["skipped"]), (&targets["calls_outside"], &true.into()));
    // The burden is of the targets without their padding.
    let callable = targets["callable_bases"][0].as_u64().expect("a number") as f64;
    assert!(callable > 500.0 * count as f64 && callable <= 600.0 * count as f64, "{callable}");
    let calls = summary["calls"].as_array().expect("calls");
    let small = calls.iter().filter(|call| ["SNV", "MNV", "INDEL"].iter().any(|class| call["class"] == *class));
    let in_target = small.filter(|call| {
        let pos = call["pos"].as_u64().expect("a position") as usize;
        let end = pos + call["alleles"][0].as_str().expect("REF").len() - 1;
        let inside = |(contig, first, last): &Interval| call["chrom"] == **contig && end > *first && pos <= *last;
        intervals.iter().any(inside)
    });
    let burden = summary["sample_summary"]["burden"]["value"].as_f64().expect("a burden");
    assert!((burden - in_target.count() as f64 / callable * 1e6).abs() < 1e-3, "{burden}");

    let page = fs::read_to_string(out.join("report.html")).expect("a report");
    assert!(page.contains("Normal depth on target") && page.contains("Tumour depth on target"));
    let general = fs::read_to_string(out.join("genuma_general_mqc.json")).expect("a section");
    assert!(general.contains("\"target_depth\"") && !general.contains("k-mer depth"), "{general}");
    assert!(!called().join("targets.tsv").exists());
}

/// A distributed call gives the same files, and its steps notice another targets file.
#[test]
fn a_distributed_call_has_the_same_targets() {
    let Capture { data, bed, .. } = capture();
    let folder = scratch("distributed-targets");
    let [out, store] = ["out", "run"].map(|name| folder.join(name));
    let own = folder.join("targets.bed");
    fs::copy(bed, &own).expect("a copy");
    let plan = ["-q", "--targets", text(&own), "--target-padding", "150", "--plan", text(&store)];
    run(data.call_with(&out, &[&plan[..], &["--shards", "1", "--partitions", "3"]].concat())).assert_success();
    let step = |name: &str, number: &str| run(["step", text(&store), name, number, "-q"]);
    step("scatter", "1").assert_success();
    // Another file under the same name is reported.
    let modified = fs::metadata(&own).and_then(|own| own.modified()).expect("a time");
    fs::write(&own, "extra\t0\t100\n").expect("written");
    let ended = step("count", "1");
    assert!(ended.code == Some(1) && ended.stderr.contains("targets.bed: changed since"), "{}", ended.stderr);
    fs::copy(bed, &own).expect("a copy");
    fs::File::options().write(true).open(&own).and_then(|f| f.set_modified(modified)).expect("the time set");
    ["1", "2", "3"].into_iter().for_each(|n| _ = step("count", n).assert_success());
    for name in ["pick", "label", "assemble", "place", "recruit", "finish"] {
        step(name, "1").assert_success();
    }
    for name in DETERMINISTIC_RESULTS.into_iter().chain(["targets.tsv"]) {
        let read = |folder: &Path| read_without_provenance(&folder.join(name));
        assert!(read(&out) == read(targeted()), "{name} differs");
    }
}

/// Several tumours, each with its depth; the targets as a compressed interval list.
#[test]
fn each_of_several_tumours_has_its_depth() {
    let Capture { data, intervals, .. } = capture();
    let sample = ["--depth-tumor", "12", "--depth-normal", "1", "--reads-seed", "9"];
    let second = Data::simulate("shallow-tumour", &[&PATIENT[..], &sample].concat());
    let folder = scratch("several-targets");
    let lines = intervals.iter().map(|(contig, start, end)| format!("{contig}\t{}\t{end}\t+\tx\n", start + 1));
    let list = format!("@HD\tVN:1.6\n@SQ\tSN:extra\tLN:3000\n{}", lines.collect::<String>());
    let list = gzip(folder.join("targets.interval_list.gz"), list.as_bytes());
    let out = folder.join("out");
    let mut args = data.call_with(&out, &["-q", "-L", text(&list)]);
    let normal = args.iter().position(|arg| arg == "--normal").expect("an option");
    let files = second.tumor.iter().map(|path| text(path).to_owned());
    args.splice(normal..normal, ["--tumor".to_owned()].into_iter().chain(files));
    run(args).assert_success();
    let (header, rows) = target_rows(&out);
    assert!(header.ends_with("\tdepth_TUMOR_1\tdepth_TUMOR_2\tdepth_NORMAL\tstatus"), "{header}");
    let other = target_rows(targeted()).1;
    for (row, other) in rows.iter().zip(&other) {
        let [own, expected] = [[&row[0], &row[1], &row[2], &row[4]], [&other[0], &other[1], &other[2], &other[4]]];
        assert_eq!(own, expected);
        assert_eq!(row[6], other[5]);
    }
    let (_, median) = depths_near(&rows, 5, 12.0);
    assert!((9.5..13.5).contains(&median), "{median}");
}

#[test]
fn a_variant_outside_the_targets_is_explained() {
    let Capture { data, bed, intervals } = capture();
    let outside = records(called()).into_iter().find(|record| {
        record.filter == "PASS"
            && record.reference.len() + record.alternative.len() == 2
            && distance(intervals, &record.contig, record.pos) > 50
    });
    let Record { contig, pos, reference, alternative, .. } = outside.expect("a call outside the targets");
    let asked = format!("{contig}:{pos}:{reference}>{alternative}");
    let options = ["-q", "--targets", text(bed), "--why", &asked];
    let told = run(data.call_with(&scratch("why-targets"), &options)).assert_success().stdout;
    assert!(told.contains("outside the targets, so a call would not be written"), "{told}");
}

#[test]
fn targets_that_do_not_fit_are_refused() {
    let Capture { data, bed, intervals } = capture();
    let folder = scratch("refused-targets");
    let out = folder.join("calls");
    let contig = &intervals[0].0;
    let other = contig.strip_prefix("chr").map_or_else(|| format!("chr{contig}"), str::to_owned);
    let refused = |text_of_file: &str, parts: &[&str]| {
        let own = folder.join("own.bed");
        fs::write(&own, text_of_file).expect("a file");
        let ended = run(data.call_with(&out, &["--targets", text(&own)]));
        assert_eq!(ended.code, Some(1), "{}", ended.stderr);
        let errors: Vec<&str> = ended.stderr.lines().filter(|line| line.contains("error: ")).collect();
        let [error] = errors[..] else { panic!("one line of error, not {errors:?}") };
        parts.iter().for_each(|part| assert!(error.contains(part), "'{part}' is not in: {error}"));
        assert!(!out.exists(), "{text_of_file}");
    };
    refused(&format!("{contig}\t1\t9\n{other}\t1\t9\n"), &["own.bed: line 2: ", &format!("\"{contig}\""), "rename"]);
    refused(&format!("{contig}\t9\t9\n"), &["own.bed: line 1: start 9 is not before end 9"]);
    refused(&format!("{contig}\t9\t999999999\n"), &["line 1: end 999999999 is beyond contig"]);
    refused(&format!("{contig}\t-9\t9\n"), &["line 1: \"-9\" is not a position"]);
    refused("# none\n", &["own.bed: has no targets"]);
    refused("", &["own.bed: is empty"]);
    let without = Data { reference: None, ..data.clone() };
    for (data, options, part) in [
        (&without, &["--targets", text(bed)][..], "--reference"),
        (data, &["--target-padding", "50"], "--targets"),
        (data, &["--targets", text(bed), "--target-padding", "x"], "--target-padding"),
    ] {
        let ended = run(data.call_with(&out, options));
        assert_eq!(ended.code, Some(2), "{options:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(part), "{}", ended.stderr);
    }
    let ended = run(data.call_with(&out, &["--targets", "/no/such.bed"]));
    assert!(ended.code == Some(1) && ended.stderr.contains("/no/such.bed: cannot read"), "{}", ended.stderr);
    assert!(names(&folder).iter().all(|name| name == "own.bed"), "{:?}", names(&folder));
}
