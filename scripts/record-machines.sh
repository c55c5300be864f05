#!/usr/bin/env bash
# Records the guests that the topology is tested on: hardware/machine/tests/machines/*.txt, anew.
#
# usage: scripts/record-machines.sh [NAME ...]      all of them by default
#
# Each is a QEMU guest of scripts/numavm.sh. Those that say in their second line that they are a real machine or made by
# hand stay as they are. Afterwards `GENUMA_BLESS=1 cargo test -p genuma-machine --test
# topology_golden` writes the golden output, and git shows what changed.
set -euo pipefail
cd "$(dirname "$0")/.."
machines=$PWD/hardware/machine/tests/machines

cargo build -p genuma
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir "$tmp/guest"
cp "${CARGO_TARGET_DIR:-target}/debug/genuma" "$tmp/guest/"

wanted=" $* "
# guest NAME NODES CPUS_PER_NODE [COMMAND]: what the command does in the guest comes before the recording.
guest() {
  local name=$1 nodes=$2 cpus=$3 before=${4:-:}
  [ "$wanted" = "  " ] || [[ "$wanted" == *" $name "* ]] || return 0
  echo "recording $name" >&2
  NUMAVM_OUT="$tmp/out" scripts/numavm.sh "$nodes" "$cpus" 256 "$tmp/guest" \
    "$before; ./genuma machine show --record /out/$name.txt" >"$tmp/log" 2>&1 || { cat "$tmp/log" >&2; exit 1; }
  mv "$tmp/out/$name.txt" "$machines/"
}

guest 1-node 1 2
guest 2-nodes 2 2
guest 4-nodes 4 2
guest 8-nodes 8 1
NUMAVM_SMT=2 guest smt 2 4
NUMAVM_MEMONLY=1 guest memory-only-node 2 2
NUMAVM_MEMLESS=1 guest node-without-memory 1 2
NUMAVM_MEMONLY=1 NUMAVM_HMAT=1 guest hmat 2 2
guest huge-pages 2 2 "echo 16 >/sys/devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages"
guest offline-cpus 2 4 "for i in 2 5 6; do echo 0 >/sys/devices/system/cpu/cpu\$i/online; done"
guest weights 2 2 "echo 3 >/sys/kernel/mm/mempolicy/weighted_interleave/node0"
guest cpuset 4 2 "mount -t cgroup2 none /sys/fs/cgroup; cd /sys/fs/cgroup
  echo '+cpuset +memory +cpu' >cgroup.subtree_control; mkdir outer; echo '+cpuset +memory +cpu' >outer/cgroup.subtree_control
  mkdir outer/inner; echo 2-5 >outer/inner/cpuset.cpus; echo 1-2 >outer/inner/cpuset.mems
  echo 300M >outer/memory.max; echo 400M >outer/inner/memory.max; echo '150000 100000' >outer/inner/cpu.max
  echo \$\$ >outer/inner/cgroup.procs; cd /work"
