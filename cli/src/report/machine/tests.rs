//! The page is well formed, says what was measured, and works in a browser, for machines of many shapes.

use genuma_machine::IdSet;
use genuma_machine::topology::Transparent;
use genuma_probe::MachineProfile;
use genuma_probe::profile::{DeviceProfile, Kernel, PageKind, Spot};

use super::fixtures::{self, EIGHT, EXPANDED, FOUR, LARGE, SHAPES, SMALL, TWO};
use super::render;
use crate::report::markup::figure;
use crate::report::testing::{assert_nested, chromium};

/// Every made-up machine, by name.
fn machines() -> Vec<(String, MachineProfile)> {
    let whole = SHAPES.iter().map(|s| (s.host.to_string(), s.profile()));
    let planned = [
        ("planned-8x8", "8 nodes x 8 cores, 16 GiB"),
        ("planned-expanded", "2 nodes x 24 cores, 2 threads, 64 GiB, 2 memory-only nodes x 128 GiB"),
    ];
    let planned = planned.map(|(name, described)| (name.to_string(), fixtures::planned(described)));
    let poor = [("container", fixtures::container()), ("bare", fixtures::bare())];
    whole.chain(planned).chain(poor.map(|(name, profile)| (name.to_string(), profile))).collect()
}

/// The text between two marks, the first time they occur.
fn between<'a>(html: &'a str, from: &str, to: &str) -> &'a str {
    let start = html.find(from).unwrap_or_else(|| panic!("{from} is missing")) + from.len();
    &html[start..start + html[start..].find(to).unwrap_or_else(|| panic!("{to} is missing"))]
}

/// Every number in the attributes of the drawings.
fn coordinates(html: &str) -> Vec<f64> {
    const NAMES: [&str; 6] = [" x=\"", " y=\"", " width=\"", " height=\"", " d=\"", " viewBox=\""];
    let mut all = Vec::new();
    for name in NAMES {
        for (at, _) in html.match_indices(name) {
            let value = &html[at + name.len()..];
            let value = &value[..value.find('"').expect("an attribute ends")];
            let numbers = value.split(|c: char| !(c.is_ascii_digit() || c == '.' || c == '-'));
            all.extend(numbers.filter(|n| !n.is_empty()).map(|n| n.parse::<f64>().expect(value)));
        }
    }
    all
}

#[test]
fn every_machine_is_drawn_with_numbers_only() {
    for (name, profile) in machines() {
        let html = render(&profile);
        assert_nested(&html);
        for wrong in ["{{", "}}", "NaN", ">inf", "\"inf", " inf ", "-0.00"] {
            assert!(!html.contains(wrong), "{name}: {wrong} in the page");
        }
        let all = coordinates(&html);
        assert!(all.iter().all(|n| n.is_finite() && n.abs() < 10_000.0), "{name}");
        assert!(all.len() > 20, "{name}: something is drawn");
        for part in [
            "What this means for programs",
            "What the machine is made of",
            "How long memory takes to answer",
            "From node to node",
            "How much memory moves",
            "When many want the same memory",
            "All figures",
            "What is missing",
            "How it was measured",
        ] {
            assert_eq!(html.matches(&format!(">{part}</h2>")).count(), 1, "{name}: {part}");
        }
        let cores: usize = profile.topology.cpus.len();
        let drawn = html.matches("<rect class=\"core").count();
        assert_eq!(drawn, cores, "{name}: a rectangle for each hardware thread");
        assert_eq!(html.matches("<rect class=\"bank").count(), profile.topology.nodes.len(), "{name}");
        let pictures = html.matches("<svg").count();
        assert_eq!(pictures, html.matches("role=\"img\" aria-label=\"").count(), "{name}: each is described");
    }
}

#[test]
fn recorded_machines_have_pages_too() {
    let machines = fixtures::recorded();
    assert!(machines.len() >= 8, "{} recordings", machines.len());
    for (name, profile) in machines {
        let html = render(&profile);
        assert_nested(&html);
        for wrong in ["{{", "NaN", ">inf", "\"inf", " inf "] {
            assert!(!html.contains(wrong), "{name}: {wrong} in the page");
        }
        assert!(coordinates(&html).iter().all(|n| n.is_finite() && n.abs() < 10_000.0), "{name}");
        assert_eq!(html.matches("<rect class=\"bank").count(), profile.topology.nodes.len(), "{name}");
        assert!(html.contains("<b>unknown</b>"), "{name}: its firmware was not recorded");
    }
}

#[test]
fn whole_profiles_have_every_plot() {
    for shape in SHAPES {
        let html = render(&shape.profile());
        let several = shape.sockets * shape.nodes > 1;
        // Latency, kernels, threads, load, contention twice; then distances, two matrices, places.
        let figures = 6 + if several { 4 } else { 0 };
        assert_eq!(html.matches("<figure>").count(), figures, "{}", shape.host);
        let cells = html.matches("<g class=\"h").count() as u32;
        let (own, all) = (shape.sockets * shape.nodes, shape.sockets * shape.nodes + shape.memory_only);
        assert_eq!(cells, if several { 2 * own * all + all * all } else { 0 }, "{}", shape.host);
        assert!(html.contains("<p>Nothing: all of the plan was measured.</p>"), "{}", shape.host);
        assert!(!html.contains("not measured"), "{}", shape.host);
    }
}

#[test]
fn figures_are_those_of_the_profile() {
    let profile = FOUR.profile();
    let html = render(&profile);
    let cell = between(&html, "cores of node 0, memory of node 3: ", "</g>");
    let far = figure(profile.latency_between(0, 3).unwrap().median);
    assert!(cell.starts_with(&format!("{far} ns ± ")) && cell.ends_with(&format!(">{far}</text>")), "{cell}");
    let rate = profile.bandwidth_between(Kernel::Triad, 2, 1).unwrap();
    let cell = between(&html, "8 threads on node 2, memory of node 1: ", "</g>");
    assert!(cell.ends_with(&format!(">{}</text>", figure(rate.total.median))), "{cell}");
    let one = profile.bandwidth.iter().find(|b| b.kernel == Kernel::Triad && b.threads == 1).unwrap();
    assert_eq!(
        between(&html, "<dt>One thread</dt><dd><b>", "</b>"),
        format!("{} GB/s", figure(one.total.median))
    );
    let rows = profile.latency.pairs.len() + profile.latency.levels.len() + profile.bandwidth.len();
    let points: usize = profile.latency.curves.iter().map(|c| c.points.len()).sum::<usize>()
        + profile.contention.iter().map(|c| c.points.len()).sum::<usize>()
        + profile.loaded.iter().map(|c| c.points.len()).sum::<usize>();
    assert_eq!(html.matches("<td class=\"n\">± ").count(), rows + points, "a row for each figure");
    for expected in [
        "The memory of quarter",
        "Made-up Processor 9000 · 2 sockets · 4 NUMA nodes · 32 cores · 256 GiB of memory · Linux 6.18.0",
        "2026-11-21 08:07 UTC",
        "full: 10 min 55 s, expected 10 min 40 s",
        "<dd>avx512</dd>",
        "604 GB/s by 8 channels",
        "<td>bound to node 3</td>",
    ] {
        assert!(html.contains(expected), "{expected} is missing");
    }
}

#[test]
fn one_node_needs_no_placement() {
    let html = render(&SMALL.profile());
    assert!(html.contains("The kernel shows one NUMA node"));
    assert!(!html.contains("numactl") && !html.contains("another node"), "there is nowhere else");
    assert!(
        html.contains("There is one node, so there is one way from cores to memory. A load takes 105 ns.")
    );
    assert!(html.contains("<dt>Remote latency</dt><dd><b>none</b>"));
}

#[test]
fn several_nodes_are_told_what_distance_costs_and_what_helps() {
    for (shape, factor) in [(TWO, 1.7), (FOUR, 1.7), (EIGHT, 2.3), (LARGE, 1.7)] {
        let html = render(&shape.profile());
        let said = format!("The farthest memory takes {factor:.1} times as long to answer as a core's own");
        assert!(html.contains(&said), "{}", shape.host);
        for advice in ["--interleave=all", "One copy per node", "Data of one thread"] {
            assert!(html.contains(advice), "{}: {advice}", shape.host);
        }
    }
    let mut near = FOUR.profile();
    for pair in &mut near.latency.pairs {
        pair.latency.median = 100.0;
    }
    let html = render(&near);
    assert!(html.contains("for latency, placement matters little"));
    assert!(html.contains("<b>One copy per node</b>") && html.contains("would gain little"));
}

#[test]
fn spread_memory_that_brings_nothing_is_not_praised() {
    let mut profile = TWO.profile();
    let (one, rest): (Vec<_>, Vec<_>) =
        profile.contention.clone().into_iter().partition(|c| c.memory == Spot::Node(0));
    assert!(render(&profile).contains("times as much."));
    for curve in profile.contention.iter_mut().filter(|c| matches!(c.memory, Spot::Interleaved(_))) {
        curve.points.clone_from(&one[0].points);
    }
    assert!(render(&profile).contains("about the same") && !rest.is_empty());
    assert!(render(&profile).contains("it brought no bandwidth when tried here"));
}

#[test]
fn memory_without_cores_is_told_apart() {
    let html = render(&EXPANDED.profile());
    assert!(html.contains("4 NUMA nodes with cores, each beside memory of its own, and 2 with memory alone"));
    assert!(html.contains("The memory of nodes 4 and 5 (no cores) answers after 175 ns"));
    assert!(html.contains("The farthest memory takes 2.0 times as long to answer"), "cores or not");
    assert!(html.contains("keep indexes and hash tables off it"));
    assert_eq!(html.matches(">No socket</text>").count(), 2);

    // One node with cores beside a faster bank of memory.
    let mut fast = fixtures::Shape { memory_only: 1, ..SMALL }.profile();
    for pair in fast.latency.pairs.iter_mut().filter(|p| p.memory_node == 1) {
        pair.latency.median = 100.0;
    }
    for rate in fast.bandwidth.iter_mut().filter(|b| b.memory == Spot::Node(1)) {
        rate.total.median = 400.0;
    }
    let html = render(&fast);
    assert!(html.contains("All cores are on one NUMA node, but memory is of two kinds"));
    assert!(html.contains("It is the better place for both."));
}

#[test]
fn huge_pages_are_praised_only_where_they_help() {
    let with = |huge: f64| {
        let mut profile = SMALL.profile();
        for pair in &mut profile.latency.pairs {
            pair.latency.mad = 1.0;
            pair.latency.median = if pair.pages == PageKind::Huge { huge } else { 120.0 };
        }
        profile
    };
    assert!(render(&with(96.0)).contains("takes 96.0 ns instead of 120 ns, 20% less"));
    assert!(render(&with(118.5)).contains("no difference that stands out from the spread"));
    assert!(render(&with(150.0)).contains("25% more, which is unusual"));
    let mut never = with(96.0);
    never.topology.transparent = Some(Transparent::Never);
    assert!(render(&never).contains("an administrator has turned them off"));
}

#[test]
fn a_container_is_told_what_it_does_not_see() {
    let html = render(&fixtures::container());
    for expected in [
        "The memory of this machine",
        "at an unknown time",
        "Only 5 of the 32 online CPUs could be used (0-2,8-9)",
        "The kernel did not put all memory where it was asked to",
        "1 of 6 figures spread more than 5%",
        "3 things could not be read or measured",
        "The cores of node 2 have no memory of their own",
        "CPUs 32-33 are offline",
        "Pale cores are barred",
        "<li>The firmware&#39;s tables (DMI) cannot be read here: run as root.</li>",
        "<li>Huge pages are not to be had: sizes on huge pages were not measured.</li>",
        "/sys/devices/system/node/node9/meminfo",
        "<span class=\"bad\">no</span>",
        "Latency on huge pages was not compared",
    ] {
        assert!(html.contains(expected), "{expected} is missing");
    }
    assert_eq!(html.matches("<rect class=\"core barred\"").count(), 27);
    assert_eq!(html.matches("not measured</title>").count(), 10 + 11, "cells without a figure");
}

#[test]
fn devices_have_a_section_where_there_are_any() {
    let mut profile = TWO.profile();
    assert!(!render(&profile).contains("id=\"devices\""));
    profile.devices = vec![DeviceProfile {
        name: "A <card>".into(),
        kind: "gpu".into(),
        driver: "made up 1.2".into(),
        memory: 80 << 30,
        node: Some(1),
        to_gbs: 24.5,
        from_gbs: 26.25,
        random_mops: 4321.0,
    }];
    let html = render(&profile);
    assert_nested(&html);
    let section = between(&html, "id=\"devices\"", "</section>");
    for told in ["A &lt;card&gt;", "gpu", "made up 1.2", "80 GiB", "node 1", "24.5", "26.2", "4,321"] {
        assert!(section.contains(told), "{told}: {section}");
    }
}

#[test]
fn nothing_measured_is_said_and_nothing_made_up() {
    let html = render(&fixtures::bare());
    assert!(html.contains("Nothing could be measured."));
    assert_eq!(html.matches("<b>unknown</b>").count(), 5, "the tiles");
    assert!(!between(&html, "<dl class=\"meaning\">", "</dl>").contains(" GB/s"));
    assert!(html.contains("No latency curve was measured."));
}

#[test]
fn odd_figures_do_not_break_the_page() {
    let mut profile = FOUR.profile();
    for pair in &mut profile.latency.pairs {
        pair.latency.median = 0.0;
    }
    for point in profile.latency.curves.iter_mut().flat_map(|c| &mut c.points) {
        point.latency.min = 0.0;
    }
    for rate in &mut profile.bandwidth {
        rate.total.median = 0.0;
        rate.total.max = 0.0;
    }
    profile.contention.iter_mut().for_each(|c| c.points.truncate(1));
    profile.loaded.iter_mut().for_each(|c| c.points.truncate(1));
    profile.made_at = Some(u64::MAX);
    profile.theory.peak_gbs = Some(0.0);
    let html = render(&profile);
    assert_nested(&html);
    for wrong in ["NaN", ">inf", " inf", "\"inf"] {
        assert!(!html.contains(wrong), "{wrong}: {}", between(&html, "<dl class=\"meaning\">", "</dl>"));
    }
    assert!(coordinates(&html).iter().all(|n| n.is_finite() && n.abs() < 10_000.0));
}

#[test]
fn hostile_names_stay_text() {
    const EVIL: &str = "x\"><script>alert('1')</script><img src=http://evil/ onerror=a>&{{words}}";
    let mut profile = TWO.profile();
    profile.host = Some(EVIL.into());
    profile.topology.processor = Some(EVIL.into());
    profile.topology.kernel = Some(EVIL.into());
    profile.theory.unknown_because = Some(EVIL.into());
    profile.theory.peak_gbs = None;
    for text in [
        &mut profile.made_by,
        &mut profile.effort.plan,
        &mut profile.effort.instructions,
        &mut profile.topology.origin,
        &mut profile.latency.levels[1].name,
        &mut profile.buffers[0].asked,
    ] {
        *text = EVIL.into();
    }
    profile.missing.push(EVIL.into());
    profile.theory.modules[0].locator = EVIL.into();
    profile.theory.modules[0].bank = EVIL.into();
    let html = render(&profile);
    assert_nested(&html);
    assert_eq!(html.matches("<script").count() + html.matches("<img").count(), 0);
    assert_eq!(html.matches("<dl class=\"meaning\">").count(), 1, "{{{{words}}}} in a name is not filled in");
}

#[test]
fn nothing_is_loaded_from_elsewhere() {
    let html = render(&EXPANDED.profile());
    for reference in ["http://", "https://", "src=\"", "@import", "url(", "<iframe", "<object", "<script"] {
        assert!(!html.contains(reference), "{reference} in the page");
    }
    assert!(html.contains("default-src 'none'; style-src 'unsafe-inline'"));
}

#[test]
fn a_busy_machine_is_called_busy() {
    let mut profile = SMALL.profile();
    assert!(!render(&profile).contains("was busy"));
    for rate in &mut profile.bandwidth {
        rate.total.mad = rate.total.median * 0.1;
    }
    profile.latency.levels[1].latency.median = 900.0;
    for point in profile.loaded.iter_mut().flat_map(|c| &mut c.points) {
        point.latency.median = 100.0;
    }
    let html = render(&profile);
    assert!(html.contains("typically miss it by more than 10%"));
    assert!(!html.contains("Each step is a level"), "what falls is no staircase");
    assert!(html.contains("<h3>Traffic did not lengthen a look-up's wait of 100 ns</h3>"));
}

#[test]
fn sockets_that_share_a_node_are_counted() {
    let mut profile = SMALL.profile();
    profile.topology.cpus[1].package = 1;
    let html = render(&profile);
    assert!(html.contains(">2 sockets</text>"), "a node with CPUs of two sockets stands alone");
    profile.topology.allowed.cpus = IdSet::from([0]);
    assert!(render(&profile).contains("Only 1 of the 2 online CPUs"));
}

/// With `GENUMA_PAGES` set to a folder, the pages stay there to be looked at.
#[test]
fn a_browser_shows_the_page() {
    let folder = tempfile::tempdir().unwrap();
    let kept = std::env::var_os("GENUMA_PAGES").map(std::path::PathBuf::from);
    let pages = kept.as_deref().unwrap_or(folder.path());
    for (name, profile) in machines() {
        std::fs::write(pages.join(format!("{name}.html")), render(&profile)).unwrap();
    }
    let page = |name: &str| format!("file://{}", pages.join(name).display());
    let Some(dom) = chromium(folder.path(), &["--dump-dom"], &page("cxl-lab.html")) else { return };
    assert_eq!(dom.matches("<figure>").count(), 10);
    assert_eq!(dom.matches("<rect class=\"bank\"").count(), 6);
    let picture = folder.path().join("machine.png");
    let shot = format!("--screenshot={}", picture.display());
    chromium(folder.path(), &[&shot, "--window-size=1200,4000"], &page("cxl-lab.html")).unwrap();
    let bytes = std::fs::read(&picture).unwrap();
    assert!(bytes.starts_with(b"\x89PNG") && bytes.len() > 100_000, "{} bytes", bytes.len());
}

/// Put into a copy of a page, writes into its title which texts of a drawing lie on each other or outside of it, and whether the
/// page is wider than its window.
const LOOK: &str = r#"<script>
const wrong = [];
for (const svg of document.querySelectorAll("svg[role]")) {
  const field = svg.getBoundingClientRect();
  const texts = [...svg.querySelectorAll("text")].map(t => [t.getBoundingClientRect(), t.textContent]);
  texts.forEach(([a, said], i) => {
    if (a.left < field.left - 1 || a.right > field.right + 1 || a.top < field.top - 1 || a.bottom > field.bottom + 1)
      wrong.push(`${said} is cut off`);
    for (const [b, other] of texts.slice(0, i)) {
      const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (wide > 0 && high > a.height * 0.3) wrong.push(`${said} lies on ${other}`);
    }
  });
}
if (document.documentElement.scrollWidth > innerWidth) wrong.push("wider than the window");
document.title = `looked at ${document.querySelectorAll("svg[role] text").length}: ${wrong.join("; ") || "all is clear"}`;
</script></body>"#;

#[test]
fn no_text_of_a_drawing_lies_on_another() {
    let folder = tempfile::tempdir().unwrap();
    for (name, profile) in machines() {
        let html = render(&profile).replace("default-src 'none';", "").replace("</body>", LOOK);
        let path = folder.path().join(format!("{name}.html"));
        std::fs::write(&path, html).unwrap();
        // Drawings scale, so what is clear in a narrow window is clear in a wide one.
        let page = format!("file://{}", path.display());
        let Some(dom) = chromium(folder.path(), &["--dump-dom", "--window-size=500,900"], &page) else {
            return;
        };
        let title = between(&dom, "<title>", "</title>");
        let said = title.strip_prefix("looked at ").expect("the script ran");
        let (texts, verdict) = said.split_once(": ").expect("a verdict");
        assert!(texts.parse::<u32>().expect("a number") > 4, "{name}: {title}");
        assert_eq!(verdict, "all is clear", "{name}");
    }
}
