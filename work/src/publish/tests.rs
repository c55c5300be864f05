use std::io::Read;
use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::process::Command;

use super::*;

fn folder_entries(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn write_partial(path: &Path, bytes: &[u8]) -> PartialFile {
    let mut file = AtomicFile::create(path).unwrap();
    file.write_all(bytes).unwrap();
    file.flush_to_partial_file().unwrap()
}

fn file_set(files: impl IntoIterator<Item = PartialFile>) -> AtomicFileSet {
    let mut set = AtomicFileSet::default();
    files.into_iter().for_each(|file| set.add_file(file));
    set
}

#[test]
fn a_private_file_is_open_to_the_user_only_from_its_creation() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("count.unit");
    // It replaces a file that others may read.
    fs::write(&path, "earlier").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    let file = AtomicFile::create_private(&path).unwrap();
    let mode = |name: &String| fs::metadata(folder.path().join(name)).unwrap().permissions().mode() & 0o777;
    let modes = || folder_entries(folder.path()).iter().map(mode).collect::<Vec<_>>();
    assert_eq!(modes(), [0o600, 0o644], "the partial file and the earlier one");
    file.publish().unwrap();
    assert_eq!(modes(), [0o600]);
}

#[test]
fn a_file_appears_complete_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("calls.vcf");

    let mut file = AtomicFile::create(&path).unwrap();
    file.write_all(b"half").unwrap();
    file.flush().unwrap();
    let [partial] = &folder_entries(folder.path())[..] else { panic!("one file") };
    assert!(partial.starts_with(".calls.vcf.") && partial.ends_with(".partial"), "{partial}");
    drop(file);
    assert!(folder_entries(folder.path()).is_empty());

    for text in [&b"whole"[..], b"other"] {
        let before = fs::read(&path).ok();
        let mut file = AtomicFile::create(&path).unwrap();
        file.write_all(text).unwrap();
        assert_eq!(fs::read(&path).ok(), before);
        file.publish().unwrap();
        assert_eq!(fs::read(&path).unwrap(), text);
        assert_eq!(folder_entries(folder.path()), ["calls.vcf"]);
    }
}

#[test]
fn errors_name_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let message = |path: &Path| AtomicFile::create(path).unwrap_err().to_string();
    let path = folder.path().join("no/such/folder/x");
    assert_eq!(message(&path), format!("{}: cannot write: No such file or directory (os error 2)", path.display()));

    let path = folder.path().join("taken");
    fs::create_dir(&path).unwrap();
    assert_eq!(message(&path), format!("{}: cannot write: Is a directory (os error 21)", path.display()));
    let path = folder.path().join("socket");
    let _socket = UnixListener::bind(&path).unwrap();
    assert!(message(&path).starts_with(&format!("{}: cannot write: ", path.display())));
    let path = folder.path().join("circle");
    symlink("circle", &path).unwrap();
    assert!(message(&path).contains("Too many levels of symbolic links"));
    assert!(message(Path::new("/")).contains("not a file name"));
    assert_eq!(folder_entries(folder.path()), ["circle", "socket", "taken"]);
}

#[test]
fn a_full_disk_is_reported_with_the_file_name() {
    let mut full = AtomicFile::create("/dev/full").unwrap();
    full.write_all(b"fits into the buffer").unwrap();
    let message = full.publish().unwrap_err().to_string();
    assert_eq!(message, "/dev/full: cannot write: No space left on device (os error 28)");
    let mut full = AtomicFile::create("/dev/full").unwrap();
    let message = full.write_all(&vec![0; 2 * WRITE_BUFFER_BYTES]).unwrap_err().to_string();
    assert_eq!(message, "/dev/full: cannot write: No space left on device (os error 28)");
}

#[test]
fn partial_files_are_registered_for_removal_on_a_signal() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x");
    let file = AtomicFile::create(&path).unwrap();
    // Check only this file: other tests in this process write files at the same time.
    let partial = file.partial.partial_path().unwrap().to_path_buf();
    assert!(lock_partial_files().contains(&partial));
    fs::remove_file(&partial).unwrap();
    assert!(file.publish().is_err());
    assert!(!lock_partial_files().contains(&partial));
    assert!(folder_entries(folder.path()).is_empty());
}

#[test]
fn a_file_has_one_writer_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x");
    let first = AtomicFile::create(&path).unwrap();
    symlink("x", folder.path().join("link")).unwrap();
    for path in [&path, &folder.path().join("link"), &folder.path().join("./x")] {
        let message = PartialFile::create(path).unwrap_err().to_string();
        assert_eq!(message, format!("{}: two outputs have this name: give each its own", path.display()));
    }
    // Files whose names share a prefix or suffix with `x` are not affected.
    for other in ["x.y", "y.x", "xx"] {
        PartialFile::create(folder.path().join(other)).unwrap();
    }
    drop(first);
    PartialFile::create(&path).unwrap();
}

#[test]
fn partial_files_of_a_running_process_stay_and_those_of_a_killed_one_go() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x");
    let theirs = folder.path().join(".x.0123456789abcdef.partial");
    let script = format!("exec 9>{}; flock 9; echo locked; read line", theirs.display());
    let mut other = Command::new("sh")
        .args(["-c", &script])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    other.stdout.as_mut().unwrap().read_exact(&mut [0; 7]).unwrap();
    let message = PartialFile::create(&path).unwrap_err();
    assert!(matches!(message, Error::WrittenByOtherProcess { .. }), "{message}");
    assert_eq!(
        message.to_string(),
        format!("{}: another run is writing it: wait for it, or name another output", path.display())
    );
    assert_eq!(folder_entries(folder.path()), [".x.0123456789abcdef.partial"]);
    other.kill().unwrap();
    other.wait().unwrap();

    // Only files with exactly 16 random digits are partial files of `x`.
    symlink("../victim", folder.path().join(".x.partial")).unwrap();
    symlink("../victim", folder.path().join(".x.00000000deadbeef.partial")).unwrap();
    fs::write(folder.path().join(".x.y.0123456789abcdef.partial"), "of x.y").unwrap();
    write_partial(&path, b"whole").publish().unwrap();
    assert_eq!(
        folder_entries(folder.path()),
        [".x.00000000deadbeef.partial", ".x.partial", ".x.y.0123456789abcdef.partial", "x"]
    );
}

#[test]
fn one_of_several_concurrent_writers_succeeds() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x");
    for _ in 0..50 {
        let begun: Vec<_> = std::thread::scope(|scope| {
            let runs: Vec<_> = (0..4).map(|_| scope.spawn(|| PartialFile::create(&path))).collect();
            runs.into_iter().map(|run| run.join().unwrap()).collect()
        });
        assert_eq!(begun.iter().filter(|file| file.is_ok()).count(), 1);
    }
}

#[test]
fn a_symlink_stays_and_its_target_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let real = folder.path().join("real");
    fs::create_dir(&real).unwrap();
    for (link, to) in [("one", "real/x"), ("two", "one"), ("dangling", "real/y")] {
        let link = folder.path().join(link);
        symlink(to, &link).unwrap();
        write_partial(&link, b"through the link").publish().unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&link).unwrap(), b"through the link");
    }
    assert_eq!(folder_entries(&real), ["x", "y"]);
    assert_eq!(folder_entries(folder.path()), ["dangling", "one", "real", "two"]);
}

#[test]
fn devices_and_pipes_are_written_directly() {
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("null");
    symlink("/dev/null", &link).unwrap();
    write_partial(&link, b"gone").publish().unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());

    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || fs::read(pipe).unwrap()
    });
    write_partial(&pipe, b"through the pipe").publish().unwrap();
    assert_eq!(reader.join().unwrap(), b"through the pipe");
    assert!(fs::symlink_metadata(&pipe).unwrap().file_type().is_fifo());

    // An open file, addressed by its file descriptor.
    let open = File::create(folder.path().join("open")).unwrap();
    (&open).write_all(b"before, ").unwrap();
    let number = std::os::fd::AsRawFd::as_raw_fd(&open);
    for link in [format!("/dev/fd/{number}"), format!("/proc/self/fd/{number}")] {
        write_partial(Path::new(&link), b"behind").publish().unwrap();
    }
    assert_eq!(fs::read(folder.path().join("open")).unwrap(), b"before, behindbehind");
    assert_eq!(folder_entries(folder.path()), ["null", "open", "pipe"]);
}

#[test]
fn a_file_set_is_published_together() {
    let folder = tempfile::tempdir().unwrap();
    let [one, two, stale] = ["one", "two", "stale"].map(|name| folder.path().join(name));
    fs::write(&one, "before").unwrap();
    fs::write(&stale, "before").unwrap();
    let mut set = file_set([write_partial(&one, b"1"), write_partial(&two, b"2")]);
    set.remove_file_on_publish(&stale);
    set.remove_file_on_publish(folder.path().join("nothing"));
    set.publish_all().unwrap();
    assert_eq!(folder_entries(folder.path()), ["one", "two"]);
    assert_eq!([&one, &two].map(|path| fs::read(path).unwrap()), [b"1", b"2"]);
}

#[test]
fn a_file_set_that_fails_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let [one, two, stale, last] = ["one", "two", "stale", "last"].map(|name| folder.path().join(name));
    fs::write(&one, "before").unwrap();
    fs::write(&stale, "before").unwrap();
    let mut set = file_set([write_partial(&one, b"1"), write_partial(&two, b"2"), write_partial(&last, b"3")]);
    set.remove_file_on_publish(&stale);
    // The last target becomes a symbolic link to a device, which must not be replaced.
    symlink("/dev/null", &last).unwrap();
    let message = set.publish_all().unwrap_err().to_string();
    assert!(message.starts_with(&format!("{}: cannot write: ", last.display())), "{message}");
    assert_eq!(folder_entries(folder.path()), ["last", "one", "stale"]);
    assert_eq!([&one, &stale].map(|path| fs::read(path).unwrap()), [b"before", b"before"]);
}
