#!/usr/bin/env bash
# Boots a throw-away multi-node NUMA Linux guest and runs one command in it: proves placement, never speed.
#
#   scripts/numavm.sh NODES CPUS_PER_NODE MEM_MB_PER_NODE DIR COMMAND...
#
# DIR is copied to /work in the guest and COMMAND is run there by sh. Its stdout and stderr are printed, its exit status
# is ours; whatever it leaves in /out comes back in $NUMAVM_OUT. No root, KVM, disk or network needed once the kernel is
# fetched. Statuses of our own: 77 something it needs is not there (it says what), 124 the guest ran past the time limit,
# 125 it died.
#
#   NUMAVM_MEMLESS=K   K extra nodes with CPUs and no memory             [0]
#   NUMAVM_MEMONLY=K   K extra nodes without CPUs (CXL / HBM like)       [0]
#   NUMAVM_DIST="10 20;20 10"   SLIT rows    [10 self, 16 pair, 22 elsewhere]
#   NUMAVM_HMAT=1      describe latency and bandwidth in an ACPI HMAT    [0]
#   NUMAVM_SMT=T       threads per core                                  [1]
#   NUMAVM_TIMEOUT=S   seconds before the guest is killed              [120]
#   NUMAVM_OUT=PATH    where files left in /out are unpacked        [nowhere]
#   NUMAVM_APPEND=...  more kernel parameters
#   NUMAVM_KERNEL=...  bzImage or vmlinux, virtio-console built in   [Debian's 6.12 cloud kernel, fetched]
#
# The order of nodes is: NODES, MEMLESS, MEMONLY. The kernel is kept in ${XDG_CACHE_HOME:-~/.cache}/numavm.
# Needs: qemu-system-x86 busybox-static cpio zstd (scripts/setup.sh test), and numactl to offer it.
set -euo pipefail
[ $# -ge 5 ] || { sed -n '2,/^set/s/^# \{0,1\}//p' "$0" | head -n -1 >&2; exit 2; }
nodes=$1 cpus=$2 mem=$3 dir=$4; shift 4
memless=${NUMAVM_MEMLESS:-0} memonly=${NUMAVM_MEMONLY:-0} smt=${NUMAVM_SMT:-1} hmat=${NUMAVM_HMAT:-0}
limit=${NUMAVM_TIMEOUT:-120} withcpus=$((nodes + memless)) all=$((nodes + memless + memonly))
unable() { echo "numavm: $*" >&2; exit 77; }
for tool in qemu-system-x86_64 busybox cpio; do
  command -v "$tool" >/dev/null || unable "no $tool: scripts/setup.sh test installs it"
done
tmp=$(mktemp -d); trap 'rm -rf "$tmp"' EXIT

# --- kernel: taken out of its .deb, never installed --------------------------
# Unpacked to an ELF vmlinux, which QEMU enters directly: 1-2 s faster.
fetch_kernel() { # to $1
  local pkg at
  for tool in apt-get dpkg-deb zstd; do
    command -v "$tool" >/dev/null || unable "no kernel (NUMAVM_KERNEL) and no $tool to fetch Debian's"
  done
  pkg=$(apt-cache pkgnames linux-image-6 | grep -e '-cloud-amd64-unsigned$' | sort -V | tail -n1) ||
    unable "no kernel (NUMAVM_KERNEL) and apt knows no linux-image-6*-cloud-amd64-unsigned"
  (cd "$tmp" && apt-get -qq -o APT::Sandbox::User=root download "$pkg" >&2) ||
    unable "no kernel (NUMAVM_KERNEL) and apt-get cannot download $pkg"
  (cd "$tmp" && dpkg-deb --fsys-tarfile ./*.deb >k.tar && tar -xOf k.tar --wildcards './boot/vmlinuz-*' >bz)
  at=$(LC_ALL=C grep -aboP '\x28\xb5\x2f\xfd' "$tmp/bz" | head -n1 | cut -d: -f1) # zstd
  tail -c +$((at + 1)) "$tmp/bz" | zstd -dcq 2>/dev/null >"$tmp/elf" || true # trailing bytes
  [ "$(head -c4 "$tmp/elf" | tail -c3)" = ELF ] || cp "$tmp/bz" "$tmp/elf"
  mkdir -p "${1%/*}" && cp "$tmp/elf" "$1.$$" && mv "$1.$$" "$1"
}
kernel=${NUMAVM_KERNEL:-${XDG_CACHE_HOME:-$HOME/.cache}/numavm/kernel}
[ -s "$kernel" ] || [ -n "${NUMAVM_KERNEL:-}" ] || fetch_kernel "$kernel"

# --- initramfs: busybox, numactl, DIR and the libraries they load ------------
root=$tmp/root; mkdir -p "$root"/{bin,work,out,proc,sys,dev,tmp}
cp "$(command -v busybox)" "$root/bin/busybox"
! command -v numactl >/dev/null || cp "$(command -v numactl)" "$root/bin/"
cp -a "$dir"/. "$root/work/"
printf '%s\n' "$*" >"$root/command"
find "$root/bin" "$root/work" -type f -perm /111 -exec ldd {} \; 2>/dev/null |
  grep -oE '/[^ ]+\.so[^ ]*' | sort -u >"$tmp/libs" || true
while read -r lib; do mkdir -p "$root${lib%/*}"; cp -L "$lib" "$root$lib"; done <"$tmp/libs"
cat >"$root/init" <<'INIT'
#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin:/work HOME=/work
mount -t proc p /proc; mount -t sysfs s /sys; mount -t devtmpfs d /dev; mount -t tmpfs t /tmp
cd /work
setsid sh /command </dev/null >/dev/vport0p1 2>&1
rc=$?
[ -z "$(ls -A /out)" ] || tar -cf /dev/vport0p2 -C /out .
echo $rc >/dev/vport0p3
poweroff -f
INIT
chmod +x "$root/init"
(cd "$root" && find . | cpio -o -H newc -R 0:0 --quiet) >"$tmp/initrd"

# --- machine -----------------------------------------------------------------
distance() { # SLIT entry from node $1 to node $2
  if [ -n "${NUMAVM_DIST:-}" ]; then
    awk -F';' -v r=$(($1 + 1)) -v c=$(($2 + 1)) '{split($r, a, " "); print a[c]}' <<<"$NUMAVM_DIST"
  else echo $(($1 == $2 ? 10 : $1 / 2 == $2 / 2 ? 16 : 22)); fi
}
args=()
for ((i = 0; i < all; i++)); do
  node=node,nodeid=$i
  [ "$i" -ge "$withcpus" ] || node+=,cpus=$((i * cpus))-$((i * cpus + cpus - 1))
  [ "$hmat" = 0 ] || node+=,initiator=$((i % nodes))
  if [ "$i" -lt "$nodes" ] || [ "$i" -ge "$withcpus" ]; then
    node+=,memdev=m$i
    args+=(-object "memory-backend-ram,id=m$i,size=${mem}M")
  fi
  args+=(-numa "$node")
done
for ((i = 0; i < all; i++)); do
  for ((j = 0; j < all; j++)); do
    d=$(distance $i $j)
    args+=(-numa "dist,src=$i,dst=$j,val=$d")
    [ "$hmat" != 0 ] && [ "$i" -lt "$nodes" ] || continue # latency 8d ns, bandwidth 1/d TB/s
    lb=hmat-lb,initiator=$i,target=$j,hierarchy=memory
    args+=(-numa "$lb,data-type=access-latency,latency=$((d * 8))"
           -numa "$lb,data-type=access-bandwidth,bandwidth=$((1000 / d))G")
  done
done
for p in 1 2 3; do # the guest's stdout, its /out as a tar file, its exit status
  : >"$tmp/port$p"
  args+=(-chardev "file,id=c$p,path=$tmp/port$p" -device "virtserialport,chardev=c$p,nr=$p")
done

# On a busy host the kernel may miss the timer's ticks that it waits for, and panics: it need not check.
rc=0
timeout -k5 "$limit" qemu-system-x86_64 -nodefaults -display none -no-reboot \
  -accel tcg,thread=single -cpu max,vendor=GenuineIntel -machine "q35$([ "$hmat" = 0 ] || echo ,hmat=on)" \
  -m "$((mem * (nodes + memonly)))M" -smp "$((withcpus * cpus)),sockets=$withcpus,cores=$((cpus / smt)),threads=$smt" \
  -device virtio-serial-pci "${args[@]}" -serial "file:$tmp/console" \
  -kernel "$kernel" -initrd "$tmp/initrd" \
  -append "console=ttyS0 quiet panic=-1 mitigations=off no_timer_check ${NUMAVM_APPEND:-}" 2>"$tmp/qemu" || rc=$?
cat "$tmp/port1"
if [ -s "$tmp/port2" ] && [ -n "${NUMAVM_OUT:-}" ]; then
  mkdir -p "$NUMAVM_OUT"; tar -xf "$tmp/port2" -C "$NUMAVM_OUT"
fi
[ ! -s "$tmp/port3" ] || exit "$(cat "$tmp/port3")"
[ "$rc" != 124 ] || { echo "numavm: still running after $limit s, killed" >&2; exit 124; }
echo "numavm: the guest died (qemu status $rc); the end of its console:" >&2
tail -n 20 "$tmp/console" "$tmp/qemu" >&2 || true
exit 125
