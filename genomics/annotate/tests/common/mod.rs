//! A made genome with made genes: both strands, many exons, untranslated regions, transcripts that start within the coding
//! sequence, non-coding genes that overlap others.

use std::fmt::Write as _;
use std::ops::Range;

use genuma_annotate::gene_model::GenesAndTranscripts;
use genuma_annotate::gff;
use genuma_reads::dna::reverse_complement;
use genuma_reads::fasta::{Contig, Reference};

/// Pseudo-random numbers (xorshift64*).
pub struct Random(pub u64);

impl Random {
    /// A number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % end
    }

    pub fn range(&mut self, range: Range<usize>) -> usize {
        range.start + self.below(range.len())
    }

    pub fn base(&mut self) -> u8 {
        b"ACGT"[self.below(4)]
    }

    pub fn bases(&mut self, n: usize) -> Vec<u8> {
        (0..n).map(|_| self.base()).collect()
    }
}

/// The genome with its genes, and its files in a folder.
pub struct MadeGenome {
    /// Holds genes.gff3 and genome.fa.
    #[allow(dead_code, reason = "only one of the two tests reads the files")]
    pub folder: tempfile::TempDir,
    pub genome: Reference,
    pub model: GenesAndTranscripts,
}

/// Where the bases of a coding gene are.
struct MadeGene<'a> {
    /// Positions of all exon bases in the direction of the transcript.
    positions: &'a [usize],
    /// Of these the coding ones.
    coding: Range<usize>,
    is_forward: bool,
}

/// Makes contigs with genes.
pub struct GenomeMaker {
    random: Random,
    gff: String,
    num_genes: usize,
}

impl GenomeMaker {
    /// A genome of some contigs with a number of genes each.
    pub fn make(seed: u64, num_contigs: usize, genes_per_contig: usize) -> MadeGenome {
        let mut maker = GenomeMaker { random: Random(seed), gff: "##gff-version 3\n".into(), num_genes: 0 };
        let contigs = (1..=num_contigs).map(|n| maker.make_contig(&n.to_string(), genes_per_contig)).collect();
        let genome = Reference::from_contigs(contigs);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("genes.gff3");
        std::fs::write(&path, &maker.gff).unwrap();
        genome.write_fasta_file(&folder.path().join("genome.fa")).unwrap();
        let (model, counts) = gff::read_genes(&path, &genome).unwrap();
        assert_eq!((counts.overlapping_coding_transcripts, counts.features_without_parent), (0, 0));
        MadeGenome { folder, genome, model }
    }

    fn make_contig(&mut self, name: &str, num_genes: usize) -> Contig {
        let mut bases = self.random.bases(1_000);
        for n in 0..num_genes {
            let exons = self.make_exons(bases.len());
            let end = exons[exons.len() - 1].end;
            let gap = self.random.range(300..900);
            let more = self.random.bases(end + gap - bases.len());
            bases.extend(more);
            let is_forward = self.random.below(2) == 0;
            match n % 5 {
                4 => self.add_non_coding(name, &exons, is_forward),
                _ => self.add_coding(name, &mut bases, &exons, is_forward),
            }
            if n % 7 == 3 {
                // A non-coding gene on the other strand that overlaps.
                let start = exons[0].start + 20;
                self.add_non_coding(name, &[start..start + 90, end - 40..end + 60], !is_forward);
            }
        }
        Contig { name: name.into(), seq: bases }
    }

    fn make_exons(&mut self, start: usize) -> Vec<Range<usize>> {
        let mut start = start;
        let num_exons = self.random.range(1..9);
        let mut exons = Vec::new();
        for _ in 0..num_exons {
            let end = start + self.random.range(60..260);
            exons.push(start..end);
            start = end + self.random.range(60..700);
        }
        exons
    }

    fn line(
        &mut self,
        contig: &str,
        kind: &str,
        range: &Range<usize>,
        is_forward: bool,
        phase: &str,
        attributes: &str,
    ) {
        let strand = if is_forward { '+' } else { '-' };
        let (start, end) = (range.start + 1, range.end);
        let _ = writeln!(self.gff, "{contig}\tmade\t{kind}\t{start}\t{end}\t.\t{strand}\t{phase}\t{attributes}");
    }

    /// Lines of a gene and of its transcripts. The first transcript is as long as the gene.
    fn add_gene_lines(&mut self, contig: &str, spans: &[Range<usize>], is_forward: bool, biotype: &str) -> String {
        self.num_genes += 1;
        let id = format!("{:05}", self.num_genes);
        self.line(
            contig,
            "gene",
            &spans[0],
            is_forward,
            ".",
            &format!("ID=gene:G{id};Name=GENE{id};biotype={biotype}"),
        );
        for (t, span) in spans.iter().enumerate() {
            let kind = if biotype == "protein_coding" { "mRNA" } else { "lnc_RNA" };
            let attributes = format!("ID=transcript:T{id}{t};Parent=gene:G{id};biotype={biotype}");
            self.line(contig, kind, span, is_forward, ".", &attributes);
        }
        id
    }

    fn add_non_coding(&mut self, contig: &str, exons: &[Range<usize>], is_forward: bool) {
        let span = exons[0].start..exons[exons.len() - 1].end;
        let id = self.add_gene_lines(contig, &[span], is_forward, "lncRNA");
        for exon in exons {
            self.line(contig, "exon", exon, is_forward, ".", &format!("Parent=transcript:T{id}0"));
        }
    }

    /// A coding gene. Its second transcript lacks the first exon, so that its coding sequence starts with a phase.
    fn add_coding(&mut self, contig: &str, bases: &mut [u8], exons: &[Range<usize>], is_forward: bool) {
        let span = exons[0].start..exons[exons.len() - 1].end;
        // The second transcript lacks the first exon.
        let shorter = match is_forward {
            true => exons[1.min(exons.len() - 1)].start..span.end,
            false => span.start..exons[exons.len().saturating_sub(2)].end,
        };
        let num_bases: usize = exons.iter().map(Range::len).sum();
        let utr = self.random.range(4..20);
        let num_codons = (num_bases - utr - 10) / 3;
        let coding: Range<usize> = utr..utr + 3 * num_codons;
        // Positions of all exon bases in the direction of the transcript.
        let mut positions: Vec<usize> = exons.iter().cloned().flatten().collect();
        if !is_forward {
            positions.reverse();
        }
        let sequence = self.make_open_reading_frame(num_codons);
        for (&position, &base) in positions[coding.clone()].iter().zip(&sequence) {
            bases[position] = if is_forward { base } else { reverse_complement(&[base])[0] };
        }
        let transcripts = if exons.len() > 2 { 2 } else { 1 };
        let spans = [span, shorter];
        let id = self.add_gene_lines(contig, &spans[..transcripts], is_forward, "protein_coding");
        for t in 0..transcripts {
            let skipped = if t == 0 {
                0
            } else if is_forward {
                exons[0].len()
            } else {
                exons[exons.len() - 1].len()
            };
            let gene = MadeGene { positions: &positions, coding: coding.clone(), is_forward };
            self.add_transcript_parts(contig, exons, &gene, skipped, &format!("T{id}{t}"));
        }
    }

    fn add_transcript_parts(
        &mut self,
        contig: &str,
        exons: &[Range<usize>],
        gene: &MadeGene<'_>,
        skipped: usize,
        id: &str,
    ) {
        let MadeGene { positions, coding, is_forward } = gene;
        let parent = format!("Parent=transcript:{id}");
        let coding_positions = &positions[coding.start.max(skipped)..coding.end];
        for exon in exons {
            if positions[skipped..].iter().any(|position| exon.contains(position)) {
                self.line(contig, "exon", exon, *is_forward, ".", &parent);
            }
            let own: Vec<usize> = coding_positions.iter().copied().filter(|p| exon.contains(p)).collect();
            for (name, range) in
                [("five_prime_UTR", skipped..coding.start), ("three_prime_UTR", coding.end..positions.len())]
            {
                let own: Vec<usize> = (range.start..range.end.max(range.start))
                    .map(|i| positions[i])
                    .filter(|p| exon.contains(p))
                    .collect();
                if let (Some(low), Some(high)) = (own.iter().min(), own.iter().max()) {
                    self.line(contig, name, &(*low..*high + 1), *is_forward, ".", &parent);
                }
            }
            let (Some(low), Some(high)) = (own.iter().min(), own.iter().max()) else { continue };
            let part = *low..*high + 1;
            let offset = positions.iter().position(|p| *p == own[0]).unwrap() - coding.start;
            self.line(contig, "CDS", &part, *is_forward, &((3 - offset % 3) % 3).to_string(), &parent);
        }
    }

    fn make_open_reading_frame(&mut self, num_codons: usize) -> Vec<u8> {
        let mut bases = b"ATG".to_vec();
        while bases.len() < 3 * (num_codons - 1) {
            let codon = self.random.bases(3);
            if !matches!(&codon[..], b"TAA" | b"TAG" | b"TGA") {
                bases.extend(codon);
            }
        }
        bases.extend([&b"TAA"[..], b"TAG", b"TGA"][self.random.below(3)]);
        bases
    }
}
