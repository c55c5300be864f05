//! Records what the results of a call were made from: input files with sizes, sequencing platforms, and the identity of
//! the reference.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use genuma_reads::fasta::Reference;
use genuma_reads::md5_sum::md5_hex;
use genuma_reads::{Lane, LaneFiles};
use genuma_somatic::known_info::KnownInfoSource;
use genuma_somatic::known_variants::KnownVariants;
use genuma_somatic::panel_of_normals::PanelOfNormals;
use genuma_somatic::provenance::{InputFile, Provenance, ReferenceIdentity};
use genuma_somatic::sample_names::SampleNames;
use genuma_somatic::target_depth::TargetsOption;
use genuma_work::parallel::map_in_order;
use percent_encoding::{AsciiSet, CONTROLS, percent_encode};
use tracing::warn;

use crate::command_line;

/// Sequencing platforms that the SAM specification allows as `PL`.
pub(super) const SAM_PLATFORMS: [&str; 12] = [
    "CAPILLARY",
    "DNBSEQ",
    "ELEMENT",
    "HELICOS",
    "ILLUMINA",
    "IONTORRENT",
    "LS454",
    "ONT",
    "PACBIO",
    "SINGULAR",
    "SOLID",
    "ULTIMA",
];

/// MD5 sum of the sequence of chromosome 1, and name, of human genome assemblies. The sum identifies the assembly.
const ASSEMBLIES_BY_CHROMOSOME_1: [(&str, &str); 3] = [
    ("1b22b98cdeb4a9304cb5d48026a85128", "GRCh37"),
    ("6aef897c3d6ff0c78aff06ac189178dd", "GRCh38"),
    ("e469247288ceb332aee524caec92bb22", "T2T-CHM13v2.0"),
];

/// The inputs of a call that its provenance lists.
pub(super) struct ProvenanceInputs<'a> {
    pub(super) samples: &'a SampleNames,
    pub(super) lanes: &'a [Lane],
    pub(super) screen: Option<&'a Path>,
    pub(super) panel: Option<&'a PanelOfNormals>,
    pub(super) known: Option<&'a KnownVariants>,
    pub(super) known_info: &'a [KnownInfoSource],
    pub(super) targets: Option<&'a TargetsOption>,
    pub(super) gff: Option<&'a Path>,
    pub(super) signatures: Option<&'a Path>,
    /// The sequencing platform that the user gave (`--platform`).
    pub(super) platform: Option<&'a str>,
}

impl ProvenanceInputs<'_> {
    /// Returns the command line of this process without `--resume`, the inputs of the call, and the sequencing platform
    /// of each sample.
    ///
    /// # Errors
    /// Metadata or the header of a file cannot be read.
    pub(super) fn collect_provenance(&self) -> anyhow::Result<Provenance> {
        let mut inputs = Vec::new();
        for lane in self.lanes.iter().filter(|lane| !matches!(lane.files, LaneFiles::Reference(_))) {
            for path in lane.paths() {
                inputs.push(describe_input_file(&self.samples.names()[usize::from(lane.sample)], path)?);
            }
        }
        let others = [
            ("screen", self.screen),
            ("panel", self.panel.map(PanelOfNormals::table_path)),
            ("known", self.known.map(|known| known.path.as_path())),
            ("targets", self.targets.map(|targets| targets.path.as_path())),
            ("gff", self.gff),
            ("signatures", self.signatures),
        ];
        for (role, path) in others.into_iter().filter_map(|(role, path)| Some((role, path?))) {
            inputs.push(describe_input_file(role, path)?);
        }
        inputs.extend(describe_known_info_files(self.known_info)?);
        let platforms = (0..).take(self.samples.num_samples()).map(|sample| self.platform_of_sample(sample));
        Ok(Provenance {
            command_line: command_line::quoted_command_line_without_resume(),
            inputs,
            platforms: platforms.collect::<anyhow::Result<_>>()?,
        })
    }

    /// Returns the sequencing platform of a sample: that of `--platform`, or that of the read groups of all its files
    /// (@RG PL). `None` if a file is FASTQ, or if [`choose_platform`] finds none.
    fn platform_of_sample(&self, sample: u8) -> anyhow::Result<Option<String>> {
        if let Some(given) = self.platform {
            return Ok(Some(given.to_owned()));
        }
        let mut platforms = BTreeSet::new();
        for lane in self.lanes.iter().filter(|lane| lane.sample == sample) {
            let LaneFiles::Aligned(aligned) = &lane.files else { return Ok(None) };
            platforms.extend(aligned.read_header()?.platforms);
        }
        Ok(choose_platform(&platforms, &self.samples.name_in_messages(sample.into())))
    }
}

/// Describes the files of `--known-info`.
///
/// # Errors
/// Metadata of a file cannot be read.
pub(crate) fn describe_known_info_files(sources: &[KnownInfoSource]) -> anyhow::Result<Vec<InputFile>> {
    sources.iter().map(|source| describe_input_file("known-info", &source.path)).collect()
}

/// Returns the platform of a sample from the platforms of its read groups. `None` if there is none. `None`, with a
/// warning, if there are several or if SAM does not allow the name.
fn choose_platform(platforms: &BTreeSet<String>, sample: &str) -> Option<String> {
    let mut all = platforms.iter();
    match (all.next(), all.next()) {
        (Some(platform), None) if SAM_PLATFORMS.contains(&platform.as_str()) => Some(platform.clone()),
        (Some(platform), None) if platform.is_empty() => None,
        (None, _) => None,
        (Some(platform), None) => {
            warn!(
                "'{}' is not a platform that SAM allows (PL), so the read group of the {sample} in supporting.bam has \
                 no PL; give a valid one with --platform",
                platform.escape_debug()
            );
            None
        }
        (Some(_), Some(_)) => {
            let names: Vec<String> = platforms.iter().map(|name| format!("'{}'", name.escape_debug())).collect();
            warn!(
                "read groups of the {sample} have different platforms ({}), so its read group in supporting.bam has no \
                 PL; choose one with --platform",
                names.join(", ")
            );
            None
        }
    }
}

/// Returns role, absolute path and size of an input file. A pipe has no size.
///
/// # Errors
/// The metadata of the file cannot be read.
pub(crate) fn describe_input_file(role: &str, path: &Path) -> anyhow::Result<InputFile> {
    let absolute = match path.to_str() {
        Some("-") => PathBuf::from("-"),
        _ => std::path::absolute(path).with_context(|| path.display().to_string())?,
    };
    let is_standard_input = absolute == Path::new("-");
    let bytes = if is_standard_input {
        None
    } else {
        let meta = fs::metadata(path).with_context(|| format!("{}: cannot read", path.display()))?;
        meta.is_file().then_some(meta.len())
    };
    Ok(InputFile { role: role.to_owned(), path: absolute.display().to_string(), bytes })
}

/// Returns URL, assembly and MD5 sums of the sequences that calls are placed on. `path`: the file of the reference, if
/// there is one. Without it there is no URL, and the assembly is known only from the MD5 sum of chromosome 1.
///
/// # Errors
/// The path cannot be made absolute, or the sequence dictionary beside the reference cannot be read.
pub(super) fn identify_reference_sequences(
    genome: &Reference,
    path: Option<&Path>,
    threads: usize,
) -> anyhow::Result<ReferenceIdentity> {
    let sum = |(): &mut (), c: usize| md5_hex(&genome.contigs[c].seq);
    let sequence_md5 = map_in_order(genome.contigs.len(), threads, || (), sum);
    let mut url = None;
    let mut assembly = None;
    if let Some(path) = path {
        let absolute = std::path::absolute(path).with_context(|| path.display().to_string())?;
        url = Some(file_url(&absolute));
        assembly = read_assembly_of_dictionary(path)?;
    }
    let known = || {
        let (_, name) = ASSEMBLIES_BY_CHROMOSOME_1.iter().find(|(md5, _)| sequence_md5.iter().any(|own| own == md5))?;
        Some((*name).to_owned())
    };
    let lines: String = (genome.contigs.iter().zip(&sequence_md5))
        .map(|(contig, md5)| format!("{}\t{}\t{md5}\n", contig.name, contig.seq.len()))
        .collect();
    Ok(ReferenceIdentity { url, assembly: assembly.or_else(known), md5: md5_hex(lines.as_bytes()), sequence_md5 })
}

/// Characters of a path that a URL cannot have as they are, beside control characters and bytes that are not ASCII.
const ENCODED_IN_URL: &AsciiSet =
    &CONTROLS.add(b' ').add(b'"').add(b'#').add(b'%').add(b'<').add(b'>').add(b'?').add(b'`').add(b'{').add(b'}');

/// The URL of a file, from its absolute path.
fn file_url(absolute: &Path) -> String {
    format!("file://{}", percent_encode(absolute.as_os_str().as_bytes(), ENCODED_IN_URL))
}

/// Returns the assembly (`AS`) in the sequence dictionary that Picard CreateSequenceDictionary writes beside a
/// reference: `ref.dict` for `ref.fa` or `ref.fa.gz`. `None` without a dictionary, or if it has no assembly or several.
///
/// # Errors
/// The dictionary exists and cannot be read.
fn read_assembly_of_dictionary(reference: &Path) -> anyhow::Result<Option<String>> {
    let plain = match reference.extension() {
        Some(extension) if extension == "gz" || extension == "bgz" => reference.with_extension(""),
        _ => reference.to_owned(),
    };
    let path = plain.with_extension("dict");
    let text = match fs::read(&path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        text => text.with_context(|| path.display().to_string())?,
    };
    let text = String::from_utf8_lossy(&text);
    let names: BTreeSet<&str> = (text.lines().filter(|line| line.starts_with("@SQ\t")))
        .filter_map(|line| line.split('\t').find_map(|field| field.strip_prefix("AS:")))
        .collect();
    let mut names = names.into_iter();
    Ok(names.next().filter(|_| names.next().is_none()).map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use genuma_reads::fasta::Contig;

    use super::*;

    #[test]
    fn urls_of_files_are_encoded() {
        let url = |path: &str| file_url(Path::new(path));
        assert_eq!(url("/data/hg38.fa"), "file:///data/hg38.fa");
        assert_eq!(url("/my data/50%/é#1?.fa"), "file:///my%20data/50%25/%C3%A9%231%3F.fa");
    }

    #[test]
    fn platforms_must_agree_and_be_those_of_sam() {
        let choose = |names: &[&str]| choose_platform(&names.iter().map(|name| (*name).to_owned()).collect(), "tumour");
        assert_eq!(choose(&["ILLUMINA"]).as_deref(), Some("ILLUMINA"));
        for names in [&[][..], &[""], &["HISEQ"], &["ILLUMINA", "ONT"], &["", "ILLUMINA"]] {
            assert_eq!(choose(names), None, "{names:?}");
        }
    }

    #[test]
    fn reference_is_identified_by_sequence_and_dictionary() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("my genome.fa.gz");
        let contig = |name: &str, seq: &[u8]| Contig { name: name.to_owned(), seq: seq.to_vec() };
        let genome = Reference::from_contigs(vec![contig("chr1", b"ACGTACGTAC"), contig("chr2", b"ACGTA")]);
        let identify = || identify_reference_sequences(&genome, Some(&path), 2).unwrap();
        let identity = identify();
        // echo -n ACGTACGTAC | md5sum
        assert_eq!(identity.sequence_md5[0], "45aff2fecf7615d56bc0567dffab9fa8");
        let lines = format!("chr1\t10\t{}\nchr2\t5\t{}\n", identity.sequence_md5[0], identity.sequence_md5[1]);
        assert_eq!(identity.md5, md5_hex(lines.as_bytes()));
        let url = identity.url.as_deref().unwrap();
        assert!(url.starts_with("file:///") && url.ends_with("/my%20genome.fa.gz"), "{url}");
        assert_eq!(identity.assembly, None);
        let dictionary = folder.path().join("my genome.dict");
        fs::write(&dictionary, "@HD\tVN:1.6\n@SQ\tSN:chr1\tLN:10\tAS:GRCh38\n@SQ\tSN:chr2\tLN:5\tAS:GRCh38\n").unwrap();
        assert_eq!(identify().assembly.as_deref(), Some("GRCh38"));
        fs::write(&dictionary, "@SQ\tSN:chr1\tAS:GRCh38\n@SQ\tSN:chr2\tAS:GRCh37\n").unwrap();
        assert_eq!(identify().assembly, None);
        assert_eq!(identify_reference_sequences(&genome, None, 1).unwrap().url, None);
    }
}
