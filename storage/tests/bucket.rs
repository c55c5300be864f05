//! Depots that are buckets, with a server on this machine and a proxy before it that does what networks do.

mod common;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use common::proxy::{Asked, Fault, Proxy};
use common::server::{Server, options, plain, server};
use common::{entry, fetched, names, noise, put, skipped};
use genuma_storage::{Depot, Error, Options};
use tempfile::TempDir;

/// A bucket, a proxy before it and a depot that goes through the proxy.
struct Setup {
    server: &'static Server,
    proxy: Proxy,
    depot: Depot,
    scratch: TempDir,
    bucket: &'static str,
}

impl Setup {
    /// None, and a word on why, where there is no server.
    fn new(bucket: &'static str) -> Option<Setup> {
        Setup::with(bucket, |_| {})
    }

    fn with(bucket: &'static str, change: impl FnOnce(&mut Options)) -> Option<Setup> {
        let server = server().inspect_err(|why| skipped(why)).ok()?;
        server.make(bucket);
        let proxy = Proxy::before(server.port, |_| Fault::None);
        let scratch = tempfile::tempdir().unwrap();
        let mut options = options(proxy.port);
        change(&mut options);
        let depot = Depot::open_with(&format!("s3://{bucket}/runs/1"), scratch.path(), &options).unwrap();
        Some(Setup { server, proxy, depot, scratch, bucket })
    }

    fn url(&self, name: &str) -> String {
        format!("s3://{}/runs/1/{name}", self.bucket)
    }

    /// Nothing is left in the scratch folder.
    fn is_clean(&self) -> bool {
        names(self.scratch.path()).is_empty()
    }
}

fn is_part(asked: &Asked) -> bool {
    asked.method == "PUT" && asked.target.contains("partNumber=")
}

fn is_completion(asked: &Asked) -> bool {
    asked.method == "POST" && asked.target.contains("uploadId=")
}

/// What a depot gives of objects of many lengths, by all its calls.
fn tour(depot: &Depot) -> Vec<(String, Vec<u8>)> {
    depot.create().unwrap();
    assert!(depot.names().unwrap().is_empty());
    let lengths = [0, 1, 1000, (64 << 10) - 1, 64 << 10, (64 << 10) + 1, 300_000, 6 * (64 << 10)];
    for (i, len) in lengths.into_iter().enumerate() {
        put(depot, &format!("object-{i}"), &noise(len, 99)).unwrap();
        put(depot, &format!("object-{i}"), &noise(len, i as u64)).unwrap();
    }
    put(depot, "gone", b"x").unwrap();
    depot.remove("gone").unwrap();
    depot.remove("gone").unwrap();
    assert!(depot.find("gone").unwrap().is_none());
    let mut got = Vec::new();
    for name in depot.names().unwrap() {
        let object = entry(depot, &name);
        let (len, third) = (object.len(), object.len() / 3);
        let whole = fetched(&object, 0..len).unwrap();
        assert_eq!(object.read(0..len).unwrap(), whole);
        assert_eq!(object.read(third..len).unwrap(), whole[third as usize..]);
        assert_eq!(fetched(&object, third..2 * third).unwrap(), whole[third as usize..2 * third as usize]);
        assert_eq!(object.read(len..len).unwrap(), b"");
        assert!(matches!(object.read(len..len + 1), Err(Error::Range { .. })));
        assert_eq!(entry(depot, &name).version(), object.version());
        got.push((name, whole));
    }
    for (i, len) in lengths.into_iter().enumerate() {
        assert_eq!(got[i], (format!("object-{i}"), noise(len, i as u64)));
    }
    assert_eq!(got.len(), lengths.len());
    got
}

#[test]
fn all_places_give_the_same_bytes() {
    let Some(setup) = Setup::new("same") else { return };
    let folder = tempfile::tempdir().unwrap();
    let open = |place: String| Depot::open(&place, Path::new("/nowhere")).unwrap();
    let plain = tour(&open(folder.path().join("plain").display().to_string()));
    let url = tour(&open(format!("file://{}", folder.path().join("a%20b").display())));
    assert_eq!(names(folder.path()), ["a b", "plain"]);
    assert_eq!(plain, url);
    assert_eq!(plain, tour(&setup.depot));
    assert!(setup.is_clean());
    assert_eq!(setup.depot.to_string(), "s3://same/runs/1");
    // Objects of other prefixes are not among the names, nor those further down.
    let root = Depot::open_with("s3://same", setup.scratch.path(), &options(setup.proxy.port)).unwrap();
    put(&root, "runs", b"x").unwrap();
    assert_eq!(root.names().unwrap(), ["runs"]);
    assert_eq!(setup.depot.names().unwrap().len(), plain.len());
    let asked = setup.proxy.asked();
    assert_eq!(asked.iter().filter(|asked| is_part(asked)).count(), 2 * (2 + 5 + 6));
    assert_eq!(asked.iter().filter(|asked| is_completion(asked)).count(), 2 * 3);
}

#[test]
fn objects_arrive_through_a_bad_network() {
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

/// Objects come and go while every third request meets a fault. Of answers that have no body nothing is cut.
fn arrives(bucket: &'static str, fault: Fault) {
    let setup = Setup::with(bucket, |options| options.silence = Duration::from_secs(1)).expect("a server");
    let of_bodies = matches!(fault, Fault::Cut | Fault::Halve);
    setup.proxy.follow(move |asked| match asked.number % 3 {
        1 if !of_bodies || (asked.method == "GET" && !asked.target.contains("list-type")) => fault,
        _ => Fault::None,
    });
    let bytes = noise(500_000, 7);
    put(&setup.depot, "x", &bytes).unwrap();
    put(&setup.depot, "small", &bytes[..1000]).unwrap();
    let x = entry(&setup.depot, "x");
    assert_eq!(x.len(), bytes.len() as u64);
    assert_eq!(fetched(&x, 0..x.len()).unwrap(), bytes, "{fault:?}");
    assert_eq!(x.read(1..200_000).unwrap(), bytes[1..200_000], "{fault:?}");
    assert_eq!(setup.depot.names().unwrap(), ["small", "x"]);
    setup.depot.remove("x").unwrap();
    assert!(setup.depot.find("x").unwrap().is_none());
    assert!(setup.is_clean());
}

#[test]
fn an_upload_whose_completion_is_not_answered_is_there() {
    let Some(setup) = Setup::new("lost") else { return };
    let mut lost = 0;
    setup.proxy.follow(move |asked| {
        let lose = is_completion(asked) && lost < 2;
        lost += u32::from(lose);
        if lose { Fault::Lose } else { Fault::None }
    });
    let bytes = noise(200_000, 3);
    put(&setup.depot, "x", &bytes).unwrap();
    let x = entry(&setup.depot, "x");
    assert_eq!(fetched(&x, 0..x.len()).unwrap(), bytes);
}

#[test]
fn an_upload_that_fails_leaves_the_older_object() {
    let Some(setup) = Setup::with("older", |options| options.patience = Duration::from_millis(300)) else {
        return;
    };
    let older = noise(200_000, 4);
    put(&setup.depot, "x", &older).unwrap();
    setup.proxy.follow(|asked| {
        if is_part(asked) && asked.target.contains("partNumber=3") { Fault::Reset } else { Fault::None }
    });
    let error = put(&setup.depot, "x", &noise(200_000, 5)).unwrap_err();
    assert!(matches!(error, Error::Failed { doing: "write", .. }), "{error}");
    assert!(setup.is_clean());
    let aborted = setup
        .proxy
        .asked()
        .iter()
        .any(|asked| asked.method == "DELETE" && asked.target.contains("uploadId="));
    assert!(aborted);
    let x = entry(&setup.depot, "x");
    assert_eq!(fetched(&x, 0..x.len()).unwrap(), older);
    assert_eq!(setup.depot.names().unwrap(), ["x"]);
}

#[test]
fn what_does_not_pass_is_told_with_the_object_and_the_tries() {
    let Some(setup) = Setup::with("busy", |options| {
        options.patience = Duration::from_millis(500);
        options.silence = Duration::from_millis(500);
    }) else {
        return;
    };
    put(&setup.depot, "x", &noise(200_000, 6)).unwrap();
    let x = entry(&setup.depot, "x");
    for (fault, what) in [
        (Fault::Status(503), "503 Injected: by the proxy"),
        (Fault::Reset, "connection closed before message completed"),
        (Fault::Halve, "the answer ended with "),
        (Fault::Cut, " bytes still to come"),
        (Fault::Stall(3000), "timed out"),
    ] {
        setup.proxy.follow(move |_| fault);
        let begun = Instant::now();
        let error = match fault {
            Fault::Halve | Fault::Cut => x.read(0..64 << 10).unwrap_err(),
            _ => x.fetch(0..x.len()).map(drop).unwrap_err(),
        };
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
        let said = error.to_string();
        assert!(said.starts_with(&format!("cannot read {}: ", setup.url("x"))), "{said}");
        assert!(
            said.contains(what) && said.contains("; tried ") && !said.contains('\n'),
            "{fault:?}: {said}"
        );
        let Error::Failed { tries, .. } = error else { panic!("{said}") };
        assert!(tries >= 1, "{said}");
    }
    setup.proxy.follow(|_| Fault::Status(503));
    let said = [
        setup.depot.find("x").map(drop).unwrap_err().to_string(),
        setup.depot.remove("x").unwrap_err().to_string(),
        setup.depot.names().unwrap_err().to_string(),
        put(&setup.depot, "x", b"x").unwrap_err().to_string(),
    ];
    let url = setup.url("x");
    let expected = [
        format!("cannot read {url}: 503 "),
        format!("cannot remove {url}: 503 "),
        "cannot list s3://busy/runs/1: 503 ".to_owned(),
        format!("cannot write {url}: 503 "),
    ];
    assert!(said.iter().zip(&expected).all(|(said, start)| said.starts_with(start)), "{said:?}");
    assert!(setup.is_clean());
}

#[test]
fn nobody_listens() {
    let scratch = tempfile::tempdir().unwrap();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let options = Options { patience: Duration::from_millis(200), ..options(free) };
    let depot = Depot::open_with("s3://b", scratch.path(), &options).unwrap();
    let said = depot.find("x").unwrap_err().to_string();
    assert!(said.starts_with("cannot read s3://b/x: Connection refused (os error 111); tried "), "{said}");
}

#[test]
fn what_becomes_of_an_object_in_use_is_told() {
    let Some(setup) = Setup::new("fate") else { return };
    let bytes = noise(200_000, 8);
    let fresh = || {
        put(&setup.depot, "x", &bytes).unwrap();
        entry(&setup.depot, "x")
    };
    let url = setup.url("x");
    let said = |x: &genuma_storage::Entry| {
        let of_fetch = x.fetch(0..x.len()).map(drop).unwrap_err().to_string();
        assert_eq!(x.read(150_000..200_000).unwrap_err().to_string(), of_fetch);
        assert!(setup.is_clean());
        of_fetch
    };

    let x = fresh();
    setup.depot.remove("x").unwrap();
    assert_eq!(said(&x), format!("{url} is gone: it was removed while it was in use"));

    let replaced = format!("{url} was replaced by another while it was in use; start what reads it again");
    for len in [200_000, 300_000, 100_000, 10] {
        let x = fresh();
        put(&setup.depot, "x", &noise(len, 9)).unwrap();
        assert_ne!(entry(&setup.depot, "x").version(), x.version());
        assert_eq!(said(&x), replaced);
    }

    // A server that says that the same object is shorter.
    let x = fresh();
    setup.proxy.follow(|asked| if asked.method == "GET" { Fault::Shorten(180_000) } else { Fault::None });
    let short = format!("{url} is cut short: 200000 bytes were there when it was found, 180000 are now");
    assert_eq!(said(&x), short);
}

#[test]
fn a_missing_bucket_is_told_and_is_no_missing_object() {
    let Some(setup) = Setup::new("there") else { return };
    let scratch = setup.scratch.path();
    let depot = Depot::open_with("s3://not-there/runs", scratch, &options(setup.server.port)).unwrap();
    let results = [
        depot.find("x").map(drop),
        depot.names().map(drop),
        put(&depot, "x", b"x"),
        put(&depot, "x", &noise(200_000, 1)),
    ];
    for result in results {
        let said = result.unwrap_err().to_string();
        assert_eq!(said, "s3://not-there/runs: there is no such bucket; make it, or check its name");
    }
    assert!(setup.depot.find("x").unwrap().is_none());
}

#[test]
fn credentials_that_are_wrong_or_missing_are_told() {
    let scratch = tempfile::tempdir().unwrap();
    // This one lets the first request in without a look, which makes the bucket.
    match Server::start(&[("INITIAL_NO_AUTH_ACTION_COUNT", "1")]) {
        Err(why) => skipped(&why),
        Ok(strict) => {
            strict.make("closed");
            let depot = Depot::open_with("s3://closed", scratch.path(), &options(strict.port)).unwrap();
            for (doing, result) in [("read", depot.find("x").map(drop)), ("write", put(&depot, "x", b"x"))] {
                let said = result.unwrap_err().to_string();
                let start = format!("cannot {doing} s3://closed/x: InvalidAccessKeyId: ");
                assert!(
                    said.starts_with(&start) && said.ends_with("; check the credentials and what they allow"),
                    "{said}"
                );
            }
        }
    }

    let with = |environment: &[(&str, &str)]| {
        let environment =
            environment.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let options = Options { environment, patience: Duration::from_secs(20), ..options(1) };
        Depot::open_with("s3://b/p", scratch.path(), &options)
    };
    let said = with(&[("AWS_ACCESS_KEY_ID", "someone")]).unwrap_err().to_string();
    assert_eq!(said, "s3://b/p: cannot be used as the environment has it: Missing SecretAccessKey");
    let said = with(&[("AWS_ALLOW_HTTP", "perhaps")]).unwrap_err().to_string();
    assert!(said.starts_with("s3://b/p: cannot be used as the environment has it: "), "{said}");
    let google = |environment| {
        let options = Options { environment, ..options(1) };
        Depot::open_with("gs://b/p", scratch.path(), &options)
    };
    let said =
        google(vec![("GOOGLE_APPLICATION_CREDENTIALS".into(), "/not/there".into())]).unwrap_err().to_string();
    assert!(said.starts_with("gs://b/p: cannot be used as the environment has it: "), "{said}");
    // No machine answers there.
    let depot = with(&[("AWS_METADATA_ENDPOINT", "http://169.254.0.1")]).unwrap();
    let said = depot.find("x").unwrap_err().to_string();
    assert!(said.starts_with("cannot read s3://b/p/x: no credentials: set AWS_ACCESS_KEY_ID and "), "{said}");
}

#[test]
fn a_depot_is_used_by_many_threads() {
    let Some(setup) = Setup::new("many") else { return };
    let bodies: Vec<Vec<u8>> = (0..4).map(|i| noise(100_000 + i, i as u64)).collect();
    put(&setup.depot, "x", &bodies[0]).unwrap();
    std::thread::scope(|scope| {
        for body in &bodies {
            scope.spawn(|| (0..3).for_each(|_| put(&setup.depot, "x", body).unwrap()));
        }
        for _ in 0..10 {
            let x = entry(&setup.depot, "x");
            match fetched(&x, 0..x.len()) {
                Ok(bytes) => assert!(bodies.contains(&bytes)),
                Err(error) => assert!(matches!(error, Error::Replaced { .. }), "{error}"),
            }
        }
    });
    assert!(setup.is_clean());
    let x = entry(&setup.depot, "x");
    // What is fetched outlives the depot and the entry, and goes then.
    let kept = x.fetch(10..20).unwrap();
    assert_eq!((kept.start(), fs::metadata(kept.path()).unwrap().len()), (10, 10));
    let Setup { depot, scratch, .. } = setup;
    drop((depot, x));
    assert_eq!(fs::read(kept.path()).unwrap().len(), 10);
    drop(kept);
    assert!(names(scratch.path()).is_empty());
}

#[test]
fn the_server_keeps_the_key_under_the_prefix() {
    let Some(setup) = Setup::new("keys") else { return };
    put(&setup.depot, "a=1+b_2.x-y", b"x").unwrap();
    let answer = plain(setup.server.port, "GET", "/keys?list-type=2");
    assert!(answer.contains("<Key>runs/1/a=1+b_2.x-y</Key>"), "{answer}");
    assert_eq!(setup.depot.names().unwrap(), ["a=1+b_2.x-y"]);
    assert_eq!(entry(&setup.depot, "a=1+b_2.x-y").read(0..1).unwrap(), b"x");
}
