//! Lets `src/memory.rs` see what C code asks of the C library's allocator.

fn main() {
    for function in ["malloc", "calloc", "realloc"] {
        println!("cargo:rustc-link-arg-bins=-Wl,--wrap={function}");
    }
    println!("cargo:rerun-if-changed=build.rs");
}
