// Overlaps of reads with each other, in one step or, with --staged, in the four stages, each with those of the options it takes.
// Inputs get names of their own where they are used: those that users give them may hold blanks.
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
    input: path 'reads'
    output: tuple path('overlaps.paf'), path('overlaps.json')
    script: "bellapy overlap reads -o overlaps.paf --report overlaps.json -t ${task.cpus} ${params.options}"
}

process count {
    cpus params.threads
    input: path 'reads'
    output: path 'kmers.npz'
    script:
    """
    taken=\$(bellapy stage-options count -- ${params.options})
    bellapy count reads -o kmers.npz -t ${task.cpus} \$taken
    """
}

process candidates {
    cpus params.threads
    input: path 'reads'; path 'kmers.npz'
    output: path 'seeds.npz'
    script:
    """
    taken=\$(bellapy stage-options candidates -- ${params.options})
    bellapy candidates reads --kmers kmers.npz -o seeds.npz -t ${task.cpus} \$taken
    """
}

process align {
    cpus params.threads
    input: path 'reads'; path 'seeds.npz'
    output: path 'alignments.npz'
    script:
    """
    taken=\$(bellapy stage-options align -- ${params.options})
    bellapy align reads --seeds seeds.npz -o alignments.npz -t ${task.cpus} \$taken
    """
}

process keep {
    cpus params.threads
    publishDir params.out, mode: 'copy'
    input: path 'reads'; path 'alignments.npz'
    output: path 'overlaps.paf'
    script:
    """
    taken=\$(bellapy stage-options filter -- ${params.options})
    bellapy filter reads --alignments alignments.npz -o overlaps.paf -t ${task.cpus} \$taken
    """
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
