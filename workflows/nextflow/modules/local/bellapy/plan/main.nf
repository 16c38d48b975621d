// Reads into a folder that all machines see, and the rounds of tasks of the job.
process BELLAPY_PLAN {
    tag "$meta.id"
    label 'process_medium'

    conda "${moduleDir}/environment.yml"
    container "${params.container ?: 'bellapy:latest'}"

    input:
    tuple val(meta), path(reads, stageAs: "reads/*")
    val folder


    output:
    tuple val(meta), path("plan.tsv"), emit: plan
    path "versions.yml", emit: versions

    when:
    task.ext.when == null || task.ext.when

    script:
    def args = task.ext.args ?: ''
    """
    bellapy plan \\
        $args \\
        -t $task.cpus \\
        --workdir "$folder" \\
        reads/* \\
        > plan.tsv

    cat <<-END_VERSIONS > versions.yml
    "${task.process}":
        bellapy: \$(bellapy --version | sed 's/bellapy //')
    END_VERSIONS
    """

    stub:
    def args = task.ext.args ?: ''
    """
    printf 'count\\t0\\t1\\n' > plan.tsv

    cat <<-END_VERSIONS > versions.yml
    "${task.process}":
        bellapy: \$(bellapy --version | sed 's/bellapy //')
    END_VERSIONS
    """
}
