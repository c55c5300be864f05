//! The seal of an index: a small text file beside it that tells a whole index of this reference from any other.
//!
//! The index files of the engines have no checksums, and their loaders trust what they read: a damaged or foreign index
//! gives wrong answers or none. So building an index also writes `NAME.seal`, and loading one checks it:
//!
//! ```text
//! genuma-seal 1
//! engine minibwa 0.6-r416
//! reference 5081000 1b851995
//! file ref.fa.l2b 1270912 8ab0a2f1
//! file ref.fa.mbw 3651720 c6e1d0a4
//! ```
//!
//! Numbers are sizes in bytes and CRC-32 sums. A file's sum is over all its bytes. The reference's is over a sample: 64 pieces
//! of 64 KiB, evenly spread, so that checking it takes no time on a large genome.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use genuma_work::publish::AtomicFile;

use super::{Error, Program, with_added};

const FIRST_LINE: &str = "genuma-seal 1";
/// Pieces of the reference that are summed, and their size in bytes.
const PIECES: u64 = 64;
const PIECE: u64 = 64 << 10;
/// Bytes that a thread sums at a time.
const STRETCH: u64 = 64 << 20;

/// The seal of the index whose first file is `file`.
pub fn path(file: &Path) -> PathBuf {
    with_added(file, "seal")
}

/// What a seal says of itself, file by file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seal {
    engine: String,
    reference: (u64, u32),
    files: Vec<(String, u64, u32)>,
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn engine_line(program: Program) -> String {
    format!("{} {}", program.name, program.version)
}

/// Size and sum of all bytes, on `threads` threads.
fn whole(path: &Path, threads: usize) -> io::Result<(u64, u32)> {
    let file = File::open(path)?;
    let size = file.metadata()?.len();
    let stretches = size.div_ceil(STRETCH) as usize;
    let next = AtomicUsize::new(0);
    let sum = || -> io::Result<Vec<(usize, crc32fast::Hasher)>> {
        let (mut sums, mut buffer) = (Vec::new(), vec![0; 1 << 20]);
        loop {
            let i = next.fetch_add(1, Ordering::Relaxed);
            if i >= stretches {
                return Ok(sums);
            }
            let (mut at, mut hasher) = (i as u64 * STRETCH, crc32fast::Hasher::new());
            let end = size.min(at + STRETCH);
            while at < end {
                let n = (end - at).min(buffer.len() as u64) as usize;
                file.read_exact_at(&mut buffer[..n], at)?;
                hasher.update(&buffer[..n]);
                at += n as u64;
            }
            sums.push((i, hasher));
        }
    };
    let mut sums = std::thread::scope(|scope| {
        let helpers: Vec<_> = (1..threads.clamp(1, stretches.max(1))).map(|_| scope.spawn(sum)).collect();
        let mut sums = sum()?;
        for helper in helpers {
            sums.extend(helper.join().expect("summing does not panic")?);
        }
        Ok::<_, io::Error>(sums)
    })?;
    sums.sort_unstable_by_key(|(i, _)| *i);
    let mut all = crc32fast::Hasher::new();
    sums.iter().for_each(|(_, part)| all.combine(part));
    Ok((size, all.finalize()))
}

/// Size and sum of the sample of a reference.
fn sample(path: &Path) -> io::Result<(u64, u32)> {
    let mut file = File::open(path)?;
    let size = file.metadata()?.len();
    let mut hasher = crc32fast::Hasher::new();
    let mut buffer = Vec::with_capacity(PIECE as usize);
    let last = size.saturating_sub(PIECE);
    for i in 0..PIECES {
        // 128 bits: sizes times 64 may not fit.
        let at = (u128::from(last) * u128::from(i) / u128::from(PIECES - 1)) as u64;
        buffer.clear();
        file.seek(SeekFrom::Start(at))?;
        io::Read::by_ref(&mut file).take(PIECE).read_to_end(&mut buffer)?;
        hasher.update(&buffer);
    }
    Ok((size, hasher.finalize()))
}

/// Seals an index: `files`, the first of which names the seal.
///
/// # Errors
/// A file cannot be read, or the seal not written.
pub fn write(program: Program, reference: &Path, files: &[PathBuf]) -> Result<(), Error> {
    let (size, sum) = sample(reference).map_err(Error::io(reference))?;
    let mut text = format!("{FIRST_LINE}\nengine {}\nreference {size} {sum:08x}\n", engine_line(program));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    for file in files {
        let (size, sum) = whole(file, threads).map_err(Error::io(file))?;
        // Writing to a string cannot fail.
        let _ = writeln!(text, "file {} {size} {sum:08x}", name_of(file));
    }
    let path = path(&files[0]);
    let failed =
        |e: genuma_work::publish::Error| Error::Io { path: path.clone(), source: io::Error::other(e) };
    let mut file = AtomicFile::create(&path).map_err(failed)?;
    file.write_all(text.as_bytes()).map_err(Error::io(&path))?;
    file.finish().map_err(failed)
}

fn parse(text: &str) -> Option<Seal> {
    let mut lines = text.lines();
    if lines.next()? != FIRST_LINE {
        return None;
    }
    let engine = lines.next()?.strip_prefix("engine ")?.to_owned();
    let numbers = |text: &str| {
        let (size, sum) = text.split_once(' ')?;
        Some((size.parse().ok()?, u32::from_str_radix(sum, 16).ok()?))
    };
    let reference = numbers(lines.next()?.strip_prefix("reference ")?)?;
    let file = |line: &str| {
        // A name may have blanks.
        let (rest, sum) = line.strip_prefix("file ")?.rsplit_once(' ')?;
        let (name, size) = rest.rsplit_once(' ')?;
        Some((name.to_owned(), size.parse().ok()?, u32::from_str_radix(sum, 16).ok()?))
    };
    let files = lines.map(file).collect::<Option<_>>()?;
    Some(Seal { engine, reference, files })
}

/// Holds an index against its seal. Gives `false` when it has none: it was made by the engine's own command line.
///
/// # Errors
/// A file cannot be read, is not what was sealed, or the reference (if it is there) is another one.
pub fn check(program: Program, reference: &Path, files: &[PathBuf], threads: usize) -> Result<bool, Error> {
    let path = path(&files[0]);
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(e) => return Err(Error::io(&path)(e)),
    };
    let wrong = |path: &Path, what: String| Error::Index { path: path.to_path_buf(), what };
    let seal = parse(&text).ok_or_else(|| wrong(&path, "not the seal of an index".into()))?;
    if seal.engine != engine_line(program) {
        return Err(wrong(&path, format!("an index for {}, not {}", seal.engine, engine_line(program))));
    }
    if reference.is_file() {
        let found = sample(reference).map_err(Error::io(reference))?;
        if found != seal.reference {
            return Err(wrong(&files[0], format!("not an index of {} as it is now", reference.display())));
        }
    }
    for file in files {
        let Some((_, size, sum)) = seal.files.iter().find(|(name, ..)| *name == name_of(file)) else {
            return Err(wrong(&path, format!("does not name {}", file.display())));
        };
        let found = whole(file, threads).map_err(Error::io(file))?;
        if found != (*size, *sum) {
            let how = if found.0 == *size { "its bytes" } else { "its size" };
            return Err(wrong(file, format!("damaged: {how} changed since it was made")));
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_of_parts_is_the_sum() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let bytes: Vec<u8> = (0..STRETCH as usize + 12_345).map(|i| (i * 31 / 8) as u8).collect();
        std::fs::write(&path, &bytes).unwrap();
        let expected = (bytes.len() as u64, crc32fast::hash(&bytes));
        assert_eq!([1, 2, 3].map(|threads| whole(&path, threads).unwrap()), [expected; 3]);
        std::fs::write(&path, b"").unwrap();
        assert_eq!(whole(&path, 4).unwrap(), (0, 0));
    }

    #[test]
    fn what_is_written_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let [reference, one, two] = ["ref.fa", "ref.fa.a b", "ref.fa.c"].map(|name| dir.path().join(name));
        for (path, text) in [(&reference, "ACGT"), (&one, "first"), (&two, "second")] {
            std::fs::write(path, text).unwrap();
        }
        let program = Program { name: "engine", version: "1" };
        let files = [one, two.clone()];
        assert!(!check(program, &reference, &files, 1).unwrap(), "there is no seal yet");
        write(program, &reference, &files).unwrap();
        assert!(check(program, &reference, &files, 1).unwrap());

        let refused = |what: &str| {
            let error = check(program, &reference, &files, 1).unwrap_err().to_string();
            assert!(error.contains(what), "{error}");
        };
        std::fs::write(&two, "sEcond").unwrap();
        refused("its bytes changed");
        std::fs::write(&two, "secon").unwrap();
        refused("its size changed");
        std::fs::write(&two, "second").unwrap();
        std::fs::write(&reference, "ACGA").unwrap();
        refused("not an index of");
        std::fs::remove_file(&reference).unwrap();
        assert!(check(program, &reference, &files, 1).unwrap(), "the index does without its reference");
        let other = Program { version: "2", ..program };
        let error = check(other, &reference, &files, 1).unwrap_err().to_string();
        assert!(error.contains("an index for engine 1, not engine 2"), "{error}");
        std::fs::write(path(&files[0]), "genuma-seal 1\nengine x\n").unwrap();
        refused("not the seal of an index");
    }
}
