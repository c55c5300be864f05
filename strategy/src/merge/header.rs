//! Headers of SAM: the aligner's own, with the command line of the plain run, and one more `@PG`.

/// What a program says of itself in a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// Its name, which is its identifier as well.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its command line.
    pub line: String,
}

/// The words of two command lines, that of an instance and that of the plain run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Lines {
    /// That of an instance.
    pub instance: Vec<String>,
    /// That of the plain run.
    pub plain: Vec<String>,
    /// What the instance's files of reads are in the plain run.
    pub reads: Vec<(String, String)>,
}

impl Lines {
    /// `line` of a header as the plain run would have it. Where the aligner has changed the order of its words, only the names of the
    /// files of reads are put back.
    fn plain(&self, line: &str) -> String {
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

/// What stands before the records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Header {
    /// What is written.
    pub text: Vec<u8>,
    /// What must be the same of all instances.
    pub common: Vec<u8>,
}

/// The header to write, from one that an instance wrote.
pub(crate) fn sam_header(text: &[u8], lines: &Lines, genuma: &Program) -> Header {
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
            out += &lines.plain(line);
        } else {
            common.extend_from_slice(line.as_bytes());
            common.push(b'\n');
            out += line;
        }
        out.push('\n');
    }
    let Program { name, version, line } = genuma;
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
    Header { text: out.into_bytes(), common }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    fn genuma() -> Program {
        Program { name: "genuma".to_owned(), version: "1".to_owned(), line: "genuma run -- bwa".to_owned() }
    }

    #[test]
    fn the_aligners_line_is_that_of_the_plain_run() {
        let lines = Lines {
            instance: words("bwa mem -t 2 -K 40 ref /dev/fd/5 /dev/fd/6"),
            plain: words("bwa mem -t 4 ref a b"),
            reads: vec![],
        };
        let header = sam_header(
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
        let lines = Lines {
            instance: words("bowtie2 -1 /dev/fd/5 -2 /dev/fd/50 -p 2"),
            plain: words("bowtie2 -1 a -2 b -p 4"),
            reads: vec![("/dev/fd/5".to_owned(), "a".to_owned()), ("/dev/fd/50".to_owned(), "b".to_owned())],
        };
        let line = "@PG\tID:bowtie2\tCL:\"bowtie2-align-s -p 2 -1 /dev/fd/5 -2 /dev/fd/50\"";
        assert_eq!(lines.plain(line), "@PG\tID:bowtie2\tCL:\"bowtie2-align-s -p 2 -1 a -2 b\"");
    }

    #[test]
    fn an_identifier_is_given_once() {
        let header = sam_header(b"@PG\tID:genuma\n", &Lines::default(), &genuma());
        assert!(String::from_utf8_lossy(&header.text).contains("ID:genuma.1\tPN:genuma\tVN:1\tPP:genuma\t"));
    }
}
