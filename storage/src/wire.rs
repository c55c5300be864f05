//! What goes over the network, and what comes back instead of an answer.
//!
//! `object_store` builds and signs requests. Its own retries are off (`retry.rs` is all there is, so that the tries are counted), and its
//! client is wrapped: answers of failure and broken connections become errors of types that can be told apart.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey, Checksum};
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService,
    ReqwestConnector,
};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::multipart::MultipartStore;
use object_store::{ClientConfigKey, ClientOptions, ObjectStore, RetryConfig};

use crate::error::Error;
use crate::options::Options;
use crate::place::{InBucket, Provider};
use crate::retry::{Stop, Task};

/// Bytes of a failure's text that are told.
const TOLD: usize = 200;

/// Both halves of a storage's client.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    /// Whole objects.
    pub store: Arc<dyn ObjectStore>,
    /// Objects in parts.
    pub parts: Arc<dyn Parts>,
}

/// [`MultipartStore`], which can be shown.
pub trait Parts: MultipartStore + fmt::Debug {}

impl<T: MultipartStore + fmt::Debug> Parts for T {}

impl Client {
    /// One for a bucket. Nothing is sent.
    pub fn new(place: &InBucket, options: &Options) -> Result<Client, Error> {
        // TLS by ring. Another provider may be installed already: then it is that one.
        let _ = rustls::crypto::ring::default_provider().install_default();
        match place.provider {
            Provider::S3 => s3(place, options).map(Client::of),
            Provider::Google => google(place, options).map(Client::of),
        }
        .map_err(|e| Error::Settings {
            place: place.to_string(),
            why: setting(one_line(&innermost(&e).to_string())),
        })
    }

    fn of(store: impl ObjectStore + Parts) -> Client {
        let store = Arc::new(store);
        Client { store: store.clone(), parts: store }
    }
}

/// Why there is no client, with what to do where that is not said.
fn setting(why: String) -> String {
    if why.contains("No CA certificates") {
        return "the system has no CA certificates; install them (ca-certificates), or name a file of them in SSL_CERT_FILE".to_owned();
    }
    why
}

/// How connections behave unless the environment says otherwise.
fn timeouts(options: &Options) -> [(ClientConfigKey, String); 3] {
    [
        (ClientConfigKey::ConnectTimeout, "10s".to_owned()),
        (ClientConfigKey::ReadTimeout, format!("{}ms", options.silence.as_millis())),
        // A part may take as long as it keeps coming.
        (ClientConfigKey::Timeout, "1h".to_owned()),
    ]
}

/// Variables that begin with `prefix`, in small letters.
fn variables<'a>(options: &'a Options, prefix: &'a str) -> impl Iterator<Item = (String, &'a str)> {
    let ours = options.environment.iter().filter(move |(name, _)| name.starts_with(prefix));
    ours.map(|(name, value)| (name.to_ascii_lowercase(), value.as_str()))
}

fn no_retries() -> RetryConfig {
    RetryConfig { max_retries: 0, ..RetryConfig::default() }
}

fn s3(place: &InBucket, options: &Options) -> object_store::Result<impl ObjectStore + Parts + use<>> {
    // Objects are removed one by one, which more servers understand than removing many.
    let mut builder = AmazonS3Builder::new()
        .with_checksum_algorithm(Checksum::SHA256)
        .with_config(AmazonS3ConfigKey::DisableBulkDelete, "true");
    for (key, value) in timeouts(options) {
        builder = builder.with_config(AmazonS3ConfigKey::Client(key), value);
    }
    for (name, value) in variables(options, "AWS_") {
        if name.starts_with("aws_endpoint") && value.starts_with("http://") {
            builder = builder.with_allow_http(true);
        }
        if let Ok(key) = name.parse() {
            builder = builder.with_config(key, value);
        }
    }
    builder.with_bucket_name(&place.bucket).with_retry(no_retries()).with_http_connector(Connector).build()
}

fn google(place: &InBucket, options: &Options) -> object_store::Result<impl ObjectStore + Parts + use<>> {
    let mut builder = GoogleCloudStorageBuilder::new();
    for (key, value) in timeouts(options) {
        builder = builder.with_config(GoogleConfigKey::Client(key), value);
    }
    for (name, value) in variables(options, "GOOGLE_") {
        if name == "google_base_url" && value.starts_with("http://") {
            builder = builder.with_config(GoogleConfigKey::Client(ClientConfigKey::AllowHttp), "true");
        }
        if let Ok(key) = name.parse() {
            builder = builder.with_config(key, value);
        }
    }
    builder.with_bucket_name(&place.bucket).with_retry(no_retries()).with_http_connector(Connector).build()
}

/// Makes clients that tell failures apart.
#[derive(Debug)]
struct Connector;

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        ReqwestConnector::default().connect(options).map(|client| HttpClient::new(Telling(client)))
    }
}

#[derive(Debug)]
struct Telling(HttpClient);

#[async_trait]
impl HttpService for Telling {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let response = self.0.execute(request).await?;
        let status = response.status().as_u16();
        if !told_by_type(status) {
            return Ok(response);
        }
        let text = response.into_body().bytes().await?;
        let text = String::from_utf8_lossy(&text);
        Err(HttpError::new(HttpErrorKind::Request, Answer { status, text: text.into_owned() }))
    }
}

/// Whether the error is made here: `object_store` has types of its own for the others.
fn told_by_type(status: u16) -> bool {
    status >= 400 && ![401, 403, 404, 412].contains(&status)
}

/// An answer of failure.
#[derive(Debug, thiserror::Error)]
#[error("{status} {}", told(text))]
struct Answer {
    status: u16,
    text: String,
}

impl Answer {
    /// Whether the same request may succeed later: timeouts, conflicts, too many requests, the server's own failures.
    fn passes(&self) -> bool {
        matches!(self.status, 408 | 409 | 425 | 429)
            || self.status >= 500
            || self.text.contains("RequestTimeout")
    }
}

/// What a failure of a request means. A missing object is for the caller to tell.
pub fn stop(place: &InBucket, task: Task<'_>, error: &object_store::Error) -> Stop {
    let Task { doing, object } = task;
    let (object, said) = (object.to_owned(), said(error));
    match error {
        _ if no_such_bucket(error) => {
            Stop::Lasting(Error::NoPlace { place: place.to_string(), what: "bucket" })
        }
        object_store::Error::NotFound { .. } => Stop::Lasting(Error::Missing { object }),
        object_store::Error::Precondition { .. } => Stop::Lasting(Error::Replaced { object }),
        object_store::Error::PermissionDenied { .. } | object_store::Error::Unauthenticated { .. } => {
            Stop::Lasting(Error::Denied { doing, object, said })
        }
        _ if asks_the_machine(error) => {
            let variables = match place.provider {
                Provider::S3 => "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (profiles are not read)",
                Provider::Google => "GOOGLE_APPLICATION_CREDENTIALS",
            };
            Stop::Nobody(Error::Credentials { doing, object, variables, said })
        }
        _ => match (cause::<Answer>(error), cause::<HttpError>(error)) {
            (Some(answer), _) if answer.passes() => Stop::Passing(said),
            // A certificate that does not convince never will.
            (None, Some(_)) if !said.contains("certificate") => Stop::Passing(said),
            _ => Stop::Lasting(Error::Refused { doing, object, said }),
        },
    }
}

/// Whether the object ends before the bytes that were asked for.
pub(crate) fn beyond_the_end(error: &object_store::Error) -> bool {
    cause::<Answer>(error).is_some_and(|answer| answer.status == 416)
}

/// Whether what failed was to ask the machine itself for credentials, where clouds answer such questions.
fn asks_the_machine(error: &object_store::Error) -> bool {
    causes(error)
        .map(|e| e.to_string())
        .any(|text| ["http://169.254.", "http://metadata"].iter().any(|place| text.contains(place)))
}

/// Whether the bucket itself is missing.
fn no_such_bucket(error: &object_store::Error) -> bool {
    let text = innermost(error).to_string();
    text.contains("NoSuchBucket") || text.contains("The specified bucket does not exist")
}

/// What happened, in one line.
pub fn said(error: &(dyn StdError + 'static)) -> String {
    told(&innermost(error).to_string())
}

/// An error, what it comes from, and so on.
fn causes<'a>(error: &'a (dyn StdError + 'static)) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    let mut next = Some(error);
    std::iter::from_fn(move || {
        let error = next?;
        next = error.source();
        Some(error)
    })
}

/// The error of type `T` that another comes from.
fn cause<'a, T: StdError + 'static>(error: &'a (dyn StdError + 'static)) -> Option<&'a T> {
    causes(error).find_map(|e| e.downcast_ref())
}

/// The error that all others come from.
fn innermost<'a>(error: &'a (dyn StdError + 'static)) -> &'a (dyn StdError + 'static) {
    causes(error).last().unwrap_or(error)
}

/// A storage's code and message where a text has such, else the text, in one line.
fn told(text: &str) -> String {
    let element = |name: &str| {
        let (_, rest) = text.split_once(&format!("<{name}>"))?;
        rest.split_once(&format!("</{name}>")).map(|(inner, _)| inner)
    };
    match (element("Code"), element("Message")) {
        (Some(code), Some(message)) => one_line(&format!("{code}: {message}")),
        (Some(code), None) => one_line(code),
        _ => one_line(text.strip_prefix("Server returned non-2xx status code: ").unwrap_or(text)),
    }
}

fn one_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = line.trim_end_matches([' ', ':', '.']);
    match line.char_indices().nth(TOLD) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_told_in_one_line() {
        let xml = "<?xml version=\"1.0\"?>\n<Error><Code>SlowDown</Code><Message>Please reduce\nyour rate.</Message></Error>";
        let answer = Answer { status: 503, text: xml.into() };
        assert_eq!(answer.to_string(), "503 SlowDown: Please reduce your rate");
        assert_eq!(told("403 Forbidden: "), "403 Forbidden");
        assert_eq!(told(&"x".repeat(TOLD + 1)), format!("{}…", "x".repeat(TOLD)));
    }

    #[test]
    fn failures_are_told_apart() {
        let place = InBucket { provider: Provider::S3, bucket: "b".into(), prefix: String::new() };
        let task = Task { doing: "read", object: "s3://b/x" };
        let of = |inner: Box<dyn StdError + Send + Sync>| {
            let http = HttpError::new_boxed(HttpErrorKind::Request, inner);
            stop(&place, task, &object_store::Error::Generic { store: "S3", source: Box::new(http) })
        };
        let answer = |status, text: &str| of(Box::new(Answer { status, text: text.into() }));
        for status in [408, 409, 429, 500, 503] {
            assert!(matches!(answer(status, ""), Stop::Passing(_)), "{status}");
        }
        assert!(matches!(answer(400, "<Code>RequestTimeout</Code>"), Stop::Passing(_)));
        assert!(matches!(answer(400, "bad"), Stop::Lasting(Error::Refused { .. })));
        assert!(matches!(of("connection reset".into()), Stop::Passing(_)));
        let forged = of("invalid peer certificate: UnknownIssuer".into());
        assert!(matches!(forged, Stop::Lasting(Error::Refused { .. })));
        let asked = of("Error performing PUT http://169.254.169.254/latest/api/token: no route".into());
        assert!(matches!(asked, Stop::Nobody(Error::Credentials { .. })));
        let gone =
            object_store::Error::NotFound { path: "x".into(), source: "<Code>NoSuchBucket</Code>".into() };
        assert!(matches!(stop(&place, task, &gone), Stop::Lasting(Error::NoPlace { .. })));
        let gone =
            object_store::Error::NotFound { path: "x".into(), source: "<Code>NoSuchKey</Code>".into() };
        assert!(matches!(stop(&place, task, &gone), Stop::Lasting(Error::Missing { .. })));
    }
}
