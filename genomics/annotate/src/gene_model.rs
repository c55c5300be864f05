//! Genes, transcripts and their index by position. Positions are 0-based. Ranges are half-open and ascend on the
//! reference, also on the reverse strand.

use std::ops::Range;

/// Strand of the reference that has the sequence of the transcript.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strand {
    /// The transcript has the bases of the reference.
    Forward,
    /// The transcript has the reverse complement of the reference.
    Reverse,
}

/// A gene of the GFF3 file: its ID and its symbol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gene {
    /// ID attribute without prefixes such as `gene:`.
    pub id: String,
    /// Gene symbol; the ID if the file has no name.
    pub name: String,
}

/// Tag by which a transcript is preferred to others of its gene. Smaller values are preferred.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TranscriptPreference {
    /// Tag `MANE_Select`: NCBI and Ensembl chose the transcript to represent the gene.
    ManeSelect,
    /// Tag `Ensembl_canonical`: Ensembl chose the transcript to represent the gene.
    Canonical,
    /// The file has neither `MANE_Select` nor `Ensembl_canonical` for the transcript.
    Untagged,
}

/// The ranges of the reference that code for the protein of a transcript.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodingRegion {
    /// Coding ranges, one for each exon or part of an exon, ascending; with the stop codon.
    pub parts: Vec<Range<usize>>,
    /// Number of bases before the first complete codon, 0 to 2 (column 8 of the first CDS in the direction of the
    /// transcript).
    pub phase: usize,
    /// Whether the coding ranges do not overlap. If they overlap (ribosomal slippage), no protein is predicted.
    pub has_disjoint_parts: bool,
}

impl CodingRegion {
    /// The range from the first base of the first coding range to the last base of the last one, introns included.
    pub fn coding_span(&self) -> Range<usize> {
        self.parts[0].start..self.parts[self.parts.len() - 1].end
    }

    /// Number of coding bases, at least 1.
    pub fn num_coding_bases(&self) -> usize {
        self.parts.iter().map(Range::len).sum()
    }
}

/// A transcript of a gene, with its exons and coding ranges on one contig of the reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transcript {
    /// ID without prefixes such as `transcript:` and `rna-`.
    pub id: String,
    /// Version of the ID, if the file has it as an attribute of its own (Ensembl).
    pub version: Option<String>,
    /// Index of the transcript's gene in [`GenesAndTranscripts::genes`].
    pub gene: usize,
    /// Biotype of the transcript in Ensembl or RefSeq, such as `protein_coding`.
    pub biotype: String,
    /// Index of the contig in the reference, from 0.
    pub contig: usize,
    /// Strand of the reference that has the sequence of the transcript.
    pub strand: Strand,
    /// Exons in reference order; 0-based, half-open. Overlapping or adjacent exons are merged.
    pub exons: Vec<Range<usize>>,
    /// Coding ranges; `None` for non-coding transcripts.
    pub coding: Option<CodingRegion>,
    /// Tag with which a database marks the transcript as the one to prefer for its gene.
    pub tag: TranscriptPreference,
}

impl Transcript {
    /// The range from the first base of the first exon to the last base of the last exon.
    pub fn transcript_span(&self) -> Range<usize> {
        self.exons[0].start..self.exons[self.exons.len() - 1].end
    }

    /// Introns in reference order: the ranges between exons; 0-based, half-open.
    pub fn introns(&self) -> impl Iterator<Item = Range<usize>> {
        self.exons.windows(2).map(|two| two[0].end..two[1].start)
    }

    /// Converts the index of an exon in reference order (from 0) to its number in the direction of the transcript (from
    /// 1).
    pub fn exon_number_in_transcript(&self, exon: usize) -> usize {
        match self.strand {
            Strand::Forward => exon + 1,
            Strand::Reverse => self.exons.len() - exon,
        }
    }

    /// ID with version, as in HGVS names: `ENST00000269305.9`.
    pub fn versioned_id(&self) -> String {
        match &self.version {
            Some(version) => format!("{}.{version}", self.id),
            None => self.id.clone(),
        }
    }

    /// Sort key by which the representative transcript of a gene comes first: MANE Select, then Ensembl canonical, then
    /// the longest coding sequence, then the longest transcript, then the ID.
    fn preference(&self) -> (TranscriptPreference, std::cmp::Reverse<usize>, std::cmp::Reverse<usize>, &str) {
        let coding_bases = self.coding.as_ref().map_or(0, CodingRegion::num_coding_bases);
        let bases = self.exons.iter().map(Range::len).sum();
        (self.tag, std::cmp::Reverse(coding_bases), std::cmp::Reverse(bases), &self.id)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct IndexEntry {
    span: Range<usize>,
    /// Highest end of this transcript and all transcripts before it in the index of the contig.
    max_end: usize,
    transcript: usize,
}

/// All genes and transcripts of a GFF3 file that are on the reference.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GenesAndTranscripts {
    /// Genes with at least one transcript on the reference.
    pub genes: Vec<Gene>,
    /// Transcripts, sorted by contig and position.
    pub transcripts: Vec<Transcript>,
    /// For each gene, the index of its representative transcript.
    representatives: Vec<usize>,
    /// For each contig, its transcripts sorted by their first base.
    index: Vec<Vec<IndexEntry>>,
}

impl GenesAndTranscripts {
    /// Builds the model from genes and transcripts in any order. `num_contigs` is the number of contigs of the
    /// reference.
    pub(crate) fn from_genes_and_transcripts(
        genes: Vec<Gene>,
        mut transcripts: Vec<Transcript>,
        num_contigs: usize,
    ) -> GenesAndTranscripts {
        transcripts.sort_by(|a, b| {
            let key = |t: &Transcript| (t.contig, t.transcript_span().start, t.transcript_span().end);
            key(a).cmp(&key(b)).then_with(|| a.id.cmp(&b.id))
        });
        let mut best: Vec<Option<usize>> = vec![None; genes.len()];
        let mut index: Vec<Vec<IndexEntry>> = vec![Vec::new(); num_contigs];
        for (number, transcript) in transcripts.iter().enumerate() {
            let best = &mut best[transcript.gene];
            if best.is_none_or(|best| transcript.preference() < transcripts[best].preference()) {
                *best = Some(number);
            }
            let entries = &mut index[transcript.contig];
            let max_end =
                entries.last().map_or(0, |last: &IndexEntry| last.max_end).max(transcript.transcript_span().end);
            entries.push(IndexEntry { span: transcript.transcript_span(), max_end, transcript: number });
        }
        // A gene without transcripts never comes up in a lookup.
        let representatives = best.into_iter().map(Option::unwrap_or_default).collect();
        GenesAndTranscripts { genes, transcripts, representatives, index }
    }

    /// Indices of the transcripts that overlap `range` (introns included), ascending.
    pub(crate) fn overlapping_transcripts(&self, contig: usize, range: Range<usize>) -> Vec<usize> {
        let Some(entries) = self.index.get(contig) else { return Vec::new() };
        let end = entries.partition_point(|entry| entry.span.start < range.end);
        let mut found: Vec<usize> = entries[..end]
            .iter()
            .rev()
            .take_while(|entry| entry.max_end > range.start)
            .filter(|entry| entry.span.end > range.start)
            .map(|entry| entry.transcript)
            .collect();
        found.reverse();
        found
    }

    /// Names of the genes with a transcript that overlaps `range` (introns included), in the order of their transcripts.
    pub fn names_of_overlapping_genes(&self, contig: usize, range: Range<usize>) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for transcript in self.overlapping_transcripts(contig, range) {
            let name = &self.gene_of_transcript(transcript).name;
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        names
    }

    /// The gene of the transcript with index `transcript`.
    pub fn gene_of_transcript(&self, transcript: usize) -> &Gene {
        &self.genes[self.transcripts[transcript].gene]
    }

    /// Whether the transcript with index `transcript` is the representative transcript of its gene.
    pub fn is_representative(&self, transcript: usize) -> bool {
        self.representatives[self.transcripts[transcript].gene] == transcript
    }

    /// Number of transcripts with a coding sequence.
    pub fn num_coding_transcripts(&self) -> usize {
        self.transcripts.iter().filter(|transcript| transcript.coding.is_some()).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transcript(id: &str, gene: usize, exons: &[(usize, usize)], tag: TranscriptPreference) -> Transcript {
        Transcript {
            id: id.into(),
            version: None,
            gene,
            biotype: "lncRNA".into(),
            contig: 0,
            strand: Strand::Forward,
            exons: exons.iter().map(|&(start, end)| start..end).collect(),
            coding: None,
            tag,
        }
    }

    #[test]
    fn lookups_find_what_a_scan_finds() {
        let mut transcripts = Vec::new();
        for i in 0..200usize {
            let start = i * 7919 % 1_000;
            let length = 1 + i * i % 97 * (1 + i % 5);
            transcripts.push(transcript(
                &format!("t{i}"),
                i,
                &[(start, start + length)],
                TranscriptPreference::Untagged,
            ));
        }
        let genes = (0..200).map(|i| Gene { id: i.to_string(), name: i.to_string() }).collect();
        let model = GenesAndTranscripts::from_genes_and_transcripts(genes, transcripts, 2);
        for start in (0..1_600).step_by(13) {
            let range = start..start + 1 + start % 40;
            let scan: Vec<usize> = (0..200)
                .filter(|&t| {
                    let span = model.transcripts[t].transcript_span();
                    span.start < range.end && range.start < span.end
                })
                .collect();
            let names: Vec<String> =
                scan.iter().map(|t| model.genes[model.transcripts[*t].gene].name.clone()).collect();
            assert_eq!(model.names_of_overlapping_genes(0, range.clone()), names);
            assert_eq!(model.overlapping_transcripts(0, range), scan);
        }
        assert!(model.overlapping_transcripts(1, 0..9_999).is_empty());
    }

    #[test]
    fn tags_come_before_lengths() {
        let of = |tags: [TranscriptPreference; 3]| {
            let [a, b, c] = tags;
            let transcripts = vec![
                transcript("a", 0, &[(10, 20), (30, 40)], a),
                transcript("b", 0, &[(10, 40)], b),
                transcript("c", 0, &[(10, 12)], c),
            ];
            let model = GenesAndTranscripts::from_genes_and_transcripts(
                vec![Gene { id: "g".into(), name: "g".into() }],
                transcripts,
                1,
            );
            let best = (0..3).find(|&t| model.is_representative(t)).unwrap();
            model.transcripts[best].id.clone()
        };
        use TranscriptPreference::{Canonical, ManeSelect, Untagged};
        assert_eq!(of([Untagged, Untagged, Untagged]), "b");
        assert_eq!(of([Untagged, Untagged, Canonical]), "c");
        assert_eq!(of([ManeSelect, Untagged, Canonical]), "a");
    }
}
