//! Reading of reference FASTA files, and errors in them.

use crate::common::{Folder, bgzf, gzip, gzip_members};
use genuma_reads::fasta::{Contig, Reference};

const TEXT: &str = ">one first sequence\nACGTN\nacgtn\nRYK\n>two\tx\nGG\n\n>three\nT";

#[test]
fn any_compression_line_ends_and_case_are_read() {
    let folder = Folder::new();
    let expected = [("one", "ACGTNACGTNRYK"), ("two", "GG"), ("three", "T")]
        .map(|(name, seq)| Contig { name: name.into(), seq: seq.into() });
    let crlf = TEXT.replace('\n', "\r\n");
    let files: [(&str, Vec<u8>); 6] = [
        ("r.fa", TEXT.into()),
        ("closed.fa", format!("{TEXT}\n").into()),
        ("crlf.fa", crlf.into()),
        ("r.fa.gz", gzip(TEXT.as_bytes())),
        ("members.fa.gz", gzip_members(TEXT.as_bytes(), 7)),
        ("r.fa.bgz", bgzf(TEXT.as_bytes())),
    ];
    for (name, content) in files {
        let reference = Reference::read_fasta_file(&folder.write(name, content)).unwrap();
        assert_eq!(reference.contigs, expected, "{name}");
        assert_eq!(reference.contig_named("two"), Some(&expected[1]));
        assert_eq!(reference.contig_index("three"), Some(2));
        assert_eq!(reference.contig_named("four"), None);
    }
}

#[test]
fn long_lines_cross_chunks() {
    let folder = Folder::new();
    let seq: String = (0..1_000_003).map(|i| ['A', 'C', 'G', 'T'][i * i % 7 % 4]).collect();
    let wrapped: Vec<&str> = (0..seq.len()).step_by(61).map(|i| &seq[i..seq.len().min(i + 61)]).collect();
    let path = folder.write("r.fa", format!(">line\n{seq}\n>wrapped\n{}\n", wrapped.join("\n")));
    let reference = Reference::read_fasta_file(&path).unwrap();
    assert!(reference.contig_named("line").unwrap().seq == seq.as_bytes());
    assert!(reference.contig_named("wrapped").unwrap().seq == seq.as_bytes());
}

#[test]
fn circular_sequences_are_known_by_header_or_name() {
    let folder = Folder::new();
    let headers = [
        ("p1 plasmid, circular", true),
        ("p2 length=5000 circular=true", true),
        ("p3 topology=circular;depth=30x", true),
        ("chrM", true),
        ("MT dna:chromosome", true),
        ("p4 circular=false", false),
        ("p5 not circular", false),
        ("p6 circularised later", false),
        ("chrMT_alt", false),
    ];
    let text: String = headers.iter().map(|(header, _)| format!(">{header}\nACGT\n")).collect();
    let reference = Reference::read_fasta_file(&folder.write("r.fa", text)).unwrap();
    for (i, (header, is_circular)) in headers.into_iter().enumerate() {
        assert_eq!(reference.is_circular(i), is_circular, "{header}");
    }
    assert!(!reference.is_circular(headers.len()));
}

#[test]
fn invalid_files_are_reported() {
    let folder = Folder::new();
    let mut damaged = gzip(TEXT.as_bytes());
    let truncated = damaged[..damaged.len() - 9].to_vec();
    let end = damaged.len();
    damaged[end - 5] ^= 1;
    let cases: [(&[u8], &str); 14] = [
        (b"", "is empty: give a file with at least one record"),
        (b"\n\n", "is empty: give a file with at least one record"),
        (&gzip(b""), "is empty: give a file with at least one record"),
        (
            b"ACGT\n",
            "line 1: starts with 'A' instead of '>': not a FASTA file; give FASTA, plain or compressed with gzip",
        ),
        (
            b"@r\nACGT\n+\nFFFF\n",
            "line 1: starts with '@' instead of '>': not a FASTA file; give FASTA, plain or compressed with gzip",
        ),
        (
            b"\r\nACGT\n",
            "line 2: starts with 'A' instead of '>': not a FASTA file; give FASTA, plain or compressed with gzip",
        ),
        (b">a\nAC\n>b\nAC\n>a x\nAC\n", "line 5: sequence name \"a\" was used on line 1: rename one of them"),
        (b">a\nAC\n> b\nAC\n", "line 3: '>' without a name: name every sequence"),
        (b">a\nAC\n>b\n\n>c\nAC\n", "line 3: sequence \"b\" has no bases: remove it or complete the file"),
        (b">a\nAC\n>b", "line 3: sequence \"b\" has no bases: remove it or complete the file"),
        (b">a\nAC\r\nAC*T\n", "line 3: '*' is not a base (IUPAC letter)"),
        (b">a\nAC\nMEVL\n", "line 3: 'E' is not a base (IUPAC letter)"),
        (&truncated, "line 9: damaged gzip data (they end too early): copy or make the file again"),
        (
            &damaged,
            "line 9: damaged gzip data (corrupt gzip stream does not have a matching checksum): copy or make the file again",
        ),
    ];
    for (content, message) in cases {
        let path = folder.write("r.fa", content);
        let error_text = Reference::read_fasta_file(&path).unwrap_err().to_string();
        assert_eq!(error_text, format!("{}: {message}", path.display()));
    }
    let absent = folder.path().join("absent.fa");
    assert_eq!(
        Reference::read_fasta_file(&absent).unwrap_err().to_string(),
        format!("{}: cannot read: No such file or directory (os error 2)", absent.display())
    );
}
