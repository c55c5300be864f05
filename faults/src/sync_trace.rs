//! Checks the order of writes, syncs and renames of a run: a file gets its final name after its content was synced
//! (fsync), and its folder is synced afterwards.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Finds the first result whose publication a power loss could undo or spoil, and says why. `trace` has a line for each
/// call, as the shim writes it; `results` are the paths of all results.
///
/// Other names than those of results, such as temporary names, may be given to files that are not synced.
pub(crate) fn find_unsynced_publication(trace: &str, results: &BTreeSet<PathBuf>) -> Option<String> {
    // Whether a file was synced after the last write to it.
    let mut is_synced: BTreeMap<&str, bool> = BTreeMap::new();
    let mut published: BTreeSet<&Path> = BTreeSet::new();
    let mut unsynced_folders: BTreeMap<&Path, &str> = BTreeMap::new();
    for line in trace.lines() {
        match line.split('\t').collect::<Vec<_>>()[..] {
            ["write", path] => {
                is_synced.insert(path, false);
            }
            ["sync", path] => {
                is_synced.insert(path, true);
                unsynced_folders.remove(Path::new(path));
            }
            ["rename" | "link", from, to] => {
                let synced = is_synced.get(from).copied().unwrap_or(false);
                is_synced.insert(to, synced);
                let target = Path::new(to);
                if !results.contains(target) {
                    continue;
                }
                if !synced {
                    return Some(format!("{to} was published before it was synced"));
                }
                published.insert(target);
                unsynced_folders.extend(target.parent().map(|folder| (folder, to)));
            }
            _ => return Some(format!("the trace has the line '{line}'")),
        }
    }
    if let Some((folder, file)) = unsynced_folders.first_key_value() {
        return Some(format!("{} was not synced after {file} was published", folder.display()));
    }
    let other = results.iter().find(|path| !published.contains(path.as_path()))?;
    Some(format!("{} was not published by a rename or a link", other.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: [&str; 6] = [
        "write\t/out/.x.partial",
        "write\t/out/.x.partial",
        "sync\t/out/.x.partial",
        "rename\t/out/.x.partial\t/out/.x.draft",
        "link\t/out/.x.draft\t/out/x",
        "sync\t/out",
    ];

    fn verdict(lines: &[&str]) -> Option<String> {
        find_unsynced_publication(&lines.join("\n"), &BTreeSet::from(["/out/x".into()]))
    }

    #[test]
    fn each_missing_or_early_sync_is_found() {
        assert_eq!(verdict(&TRACE), None);
        let without = |i: usize| [&TRACE[..i], &TRACE[i + 1..]].concat();
        assert_eq!(verdict(&without(2)).as_deref(), Some("/out/x was published before it was synced"));
        assert_eq!(verdict(&without(4)).as_deref(), Some("/out/x was not published by a rename or a link"));
        assert_eq!(verdict(&without(5)).as_deref(), Some("/out was not synced after /out/x was published"));
        let [first, second, sync, ..] = TRACE;
        let early = [&[first, sync, second], &TRACE[3..]].concat();
        assert_eq!(verdict(&early).as_deref(), Some("/out/x was published before it was synced"));
        // The folder must be synced after the last new name in it.
        let moved = [&TRACE[..4], &[TRACE[5], TRACE[4]]].concat();
        assert_eq!(verdict(&moved).as_deref(), Some("/out was not synced after /out/x was published"));
    }
}
