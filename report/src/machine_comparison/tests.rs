use super::*;
use crate::testing::assert_html_is_nested;
use genuma_planner::input::ForecastInput;
use genuma_planner::machine_comparison::MachineUse;
use genuma_somatic::pipeline::Resources;

/// A machine on which a human genome at 30x/30x can be called.
fn machine(name: &str) -> Machine {
    Machine {
        name: name.to_owned(),
        threads: 16,
        memory: 64 << 30,
        scratch: u64::MAX,
        cpu_time: 1.0,
        disk_mb_per_s: None,
        watts: Some(200.0),
        price: Some(5000.0),
        price_per_hour: None,
        source: String::new(),
    }
}

fn small() -> Machine {
    Machine { memory: 1 << 30, ..machine("small") }
}

fn page(machines: Vec<Machine>) -> String {
    let resources = Resources { threads: 16, memory: 64 << 30, scratch: 1 << 40, devices: Default::default() };
    let input = ForecastInput::from_genome_and_depths(3_100_000_000, [30.0; 2], 150, 31, resources);
    let machine_use = MachineUse { years: 3.0, calls: None, price_per_kwh: Some(0.3) };
    render_page(&MachineComparison::compare_machines(&input, machines, &machine_use))
}

#[test]
fn machines_are_rows_and_bars() {
    let slow = Machine { cpu_time: 2.0, price: Some(2500.0), watts: None, ..machine("half price") };
    let rented = Machine { price: None, price_per_hour: Some(1.5), ..machine("cloud") };
    let html = page(vec![Machine { source: "a <b>shop</b>".to_owned(), ..machine("a & b") }, slow, rented, small()]);
    assert_html_is_nested(&html);
    assert_eq!(html.matches("<figure>").count(), CHARTS.len());
    assert!(html.contains("a &amp; b") && html.contains("a &lt;b&gt;shop&lt;/b&gt;") && !html.contains("<b>shop"));
    assert!(html.contains("does not fit: ") && !html.contains("NaN") && !html.contains("inf"));
    // The price relative to the first machine, and the energy that is estimated.
    assert!(html.contains(r#"<td class="n">0.50</td>"#) && html.contains("h*</td>"), "{html}");
    assert!(html.contains("swatch rented"));
}

#[test]
fn a_page_without_prices_or_fitting_machines_is_complete() {
    let html = page(vec![Machine { price: None, ..machine("x") }]);
    assert_html_is_nested(&html);
    assert_eq!(html.matches("<figure>").count(), 3);
    let html = page(vec![small()]);
    assert_html_is_nested(&html);
    assert_eq!(html.matches("<figure>").count(), 0);
}

#[test]
fn long_names_are_shortened_in_charts() {
    assert_eq!(shorten("desktop"), "desktop");
    let shortened = shorten(&"x".repeat(100));
    assert!(shortened.ends_with('…') && shortened.chars().count() < 30);
}
