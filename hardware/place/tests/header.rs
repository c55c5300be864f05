//! The header and the library declare the same functions with the same types.

mod compiler;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use compiler::{include_folder, is_installed, library_folder, run};

/// Text with each run of white space as one space.
fn single_spaced(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn header() -> String {
    fs::read_to_string(include_folder().join("genuma_place.h")).expect("the header")
}

/// Prototypes of the header: `int genuma_free(void *memory)`.
fn header_prototypes() -> BTreeSet<String> {
    let (header, mut code) = (header(), String::new());
    for part in header.split("/*") {
        code += part.split_once("*/").map_or(part, |(_, after)| after);
    }
    let is_code = |line: &&str| !line.starts_with('#') && !line.starts_with("extern \"C\"") && *line != "}";
    let code: Vec<&str> = code.lines().filter(is_code).collect();
    let statements = code.join("\n");
    statements.split(';').map(single_spaced).filter(|statement| statement.contains('(')).collect()
}

/// The C type of a Rust type.
fn c_type(rust: &str) -> &'static str {
    match rust {
        "c_int" => "int",
        "c_uint" => "unsigned",
        "usize" => "size_t",
        "*const c_char" => "const char *",
        "*const c_void" => "const void *",
        "*mut c_void" => "void *",
        "*mut *mut c_void" => "void **",
        "*mut c_int" => "int *",
        "*mut u64" => "uint64_t *",
        "*const Replicas" => "const genuma_replicas *",
        "*mut Replicas" => "genuma_replicas *",
        "*mut *mut Replicas" => "genuma_replicas **",
        other => panic!("no C type for {other}"),
    }
}

/// A C type and a name: `int node`, `void *memory`.
fn declaration(rust_type: &str, name: &str) -> String {
    let c_type = c_type(rust_type.trim());
    let space = if c_type.ends_with('*') { "" } else { " " };
    format!("{c_type}{space}{name}")
}

/// Prototypes in C of the exported functions of `ffi.rs`.
fn library_prototypes() -> BTreeSet<String> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/ffi.rs");
    let source = fs::read_to_string(source).expect("the source");
    let functions: Vec<&str> = source.split("#[unsafe(no_mangle)]").skip(1).collect();
    assert_eq!(functions.len(), source.matches("extern \"C\" fn ").count(), "each is exported");
    let prototype = |function: &&str| {
        let (_, signature) = function.split_once("extern \"C\" fn ").expect("a function");
        let signature = signature.split_once('{').expect("a body").0;
        let (name, rest) = signature.split_once('(').expect("arguments");
        let (arguments, result) = rest.split_once(") ->").expect("a result");
        let arguments = arguments.split(',').filter(|argument| !argument.trim().is_empty()).map(|argument| {
            let (name, rust_type) = argument.split_once(':').expect("a type");
            declaration(rust_type, name.trim())
        });
        let arguments: Vec<String> = arguments.collect();
        let arguments = if arguments.is_empty() { "void".to_owned() } else { arguments.join(", ") };
        format!("{}({arguments})", declaration(result, name))
    };
    functions.iter().map(prototype).collect()
}

#[test]
fn header_and_library_have_the_same_functions() {
    let library = library_prototypes();
    assert_eq!(header_prototypes(), library);
    assert!(library.contains("int genuma_alloc(size_t bytes, const char *policy, unsigned flags, void **memory)"));
    assert_eq!(library.len(), 14);
}

#[test]
fn header_and_library_have_the_same_constants() {
    let constant = |name: &str| {
        let value = header().lines().find_map(|line| line.strip_prefix(&format!("#define {name} ")).map(str::to_owned));
        value.unwrap_or_else(|| panic!("no {name}"))
    };
    assert_eq!(constant("GENUMA_PLACE_VERSION"), format!("\"{}\"", env!("CARGO_PKG_VERSION")));
    let source = |file: &str| {
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(file)).expect("a source")
    };
    let code = format!("const NOT_AS_REQUESTED: c_int = {};", constant("GENUMA_NOT_AS_REQUESTED"));
    assert!(source("status.rs").contains(&code));
    let flag = format!("const HUGE_PAGES: c_uint = {};", constant("GENUMA_HUGE_PAGES").trim_end_matches('u'));
    assert!(source("request.rs").contains(&flag));
}

#[test]
fn the_library_exports_the_functions_of_the_header_and_nothing_else() {
    if !is_installed("the_library_exports_the_functions_of_the_header", "nm") {
        return;
    }
    let names = header_prototypes().into_iter().map(|prototype| {
        let name = prototype.split('(').next().and_then(|before| before.rsplit([' ', '*']).next());
        name.expect("a name").to_owned()
    });
    let library = library_folder().join("libgenuma_place.so");
    let listed = run(Command::new("nm").args(["-D", "--defined-only"]).arg(library));
    let exported: BTreeSet<String> =
        listed.lines().filter_map(|line| line.split_whitespace().last()).map(str::to_owned).collect();
    assert_eq!(exported, names.collect());
}
