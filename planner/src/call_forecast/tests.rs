use super::*;
use crate::input::PanelSize;
use crate::rates::MEASURED_RATES;
use genuma_work::quantity;

/// A human genome at 30x/30x.
pub(crate) fn human_genome_input() -> ForecastInput {
    ForecastInput {
        bases: [93_000_000_000; 2],
        num_samples: 2,
        file_bytes: [43_000_000_000; 2],
        packed_bytes: 110_000_000_000,
        read_length: 150,
        num_files: 4,
        num_aligned_files: 0,
        panel: None,
        reference_bases: Some(3_100_000_000),
        k: 31,
        resources: Resources { threads: 16, memory: 64 << 30, scratch: 1 << 40, devices: Default::default() },
    }
}

fn find_unit<'a>(forecast: &'a CallForecast, name: &str) -> &'a UnitForecast {
    forecast.units.iter().find(|unit| unit.name == name).expect("a unit")
}

fn forecast_with(change: impl FnOnce(&mut ForecastInput)) -> CallForecast {
    let mut given = human_genome_input();
    change(&mut given);
    given.forecast_call(&MEASURED_RATES)
}

#[test]
fn more_bases_take_more_of_everything() {
    let all: Vec<CallForecast> = (1..6)
        .map(|n| {
            forecast_with(|g| {
                (g.bases, g.file_bytes, g.packed_bytes) =
                    ([n * 20_000_000_000; 2], [n * (9 << 30); 2], n * 24_000_000_000)
            })
        })
        .collect();
    for two in all.windows(2) {
        let [less, more] = two else { panic!("two") };
        assert_eq!(less.units.len(), 7);
        for (a, b) in less.units.iter().zip(&more.units) {
            assert!(a.cpu_s <= b.cpu_s && a.wall_s <= b.wall_s, "{a:?} {b:?}");
            // The counter uses less memory when not all k-mers fit.
            let memory = a.name == "count" || a.peak_bytes <= b.peak_bytes / 50 * 51;
            assert!(memory && a.read_bytes <= b.read_bytes, "{a:?} {b:?}");
        }
        assert!(less.scratch_bytes <= more.scratch_bytes && less.partitions <= more.partitions);
    }
    let [small, large] = [1_000_000_000, 3_000_000_000].map(|n| forecast_with(|g| g.reference_bases = Some(n)));
    assert!(find_unit(&small, "place").cpu_s < find_unit(&large, "place").cpu_s);
}

#[test]
fn less_scratch_means_more_partitions_and_advice() {
    let by = |scratch| forecast_with(|g| (g.resources.memory, g.resources.scratch) = (16 << 30, scratch));
    let [all, some, none] = [1 << 40, 50 << 30, 0].map(by);
    assert_eq!(all.partitions, 1);
    assert!(some.partitions > 1 && none.partitions > some.partitions);
    assert!(all.scratch_bytes > some.scratch_bytes && some.scratch_bytes <= 50 << 30);
    assert!(all.total_cpu_s() < some.total_cpu_s() && some.total_cpu_s() < none.total_cpu_s());
    assert!(some.total_read_and_written_bytes()[0] > all.total_read_and_written_bytes()[0]);
    let advised = some.advice.iter().find(|line| line.contains("--scratch")).expect("advice");
    // The advice works.
    let word = advised.split("--scratch ").nth(1).and_then(|rest| rest.split(' ').next()).expect("a size");
    assert_eq!(by(quantity::parse_bytes(word).expect("a size")).partitions, 1, "{advised}");
}

#[test]
fn a_copy_of_the_reads_is_made_where_there_is_room_beside_the_kmers() {
    let by = |scratch| forecast_with(|g| g.resources.scratch = scratch);
    let (all, none) = (by(1 << 40), by(250 << 30));
    assert_eq!((all.partitions, none.partitions), (1, 1));
    assert_eq!((all.packed_bytes, none.packed_bytes), (human_genome_input().packed_bytes, 0));
    assert!(all.scratch_bytes > none.scratch_bytes && all.scratch_bytes > all.packed_bytes);
    assert!(find_unit(&all, "count").cpu_s > find_unit(&none, "count").cpu_s);
    for name in ["assemble", "recruit"] {
        let [with, without] = [&all, &none].map(|forecast| find_unit(forecast, name));
        assert!(with.cpu_s < without.cpu_s && with.read_bytes > 0, "{with:?} {without:?}");
    }
    assert!(all.total_cpu_s() < none.total_cpu_s() && all.advice.is_empty());
    // The advice works, and much less does not.
    let [advised] = &none.advice[..] else { panic!("{:?}", none.advice) };
    let word = advised.split("--scratch ").nth(1).and_then(|rest| rest.split(' ').next()).expect("a size");
    let scratch = quantity::parse_bytes(word).expect("a size");
    assert_eq!(by(scratch).packed_bytes, human_genome_input().packed_bytes, "{advised}");
    assert_eq!(by(scratch / 2).packed_bytes, 0);
    // When k-mers are counted in several partitions, the files are read again in any case.
    let several = by(40 << 30);
    assert!(several.partitions > 1 && several.packed_bytes == 0, "{several:?}");
    assert!(forecast_with(|g| (g.resources.scratch, g.packed_bytes) = (1 << 40, 0)).packed_bytes == 0);
}

#[test]
fn threads_take_less_time_for_the_same_work() {
    let all = [1, 2, 4, 16].map(|n| forecast_with(|g| g.resources.threads = n));
    for two in all.windows(2) {
        assert!(two[0].total_wall_s() > two[1].total_wall_s(), "{two:?}");
        assert!((two[0].total_cpu_s() - two[1].total_cpu_s()).abs() < 1.0);
    }
    // Four files are inflated by four threads, however many there are.
    let bound = 186.0 * MEASURED_RATES.inflate_s / 4.0;
    let many = forecast_with(|g| (g.resources.threads, g.resources.memory, g.packed_bytes) = (1000, 256 << 30, 0));
    assert!(find_unit(&many, "count").wall_s >= bound, "{many:?}");
    let more = forecast_with(|g| {
        (g.resources.threads, g.num_files, g.resources.memory, g.packed_bytes) = (1000, 64, 256 << 30, 0)
    });
    assert!(find_unit(&more, "count").wall_s < find_unit(&many, "count").wall_s);
}

#[test]
fn what_cannot_fit_is_refused_and_what_may_not_is_told() {
    let refused = forecast_with(|g| g.resources.memory = 3 << 30);
    assert!(!refused.fits && refused.units.is_empty() && refused.partitions == 0);
    assert!(refused.refused.expect("a reason").contains("too little"));
    assert!(refused.advice[0].contains("--memory 3.3G"), "{:?}", refused.advice);
    assert_eq!(forecast_with(|g| g.resources.memory = min_call_memory_bytes(16, g.reference_bases)).refused, None);
    assert_eq!(forecast_with(|g| g.resources.memory = min_call_memory_bytes(16, g.reference_bases) - 1).units, []);

    let endless = forecast_with(|g| {
        (g.bases, g.reference_bases) = ([30_000_000_000_000; 2], None);
        (g.resources.memory, g.resources.scratch) = (400 << 20, 0);
    });
    assert!(endless.refused.as_deref().is_some_and(|why| why.contains("passes")), "{endless:?}");
    assert!(endless.advice[0].contains("--scratch"));

    let over = forecast_with(|g| g.resources.memory = 4 << 30);
    assert!(!over.fits && over.refused.is_none());
    assert!(over.advice[0].contains("more than --memory: give --memory "), "{:?}", over.advice);
    let word = over.advice[0].rsplit(' ').next().expect("a size");
    assert!(forecast_with(|g| g.resources.memory = quantity::parse_bytes(word).expect("a size")).fits);
    let ample = forecast_with(|g| g.resources.memory = 400 << 30);
    assert!(ample.fits && ample.advice.is_empty(), "{:?}", ample.advice);
}

#[test]
fn facts_panel_and_lanes_take_memory() {
    let plain = forecast_with(|_| {});
    let peak = |forecast: &CallForecast, name: &str| find_unit(forecast, name).peak_bytes;
    // Each tumour has a k-mer sketch of its own.
    let given = ForecastInput {
        bases: [150_000_000; 2],
        packed_bytes: 180_000_000,
        reference_bases: Some(5_000_000),
        ..human_genome_input()
    };
    let small = |change: &dyn Fn(&mut ForecastInput)| {
        let mut given = given.clone();
        change(&mut given);
        given.forecast_call(&MEASURED_RATES)
    };
    let (alone, several) = (small(&|_| {}), small(&|g| g.num_samples = 4));
    let of = |samples| {
        ForecastInput { num_samples: samples, ..given.clone() }.sketch_and_library_memory_bytes(&MEASURED_RATES)
    };
    assert!(of(4) > of(2) * 3 / 2 && peak(&several, "count") > peak(&alone, "count"));
    assert!(
        of(2) < human_genome_input().sketch_and_library_memory_bytes(&MEASURED_RATES),
        "of a large genome more is sampled"
    );
    // Reads wait for mates while files are read, but not while packed reads are read.
    let lanes = small(&|g| g.num_aligned_files = 8);
    assert_eq!(peak(&lanes, "count") - peak(&alone, "count"), 8 * MEASURED_RATES.waiting_mates_bytes as u64);
    assert_eq!(peak(&lanes, "recruit"), peak(&alone, "recruit"));
    let again = |aligned| forecast_with(|g| (g.num_aligned_files, g.packed_bytes) = (aligned, 0));
    assert!(peak(&again(8), "recruit") > peak(&again(0), "recruit"));
    // The panel's filter is in memory if half of what is left has room for it.
    let table = PanelSize { page_bytes: 30 << 30, filter_and_index_bytes: 4 << 30 };
    let by = |memory| forecast_with(|g| (g.panel, g.resources.memory) = (Some(table), memory));
    let (large, little) = (by(64 << 30), by(8 << 30));
    assert_eq!(peak(&large, "panel") - peak(&little, "panel"), table.filter_and_index_bytes);
    assert!(find_unit(&large, "panel").read_bytes > find_unit(&little, "panel").read_bytes);
    // A dictionary is always in memory.
    let dictionary = PanelSize { page_bytes: 0, filter_and_index_bytes: 6 << 30 };
    let loaded = forecast_with(|g| (g.panel, g.resources.memory) = (Some(dictionary), 8 << 30));
    assert!(peak(&loaded, "panel") > peak(&little, "panel") + (5 << 30));
    assert_eq!(find_unit(&loaded, "panel").read_bytes, dictionary.filter_and_index_bytes);
    assert!(plain.units.iter().all(|unit| unit.name != "panel"));
    assert!(peak(&large, "recruit") > peak(&plain, "recruit"), "what it says stays");
    assert_eq!(peak(&large, "count"), peak(&plain, "count"));
}

#[test]
fn without_a_reference_nothing_is_scanned() {
    let none = forecast_with(|g| g.reference_bases = None);
    let all = forecast_with(|_| {});
    assert!(
        find_unit(&none, "place").cpu_s < find_unit(&all, "place").cpu_s && find_unit(&none, "place").read_bytes == 0
    );
    assert!(none.units.iter().all(|unit| unit.name != "reference"));
    assert!(none.peak_memory_bytes() <= all.peak_memory_bytes());
}
