// Overlaps of very many reads in tiles (docs/cluster.md): every round of tasks is scattered into groups.
// nextflow run workflows/nextflow/main.nf --reads reads.fastq.gz --outdir results [--groups N]
// The folder of the job, OUTDIR/work, is on a disk that all machines see.  Tasks that are done are not done twice.
// Options of `bellapy plan` go into ext.args of BELLAPY_PLAN (nextflow.config).
nextflow.enable.dsl = 2

include { BELLAPY_PLAN   } from './modules/local/bellapy/plan/main'
include { BELLAPY_GATHER } from './modules/local/bellapy/gather/main'
include { ROUND as ROUND_COUNT } from './subworkflows/local/round'
include { ROUND as ROUND_KEEP } from './subworkflows/local/round'
include { ROUND as ROUND_SEEDS } from './subworkflows/local/round'
include { ROUND as ROUND_MARKS } from './subworkflows/local/round'
include { ROUND as ROUND_GATE } from './subworkflows/local/round'
include { ROUND as ROUND_FIRST } from './subworkflows/local/round'
include { ROUND as ROUND_FIRST_RATES } from './subworkflows/local/round'
include { ROUND as ROUND_FIRST_TURNS } from './subworkflows/local/round'
include { ROUND as ROUND_FIRST_COVER } from './subworkflows/local/round'
include { ROUND as ROUND_FIRST_FAIR } from './subworkflows/local/round'
include { ROUND as ROUND_ALL } from './subworkflows/local/round'
include { ROUND as ROUND_ALL_RATES } from './subworkflows/local/round'
include { ROUND as ROUND_ALL_TURNS } from './subworkflows/local/round'
include { ROUND as ROUND_ALL_COVER } from './subworkflows/local/round'
include { ROUND as ROUND_ALL_FAIR } from './subworkflows/local/round'
include { ROUND as ROUND_ALL_SUMS } from './subworkflows/local/round'
include { ROUND as ROUND_ALL_BETTER } from './subworkflows/local/round'
include { ROUND as ROUND_ALL_SHORTFALLS } from './subworkflows/local/round'
include { ROUND as ROUND_OVERLAPS } from './subworkflows/local/round'
include { ROUND as ROUND_PLACED } from './subworkflows/local/round'

workflow {
    if (!params.reads) error 'give --reads FILE'
    reads  = file(params.reads, checkIfExists: true)
    folder = file("${params.outdir}/work").toAbsolutePath().toString()
    BELLAPY_PLAN(channel.of([[id: reads.simpleName], reads]), folder)
    plan = BELLAPY_PLAN.out.plan
    ROUND_COUNT(plan, 'count', BELLAPY_PLAN.out.plan.map { true }, folder)
    ROUND_KEEP(plan, 'keep', ROUND_COUNT.out.done, folder)
    ROUND_SEEDS(plan, 'seeds', ROUND_KEEP.out.done, folder)
    ROUND_MARKS(plan, 'marks', ROUND_SEEDS.out.done, folder)
    ROUND_GATE(plan, 'gate', ROUND_MARKS.out.done, folder)
    ROUND_FIRST(plan, 'first', ROUND_GATE.out.done, folder)
    ROUND_FIRST_RATES(plan, 'first_rates', ROUND_FIRST.out.done, folder)
    ROUND_FIRST_TURNS(plan, 'first_turns', ROUND_FIRST_RATES.out.done, folder)
    ROUND_FIRST_COVER(plan, 'first_cover', ROUND_FIRST_TURNS.out.done, folder)
    ROUND_FIRST_FAIR(plan, 'first_fair', ROUND_FIRST_COVER.out.done, folder)
    ROUND_ALL(plan, 'all', ROUND_FIRST_FAIR.out.done, folder)
    ROUND_ALL_RATES(plan, 'all_rates', ROUND_ALL.out.done, folder)
    ROUND_ALL_TURNS(plan, 'all_turns', ROUND_ALL_RATES.out.done, folder)
    ROUND_ALL_COVER(plan, 'all_cover', ROUND_ALL_TURNS.out.done, folder)
    ROUND_ALL_FAIR(plan, 'all_fair', ROUND_ALL_COVER.out.done, folder)
    ROUND_ALL_SUMS(plan, 'all_sums', ROUND_ALL_FAIR.out.done, folder)
    ROUND_ALL_BETTER(plan, 'all_better', ROUND_ALL_SUMS.out.done, folder)
    ROUND_ALL_SHORTFALLS(plan, 'all_shortfalls', ROUND_ALL_BETTER.out.done, folder)
    ROUND_OVERLAPS(plan, 'overlaps', ROUND_ALL_SHORTFALLS.out.done, folder)
    ROUND_PLACED(plan, 'placed', ROUND_OVERLAPS.out.done, folder)
    BELLAPY_GATHER(plan.combine(ROUND_PLACED.out.done).map { meta, table, ready -> [meta, ready] }, folder)
}
