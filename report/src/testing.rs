//! Helpers for tests of HTML pages, also of those in other crates.

use std::io::Write;
use std::path::Path;
use std::process::Command;

/// Asserts that HTML elements are nested correctly: closed in the reverse order of their opening.
pub fn assert_html_is_nested(html: &str) {
    const VOID: [&str; 5] = ["meta", "link", "input", "br", "!DOCTYPE"];
    let mut open: Vec<&str> = Vec::new();
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        let tag = &rest[..rest.find('>').expect("a tag is left open")];
        let name = tag.trim_start_matches('/').split([' ', '\n', '/']).next().unwrap_or_default();
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name), "before {:?}", &rest[..rest.len().min(80)]);
        } else if !tag.ends_with('/') && !VOID.contains(&name) {
            open.push(name);
            if name == "script" || name == "style" {
                rest = &rest[rest.find(&format!("</{name}")).expect("it is closed")..];
            }
        }
    }
    assert!(open.is_empty(), "left open: {open:?}");
}

/// Runs headless Chromium with an empty user profile and returns its standard output. `None` if Chromium is not
/// installed.
pub fn run_chromium(folder: &Path, arguments: &[&str], page: &str) -> Option<String> {
    let profile = folder.join("profile");
    let run = Command::new("chromium")
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .arg(format!("--user-data-dir={}", profile.display()))
        .args(arguments)
        .arg(page)
        .output();
    match run {
        Ok(output) => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            Some(String::from_utf8_lossy(&output.stdout).into_owned())
        }
        Err(error) => {
            // The test runner hides `eprintln!` of a passing test, so this goes straight to stderr.
            let _ = writeln!(
                std::io::stderr(),
                "skipped: the page in a browser: chromium cannot be run here ({error}); install it"
            );
            None
        }
    }
}
