#!/usr/bin/env bash
# Overlaps in tiles by arrays of a real Slurm, which this script starts on this machine alone and ends again (as root, with
# Debian's packages slurm-wlm and munge).  The site's largest array is set to 1,001 entries, and tasks need offsets.
#   benchmarks/slurm.sh READS [MAX_ARRAY] [OPTION...]     compares with one process; MAX_ARRAY: 1000
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
reads=$(realpath "${1:?usage: slurm.sh READS [MAX_ARRAY] [OPTION...]}")
most=${2:-1000}
shift $(($# < 2 ? $# : 2))
work=$(mktemp -d /tmp/bellapy-slurm.XXXX)
cores=$(nproc)
mkdir -p "$work/state" "$work/spool" "$work/munge" && chmod 755 "$work"
cat >"$work/slurm.conf" <<END
ClusterName=here
SlurmctldHost=$(hostname -s)(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$work/munge/socket
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.pid
SlurmctldPort=16817
SlurmdPort=16818
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
MaxArraySize=1001
MaxJobCount=20000
SchedulerParameters=sched_interval=2,bf_interval=2,sched_min_interval=0
NodeName=$(hostname -s) NodeAddr=127.0.0.1 CPUs=$cores State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
END
export SLURM_CONF=$work/slurm.conf
stop() {
  scancel --user root 2>/dev/null || true
  for name in slurmd slurmctld munged; do
    [ -f "$work/$name.pid" ] && kill "$(cat "$work/$name.pid")" 2>/dev/null || true
  done
  sleep 2
  rm -rf "$work"
}
trap stop EXIT
dd if=/dev/urandom of="$work/munge/key" bs=1 count=1024 status=none && chmod 400 "$work/munge/key"
munged --force --key-file="$work/munge/key" --socket="$work/munge/socket" --pid-file="$work/munged.pid" \
  --log-file="$work/munged.log" --seed-file="$work/munged.seed"
slurmctld -f "$SLURM_CONF" -L "$work/slurmctld.log"
slurmd -f "$SLURM_CONF" -L "$work/slurmd.log" -N "$(hostname -s)"
for _ in $(seq 30); do sinfo -h -o %T | grep -q idle && break; sleep 1; done
sinfo

bellapy overlap "$reads" -o "$work/whole.paf" -t 1 -q
start=$SECONDS
cd "$work"
MAX_ARRAY=$most "$here/workflows/slurm_tiles.sh" "$work/tiles" "$work/tiles.paf" "$reads" -t 1 -q "$@" | tail -1
while [ ! -f "$work/tiles.paf" ] && [ -n "$(squeue -h)" ]; do sleep 1; done
sleep 2
cmp "$work/whole.paf" "$work/tiles.paf"
[ ! -e "$work/tiles" ]
echo "same bytes, by arrays of up to $most tasks, in $((SECONDS - start)) s"
