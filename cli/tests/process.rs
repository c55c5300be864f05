//! System resources of a process: standard streams, threads and memory. If they fail, the run reports it in one line,
//! or continues if only messages are lost. It never panics or dies by a signal.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::common::{RunOutput, installed, names, run, scratch};

/// A small pair with an index, in a folder of its own.
fn pair(name: &str) -> PathBuf {
    let folder = scratch(name);
    let out = folder.to_str().expect("UTF-8").to_owned();
    let size = ["--genome-length", "50000", "--contigs", "1", "--snvs", "4", "--indels", "0", "--svs", "0"];
    let depth = ["--depth-tumor", "2", "--depth-normal", "2", "--threads", "2", "-o", &out];
    run(["bench", "simulate"].iter().chain(&size).chain(&depth)).assert_success();
    run(["index".as_ref(), folder.join("genome.fa").as_os_str()]).assert_success();
    folder
}

/// Runs a shell command in `folder`, where `genuma` is the program under test.
fn shell(folder: &Path, line: &str) -> RunOutput {
    let output = Command::new("bash")
        .args(["-c", &format!("genuma() {{ \"$GENUMA\" \"$@\"; }}; {line}")])
        .env("GENUMA", env!("CARGO_BIN_EXE_genuma"))
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .expect("a shell");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    RunOutput { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// The single error line.
#[track_caller]
fn error(ended: &RunOutput) -> &str {
    let errors: Vec<&str> = ended.stderr.lines().filter(|line| line.contains("error: ")).collect();
    let [error] = errors[..] else { panic!("one line of error, not {errors:?}: {}", ended.stderr) };
    error
}

const ALIGN: &str = "genuma align genome.fa normal_1.fq.gz normal_2.fq.gz";

#[test]
fn messages_that_nobody_hears_are_lost_and_nothing_else() {
    let folder = pair("unheard");
    for (line, code) in [
        (format!("{ALIGN} -o {{}}.sam"), 0),
        ("genuma kmers count normal_1.fq.gz normal_2.fq.gz -o {}.tsv".to_owned(), 0),
        ("genuma bench simulate --genome-length 20000 --contigs 1 --snvs 2 --indels 0 --svs 0 -o {}".to_owned(), 0),
        (
            "genuma call --tumor tumor_{1,2}.fq.gz --normal normal_{1,2}.fq.gz --reference genome.fa --force -o {}"
                .to_owned(),
            0,
        ),
        ("genuma machine show --from nowhere".to_owned(), 1),
        ("genuma align genome.fa".to_owned(), 2),
    ] {
        let heard = shell(&folder, &line.replace("{}", "heard"));
        assert_eq!(heard.code, Some(code), "{line}: {}", heard.stderr);
        for (name, to) in [("full", "2>/dev/full"), ("closed", "2>&-")] {
            let ended = shell(&folder, &format!("{} {to}", line.replace("{}", name)));
            assert_eq!(ended.code, Some(code), "{line} {to}");
        }
    }
    let bytes = |name: &str| std::fs::read(folder.join(name)).expect("an output");
    let records = |name: &str| {
        let text = String::from_utf8(bytes(name)).expect("UTF-8");
        text.lines().filter(|line| !line.starts_with("@PG")).collect::<Vec<_>>().join("\n")
    };
    for other in ["full", "closed"] {
        assert!(records("heard.sam") == records(&format!("{other}.sam")));
        assert!(bytes("heard.tsv") == bytes(&format!("{other}.tsv")));
        assert_eq!(names(&folder.join("heard")), names(&folder.join(other)));
    }
}

#[test]
fn results_that_cannot_be_written_are_a_failure() {
    let folder = pair("unread");
    for line in [ALIGN, "genuma machine show", "genuma completions bash", "genuma bench evaluate truth.vcf truth.vcf"] {
        for to in [">/dev/full", ">&-"] {
            let ended = shell(&folder, &format!("{line} {to}"));
            assert_eq!(ended.code, Some(1), "{line} {to}: {}", ended.stderr);
            assert!(error(&ended).contains("standard output: "), "{line} {to}: {}", ended.stderr);
        }
        // The reader closes the pipe early.
        let ended = shell(&folder, &format!("{line} | head -n 1 >/dev/null; exit ${{PIPESTATUS[0]}}"));
        assert_eq!(ended.code, Some(0), "{line}: {}", ended.stderr);
        assert!(!ended.stderr.contains("error"), "{line}: {}", ended.stderr);
    }
    assert_eq!(
        error(&shell(&folder, "genuma --help >/dev/full")),
        "genuma: error: standard output: No space left on device (os error 28)"
    );
}

#[test]
fn threads_that_cannot_be_started() {
    let folder = pair("threads");
    for line in [
        "align genome.fa normal_1.fq.gz",
        "count normal_1.fq.gz normal_2.fq.gz -o x.tsv",
        "query x.gkt genome.fa",
        "index genome.fa",
        "simulate -o out",
        "run -- bwa mem genome.fa normal_1.fq.gz",
        "advise -- bwa mem genome.fa normal_1.fq.gz",
    ] {
        let (verb, rest) = line.split_once(' ').expect("a verb");
        let ended = shell(&folder, &format!("genuma {verb} -t 65535 {rest}"));
        assert_eq!(ended.code, Some(2), "{line}: {}", ended.stderr);
        assert!(error(&ended).contains("65535 is not in 1..=4096"), "{}", ended.stderr);
    }
    // Each thread has a stack of 2 MiB.
    let ended = shell(&folder, &format!("ulimit -v 3000000; {ALIGN} -o x.sam -t 4000"));
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    let said = error(&ended);
    let told = ["refuses to start more threads", "cannot start thread"];
    assert!(told.iter().any(|told| said.contains(told)), "{said}");
    assert!(names(&folder).iter().all(|name| !name.contains(".sam")), "{:?}", names(&folder));
    let call = "genuma call --tumor tumor_{1,2}.fq.gz --normal normal_{1,2}.fq.gz --reference genome.fa -o calls";
    let ended = shell(&folder, &format!("{call} -t 65535"));
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    assert!(error(&ended).contains("65535"), "{}", ended.stderr);
}

#[test]
fn memory_that_is_refused() {
    let folder = pair("memory");
    let mut refused = 0;
    // Some limits refuse allocations of Rust, others those of C. This depends on the addresses of arenas, so that
    // many limits are tried.
    for kib in (80_000..480_000).step_by(4_000).chain((480_000..800_000).step_by(80_000)) {
        let ended = shell(&folder, &format!("ulimit -v {kib}; {ALIGN} -t 2 -o x.sam"));
        let whole = folder.join("x.sam").exists();
        // glibc itself needs a few bytes for each new thread. It aborts with a message if they are refused.
        let is_aborted_by_glibc = ended.code == Some(134)
            && !whole
            && ["Fatal glibc error", "out of memory"].iter().all(|words| ended.stderr.contains(words));
        let expected = Some(if whole { 0 } else { 1 });
        assert!(is_aborted_by_glibc || ended.code == expected, "{kib} KiB: {:?} {}", ended.code, ended.stderr);
        if !whole {
            refused += usize::from(!is_aborted_by_glibc && error(&ended).contains("KiB requested"));
            let left: Vec<String> = names(&folder).into_iter().filter(|name| name.contains("x.sam")).collect();
            assert_eq!(left, Vec::<String>::new(), "{kib} KiB");
        } else {
            std::fs::remove_file(folder.join("x.sam")).expect("a file");
        }
    }
    assert!(refused > 0);
    // Limits that leave hardly any stack for the first thread.
    let sweep = "for kib in $(seq 80000 200 320000); do (ulimit -v $kib; exec \"$GENUMA\" --version >/dev/null 2>>said); echo $?; done \
                 | sort | uniq -c";
    let ended = shell(&folder, sweep);
    let codes: Vec<&str> = ended.stdout.lines().filter_map(|line| line.split_whitespace().nth(1)).collect();
    assert_eq!(codes, ["0", "1"], "{}", ended.stdout);
    let said = std::fs::read_to_string(folder.join("said")).expect("words");
    assert!(said.contains("out of memory (512 KiB requested)"), "{said}");
}

#[test]
fn the_default_memory_keeps_to_the_limit_on_address_space() {
    let folder = pair("address-space");
    // 4 GB: more than the program needs, and less than half of the memory of most machines.
    let counted =
        shell(&folder, "ulimit -v 4000000; exec \"$GENUMA\" count normal_1.fq.gz normal_2.fq.gz -k 21 -t 2 -o x.gkt");
    assert_eq!(counted.code, Some(0), "{}", counted.stderr);
    assert!(folder.join("x.gkt").exists());
    // More memory than the limit was requested: the message names the limit and the option.
    let asked =
        "ulimit -v 2000000; exec \"$GENUMA\" count normal_1.fq.gz normal_2.fq.gz -k 21 -t 2 -o y.gkt --memory 3G";
    let refused = shell(&folder, asked);
    assert_eq!(refused.code, Some(1), "{}", refused.stderr);
    assert!(
        error(&refused).contains("the address space of this process is limited to 1.9 GiB (ulimit -v"),
        "{}",
        refused.stderr
    );
    assert!(error(&refused).contains("lower --memory"), "{}", refused.stderr);
    assert!(!folder.join("y.gkt").exists());
}

/// A limit that leaves too little is named, with advice that helps.
#[test]
fn limits_that_leave_too_little_memory_are_named() {
    let folder = pair("limits");
    let count = "exec \"$GENUMA\" kmers count normal_1.fq.gz normal_2.fq.gz -k 21 -t 2 -o x.gkt";
    // The default of --memory is half of what the limit leaves: more than that is hardly possible.
    for (limit, subject) in
        [("-v 300000", "the address space of this process"), ("-d 120000", "the memory for data of")]
    {
        let refused = shell(&folder, &format!("ulimit {limit}; {count}"));
        assert_eq!(refused.code, Some(2), "{limit}: {}", refused.stderr);
        let said = error(&refused);
        assert!(said.contains(subject) && said.contains(&format!("(ulimit {}", &limit[..2])), "{said}");
        assert!(said.contains("raise the limit or lower --threads") && !said.contains("--memory"), "{said}");
    }
    // A verb without --memory is not told to lower it. Many limits are tried, because what is refused depends on them.
    for kib in (60_000..300_000).step_by(20_000) {
        let track =
            "exec \"$GENUMA\" track truth.vcf --reference genome.fa normal_1.fq.gz normal_2.fq.gz -t 2 -o y.tsv";
        let ended = shell(&folder, &format!("ulimit -v {kib}; {track}"));
        if ended.code == Some(1) {
            assert!(!error(&ended).contains("--memory"), "{kib} KiB: {}", ended.stderr);
        }
    }
}

#[test]
fn names_do_not_command_the_terminal() {
    let folder = scratch("names");
    for line in [
        "genuma machine show --from $'\\e[2Jx'",
        "genuma bench evaluate $'\\e]0;t\\a' $'\\e[2J'",
        "printf '@r\\e[2J 1\\nACGT\\n+\\nFFF\\n' > r.fq; genuma kmers count r.fq -o x.tsv",
        "printf '>c\\e[2J\\nACGT\\n>c\\e[2J\\nACGT\\n' > g.fa; genuma index g.fa",
    ] {
        let ended = shell(&folder, line);
        assert!(matches!(ended.code, Some(1 | 2)), "{line}: {}", ended.stderr);
        assert!(!ended.stderr.chars().any(|c| c.is_control() && c != '\n'), "{line}: {:?}", ended.stderr);
        if !line.contains("r.fq") {
            assert!(ended.stderr.contains("\\x1b"), "{line}: {}", ended.stderr);
        }
    }
    // On a terminal the parser's own text has styles, unless its quoted text could be mistaken for styles.
    if installed("script").is_some() {
        let ended = shell(
            &folder,
            "export GENUMA SHELL=/bin/bash; script -qec '\"$GENUMA\" topology $'\"'\\e[31m'\" /dev/null",
        );
        assert!(ended.stdout.contains("unexpected argument") && !ended.stdout.contains('\x1b'), "{:?}", ended.stdout);
    }
}
