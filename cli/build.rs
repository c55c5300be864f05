//! Links the C library's allocation functions to wrappers in `src/allocator.rs`, so that genuma ends with an error
//! message if an allocation of C code fails.

fn main() {
    for function in ["malloc", "calloc", "realloc"] {
        println!("cargo:rustc-link-arg-bins=-Wl,--wrap={function}");
    }
    println!("cargo:rerun-if-changed=build.rs");
}
