// One round of tasks, scattered into groups; it begins when the round before has ended.
include { BELLAPY_RUNTILE } from '../../modules/local/bellapy/runtile/main'

workflow ROUND {
    take:
    plan    // channel: [ meta, plan.tsv ]
    name    // value: of the round
    before  // channel: anything, once the round before has ended
    folder  // value: the folder of the job

    main:
    groups = plan
        .combine(before)
        .flatMap { meta, table, ready ->
            def row = table.readLines().collect { it.split('\t') }.find { it[0] == name }
            if (!row) return []
            def first = row[1] as int, tasks = row[2] as int, n = Math.min(params.groups as int, tasks)
            (0..<n).collect {
                def begin = (tasks * it).intdiv(n)
                [meta, first + begin, (tasks * (it + 1)).intdiv(n) - begin]
            }
        }
    BELLAPY_RUNTILE(groups, folder)

    emit:
    done     = BELLAPY_RUNTILE.out.done.collect().map { true }.ifEmpty(true)  // channel: true
    versions = BELLAPY_RUNTILE.out.versions                                     // channel: versions.yml
}
