//! A proxy between client and server that injects faults of networks and busy servers.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// The fault to inject into a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// No fault.
    None,
    /// The request is not forwarded; the answer is this status.
    Status(u16),
    /// The request is not forwarded; the connection is closed.
    Reset,
    /// The request is forwarded; the connection is closed without an answer.
    Lose,
    /// The connection is closed in the middle of the answer's body.
    Cut,
    /// The body of the answer is halved, with a matching length.
    Halve,
    /// Nothing is sent for this number of milliseconds, then the connection is closed.
    Stall(u64),
    /// The answer is sent in a few parts with pauses.
    Slow,
    /// The answer claims that the object has at most this number of bytes.
    Shorten(u64),
}

/// Method and target of a request.
#[derive(Debug, Clone)]
pub struct ReceivedRequest {
    pub method: String,
    pub target: String,
    /// Number of earlier requests.
    pub number: usize,
}

type Rule = Box<dyn FnMut(&ReceivedRequest) -> Fault + Send>;

struct State {
    rule: Rule,
    asked: Vec<ReceivedRequest>,
}

/// A proxy that listens at `port` until the process ends.
pub struct Proxy {
    pub port: u16,
    state: Arc<Mutex<State>>,
}

impl Proxy {
    /// Starts a proxy in front of a server at a port of this machine.
    pub fn before(server: u16, rule: impl FnMut(&ReceivedRequest) -> Fault + Send + 'static) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(Mutex::new(State { rule: Box::new(rule), asked: Vec::new() }));
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let state = Arc::clone(&shared);
                // A client that closes the connection is not an error of the proxy.
                thread::spawn(move || drop(serve(client, server, &state)));
            }
        });
        Proxy { port, state }
    }

    /// Uses another rule from now on.
    pub fn follow(&self, rule: impl FnMut(&ReceivedRequest) -> Fault + Send + 'static) {
        self.state.lock().unwrap().rule = Box::new(rule);
    }

    /// All requests so far.
    pub fn received_requests(&self) -> Vec<ReceivedRequest> {
        self.state.lock().unwrap().asked.clone()
    }
}

/// Handles one request and its answer, and closes the connection.
fn serve(mut client: TcpStream, server: u16, state: &Mutex<State>) -> io::Result<()> {
    let (head, body) = message(&mut client)?;
    let mut words = head.split(' ').map(str::to_owned);
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let fault = {
        let mut state = state.lock().unwrap();
        let asked = ReceivedRequest { method, target, number: state.asked.len() };
        state.asked.push(asked.clone());
        (state.rule)(&asked)
    };
    match fault {
        Fault::Status(status) => {
            let text = "<Error><Code>Injected</Code><Message>by the proxy</Message></Error>";
            let text = if head.starts_with("HEAD ") { "" } else { text };
            let len = text.len();
            return write!(client, "HTTP/1.1 {status} X\r\nContent-Length: {len}\r\nConnection: close\r\n\r\n{text}");
        }
        Fault::Reset => return Ok(()),
        Fault::Stall(ms) => {
            thread::sleep(Duration::from_millis(ms));
            return Ok(());
        }
        _ => {}
    }
    let (head, body) = forward(server, &head, &body)?;
    match fault {
        Fault::Lose => Ok(()),
        Fault::Cut => send(&mut client, &head, &body[..body.len() / 2]),
        Fault::Halve => {
            let half = &body[..body.len() / 2];
            send(&mut client, &with(&head, "content-length", &half.len().to_string()), half)
        }
        Fault::Slow => {
            send(&mut client, &head, &[])?;
            for piece in body.chunks(body.len().div_ceil(4).max(1)) {
                thread::sleep(Duration::from_millis(50));
                client.write_all(piece)?;
            }
            Ok(())
        }
        Fault::Shorten(len) => {
            let Some((_, range)) = header(&head, "content-range").and_then(|r| r.split_once(' ')) else {
                return send(&mut client, &head, &body);
            };
            let start: u64 = range.split('-').next().and_then(|s| s.parse().ok()).unwrap_or(0);
            let kept = &body[..body.len().min(len.saturating_sub(start) as usize)];
            let range = format!("bytes {start}-{}/{len}", (start + kept.len() as u64).saturating_sub(1));
            let head = with(&head, "content-length", &kept.len().to_string());
            send(&mut client, &with(&head, "content-range", &range), kept)
        }
        _ => send(&mut client, &head, &body),
    }
}

/// The server's answer.
fn forward(server: u16, head: &str, body: &[u8]) -> io::Result<(String, Vec<u8>)> {
    let mut stream = TcpStream::connect(("127.0.0.1", server))?;
    send(&mut stream, &with(head, "connection", "close"), body)?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let end = head_end(&answer).ok_or(io::ErrorKind::UnexpectedEof)?;
    let head = String::from_utf8_lossy(&answer[..end]).into_owned();
    Ok((with(&head, "connection", "close"), answer.split_off(end)))
}

fn send(stream: &mut TcpStream, head: &str, body: &[u8]) -> io::Result<()> {
    stream.write_all(head.as_bytes())?;
    stream.write_all(body)
}

/// A request's head, with the empty line, and its body.
fn message(stream: &mut TcpStream) -> io::Result<(String, Vec<u8>)> {
    let (mut bytes, mut buffer) = (Vec::new(), vec![0; 64 << 10]);
    loop {
        if let Some(end) = head_end(&bytes) {
            let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
            let len: usize = header(&head, "content-length").and_then(|l| l.parse().ok()).unwrap_or(0);
            if bytes.len() >= end + len {
                return Ok((head, bytes.split_off(end)));
            }
        }
        match stream.read(&mut buffer)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            n => bytes.extend_from_slice(&buffer[..n]),
        }
    }
}

fn head_end(bytes: &[u8]) -> Option<usize> {
    bytes.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4)
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let lines = head.lines().filter_map(|line| line.split_once(':'));
    lines.filter(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim()).next()
}

/// A head with this header instead of one of the same name.
fn with(head: &str, name: &str, value: &str) -> String {
    let same = |line: &&str| line.split_once(':').is_some_and(|(n, _)| n.eq_ignore_ascii_case(name));
    let lines: Vec<&str> = head.trim_end().lines().filter(|line| !same(line)).collect();
    format!("{}\r\n{name}: {value}\r\n\r\n", lines.join("\r\n"))
}
