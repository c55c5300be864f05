//! Tags of BAM and CRAM records, encoded as in BAM (SAM specification, section 4.2.4), and carried tags: tags of the
//! input that are copied to the records of an aligner.

use std::ops::Range;

use crate::dna::complement_iupac;
use crate::error::RecordFault;

/// Tags that an aligner writes itself, or that describe another field of the record. They cannot be carried.
const WRITTEN_TAGS: [&[u8; 2]; 12] =
    [b"NM", b"MD", b"MC", b"MQ", b"AS", b"XS", b"SA", b"XA", b"pa", b"ms", b"RG", b"CG"];
/// Further tags of the SAM tags specification that describe the alignment of the input or refer to its header. They
/// are carried only if the user names them.
const ALIGNMENT_TAGS: [&[u8; 2]; 20] = [
    b"AM", b"BQ", b"CC", b"CM", b"CP", b"H0", b"H1", b"H2", b"HI", b"IH", b"LB", b"NH", b"OC", b"OP", b"PG", b"PQ",
    b"PT", b"PU", b"SM", b"UQ",
];
/// Tags whose value has one element for each base, in the order of `SEQ`: original and second qualities (as in Picard
/// MergeBamAlignment), offsets of base alignment qualities, and depths, errors and qualities of the consensus reads of
/// fgbio. They are reversed in records on the reverse strand.
const REVERSED_TAGS: [&[u8; 2]; 11] = [b"OQ", b"U2", b"BQ", b"cd", b"ce", b"ad", b"ae", b"bd", b"be", b"aq", b"bq"];
/// Tags whose value has one base for each base of `SEQ`, on its strand: second bases (as in Picard MergeBamAlignment)
/// and consensus bases of fgbio. They are reverse-complemented in records on the reverse strand.
const COMPLEMENTED_TAGS: [&[u8; 2]; 4] = [b"E2", b"SQ", b"ac", b"bc"];
/// Tags of base modifications. They refer to the whole read as it was sequenced (SAM tags specification, section 1.7),
/// so a record with only a part of the bases cannot have them.
const WHOLE_READ_TAGS: [&[u8; 2]; 5] = [b"MM", b"ML", b"MN", b"Mm", b"Ml"];

/// A tag as it is encoded in a BAM record: name, type, value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BamTag<'a>(&'a [u8]);

/// Error: the bytes of a record's tags are not valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidTags;

impl From<InvalidTags> for RecordFault {
    fn from(_: InvalidTags) -> RecordFault {
        RecordFault::RecordCorrupt("its tags are not valid")
    }
}

/// Iterates over the tags in the bytes of a record. The first tag that is not valid gives an error, the last item.
#[derive(Debug, Clone)]
pub struct BamTagIter<'a>(&'a [u8]);

impl<'a> BamTagIter<'a> {
    /// Creates the iterator. `bytes` are the tags of one record and nothing else.
    pub fn from_tag_bytes(bytes: &'a [u8]) -> BamTagIter<'a> {
        BamTagIter(bytes)
    }
}

impl<'a> Iterator for BamTagIter<'a> {
    type Item = Result<BamTag<'a>, InvalidTags>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let whole = tag_bytes(self.0).filter(|bytes| *bytes <= self.0.len());
        let (tag, rest) = self.0.split_at(whole.unwrap_or_default());
        self.0 = if whole.is_some() { rest } else { &[] };
        Some(whole.map(|_| BamTag(tag)).ok_or(InvalidTags))
    }
}

/// Size in bytes of the first tag in `tags`; `None` if its type is not valid or a part of its value is missing.
fn tag_bytes(tags: &[u8]) -> Option<usize> {
    let (name_and_type, value) = tags.split_first_chunk::<3>()?;
    let value_bytes = match name_and_type[2] {
        b'Z' | b'H' => memchr::memchr(0, value)? + 1,
        b'B' => {
            let ([kind, count @ ..], _) = value.split_first_chunk::<5>()?;
            number_bytes(*kind)? * u32::from_le_bytes(*count) as usize + 5
        }
        b'A' => 1,
        kind => number_bytes(kind)?,
    };
    Some(name_and_type.len() + value_bytes)
}

/// Size in bytes of a number of BAM type `kind`; `None` for other types.
fn number_bytes(kind: u8) -> Option<usize> {
    match kind {
        b'c' | b'C' => Some(1),
        b's' | b'S' => Some(2),
        b'i' | b'I' | b'f' => Some(4),
        _ => None,
    }
}

impl<'a> BamTag<'a> {
    /// Name and type, for example `RXZ`.
    pub(crate) fn name_and_type(self) -> [u8; 3] {
        [self.0[0], self.0[1], self.0[2]]
    }

    /// The name, for example `RX`.
    pub fn name(self) -> [u8; 2] {
        [self.0[0], self.0[1]]
    }

    /// Type and value, as encoded in BAM.
    pub fn typed_value(self) -> &'a [u8] {
        &self.0[2..]
    }

    /// Size of the tag in bytes, with name and type.
    pub(crate) fn len_bytes(self) -> usize {
        self.0.len()
    }

    /// The elements of an array or the characters of a text, and the size in bytes of each; `None` for other types.
    fn elements(self) -> Option<(&'a [u8], usize)> {
        match self.0[2] {
            b'B' => Some((&self.0[8..], number_bytes(self.0[3])?)),
            b'Z' => Some((&self.0[3..self.0.len() - 1], 1)),
            _ => None,
        }
    }

    /// Why SAM and CRAM cannot represent the tag; `None` if they can. For example, tabs separate the tags of SAM lines
    /// and the text tags of CRAM blocks.
    fn invalid_part(self) -> Option<&'static str> {
        let letters = match self.0[2] {
            b'A' => &self.0[3..],
            b'Z' | b'H' => &self.0[3..self.0.len() - 1],
            _ => &[],
        };
        if !is_tag_name(self.name()) {
            Some("has a name that is not a letter followed by a letter or digit")
        } else if letters.iter().any(|letter| matches!(letter, b'\t' | b'\n' | b'\r')) {
            Some("contains a tab or line break")
        } else if letters.iter().any(|letter| *letter < b' ') {
            Some("contains a control character")
        } else {
            None
        }
    }
}

/// Strand of an input record, and whether it lacks bases of its read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RecordStrandAndClipping {
    pub(crate) is_reverse: bool,
    /// Whether the record is hard-clipped, so that it lacks bases of its read.
    pub(crate) is_hard_clipped: bool,
}

/// How the value of a tag depends on the strand of its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ValueOrder {
    /// The value is the same on both strands.
    Independent,
    /// The elements are in the order of `SEQ`, so that they are reversed on the reverse strand.
    Reversed,
    /// The elements are bases on the strand of `SEQ`, so that they are reverse-complemented on the reverse strand.
    Complemented,
}

/// Which tags of BAM and CRAM records are copied to the records of an aligner, and how their values depend on the
/// strand.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CarriedTags {
    /// Names of the tags; `None` for all tags that neither an aligner writes nor describe an alignment.
    names: Option<Vec<[u8; 2]>>,
    /// Tags that the user lists as reversed, in addition to [`REVERSED_TAGS`]. `complemented` are those that the user
    /// lists as reverse-complemented.
    reversed: Vec<[u8; 2]>,
    complemented: Vec<[u8; 2]>,
}

impl CarriedTags {
    /// All tags except those that an aligner writes itself or that describe the alignment of the input.
    pub fn all_but_aligner_tags() -> CarriedTags {
        CarriedTags::default()
    }

    /// Parses a list of tags such as `RX,QX`, or `all`.
    ///
    /// # Errors
    /// An item is not a tag name, or is a tag that an aligner writes itself.
    pub fn parse_tag_list(list: &str) -> Result<CarriedTags, String> {
        if list == "all" {
            return Ok(CarriedTags::all_but_aligner_tags());
        }
        let names: Vec<_> = list.split(',').map(parse_tag_name).collect::<Result<_, _>>()?;
        if let Some(name) = names.iter().find(|name| WRITTEN_TAGS.contains(name)) {
            let name = String::from_utf8_lossy(name);
            return Err(format!("'{name}' cannot be carried, because the records have a {name} of their own"));
        }
        Ok(CarriedTags { names: Some(names), ..CarriedTags::default() })
    }

    /// Adds tags whose values are reversed, and tags whose values are reverse-complemented, in records on the reverse
    /// strand.
    ///
    /// # Errors
    /// A tag is in both lists, is not carried, or is a tag of base modifications, whose value is the same on both
    /// strands.
    pub fn with_strand_dependent_tags(
        self,
        reversed: Vec<[u8; 2]>,
        complemented: Vec<[u8; 2]>,
    ) -> Result<CarriedTags, String> {
        for tag in reversed.iter().chain(&complemented) {
            let name = String::from_utf8_lossy(tag);
            if WHOLE_READ_TAGS.contains(&tag) {
                return Err(format!("'{name}' stays as sequenced on both strands: it cannot be reversed"));
            }
            if !self.contains(*tag) {
                return Err(format!("'{name}' is not carried: add it to the tags that are"));
            }
            if reversed.contains(tag) && complemented.contains(tag) {
                return Err(format!("'{name}' is either reversed or reverse-complemented, not both"));
            }
        }
        Ok(CarriedTags { reversed, complemented, ..self })
    }

    /// Whether a tag is carried.
    fn contains(&self, name: [u8; 2]) -> bool {
        match &self.names {
            Some(names) => names.contains(&name),
            None => !WRITTEN_TAGS.contains(&&name) && !ALIGNMENT_TAGS.contains(&&name),
        }
    }

    fn order(&self, name: [u8; 2]) -> ValueOrder {
        // The lists of the caller come first.
        if self.complemented.contains(&name) {
            ValueOrder::Complemented
        } else if self.reversed.contains(&name) {
            ValueOrder::Reversed
        } else if COMPLEMENTED_TAGS.contains(&&name) {
            ValueOrder::Complemented
        } else if REVERSED_TAGS.contains(&&name) {
            ValueOrder::Reversed
        } else {
            ValueOrder::Independent
        }
    }

    /// Checks that the tags of a record are valid, and that SAM, BAM and CRAM can represent those that are carried.
    ///
    /// # Errors
    /// The first tag for which this is not true.
    pub(crate) fn check_tags_of_record(&self, tags: &[u8]) -> Result<(), RecordFault> {
        for tag in BamTagIter::from_tag_bytes(tags) {
            let tag = tag?;
            if let Some(reason) = tag.invalid_part().filter(|_| self.contains(tag.name())) {
                return Err(RecordFault::InvalidTag { tag: tag.name().escape_ascii().to_string(), reason });
            }
        }
        Ok(())
    }

    /// Appends the carried tags of a record to `out`, with values in the order of sequencing.
    /// [`CarriedTags::check_tags_of_record`] must have accepted the tags.
    ///
    /// Tags of base modifications of a hard-clipped record are left out, because the record lacks bases of its read.
    pub(crate) fn append_tags_as_sequenced(&self, tags: &[u8], strand: RecordStrandAndClipping, out: &mut Vec<u8>) {
        for tag in BamTagIter::from_tag_bytes(tags).map_while(Result::ok).filter(|tag| self.contains(tag.name())) {
            if !(strand.is_hard_clipped && WHOLE_READ_TAGS.contains(&&tag.name())) {
                self.append_tag(tag, strand.is_reverse, None, out);
            }
        }
    }

    /// Appends the tags of a read of `read_length` bases, whose values are in the order of sequencing, to a record
    /// (`out`) that has the bases `bases` of the read. `reverse` is whether the record is on the reverse strand.
    ///
    /// Of a value with an element for each base, only the elements of `bases` are written (all, if there are not as
    /// many as bases of the read); a record without bases does not get such a tag. A record with only a part of the
    /// bases gets no tags of base modifications, which refer to all bases.
    pub fn append_tags_for_record(
        &self,
        tags: &[u8],
        read_length: usize,
        bases: Range<usize>,
        reverse: bool,
        out: &mut Vec<u8>,
    ) {
        for tag in BamTagIter::from_tag_bytes(tags).map_while(Result::ok) {
            let is_part = bases.len() < read_length;
            if is_part && WHOLE_READ_TAGS.contains(&&tag.name()) {
                continue;
            }
            self.append_tag(tag, reverse, is_part.then_some((read_length, &bases)), out);
        }
    }

    /// Appends a tag, with its elements reversed (or reverse-complemented) if `reverse`. `part` is the length of the
    /// read and the range of bases whose elements are written; `None` writes all.
    fn append_tag(&self, tag: BamTag<'_>, reverse: bool, part: Option<(usize, &Range<usize>)>, out: &mut Vec<u8>) {
        let order = self.order(tag.name());
        let Some((elements, size)) = tag.elements().filter(|_| order != ValueOrder::Independent) else {
            return out.extend_from_slice(tag.0);
        };
        let shown = match part {
            Some((_, bases)) if bases.is_empty() => return,
            Some((length, bases)) if elements.len() == length * size => &elements[size * bases.start..size * bases.end],
            _ => elements,
        };
        out.extend_from_slice(&tag.0[..3]);
        if tag.0[2] == b'B' {
            out.push(tag.0[3]);
            out.extend_from_slice(&((shown.len() / size) as u32).to_le_bytes());
        }
        match (reverse, order, size) {
            (false, ..) => out.extend_from_slice(shown),
            (true, ValueOrder::Complemented, 1) => out.extend(shown.iter().rev().map(|&base| complement_iupac(base))),
            (true, ..) => shown.chunks_exact(size).rev().for_each(|element| out.extend_from_slice(element)),
        }
        if tag.0[2] == b'Z' {
            out.push(0);
        }
    }
}

fn is_tag_name([first, second]: [u8; 2]) -> bool {
    first.is_ascii_alphabetic() && second.is_ascii_alphanumeric()
}

/// Parses the name of a SAM tag, such as `RX`.
///
/// # Errors
/// The name is not a letter followed by a letter or digit.
pub fn parse_tag_name(name: &str) -> Result<[u8; 2], String> {
    match *name.as_bytes() {
        [a, b] if is_tag_name([a, b]) => Ok([a, b]),
        _ => Err(format!("'{name}' is not a tag: give names of two characters, such as RX,QX")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(name: &str, value: &str) -> Vec<u8> {
        [name.as_bytes(), b"Z", value.as_bytes(), b"\0"].concat()
    }

    fn array(name: &str, values: &[u16]) -> Vec<u8> {
        let count = (values.len() as u32).to_le_bytes();
        let values: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        [name.as_bytes(), b"BS", &count, &values].concat()
    }

    fn tags() -> Vec<u8> {
        let parts: [Vec<u8>; 8] = [
            text("RX", "ACGT-TTG"),
            text("RG", "lane"),
            b"NMC\x03".to_vec(),
            b"NHC\x02".to_vec(),
            text("MM", "C+m,1;"),
            text("OQ", "ABCD"),
            array("cd", &[1, 2, 3, 400]),
            text("ac", "AaCN"),
        ];
        parts.concat()
    }

    #[test]
    fn lists_choose_tags() {
        let carried = |list: &str| {
            let mut out = Vec::new();
            CarriedTags::parse_tag_list(list).unwrap().append_tags_as_sequenced(
                &tags(),
                RecordStrandAndClipping::default(),
                &mut out,
            );
            out
        };
        assert_eq!(carried("RX"), text("RX", "ACGT-TTG"));
        assert_eq!(carried("MM,NH,RX"), [text("RX", "ACGT-TTG"), b"NHC\x02".to_vec(), text("MM", "C+m,1;")].concat());
        let all: Vec<u8> = BamTagIter::from_tag_bytes(&carried("all")).flat_map(|tag| tag.unwrap().name()).collect();
        assert_eq!(all, b"RXMMOQcdac");
        for wrong in ["", "R", "RXX", "RX,", "1X", "RX QX", "R\u{e9}", "all,RX", "*"] {
            assert!(CarriedTags::parse_tag_list(wrong).unwrap_err().contains("is not a tag"), "{wrong}");
        }
        assert!(CarriedTags::parse_tag_list("RX,NM").unwrap_err().starts_with("'NM' cannot be carried"));
        let old_alignment = ["AM", "BQ", "LB", "OC", "OP", "PG", "PT", "PU", "SM"].map(|name| text(name, "x")).concat();
        let all_of = |list: &str, tags: &[u8]| {
            let mut out = Vec::new();
            CarriedTags::parse_tag_list(list).unwrap().append_tags_as_sequenced(
                tags,
                RecordStrandAndClipping::default(),
                &mut out,
            );
            out
        };
        assert_eq!(all_of("all", &old_alignment), b"");
        assert_eq!(all_of("SM", &old_alignment), text("SM", "x"));
    }

    #[test]
    fn lists_of_reversed_tags_must_agree() {
        let lists = |list: &str, reversed: &[&[u8; 2]], complemented: &[&[u8; 2]]| {
            let names = |tags: &[&[u8; 2]]| tags.iter().map(|tag| **tag).collect();
            CarriedTags::parse_tag_list(list).unwrap().with_strand_dependent_tags(names(reversed), names(complemented))
        };
        assert!(lists("xx,xy", &[b"xx"], &[b"xy"]).is_ok());
        assert!(lists("all", &[b"xx"], &[b"xy"]).is_ok());
        assert!(lists("xx,xy", &[b"xx"], &[b"xx"]).unwrap_err().contains("not both"));
        assert!(lists("xx", &[b"xy"], &[]).unwrap_err().starts_with("'xy' is not carried"));
        assert!(lists("all", &[], &[b"NM"]).unwrap_err().starts_with("'NM' is not carried"));
        assert!(lists("all", &[b"MM"], &[]).unwrap_err().starts_with("'MM' stays as sequenced"));
        // A list takes precedence over the built-in order.
        let carried = lists("all", &[b"E2"], &[]).unwrap();
        let mut out = Vec::new();
        carried.append_tags_for_record(&text("E2", "AC"), 2, 0..2, true, &mut out);
        assert_eq!(out, text("E2", "CA"));
    }

    #[test]
    fn carried_tags_that_no_record_can_hold_are_refused() {
        let fault = |list: &str, tags: &[u8]| {
            CarriedTags::parse_tag_list(list).unwrap().check_tags_of_record(tags).unwrap_err().to_string()
        };
        for value in ["a\tb", "a\nb", "\t", "b\r"] {
            let tags = [text("RX", "ACGT"), text("CO", value), text("QX", "FFFF")].concat();
            assert!(fault("all", &tags).starts_with("tag CO contains a tab or line break"), "{value:?}");
            assert!(fault("QX,CO", &tags).starts_with("tag CO contains a tab or line break"), "{value:?}");
            assert_eq!(CarriedTags::parse_tag_list("RX,QX").unwrap().check_tags_of_record(&tags), Ok(()));
        }
        assert!(fault("all", b"xhH1\tF\0").starts_with("tag xh contains a tab"));
        assert!(fault("all", b"xaA\n").starts_with("tag xa contains a tab"));
        assert!(fault("all", b"xaA\0").starts_with("tag xa contains a control character"));
        assert!(fault("all", &text("CO", "\x1b[1m")).starts_with("tag CO contains a control character"));
        for name in ["1X", "X_", "X\t", "\0X"] {
            assert!(fault("all", &text(name, "a")).contains("has a name that is not a letter"), "{name:?}");
        }
        assert_eq!(fault("all", b"RXZACGT"), RecordFault::from(InvalidTags).to_string());
        // Numbers have any bytes, and text has spaces and letters of other languages.
        let tags = [&array("cd", &[9, 10])[..], b"xiC\t", &text("CO", "caf\u{e9} 1~")].concat();
        assert_eq!(CarriedTags::all_but_aligner_tags().check_tags_of_record(&tags), Ok(()));
    }

    #[test]
    fn hard_clipped_records_give_no_base_modifications() {
        let mut out = Vec::new();
        let strand = RecordStrandAndClipping { is_reverse: true, is_hard_clipped: true };
        let tags =
            [text("MM", "C+m,1;"), b"MLBC\x01\0\0\0\x07".to_vec(), text("OQ", "ABC"), b"MNC\x04".to_vec()].concat();
        CarriedTags::all_but_aligner_tags().append_tags_as_sequenced(&tags, strand, &mut out);
        assert_eq!(out, text("OQ", "CBA"));
    }

    #[test]
    fn values_follow_the_bases() {
        let carried =
            CarriedTags::all_but_aligner_tags().with_strand_dependent_tags(vec![*b"xx"], vec![*b"xy"]).unwrap();
        let of_record = |tags: &[u8], length, bases, reverse| {
            let mut out = Vec::new();
            carried.append_tags_for_record(tags, length, bases, reverse, &mut out);
            out
        };
        let reversed = [text("OQ", "DCBA"), array("cd", &[400, 3, 2, 1]), text("ac", "NGtT")].concat();
        let forward = [text("OQ", "ABCD"), array("cd", &[1, 2, 3, 400]), text("ac", "AaCN")].concat();
        assert_eq!(of_record(&forward, 4, 0..4, false), forward);
        assert_eq!(of_record(&forward, 4, 0..4, true), reversed);
        let part = [text("OQ", "CB"), array("cd", &[3, 2]), text("ac", "Gt")].concat();
        assert_eq!(of_record(&forward, 4, 1..3, true), part);
        // Values of another length are not those of bases.
        assert_eq!(of_record(&text("OQ", "ABC"), 4, 1..3, false), text("OQ", "ABC"));
        // Without bases a record has no values of bases.
        let others = [text("RX", "AC"), b"NMC\x01".to_vec()].concat();
        let of_all = [forward.clone(), others.clone(), text("MM", "C+m,1;"), text("BQ", "@@@A")].concat();
        assert_eq!(of_record(&of_all, 4, 0..0, false), others);
        assert_eq!(of_record(&of_all, 4, 4..4, true), others);
        assert_eq!(of_record(&text("BQ", "@@@A"), 4, 0..4, true), text("BQ", "A@@@"));
        // A record on the reverse strand gives the values of the read, and base modifications stay.
        let mut sequenced = Vec::new();
        let strand = RecordStrandAndClipping { is_reverse: true, is_hard_clipped: false };
        carried.append_tags_as_sequenced(&[reversed, text("MM", "C+m,1;")].concat(), strand, &mut sequenced);
        assert_eq!(sequenced, [forward, text("MM", "C+m,1;")].concat());
        assert_eq!(of_record(&text("MM", "C+m,1;"), 4, 0..4, true), text("MM", "C+m,1;"));
        assert_eq!(of_record(&text("MM", "C+m,1;"), 4, 0..3, true), b"");
        let own = [text("xx", "12"), text("xy", "AC"), b"xzC\x01".to_vec()].concat();
        assert_eq!(of_record(&own, 4, 0..4, true), [text("xx", "21"), text("xy", "GT"), b"xzC\x01".to_vec()].concat());
    }

    #[test]
    fn invalid_tags_end_with_an_error() {
        let whole = tags();
        assert!(BamTagIter::from_tag_bytes(&whole).all(|tag| tag.is_ok()));
        assert_eq!(BamTagIter::from_tag_bytes(&whole).map(|tag| tag.unwrap().len_bytes()).sum::<usize>(), whole.len());
        let ends: Vec<usize> = BamTagIter::from_tag_bytes(&whole)
            .scan(0, |at, tag| {
                *at += tag.unwrap().len_bytes();
                Some(*at)
            })
            .collect();
        for cut in (1..whole.len()).filter(|cut| !ends.contains(cut)) {
            assert_eq!(BamTagIter::from_tag_bytes(&whole[..cut]).last(), Some(Err(InvalidTags)), "{cut}");
        }
        for kind in [b"XXQ\0", b"XXB\0"] {
            assert_eq!(BamTagIter::from_tag_bytes(kind).next(), Some(Err(InvalidTags)));
        }
    }
}
