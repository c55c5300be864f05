//! Folders of tests that passed are removed, so that a run of all tests needs little disk.

use std::cell::{Cell, RefCell};
use std::fs;
use std::panic;
use std::path::{Path, PathBuf};
use std::sync::{Once, OnceLock};

thread_local! {
    static FOLDERS: Folders = const { Folders { paths: RefCell::new(Vec::new()), failed: Cell::new(false) } };
    static INSIDE_FIXTURE: Cell<bool> = const { Cell::new(false) };
}

/// Folders of the test that runs on this thread.
struct Folders {
    paths: RefCell<Vec<PathBuf>>,
    /// Whether the test has panicked; its folders then stay for a look.
    failed: Cell<bool>,
}

impl Drop for Folders {
    fn drop(&mut self) {
        if !self.failed.get() {
            for folder in self.paths.borrow().iter() {
                // What a test has made unreadable stays.
                let _ = fs::remove_dir_all(folder);
            }
        }
    }
}

/// Removes this folder when the thread of this test ends without a panic. Folders of fixtures stay.
pub fn remove_after_test(folder: &Path) {
    static WATCH: Once = Once::new();
    WATCH.call_once(|| {
        let print = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            // No folders: the thread is past its test.
            let _ = FOLDERS.try_with(|folders| folders.failed.set(true));
            print(info);
        }));
    });
    if !INSIDE_FIXTURE.get() {
        FOLDERS.with(|folders| folders.paths.borrow_mut().push(folder.to_owned()));
    }
}

/// What several tests use, made by the first of them; its folders stay after the run.
pub struct SharedFixture<T>(OnceLock<T>);

impl<T> SharedFixture<T> {
    /// Nothing is made yet.
    pub const fn new() -> SharedFixture<T> {
        SharedFixture(OnceLock::new())
    }

    /// The value, made by `make` at the first use.
    pub fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
        self.0.get_or_init(|| {
            let outer = INSIDE_FIXTURE.replace(true);
            let made = make();
            INSIDE_FIXTURE.set(outer);
            made
        })
    }
}
