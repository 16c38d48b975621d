// Overlaps of reads with each other, in one process.
process BELLAPY_OVERLAP {
    tag "$meta.id"
    label 'process_high'

    conda "${moduleDir}/environment.yml"
    container "${params.container ?: 'bellapy:latest'}"

    input:
    tuple val(meta), path(reads, stageAs: "reads/*")


    output:
    tuple val(meta), path("*.paf.gz"), emit: paf
    tuple val(meta), path("*.json"), emit: report
    path "versions.yml", emit: versions

    when:
    task.ext.when == null || task.ext.when

    script:
    def args = task.ext.args ?: ''
    def prefix = task.ext.prefix ?: "${meta.id}"
    """
    bellapy overlap \\
        $args \\
        -t $task.cpus \\
        -o ${prefix}.paf.gz \\
        --report ${prefix}.json \\
        reads/*

    cat <<-END_VERSIONS > versions.yml
    "${task.process}":
        bellapy: \$(bellapy --version | sed 's/bellapy //')
    END_VERSIONS
    """

    stub:
    def args = task.ext.args ?: ''
    def prefix = task.ext.prefix ?: "${meta.id}"
    """
    echo | gzip > ${prefix}.paf.gz
    touch ${prefix}.json

    cat <<-END_VERSIONS > versions.yml
    "${task.process}":
        bellapy: \$(bellapy --version | sed 's/bellapy //')
    END_VERSIONS
    """
}
