//! CRAM headers are parsed as those of BAM: errors in lines that do not matter do not matter. The files are made by
//! samtools.

use crate::cram::{Sample, is_missing, reads, samtools, text};
use genuma_reads::{AlignedInput, AlignedOptions};

#[test]
fn headers_that_sam_forbids_are_read_as_in_bam() {
    if is_missing() {
        return;
    }
    let mut sample = Sample::new();
    sample.add_ordinary(40);
    let records = sample.sam.split_off(sample.sam.find("r1\t").expect("a record"));
    let sequences = sample.sam.split_once('\n').expect("a line").1.to_owned();
    for groups in [
        "@RG\tID:a\tSM:x\n@RG\tID:a\tSM:y\tPL:illumina\n@RG\tID:b\tSM:x\n",
        "@RG\tID:a\tSM:x\tPL:no such\n@CO\n@PG\tID:p\n@PG\tID:p\n",
    ] {
        sample.sam = format!("@HD\tVN:1\n{sequences}{groups}{records}");
        let (sam, bam) = (sample.folder.write("in.sam", &sample.sam), sample.folder.path().join("in.bam"));
        samtools(&["view", "-b", "-o", text(&bam), text(&sam)]).expect("BAM");
        let expected = reads(&bam, None).expect("BAM is read");
        let expected_header = AlignedInput::new(&bam, AlignedOptions::default()).read_header().expect("a header");
        for version in ["2.1", "3.0"] {
            let cram = sample.cram(&format!("version={version}"));
            assert_eq!(sample.read(&cram).as_ref(), Ok(&expected), "{version}");
            let header = AlignedInput::new(&cram, AlignedOptions::default()).read_header().expect("a header");
            assert_eq!(header.sample_names, expected_header.sample_names);
            assert_eq!(header.platforms, expected_header.platforms);
            let names = |header: &genuma_reads::AlignedHeader| {
                header.sequences.iter().map(|sequence| (sequence.name.clone(), sequence.length)).collect::<Vec<_>>()
            };
            assert_eq!(names(&header), names(&expected_header));
        }
    }
}
