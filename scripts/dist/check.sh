#!/usr/bin/env bash
# Tries what pack.sh has made where there is nothing else: simulates, calls, scores, indexes, aligns and counts in an empty root with the archive, the
# package and the image in turn. What is called there has to be what this machine's processor calls.
#
# usage: scripts/dist/check.sh x86_64|aarch64 FOLDER      wants root (or a user namespace); for aarch64 QEMU's user mode
set -euo pipefail
cd "$(dirname "$0")/../.."

arch=${1-} out=${2-}
case $arch in
x86_64) debian=amd64 under= ;;
aarch64) debian=arm64 under=qemu-aarch64-static ;;
*)
  echo "usage: scripts/dist/check.sh x86_64|aarch64 FOLDER" >&2
  exit 2
  ;;
esac
[ "$arch" = "$(uname -m)" ] && under=
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
name=genuma-$version-linux-$arch
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
enter=(chroot)
[ "$(id -u)" -eq 0 ] || enter=(unshare --map-root-user chroot)

# inside ROOT PROGRAM ARGS...: there is nothing in ROOT but the program and what it has made.
inside() {
  local root=$1
  shift
  if [ -n "$under" ]; then
    [ -e "$root/$under" ] || cp "$(command -v "$under")" "$root/$under"
    "${enter[@]}" "$root" "/$under" "$@"
  else
    "${enter[@]}" "$root" "$@"
  fi
}

# whole ROOT PROGRAM: the main jobs; their results stay in ROOT/job.
whole() {
  local root=$1 program=$2
  mkdir -p "$root/job"
  inside "$root" "$program" bench simulate --genome-length 200000 --snvs 12 --indels 6 --svs 2 --depth-tumor 30 --depth-normal 30 --purity 0.7 --seed 1 -o /job/pair || return
  local t="/job/pair/tumor_1.fq.gz /job/pair/tumor_2.fq.gz" n="/job/pair/normal_1.fq.gz /job/pair/normal_2.fq.gz" genome=/job/pair/genome.fa
  # Joined, as whoever asks whether it went well turns -e off.
  # shellcheck disable=SC2086
  {
    inside "$root" "$program" call --tumor $t --normal $n --reference $genome --memory 1G -o /job/calls &&
    inside "$root" "$program" bench evaluate /job/pair/truth.vcf /job/calls/somatic.vcf.gz --reference $genome &&
    inside "$root" "$program" index $genome &&
    inside "$root" "$program" align $genome $t --mark-duplicates --memory 500M -o /job/t.bam &&
    inside "$root" "$program" kmers count --memory 500M $n -o /job/n.tsv &&
    [ -s "$root/job/t.bam.bai" ]
  }
}

# same A B: what was called, aligned and counted in both.
same() {
  for file in calls/somatic.vcf.gz calls/contigs.fa n.tsv; do
    cmp "$1/job/$file" "$2/job/$file"
  done
}

try() {
  echo "dist: $1" >&2
  shift
  if ! "$@" >"$work/log" 2>&1; then
    tail -n 20 "$work/log" >&2
    exit 1
  fi
}

archive=$work/archive image=$work/image package=$work/package
mkdir "$archive" "$image" "$package"
tar -xzf "$out/$name.tar.gz" -C "$archive"
scripts/binary-size.sh "$archive/$name/bin/genuma"
try "the main jobs with the archive, in an empty root" whole "$archive" "/$name/bin/genuma"

mkdir "$work/oci"
tar -xf "$out/$name.oci.tar" -C "$work/oci"
python3 - "$work/oci" >"$work/layers" <<'PYTHON'
import hashlib, json, sys
folder = sys.argv[1]
def blob(of):
    path = f"{folder}/blobs/{of['digest'].replace(':', '/')}"
    data = open(path, "rb").read()
    assert "sha256:" + hashlib.sha256(data).hexdigest() == of["digest"] and len(data) == of["size"], path
    return path, data
manifest = json.loads(blob(json.load(open(f"{folder}/index.json"))["manifests"][0])[1])
blob(manifest["config"])
for layer in manifest["layers"]:
    print(blob(layer)[0])
PYTHON
while read -r layer; do tar -xzf "$layer" -C "$image"; done <"$work/layers"
try "the same with the image" whole "$image" /usr/bin/genuma
if command -v skopeo >/dev/null; then
  try "what skopeo says of the image" skopeo inspect "oci-archive:$out/$name.oci.tar"
else
  echo "dist: skipped: skopeo, which would look at the image, is not installed" >&2
fi

# As on a system where nothing is installed.
mkdir -p "$package/var/lib/dpkg/"{info,updates,triggers}
touch "$package/var/lib/dpkg/"{status,available}
try "the package, installed by dpkg" dpkg --root="$package" --force-not-root --force-architecture --force-script-chrootless -i "$out/genuma_${version}_$debian.deb"
try "the same with the package" whole "$package" /usr/bin/genuma
same "$archive" "$image"
same "$archive" "$package"
[ -s "$package/usr/share/man/man1/genuma-call.1.gz" ] && [ -s "$package/usr/share/bash-completion/completions/genuma" ]

# Of this machine's own processor and C library.
if [ -n "${GENUMA-}" ]; then
  native=$work/native
  mkdir -p "$native/job"
  "$GENUMA" bench simulate --genome-length 200000 --snvs 12 --indels 6 --svs 2 --depth-tumor 30 --depth-normal 30 --purity 0.7 --seed 1 -o "$native/job/pair" 2>"$work/log"
  pair=$native/job/pair
  "$GENUMA" call --tumor "$pair"/tumor_{1,2}.fq.gz --normal "$pair"/normal_{1,2}.fq.gz --reference "$pair/genome.fa" --memory 1G -o "$native/job/calls" 2>"$work/log"
  "$GENUMA" kmers count --memory 500M "$pair"/normal_{1,2}.fq.gz -o "$native/job/n.tsv" 2>"$work/log"
  same "$archive" "$native" || exit 1
  echo "dist: the same calls, contigs and counts as $GENUMA" >&2
fi
echo "dist: $arch: archive, image and package do the main jobs with nothing beside them" >&2
