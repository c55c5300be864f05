//! Text that explains what the measurements mean for programs whose speed depends on memory. Sentences about missing
//! measurements are left out.

use genuma_machine::topology::TransparentHugePageMode;
use genuma_probe::MachineProfile;
use genuma_work::quantity::{format_bytes, format_count_with_noun, format_three_digits};

use super::key_figures::{
    BandwidthSaturation, BaseAndHugePageLatencies, MinMedianMax, ProfileKeyFigures, bandwidth_kernel_name,
};
use crate::markup::escape_html;

/// Returns the text as HTML: a leading sentence, then a paragraph for each topic (placement, threads, huge pages,
/// accuracy).
pub fn machine_advice_section(profile: &MachineProfile) -> String {
    let f = ProfileKeyFigures(profile);
    let parts = [
        (if has_placement_choice(f) { "Memory placement" } else { "Memory latency" }, describe_placement(f)),
        ("How many threads", describe_threads(f)),
        ("Huge pages", describe_huge_pages(f)),
        ("Accuracy", describe_certainty(f)),
    ];
    let items: String = parts
        .into_iter()
        .filter(|(_, text)| !text.is_empty())
        .map(|(heading, text)| format!("<div><dt>{heading}</dt><dd>{text}</dd></div>"))
        .collect();
    let caution = f.median_relative_spread_if_high().map_or(String::new(), |typical| {
        format!(
            "<p class=\"caution\">The machine was busy while it was measured: half of a figure's repetitions typically miss it by more \
             than {:.0}%. Measure again on an idle machine before relying on what follows.</p>",
            typical * 100.0
        )
    });
    format!("{caution}<p class=\"lead\">{}</p><dl class=\"meaning\">{items}</dl>", lead_sentence(f))
}

/// Formats a range: `105 ns`, `105 to 131 ns`.
fn format_range(range: MinMedianMax, unit: &str) -> String {
    if range.high <= range.low * 1.03 {
        format!("{} {unit}", format_three_digits(range.middle))
    } else {
        format!("{} to {} {unit}", format_three_digits(range.low), format_three_digits(range.high))
    }
}

/// Formats the ratio of a range to a number, as `1.9 times` or `1.6 to 2.6 times`.
fn format_ratio(of: MinMedianMax, than: f64) -> String {
    let (low, high) = (of.low / than, of.high / than);
    if high <= low * 1.03 { format!("{high:.1} times") } else { format!("{low:.1} to {high:.1} times") }
}

/// Formats a list of nodes: `node 3`, `nodes 0, 2 and 5`.
fn list_nodes(ids: &[u32]) -> String {
    let names: Vec<String> = ids.iter().map(u32::to_string).collect();
    match names.split_last() {
        None => "no node".to_string(),
        Some((only, [])) => format!("node {only}"),
        Some((last, rest)) => format!("nodes {} and {last}", rest.join(", ")),
    }
}

/// Returns whether the machine has several nodes with cores or several with memory, so that memory placement matters.
fn has_placement_choice(f: ProfileKeyFigures) -> bool {
    f.nodes_with_cores().len() > 1 || f.nodes_with_memory().len() > 1
}

fn lead_sentence(f: ProfileKeyFigures) -> String {
    let (own, only) = (f.nodes_with_cores(), f.memory_only_nodes());
    if !has_placement_choice(f) {
        return "The kernel shows one NUMA node: every core reaches all of the memory in the same way. Which core runs a thread \
                and where its data is stored make no difference that software could use. What counts is how often a program \
                misses the caches, the size of its pages, and how many of its threads access memory at once. (A virtual machine may \
                hide the nodes of the machine it runs on.)"
            .to_string();
    }
    let kinds = match (own.len() > 1, only.is_empty()) {
        (true, true) => format!(
            "This machine has {} NUMA nodes: groups of cores, each with memory of its own. Every core can use all of the memory, \
             but its own memory is nearer.",
            own.len()
        ),
        (true, false) => format!(
            "This machine has {} NUMA nodes with cores and memory, and {} with memory only (such as CXL or HBM). \
             Every core can use all of the memory, but not all of it is equally near.",
            own.len(),
            only.len()
        ),
        (false, _) => format!(
            "All cores are on one NUMA node, but memory is of two kinds: the node's own, and that of {}, which has no cores (such as CXL or HBM).",
            list_nodes(&only)
        ),
    };
    let verdict = match (f.local_memory_latency_range_ns(), f.max_remote_memory_latency_ns()) {
        (Some(local), Some(farthest)) => match farthest / local.middle {
            r if r < 1.1 => {
                " The latency of distant memory is less than a tenth higher here, so for latency placement matters little.".to_string()
            }
            r if r < 1.5 => format!(
                " The farthest memory takes {r:.1} times as long to answer as a core's own: placement is worth some care."
            ),
            r => format!(
                " The farthest memory takes {r:.1} times as long to answer as a core's own: memory placement decides how fast a memory-bound program runs."
            ),
        },
        _ => " The difference was not measured.".to_string(),
    };
    kinds + &verdict
}

fn describe_placement(f: ProfileKeyFigures) -> String {
    let mut sentences: Vec<String> = Vec::new();
    let local = f.local_memory_latency_range_ns();
    if let Some(local) = local {
        let mut wait =
            format!("A load that misses every cache takes {} from its own node's memory", format_range(local, "ns"));
        if !has_placement_choice(f) {
            wait = format!("A load that misses every cache takes {}", format_range(local, "ns"));
        }
        if let Some(first) = f.0.latency.memory_levels.first().filter(|l| l.name == "L1" && l.latency.median > 0.0) {
            wait += &format!(", {:.0} times as long as one from the first cache", local.middle / first.latency.median);
        }
        sentences.push(format!(
            "{wait}. Look-ups that each need the one before (lists, trees, steps of an FM-index) therefore run at {} million a second \
             in each thread at most.",
            format_three_digits(1000.0 / local.middle)
        ));
    }
    if let (Some(local), Some(remote)) = (local, f.remote_memory_latency_range_ns()) {
        sentences.push(format!(
            "From the memory of another node with cores it takes {}, {} as long.",
            format_range(remote, "ns"),
            format_ratio(remote, local.middle)
        ));
    }
    if !f.memoryless_nodes().is_empty() {
        sentences.push(format!(
            "The cores of {} have no memory of their own and use that of other nodes.",
            list_nodes(&f.memoryless_nodes())
        ));
    }
    sentences.push(describe_memory_only_nodes(f));
    let (first_write, list) = placement_advice(f);
    sentences.push(first_write);
    sentences.retain(|s| !s.is_empty());
    sentences.join(" ") + &list
}

/// Describes the nodes that have memory but no cores.
fn describe_memory_only_nodes(f: ProfileKeyFigures) -> String {
    let only = f.memory_only_nodes();
    let Some(latency) = f.memory_only_node_latency_range_ns() else { return String::new() };
    let mut text =
        format!("The memory of {} (no cores) has a latency of {}", list_nodes(&only), format_range(latency, "ns"));
    let rates = f.main_bandwidth_kernel().map(|k| f.bandwidth_ranges_by_kind_of_node_pair(k));
    let Some((Some(local), _, Some(theirs))) = rates else { return text + "." };
    text += &format!(
        " and a bandwidth of {} for the threads of a node, compared with {} for their own memory.",
        format_range(theirs, "GB/s"),
        format_range(local, "GB/s")
    );
    let farther = f.local_memory_latency_range_ns().is_some_and(|own| latency.low > own.middle * 1.15);
    text += match (farther, theirs.middle > local.middle) {
        (true, false) => {
            " Use it for data that is rarely accessed or read in long streams, not for indexes and hash tables."
        }
        (true, true) => {
            " Use it for data that is read in long streams; data that is looked up at random is better in a node's own memory."
        }
        (false, true) => " It is the better choice for both.",
        (false, false) => "",
    };
    text
}

/// Returns advice on memory placement: one or two sentences, and an HTML list. Both are empty unless several nodes have
/// cores and several have memory.
fn placement_advice(f: ProfileKeyFigures) -> (String, String) {
    let own = f.nodes_with_cores();
    if own.len() < 2 || f.nodes_with_memory().len() < 2 {
        return (String::new(), String::new());
    }
    let mut text = "Linux allocates a page on the node of the thread that first writes it, so data that one thread loads is on one node.".to_string();
    if let Some((threads, one, spread)) = f.single_node_and_interleaved_bandwidth() {
        let compared = match spread / one {
            r if r > 1.1 => {
                format!("interleaved over the nodes {} GB/s, {r:.1} times as much", format_three_digits(spread))
            }
            r if r > 0.9 => {
                format!("interleaved over the nodes {} GB/s, about the same", format_three_digits(spread))
            }
            _ => format!("interleaved over the nodes only {} GB/s", format_three_digits(spread)),
        };
        text += &format!(
            " {threads} threads that all read such data get {} GB/s together; {compared}.",
            format_three_digits(one)
        );
    }
    let own_memory = f.0.topology.nodes.iter().filter(|n| n.memory_bytes > 0 && !n.cpus.is_empty());
    let fits = own_memory.map(|n| n.memory_bytes).min().map_or(String::new(), |bytes| {
        format!(" if it fits into a node's memory ({} on the smallest)", format_bytes(bytes))
    });
    let interleave = match f.single_node_and_interleaved_bandwidth() {
        Some((_, one, spread)) if spread <= one * 1.1 => {
            "this did not increase the bandwidth here, but all threads get the same"
        }
        _ => "no node's memory becomes the bottleneck",
    };
    let (average, copies) = match (f.local_memory_latency_range_ns(), f.expected_interleaved_latency_ns()) {
        (Some(local), Some(spread)) if local.middle < spread * 0.95 => (
            format!(" A load then takes {} ns on average.", format_three_digits(spread)),
            format!(
                ",{fits}: every load is local and takes {} ns, {:.0}% less than when interleaved.",
                format_three_digits(local.middle),
                (1.0 - local.middle / spread) * 100.0
            ),
        ),
        (Some(local), Some(spread)) => (
            format!(" A load then takes {} ns on average.", format_three_digits(spread)),
            format!(" would gain little: loads would take {} ns.", format_three_digits(local.middle)),
        ),
        _ => (String::new(), format!(",{fits}: every load is local.")),
    };
    let list = format!(
        "<ul><li><b>One large structure for all threads</b> (an index, a hash table): interleave it \
         (<code>numactl --interleave=all</code>); {interleave}.{average}</li>\
         <li><b>One copy per node</b>, or one instance of the program bound to each node \
         (<code>numactl --cpunodebind=0 --membind=0</code>, and so on){copies}</li>\
         <li><b>Data of one thread</b>: let that thread write it first, and keep the thread on its node.</li></ul>"
    );
    (text, list)
}

fn describe_threads(f: ProfileKeyFigures) -> String {
    let mut sentences: Vec<String> = Vec::new();
    if let (Some(kernel), Some(one)) = (f.main_bandwidth_kernel(), f.one_thread_local_bandwidth()) {
        let name = bandwidth_kernel_name(kernel);
        let alone = one.total.median;
        let mut text = format!("One thread moves {} GB/s ({name})", format_three_digits(alone));
        if let Some(most) = f.max_bandwidth_of_kernel(kernel).filter(|m| m.threads > 1 && m.total.median > 0.0) {
            text += &format!(
                "; {} reach the maximum, {} GB/s, {:.1} times that",
                format_count_with_noun(u64::from(most.threads), "thread"),
                format_three_digits(most.total.median),
                most.total.median / alone
            );
        } else if f.successful_bandwidth_measurements().any(|r| r.kernel == kernel && r.threads > 1) {
            text += "; more threads together moved no more";
        }
        sentences.push(text + ".");
    }
    if let Some(s) = f.bandwidth_saturation().filter(|s| s.bandwidth_at_max_threads.0 > 1 && s.max_gbs > 0.0) {
        sentences.push(describe_saturation(f, s));
    }
    let near = |c: &&genuma_probe::profile::LoadedLatencyCurve| c.cpu_node == c.memory_node && c.points.len() > 1;
    if let Some(curve) = f.0.loaded.iter().find(near) {
        let idle = curve.points.first().map_or(0.0, |p| p.latency.median);
        let worst = curve.points.iter().max_by(|a, b| a.latency.median.total_cmp(&b.latency.median));
        if let Some(worst) = worst.filter(|w| idle > 0.0 && w.latency.median > idle * 1.05) {
            let traffic = worst
                .injected
                .map_or(String::new(), |rate| format!(" while others move {} GB/s", format_three_digits(rate.median)));
            sentences.push(format!(
                "Memory traffic increases the latency: a load takes {} ns on the idle machine and {} ns{traffic}.",
                format_three_digits(idle),
                format_three_digits(worst.latency.median)
            ));
        } else if idle > 0.0 {
            sentences.push("The generated traffic did not increase the latency.".to_string());
        }
    }
    sentences.join(" ")
}

fn describe_saturation(f: ProfileKeyFigures, s: BandwidthSaturation) -> String {
    let place = if f.nodes_with_memory().len() > 1 { "A node's memory" } else { "The memory" };
    let (last, each) = s.bandwidth_at_max_threads;
    let share = s
        .one_thread_gbs
        .filter(|&a| a > 0.0)
        .map_or(String::new(), |alone| format!(", {:.0}% of the bandwidth of a single thread", each / alone * 100.0));
    let kernel = bandwidth_kernel_name(s.kernel);
    if s.saturates_before_all_threads() {
        format!(
            "{place} gives {} {:.0}% of its maximum bandwidth ({} GB/s, {kernel}). With {last} threads each has {} \
             GB/s{share}. Programs limited by this bandwidth gain little from more threads; programs that wait for \
             single look-ups use less bandwidth and may gain.",
            format_count_with_noun(u64::from(s.threads), "thread"),
            s.share_of_max * 100.0,
            format_three_digits(s.max_gbs),
            format_three_digits(each)
        )
    } else {
        format!(
            "{place} has a bandwidth that still rises with {last} threads: together they get {} GB/s ({kernel}), each {} GB/s{share}.",
            format_three_digits(each * f64::from(last)),
            format_three_digits(each)
        )
    }
}

fn describe_huge_pages(f: ProfileKeyFigures) -> String {
    let measured = match f.base_and_huge_page_latencies() {
        Some(gain) => describe_huge_page_gain(gain),
        None => "Latency on huge pages was not compared with that on base pages here.".to_string(),
    };
    let kernel = match f.0.topology.transparent_huge_pages {
        Some(TransparentHugePageMode::Always) => {
            " The kernel gives transparent huge pages to all memory that is large enough."
        }
        Some(TransparentHugePageMode::Madvise) => {
            " The kernel gives transparent huge pages only to programs that ask for them (<code>madvise</code>)."
        }
        Some(TransparentHugePageMode::Never) => {
            " The kernel gives no transparent huge pages: an administrator has turned them off (<code>never</code>)."
        }
        None => " The kernel's setting of transparent huge pages cannot be read here.",
    };
    measured + kernel
}

fn describe_huge_page_gain(gain: BaseAndHugePageLatencies) -> String {
    let (base, huge) = (format_three_digits(gain.base.median), format_three_digits(gain.huge.median));
    let percent = (gain.huge_page_latency_reduction().abs() * 100.0).round();
    if !gain.is_huge_page_effect_significant() {
        format!(
            "On huge pages a load from local memory takes {huge} ns, on base pages {base} ns: no difference that stands out from the spread."
        )
    } else if gain.huge_page_latency_reduction() > 0.0 {
        format!(
            "On huge pages a load from local memory takes {huge} ns instead of {base} ns, {percent}% less, because fewer \
             address translations miss. Large tables that are looked up at random gain most; streams gain little."
        )
    } else {
        format!(
            "On huge pages a load from local memory takes {huge} ns, on base pages {base} ns: {percent}% more, which is unusual. Look at \
             the latency curve below before using them."
        )
    }
}

fn describe_certainty(f: ProfileKeyFigures) -> String {
    let all = f.measurements_except_latency_curves();
    let mut sentences: Vec<String> = Vec::new();
    let spread = |(_, m): &(String, genuma_probe::profile::Measurement)| m.median_absolute_deviation / m.median;
    if let (Some(typical), Some(worst)) = (
        MinMedianMax::summarize_positive_values(all.iter().map(spread)),
        all.iter().max_by(|a, b| spread(a).total_cmp(&spread(b))),
    ) {
        let fewest = all.iter().map(|(_, m)| m.repetitions).min().unwrap_or(0);
        let largest = all.iter().map(|(_, m)| m.repetitions).max().unwrap_or(0);
        let repeated = if fewest == largest {
            format_count_with_noun(u64::from(fewest), "repetition")
        } else {
            format!("{fewest} to {largest} repetitions")
        };
        sentences.push(format!(
            "Figures are medians of {repeated}. Half of a figure's repetitions lie within {:.1}% of it, typically; within {:.1}% \
             at worst ({}).",
            typical.middle * 100.0,
            typical.high * 100.0,
            escape_html(&worst.0)
        ));
        let wide = all.iter().filter(|x| spread(x) > 0.05).count();
        if wide > 0 {
            sentences.push(format!(
                "{} of {} spread more than 5%: take those as approximate.",
                wide,
                format_count_with_noun(all.len() as u64, "figure")
            ));
        }
    } else {
        sentences.push("Nothing could be measured.".to_string());
    }
    let allowed = &f.0.topology.allowed;
    if allowed.cpus.len() < f.0.topology.cpus.len() {
        sentences.push(format!(
            "Only {} of the {} online CPUs could be used ({}): the figures are about that part of the machine.",
            allowed.cpus.len(),
            f.0.topology.cpus.len(),
            escape_html(&allowed.cpus.to_string())
        ));
    }
    let misplaced = f.0.buffers.iter().filter(|b| b.is_as_requested == Some(false)).count();
    if misplaced > 0 {
        sentences.push(format!(
            "<b>The kernel did not put all memory where it was asked to</b> ({} of {}; see the end of the page): values for those \
             placements do not describe what their names say.",
            misplaced,
            format_count_with_noun(f.0.buffers.len() as u64, "placement")
        ));
    }
    let missing = f.missing_measurement_notes().len();
    if missing > 0 {
        sentences.push(format!(
            "{} could not be read or measured; the end of the page lists them with the reasons.",
            format_count_with_noun(missing as u64, "thing")
        ));
    }
    sentences.join(" ")
}
