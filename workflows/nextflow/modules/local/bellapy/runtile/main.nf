// Some tasks of a round.
process BELLAPY_RUNTILE {
    tag "$meta.id"
    label 'process_low'

    conda "${moduleDir}/environment.yml"
    container "${params.container ?: 'bellapy:latest'}"

    input:
    tuple val(meta), val(first), val(count)
    val folder


    output:
    tuple val(meta), val(first), emit: done
    path "versions.yml", emit: versions

    when:
    task.ext.when == null || task.ext.when

    script:
    def args = task.ext.args ?: ''
    """
    bellapy run-tile \\
        $args \\
        -t $task.cpus \\
        "$folder" $first \\
        --count $count

    cat <<-END_VERSIONS > versions.yml
    "${task.process}":
        bellapy: \$(bellapy --version | sed 's/bellapy //')
    END_VERSIONS
    """

    stub:
    def args = task.ext.args ?: ''
    """
    true

    cat <<-END_VERSIONS > versions.yml
    "${task.process}":
        bellapy: \$(bellapy --version | sed 's/bellapy //')
    END_VERSIONS
    """
}
