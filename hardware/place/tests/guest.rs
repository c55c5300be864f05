//! The C program of `c_programs.rs` in a guest of four nodes: bound, interleaved, weighted and replicated memory is on the
//! requested nodes, and where the kernel forbids placement, the return codes report it.

mod compiler;
#[path = "../../machine/tests/guest/mod.rs"]
mod guest;

use std::path::Path;

use compiler::{Linking, compile, is_installed};
use guest::Guest;

#[test]
fn a_c_program_places_memory_on_four_nodes() {
    const TEST: &str = "a_c_program_places_memory_on_four_nodes";
    if !is_installed(TEST, "cc") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/program.c");
    let program = compile(&source, folder.path(), Linking::Static);
    let guest = Guest { nodes: 4, cpus: 1, memory: 192, more: &[] };
    let command = format!("./{} nodes", program.file_name().expect("a name").to_string_lossy());
    let Some(outcome) = guest.run(TEST, &[&program], &command) else { return };
    assert_eq!((outcome.output.trim(), outcome.status), ("all checks hold on 4 nodes", 0));
}
