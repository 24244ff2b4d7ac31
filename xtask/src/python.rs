//! The Python package: its tests, and its wheels.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The target folder, in which this program is.
pub(crate) fn target() -> Result<PathBuf, String> {
    let program = std::env::current_exe().map_err(|e| e.to_string())?;
    program.ancestors().nth(2).map(Path::to_path_buf).ok_or_else(|| "there is no target folder".to_owned())
}

fn root() -> Result<PathBuf, String> {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().map(Path::to_path_buf).ok_or_else(|| "there is no workspace".to_owned())
}

/// Runs a program to its end.
pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    match command.stdin(Stdio::null()).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{name} ended with {status}")),
        Err(e) => Err(format!("{name} can't be run: {e}")),
    }
}

/// A virtual environment with what a file requires, made anew when that changes: its folder of programs.
fn environment(folder: &Path, requirements: &Path) -> Result<PathBuf, String> {
    let wanted = std::fs::read_to_string(requirements).map_err(|e| format!("{}: {e}", requirements.display()))?;
    let programs = folder.join("bin");
    // Written last: an environment without it was left half-made.
    let stamp = folder.join("installed.txt");
    if std::fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(programs);
    }
    run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(folder))?;
    let pip =
        ["-m", "pip", "install", "--quiet", "--no-deps", "--disable-pip-version-check", "--no-input", "--requirement"];
    run(Command::new(programs.join("python")).args(pip).arg(requirements))?;
    std::fs::write(&stamp, wanted).map_err(|e| format!("{}: {e}", stamp.display()))?;
    Ok(programs)
}

/// Puts the package together from its sources and the library that was built.
fn assemble(package: &Path, sources: &Path, library: &Path) -> Result<(), String> {
    let failed = |path: &Path, e: std::io::Error| format!("{}: {e}", path.display());
    let _ = std::fs::remove_dir_all(package);
    std::fs::create_dir_all(package).map_err(|e| failed(package, e))?;
    for entry in std::fs::read_dir(sources).map_err(|e| failed(sources, e))? {
        let path = entry.map_err(|e| failed(sources, e))?.path();
        if let (true, Some(name)) = (path.is_file(), path.file_name()) {
            std::fs::copy(&path, package.join(name)).map_err(|e| failed(&path, e))?;
        }
    }
    let module = package.join("_native.abi3.so");
    std::fs::hard_link(library, &module)
        .or_else(|_| std::fs::copy(library, &module).map(drop))
        .map_err(|e| failed(library, e))
}

/// The tests of the package, on the library as the tests of the workspace have it.
///
/// # Errors
/// If it can't be built, or a test fails.
pub(crate) fn test(arguments: &[String]) -> Result<(), String> {
    let (root, target) = (root()?, target()?);
    let crate_folder = root.join("crates/plinth-python");
    let programs = match environment(&target.join("python/venv"), &crate_folder.join("tests/requirements.txt")) {
        Ok(programs) => programs,
        Err(reason) => {
            eprintln!("skipped: the tests of the Python package ({reason})");
            return Ok(());
        }
    };
    // An example brings the dependencies of tests, and so the features that all else is built with: the engine is built once.
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    run(Command::new(cargo).current_dir(&root).args(["build", "--workspace", "--lib", "--example", "sql"]))?;
    let package = target.join("python/package");
    let library = if cfg!(target_os = "macos") { "libplinth_python.dylib" } else { "libplinth_python.so" };
    assemble(&package.join("plinth"), &crate_folder.join("python/plinth"), &target.join("debug").join(library))?;
    run(Command::new(programs.join("python"))
        .current_dir(&crate_folder)
        .env("PYTHONPATH", &package)
        .args(["-B", "-X", "dev", "-m", "pytest", "-q"])
        .args(arguments))
}

/// Wheels of the package, for any CPython from 3.10 on.
///
/// # Errors
/// If one can't be built.
pub(crate) fn wheels(arguments: &[String]) -> Result<(), String> {
    let (root, target) = (root()?, target()?);
    let programs = environment(&target.join("python/wheel-venv"), &root.join("xtask/wheel.txt"))?;
    let mut path = vec![programs.clone()];
    path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
    let path = std::env::join_paths(path).map_err(|e| e.to_string())?;
    let build = |given: &[&str]| {
        run(Command::new(programs.join("maturin"))
            .current_dir(root.join("crates/plinth-python"))
            .env("PATH", &path)
            .args(["build", "--release", "--locked", "--out"])
            .arg(target.join("wheels"))
            .args(given)
            .args(arguments))
    };
    if cfg!(target_os = "macos") {
        return build(&[]);
    }
    for machine in ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"] {
        // Zig links for systems that are older than this one, and for others.
        build(&["--zig", "--compatibility", "manylinux_2_28", "--target", machine])?;
    }
    Ok(())
}
