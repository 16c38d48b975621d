// Overlaps of reads with each other, in one step or, with --staged, in the four stages.
// nextflow run workflows/main.nf --reads reads.fastq.gz --out results [--options '--preset ont'] [--staged]
nextflow.enable.dsl = 2

params.reads = null
params.out = 'results'
params.options = ''
params.staged = false
params.threads = 4

process overlap {
    cpus params.threads
    publishDir params.out, mode: 'copy'
    input: path reads
    output: tuple path('overlaps.paf'), path('overlaps.json')
    script: "bellapy overlap ${reads} -o overlaps.paf --report overlaps.json -t ${task.cpus} ${params.options}"
}

process count {
    cpus params.threads
    input: path reads
    output: path 'kmers.npz'
    script: "bellapy count ${reads} -o kmers.npz -t ${task.cpus}"
}

process candidates {
    cpus params.threads
    input: path reads; path kmers
    output: path 'seeds.npz'
    script: "bellapy candidates ${reads} --kmers ${kmers} -o seeds.npz -t ${task.cpus}"
}

process align {
    cpus params.threads
    input: path reads; path seeds
    output: path 'alignments.npz'
    script: "bellapy align ${reads} --seeds ${seeds} -o alignments.npz -t ${task.cpus}"
}

process keep {
    publishDir params.out, mode: 'copy'
    input: path reads; path alignments
    output: path 'overlaps.paf'
    script: "bellapy filter ${reads} --alignments ${alignments} -o overlaps.paf"
}

workflow {
    if (!params.reads) error 'give --reads FILE'
    reads = channel.value(file(params.reads, checkIfExists: true))
    if (params.staged) {
        keep(reads, align(reads, candidates(reads, count(reads))))
    } else {
        overlap(reads)
    }
}
