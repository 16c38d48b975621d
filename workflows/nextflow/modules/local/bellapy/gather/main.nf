// The overlaps of a job whose tasks are done.
process BELLAPY_GATHER {
    tag "$meta.id"
    label 'process_low'

    conda "${moduleDir}/environment.yml"
    container "${params.container ?: 'bellapy:latest'}"

    input:
    tuple val(meta), val(ready)
    val folder


    output:
    tuple val(meta), path("*.paf.gz"), emit: paf
    path "versions.yml", emit: versions

    when:
    task.ext.when == null || task.ext.when

    script:
    def args = task.ext.args ?: ''
    def prefix = task.ext.prefix ?: "${meta.id}"
    """
    bellapy gather \\
        $args \\
        -t $task.cpus \\
        "$folder" \\
        -o ${prefix}.paf.gz

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

    cat <<-END_VERSIONS > versions.yml
    "${task.process}":
        bellapy: \$(bellapy --version | sed 's/bellapy //')
    END_VERSIONS
    """
}
