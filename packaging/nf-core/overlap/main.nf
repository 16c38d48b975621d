process BELLAPY_OVERLAP {
    tag "$meta.id"
    label 'process_high'

    conda "${moduleDir}/environment.yml"
    container "bellapy:latest"

    input:
    tuple val(meta), path(reads)

    output:
    tuple val(meta), path("*.paf.gz"), emit: paf
    tuple val(meta), path("*_mqc.json"), emit: report
    path "versions.yml", emit: versions

    when:
    task.ext.when == null || task.ext.when

    script:
    def args = task.ext.args ?: ''
    def prefix = task.ext.prefix ?: "${meta.id}"
    """
    bellapy overlap ${reads} -t ${task.cpus} ${args} \\
        -o ${prefix}.paf.gz --report ${prefix}_mqc.json

    cat <<-END_VERSIONS > versions.yml
    "${task.process}":
        bellapy: \$(bellapy --version | cut -d ' ' -f 2)
    END_VERSIONS
    """

    stub:
    def prefix = task.ext.prefix ?: "${meta.id}"
    """
    touch ${prefix}.paf.gz ${prefix}_mqc.json

    cat <<-END_VERSIONS > versions.yml
    "${task.process}":
        bellapy: \$(bellapy --version | cut -d ' ' -f 2)
    END_VERSIONS
    """
}
