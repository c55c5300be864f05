//! Rewrites the SAM header of an instance: with the command line of the plain run, and one additional `@PG`.

/// The `@PG` line of genuma in a SAM header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GenumaPgLine {
    /// Program name, for ID and PN of the `@PG` line.
    pub name: String,
    /// Version of genuma, for VN of the `@PG` line.
    pub version: String,
    /// Command line of genuma, for CL of the `@PG` line.
    pub line: String,
}

/// Command lines of an instance and of the plain run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct InstanceAndPlainCommandLines {
    /// Words of the instance's command line.
    pub instance: Vec<String>,
    /// Words of the plain run's command line.
    pub plain: Vec<String>,
    /// For each pipe from which the instance reads: the path of the pipe, and the read files that the plain run would
    /// name instead.
    pub reads: Vec<(String, String)>,
}

impl InstanceAndPlainCommandLines {
    /// Replaces the command line of the instance in a header line by that of the plain run. If the aligner changed the
    /// order of the words, only the names of the read files are replaced.
    fn restore_plain_line(&self, line: &str) -> String {
        let arguments = |words: &[String]| words.get(1..).unwrap_or_default().join(" ");
        let (instance, plain) = (arguments(&self.instance), arguments(&self.plain));
        if !instance.is_empty() && line.contains(&instance) {
            return line.replacen(&instance, &plain, 1);
        }
        let word = |word: &str| {
            let bare = word.trim_end_matches('"');
            let file = self.reads.iter().find(|(pipe, _)| pipe == bare);
            file.map_or_else(|| word.to_owned(), |(_, file)| format!("{file}{}", &word[bare.len()..]))
        };
        line.split(' ').map(word).collect::<Vec<_>>().join(" ")
    }
}

/// The SAM header of an instance, changed to the header that genuma writes, and its part that is compared between
/// instances.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RewrittenInstanceHeader {
    /// The SAM header that genuma writes.
    pub text: Vec<u8>,
    /// The part of the header that must be equal in all instances.
    pub common: Vec<u8>,
}

/// Converts the header `text` that an instance wrote to the header that genuma writes: replaces the command line of the
/// instance by that of the plain run, and adds the `@PG` line `genuma`.
pub(crate) fn rewrite_sam_header(
    text: &[u8],
    lines: &InstanceAndPlainCommandLines,
    genuma: &GenumaPgLine,
) -> RewrittenInstanceHeader {
    let text = String::from_utf8_lossy(text);
    let mut out = String::new();
    let mut common = Vec::new();
    let mut last = None;
    let mut taken = Vec::new();
    for line in text.lines() {
        if line.starts_with("@PG\t") {
            let id = line.split('\t').find_map(|field| field.strip_prefix("ID:"));
            last = id.map(str::to_owned).or(last);
            taken.extend(id.map(str::to_owned));
            out += &lines.restore_plain_line(line);
        } else {
            common.extend_from_slice(line.as_bytes());
            common.push(b'\n');
            out += line;
        }
        out.push('\n');
    }
    let GenumaPgLine { name, version, line } = genuma;
    let mut id = name.clone();
    let mut n = 1;
    while taken.contains(&id) {
        id = format!("{name}.{n}");
        n += 1;
    }
    out += &format!("@PG\tID:{id}\tPN:{name}\tVN:{version}");
    if let Some(last) = last {
        out += &format!("\tPP:{last}");
    }
    out += &format!("\tCL:{}\n", line.replace(['\t', '\n'], " "));
    RewrittenInstanceHeader { text: out.into_bytes(), common }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    fn genuma() -> GenumaPgLine {
        GenumaPgLine { name: "genuma".to_owned(), version: "1".to_owned(), line: "genuma run -- bwa".to_owned() }
    }

    #[test]
    fn the_aligners_line_is_that_of_the_plain_run() {
        let lines = InstanceAndPlainCommandLines {
            instance: words("bwa mem -t 2 -K 40 ref /dev/fd/5 /dev/fd/6"),
            plain: words("bwa mem -t 4 ref a b"),
            reads: vec![],
        };
        let header = rewrite_sam_header(
            b"@SQ\tSN:c\tLN:9\n@PG\tID:bwa\tCL:bwa mem -t 2 -K 40 ref /dev/fd/5 /dev/fd/6\n@CO\tx\n",
            &lines,
            &genuma(),
        );
        assert_eq!(
            String::from_utf8_lossy(&header.text),
            "@SQ\tSN:c\tLN:9\n@PG\tID:bwa\tCL:bwa mem -t 4 ref a b\n@CO\tx\n\
             @PG\tID:genuma\tPN:genuma\tVN:1\tPP:bwa\tCL:genuma run -- bwa\n"
        );
        assert_eq!(header.common, b"@SQ\tSN:c\tLN:9\n@CO\tx\n");
    }

    #[test]
    fn a_wrapper_that_changes_the_order_of_words_still_names_the_files() {
        let lines = InstanceAndPlainCommandLines {
            instance: words("bowtie2 -1 /dev/fd/5 -2 /dev/fd/50 -p 2"),
            plain: words("bowtie2 -1 a -2 b -p 4"),
            reads: vec![("/dev/fd/5".to_owned(), "a".to_owned()), ("/dev/fd/50".to_owned(), "b".to_owned())],
        };
        let line = "@PG\tID:bowtie2\tCL:\"bowtie2-align-s -p 2 -1 /dev/fd/5 -2 /dev/fd/50\"";
        assert_eq!(lines.restore_plain_line(line), "@PG\tID:bowtie2\tCL:\"bowtie2-align-s -p 2 -1 a -2 b\"");
    }

    #[test]
    fn an_identifier_is_given_once() {
        let header = rewrite_sam_header(b"@PG\tID:genuma\n", &InstanceAndPlainCommandLines::default(), &genuma());
        assert!(String::from_utf8_lossy(&header.text).contains("ID:genuma.1\tPN:genuma\tVN:1\tPP:genuma\t"));
    }
}
