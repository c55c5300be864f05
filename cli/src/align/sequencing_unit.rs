//! Derives ID, platform and platform unit of a read group from flowcell and lane in the read names.

use genuma_reads::{BatchLimits, Error, ReadBatch, ReadStream, StreamLane, StreamOptions};

/// Flowcell and lane in which reads were sequenced.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FlowcellLane {
    /// ID for a read group: flowcell and lane, or instrument and lane for older Illumina names.
    read_group_id: String,
    /// The ID, followed by the sample barcode if the comment in the read's header has one (SAM: PU).
    platform_unit: String,
    platform: &'static str,
}

impl FlowcellLane {
    /// Parses the header of a read, without `@`; `None` if its format is unknown. Known formats are Illumina's
    /// `instrument:run:flowcell:lane:tile:x:y` (further fields may follow) and `instrument:lane:tile:x:y`, and MGI's
    /// `flowcellL1C001R0010000001`. A comment `1:N:0:barcode` may follow after a blank.
    fn from_read_header(header: &str) -> Option<FlowcellLane> {
        let (name, comment) = header.split_once([' ', '\t']).unwrap_or((header, ""));
        let number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let fields: Vec<&str> = name.split(':').collect();
        let (id, platform) = match fields[..] {
            [_, run, flowcell, lane, tile, _, _, ..] if [run, lane, tile].into_iter().all(number) => {
                (format!("{flowcell}.{lane}"), "ILLUMINA")
            }
            [instrument, lane, tile, _, _] if number(lane) && number(tile) => {
                (format!("{instrument}.{lane}"), "ILLUMINA")
            }
            [name] => {
                let (flowcell, rest) = name.rsplit_once('C').and_then(|(before, _)| before.rsplit_once('L'))?;
                let known = number(rest) && flowcell.len() > 4 && number(flowcell.get(1..)?);
                (known.then(|| format!("{flowcell}.{rest}"))?, "DNBSEQ")
            }
            _ => return None,
        };
        let barcode = comment.split(':').nth(3).filter(|code| code.bytes().any(|b| b.is_ascii_alphabetic()));
        let barcode = barcode.and_then(|code| code.split_whitespace().next());
        let unit = barcode.map_or_else(|| id.clone(), |code| format!("{id}.{code}"));
        Some(FlowcellLane { read_group_id: id, platform_unit: unit, platform })
    }
}

/// Returns whether the fields of a read group (SAM: @RG) contain no ID.
pub(crate) fn lacks_read_group_id(fields: &str) -> bool {
    !fields.replace("\\t", "\t").split('\t').any(|field| field.starts_with("ID:"))
}

/// Returns the fields of a read group (SAM: @RG). Where ID, PL or PU are missing, they are derived from the name of the
/// lane's first read. `None` if the format of the read name is unknown, or if the lane has no reads.
///
/// # Errors
/// The reads cannot be read.
pub(crate) fn complete_read_group_from_read_name(fields: &str, lane: &StreamLane) -> Result<Option<String>, Error> {
    let Some(FlowcellLane { read_group_id: id, platform_unit: unit, platform }) =
        read_first_header(lane)?.as_deref().and_then(FlowcellLane::from_read_header)
    else {
        return Ok(None);
    };
    let given = fields.replace("\\t", "\t");
    let given = given.strip_prefix("@RG\t").unwrap_or(&given);
    let derived = [("ID", id.as_str()), ("PL", platform), ("PU", unit.as_str())];
    let lacking = derived.iter().filter(|(tag, _)| !given.split('\t').any(|f| f.starts_with(&format!("{tag}:"))));
    let lacking = lacking.map(|(tag, value)| format!("{tag}:{value}"));
    Ok(Some(lacking.chain(std::iter::once(given.to_owned())).collect::<Vec<_>>().join("\t")))
}

fn read_first_header(lane: &StreamLane) -> Result<Option<String>, Error> {
    let options = StreamOptions {
        batches_ahead: 1,
        uses_whole_header_as_name: true,
        ..StreamOptions::new(BatchLimits::with_reads_per_batch(1))
    };
    let (mut stream, mut batch) = (ReadStream::open(std::slice::from_ref(lane), options)?, ReadBatch::new());
    stream.fill_batch(&mut batch)?;
    Ok(batch.iter().next().map(|read| String::from_utf8_lossy(read.name).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_flowcell_and_lane() {
        let of = |header: &str| {
            FlowcellLane::from_read_header(header).map(|unit| (unit.read_group_id, unit.platform_unit, unit.platform))
        };
        let known = |id: &str, unit: &str, platform| Some((id.to_owned(), unit.to_owned(), platform));
        assert_eq!(
            of("A00123:45:HABCDXX:3:1101:1000:2000 1:N:0:ACGT+TTGA"),
            known("HABCDXX.3", "HABCDXX.3.ACGT+TTGA", "ILLUMINA")
        );
        assert_eq!(of("A00123:45:HABCDXX:3:1101:1000:2000:UMI"), known("HABCDXX.3", "HABCDXX.3", "ILLUMINA"));
        assert_eq!(of("A1:45:H:3:1101:1:2 1:N:0:1"), known("H.3", "H.3", "ILLUMINA"));
        assert_eq!(of("HWUSI-EAS100R:6:73:941:1973#0/1"), known("HWUSI-EAS100R.6", "HWUSI-EAS100R.6", "ILLUMINA"));
        assert_eq!(of("V300012345L2C001R0010000001/1"), known("V300012345.2", "V300012345.2", "DNBSEQ"));
        for header in ["", "SRR001.1 1 length=76", "read7", "LC", "t:n:1", "a:b:c:d:e:f:g", "CLASSIC"] {
            assert_eq!(of(header), None, "{header}");
        }
    }

    #[test]
    fn what_is_given_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("reads.fq");
        std::fs::write(&path, "@A:1:F:2:1101:1:1 1:N:0:AC\nA\n+\nI\n").unwrap();
        let lane = StreamLane::Single(path.clone());
        assert!(lacks_read_group_id("SM:me\\tLB:one") && !lacks_read_group_id("SM:me\\tID:x"));
        assert_eq!(
            complete_read_group_from_read_name("SM:me", &lane).unwrap().as_deref(),
            Some("ID:F.2\tPL:ILLUMINA\tPU:F.2.AC\tSM:me")
        );
        assert_eq!(
            complete_read_group_from_read_name("@RG\\tPL:OTHER\\tSM:me", &lane).unwrap().as_deref(),
            Some("ID:F.2\tPU:F.2.AC\tPL:OTHER\tSM:me")
        );
        std::fs::write(&path, "@read\nA\n+\nI\n").unwrap();
        assert_eq!(complete_read_group_from_read_name("SM:me", &lane).unwrap(), None);
    }
}
