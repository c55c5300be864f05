//! The client of a bucket service (S3 or Google Cloud Storage), and the classification of its errors.
//!
//! The crate `object_store` builds and signs requests. Its own retries are disabled, because the module `retry` retries
//! requests and counts the attempts. Its HTTP client is wrapped, so that error responses and broken connections become
//! typed errors.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey, Checksum};
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService, ReqwestConnector,
};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::multipart::MultipartStore;
use object_store::{ClientConfigKey, ClientOptions, ObjectStore, RetryConfig};

use crate::bucket_options::BucketOptions;
use crate::error::Error;
use crate::retry::{AttemptError, RequestDescription};
use crate::store_location::{BucketLocation, StorageProvider};

/// Maximum number of characters of an error response that are quoted in an error message.
const MAX_MESSAGE_CHARS: usize = 200;

/// A client of one bucket, with the two interfaces of the crate `object_store`: requests for whole objects, and
/// multipart uploads.
#[derive(Debug, Clone)]
pub(crate) struct BucketClient {
    /// Interface for requests for whole objects.
    pub store: Arc<dyn ObjectStore>,
    /// Interface for multipart uploads to the same bucket.
    pub multipart: Arc<dyn DebugMultipartStore>,
}

/// A [`MultipartStore`] (upload of an object in parts) that also implements `Debug`.
pub(crate) trait DebugMultipartStore: MultipartStore + fmt::Debug {}

impl<T: MultipartStore + fmt::Debug> DebugMultipartStore for T {}

impl BucketClient {
    /// Creates a client for a bucket. Sends no request.
    pub fn new(location: &BucketLocation, options: &BucketOptions) -> Result<BucketClient, Error> {
        // Use ring for TLS, unless another provider is already installed.
        let _ = rustls::crypto::ring::default_provider().install_default();
        match location.provider {
            StorageProvider::S3 => build_s3_store(location, options).map(BucketClient::from_store),
            StorageProvider::Google => build_google_store(location, options).map(BucketClient::from_store),
        }
        .map_err(|e| Error::InvalidBucketSettings {
            location: location.to_string(),
            reason: client_error_message(one_line(&root_cause(&e).to_string())),
        })
    }

    fn from_store(store: impl ObjectStore + DebugMultipartStore) -> BucketClient {
        let store = Arc::new(store);
        BucketClient { store: store.clone(), multipart: store }
    }
}

/// Returns the error message for a client that cannot be created. If CA certificates are missing, it is advice for the
/// user, else `reason`.
fn client_error_message(reason: String) -> String {
    if reason.contains("No CA certificates") {
        return "the system has no CA certificates; install the package ca-certificates, or set SSL_CERT_FILE to a file of certificates".to_owned();
    }
    reason
}

/// Returns the settings of the timeouts. Environment variables can override them.
fn timeout_settings(options: &BucketOptions) -> [(ClientConfigKey, String); 3] {
    [
        (ClientConfigKey::ConnectTimeout, "10s".to_owned()),
        (ClientConfigKey::ReadTimeout, format!("{}ms", options.read_timeout.as_millis())),
        // A part may take longer as long as bytes keep arriving.
        (ClientConfigKey::Timeout, "1h".to_owned()),
    ]
}

/// Returns the environment variables whose names begin with `prefix`, with their names in lower case: settings of the
/// crate `object_store`.
fn environment_settings<'a>(options: &'a BucketOptions, prefix: &'a str) -> impl Iterator<Item = (String, &'a str)> {
    let selected = options.environment.iter().filter(move |(name, _)| name.starts_with(prefix));
    selected.map(|(name, value)| (name.to_ascii_lowercase(), value.as_str()))
}

fn no_retries() -> RetryConfig {
    RetryConfig { max_retries: 0, ..RetryConfig::default() }
}

fn build_s3_store(
    location: &BucketLocation,
    options: &BucketOptions,
) -> object_store::Result<impl ObjectStore + DebugMultipartStore + use<>> {
    // Remove objects one at a time: more servers support that than bulk deletion.
    let mut builder = AmazonS3Builder::new()
        .with_checksum_algorithm(Checksum::SHA256)
        .with_config(AmazonS3ConfigKey::DisableBulkDelete, "true");
    for (key, value) in timeout_settings(options) {
        builder = builder.with_config(AmazonS3ConfigKey::Client(key), value);
    }
    for (name, value) in environment_settings(options, "AWS_") {
        if name.starts_with("aws_endpoint") && value.starts_with("http://") {
            builder = builder.with_allow_http(true);
        }
        if let Ok(key) = name.parse() {
            builder = builder.with_config(key, value);
        }
    }
    builder
        .with_bucket_name(&location.bucket)
        .with_retry(no_retries())
        .with_http_connector(ErrorMappingConnector)
        .build()
}

fn build_google_store(
    location: &BucketLocation,
    options: &BucketOptions,
) -> object_store::Result<impl ObjectStore + DebugMultipartStore + use<>> {
    let mut builder = GoogleCloudStorageBuilder::new();
    for (key, value) in timeout_settings(options) {
        builder = builder.with_config(GoogleConfigKey::Client(key), value);
    }
    for (name, value) in environment_settings(options, "GOOGLE_") {
        if name == "google_base_url" && value.starts_with("http://") {
            builder = builder.with_config(GoogleConfigKey::Client(ClientConfigKey::AllowHttp), "true");
        }
        if let Ok(key) = name.parse() {
            builder = builder.with_config(key, value);
        }
    }
    builder
        .with_bucket_name(&location.bucket)
        .with_retry(no_retries())
        .with_http_connector(ErrorMappingConnector)
        .build()
}

/// Creates HTTP clients that turn error responses into [`ErrorResponse`].
#[derive(Debug)]
struct ErrorMappingConnector;

impl HttpConnector for ErrorMappingConnector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        ReqwestConnector::default().connect(options).map(|client| HttpClient::new(ErrorMappingService(client)))
    }
}

#[derive(Debug)]
struct ErrorMappingService(HttpClient);

#[async_trait]
impl HttpService for ErrorMappingService {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let response = self.0.execute(request).await?;
        let status = response.status().as_u16();
        if !is_mapped_status(status) {
            return Ok(response);
        }
        let text = response.into_body().bytes().await?;
        let text = String::from_utf8_lossy(&text);
        Err(HttpError::new(HttpErrorKind::Request, ErrorResponse { status, text: text.into_owned() }))
    }
}

/// Returns whether error responses with this HTTP status become an [`ErrorResponse`]. For other statuses `object_store`
/// has error types of its own.
fn is_mapped_status(status: u16) -> bool {
    status >= 400 && ![401, 403, 404, 412].contains(&status)
}

#[derive(Debug, thiserror::Error)]
#[error("{status} {}", extract_message(text))]
struct ErrorResponse {
    status: u16,
    text: String,
}

impl ErrorResponse {
    /// Returns whether the same request may succeed later: after timeouts, conflicts, too many requests or server
    /// errors.
    fn is_transient(&self) -> bool {
        matches!(self.status, 408 | 409 | 425 | 429) || self.status >= 500 || self.text.contains("RequestTimeout")
    }
}

/// Converts the error of a request to an error of this crate, and decides whether the request is retried. A missing
/// object becomes [`Error::ObjectRemoved`]; callers for which it is no error must handle that case.
pub(crate) fn classify_request_error(
    location: &BucketLocation,
    task: RequestDescription<'_>,
    error: &object_store::Error,
) -> AttemptError {
    let RequestDescription { action, object } = task;
    let (object, reason) = (object.to_owned(), root_cause_message(error));
    match error {
        _ if is_missing_bucket(error) => {
            AttemptError::Permanent(Error::StoreMissing { location: location.to_string(), what: "bucket" })
        }
        object_store::Error::NotFound { .. } => AttemptError::Permanent(Error::ObjectRemoved { object }),
        object_store::Error::Precondition { .. } => AttemptError::Permanent(Error::Replaced { object }),
        object_store::Error::PermissionDenied { .. } | object_store::Error::Unauthenticated { .. } => {
            AttemptError::Permanent(Error::Denied { action, object, reason })
        }
        _ if is_metadata_service_error(error) => {
            let variables = match location.provider {
                StorageProvider::S3 => "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (profiles are not read)",
                StorageProvider::Google => "GOOGLE_APPLICATION_CREDENTIALS",
            };
            AttemptError::NoCredentials(Error::NoCredentials { action, object, variables, reason })
        }
        _ => match (find_cause::<ErrorResponse>(error), find_cause::<HttpError>(error)) {
            (Some(answer), _) if answer.is_transient() => AttemptError::Transient(reason),
            // An invalid certificate stays invalid.
            (None, Some(_)) if !reason.contains("certificate") => AttemptError::Transient(reason),
            _ => AttemptError::Permanent(Error::Rejected { action, object, reason }),
        },
    }
}

/// Returns whether the requested range begins after the end of the object (HTTP status 416).
pub(crate) fn is_range_not_satisfiable(error: &object_store::Error) -> bool {
    find_cause::<ErrorResponse>(error).is_some_and(|answer| answer.status == 416)
}

/// Returns whether the service does not support the request (HTTP status 501).
pub(crate) fn is_not_implemented(error: &object_store::Error) -> bool {
    find_cause::<ErrorResponse>(error).is_some_and(|answer| answer.status == 501)
}

/// Returns whether the failed request was one for credentials, sent to the metadata service of a cloud machine.
fn is_metadata_service_error(error: &object_store::Error) -> bool {
    error_chain(error)
        .map(|e| e.to_string())
        .any(|text| ["http://169.254.", "http://metadata"].iter().any(|location| text.contains(location)))
}

/// Returns whether the bucket itself does not exist.
fn is_missing_bucket(error: &object_store::Error) -> bool {
    let text = root_cause(error).to_string();
    text.contains("NoSuchBucket") || text.contains("The specified bucket does not exist")
}

/// Returns the root cause of an error in one line.
pub(crate) fn root_cause_message(error: &(dyn StdError + 'static)) -> String {
    extract_message(&root_cause(error).to_string())
}

/// Iterates over an error and its chain of sources. The root cause is the last.
fn error_chain<'a>(error: &'a (dyn StdError + 'static)) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    let mut next = Some(error);
    std::iter::from_fn(move || {
        let error = next?;
        next = error.source();
        Some(error)
    })
}

/// Returns the first error of type `T` in the chain of an error and its sources; `None` if the chain has no such error.
fn find_cause<'a, T: StdError + 'static>(error: &'a (dyn StdError + 'static)) -> Option<&'a T> {
    error_chain(error).find_map(|e| e.downcast_ref())
}

/// Returns the last error in the chain of an error and its sources.
fn root_cause<'a>(error: &'a (dyn StdError + 'static)) -> &'a (dyn StdError + 'static) {
    error_chain(error).last().unwrap_or(error)
}

/// Returns code and message of an XML error response, or the text itself if it has another form, in one line.
fn extract_message(text: &str) -> String {
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
    match line.char_indices().nth(MAX_MESSAGE_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_messages_have_one_line() {
        let xml =
            "<?xml version=\"1.0\"?>\n<Error><Code>SlowDown</Code><Message>Please reduce\nyour rate.</Message></Error>";
        let answer = ErrorResponse { status: 503, text: xml.into() };
        assert_eq!(answer.to_string(), "503 SlowDown: Please reduce your rate");
        assert_eq!(extract_message("403 Forbidden: "), "403 Forbidden");
        assert_eq!(extract_message(&"x".repeat(MAX_MESSAGE_CHARS + 1)), format!("{}…", "x".repeat(MAX_MESSAGE_CHARS)));
    }

    #[test]
    fn errors_are_classified() {
        let location = BucketLocation { provider: StorageProvider::S3, bucket: "b".into(), prefix: String::new() };
        let task = RequestDescription { action: "read", object: "s3://b/x" };
        let of = |inner: Box<dyn StdError + Send + Sync>| {
            let http = HttpError::new_boxed(HttpErrorKind::Request, inner);
            classify_request_error(
                &location,
                task,
                &object_store::Error::Generic { store: "S3", source: Box::new(http) },
            )
        };
        let answer = |status, text: &str| of(Box::new(ErrorResponse { status, text: text.into() }));
        for status in [408, 409, 429, 500, 503] {
            assert!(matches!(answer(status, ""), AttemptError::Transient(_)), "{status}");
        }
        assert!(matches!(answer(400, "<Code>RequestTimeout</Code>"), AttemptError::Transient(_)));
        assert!(matches!(answer(400, "bad"), AttemptError::Permanent(Error::Rejected { .. })));
        assert!(matches!(of("connection reset".into()), AttemptError::Transient(_)));
        let forged = of("invalid peer certificate: UnknownIssuer".into());
        assert!(matches!(forged, AttemptError::Permanent(Error::Rejected { .. })));
        let asked = of("Error performing PUT http://169.254.169.254/latest/api/token: no route".into());
        assert!(matches!(asked, AttemptError::NoCredentials(Error::NoCredentials { .. })));
        let gone = object_store::Error::NotFound { path: "x".into(), source: "<Code>NoSuchBucket</Code>".into() };
        assert!(matches!(
            classify_request_error(&location, task, &gone),
            AttemptError::Permanent(Error::StoreMissing { .. })
        ));
        let gone = object_store::Error::NotFound { path: "x".into(), source: "<Code>NoSuchKey</Code>".into() };
        assert!(matches!(
            classify_request_error(&location, task, &gone),
            AttemptError::Permanent(Error::ObjectRemoved { .. })
        ));
    }
}
