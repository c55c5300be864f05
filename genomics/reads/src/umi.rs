//! Unique molecular identifiers (UMIs) at the end of read names. UMIs of tags and of bases are appended to the names,
//! so that all later stages find a UMI in one place.
//!
//! | source | end of the name |
//! |---|---|
//! | name of BCL Convert, fastp, UMI-tools | `:ACGT`, `:ACGT+TTGC`, `_ACGT_TTGC` |
//! | tag `RX`, bases of the reads | `:ACGT-TTGC` |
//! | tag `MI` | `:mi=123` |

use twox_hash::XxHash3_64;

use crate::dna::encode_base;

/// Minimum total number of UMI bases of a pair. Chosen: a shorter suffix of a name may be other information.
pub const MIN_UMI_BASES: usize = 4;
/// Maximum total number of UMI bases of a pair that a UMI key holds. Further bases are ignored.
const MAX_UMI_BASES: usize = 31;
/// Text in a read name before the molecule identifier.
const MOLECULE_ID_MARK: &[u8] = b":mi=";
/// Bit that is set in the keys of molecule identifiers and not set in the keys of UMI bases.
const MOLECULE_ID_KEY: u64 = 1 << 63;

/// Key of the UMIs in a read name: their bases at two bits each (N as A), after a leading 1. The same for both strands
/// of a duplex, whose two UMIs are swapped. The key of a molecule identifier is a hash with the highest bit set. 0 if
/// the name has neither a UMI nor a molecule identifier.
///
/// The UMI is the last field of the name, after `:` or `_`, if it has only the letters A, C, G, T and N, at least
/// [`MIN_UMI_BASES`]. Two UMIs are separated by `+` or `-`, or are the last two fields, equally long, after `_`.
pub fn umi_key_of_name(name: &[u8]) -> u64 {
    if let Some(at) = memchr::memmem::rfind(name, MOLECULE_ID_MARK) {
        return MOLECULE_ID_KEY | XxHash3_64::oneshot(&name[at + MOLECULE_ID_MARK.len()..]) >> 1;
    }
    let mut fields = name.rsplit(|letter| b":_".contains(letter));
    let [last, before] = [fields.next(), fields.next()].map(Option::unwrap_or_default);
    if last.len() == name.len() {
        return 0;
    }
    let has_two_fields = before.len() == last.len() && name[name.len() - last.len() - 1] == b'_' && is_bases(before);
    if has_two_fields { key_of_two_umis(before, last) } else { umi_key(last) }
}

/// Number of bases of the UMIs of a key; 0 if it is the key of a molecule identifier, or 0 (no UMI).
fn num_umi_bases(key: u64) -> u32 {
    if key & MOLECULE_ID_KEY == 0 { key.checked_ilog2().map_or(0, |bits| bits / 2) } else { 0 }
}

/// Whether two keys are equal, or those of UMIs that differ in one base.
pub fn are_similar_umi_keys(a: u64, b: u64) -> bool {
    /// The lower bit of each base.
    const LOWER_BITS: u64 = 0x5555_5555_5555_5555;
    if a == b || num_umi_bases(a) == 0 || num_umi_bases(a) != num_umi_bases(b) {
        return a == b;
    }
    let differing = a ^ b;
    ((differing | differing >> 1) & LOWER_BITS).count_ones() == 1
}

/// The two halves of the UMIs of a key, by which similar ones are found: UMIs that differ in one base have one half in
/// common. Only `key` itself if it is that of a molecule identifier, or 0 (no UMI).
pub fn halves_of_umi_key(key: u64) -> impl Iterator<Item = u64> {
    let half_bits = num_umi_bases(key) / 2 * 2;
    let halves = [(key >> half_bits) << 1, (key & ((1 << half_bits) - 1)) << 1 | 1];
    let (halves, whole) = if num_umi_bases(key) > 0 { (Some(halves), None) } else { (None, Some(key)) };
    halves.into_iter().flatten().chain(whole)
}

fn is_bases(letters: &[u8]) -> bool {
    letters.iter().all(|letter| b"ACGTN".contains(letter))
}

/// Key of one UMI, or of two separated by `+` or `-`; 0 if the text is not a UMI.
fn umi_key(text: &[u8]) -> u64 {
    match text.iter().position(|letter| b"+-".contains(letter)) {
        Some(at) => key_of_two_umis(&text[..at], &text[at + 1..]),
        None => key_of_two_umis(text, &[]),
    }
}

fn key_of_two_umis(one: &[u8], two: &[u8]) -> u64 {
    if one.len() + two.len() < MIN_UMI_BASES || !is_bases(one) || !is_bases(two) {
        return 0;
    }
    let bases = one.min(two).iter().chain(one.max(two)).take(MAX_UMI_BASES);
    bases.fold(1, |key, &base| key << 2 | u64::from(encode_base(base) & 3))
}

/// UMI or molecule identifier of a read, from the tags `RX` and `MI` of its record.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum UmiOrMoleculeId<'a> {
    /// Neither a UMI nor a molecule identifier.
    #[default]
    Missing,
    /// Value of `RX`: the bases of one UMI, or of two with a hyphen.
    Bases(&'a [u8]),
    /// Value of `MI` without the strand: the identifier of the molecule, unique in its file.
    MoleculeId(&'a [u8]),
}

impl<'a> UmiOrMoleculeId<'a> {
    /// Chooses between the values of `RX` and `MI` (SAM tags specification, section 1.3). `MI` is the result of
    /// grouping, so it has precedence. A final `/A` or `/B` is the strand of a duplex and is not part of the molecule.
    /// A value of `RX` that is not a UMI (see [`umi_key_of_name`]) is ignored.
    pub(crate) fn choose_from_rx_and_mi(rx: Option<&'a [u8]>, mi: Option<&'a [u8]>) -> UmiOrMoleculeId<'a> {
        let molecule = mi.map(|id| id.strip_suffix(b"/A").or_else(|| id.strip_suffix(b"/B")).unwrap_or(id));
        match (molecule.filter(|id| !id.is_empty()), rx.filter(|bases| umi_key(bases) != 0)) {
            (Some(id), _) => UmiOrMoleculeId::MoleculeId(id),
            (None, Some(bases)) => UmiOrMoleculeId::Bases(bases),
            (None, None) => UmiOrMoleculeId::Missing,
        }
    }

    /// The end of the read name for this UMI, in two parts; both are empty if there is no UMI.
    pub(crate) fn read_name_suffix(self) -> [&'a [u8]; 2] {
        match self {
            UmiOrMoleculeId::Missing => [&[], &[]],
            UmiOrMoleculeId::Bases(bases) => [b":", bases],
            UmiOrMoleculeId::MoleculeId(id) => [MOLECULE_ID_MARK, id],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The key `key` itself, then the keys of all UMIs that differ from its UMI in one base.
    fn similar_umi_keys(key: u64) -> impl Iterator<Item = u64> {
        let other_bases = move |at: u32| (1..4).map(move |change| key ^ (change << (2 * at)));
        std::iter::once(key).chain((0..num_umi_bases(key)).flat_map(other_bases))
    }

    #[test]
    fn keys_tell_umis_apart_and_not_the_strands_of_a_duplex() {
        let names: [&[u8]; 4] =
            [b"A00:1:FC:1:1101:5:6:ACGTAC+TTGCAA", b"r_TTGCAA-ACGTAC", b"x:1_ACGTAC_TTGCAA", b"x:ACGTAC+TTGC"];
        let [one, swapped, fields, other] = names.map(umi_key_of_name);
        assert!(one == swapped && one == fields && one != other && one != 0);
        for without in [&b"A00:1:FC:1:1101:5:6"[..], b"sim:tumor:12:ACG", b"ACGT", b"x:", b"x:A+CC", b""] {
            assert_eq!(umi_key_of_name(without), 0);
        }
        assert_eq!(similar_umi_keys(0).collect::<Vec<_>>(), [0]);
        let own = umi_key_of_name(b"a:ACGT");
        let similar: Vec<u64> = similar_umi_keys(own).collect();
        assert_eq!((similar.len(), similar[0]), (13, own));
        assert!(similar.contains(&umi_key_of_name(b"a:ACTT")) && !similar.contains(&umi_key_of_name(b"a:AATT")));
    }

    #[test]
    fn similar_umis_have_one_half_in_common() {
        let key = |name: &str| umi_key_of_name(format!("a:{name}").as_bytes());
        for (a, b, is_similar) in [
            ("ACGT+TTTT", "ACGT+TTTT", true),
            ("ACGT+TTTT", "ACGT+TTTA", true),
            ("CCGT+TTTT", "CCGT+TTAA", false),
            ("ACGTACG", "ACGTACT", true),
            ("ACGTACG", "TCGTACG", true),
            ("AAAA", "AAAAA", false),
            ("mi=1", "mi=2", false),
            ("mi=1", "mi=1", true),
        ] {
            let [a, b] = [a, b].map(key);
            assert_eq!(are_similar_umi_keys(a, b), is_similar);
            assert_eq!(are_similar_umi_keys(a, b), similar_umi_keys(a).any(|similar| similar == b));
            assert!(!is_similar || halves_of_umi_key(a).any(|half| halves_of_umi_key(b).any(|other| half == other)));
        }
        assert!(are_similar_umi_keys(0, 0) && !are_similar_umi_keys(0, key("ACGT")) && halves_of_umi_key(0).eq([0]));
    }

    #[test]
    fn tags_become_the_end_of_the_name() {
        let name = |rx: Option<&str>, mi: Option<&str>| {
            let tag = UmiOrMoleculeId::choose_from_rx_and_mi(rx.map(str::as_bytes), mi.map(str::as_bytes));
            [&b"r1"[..], &tag.read_name_suffix().concat()].concat()
        };
        assert_eq!(name(None, None), b"r1");
        assert_eq!(name(Some("ACG-TTT"), None), b"r1:ACG-TTT");
        assert_eq!(umi_key_of_name(&name(Some("ACG-TTT"), None)), umi_key_of_name(b"x:TTT+ACG"));
        // Too short, and no bases.
        assert_eq!((name(Some("ACG"), None), name(Some("12345"), None)), (b"r1".to_vec(), b"r1".to_vec()));
        // Identifiers of molecules: equal for both strands, and neighbouring numbers are not similar.
        let key = |id: &str| umi_key_of_name(&name(Some("ACGT"), Some(id)));
        assert_eq!(name(Some("ACGT"), Some("7/A")), b"r1:mi=7");
        assert!(key("7/A") == key("7/B") && key("7") != key("8") && key("chr1:5/ACGT") != key("chr2:5/ACGT"));
        assert_eq!(similar_umi_keys(key("7")).collect::<Vec<_>>(), [key("7")]);
    }
}
