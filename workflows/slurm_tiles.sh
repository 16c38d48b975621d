#!/usr/bin/env bash
# Overlaps of very many reads as arrays of Slurm jobs (docs/cluster.md).
#   workflows/slurm_tiles.sh DIR OVERLAPS.paf READS... [OPTION...]
# DIR is on a disk that all machines see.  SBATCH_ARGS holds further arguments of sbatch, such as "--partition long --mem 5G".
# MAX_ARRAY is the largest array that the site allows: its MaxArraySize less 1.  TASKS_PER_JOB puts several tasks into a job.
# A job that lost a task ends the arrays behind it: give the same command again, and what is done is not done twice.
set -euo pipefail
folder=${1:?usage: slurm_tiles.sh DIR OVERLAPS.paf READS... [OPTION...]}
output=${2:?usage: slurm_tiles.sh DIR OVERLAPS.paf READS... [OPTION...]}
shift 2
most=${MAX_ARRAY:-1000}
each=${TASKS_PER_JOB:-1}
read -ra more <<<"${SBATCH_ARGS:-}"

plan=$(bellapy plan "$@" --workdir "$folder")
grep '^#' <<<"$plan" >&2
before=()
while IFS=$'\t' read -r name first tasks; do
  jobs=$(((tasks + each - 1) / each))
  these=
  for ((at = 0; at < jobs; at += most)); do
    last=$((jobs - at < most ? jobs - at - 1 : most - 1))
    # the number of the array's task is counted in jobs of `each` tasks; the last job may reach into nothing
    command="first=\$((\$SLURM_ARRAY_TASK_ID * $each)); count=\$(($tasks - $at * $each - first)); "
    command+="bellapy run-tile $(printf %q "$folder") \$first --offset $((first + at * each)) "
    command+="--count \$((count < $each ? count : $each)) -t \${SLURM_CPUS_PER_TASK:-1} -q"
    id=$(sbatch --parsable --job-name "bellapy-$name" --array "0-$last" "${before[@]}" ${more[@]+"${more[@]}"} --wrap "$command")
    these+=":${id%%;*}"
  done
  before=(--dependency "afterok$these" --kill-on-invalid-dep=yes)
done < <(grep -v '^#' <<<"$plan")
exec sbatch --job-name bellapy-gather "${before[@]}" ${more[@]+"${more[@]}"} \
  --wrap "bellapy gather $(printf %q "$folder") -o $(printf %q "$output") -t \${SLURM_CPUS_PER_TASK:-1}"
