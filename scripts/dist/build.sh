#!/usr/bin/env bash
# Builds genuma as one static file that runs on any Linux of that processor: musl instead of the system's C library, zig's clang for C code and linking.
# The same sources make the same bytes: paths are cut, the time is that of the last commit.
#
# usage: scripts/dist/build.sh x86_64|aarch64     leaves target/dist/TRIPLE/dist/genuma
set -euo pipefail
cd "$(dirname "$0")/../.."

case ${1-} in
x86_64 | aarch64) triple=$1-unknown-linux-musl ;;
*)
  echo "usage: scripts/dist/build.sh x86_64|aarch64" >&2
  exit 2
  ;;
esac

# Both from PyPI, of one version each: another compiler makes other bytes.
zig=0.17.1 zigbuild=0.24.1
tools=target/dist/tools-$zig-$zigbuild
if [ ! -x "$tools/bin/cargo-zigbuild" ]; then
  python3 -m venv "$tools"
  "$tools/bin/pip" -q install "ziglang==$zig" "cargo-zigbuild==$zigbuild"
fi
if ! rustup target list --installed 2>/dev/null | grep -qx "$triple"; then
  rustup target add "$triple"
fi

cargo fetch --locked --target "$triple" >/dev/null
home=${CARGO_HOME:-$HOME/.cargo}
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
flags="-ffile-prefix-map=$home=/cargo -ffile-prefix-map=$PWD=/genuma"
export "CFLAGS_${triple//-/_}=$flags" "CXXFLAGS_${triple//-/_}=$flags"
# Segments of libraries and standard library alike come without the paths of whoever builds.
export CARGO_ENCODED_RUSTFLAGS="--remap-path-prefix=$home=/cargo"$'\x1f'"--remap-path-prefix=$PWD=/genuma"
env PATH="$PWD/$tools/bin:$PATH" cargo-zigbuild zigbuild --profile dist --locked --target "$triple" --target-dir target/dist -p genuma
