//! An S3-compatible server: moto, a mock of AWS services in Python, in a virtual environment in the target folder.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use genuma_storage::BucketOptions;

const PACKAGES: [&str; 3] = ["moto[s3]==5.2.5", "flask>=3,<4", "flask-cors>=6,<7"];

/// Ends when its standard input is closed, so also if the test is killed.
const SERVE: &str = "
import sys
from moto.moto_server.threaded_moto_server import ThreadedMotoServer
server = ThreadedMotoServer(ip_address='127.0.0.1', port=0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
sys.stdin.read()
";

/// A server that runs until it is dropped.
pub struct Server {
    child: Child,
    pub port: u16,
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// The server for all tests of this process, or the reason why there is none.
pub fn server() -> Result<&'static Server, &'static str> {
    static SERVER: OnceLock<Result<Server, String>> = OnceLock::new();
    SERVER.get_or_init(|| Server::start(&[])).as_ref().map_err(String::as_str)
}

impl Server {
    /// Starts a server with these environment variables, or returns the reason of the failure.
    pub fn start(variables: &[(&str, &str)]) -> Result<Server, String> {
        let python = python()?;
        let mut child = Command::new(python)
            .args(["-c", SERVE])
            // The tests use small parts.
            .env("S3_UPLOAD_PART_MIN_SIZE", "1")
            .envs(variables.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|e| format!("python does not start: {e}"))?;
        let mut line = String::new();
        let stdout = child.stdout.take().expect("piped");
        let _ = BufReader::new(stdout).read_line(&mut line);
        let port = line.trim().parse().map_err(|_| "moto does not start".to_owned());
        match port {
            Ok(port) => Ok(Server { child, port }),
            Err(why) => {
                let _ = child.kill();
                let _ = child.wait();
                Err(why)
            }
        }
    }

    /// Creates a bucket.
    pub fn make(&self, bucket: &str) {
        let answer = plain(self.port, "PUT", &format!("/{bucket}"));
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
}

/// Sends an unsigned request without a body.
pub fn plain(port: u16, method: &str, target: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let head = "Host: 127.0.0.1\r\nContent-Length: 0\r\nConnection: close\r\n";
    write!(stream, "{method} {target} HTTP/1.1\r\n{head}\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// Options to use a server at a port of this machine, with small parts and short timeouts.
pub fn options(port: u16) -> BucketOptions {
    let environment = [
        ("AWS_ACCESS_KEY_ID", "someone"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
        ("AWS_DEFAULT_REGION", "us-east-1"),
        ("AWS_ENDPOINT_URL", &format!("http://127.0.0.1:{port}")),
    ];
    BucketOptions {
        environment: environment.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
        part_bytes: 64 << 10,
        max_concurrent_requests: 4,
        retry_timeout: std::time::Duration::from_secs(30),
        read_timeout: std::time::Duration::from_secs(5),
    }
}

/// Path of a Python with moto, which is installed at the first call.
fn python() -> Result<PathBuf, String> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    fs::create_dir_all(folder).map_err(|e| e.to_string())?;
    let lock = File::create(folder.join("moto.lock")).map_err(|e| e.to_string())?;
    lock.lock().map_err(|e| e.to_string())?;
    let (place, python) = (folder.join("moto"), folder.join("moto/bin/python"));
    let complete = place.join("complete");
    if fs::read_to_string(&complete).is_ok_and(|packages| packages == PACKAGES.join(" ")) {
        return Ok(python);
    }
    run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&place))?;
    run(Command::new(&python).args(["-m", "pip", "install", "--quiet", "--retries", "1"]).args(PACKAGES))?;
    fs::write(complete, PACKAGES.join(" ")).map_err(|e| e.to_string())?;
    Ok(python)
}

fn run(command: &mut Command) -> Result<(), String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|e| format!("{program} does not start: {e}"))?;
    if output.status.success() {
        return Ok(());
    }
    let message = String::from_utf8_lossy(&output.stderr);
    Err(format!("moto cannot be installed: {}", message.trim().lines().last().unwrap_or("pip says nothing")))
}
