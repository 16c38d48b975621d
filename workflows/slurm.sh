#!/usr/bin/env bash
#SBATCH --job-name=bellapy
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=16
#SBATCH --mem=64G
#SBATCH --time=04:00:00
# sbatch workflows/slurm.sh READS OVERLAPS.paf [OPTION...]
set -euo pipefail
reads=${1:?usage: slurm.sh READS OVERLAPS.paf [OPTION...]}
output=${2:?usage: slurm.sh READS OVERLAPS.paf [OPTION...]}
shift 2
exec bellapy overlap "$reads" -o "$output" --report "$output.json" -t "${SLURM_CPUS_PER_TASK:-1}" "$@"
