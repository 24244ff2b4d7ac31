//! Serves the files of a folder as S3 does, with a latency: for measurements of what is far away.
//!
//! `cargo run --release -p plinth-objects --features server --example server -- FOLDER [MILLISECONDS]` prints the endpoint;
//! each line on standard input prints and forgets what was asked: requests and bytes. It ends with its input.

use std::io::BufRead;
use std::path::Path;
use std::time::Duration;

use plinth_objects::server::Server;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("which folder?")?;
    let latency = arguments.next().map_or(Ok(0), |text| text.parse())?;
    let server = Server::start()?;
    put(&server, Path::new(&folder), "bucket")?;
    server.latency(Duration::from_millis(latency));
    println!("{}", server.endpoint());
    for line in std::io::stdin().lock().lines() {
        line?;
        let asked = server.asked();
        let bytes: u64 = asked.iter().map(|asked| asked.bytes).sum();
        println!("{} {bytes}", asked.len());
        for asked in asked {
            eprintln!("{} {} {} {}", asked.method, asked.target, asked.range.unwrap_or_default(), asked.bytes);
        }
    }
    Ok(())
}

fn put(server: &Server, folder: &Path, name: &str) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = format!("{name}/{}", path.file_name().unwrap_or_default().to_string_lossy());
        if path.is_dir() {
            put(server, &path, &name)?;
        } else {
            server.put(&name, &std::fs::read(&path)?);
        }
    }
    Ok(())
}
