#!/usr/bin/env bash
# Packs a built binary: an archive, a Debian package and an image for containers, each the same bytes whenever it is made of the same sources.
#
# usage: scripts/dist/pack.sh x86_64|aarch64 FOLDER     leaves genuma-VERSION-linux-ARCH.tar.gz, genuma_VERSION_ARCH.deb,
#                                                 genuma-VERSION-linux-ARCH.oci.tar, genuma-VERSION-linux-ARCH.cdx.json (bill of materials)
set -euo pipefail
cd "$(dirname "$0")/../.."

arch=${1-} out=${2-}
case $arch in
x86_64) debian=amd64 oci=amd64 run=() ;;
aarch64) debian=arm64 oci=arm64 run=(qemu-aarch64-static) ;;
*)
  echo "usage: scripts/dist/pack.sh x86_64|aarch64 FOLDER" >&2
  exit 2
  ;;
esac
mkdir -p "$out"
out=$(cd "$out" && pwd)
binary=target/dist/$arch-unknown-linux-musl/dist/genuma
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
repository=$(sed -n 's/^repository = "\(.*\)"/\1/p' Cargo.toml)
maintainer=$(sed -n 's/^authors = \["\([^"]*\)".*/\1/p' Cargo.toml)
[[ $repository != *example.org* ]] || echo "dist: the address in Cargo.toml is a placeholder ($repository): set repository and authors before you publish" >&2
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
umask 022

name=genuma-$version-linux-$arch
scripts/dist/sbom.py "$arch-unknown-linux-musl" --time "$SOURCE_DATE_EPOCH" >"$work/sbom"

# As it lies below /usr.
usr=$work/usr
mkdir -p "$usr/bin" "$usr/share/doc/genuma" "$usr/share/bash-completion/completions" "$usr/share/zsh/vendor-completions" "$usr/share/fish/vendor_completions.d"
install -m 755 "$binary" "$usr/bin/genuma"
genuma=("${run[@]}" "$usr/bin/genuma")
"${genuma[@]}" man "$usr/share/man/man1"
"${genuma[@]}" completions bash >"$usr/share/bash-completion/completions/genuma"
"${genuma[@]}" completions zsh >"$usr/share/zsh/vendor-completions/_genuma"
"${genuma[@]}" completions fish >"$usr/share/fish/vendor_completions.d/genuma.fish"
install -m 644 README.md CHANGELOG.md "$usr/share/doc/genuma/"
cp -r docs "$usr/share/doc/genuma/docs"
install -m 644 "$work/sbom" "$usr/share/doc/genuma/sbom.cdx.json"
install -m 644 LICENSE "$usr/share/doc/genuma/copyright"
find "$usr" -type d -exec chmod 755 {} + -o -type f ! -perm -u+x -exec chmod 644 {} +

# tar FOLDER NAME...: in order, of nobody, of one time.
pack() {
  local folder=$1
  shift
  tar --format=gnu --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner -C "$folder" -cf - "$@"
}

mkdir "$work/archive"
cp -r "$usr" "$work/archive/$name"
pack "$work/archive" "$name" | gzip -9n >"$out/$name.tar.gz"

deb=$work/deb
mkdir -p "$deb/DEBIAN"
cp -r "$usr" "$deb/usr"
find "$deb/usr/share/man" -type f -exec gzip -9n {} +
gzip -9n "$deb/usr/share/doc/genuma/CHANGELOG.md"
cat >"$deb/DEBIAN/control" <<CONTROL
Package: genuma
Version: $version
Architecture: $debian
Maintainer: $maintainer
Homepage: $repository
Section: science
Priority: optional
Installed-Size: $(find "$deb/usr" -type f -printf '%s\n' | awk '{ sum += int(($1 + 1023) / 1024) } END { print sum }')
Recommends: ca-certificates
Description: somatic mutations from reads, and alignment as fast as memory allows
 Calls somatic mutations of a tumour and its normal from reads, without aligning them all;
 checks whether samples are a pair; counts k-mers; aligns reads; runs other aligners
 so that the memory of the machine suits them.
CONTROL
(cd "$deb" && find usr -type f -printf '%P\0' | LC_ALL=C sort -z | (cd usr && xargs -0 md5sum) | sed 's|  |  usr/|') >"$deb/DEBIAN/md5sums"
dpkg-deb --root-owner-group -Zxz -b "$deb" "$out/genuma_${version}_$debian.deb" >/dev/null

# An image with nothing but the program, a folder for what it writes on the way, and certificates for buckets.
root=$work/root
mkdir -p "$root/usr/bin" "$root/etc/ssl/certs" "$root/tmp" "$root/data"
install -m 755 "$binary" "$root/usr/bin/genuma"
install -m 644 /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
chmod 1777 "$root/tmp" "$root/data"
pack "$root" data etc tmp usr >"$work/layer.tar"
python3 scripts/dist/image.py "$work/layer.tar" --architecture "$oci" --version "$version" --source "$repository" --time "$SOURCE_DATE_EPOCH" >"$work/image.tar"
mv "$work/image.tar" "$out/$name.oci.tar"
install -m 644 "$work/sbom" "$out/$name.cdx.json"
