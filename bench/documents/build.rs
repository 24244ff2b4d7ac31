//! Compiles simdjson and what reads the document by it. On-Demand knows no run-time dispatch: it is built for AVX2.

use std::path::PathBuf;
use std::process::Command;

fn main() {
    let mut build = cc::Build::new();
    build.cpp(true).std("c++17").opt_level(3).file("src/ondemand.cpp");
    if std::env::var("CARGO_CFG_TARGET_ARCH").as_deref() == Ok("x86_64") {
        build.flag("-march=haswell");
    }
    let library = sources();
    build.include(&library).file(library.join("simdjson.cpp")).compile("ondemand");
    println!("cargo:rerun-if-changed=src/ondemand.cpp");
}

/// The folder of simdjson's two files, in the sources of the crate.
fn sources() -> PathBuf {
    let cargo = std::env::var("CARGO").expect("run by cargo");
    let told = Command::new(cargo).args(["metadata", "--format-version", "1"]).output().expect("cargo metadata");
    let told = String::from_utf8(told.stdout).expect("text");
    let paths = told.split("\"manifest_path\":\"").skip(1).filter_map(|rest| rest.split('"').next());
    let manifest = paths.map(PathBuf::from).find(|path| path.to_string_lossy().contains("simdjson-sys-"));
    manifest.expect("simdjson-sys").with_file_name("vendor").join("simdjson")
}
