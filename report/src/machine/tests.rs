//! Tests that the page is well-formed, shows the measurements, and works in a browser, for machines of many shapes.

use genuma_machine::IdSet;
use genuma_machine::topology::TransparentHugePageMode;
use genuma_probe::MachineProfile;
use genuma_probe::profile::{BandwidthKernel, BufferPageKind, DeviceProfile, MemoryLocation};
use genuma_work::quantity::format_three_digits;

use super::fixtures::{
    self, ALL_ARTIFICIAL_MACHINES, CXL_MACHINE, EIGHT_SOCKET_MACHINE, FOUR_NODE_MACHINE, LARGE_SERVER,
    ONE_NODE_MACHINE, TWO_SOCKET_MACHINE,
};
use super::render_page;
use crate::testing::{assert_html_is_nested, run_chromium};

/// All invented machines, by name.
fn machines() -> Vec<(String, MachineProfile)> {
    let whole = ALL_ARTIFICIAL_MACHINES.iter().map(|s| (s.host.to_string(), s.to_profile()));
    let planned = [
        ("planned-8x8", "8 nodes x 8 cores, 16 GiB"),
        ("planned-expanded", "2 nodes x 24 cores, 2 threads, 64 GiB, 2 memory-only nodes x 128 GiB"),
    ];
    let planned =
        planned.map(|(name, described)| (name.to_string(), fixtures::profile_of_synthetic_machine(described)));
    let poor = [("container", fixtures::container_profile()), ("bare", fixtures::unmeasured_profile())];
    whole.chain(planned).chain(poor.map(|(name, profile)| (name.to_string(), profile))).collect()
}

/// The text between the first occurrences of two marks.
fn between<'a>(html: &'a str, from: &str, to: &str) -> &'a str {
    let start = html.find(from).unwrap_or_else(|| panic!("{from} is missing")) + from.len();
    &html[start..start + html[start..].find(to).unwrap_or_else(|| panic!("{to} is missing"))]
}

/// All numbers in the attributes of the drawings.
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
        let html = render_page(&profile);
        assert_html_is_nested(&html);
        for wrong in ["{{", "}}", "NaN", ">inf", "\"inf", " inf ", "-0.00"] {
            assert!(!html.contains(wrong), "{name}: {wrong} in the page");
        }
        let all = coordinates(&html);
        assert!(all.iter().all(|n| n.is_finite() && n.abs() < 10_000.0), "{name}");
        assert!(all.len() > 20, "{name}: something is drawn");
        for part in [
            "What this means for programs",
            "Topology",
            "Memory latency",
            "Between NUMA nodes",
            "Memory bandwidth",
            "Contention for memory",
            "All measurements",
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
    let machines = fixtures::profiles_of_recorded_machines();
    assert!(machines.len() >= 8, "{} recordings", machines.len());
    for (name, profile) in machines {
        let html = render_page(&profile);
        assert_html_is_nested(&html);
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
    for shape in ALL_ARTIFICIAL_MACHINES {
        let html = render_page(&shape.to_profile());
        let several = shape.sockets * shape.nodes > 1;
        // Latency, kernels, threads, load, two of contention; with several nodes distances, two matrices, placement.
        let figures = 6 + if several { 4 } else { 0 };
        assert_eq!(html.matches("<figure>").count(), figures, "{}", shape.host);
        let cells = html.matches("<g class=\"h").count() as u32;
        let (own, all) = (shape.sockets * shape.nodes, shape.sockets * shape.nodes + shape.memory_only);
        assert_eq!(cells, if several { 2 * own * all + all * all } else { 0 }, "{}", shape.host);
        assert!(html.contains("<p>Nothing: the whole plan was measured.</p>"), "{}", shape.host);
        assert!(!html.contains("not measured"), "{}", shape.host);
    }
}

#[test]
fn figures_are_those_of_the_profile() {
    let profile = FOUR_NODE_MACHINE.to_profile();
    let html = render_page(&profile);
    let cell = between(&html, "cores of node 0, memory of node 3: ", "</g>");
    let far = format_three_digits(profile.dram_latency_between(0, 3).unwrap().median);
    assert!(cell.starts_with(&format!("{far} ns ± ")) && cell.ends_with(&format!(">{far}</text>")), "{cell}");
    let rate = profile.bandwidth_between(BandwidthKernel::Triad, 2, 1).unwrap();
    let cell = between(&html, "8 threads on node 2, memory of node 1: ", "</g>");
    assert!(cell.ends_with(&format!(">{}</text>", format_three_digits(rate.total.median))), "{cell}");
    let one = profile.bandwidth.iter().find(|b| b.kernel == BandwidthKernel::Triad && b.threads == 1).unwrap();
    assert_eq!(
        between(&html, "<dt>One thread</dt><dd><b>", "</b>"),
        format!("{} GB/s", format_three_digits(one.total.median))
    );
    let rows = profile.latency.node_pairs.len() + profile.latency.memory_levels.len() + profile.bandwidth.len();
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
    let html = render_page(&ONE_NODE_MACHINE.to_profile());
    assert!(html.contains("The kernel shows one NUMA node"));
    assert!(!html.contains("numactl") && !html.contains("another node"), "there is nowhere else");
    assert!(
        html.contains("There is one node, so all cores have the same distance to the memory. A load takes 105 ns.")
    );
    assert!(html.contains("<dt>Remote latency</dt><dd><b>none</b>"));
}

#[test]
fn several_nodes_are_told_what_distance_costs_and_what_helps() {
    for (shape, factor) in
        [(TWO_SOCKET_MACHINE, 1.7), (FOUR_NODE_MACHINE, 1.7), (EIGHT_SOCKET_MACHINE, 2.3), (LARGE_SERVER, 1.7)]
    {
        let html = render_page(&shape.to_profile());
        let said = format!("The farthest memory takes {factor:.1} times as long to answer as a core's own");
        assert!(html.contains(&said), "{}", shape.host);
        for advice in ["--interleave=all", "One copy per node", "Data of one thread"] {
            assert!(html.contains(advice), "{}: {advice}", shape.host);
        }
    }
    let mut near = FOUR_NODE_MACHINE.to_profile();
    for pair in &mut near.latency.node_pairs {
        pair.latency.median = 100.0;
    }
    let html = render_page(&near);
    assert!(html.contains("for latency placement matters little"));
    assert!(html.contains("<b>One copy per node</b>") && html.contains("would gain little"));
}

#[test]
fn spread_memory_that_brings_nothing_is_not_praised() {
    let mut profile = TWO_SOCKET_MACHINE.to_profile();
    let (one, rest): (Vec<_>, Vec<_>) =
        profile.contention.clone().into_iter().partition(|c| c.memory == MemoryLocation::Node(0));
    assert!(render_page(&profile).contains("times as much."));
    for curve in profile.contention.iter_mut().filter(|c| matches!(c.memory, MemoryLocation::Interleaved(_))) {
        curve.points.clone_from(&one[0].points);
    }
    assert!(render_page(&profile).contains("about the same") && !rest.is_empty());
    assert!(render_page(&profile).contains("this did not increase the bandwidth here"));
}

#[test]
fn memory_without_cores_is_told_apart() {
    let html = render_page(&CXL_MACHINE.to_profile());
    assert!(html.contains("4 NUMA nodes with cores and memory, and 2 with memory only"));
    assert!(html.contains("The memory of nodes 4 and 5 (no cores) has a latency of 175 ns"));
    assert!(html.contains("The farthest memory takes 2.0 times as long to answer"), "cores or not");
    assert!(html.contains("not for indexes and hash tables"));
    assert_eq!(html.matches(">No socket</text>").count(), 2);

    // One node with cores, and a faster node with memory only.
    let mut fast = fixtures::ArtificialMachine { memory_only: 1, ..ONE_NODE_MACHINE }.to_profile();
    for pair in fast.latency.node_pairs.iter_mut().filter(|p| p.memory_node == 1) {
        pair.latency.median = 100.0;
    }
    for rate in fast.bandwidth.iter_mut().filter(|b| b.memory == MemoryLocation::Node(1)) {
        rate.total.median = 400.0;
    }
    let html = render_page(&fast);
    assert!(html.contains("All cores are on one NUMA node, but memory is of two kinds"));
    assert!(html.contains("It is the better choice for both."));
}

#[test]
fn huge_pages_are_praised_only_where_they_help() {
    let with = |huge: f64| {
        let mut profile = ONE_NODE_MACHINE.to_profile();
        for pair in &mut profile.latency.node_pairs {
            pair.latency.median_absolute_deviation = 1.0;
            pair.latency.median = if pair.pages == BufferPageKind::Huge { huge } else { 120.0 };
        }
        profile
    };
    assert!(render_page(&with(96.0)).contains("takes 96.0 ns instead of 120 ns, 20% less"));
    assert!(render_page(&with(118.5)).contains("no difference that stands out from the spread"));
    assert!(render_page(&with(150.0)).contains("25% more, which is unusual"));
    let mut never = with(96.0);
    never.topology.transparent_huge_pages = Some(TransparentHugePageMode::Never);
    assert!(render_page(&never).contains("an administrator has turned them off"));
}

#[test]
fn a_container_is_told_what_it_does_not_see() {
    let html = render_page(&fixtures::container_profile());
    for expected in [
        "The memory of this machine",
        "at an unknown time",
        "Only 5 of the 32 online CPUs could be used (0-2,8-9)",
        "The kernel did not put all memory where it was asked to",
        "1 of 6 figures spread more than 5%",
        "3 things could not be read or measured",
        "The cores of node 2 have no memory of their own",
        "CPUs 32-33 are offline",
        "Pale cores were not allowed",
        "<li>The firmware&#39;s tables (DMI) cannot be read here: run as root.</li>",
        "<li>Huge pages are not available: sizes on huge pages were not measured.</li>",
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
    let mut profile = TWO_SOCKET_MACHINE.to_profile();
    assert!(!render_page(&profile).contains("id=\"devices\""));
    profile.devices = vec![DeviceProfile {
        name: "A <card>".into(),
        kind: "gpu".into(),
        driver: "made up 1.2".into(),
        memory_bytes: 80 << 30,
        numa_node: Some(1),
        copy_to_device_gbs: 24.5,
        copy_from_device_gbs: 26.25,
        atomic_updates_mops: 4321.0,
    }];
    let html = render_page(&profile);
    assert_html_is_nested(&html);
    let section = between(&html, "id=\"devices\"", "</section>");
    for told in ["A &lt;card&gt;", "gpu", "made up 1.2", "80 GiB", "node 1", "24.5", "26.2", "4,321"] {
        assert!(section.contains(told), "{told}: {section}");
    }
}

#[test]
fn nothing_measured_is_said_and_nothing_made_up() {
    let html = render_page(&fixtures::unmeasured_profile());
    assert!(html.contains("Nothing could be measured."));
    assert_eq!(html.matches("<b>unknown</b>").count(), 5, "the tiles");
    assert!(!between(&html, "<dl class=\"meaning\">", "</dl>").contains(" GB/s"));
    assert!(html.contains("No latency curve was measured."));
}

#[test]
fn odd_figures_do_not_break_the_page() {
    let mut profile = FOUR_NODE_MACHINE.to_profile();
    for pair in &mut profile.latency.node_pairs {
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
    let html = render_page(&profile);
    assert_html_is_nested(&html);
    for wrong in ["NaN", ">inf", " inf", "\"inf"] {
        assert!(!html.contains(wrong), "{wrong}: {}", between(&html, "<dl class=\"meaning\">", "</dl>"));
    }
    assert!(coordinates(&html).iter().all(|n| n.is_finite() && n.abs() < 10_000.0));
}

#[test]
fn hostile_names_stay_text() {
    const EVIL: &str = "x\"><script>alert('1')</script><img src=http://evil/ onerror=a>&{{words}}";
    let mut profile = TWO_SOCKET_MACHINE.to_profile();
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
        &mut profile.latency.memory_levels[1].name,
        &mut profile.buffers[0].requested_policy,
    ] {
        *text = EVIL.into();
    }
    profile.missing.push(EVIL.into());
    profile.theory.modules[0].locator = EVIL.into();
    profile.theory.modules[0].bank = EVIL.into();
    let html = render_page(&profile);
    assert_html_is_nested(&html);
    assert_eq!(html.matches("<script").count() + html.matches("<img").count(), 0);
    assert_eq!(html.matches("<dl class=\"meaning\">").count(), 1, "{{{{words}}}} in a name is not filled in");
}

#[test]
fn nothing_is_loaded_from_elsewhere() {
    let html = render_page(&CXL_MACHINE.to_profile());
    for reference in ["http://", "https://", "src=\"", "@import", "url(", "<iframe", "<object", "<script"] {
        assert!(!html.contains(reference), "{reference} in the page");
    }
    assert!(html.contains("default-src 'none'; style-src 'unsafe-inline'"));
}

#[test]
fn a_busy_machine_is_called_busy() {
    let mut profile = ONE_NODE_MACHINE.to_profile();
    assert!(!render_page(&profile).contains("was busy"));
    for rate in &mut profile.bandwidth {
        rate.total.median_absolute_deviation = rate.total.median * 0.1;
    }
    profile.latency.memory_levels[1].latency.median = 900.0;
    for point in profile.loaded.iter_mut().flat_map(|c| &mut c.points) {
        point.latency.median = 100.0;
    }
    let html = render_page(&profile);
    assert!(html.contains("typically miss it by more than 10%"));
    assert!(!html.contains("Each step is a level"), "what falls is no staircase");
    assert!(html.contains("<h3>Traffic did not increase the latency of 100 ns</h3>"));
}

#[test]
fn sockets_that_share_a_node_are_counted() {
    let mut profile = ONE_NODE_MACHINE.to_profile();
    profile.topology.cpus[1].package = 1;
    let html = render_page(&profile);
    assert!(html.contains(">2 sockets</text>"), "a node with CPUs of two sockets stands alone");
    profile.topology.allowed.cpus = IdSet::from([0]);
    assert!(render_page(&profile).contains("Only 1 of the 2 online CPUs"));
}

/// If `GENUMA_PAGES` names a folder, the pages are kept there for inspection.
#[test]
fn a_browser_shows_the_page() {
    let folder = tempfile::tempdir().unwrap();
    let kept = std::env::var_os("GENUMA_PAGES").map(std::path::PathBuf::from);
    let pages = kept.as_deref().unwrap_or(folder.path());
    for (name, profile) in machines() {
        std::fs::write(pages.join(format!("{name}.html")), render_page(&profile)).unwrap();
    }
    let page = |name: &str| format!("file://{}", pages.join(name).display());
    let Some(dom) = run_chromium(folder.path(), &["--dump-dom"], &page("cxl-lab.html")) else { return };
    assert_eq!(dom.matches("<figure>").count(), 10);
    assert_eq!(dom.matches("<rect class=\"bank\"").count(), 6);
    let picture = folder.path().join("machine.png");
    let shot = format!("--screenshot={}", picture.display());
    run_chromium(folder.path(), &[&shot, "--window-size=1200,4000"], &page("cxl-lab.html")).unwrap();
    let bytes = std::fs::read(&picture).unwrap();
    assert!(bytes.starts_with(b"\x89PNG") && bytes.len() > 100_000, "{} bytes", bytes.len());
}

/// A script for a copy of a page. It sets the title to a list of overlapping or clipped texts of the drawings, and
/// says whether the page is wider than the window.
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
        let html = render_page(&profile).replace("default-src 'none';", "").replace("</body>", LOOK);
        let path = folder.path().join(format!("{name}.html"));
        std::fs::write(&path, html).unwrap();
        // Drawings scale with the window, so a narrow window is the hardest case.
        let page = format!("file://{}", path.display());
        let Some(dom) = run_chromium(folder.path(), &["--dump-dom", "--window-size=500,900"], &page) else {
            return;
        };
        let title = between(&dom, "<title>", "</title>");
        let said = title.strip_prefix("looked at ").expect("the script ran");
        let (texts, verdict) = said.split_once(": ").expect("a verdict");
        assert!(texts.parse::<u32>().expect("a number") > 4, "{name}: {title}");
        assert_eq!(verdict, "all is clear", "{name}");
    }
}
