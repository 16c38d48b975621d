process BELLAPY_CORRECT {
    tag "$meta.id"
    label 'process_high'

    conda "${moduleDir}/environment.yml"
    container "bellapy:latest"

    input:
    tuple val(meta), path(reads)

    output:
    tuple val(meta), path("*.fa.gz"), emit: fa
    tuple val(meta), path("*_mqc.json"), emit: report
    path "versions.yml", emit: versions

    when:
    task.ext.when == null || task.ext.when

    script:
    def args = task.ext.args ?: ''
    def prefix = task.ext.prefix ?: "${meta.id}"
    """
    bellapy correct ${reads} -t ${task.cpus} ${args} \\
        -o ${prefix}.fa.gz --report ${prefix}_mqc.json

    cat <<-END_VERSIONS > versions.yml
    "${task.process}":
        bellapy: \$(bellapy --version | cut -d ' ' -f 2)
    END_VERSIONS
    """

    stub:
    def prefix = task.ext.prefix ?: "${meta.id}"
    """
    touch ${prefix}.fa.gz ${prefix}_mqc.json

    cat <<-END_VERSIONS > versions.yml
    "${task.process}":
        bellapy: \$(bellapy --version | cut -d ' ' -f 2)
    END_VERSIONS
    """
}
