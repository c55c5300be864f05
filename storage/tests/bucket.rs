//! Run stores in buckets, with an S3 mock server on this machine and a proxy that injects network faults.

mod common;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use common::proxy::{Fault, Proxy, ReceivedRequest};
use common::server::{Server, options, plain, server};
use common::{fetch_bytes, find_object, names, noise, publish_bytes, skipped};
use genuma_storage::{BucketOptions, Error, RunStore};
use tempfile::TempDir;

/// A bucket, a proxy in front of the server, and a run store that uses the proxy.
struct Setup {
    server: &'static Server,
    proxy: Proxy,
    store: RunStore,
    scratch: TempDir,
    bucket: &'static str,
}

impl Setup {
    /// `None`, with a message, if there is no server.
    fn new(bucket: &'static str) -> Option<Setup> {
        Setup::with(bucket, |_| {})
    }

    fn with(bucket: &'static str, change: impl FnOnce(&mut BucketOptions)) -> Option<Setup> {
        let server = server().inspect_err(|why| skipped(why)).ok()?;
        server.make(bucket);
        let proxy = Proxy::before(server.port, |_| Fault::None);
        let scratch = tempfile::tempdir().unwrap();
        let mut options = options(proxy.port);
        change(&mut options);
        let store = RunStore::open_with_options(&format!("s3://{bucket}/runs/1"), scratch.path(), &options).unwrap();
        Some(Setup { server, proxy, store, scratch, bucket })
    }

    fn url(&self, name: &str) -> String {
        format!("s3://{}/runs/1/{name}", self.bucket)
    }

    /// Whether the scratch folder is empty.
    fn is_clean(&self) -> bool {
        names(self.scratch.path()).is_empty()
    }
}

fn is_part(asked: &ReceivedRequest) -> bool {
    asked.method == "PUT" && asked.target.contains("partNumber=")
}

fn is_completion(asked: &ReceivedRequest) -> bool {
    asked.method == "POST" && asked.target.contains("uploadId=")
}

/// Publishes objects of many lengths and reads them with all functions; returns names and contents.
fn tour(store: &RunStore) -> Vec<(String, Vec<u8>)> {
    store.create_store_folder().unwrap();
    assert!(store.list_object_names().unwrap().is_empty());
    let lengths = [0, 1, 1000, (64 << 10) - 1, 64 << 10, (64 << 10) + 1, 300_000, 6 * (64 << 10)];
    for (i, len) in lengths.into_iter().enumerate() {
        publish_bytes(store, &format!("object-{i}"), &noise(len, 99)).unwrap();
        publish_bytes(store, &format!("object-{i}"), &noise(len, i as u64)).unwrap();
    }
    publish_bytes(store, "gone", b"x").unwrap();
    store.remove_object("gone").unwrap();
    store.remove_object("gone").unwrap();
    assert!(store.open_object_if_exists("gone").unwrap().is_none());
    let mut got = Vec::new();
    for name in store.list_object_names().unwrap() {
        let object = find_object(store, &name);
        let (len, third) = (object.len_bytes(), object.len_bytes() / 3);
        let whole = fetch_bytes(&object, 0..len).unwrap();
        assert_eq!(object.read_range(0..len).unwrap(), whole);
        assert_eq!(object.read_range(third..len).unwrap(), whole[third as usize..]);
        assert_eq!(fetch_bytes(&object, third..2 * third).unwrap(), whole[third as usize..2 * third as usize]);
        assert_eq!(object.read_range(len..len).unwrap(), b"");
        assert!(matches!(object.read_range(len..len + 1), Err(Error::OutOfRange { .. })));
        assert_eq!(find_object(store, &name).object_version(), object.object_version());
        got.push((name, whole));
    }
    for (i, len) in lengths.into_iter().enumerate() {
        assert_eq!(got[i], (format!("object-{i}"), noise(len, i as u64)));
    }
    assert_eq!(got.len(), lengths.len());
    got
}

#[test]
fn all_locations_give_the_same_bytes() {
    let Some(setup) = Setup::new("same") else { return };
    let folder = tempfile::tempdir().unwrap();
    let open = |place: String| RunStore::open(&place, Path::new("/nowhere")).unwrap();
    let plain = tour(&open(folder.path().join("plain").display().to_string()));
    let url = tour(&open(format!("file://{}", folder.path().join("a%20b").display())));
    assert_eq!(names(folder.path()), ["a b", "plain"]);
    assert_eq!(plain, url);
    assert_eq!(plain, tour(&setup.store));
    assert!(setup.is_clean());
    assert_eq!(setup.store.to_string(), "s3://same/runs/1");
    // Objects with other or longer prefixes are not listed.
    let root = RunStore::open_with_options("s3://same", setup.scratch.path(), &options(setup.proxy.port)).unwrap();
    publish_bytes(&root, "runs", b"x").unwrap();
    assert_eq!(root.list_object_names().unwrap(), ["runs"]);
    assert_eq!(setup.store.list_object_names().unwrap().len(), plain.len());
    let asked = setup.proxy.received_requests();
    assert_eq!(asked.iter().filter(|asked| is_part(asked)).count(), 2 * (2 + 5 + 6));
    assert_eq!(asked.iter().filter(|asked| is_completion(asked)).count(), 2 * 3);
}

#[test]
fn objects_survive_network_faults() {
    let faults = [
        ("bad-status", Fault::Status(503)),
        ("bad-internal", Fault::Status(500)),
        ("bad-rate", Fault::Status(429)),
        ("bad-reset", Fault::Reset),
        ("bad-lose", Fault::Lose),
        ("bad-cut", Fault::Cut),
        ("bad-halve", Fault::Halve),
        ("bad-stall", Fault::Stall(2000)),
        ("bad-slow", Fault::Slow),
    ];
    if let Err(why) = server() {
        return skipped(why);
    }
    std::thread::scope(|scope| {
        for (bucket, fault) in faults {
            scope.spawn(move || arrives(bucket, fault));
        }
    });
}

/// Publishes, reads and removes objects while every third request has a fault. Answers without a body are not truncated.
fn arrives(bucket: &'static str, fault: Fault) {
    let setup = Setup::with(bucket, |options| options.read_timeout = Duration::from_secs(1)).expect("a server");
    let of_bodies = matches!(fault, Fault::Cut | Fault::Halve);
    setup.proxy.follow(move |asked| match asked.number % 3 {
        1 if !of_bodies || (asked.method == "GET" && !asked.target.contains("list-type")) => fault,
        _ => Fault::None,
    });
    let bytes = noise(500_000, 7);
    publish_bytes(&setup.store, "x", &bytes).unwrap();
    publish_bytes(&setup.store, "small", &bytes[..1000]).unwrap();
    let x = find_object(&setup.store, "x");
    assert_eq!(x.len_bytes(), bytes.len() as u64);
    assert_eq!(fetch_bytes(&x, 0..x.len_bytes()).unwrap(), bytes, "{fault:?}");
    assert_eq!(x.read_range(1..200_000).unwrap(), bytes[1..200_000], "{fault:?}");
    assert_eq!(setup.store.list_object_names().unwrap(), ["small", "x"]);
    setup.store.remove_object("x").unwrap();
    assert!(setup.store.open_object_if_exists("x").unwrap().is_none());
    assert!(setup.is_clean());
}

#[test]
fn an_upload_with_a_lost_completion_answer_succeeds() {
    let Some(setup) = Setup::new("lost") else { return };
    let mut lost = 0;
    setup.proxy.follow(move |asked| {
        let lose = is_completion(asked) && lost < 2;
        lost += u32::from(lose);
        if lose { Fault::Lose } else { Fault::None }
    });
    let bytes = noise(200_000, 3);
    publish_bytes(&setup.store, "x", &bytes).unwrap();
    let x = find_object(&setup.store, "x");
    assert_eq!(fetch_bytes(&x, 0..x.len_bytes()).unwrap(), bytes);
}

#[test]
fn a_failed_upload_keeps_the_older_object() {
    let Some(setup) = Setup::with("older", |options| options.retry_timeout = Duration::from_millis(300)) else {
        return;
    };
    let older = noise(200_000, 4);
    publish_bytes(&setup.store, "x", &older).unwrap();
    setup.proxy.follow(|asked| {
        if is_part(asked) && asked.target.contains("partNumber=3") { Fault::Reset } else { Fault::None }
    });
    let error = publish_bytes(&setup.store, "x", &noise(200_000, 5)).unwrap_err();
    assert!(matches!(error, Error::RetriesExhausted { action: "write", .. }), "{error}");
    assert!(setup.is_clean());
    let aborted = setup
        .proxy
        .received_requests()
        .iter()
        .any(|asked| asked.method == "DELETE" && asked.target.contains("uploadId="));
    assert!(aborted);
    let x = find_object(&setup.store, "x");
    assert_eq!(fetch_bytes(&x, 0..x.len_bytes()).unwrap(), older);
    assert_eq!(setup.store.list_object_names().unwrap(), ["x"]);
}

#[test]
fn lasting_faults_are_reported_with_object_and_attempts() {
    let Some(setup) = Setup::with("busy", |options| {
        options.retry_timeout = Duration::from_millis(500);
        options.read_timeout = Duration::from_millis(500);
    }) else {
        return;
    };
    publish_bytes(&setup.store, "x", &noise(200_000, 6)).unwrap();
    let x = find_object(&setup.store, "x");
    for (fault, what) in [
        (Fault::Status(503), "503 Injected: by the proxy"),
        (Fault::Reset, "connection closed before message completed"),
        (Fault::Halve, "the answer ended with "),
        (Fault::Cut, " bytes missing"),
        (Fault::Stall(3000), "timed out"),
    ] {
        setup.proxy.follow(move |_| fault);
        let begun = Instant::now();
        let error = match fault {
            Fault::Halve | Fault::Cut => x.read_range(0..64 << 10).unwrap_err(),
            _ => x.fetch_range_to_file(0..x.len_bytes()).map(drop).unwrap_err(),
        };
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
        let message = error.to_string();
        assert!(message.starts_with(&format!("cannot read {}: ", setup.url("x"))), "{message}");
        assert!(
            message.contains(what) && message.contains("; tried ") && !message.contains('\n'),
            "{fault:?}: {message}"
        );
        let Error::RetriesExhausted { tries, .. } = error else { panic!("{message}") };
        assert!(tries >= 1, "{message}");
    }
    setup.proxy.follow(|_| Fault::Status(503));
    let message = [
        setup.store.open_object_if_exists("x").map(drop).unwrap_err().to_string(),
        setup.store.remove_object("x").unwrap_err().to_string(),
        setup.store.list_object_names().unwrap_err().to_string(),
        publish_bytes(&setup.store, "x", b"x").unwrap_err().to_string(),
    ];
    let url = setup.url("x");
    let expected = [
        format!("cannot read {url}: 503 "),
        format!("cannot remove {url}: 503 "),
        "cannot list s3://busy/runs/1: 503 ".to_owned(),
        format!("cannot write {url}: 503 "),
    ];
    assert!(message.iter().zip(&expected).all(|(message, start)| message.starts_with(start)), "{message:?}");
    assert!(setup.is_clean());
}

#[test]
fn a_refused_connection_is_reported() {
    let scratch = tempfile::tempdir().unwrap();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let options = BucketOptions { retry_timeout: Duration::from_millis(200), ..options(free) };
    let store = RunStore::open_with_options("s3://b", scratch.path(), &options).unwrap();
    let message = store.open_object_if_exists("x").unwrap_err().to_string();
    assert!(message.starts_with("cannot read s3://b/x: Connection refused (os error 111); tried "), "{message}");
}

#[test]
fn removed_replaced_and_truncated_objects_are_reported() {
    let Some(setup) = Setup::new("fate") else { return };
    let bytes = noise(200_000, 8);
    let fresh = || {
        publish_bytes(&setup.store, "x", &bytes).unwrap();
        find_object(&setup.store, "x")
    };
    let url = setup.url("x");
    let message = |x: &genuma_storage::StoredObject| {
        let of_fetch = x.fetch_range_to_file(0..x.len_bytes()).map(drop).unwrap_err().to_string();
        assert_eq!(x.read_range(150_000..200_000).unwrap_err().to_string(), of_fetch);
        assert!(setup.is_clean());
        of_fetch
    };

    let x = fresh();
    setup.store.remove_object("x").unwrap();
    assert_eq!(
        message(&x),
        format!(
            "{url} was removed while it was in use; run the step that makes it again (genuma step RUN STEP NUMBER --again)"
        )
    );

    let replaced = format!("{url} was replaced while it was in use; run the step that reads it again");
    for len in [200_000, 300_000, 100_000, 10] {
        let x = fresh();
        publish_bytes(&setup.store, "x", &noise(len, 9)).unwrap();
        assert_ne!(find_object(&setup.store, "x").object_version(), x.object_version());
        assert_eq!(message(&x), replaced);
    }

    // The server claims that the same object is shorter.
    let x = fresh();
    setup.proxy.follow(|asked| if asked.method == "GET" { Fault::Shorten(180_000) } else { Fault::None });
    let short = format!(
        "{url} is truncated: it had 200000 bytes when it was found and has 180000 now; run the step that makes it again (genuma step RUN STEP NUMBER --again)"
    );
    assert_eq!(message(&x), short);
}

#[test]
fn a_missing_bucket_is_distinguished_from_a_missing_object() {
    let Some(setup) = Setup::new("there") else { return };
    let scratch = setup.scratch.path();
    let store = RunStore::open_with_options("s3://not-there/runs", scratch, &options(setup.server.port)).unwrap();
    let results = [
        store.open_object_if_exists("x").map(drop),
        store.list_object_names().map(drop),
        publish_bytes(&store, "x", b"x"),
        publish_bytes(&store, "x", &noise(200_000, 1)),
    ];
    for result in results {
        let message = result.unwrap_err().to_string();
        assert_eq!(message, "s3://not-there/runs: this bucket does not exist; create it, or check its name");
    }
    assert!(setup.store.open_object_if_exists("x").unwrap().is_none());
}

#[test]
fn wrong_or_missing_credentials_are_reported() {
    let scratch = tempfile::tempdir().unwrap();
    // This server accepts the first request without credentials, which creates the bucket.
    match Server::start(&[("INITIAL_NO_AUTH_ACTION_COUNT", "1")]) {
        Err(why) => skipped(&why),
        Ok(strict) => {
            strict.make("closed");
            let store = RunStore::open_with_options("s3://closed", scratch.path(), &options(strict.port)).unwrap();
            for (doing, result) in
                [("read", store.open_object_if_exists("x").map(drop)), ("write", publish_bytes(&store, "x", b"x"))]
            {
                let message = result.unwrap_err().to_string();
                let start = format!("cannot {doing} s3://closed/x: InvalidAccessKeyId: ");
                assert!(
                    message.starts_with(&start) && message.ends_with("; check the credentials and what they allow"),
                    "{message}"
                );
            }
        }
    }

    let with = |environment: &[(&str, &str)]| {
        let environment = environment.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let options = BucketOptions { environment, retry_timeout: Duration::from_secs(20), ..options(1) };
        RunStore::open_with_options("s3://b/p", scratch.path(), &options)
    };
    let message = with(&[("AWS_ACCESS_KEY_ID", "someone")]).unwrap_err().to_string();
    assert_eq!(message, "s3://b/p: the environment variables do not configure access: Missing SecretAccessKey");
    let message = with(&[("AWS_ALLOW_HTTP", "maybe")]).unwrap_err().to_string();
    assert!(message.starts_with("s3://b/p: the environment variables do not configure access: "), "{message}");
    let google = |environment| {
        let options = BucketOptions { environment, ..options(1) };
        RunStore::open_with_options("gs://b/p", scratch.path(), &options)
    };
    let message = google(vec![("GOOGLE_APPLICATION_CREDENTIALS".into(), "/not/there".into())]).unwrap_err().to_string();
    assert!(message.starts_with("gs://b/p: the environment variables do not configure access: "), "{message}");
    // No machine has this address.
    let store = with(&[("AWS_METADATA_ENDPOINT", "http://169.254.0.1")]).unwrap();
    let message = store.open_object_if_exists("x").unwrap_err().to_string();
    assert!(message.starts_with("cannot read s3://b/p/x: no credentials: set AWS_ACCESS_KEY_ID and "), "{message}");
}

#[test]
fn a_run_store_is_used_by_many_threads() {
    let Some(setup) = Setup::new("many") else { return };
    let bodies: Vec<Vec<u8>> = (0..4).map(|i| noise(100_000 + i, i as u64)).collect();
    publish_bytes(&setup.store, "x", &bodies[0]).unwrap();
    std::thread::scope(|scope| {
        for body in &bodies {
            scope.spawn(|| (0..3).for_each(|_| publish_bytes(&setup.store, "x", body).unwrap()));
        }
        for _ in 0..10 {
            let x = find_object(&setup.store, "x");
            match fetch_bytes(&x, 0..x.len_bytes()) {
                Ok(bytes) => assert!(bodies.contains(&bytes)),
                Err(error) => assert!(matches!(error, Error::Replaced { .. }), "{error}"),
            }
        }
    });
    assert!(setup.is_clean());
    let x = find_object(&setup.store, "x");
    // The local copy outlives run store and object handle, and is removed when it is dropped.
    let kept = x.fetch_range_to_file(10..20).unwrap();
    assert_eq!((kept.object_offset(), fs::metadata(kept.local_path()).unwrap().len()), (10, 10));
    let Setup { store, scratch, .. } = setup;
    drop((store, x));
    assert_eq!(fs::read(kept.local_path()).unwrap().len(), 10);
    drop(kept);
    assert!(names(scratch.path()).is_empty());
}

#[test]
fn keys_start_with_the_prefix() {
    let Some(setup) = Setup::new("keys") else { return };
    publish_bytes(&setup.store, "a=1+b_2.x-y", b"x").unwrap();
    let answer = plain(setup.server.port, "GET", "/keys?list-type=2");
    assert!(answer.contains("<Key>runs/1/a=1+b_2.x-y</Key>"), "{answer}");
    assert_eq!(setup.store.list_object_names().unwrap(), ["a=1+b_2.x-y"]);
    assert_eq!(find_object(&setup.store, "a=1+b_2.x-y").read_range(0..1).unwrap(), b"x");
}
