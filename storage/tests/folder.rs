//! Depots that are folders.

mod common;

use std::fs::{self, File};
use std::path::Path;

use common::{entry, fetched, names, noise, put};
use genuma_storage::{Depot, Error};

fn depot(folder: &Path) -> Depot {
    Depot::open(folder.to_str().unwrap(), Path::new("/nowhere")).unwrap()
}

#[test]
fn objects_appear_whole_under_their_names() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("a/b");
    let depot = depot(&place);
    assert_eq!(depot.to_string(), place.to_str().unwrap());
    depot.create().unwrap();
    depot.create().unwrap();
    assert!(depot.find("x").unwrap().is_none());
    let draft = depot.draft("x").unwrap();
    assert_eq!(draft.path().parent(), Some(&*place.canonicalize().unwrap()));
    fs::write(draft.path(), b"one").unwrap();
    assert!(depot.find("x").unwrap().is_none());
    assert!(depot.names().unwrap().is_empty());
    depot.publish(draft, "x").unwrap();
    put(&depot, "w", b"").unwrap();
    put(&depot, "x", b"three").unwrap();
    assert_eq!(names(&place), ["w", "x"]);
    assert_eq!(depot.names().unwrap(), ["w", "x"]);
    let x = entry(&depot, "x");
    assert_eq!((x.len(), x.is_empty(), x.read(1..4).unwrap()), (5, false, b"hre".to_vec()));
    assert_eq!(x.to_string(), place.join("x").to_str().unwrap());
    let w = entry(&depot, "w");
    assert_eq!(
        (w.len(), w.is_empty(), w.read(0..0).unwrap(), fetched(&w, 0..0).unwrap()),
        (0, true, vec![], vec![])
    );
    depot.remove("x").unwrap();
    depot.remove("x").unwrap();
    assert_eq!(names(&place), ["w"]);
}

#[test]
fn what_replaces_an_object_is_another() {
    let folder = tempfile::tempdir().unwrap();
    let depot = depot(folder.path());
    let (old, new) = (noise(100_000, 1), noise(50_000, 2));
    put(&depot, "x", &old).unwrap();
    let was = entry(&depot, "x");
    let before = was.fetch(0..was.len()).unwrap();
    put(&depot, "x", &new).unwrap();
    let is = entry(&depot, "x");
    assert_ne!(was.version(), is.version());
    assert_eq!(was.version(), was.version());
    // The same file as before, opened by its path and by programs that know paths only.
    assert_eq!(fs::read(before.path()).unwrap(), old);
    let again = File::open(before.path()).unwrap();
    assert_eq!(again.metadata().unwrap().len(), was.len());
    assert_eq!(was.read(99_990..100_000).unwrap(), old[99_990..]);
    assert_eq!(fetched(&was, 7..90_000).unwrap(), old[7..90_000]);
    assert_eq!(fetched(&is, 0..50_000).unwrap(), new);
    depot.remove("x").unwrap();
    // What was fetched stays when the entry goes.
    drop(was);
    assert_eq!(fs::read(before.path()).unwrap(), old);
}

#[test]
fn of_many_that_publish_one_name_each_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let depot = depot(folder.path());
    let bodies: Vec<Vec<u8>> = (0..4).map(|i| noise(20_000 + i, i as u64)).collect();
    put(&depot, "x", &bodies[0]).unwrap();
    std::thread::scope(|scope| {
        for body in &bodies {
            scope.spawn(|| (0..25).for_each(|_| put(&depot, "x", body).unwrap()));
        }
        for _ in 0..200 {
            let x = entry(&depot, "x");
            let bytes = fetched(&x, 0..x.len()).unwrap();
            assert!(bodies.contains(&bytes));
        }
    });
    assert_eq!(names(folder.path()), ["x"]);
}

#[test]
fn drafts_go_when_they_are_dropped_and_are_no_objects() {
    let folder = tempfile::tempdir().unwrap();
    let depot = depot(folder.path());
    let drafts = [depot.draft("x").unwrap(), depot.draft("x").unwrap()];
    assert_ne!(drafts[0].path(), drafts[1].path());
    assert_eq!(names(folder.path()).len(), 2);
    assert!(names(folder.path()).iter().all(|name| name.starts_with('.')));
    assert!(depot.names().unwrap().is_empty());
    drop(drafts);
    assert!(names(folder.path()).is_empty());

    // One whose file was replaced is published as it is then.
    let draft = depot.draft("x").unwrap();
    let other = folder.path().join("other");
    fs::write(&other, b"written elsewhere").unwrap();
    fs::rename(other, draft.path()).unwrap();
    depot.publish(draft, "x").unwrap();
    assert_eq!(entry(&depot, "x").read(0..7).unwrap(), b"written");

    // What cannot be published leaves nothing.
    fs::create_dir(folder.path().join("taken")).unwrap();
    let said = put(&depot, "taken", b"x").unwrap_err().to_string();
    assert!(said.starts_with(&format!("cannot write {}", folder.path().join("taken").display())), "{said}");
    let draft = depot.draft("y").unwrap();
    fs::remove_file(draft.path()).unwrap();
    depot.publish(draft, "y").unwrap_err();
    assert_eq!(names(folder.path()), ["taken", "x"]);
    assert_eq!(depot.names().unwrap(), ["x"]);
}

#[test]
fn refusals_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing");
    let said = |depot: &Depot| {
        [depot.find("x").map(drop), depot.names().map(drop), depot.remove("x"), depot.draft("x").map(drop)]
    };
    for result in said(&depot(&missing)) {
        let no_place = format!("{}: there is no such folder; make it, or check its name", missing.display());
        assert_eq!(result.unwrap_err().to_string(), no_place);
    }
    let depot = depot(folder.path());
    for name in ["../x", ".x", "", "a/b"] {
        assert!(matches!(depot.find(name), Err(Error::Name { .. })), "{name}");
        assert!(matches!(depot.draft(name), Err(Error::Name { .. })), "{name}");
        assert!(matches!(depot.remove(name), Err(Error::Name { .. })), "{name}");
    }
    put(&depot, "x", b"12345").unwrap();
    let x = entry(&depot, "x");
    let path = folder.path().join("x").display().to_string();
    assert_eq!(x.read(2..6).unwrap_err().to_string(), format!("{path}: bytes 2..6 were asked for of 5"));
    let turned = std::ops::Range { start: 3, end: 2 };
    assert!(matches!(x.fetch(turned), Err(Error::Range { .. })));
    // Cut in place, which no depot does.
    File::options().write(true).open(&path).unwrap().set_len(3).unwrap();
    let cut = format!("{path} is cut short: 5 bytes were there when it was found, 3 are now");
    assert_eq!(x.read(2..5).unwrap_err().to_string(), cut);
    assert_eq!(x.fetch(0..5).unwrap_err().to_string(), cut);
    assert_eq!(x.read(0..3).unwrap(), b"123");
    fs::create_dir(folder.path().join("d")).unwrap();
    assert!(depot.find("d").unwrap_err().to_string().ends_with("not a file"));
}

#[test]
fn all_can_be_shared_by_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<Depot>();
    shared::<genuma_storage::Entry>();
    shared::<genuma_storage::Fetched>();
    shared::<genuma_storage::Draft>();
}
