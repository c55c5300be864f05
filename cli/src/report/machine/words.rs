//! What the figures mean for programs bound by memory, in plain words. Every sentence states figures of this profile or is
//! left out.

use genuma_machine::topology::Transparent;
use genuma_probe::MachineProfile;

use super::findings::{Findings, HugeGain, Range, Saturation, kernel_name};
use crate::report::markup::{binary, counted, escape, figure};

/// The section, as HTML: a sentence to take home, then a heading and a paragraph for each question.
pub(crate) fn words(profile: &MachineProfile) -> String {
    let f = Findings(profile);
    let parts = [
        (if several(f) { "Where data lies" } else { "How long loads wait" }, placement(f)),
        ("How many threads", threads(f)),
        ("Huge pages", huge_pages(f)),
        ("How sure this is", certainty(f)),
    ];
    let items: String = parts
        .into_iter()
        .filter(|(_, text)| !text.is_empty())
        .map(|(heading, text)| format!("<div><dt>{heading}</dt><dd>{text}</dd></div>"))
        .collect();
    let caution = f.disturbed().map_or(String::new(), |typical| {
        format!(
            "<p class=\"caution\">The machine was busy while it was measured: half of a figure's repetitions typically miss it by more \
             than {:.0}%. Measure again on an idle machine before relying on what follows.</p>",
            typical * 100.0
        )
    });
    format!("{caution}<p class=\"lead\">{}</p><dl class=\"meaning\">{items}</dl>", lead(f))
}

/// A range in words: `about 105 ns`, `105 to 131 ns`.
fn span(range: Range, unit: &str) -> String {
    if range.high <= range.low * 1.03 {
        format!("{} {unit}", figure(range.middle))
    } else {
        format!("{} to {} {unit}", figure(range.low), figure(range.high))
    }
}

/// How many times as much `of` is as `than`: `1.9 times`, or `1.6 to 2.6 times` for a range.
fn times(of: Range, than: f64) -> String {
    let (low, high) = (of.low / than, of.high / than);
    if high <= low * 1.03 { format!("{high:.1} times") } else { format!("{low:.1} to {high:.1} times") }
}

/// `node 3`, `nodes 0, 2 and 5`.
fn nodes(ids: &[u32]) -> String {
    let names: Vec<String> = ids.iter().map(u32::to_string).collect();
    match names.split_last() {
        None => "no node".to_string(),
        Some((only, [])) => format!("node {only}"),
        Some((last, rest)) => format!("nodes {} and {last}", rest.join(", ")),
    }
}

/// Whether there is a choice of where data lies.
fn several(f: Findings) -> bool {
    f.cpu_nodes().len() > 1 || f.memory_nodes().len() > 1
}

fn lead(f: Findings) -> String {
    let (own, only) = (f.cpu_nodes(), f.memory_only());
    if !several(f) {
        return "The kernel shows one NUMA node: every core reaches all of the memory in the same way. Which core runs a thread \
                and where its data lies make no difference that software could use. What counts is how often a program \
                misses the caches, on which pages its data lies, and how many of its threads want memory at once. (A virtual machine may \
                hide the nodes of the machine it runs on.)"
            .to_string();
    }
    let kinds = match (own.len() > 1, only.is_empty()) {
        (true, true) => format!(
            "This machine has {} NUMA nodes: groups of cores, each beside a bank of memory of its own. Every core can use all of the memory, \
             but its own bank is nearer.",
            own.len()
        ),
        (true, false) => format!(
            "This machine has {} NUMA nodes with cores, each beside memory of its own, and {} with memory alone (such as CXL or HBM). \
             Every core can use all of the memory, but not all of it is equally near.",
            own.len(),
            only.len()
        ),
        (false, _) => format!(
            "All cores are on one NUMA node, but memory is of two kinds: the node's own, and that of {}, which has no cores (such as CXL or HBM).",
            nodes(&only)
        ),
    };
    let verdict = match (f.local(), f.farthest()) {
        (Some(local), Some(farthest)) => match farthest / local.middle {
            r if r < 1.1 => {
                " The distance costs less than a tenth of the latency here: for latency, placement matters little.".to_string()
            }
            r if r < 1.5 => format!(
                " The farthest memory takes {r:.1} times as long to answer as a core's own: placement is worth some care."
            ),
            r => format!(
                " The farthest memory takes {r:.1} times as long to answer as a core's own: where data lies decides how fast a memory-bound program runs."
            ),
        },
        _ => " How much nearer was not measured.".to_string(),
    };
    kinds + &verdict
}

fn placement(f: Findings) -> String {
    let mut says: Vec<String> = Vec::new();
    let local = f.local();
    if let Some(local) = local {
        let mut wait =
            format!("A load that misses every cache waits {} for its own node's memory", span(local, "ns"));
        if !several(f) {
            wait = format!("A load that misses every cache waits {}", span(local, "ns"));
        }
        if let Some(first) = f.0.latency.levels.first().filter(|l| l.name == "L1" && l.latency.median > 0.0) {
            wait += &format!(
                ", {:.0} times as long as one from the first cache",
                local.middle / first.latency.median
            );
        }
        says.push(format!(
            "{wait}. Look-ups that each need the one before (lists, trees, steps of an FM-index) therefore run at {} million a second \
             in each thread at most.",
            figure(1000.0 / local.middle)
        ));
    }
    if let (Some(local), Some(remote)) = (local, f.remote()) {
        says.push(format!(
            "From another node with cores it waits {}, {} as long.",
            span(remote, "ns"),
            times(remote, local.middle)
        ));
    }
    if !f.without_memory().is_empty() {
        says.push(format!(
            "The cores of {} have no memory of their own: all theirs is another node's.",
            nodes(&f.without_memory())
        ));
    }
    says.push(expanders(f));
    let (first_write, list) = advice(f);
    says.push(first_write);
    says.retain(|s| !s.is_empty());
    says.join(" ") + &list
}

/// Memory-only nodes.
fn expanders(f: Findings) -> String {
    let only = f.memory_only();
    let Some(latency) = f.to_memory_only() else { return String::new() };
    let mut text = format!("The memory of {} (no cores) answers after {}", nodes(&only), span(latency, "ns"));
    let rates = f.kernel().map(|k| f.pair_rates(k));
    let Some((Some(local), _, Some(theirs))) = rates else { return text + "." };
    text += &format!(
        " and gives the threads of a node {}, where their own gives {}.",
        span(theirs, "GB/s"),
        span(local, "GB/s")
    );
    let farther = f.local().is_some_and(|own| latency.low > own.middle * 1.15);
    text += match (farther, theirs.middle > local.middle) {
        (true, false) => {
            " Keep there what is seldom touched, or read in long streams; keep indexes and hash tables off it."
        }
        (true, true) => {
            " Keep there what is read in long streams; chains of single look-ups are better off in a node's own memory."
        }
        (false, true) => " It is the better place for both.",
        (false, false) => "",
    };
    text
}

/// What to do on several nodes with memory: a sentence or two, and a list.
fn advice(f: Findings) -> (String, String) {
    let own = f.cpu_nodes();
    if own.len() < 2 || f.memory_nodes().len() < 2 {
        return (String::new(), String::new());
    }
    let mut text = "Linux puts a page on the node of the thread that first writes it, so what one thread loads lies on one node.".to_string();
    if let Some((threads, one, spread)) = f.one_against_spread() {
        let compared = match spread / one {
            r if r > 1.1 => {
                format!("spread page by page over the nodes {} GB/s, {r:.1} times as much", figure(spread))
            }
            r if r > 0.9 => {
                format!("spread page by page over the nodes {} GB/s, about the same", figure(spread))
            }
            _ => format!("spread page by page over the nodes only {} GB/s", figure(spread)),
        };
        text += &format!(
            " {threads} threads that all read such data get {} GB/s together; {compared}.",
            figure(one)
        );
    }
    let own_memory = f.0.topology.nodes.iter().filter(|n| n.memory > 0 && !n.cpus.is_empty());
    let fits = own_memory.map(|n| n.memory).min().map_or(String::new(), |bytes| {
        format!(" if it fits into a node's memory ({} on the smallest)", binary(bytes))
    });
    let interleave = match f.one_against_spread() {
        Some((_, one, spread)) if spread <= one * 1.1 => {
            "it brought no bandwidth when tried here, but all threads fare alike"
        }
        _ => "no bank becomes the bottleneck",
    };
    let (average, copies) = match (f.local(), f.spread()) {
        (Some(local), Some(spread)) if local.middle < spread * 0.95 => (
            format!(" A load then waits {} ns on average.", figure(spread)),
            format!(
                ",{fits}: every load is local and waits {} ns, {:.0}% less than when spread.",
                figure(local.middle),
                (1.0 - local.middle / spread) * 100.0
            ),
        ),
        (Some(local), Some(spread)) => (
            format!(" A load then waits {} ns on average.", figure(spread)),
            format!(" would gain little: loads would wait {} ns.", figure(local.middle)),
        ),
        _ => (String::new(), format!(",{fits}: every load is local.")),
    };
    let list = format!(
        "<ul><li><b>One large structure for all threads</b> (an index, a hash table): spread it \
         (<code>numactl --interleave=all</code>); {interleave}.{average}</li>\
         <li><b>One copy per node</b>, or one instance of the program bound to each node \
         (<code>numactl --cpunodebind=0 --membind=0</code>, and so on){copies}</li>\
         <li><b>Data of one thread</b>: let that thread write it first, and keep the thread on its node.</li></ul>"
    );
    (text, list)
}

fn threads(f: Findings) -> String {
    let mut says: Vec<String> = Vec::new();
    if let (Some(kernel), Some(one)) = (f.kernel(), f.one_thread()) {
        let name = kernel_name(kernel);
        let alone = one.total.median;
        let mut text = format!("One thread moves {} GB/s ({name})", figure(alone));
        if let Some(most) = f.most(kernel).filter(|m| m.threads > 1 && m.total.median > 0.0) {
            text += &format!(
                "; the most, with {}, is {} GB/s, {:.1} times that",
                counted(u64::from(most.threads), "thread"),
                figure(most.total.median),
                most.total.median / alone
            );
        } else if f.rates().any(|r| r.kernel == kernel && r.threads > 1) {
            text += "; more threads together moved no more";
        }
        says.push(text + ".");
    }
    if let Some(s) = f.saturation().filter(|s| s.last.0 > 1 && s.most > 0.0) {
        says.push(crowd(f, s));
    }
    let near = |c: &&genuma_probe::profile::LoadedCurve| c.cpu_node == c.memory_node && c.points.len() > 1;
    if let Some(curve) = f.0.loaded.iter().find(near) {
        let idle = curve.points.first().map_or(0.0, |p| p.latency.median);
        let worst = curve.points.iter().max_by(|a, b| a.latency.median.total_cmp(&b.latency.median));
        if let Some(worst) = worst.filter(|w| idle > 0.0 && w.latency.median > idle * 1.05) {
            let beside = worst
                .injected
                .map_or(String::new(), |rate| format!(" while others move {} GB/s", figure(rate.median)));
            says.push(format!(
                "Traffic makes everybody wait: a load takes {} ns on the idle machine and {} ns{beside}.",
                figure(idle),
                figure(worst.latency.median)
            ));
        } else if idle > 0.0 {
            says.push("The traffic that could be made did not lengthen the latency of a load.".to_string());
        }
    }
    says.join(" ")
}

fn crowd(f: Findings, s: Saturation) -> String {
    let place = if f.memory_nodes().len() > 1 { "A node's memory" } else { "The memory" };
    let (last, each) = s.last;
    let share = s
        .alone
        .filter(|&a| a > 0.0)
        .map_or(String::new(), |alone| format!(", {:.0}% of what one has alone", each / alone * 100.0));
    let kernel = kernel_name(s.kernel);
    if s.reached() {
        format!(
            "{place} gives {} {:.0}% of the most that it gives at all ({} GB/s, {kernel}). With {last} threads on it, each is \
             left {} GB/s{share}. Programs limited by this bandwidth gain little from more threads than that; those that \
             wait for single look-ups move less, and may gain.",
            counted(u64::from(s.threads), "thread"),
            s.share * 100.0,
            figure(s.most),
            figure(each)
        )
    } else {
        format!(
            "{place} still gives more when the last of {last} threads join: together they get {} GB/s ({kernel}), each {} GB/s{share}.",
            figure(each * f64::from(last)),
            figure(each)
        )
    }
}

fn huge_pages(f: Findings) -> String {
    let measured = match f.huge_gain() {
        Some(gain) => gain_in_words(gain),
        None => "Latency on huge pages was not compared with that on base pages here.".to_string(),
    };
    let kernel = match f.0.topology.transparent {
        Some(Transparent::Always) => {
            " The kernel gives transparent huge pages to all memory that is large enough."
        }
        Some(Transparent::Madvise) => {
            " The kernel gives transparent huge pages only to programs that ask for them (<code>madvise</code>)."
        }
        Some(Transparent::Never) => {
            " The kernel gives no transparent huge pages: an administrator has turned them off (<code>never</code>)."
        }
        None => " What the kernel does about transparent huge pages cannot be read here.",
    };
    measured + kernel
}

fn gain_in_words(gain: HugeGain) -> String {
    let (base, huge) = (figure(gain.base.median), figure(gain.huge.median));
    let percent = (gain.share().abs() * 100.0).round();
    if !gain.clear() {
        format!(
            "On huge pages a load from local memory takes {huge} ns, on base pages {base} ns: no difference that stands out from the spread."
        )
    } else if gain.share() > 0.0 {
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

fn certainty(f: Findings) -> String {
    let all = f.all();
    let mut says: Vec<String> = Vec::new();
    let spread = |(_, m): &(String, genuma_probe::profile::Measured)| m.mad / m.median;
    if let (Some(typical), Some(worst)) =
        (Range::of(all.iter().map(spread)), all.iter().max_by(|a, b| spread(a).total_cmp(&spread(b))))
    {
        let fewest = all.iter().map(|(_, m)| m.repetitions).min().unwrap_or(0);
        let largest = all.iter().map(|(_, m)| m.repetitions).max().unwrap_or(0);
        let repeated = if fewest == largest {
            counted(u64::from(fewest), "repetition")
        } else {
            format!("{fewest} to {largest} repetitions")
        };
        says.push(format!(
            "Figures are medians of {repeated}. Half of a figure's repetitions lie within {:.1}% of it, typically; within {:.1}% \
             at worst ({}).",
            typical.middle * 100.0,
            typical.high * 100.0,
            escape(&worst.0)
        ));
        let wide = all.iter().filter(|x| spread(x) > 0.05).count();
        if wide > 0 {
            says.push(format!(
                "{} of {} spread more than 5%: take those as approximate.",
                wide,
                counted(all.len() as u64, "figure")
            ));
        }
    } else {
        says.push("Nothing could be measured.".to_string());
    }
    let allowed = &f.0.topology.allowed;
    if allowed.cpus.len() < f.0.topology.cpus.len() {
        says.push(format!(
            "Only {} of the {} online CPUs could be used ({}): the figures are about that part of the machine.",
            allowed.cpus.len(),
            f.0.topology.cpus.len(),
            escape(&allowed.cpus.to_string())
        ));
    }
    let misplaced = f.0.buffers.iter().filter(|b| b.as_asked == Some(false)).count();
    if misplaced > 0 {
        says.push(format!(
            "<b>The kernel did not put all memory where it was asked to</b> ({} of {}; see the end of the page): figures on those \
             places are not about what their names say.",
            misplaced,
            counted(f.0.buffers.len() as u64, "placement")
        ));
    }
    let missing = f.missing().len();
    if missing > 0 {
        says.push(format!(
            "{} could not be read or measured; the end of the page lists what and why.",
            counted(missing as u64, "thing")
        ));
    }
    says.join(" ")
}
