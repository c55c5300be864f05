//! Reads the output of a task of a distributed call: the result is what was stored, or an error, whatever the object.
#![no_main]

use std::fs;
use std::ops::Range;
use std::sync::OnceLock;

use genuma_storage::RunStore;
use genuma_storage::step_output::{StepOutput, StepOutputId};
use genuma_work::cost::UnitCost;
use libfuzzer_sys::fuzz_target;
use twox_hash::XxHash3_64;

/// Content similar to that of objects: text, bytes, numbers, nested lists.
type Content = Vec<(String, Vec<u8>, Option<u64>, [Vec<u32>; 2], f64)>;
/// Step, fingerprint, cost, range of the value, checksum of the value.
type Trailer<'a> = (&'a str, &'a str, UnitCost, Range<u64>, u64);

const TASK: StepOutputId<'static> = StepOutputId { step: "scatter 1", name: "scatter-1", fingerprint: "k 31" };

fn store() -> &'static RunStore {
    static STORE: OnceLock<RunStore> = OnceLock::new();
    STORE.get_or_init(|| {
        let folder = format!("/dev/shm/genuma-fuzz-{}-object", std::process::id());
        fs::create_dir_all(&folder).expect("a folder");
        RunStore::open(&folder, &std::env::temp_dir()).expect("a folder")
    })
}

/// Returns the object with these data blocks and this trailer, with a valid checksum of the trailer.
fn with_footer(mut object: Vec<u8>, trailer: &[u8]) -> Vec<u8> {
    object.extend(trailer);
    object.extend((trailer.len() as u64).to_le_bytes());
    object.extend(XxHash3_64::oneshot(trailer).to_le_bytes());
    object.extend(b"GENUMAO4");
    object
}

// The first byte selects whether the rest is a whole object, a trailer, or a value.
fuzz_target!(|input: &[u8]| {
    let &[how, ref bytes @ ..] = input else { return };
    let object = match how & 3 {
        0 => bytes.to_vec(),
        1 => with_footer(Vec::new(), bytes),
        _ => {
            let cost = UnitCost { name: "scatter".to_owned(), wall_s: 1.0, cpu_s: 1.0, peak_bytes: 1, resumed: false };
            let end = bytes.len() as u64;
            let start = u64::from(how >> 2).min(end);
            let checksum = XxHash3_64::oneshot(&bytes[start as usize..]);
            let trailer: Trailer = (TASK.step, TASK.fingerprint, cost, start..end, checksum);
            with_footer(bytes.to_vec(), &postcard::to_stdvec(&trailer).expect("memory"))
        }
    };
    let path = format!("{}/{}", store(), TASK.name);
    fs::write(&path, object).expect("a file");
    let Ok(Some(output)) = StepOutput::find_step_output(store(), &TASK) else { return };
    let Ok(content) = output.read_value::<Content>() else { return };
    let stored = postcard::to_stdvec(&content).expect("memory");
    let again: Content = postcard::from_bytes(&stored).expect("what was stored");
    assert_eq!(format!("{content:?}"), format!("{again:?}"));
});
