//! Run stores in folders.

mod common;

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use common::{fetch_bytes, find_object, names, noise, publish_bytes};
use genuma_storage::{Error, RunStore};

fn store(folder: &Path) -> RunStore {
    RunStore::open(folder.to_str().unwrap(), Path::new("/nowhere")).unwrap()
}

#[test]
fn objects_appear_complete_under_their_names() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("a/b");
    let store = store(&place);
    assert_eq!(store.to_string(), place.to_str().unwrap());
    store.create_store_folder().unwrap();
    store.create_store_folder().unwrap();
    assert!(store.open_object_if_exists("x").unwrap().is_none());
    let temp_object = store.create_temp_object("x").unwrap();
    assert_eq!(temp_object.path().parent(), Some(&*place.canonicalize().unwrap()));
    // Objects contain reads of patients.
    assert_eq!(fs::metadata(temp_object.path()).unwrap().permissions().mode() & 0o777, 0o600);
    fs::write(temp_object.path(), b"one").unwrap();
    assert!(store.open_object_if_exists("x").unwrap().is_none());
    assert!(store.list_object_names().unwrap().is_empty());
    store.publish(temp_object, "x").unwrap();
    publish_bytes(&store, "w", b"").unwrap();
    publish_bytes(&store, "x", b"three").unwrap();
    assert_eq!(names(&place), ["w", "x"]);
    assert_eq!(store.list_object_names().unwrap(), ["w", "x"]);
    let x = find_object(&store, "x");
    assert_eq!((x.len_bytes(), x.has_no_bytes(), x.read_range(1..4).unwrap()), (5, false, b"hre".to_vec()));
    assert_eq!(x.to_string(), place.join("x").to_str().unwrap());
    let w = find_object(&store, "w");
    assert_eq!(
        (w.len_bytes(), w.has_no_bytes(), w.read_range(0..0).unwrap(), fetch_bytes(&w, 0..0).unwrap()),
        (0, true, vec![], vec![])
    );
    store.remove_object("x").unwrap();
    store.remove_object("x").unwrap();
    assert_eq!(names(&place), ["w"]);
}

#[test]
fn a_replaced_object_stays_readable() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path());
    let (old, new) = (noise(100_000, 1), noise(50_000, 2));
    publish_bytes(&store, "x", &old).unwrap();
    let was = find_object(&store, "x");
    let before = was.fetch_range_to_file(0..was.len_bytes()).unwrap();
    publish_bytes(&store, "x", &new).unwrap();
    let is = find_object(&store, "x");
    assert_ne!(was.object_version(), is.object_version());
    assert_eq!(was.object_version(), was.object_version());
    // The same file as before, also for programs that open it by its path.
    assert_eq!(fs::read(before.local_path()).unwrap(), old);
    let again = File::open(before.local_path()).unwrap();
    assert_eq!(again.metadata().unwrap().len(), was.len_bytes());
    assert_eq!(was.read_range(99_990..100_000).unwrap(), old[99_990..]);
    assert_eq!(fetch_bytes(&was, 7..90_000).unwrap(), old[7..90_000]);
    assert_eq!(fetch_bytes(&is, 0..50_000).unwrap(), new);
    store.remove_object("x").unwrap();
    // The local copy outlives the object handle.
    drop(was);
    assert_eq!(fs::read(before.local_path()).unwrap(), old);
}

#[test]
fn concurrent_publishers_of_one_name_never_mix_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path());
    let bodies: Vec<Vec<u8>> = (0..4).map(|i| noise(20_000 + i, i as u64)).collect();
    publish_bytes(&store, "x", &bodies[0]).unwrap();
    std::thread::scope(|scope| {
        for body in &bodies {
            scope.spawn(|| (0..25).for_each(|_| publish_bytes(&store, "x", body).unwrap()));
        }
        for _ in 0..200 {
            let x = find_object(&store, "x");
            let bytes = fetch_bytes(&x, 0..x.len_bytes()).unwrap();
            assert!(bodies.contains(&bytes));
        }
    });
    assert_eq!(names(folder.path()), ["x"]);
}

#[test]
fn temp_objects_are_removed_on_drop_and_are_not_listed() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path());
    let temp_objects = [store.create_temp_object("x").unwrap(), store.create_temp_object("x").unwrap()];
    assert_ne!(temp_objects[0].path(), temp_objects[1].path());
    assert_eq!(names(folder.path()).len(), 2);
    assert!(names(folder.path()).iter().all(|name| name.starts_with('.')));
    assert!(store.list_object_names().unwrap().is_empty());
    drop(temp_objects);
    assert!(names(folder.path()).is_empty());

    // If the file of a temporary object was replaced, the new file is published.
    let temp_object = store.create_temp_object("x").unwrap();
    let other = folder.path().join("other");
    fs::write(&other, b"written elsewhere").unwrap();
    fs::rename(other, temp_object.path()).unwrap();
    store.publish(temp_object, "x").unwrap();
    assert_eq!(find_object(&store, "x").read_range(0..7).unwrap(), b"written");

    // A failed publication leaves no files.
    fs::create_dir(folder.path().join("taken")).unwrap();
    let message = publish_bytes(&store, "taken", b"x").unwrap_err().to_string();
    assert!(message.starts_with(&format!("cannot write {}", folder.path().join("taken").display())), "{message}");
    let temp_object = store.create_temp_object("y").unwrap();
    fs::remove_file(temp_object.path()).unwrap();
    store.publish(temp_object, "y").unwrap_err();
    assert_eq!(names(folder.path()), ["taken", "x"]);
    assert_eq!(store.list_object_names().unwrap(), ["x"]);
}

#[test]
fn errors_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing");
    let message = |store: &RunStore| {
        [
            store.open_object_if_exists("x").map(drop),
            store.list_object_names().map(drop),
            store.remove_object("x"),
            store.create_temp_object("x").map(drop),
        ]
    };
    for result in message(&store(&missing)) {
        let no_place = format!("{}: this folder does not exist; create it, or check its name", missing.display());
        assert_eq!(result.unwrap_err().to_string(), no_place);
    }
    let store = store(folder.path());
    for name in ["../x", ".x", "", "a/b"] {
        assert!(matches!(store.open_object_if_exists(name), Err(Error::InvalidObjectName { .. })), "{name}");
        assert!(matches!(store.create_temp_object(name), Err(Error::InvalidObjectName { .. })), "{name}");
        assert!(matches!(store.remove_object(name), Err(Error::InvalidObjectName { .. })), "{name}");
    }
    publish_bytes(&store, "x", b"12345").unwrap();
    let x = find_object(&store, "x");
    let path = folder.path().join("x").display().to_string();
    assert_eq!(
        x.read_range(2..6).unwrap_err().to_string(),
        format!("{path}: bytes 2..6 were requested, but the object has 5")
    );
    let turned = std::ops::Range { start: 3, end: 2 };
    assert!(matches!(x.fetch_range_to_file(turned), Err(Error::OutOfRange { .. })));
    // Truncated in place, which no run store does.
    File::options().write(true).open(&path).unwrap().set_len(3).unwrap();
    let cut = format!(
        "{path} is truncated: it had 5 bytes when it was found and has 3 now; run the step that makes it again (genuma step RUN STEP NUMBER --again)"
    );
    assert_eq!(x.read_range(2..5).unwrap_err().to_string(), cut);
    assert_eq!(x.fetch_range_to_file(0..5).unwrap_err().to_string(), cut);
    assert_eq!(x.read_range(0..3).unwrap(), b"123");
    fs::create_dir(folder.path().join("d")).unwrap();
    assert!(store.open_object_if_exists("d").unwrap_err().to_string().ends_with("not a file"));
}

#[test]
fn types_can_be_shared_by_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<RunStore>();
    shared::<genuma_storage::StoredObject>();
    shared::<genuma_storage::LocalObjectFile>();
    shared::<genuma_storage::TempObject>();
}

#[cfg(not(feature = "cluster"))]
#[test]
fn a_bucket_is_an_error_without_network_code() {
    let error = RunStore::open("s3://runs/1", Path::new("/nowhere")).unwrap_err().to_string();
    assert!(error.starts_with("s3://runs/1: this build cannot access buckets"), "{error}");
}
