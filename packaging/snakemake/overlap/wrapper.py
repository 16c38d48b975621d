"""Find the overlaps of long reads with each other: `bellapy overlap`."""

from shlex import quote

from snakemake.shell import shell

extra = snakemake.params.get("extra", "")
log = snakemake.log_fmt_shell(stdout=False, stderr=True)
report = "--report " + quote(snakemake.output.report) if "report" in snakemake.output.keys() else ""
options = "-t {snakemake.threads} {extra} {report} -o {snakemake.output[0]:q} {log}"
shell("bellapy overlap {snakemake.input.reads:q} " + options)
