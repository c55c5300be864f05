//! Reads GFF3 files of Ensembl, GENCODE and RefSeq, plain or gzipped.
//!
//! The parents of features of type `exon` and `CDS` are the transcripts, and their topmost ancestors are the genes. A
//! gene whose parts have no transcript (mitochondrial genes of RefSeq) is its own transcript.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;
use genuma_reads::fasta::Reference;
use noodles_gff::feature::record::Phase;
use noodles_gff::{Line, Record};

use crate::gene_model::{CodingRegion, Gene, GenesAndTranscripts, Strand, Transcript, TranscriptPreference};

/// Why reading a GFF3 file failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be opened or read.
    #[error("{path}: cannot read: {source}", path = path.display())]
    Read {
        /// Path of the GFF3 file.
        path: PathBuf,
        /// Error of the operating system or of the decompression.
        source: io::Error,
    },
    /// A line is invalid, or does not fit the reference.
    #[error("{path}: line {line}: {fault}", path = path.display())]
    Line {
        /// Path of the GFF3 file.
        path: PathBuf,
        /// Number of the line, from 1.
        line: u64,
        /// What is wrong with the line.
        fault: GffLineError,
    },
    /// No feature of the file is on a contig of the reference.
    #[error("{path}: no contig of the file is in the reference (the file has {gff}, the reference {reference}): use the GFF3 file of the same assembly, with the same contig names", path = path.display())]
    NoSharedContig {
        /// Path of the GFF3 file.
        path: PathBuf,
        /// Name of the first contig of the GFF3 file.
        gff: String,
        /// Name of the first contig of the reference.
        reference: String,
    },
    /// The file has no transcript on the reference.
    #[error("{path}: no transcript with an exon or a CDS: give a GFF3 file with genes, such as those of Ensembl, GENCODE or RefSeq", path = path.display())]
    NoTranscripts {
        /// Path of the GFF3 file.
        path: PathBuf,
    },
}

/// What is wrong with a line of a GFF3 file.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum GffLineError {
    /// The columns cannot be parsed. Contains the message of the parser.
    #[error("no GFF3 feature: {0}: a feature has 9 columns separated by tabs")]
    Columns(String),
    /// The line has GTF attributes. GTF files are not supported.
    #[error("this is GTF: give the GFF3 file of the same release")]
    Gtf,
    /// A feature ends before it starts.
    #[error("end {end} is before start {start}")]
    EmptyFeature {
        /// First base of the feature (GFF column 4, 1-based).
        start: usize,
        /// Last base of the feature (GFF column 5, 1-based, inclusive).
        end: usize,
    },
    /// A feature ends beyond its contig.
    #[error(
        "end {end} is beyond the {contig_bases} bases of {contig} in the reference: use the GFF3 file of the same assembly"
    )]
    BeyondContig {
        /// Last base of the feature (GFF column 5, 1-based, inclusive).
        end: usize,
        /// Name of the contig as in GFF column 1.
        contig: String,
        /// Length of the contig in the reference.
        contig_bases: usize,
    },
    /// A CDS has no phase in column 8.
    #[error("a CDS needs a phase (column 8): 0, 1 or 2")]
    MissingPhase,
    /// An exon or CDS has no `Parent` attribute. Contains the type of the feature.
    #[error("the {0} has no Parent")]
    MissingParent(String),
}

/// Number of features of a GFF3 file, and numbers of those that were skipped.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GffFeatureCounts {
    /// Number of features in the file, with the skipped ones.
    pub features: u64,
    /// Number of skipped features on each contig that the reference lacks.
    pub unknown_contigs: BTreeMap<String, u64>,
    /// Number of transcripts skipped because their strand is unknown.
    pub transcripts_without_strand: u64,
    /// Number of exons and CDS skipped because their parent is not in the file.
    pub features_without_parent: u64,
    /// Number of transcripts for which no protein is predicted because parts of their CDS overlap.
    pub overlapping_coding_transcripts: u64,
}

impl GffFeatureCounts {
    /// Number of features on contigs that the reference lacks.
    pub fn num_features_on_unknown_contigs(&self) -> u64 {
        self.unknown_contigs.values().sum()
    }
}

/// Reads the genes of a GFF3 file and checks that they fit the reference.
///
/// # Errors
/// The file cannot be read, a line is invalid, a feature ends beyond its contig, or the file has no feature or no
/// transcript on the contigs of the reference.
pub fn read_genes(path: &Path, genome: &Reference) -> Result<(GenesAndTranscripts, GffFeatureCounts), Error> {
    let read_error = |source| Error::Read { path: path.into(), source };
    let file = File::open(path).map_err(read_error)?;
    let mut file = BufReader::with_capacity(1 << 18, file);
    let is_gzip = file.fill_buf().map_err(read_error)?.starts_with(&[0x1f, 0x8b]);
    let input: Box<dyn Read> = if is_gzip { Box::new(MultiGzDecoder::new(file)) } else { Box::new(file) };
    let mut reader = noodles_gff::io::Reader::new(BufReader::with_capacity(1 << 18, input));
    let mut features = FeatureCollector::new(genome);
    let (mut line, mut number) = (Line::default(), 0);
    while reader.read_line(&mut line).map_err(read_error)? > 0 {
        number += 1;
        if line.as_directive().is_some_and(|directive| directive.key() == "FASTA".as_bytes()) {
            break;
        }
        let Some(record) = line.as_record() else { continue };
        let fault = |e: io::Error| GffLineError::Columns(e.to_string());
        let added = record.map_err(fault).and_then(|record| features.add_record(&record));
        added.map_err(|fault| Error::Line { path: path.into(), line: number, fault })?;
    }
    features.check_contigs(path)?;
    let (model, counts) = features.build_model();
    if model.transcripts.is_empty() {
        return Err(Error::NoTranscripts { path: path.into() });
    }
    Ok((model, counts))
}

/// A feature that may be a gene or a transcript, with the number of its parent.
#[derive(Debug, Clone)]
struct Node {
    parent: Option<u32>,
    contig: usize,
    strand: Option<Strand>,
    attributes: NodeAttributes,
}

/// Attributes that are read of genes and transcripts.
#[derive(Debug, Clone, Default)]
struct NodeAttributes {
    name: Option<String>,
    biotype: Option<String>,
    transcript_id: Option<String>,
    version: Option<String>,
    tag: Option<TranscriptPreference>,
}

/// An exon or CDS feature: a part of a transcript.
#[derive(Debug, Clone)]
struct TranscriptPart {
    /// Number of the ID of the transcript that the feature belongs to.
    parent: u32,
    range: Range<usize>,
    /// Phase of a CDS; `None` for an exon.
    phase: Option<usize>,
}

struct FeatureCollector<'a> {
    genome: &'a Reference,
    ids: HashMap<String, u32>,
    /// All feature IDs read so far; the index is the number of the ID.
    names: Vec<String>,
    /// For each feature ID, its feature; `None` until the feature has been read.
    nodes: Vec<Option<Node>>,
    parts: Vec<TranscriptPart>,
    first_contig: Option<String>,
    has_shared_contig: bool,
    counts: GffFeatureCounts,
}

impl<'a> FeatureCollector<'a> {
    fn new(genome: &'a Reference) -> FeatureCollector<'a> {
        FeatureCollector {
            genome,
            ids: HashMap::new(),
            names: Vec::new(),
            nodes: Vec::new(),
            parts: Vec::new(),
            first_contig: None,
            has_shared_contig: false,
            counts: GffFeatureCounts::default(),
        }
    }

    fn id_number(&mut self, id: &str) -> u32 {
        if let Some(&number) = self.ids.get(id) {
            return number;
        }
        let number = self.names.len() as u32;
        self.ids.insert(id.to_owned(), number);
        self.names.push(id.to_owned());
        self.nodes.push(None);
        number
    }

    fn add_record(&mut self, record: &Record<'_>) -> Result<(), GffLineError> {
        self.counts.features += 1;
        let contig_name = record.reference_sequence_name().to_string();
        self.first_contig.get_or_insert_with(|| contig_name.clone());
        let Some(contig) = self.genome.contig_index(&contig_name) else {
            *self.counts.unknown_contigs.entry(contig_name).or_default() += 1;
            return Ok(());
        };
        self.has_shared_contig = true;
        let feature_type = record.ty();
        let type_bytes: &[u8] = &feature_type;
        let phase = match type_bytes {
            b"exon" => None,
            b"CDS" => Some(match record.phase() {
                Some(Ok(Phase::Zero)) => 0,
                Some(Ok(Phase::One)) => 1,
                Some(Ok(Phase::Two)) => 2,
                _ => return Err(GffLineError::MissingPhase),
            }),
            _ => return self.add_node(record, contig),
        };
        let range = self.feature_range(record, contig)?;
        let mut parents = Vec::new();
        for_each_attribute(record, |tag, value| {
            if tag == b"Parent" {
                parents.extend(value.split(',').map(str::to_owned));
            }
        })?;
        if parents.is_empty() {
            return Err(GffLineError::MissingParent(feature_type.to_string()));
        }
        for parent in parents {
            let parent = self.id_number(&parent);
            self.parts.push(TranscriptPart { parent, range: range.clone(), phase });
        }
        Ok(())
    }

    fn feature_range(&self, record: &Record<'_>, contig: usize) -> Result<Range<usize>, GffLineError> {
        let fault = |e: io::Error| GffLineError::Columns(e.to_string());
        let (start, end) = (record.start().map_err(fault)?.get(), record.end().map_err(fault)?.get());
        if end < start {
            return Err(GffLineError::EmptyFeature { start, end });
        }
        let contig = &self.genome.contigs[contig];
        if end > contig.seq.len() {
            return Err(GffLineError::BeyondContig {
                end,
                contig: contig.name.clone(),
                contig_bases: contig.seq.len(),
            });
        }
        Ok(start - 1..end)
    }

    /// Adds a feature that may be a gene or a transcript.
    fn add_node(&mut self, record: &Record<'_>, contig: usize) -> Result<(), GffLineError> {
        let (mut id, mut parent, mut attributes) = (None, None, NodeAttributes::default());
        for_each_attribute(record, |tag, value| match tag {
            b"ID" => id = Some(value.to_owned()),
            b"Parent" => parent = Some(value.to_owned()),
            b"Name" | b"gene_name" => attributes.name = Some(value.to_owned()),
            b"biotype" | b"gene_biotype" | b"transcript_biotype" => attributes.biotype = Some(value.to_owned()),
            b"gene_type" if attributes.biotype.is_none() => attributes.biotype = Some(value.to_owned()),
            b"transcript_type" => attributes.biotype = Some(value.to_owned()),
            b"transcript_id" => attributes.transcript_id = Some(value.to_owned()),
            b"version" => attributes.version = Some(value.to_owned()),
            b"tag" => attributes.tag = value.split(',').filter_map(parse_tag).min(),
            _ => {}
        })?;
        let Some(id) = id else { return Ok(()) };
        // A feature beyond its contig means another assembly.
        self.feature_range(record, contig)?;
        let strand = match record.strand() {
            Ok(noodles_gff::feature::record::Strand::Forward) => Some(Strand::Forward),
            Ok(noodles_gff::feature::record::Strand::Reverse) => Some(Strand::Reverse),
            Ok(_) => None,
            Err(e) => return Err(GffLineError::Columns(e.to_string())),
        };
        let parent = parent.map(|parent| self.id_number(parent.split(',').next().unwrap_or(&parent)));
        let number = self.id_number(&id) as usize;
        // Discontinuous features have several lines with one ID; the first counts.
        self.nodes[number].get_or_insert(Node { parent, contig, strand, attributes });
        Ok(())
    }

    fn check_contigs(&self, path: &Path) -> Result<(), Error> {
        match (&self.first_contig, self.genome.contigs.first()) {
            (Some(gff), Some(first)) if !self.has_shared_contig => {
                Err(Error::NoSharedContig { path: path.into(), gff: gff.clone(), reference: first.name.clone() })
            }
            _ => Ok(()),
        }
    }

    /// The topmost ancestor of the feature with this number. Follows at most [`MAX_ANCESTORS`] parents, so that it ends
    /// even if they form a cycle.
    fn topmost_ancestor(&self, number: u32) -> u32 {
        let mut root = number;
        for _ in 0..MAX_ANCESTORS {
            match self.nodes[root as usize].as_ref().and_then(|node| node.parent) {
                Some(parent) if self.nodes[parent as usize].is_some() => root = parent,
                _ => break,
            }
        }
        root
    }

    fn build_model(mut self) -> (GenesAndTranscripts, GffFeatureCounts) {
        let mut parts = std::mem::take(&mut self.parts);
        parts.sort_by_key(|part| (part.parent, part.range.start, part.range.end));
        let (mut genes, mut transcripts): (Vec<Gene>, Vec<Transcript>) = Default::default();
        let mut gene_numbers: HashMap<u32, usize> = HashMap::new();
        for parts in parts.chunk_by(|a, b| a.parent == b.parent) {
            let number = parts[0].parent;
            let Some(node) = &self.nodes[number as usize] else {
                self.counts.features_without_parent += parts.len() as u64;
                continue;
            };
            let Some(strand) = node.strand else {
                self.counts.transcripts_without_strand += 1;
                continue;
            };
            let root = self.topmost_ancestor(number);
            let gene = *gene_numbers.entry(root).or_insert_with(|| {
                genes.push(self.build_gene(root));
                genes.len() - 1
            });
            let transcript = self.build_transcript(number, node, strand, gene, parts);
            let is_irregular = transcript.coding.as_ref().is_some_and(|coding| !coding.has_disjoint_parts);
            self.counts.overlapping_coding_transcripts += u64::from(is_irregular);
            transcripts.push(transcript);
        }
        (GenesAndTranscripts::from_genes_and_transcripts(genes, transcripts, self.genome.contigs.len()), self.counts)
    }

    fn build_gene(&self, number: u32) -> Gene {
        let id = strip_prefix(&self.names[number as usize]).to_owned();
        let name = self.nodes[number as usize].as_ref().and_then(|node| node.attributes.name.clone());
        Gene { name: name.unwrap_or_else(|| id.clone()), id }
    }

    fn build_transcript(
        &self,
        number: u32,
        node: &Node,
        strand: Strand,
        gene: usize,
        parts: &[TranscriptPart],
    ) -> Transcript {
        let exons: Vec<Range<usize>> = parts.iter().filter(|p| p.phase.is_none()).map(|p| p.range.clone()).collect();
        let coding: Vec<&TranscriptPart> = parts.iter().filter(|p| p.phase.is_some()).collect();
        let first = match strand {
            Strand::Forward => coding.first(),
            Strand::Reverse => coding.last(),
        };
        let coding = first.map(|first| CodingRegion {
            phase: first.phase.unwrap_or_default(),
            has_disjoint_parts: coding.windows(2).all(|two| two[0].range.end <= two[1].range.start),
            parts: coding.iter().map(|part| part.range.clone()).collect(),
        });
        let exons = match &coding {
            Some(coding) if exons.is_empty() => coding.parts.clone(),
            _ => exons,
        };
        let attributes = &node.attributes;
        let id = strip_prefix(&self.names[number as usize]);
        let biotype = attributes.biotype.clone().unwrap_or_else(|| match &coding {
            Some(_) => "protein_coding".to_owned(),
            None => "non_coding".to_owned(),
        });
        Transcript {
            id: attributes.transcript_id.clone().unwrap_or_else(|| id.to_owned()),
            version: attributes.version.clone(),
            gene,
            biotype,
            contig: node.contig,
            strand,
            exons: merge_overlapping(exons),
            coding,
            tag: attributes.tag.unwrap_or(TranscriptPreference::Untagged),
        }
    }
}

/// Maximum number of ancestors of a feature that are followed. Files have at most four levels (gene, primary
/// transcript, miRNA, exon).
const MAX_ANCESTORS: usize = 16;

/// Merges ranges that overlap or are adjacent.
fn merge_overlapping(ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    let mut merged: Vec<Range<usize>> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match merged.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    merged
}

fn parse_tag(tag: &str) -> Option<TranscriptPreference> {
    match tag {
        // With a blank in RefSeq.
        "MANE_Select" | "MANE Select" => Some(TranscriptPreference::ManeSelect),
        "Ensembl_canonical" => Some(TranscriptPreference::Canonical),
        _ => None,
    }
}

/// Removes the prefix of Ensembl (`gene:`, `transcript:`) or RefSeq (`gene-`, `rna-`) from an ID.
fn strip_prefix(id: &str) -> &str {
    let prefixes = ["gene:", "transcript:", "gene-", "rna-"];
    prefixes.iter().find_map(|prefix| id.strip_prefix(prefix)).unwrap_or(id)
}

/// Calls `each` with the name and value of each attribute of a feature. Values are percent-decoded unless they are
/// lists.
fn for_each_attribute(record: &Record<'_>, mut each: impl FnMut(&[u8], &str)) -> Result<(), GffLineError> {
    let attributes = record.attributes();
    for field in attributes.iter() {
        let (tag, value) = field.map_err(|e| {
            let is_gtf = attributes.as_ref().starts_with(b"gene_id \"");
            if is_gtf { GffLineError::Gtf } else { GffLineError::Columns(format!("attributes: {e}")) }
        })?;
        each(&tag, &String::from_utf8_lossy(value.as_ref()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use genuma_reads::fasta::Contig;

    use super::*;

    fn genome() -> Reference {
        let contig = |name: &str, bases: usize| Contig { name: name.into(), seq: vec![b'A'; bases] };
        Reference::from_contigs(vec![contig("chr1", 2_000), contig("MT", 500)])
    }

    fn read(text: &[u8]) -> Result<(GenesAndTranscripts, GffFeatureCounts), Error> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("genes.gff3");
        std::fs::write(&path, text).unwrap();
        read_genes(&path, &genome())
    }

    const ENSEMBL: &str = "##gff-version 3\n\
        chr1\te\tchromosome\t1\t2000\t.\t.\t.\tID=chromosome:1\n\
        chr1\te\tgene\t101\t900\t.\t-\t.\tID=gene:G1;Name=ABC%2C1;biotype=protein_coding\n\
        chr1\te\tmRNA\t101\t900\t.\t-\t.\tID=transcript:T1;Parent=gene:G1;biotype=protein_coding;tag=basic,Ensembl_canonical,MANE_Select;version=4\n\
        chr1\te\texon\t801\t900\t.\t-\t.\tParent=transcript:T1\n\
        chr1\te\texon\t101\t300\t.\t-\t.\tParent=transcript:T1\n\
        chr1\te\tCDS\t801\t850\t.\t-\t1\tID=CDS:P1;Parent=transcript:T1\n\
        chr1\te\tCDS\t201\t300\t.\t-\t2\tID=CDS:P1;Parent=transcript:T1\n\
        chr7\te\tgene\t1\t90\t.\t-\t.\tID=gene:G9\n\
        chr1\te\texon\t5\t6\t.\t-\t.\tParent=transcript:T404\n";

    #[test]
    fn ensembl() {
        let (model, counts) = read(ENSEMBL.as_bytes()).unwrap();
        assert_eq!(model.genes, [Gene { id: "G1".into(), name: "ABC,1".into() }]);
        let [transcript] = &model.transcripts[..] else { panic!("{:?}", model.transcripts) };
        assert_eq!((&*transcript.id, &*transcript.versioned_id()), ("T1", "T1.4"));
        assert_eq!(transcript.exons, [100..300, 800..900]);
        let coding = transcript.coding.clone().unwrap();
        assert_eq!((coding.parts, coding.phase, coding.has_disjoint_parts), (vec![200..300, 800..850], 1, true));
        assert_eq!((transcript.tag, transcript.strand), (TranscriptPreference::ManeSelect, Strand::Reverse));
        assert_eq!(counts.unknown_contigs.into_iter().collect::<Vec<_>>(), [("chr7".to_owned(), 1)]);
        assert_eq!((counts.features, counts.features_without_parent), (9, 1));

        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(ENSEMBL.as_bytes()).unwrap();
        let packed = gzip.finish().unwrap();
        assert_eq!(read(&packed).unwrap().0, model);
        let cut = read(&packed[..packed.len() - 20]).unwrap_err().to_string();
        assert!(cut.contains("genes.gff3: cannot read: "), "{cut}");
    }

    #[test]
    fn gencode_and_refseq() {
        let text = "chr1\tH\tgene\t101\t900\t.\t+\t.\tID=ENSG1.2;gene_type=lncRNA;gene_name=LNC\n\
            chr1\tH\ttranscript\t101\t900\t.\t+\t.\tID=ENST1.3;Parent=ENSG1.2;gene_type=lncRNA;transcript_type=retained_intron;gene_name=LNC;transcript_id=ENST1.3\n\
            chr1\tH\texon\t101\t900\t.\t+\t.\tID=exon:ENST1.3:1;Parent=ENST1.3\n\
            chr1\tB\tgene\t1001\t1900\t.\t+\t.\tID=gene-XYZ;Name=XYZ;gene_biotype=protein_coding\n\
            chr1\tB\tmRNA\t1001\t1900\t.\t+\t.\tID=rna-NM_1.2;Parent=gene-XYZ;transcript_id=NM_1.2;tag=MANE Select\n\
            chr1\tB\texon\t1001\t1900\t.\t+\t.\tID=exon-1;Parent=rna-NM_1.2\n\
            chr1\tB\tCDS\t1001\t1300\t.\t+\t0\tID=cds-1;Parent=rna-NM_1.2\n\
            MT\tB\tgene\t1\t300\t.\t+\t.\tID=gene-ND1;Name=ND1;gene_biotype=protein_coding\n\
            MT\tB\tCDS\t1\t300\t.\t+\t0\tID=cds-2;Parent=gene-ND1\n\
            ##FASTA\n>chr1\nACGT\n";
        let (model, counts) = read(text.as_bytes()).unwrap();
        let rows: Vec<String> = (0..model.transcripts.len())
            .map(|t| {
                let of = &model.transcripts[t];
                let coding = of.coding.as_ref().map(CodingRegion::num_coding_bases);
                format!("{} {} {} {:?} {:?}", model.gene_of_transcript(t).name, of.id, of.biotype, of.tag, coding)
            })
            .collect();
        let expected = [
            "LNC ENST1.3 retained_intron Untagged None",
            "XYZ NM_1.2 protein_coding ManeSelect Some(300)",
            "ND1 ND1 protein_coding Untagged Some(300)",
        ];
        assert_eq!(rows, expected);
        assert_eq!(counts, GffFeatureCounts { features: 9, ..GffFeatureCounts::default() });
    }

    #[test]
    fn wrong_files_are_refused() {
        let cases = [
            ("chr1\te\texon\t90\t80\t.\t+\t.\tParent=t\n", "line 1: end 80 is before start 90"),
            (
                "#\nchr1\te\texon\t90\t2001\t.\t+\t.\tParent=t\n",
                "line 2: end 2001 is beyond the 2000 bases of chr1 in the reference",
            ),
            ("chr1\te\tCDS\t90\t95\t.\t+\t.\tParent=t\n", "a CDS needs a phase"),
            ("chr1\te\texon\t90\t95\t.\t+\t.\tID=e\n", "the exon has no Parent"),
            ("chr1\te\texon\t90\n", "line 1: no GFF3 feature"),
            ("chr1\te\texon\t90\t95\t.\t+\t.\tgene_id \"G\"; transcript_id \"T\";\n", "this is GTF"),
            ("1\te\texon\t90\t95\t.\t+\t.\tParent=t\n", "(the file has 1, the reference chr1)"),
            ("chr1\te\tgene\t90\t95\t.\t+\t.\tID=g\n", "no transcript with an exon or a CDS"),
            ("", "no transcript with an exon or a CDS"),
        ];
        for (text, expected) in cases {
            let message = read(text.as_bytes()).unwrap_err().to_string();
            assert!(message.contains(expected), "{text:?}: {message}");
        }
    }
}
