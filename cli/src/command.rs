//! The command line, for whoever wants to run it again.

/// The command line of this process as a shell would read it back.
pub fn line() -> String {
    typed(std::env::args())
}

/// A command line that a shell would read back.
fn typed(args: impl Iterator<Item = String>) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./,:=+@%".contains(c);
    let quoted = |arg: String| match !arg.is_empty() && arg.chars().all(plain) {
        true => arg,
        false => format!("'{}'", arg.replace('\'', r"'\''")),
    };
    args.map(quoted).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_quoted_where_a_shell_needs_it() {
        let args = ["genuma", "call", "-o", "my calls", "", "it's"].map(str::to_owned);
        assert_eq!(typed(args.into_iter()), r"genuma call -o 'my calls' '' 'it'\''s'");
    }
}
