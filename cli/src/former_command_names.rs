//! Names that commands had up to version 0.2, such as `genuma table union` for `genuma kmers union`. They are accepted
//! for one more version.

use std::ffi::OsString;

/// Former name of each renamed command, and the words of its present name.
const FORMER_COMMAND_NAMES: [(&str, &[&str]); 8] = [
    ("count", &["kmers", "count"]),
    ("query", &["kmers", "query"]),
    ("table", &["kmers"]),
    ("topology", &["machine", "show"]),
    ("probe", &["machine", "measure"]),
    ("advise", &["machine", "advise"]),
    ("simulate", &["bench", "simulate"]),
    ("evaluate", &["bench", "evaluate"]),
];

/// Replaces the former name of a command in a command line by the present one. The first argument is the name of the
/// program.
pub(crate) fn replace_former_command_names(args: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut args: Vec<OsString> = args.collect();
    // The command is the first argument that is no option: no option before it has a value.
    let is_option = |arg: &OsString| arg.as_encoded_bytes().starts_with(b"-");
    let mut position = 1 + args.iter().skip(1).take_while(|arg| is_option(arg)).count();
    if args.get(position).is_some_and(|arg| arg == "help") {
        position += 1;
    }
    if let Some((_, words)) =
        FORMER_COMMAND_NAMES.iter().find(|(earlier, _)| args.get(position).is_some_and(|arg| arg == earlier))
    {
        args.splice(position..=position, words.iter().map(OsString::from));
    }
    args
}

#[cfg(test)]
mod tests {
    use super::*;

    fn presented(line: &str) -> String {
        let args = replace_former_command_names(line.split(' ').map(OsString::from));
        args.join(std::ffi::OsStr::new(" ")).into_string().expect("UTF-8")
    }

    #[test]
    fn only_the_command_is_replaced() {
        assert_eq!(presented("genuma -v table union count -o x.gkt"), "genuma -v kmers union count -o x.gkt");
        assert_eq!(presented("genuma help simulate"), "genuma help bench simulate");
        assert_eq!(presented("genuma run count -o probe"), "genuma run count -o probe");
        assert_eq!(presented("genuma kmers count query"), "genuma kmers count query");
        assert_eq!(presented("genuma"), "genuma");
        assert_eq!(presented("genuma help"), "genuma help");
    }
}
