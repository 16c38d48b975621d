"""Modules for nf-core and wrappers for Snakemake, one for each command: python packaging/modules.py writes them anew."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parent
REQUIREMENT = "bellapy-bio>=0.1"


class Job(NamedTuple):
    """A command: its inputs by name, the file that it writes by the ending, and what it does."""

    inputs: tuple[str, ...]
    ending: str
    about: str


JOBS = {
    "overlap": Job(("reads",), "paf.gz", "Find the overlaps of long reads with each other"),
    "correct": Job(("reads",), "fa.gz", "Correct long reads by each other"),
    "map": Job(("reference", "reads"), "bam", "Map long reads to a reference"),
    "exact": Job(("query", "target"), "paf", "Find the optimal alignment of two long sequences"),
    "wga": Job(("target", "query"), "maf.gz", "Align two genomes"),
}

NEXTFLOW = """\
process BELLAPY_{upper} {{
    tag "$meta.id"
    label 'process_high'

    conda "${{moduleDir}}/environment.yml"
    container "bellapy:latest"

    input:
    tuple val(meta), {inputs}

    output:
    tuple val(meta), path("*.{ending}"), emit: {output}
    tuple val(meta), path("*_mqc.json"), emit: report
    path "versions.yml", emit: versions

    when:
    task.ext.when == null || task.ext.when

    script:
    def args = task.ext.args ?: ''
    def prefix = task.ext.prefix ?: "${{meta.id}}"
    \"\"\"
    bellapy {command} {names} -t ${{task.cpus}} ${{args}} \\\\
        -o ${{prefix}}.{ending} --report ${{prefix}}_mqc.json

    cat <<-END_VERSIONS > versions.yml
    "${{task.process}}":
        bellapy: \\$(bellapy --version | cut -d ' ' -f 2)
    END_VERSIONS
    \"\"\"

    stub:
    def prefix = task.ext.prefix ?: "${{meta.id}}"
    \"\"\"
    touch ${{prefix}}.{ending} ${{prefix}}_mqc.json

    cat <<-END_VERSIONS > versions.yml
    "${{task.process}}":
        bellapy: \\$(bellapy --version | cut -d ' ' -f 2)
    END_VERSIONS
    \"\"\"
}}
"""

NEXTFLOW_META = """\
name: bellapy_{command}
description: {about}
keywords: [long reads, alignment, {command}]
tools:
  - bellapy:
      description: Alignment of long reads on CPUs and GPUs
      licence: ["MIT"]
input:
  - - meta: {{type: map, description: "Groovy map with information on the sample, such as [id: 'sample7']"}}
{inputs}
output:
  {output}:
    - - meta: {{type: map, description: Groovy map with information on the sample}}
      - "*.{ending}": {{type: file, description: {about}, pattern: "*.{ending}"}}
  report:
    - - meta: {{type: map, description: Groovy map with information on the sample}}
      - "*_mqc.json": {{type: file, description: Section for MultiQC, pattern: "*_mqc.json"}}
  versions:
    - versions.yml: {{type: file, description: Versions of the programs, pattern: versions.yml}}
"""

ENVIRONMENT = """\
channels: [conda-forge, bioconda]
dependencies: [pip, {{pip: ["{requirement}"]}}]
"""

WRAPPER = '''\
"""{about}: `bellapy {command}`."""

from shlex import quote

from snakemake.shell import shell

extra = snakemake.params.get("extra", "")
log = snakemake.log_fmt_shell(stdout=False, stderr=True)
report = "--report " + quote(snakemake.output.report) if "report" in snakemake.output.keys() else ""
options = "-t {{snakemake.threads}} {{extra}} {{report}} -o {{snakemake.output[0]:q}} {{log}}"
shell("bellapy {command} {names} " + options)
'''

WRAPPER_META = """\
name: bellapy {command}
description: {about}
authors: [The bellapy developers]
input: {inputs}
output: ["{ending}", "report (optional)"]
params: {{extra: Further options of the command}}
"""


def files() -> dict[str, str]:
    """The text of every file by its path in this folder."""
    made = {}
    for command, job in JOBS.items():
        output = job.ending.split(".")[0]
        common = {"command": command, "upper": command.upper(), "about": job.about, "ending": job.ending, "output": output}
        paths = ", ".join(f"path({name})" for name in job.inputs)
        made[f"nf-core/{command}/main.nf"] = NEXTFLOW.format(
            **common, inputs=paths, names=" ".join(f"${{{name}}}" for name in job.inputs)
        )
        listed = "\n".join(f"    - {name}: {{type: file, description: FASTA or FASTQ}}" for name in job.inputs)
        made[f"nf-core/{command}/meta.yml"] = NEXTFLOW_META.format(**common, inputs=listed)
        made[f"nf-core/{command}/environment.yml"] = ENVIRONMENT.format(requirement=REQUIREMENT)
        names = " ".join(f"{{snakemake.input.{name}:q}}" for name in job.inputs)
        made[f"snakemake/{command}/wrapper.py"] = WRAPPER.format(**common, names=names)
        made[f"snakemake/{command}/meta.yaml"] = WRAPPER_META.format(**common, inputs=f"[{', '.join(job.inputs)}]")
        made[f"snakemake/{command}/environment.yaml"] = ENVIRONMENT.format(requirement=REQUIREMENT)
    return made


if __name__ == "__main__":
    for path, text in files().items():
        (FOLDER / path).parent.mkdir(parents=True, exist_ok=True)
        (FOLDER / path).write_text(text)
