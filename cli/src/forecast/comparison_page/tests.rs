use super::*;
use crate::forecast::machine_comparison::MachineComparisonOptions;
use crate::forecast::model::tests::human_genome_input;
use crate::report::testing::assert_html_is_nested;

fn machine(name: &str, memory: u64) -> Machine {
    Machine {
        name: name.to_owned(),
        threads: 16,
        memory,
        scratch: 1 << 40,
        cpu_time: 1.0,
        disk_mb_per_s: None,
        watts: Some(200.0),
        price: Some(5000.0),
        price_per_hour: None,
        source: "a <b>shop</b>".to_owned(),
    }
}

fn page(machines: Vec<Machine>) -> String {
    let options = MachineComparisonOptions { machines: None, years: 3.0, calls: None, html: None };
    render_page(&MachineComparison::compare_machines(&human_genome_input(), machines, &options, Some(0.3)))
}

#[test]
fn machines_are_rows_and_bars() {
    let slow = Machine { cpu_time: 2.0, price: Some(2500.0), watts: None, ..machine("half price", 64 << 30) };
    let rented = Machine { price: None, price_per_hour: Some(1.5), ..machine("cloud", 64 << 30) };
    let html = page(vec![machine("a & b", 64 << 30), slow, rented, machine("small", 1 << 30)]);
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
    let html = page(vec![Machine { price: None, ..machine("x", 64 << 30) }]);
    assert_html_is_nested(&html);
    assert_eq!(html.matches("<figure>").count(), 3);
    let html = page(vec![machine("small", 1 << 30)]);
    assert_html_is_nested(&html);
    assert_eq!(html.matches("<figure>").count(), 0);
}

#[test]
fn long_names_are_shortened_in_charts() {
    assert_eq!(shorten("desktop"), "desktop");
    let shortened = shorten(&"x".repeat(100));
    assert!(shortened.ends_with('…') && shortened.chars().count() < 30);
}
