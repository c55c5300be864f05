#!/usr/bin/env bash
# Proves the line of the README that sets up a bare Debian: makes a fresh root with debootstrap, runs the line in it as root, and asks
# for the compiler, make and certificates. With --demo it also runs `make demo` there, on a copy of these sources, to a
# report of calls (20 minutes).
#
# usage: scripts/bare-root.sh [--demo] [SUITE]      SUITE: a release of Debian, trixie unless given
# Without root, debootstrap or a network it says so and exits with 0. Takes some minutes, 2 GB of disk and 0.5 GB of downloads.
# GENUMA_MIRROR: the mirror of Debian. GENUMA_BARE_ROOT: the folder for the root, $TMPDIR unless given. GENUMA_CA_BUNDLE: certificates
# of a network whose proxy opens TLS; the root trusts them once its certificates are installed.
set -euo pipefail
cd "$(dirname "$0")/.."

demo=no suite=trixie mirror=${GENUMA_MIRROR:-http://deb.debian.org/debian}
for word; do
  case $word in
    --demo) demo=yes ;;
    -*)
      echo "usage: scripts/bare-root.sh [--demo] [SUITE]" >&2
      exit 2
      ;;
    *) suite=$word ;;
  esac
done

skip() {
  echo "bare-root: skipped: $1"
  exit 0
}

line=$(sed -n 's/^    \(apt-get update && apt-get install .*rustup default stable\)$/\1/p' README.md)
if [ -z "$line" ] || [ "$(wc -l <<<"$line")" -ne 1 ]; then
  echo "bare-root: README.md has no line, or several, that begins with 'apt-get update && apt-get install' and ends with 'rustup default stable'" >&2
  exit 1
fi
minimum=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
[ "$(id -u)" -eq 0 ] || skip "only root can make and enter a root"
command -v debootstrap >/dev/null || skip "debootstrap is not installed (apt-get install debootstrap)"
release=$(python3 -c 'import sys, urllib.request; urllib.request.urlopen(sys.argv[1], timeout=20)' "$mirror/dists/$suite/Release" 2>&1) ||
  skip "$mirror cannot be reached: $(tail -n 1 <<<"$release")"

root=$(mktemp -d "${GENUMA_BARE_ROOT:-${TMPDIR:-/tmp}}/bare-root.XXXXXX")
log=$root.log
cleanup() {
  if mountpoint -q "$root/proc"; then umount "$root/proc"; fi
  rm -rf --one-file-system "$root"
}
trap cleanup EXIT
fail() {
  tail -n 30 "$log" >&2
  echo "bare-root: $1; the whole log is in $log" >&2
  exit 1
}

# Scripts of older releases of Debian know how to make newer ones.
script=()
[ -e "/usr/share/debootstrap/scripts/$suite" ] || script=(/usr/share/debootstrap/scripts/sid)
echo "bare-root: debootstrap --variant=minbase $suite" >&2
debootstrap --variant=minbase "$suite" "$root" "$mirror" "${script[@]}" >"$log" 2>&1 || fail "debootstrap failed"
cp /etc/resolv.conf "$root/etc/resolv.conf"
if [ -n "${GENUMA_CA_BUNDLE-}" ]; then
  install -D -m 644 "$GENUMA_CA_BUNDLE" "$root/usr/local/share/ca-certificates/network.crt"
fi
mount -t proc proc "$root/proc" 2>>"$log" || fail "/proc cannot be mounted in the root"
# As somebody who logs in, with nothing of this shell's.
inside() {
  env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive LC_ALL=C chroot "$root" /bin/sh -ec "$1"
}

if inside 'command -v make || command -v cargo || ls /etc/ssl/certs/ca-certificates.crt' >>"$log" 2>&1; then
  fail "the root is not bare"
fi
echo "bare-root: $line" >&2
inside "$line" >>"$log" 2>&1 || fail "the line of the README failed"
found=$(inside 'rustc --version' | cut -d ' ' -f 2)
[ "$(printf '%s\n%s\n' "$minimum" "$found" | sort -V | head -n 1)" = "$minimum" ] || fail "rustc $found is older than $minimum"
inside 'make --version && cargo --version && test -s /etc/ssl/certs/ca-certificates.crt' >>"$log" 2>&1 || fail "a program is missing"

if [ "$demo" = yes ]; then
  mkdir "$root/genuma"
  git archive HEAD | tar -x -C "$root/genuma"
  echo "bare-root: make demo" >&2
  inside 'cd /genuma && make demo && test -s target/demo/calls/report.html' >>"$log" 2>&1 || fail "make demo failed"
fi
rm -f "$log"
echo "bare-root: $suite: the line gives rustc $found, make and certificates$([ "$demo" = no ] || echo ', and make demo writes its report')"
