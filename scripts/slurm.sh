#!/usr/bin/env bash
# A Slurm of one's own in a folder, for tests: a controller and three nodes (n1, n2, n3), all of them on this machine.
# Needs neither systemd nor munge nor a database, nor root.
#
# usage: scripts/slurm.sh start DIR          starts it; prints what to put into the environment
#        scripts/slurm.sh crash DIR NODE     kills a node: its slurmd, and whatever it runs, with kill -9
#        scripts/slurm.sh node DIR NODE      starts a node that was killed
#        scripts/slurm.sh stop DIR           ends all of it, jobs too; the folder with its logs stays
#
# SLURM_SH_CPUS: CPUs that a node says it has (2); nothing holds jobs to them.
set -euo pipefail
PATH=$PATH:/usr/sbin:/sbin

say() { echo "slurm: $*" >&2; }

if [ $# -lt 2 ]; then
  sed -n 's/^# \{0,1\}\(usage:.*\|  *scripts.*\)/\1/p' "$0" >&2
  exit 2
fi
verb=$1
mkdir -p "$2"
dir=$(cd "$2" && pwd -P)
conf=$dir/slurm.conf
export SLURM_CONF=$conf

# Whether all programs are there; slurmd is Debian's of the same name.
programs() {
  for program in slurmctld slurmd sbatch scontrol; do
    command -v $program >/dev/null || { say "$program is not installed (apt-get install slurmctld slurmd slurm-client)"; exit 3; }
  done
  case $dir in *[[:space:]=,#]*) say "a folder without spaces, '=', ',' and '#' is needed, not '$dir'"; exit 2 ;; esac
  # A socket of slurmstepd lies in it, and the name of a socket has 107 letters at most.
  [ ${#dir} -le 75 ] || { say "a folder with a shorter name is needed than $dir"; exit 2; }
}

free() { ! (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# Four ports in a row that nobody listens at; the folder's number makes two clusters at once unlikely to want the same.
ports() {
  local at tries
  for tries in $(seq 50); do
    at=$((20000 + (RANDOM * 32768 + RANDOM + tries) % 12000))
    if free $at && free $((at + 1)) && free $((at + 2)) && free $((at + 3)); then
      echo $at
      return
    fi
  done
  say "no four free ports in a row were found"
  exit 1
}

configure() {
  local port me
  port=$(ports)
  me=$(id -un)
  # Anyone who reaches a port could run jobs, since nobody is asked who they are: hence 127.0.0.1 only (NoInAddrAny).
  # Timeouts are as short as they can be without a busy machine's nodes being taken for dead.
  cat >"$conf" <<END
ClusterName=genuma
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort=$port
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
AuthType=auth/none
CredType=cred/none
SlurmUser=$me
SlurmdUser=$me
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool/%n
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/%n.pid
SlurmctldLogFile=$dir/slurmctld.log
SlurmdLogFile=$dir/%n.log
SlurmdTimeout=10
SlurmctldTimeout=10
MessageTimeout=5
BatchStartTimeout=10
KillWait=2
CompleteWait=0
InactiveLimit=0
ReturnToService=2
JobRequeue=1
MaxArraySize=10001
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_interval=1,sched_min_interval=100000,bf_interval=1
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
NodeName=n[1-3] NodeHostname=localhost NodeAddr=127.0.0.1 Port=[$((port + 1))-$((port + 3))] CPUs=${SLURM_SH_CPUS:-2} RealMemory=1000000 TmpDisk=1000000
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
END
  mkdir -p "$dir/state" "$dir/spool" "$dir/bin"
  # Snakemake takes all of SLURM_* from the environment of srun; elsewhere the configuration is where srun looks by itself.
  printf '#!/bin/sh\nSLURM_CONF=%s exec %s "$@"\n' "$conf" "$(command -v srun)" >"$dir/bin/srun"
  chmod +x "$dir/bin/srun"
}

node() { slurmd -N "$1" -f "$conf" >>"$dir/$1.out" 2>&1; }

# Processes of a node of this cluster or, given '*', of all of it: the daemons by the log that they hold open (slurmstepd
# overwrites its environment), jobs by what Slurm puts into their environment.
# shellcheck disable=SC2254 # '*' is to be a pattern
processes() {
  local wanted=$1 file pid name text
  for name in slurmstepd slurmd slurmctld; do
    for pid in $(pgrep -x $name || true); do
      for file in "/proc/$pid/fd/"*; do
        case $(readlink "$file" || true) in "$dir"/$wanted.log) echo "$pid" && break ;; esac
      done
    done
  done
  for file in /proc/[0-9]*/environ; do
    pid=${file#/proc/}
    pid=${pid%/environ}
    # By no means this script itself, nor its subshells.
    if [ "$pid" = $$ ] || [ "$pid" = $BASHPID ]; then continue; fi
    text=$( (tr '\0' '\n' <"$file") 2>/dev/null) || continue
    case $'\n'$text$'\n' in
      *$'\n'SLURM_CONF="$conf"$'\n'*)
        case $'\n'$text$'\n' in *$'\n'SLURMD_NODENAME=$wanted$'\n'*) echo "$pid" ;; esac ;;
    esac
  done
}

# Children first: the kernel tells stopped processes when their parents die (SIGHUP), and a dead machine tells nobody.
# A node's processes may start others while they are looked for, so once more until there are none.
end() {
  local signal=$1 of=$2 pids="" tries
  for tries in $(seq 30); do
    pids=$(processes "$of" | sort -rn | tr '\n' ' ')
    [ -n "$pids" ] || return 0
    # A dead machine's processes do not see each other die: none may go on while the others are killed.
    # shellcheck disable=SC2086 # a list of numbers
    if [ "$signal" = KILL ]; then kill -s STOP $pids 2>/dev/null || true; fi
    # shellcheck disable=SC2086
    kill -s "$signal" $pids 2>/dev/null || true
    sleep 0.1
    [ "$tries" -lt 15 ] || signal=KILL
  done
  say "processes $pids of $dir do not end"
  return 1
}

up() {
  local tries
  for tries in $(seq 150); do
    [ "$(sinfo -h -N -o '%T' 2>/dev/null | grep -c '^idle$')" = 3 ] && return
    sleep 0.1
  done
  say "not all nodes came up in 15 s; the logs are in $dir:"
  tail -n 5 "$dir"/*.log "$dir"/*.out >&2
  return 1
}

case $verb in
  start)
    programs
    if [ -f "$dir/slurmctld.pid" ] && kill -0 "$(cat "$dir/slurmctld.pid")" 2>/dev/null; then
      say "a Slurm runs in $dir already"
      exit 1
    fi
    rm -rf "$dir/state" "$dir/spool"
    configure
    slurmctld -f "$conf" >>"$dir/slurmctld.out" 2>&1 || { say "slurmctld does not start:"; cat "$dir/slurmctld.out" >&2; exit 1; }
    for name in n1 n2 n3; do
      node $name || { say "slurmd does not start:"; cat "$dir/$name.out" >&2; "$0" stop "$dir"; exit 1; }
    done
    up || { "$0" stop "$dir"; exit 1; }
    # shellcheck disable=SC2016 # whoever reads it has the path
    printf 'export SLURM_CONF=%q PATH=%q:$PATH\n' "$conf" "$dir/bin"
    ;;
  crash)
    end KILL "${3:?a node: n1, n2 or n3}"
    ;;
  node)
    programs
    node "${3:?a node: n1, n2 or n3}"
    ;;
  stop)
    # Jobs are not cancelled one by one: whoever waits for them sees the cluster go.
    end TERM '*'
    rm -f "$dir"/*.pid
    ;;
  *)
    say "no command '$verb': start, crash, node or stop"
    exit 2
    ;;
esac
