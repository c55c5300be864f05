//! Command lines of variant callers. The command of an instance is the user's, with placeholders for its interval and its
//! output. genuma adds the placeholders to the commands of callers that it knows.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use crate::invocation::{Error, check_program_installed};

const INTERVAL: &str = "{interval}";
const BED: &str = "{bed}";
const VCF: &str = "{vcf}";
const THREADS: &str = "{threads}";

/// A caller that genuma knows.
struct CallerPreset {
    name: &'static str,
    /// Start of the file name of the program.
    program: &'static str,
    /// Subcommand of the program; `None` without subcommands.
    verb: Option<&'static str>,
    /// Words that name the BED file of the interval.
    interval_words: [&'static str; 2],
    /// Options that name regions.
    region_options: &'static [&'static str],
    /// Options that name the output.
    output_options: [&'static str; 2],
    /// Whether the caller cannot write to standard output.
    needs_output_file: bool,
    /// Options for files that each instance would write.
    file_options: &'static [&'static str],
    /// Options that request reference blocks (gVCF).
    block_options: &'static [&'static str],
}

const GATK_REGION_OPTIONS: &[&str] = &["-L", "--intervals"];

const PRESETS: [CallerPreset; 4] = [
    CallerPreset {
        name: "bcftools mpileup",
        program: "bcftools",
        verb: Some("mpileup"),
        interval_words: ["-R", BED],
        region_options: &["-r", "--regions", "-R", "--regions-file", "-t", "--targets", "-T", "--targets-file"],
        output_options: ["-o", "--output"],
        needs_output_file: false,
        file_options: &[],
        block_options: &["-g", "--gvcf"],
    },
    CallerPreset {
        name: "freebayes",
        program: "freebayes",
        verb: None,
        interval_words: ["-t", BED],
        region_options: &["-r", "--region", "-t", "--targets"],
        output_options: ["-v", "--vcf"],
        needs_output_file: false,
        file_options: &["--trace", "--failed-alleles"],
        block_options: &["--gvcf"],
    },
    CallerPreset {
        name: "HaplotypeCaller",
        program: "gatk",
        verb: Some("HaplotypeCaller"),
        interval_words: ["-L", BED],
        region_options: GATK_REGION_OPTIONS,
        output_options: ["-O", "--output"],
        needs_output_file: true,
        file_options: &["-bamout", "--bam-output", "--activity-profile-out", "--assembly-region-out"],
        block_options: &["-ERC", "--emit-ref-confidence"],
    },
    CallerPreset {
        name: "Mutect2",
        program: "gatk",
        verb: Some("Mutect2"),
        interval_words: ["-L", BED],
        region_options: GATK_REGION_OPTIONS,
        output_options: ["-O", "--output"],
        needs_output_file: true,
        file_options: &["-bamout", "--bam-output", "--f1r2-tar-gz", "--activity-profile-out", "--assembly-region-out"],
        block_options: &["-ERC", "--emit-ref-confidence"],
    },
];

/// Command line of a caller with placeholders, from which the commands of the instances are made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallerCommand {
    /// Name of the caller, such as `bcftools mpileup`; the file name of an unknown program.
    pub name: String,
    words: Vec<OsString>,
    /// Output file that the command names.
    pub output: Option<PathBuf>,
    /// BAM and CRAM files that the command names.
    pub reads: Vec<PathBuf>,
    /// FASTA file that the command names.
    pub reference: Option<PathBuf>,
    /// Whether the command writes reference blocks (gVCF), so that intervals must not overlap.
    pub has_reference_blocks: bool,
}

/// Reason why a command cannot be run by interval.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{caller}: {why}")]
pub struct CallerCommandError {
    caller: String,
    why: String,
}

/// What the placeholders of one instance stand for.
#[derive(Debug, Clone, Copy)]
pub struct PlaceholderValues<'a> {
    /// The interval as `chr:start-end`, 1-based, with padding.
    pub interval: &'a str,
    /// BED file of the interval with padding.
    pub bed: &'a Path,
    /// Output file of the instance.
    pub vcf: &'a Path,
    /// Number of threads.
    pub threads: usize,
}

impl CallerCommand {
    /// Parses a command line, the program first.
    ///
    /// # Errors
    /// The command names regions or files that each instance would write, or genuma does not know the program and there
    /// is no placeholder for the interval.
    pub fn parse(words: &[OsString]) -> Result<CallerCommand, CallerCommandError> {
        let program = words.first().map(OsString::as_os_str).unwrap_or_default();
        let mut command = CallerCommand {
            name: Path::new(program).file_name().unwrap_or_default().to_string_lossy().into_owned(),
            words: words.to_vec(),
            output: None,
            reads: files_in_words(words, &["bam", "cram"]),
            reference: files_in_words(words, &["fa", "fasta", "fna", "fa.gz", "fasta.gz", "fna.gz"]).into_iter().next(),
            has_reference_blocks: false,
        };
        match (command.has_placeholder(INTERVAL), command.has_placeholder(BED)) {
            (true, true) => return Err(command.error("{interval} and {bed} are both given; use one of them")),
            (true, false) | (false, true) => return Ok(command),
            (false, false) => {}
        }
        match find_preset(words) {
            Some((preset, verb_index)) => {
                command.apply_preset(preset, verb_index)?;
                Ok(command)
            }
            None => Err(command.unknown_program_error()),
        }
    }

    fn error(&self, why: impl Into<String>) -> CallerCommandError {
        CallerCommandError { caller: self.name.clone(), why: why.into() }
    }

    fn unknown_program_error(&self) -> CallerCommandError {
        if self.name.starts_with("bcftools") && self.words.get(1).is_some_and(|verb| verb == "call") {
            return self.error(
                "call reads what mpileup writes: run both, as bash -o pipefail -c 'bcftools mpileup -R {bed} -f ref.fa in.bam | \
                 bcftools call -mv'",
            );
        }
        self.error(
            "genuma does not know how this program is given an interval: write {interval} (chr:start-end) or {bed} (a BED file) \
             where it belongs in the command, and {vcf} for the output if the program does not write VCF to standard output",
        )
    }

    /// Adds the placeholders of a known caller.
    fn apply_preset(&mut self, preset: &CallerPreset, verb_index: usize) -> Result<(), CallerCommandError> {
        self.name = preset.name.to_owned();
        let mut words = self.words[..=verb_index].to_vec();
        words.extend(preset.interval_words.map(OsString::from));
        let mut rest = self.words[verb_index + 1..].iter();
        let mut has_output = false;
        while let Some(word) = rest.next() {
            let text = word.to_string_lossy();
            if let Some(option) = preset.region_options.iter().find(|option| is_option(&text, option)) {
                return Err(self.error(format!(
                    "{option}: genuma gives each instance its regions: leave it out, and name regions with --intervals BED"
                )));
            }
            if let Some(option) = preset.file_options.iter().find(|option| is_option(&text, option)) {
                return Err(self.error(format!("{option}: each instance would write the file: leave it out")));
            }
            self.check_output_type(preset, &text, rest.as_slice().first())?;
            let is_none = text.ends_with("NONE") || rest.as_slice().first().is_some_and(|next| next == "NONE");
            self.has_reference_blocks |= preset.block_options.iter().any(|option| is_option(&text, option)) && !is_none;
            let Some(option) = preset.output_options.iter().find(|option| is_option(&text, option)) else {
                words.push(word.clone());
                continue;
            };
            let attached = text[option.len()..].trim_start_matches('=');
            let value = if attached.is_empty() { rest.next().cloned() } else { Some(attached.into()) };
            let value = value.ok_or_else(|| self.error(format!("{option}: the file is missing")))?;
            self.output = Some(value.into());
            if preset.needs_output_file {
                words.extend([OsString::from(option), OsString::from(VCF)]);
                has_output = true;
            }
        }
        if preset.needs_output_file && !has_output {
            words.extend([OsString::from(preset.output_options[0]), OsString::from(VCF)]);
        }
        self.words = words;
        Ok(())
    }

    /// Checks that bcftools writes VCF text.
    fn check_output_type(
        &self,
        preset: &CallerPreset,
        word: &str,
        next: Option<&OsString>,
    ) -> Result<(), CallerCommandError> {
        if preset.program != "bcftools" || !(is_option(word, "-O") || is_option(word, "--output-type")) {
            return Ok(());
        }
        let attached = word.trim_start_matches("--output-type").trim_start_matches("-O").trim_start_matches('=');
        let value = if attached.is_empty() { next.map(|next| next.to_string_lossy()) } else { Some(attached.into()) };
        match value.as_deref() {
            Some("v") => Ok(()),
            _ => Err(self.error(format!(
                "{word}: instances must write VCF text: leave it out; genuma writes BGZF if the name after -o ends in .vcf.gz"
            ))),
        }
    }

    /// Whether one instance may get several regions.
    pub fn accepts_several_regions(&self) -> bool {
        !self.has_placeholder(INTERVAL)
    }

    /// Whether an instance writes its records to a file, and not to standard output.
    pub fn writes_file(&self) -> bool {
        self.has_placeholder(VCF)
    }

    /// Checks that the program exists.
    ///
    /// # Errors
    /// The program is missing.
    pub fn check_installed(&self) -> Result<(), Error> {
        check_program_installed(self.words.first().map(OsString::as_os_str).unwrap_or_default())
    }

    fn has_placeholder(&self, placeholder: &str) -> bool {
        self.words.iter().any(|word| word.to_string_lossy().contains(placeholder))
    }

    /// Returns the command line of an instance.
    pub fn build_instance_command(&self, values: &PlaceholderValues) -> Vec<OsString> {
        let threads = values.threads.to_string();
        let replaced = [
            (INTERVAL, values.interval.as_bytes()),
            (BED, values.bed.as_os_str().as_bytes()),
            (VCF, values.vcf.as_os_str().as_bytes()),
            (THREADS, threads.as_bytes()),
        ];
        self.words.iter().map(|word| replace_placeholders(word, &replaced)).collect()
    }
}

/// Finds the preset of a command line, and the index of the word that ends the name of the program: the subcommand, or the
/// program itself.
fn find_preset(words: &[OsString]) -> Option<(&'static CallerPreset, usize)> {
    let program = Path::new(words.first()?).file_name()?.to_string_lossy();
    // GATK may be started by Java itself.
    let is_java = program == "java" && words.iter().any(|word| word.to_string_lossy().contains("gatk"));
    let program = if is_java { "gatk".into() } else { program };
    let verb_index = |verb: &str| words.iter().position(|word| word == verb).filter(|&n| verb != "mpileup" || n == 1);
    PRESETS.iter().filter(|preset| program.starts_with(preset.program)).find_map(|preset| match preset.verb {
        None => Some((preset, 0)),
        Some(verb) => Some((preset, verb_index(verb)?)),
    })
}

/// Whether a word is this option: alone, or with its value attached (`-rchr1`, `--regions=chr1`).
fn is_option(word: &str, option: &str) -> bool {
    let Some(rest) = word.strip_prefix(option) else { return false };
    // Options of GATK are words, so one with a single dash has no attached value.
    let has_short_value = option.len() == 2 && !word.starts_with("--") && option != "-L" && option != "-O";
    rest.is_empty() || rest.starts_with('=') || has_short_value || (option == "-O" && rest.len() == 1)
}

/// Files with one of these extensions that exist and that the words of a command name, also within a shell command.
fn files_in_words(words: &[OsString], extensions: &[&str]) -> Vec<PathBuf> {
    let is_separator = |byte: &u8| byte.is_ascii_whitespace() || b"=,'\"|;<>()".contains(byte);
    let parts = words.iter().flat_map(|word| {
        let whole = [word.as_bytes()].into_iter();
        whole.chain(word.as_bytes().split(move |byte| is_separator(byte)).filter(|part| part.len() < word.len()))
    });
    let has_extension = |part: &&[u8]| {
        let text = String::from_utf8_lossy(part).to_ascii_lowercase();
        extensions.iter().any(|end| text.strip_suffix(end).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.')))
    };
    let mut files: Vec<PathBuf> = parts.filter(has_extension).map(|part| OsStr::from_bytes(part).into()).collect();
    // I/O error ignored: the program reports files that cannot be read.
    files.retain(|file: &PathBuf| file.is_file());
    files.dedup();
    files
}

fn replace_placeholders(word: &OsStr, replaced: &[(&str, &[u8])]) -> OsString {
    let (mut text, mut rest) = (Vec::new(), word.as_bytes());
    while let Some((&first, behind)) = rest.split_first() {
        match replaced.iter().find(|(placeholder, _)| rest.starts_with(placeholder.as_bytes())) {
            Some((placeholder, value)) => {
                text.extend_from_slice(value);
                rest = &rest[placeholder.len()..];
            }
            None => {
                text.push(first);
                rest = behind;
            }
        }
    }
    OsString::from_vec(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<CallerCommand, CallerCommandError> {
        CallerCommand::parse(&words(line))
    }

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[track_caller]
    fn instance(line: &str) -> String {
        let (bed, vcf) = (Path::new("/t/1.bed"), Path::new("/t/1.vcf"));
        let values = PlaceholderValues { interval: "c:1-9", bed, vcf, threads: 3 };
        let words = parse(line).expect("a command").build_instance_command(&values);
        words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn known_callers_get_their_interval() {
        for (given, expected) in [
            ("bcftools mpileup -f r.fa x.bam", "bcftools mpileup -R /t/1.bed -f r.fa x.bam"),
            ("/opt/bcftools mpileup -Ov -o x.vcf -f r.fa x.bam", "/opt/bcftools mpileup -R /t/1.bed -Ov -f r.fa x.bam"),
            ("freebayes -f r.fa -v x.vcf x.bam", "freebayes -t /t/1.bed -f r.fa x.bam"),
            (
                "gatk --java-options -Xmx4g HaplotypeCaller -R r.fa -I x.bam -O x.vcf.gz",
                "gatk --java-options -Xmx4g HaplotypeCaller -L /t/1.bed -R r.fa -I x.bam -O /t/1.vcf",
            ),
            (
                "gatk Mutect2 -R r.fa -I t.bam --output=m.vcf",
                "gatk Mutect2 -L /t/1.bed -R r.fa -I t.bam --output /t/1.vcf",
            ),
            (
                "java -jar gatk.jar Mutect2 -R r.fa -I t.bam --native-pair-hmm-threads {threads}",
                "java -jar gatk.jar Mutect2 -L /t/1.bed -R r.fa -I t.bam --native-pair-hmm-threads 3 -O /t/1.vcf",
            ),
        ] {
            assert_eq!(instance(given), expected);
        }
        let outputs = ["bcftools mpileup -ox.vcf r", "freebayes --vcf=x.vcf r", "gatk Mutect2 -O x.vcf"];
        assert!(
            outputs.iter().all(|line| parse(line).expect("a command").output.as_deref() == Some(Path::new("x.vcf")))
        );
    }

    #[test]
    fn placeholders_stand_for_the_interval() {
        assert_eq!(
            instance("caller --at={interval} -t {threads} -o {vcf} {}"),
            "caller --at=c:1-9 -t 3 -o /t/1.vcf {}"
        );
        assert_eq!(instance("gatk HaplotypeCaller -L {bed} -O {vcf}"), "gatk HaplotypeCaller -L /t/1.bed -O /t/1.vcf");
        let pipeline = [OsString::from("bash"), "-c".into(), "a {bed} | b".into()];
        let command = CallerCommand::parse(&pipeline).expect("a command");
        assert!(command.accepts_several_regions() && !command.writes_file());
        assert!(!parse("caller {interval}").expect("a command").accepts_several_regions());
    }

    #[test]
    fn commands_that_cannot_be_divided_are_refused() {
        for (line, part) in [
            ("bcftools mpileup -r chr1 x.bam", "-r: genuma gives each instance its regions: leave it out"),
            ("bcftools mpileup -rchr1:1-5 x.bam", "--intervals BED"),
            ("bcftools mpileup --regions=chr1 x.bam", "--regions: "),
            ("freebayes --region chr1 x.bam", "--region: "),
            ("gatk HaplotypeCaller -L chr1 -I x.bam", "-L: "),
            ("gatk Mutect2 -bamout x.bam", "each instance would write the file"),
            ("bcftools mpileup -Ob x.bam", "instances must write VCF text"),
            ("bcftools mpileup -O u x.bam", "instances must write VCF text"),
            ("bcftools call -mv", "bash -o pipefail -c"),
            ("caller x.bam", "write {interval} (chr:start-end) or {bed}"),
            ("caller {bed} {interval}", "use one of them"),
            ("freebayes -v", "the file is missing"),
        ] {
            let error = parse(line).expect_err(line).to_string();
            assert!(error.contains(part), "{line}: {error}");
        }
    }

    #[test]
    fn reference_blocks_are_detected() {
        let blocks = |line: &str| parse(line).expect("a command").has_reference_blocks;
        assert!(
            blocks("gatk HaplotypeCaller -ERC GVCF")
                && blocks("gatk HaplotypeCaller --emit-ref-confidence=BP_RESOLUTION")
        );
        assert!(blocks("bcftools mpileup -g 5 x.bam") && blocks("freebayes --gvcf x.bam"));
        assert!(!blocks("gatk HaplotypeCaller -ERC NONE") && !blocks("gatk HaplotypeCaller -I x.bam"));
    }

    #[test]
    fn files_are_found_in_shell_commands() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = |name: &str| folder.path().join(name);
        for name in ["a.bam", "b.cram", "r.fa"] {
            std::fs::write(file(name), "").expect("a file");
        }
        let pipeline = format!(
            "mpileup -r {{interval}} -f {} {} {}|call; {}",
            file("r.fa").display(),
            file("a.bam").display(),
            file("b.cram").display(),
            file("no.bam").display()
        );
        let command = CallerCommand::parse(&[OsString::from("sh"), "-c".into(), pipeline.into()]).expect("a command");
        assert_eq!(command.reads, [file("a.bam"), file("b.cram")]);
        assert_eq!(command.reference, Some(file("r.fa")));
    }
}
