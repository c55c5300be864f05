process GENUMA_CALL {
    tag "${meta.id}"
    label 'process_high'

    conda "${moduleDir}/environment.yml"
    container "${workflow.containerEngine in ['singularity', 'apptainer'] && !task.ext.singularity_pull_docker_container
        ? 'https://depot.galaxyproject.org/singularity/genuma:0.2.0--0'
        : 'quay.io/biocontainers/genuma:0.2.0--0'}"

    input:
    tuple val(meta), path(tumor, stageAs: 'tumor/*'), path(normal, stageAs: 'normal/*')
    tuple val(meta2), path(fasta)
    tuple val(meta3), path(panel)
    tuple val(meta4), path(targets)
    tuple val(meta5), path(known), path(known_tbi)
    tuple val(meta6), path(gff)

    output:
    tuple val(meta), path("${prefix}/${prefix}.vcf.gz")       , emit: vcf
    tuple val(meta), path("${prefix}/${prefix}.vcf.gz.tbi")   , emit: tbi
    tuple val(meta), path("${prefix}/contigs.fa")             , emit: contigs
    tuple val(meta), path("${prefix}/supporting.bam")         , emit: bam    , optional: true
    tuple val(meta), path("${prefix}/supporting.bam.{bai,csi}"), emit: index  , optional: true
    tuple val(meta), path("${prefix}/summary.json")           , emit: json
    tuple val(meta), path("${prefix}/report.html")            , emit: html
    tuple val(meta), path("${prefix}/*_mqc.json")             , emit: mqc
    tuple val(meta), path("${prefix}/targets.tsv")            , emit: targets, optional: true
    tuple val("${task.process}"), val('genuma'), eval("genuma --version | sed 's/genuma //'"), topic: versions, emit: versions_genuma

    when:
    task.ext.when == null || task.ext.when

    script:
    def args = task.ext.args ?: ''
    prefix = task.ext.prefix ?: "${meta.id}"
    [prefix, meta.tumor_id, meta.normal_id].findAll().each {
        if (!(it ==~ /[\w.+=@-]+/)) error "'${it}' becomes part of a shell command: use letters, digits and '_.+=@-'"
    }
    // The names that sarek gives the samples of a pair. Without a normal the call is tumour-only.
    def tumor_name = meta.tumor_id ? "--tumor-name ${meta.tumor_id}" : ''
    def normal_name = normal && meta.normal_id ? "--normal-name ${meta.normal_id}" : ''
    def matched = normal ? "--normal ${normal} ${normal_name}" : ''
    def reference = fasta ? "--reference ${fasta}" : ''
    def options = [panel: panel, targets: targets, known: known, gff: gff].findAll { it.value }.collect { "--${it.key} ${it.value}" }.join(' ')
    // Three quarters: the rest is the kernel's and the page cache's.
    def memory = task.memory ? "--memory ${(task.memory.toMega() * 0.75).intValue()}M" : ''
    """
    genuma call \\
        ${args} \\
        --tumor ${tumor} ${tumor_name} \\
        ${matched} \\
        ${reference} \\
        ${options} \\
        --threads ${task.cpus} \\
        ${memory} \\
        --out ${prefix}

    mv ${prefix}/somatic.vcf.gz ${prefix}/${prefix}.vcf.gz
    mv ${prefix}/somatic.vcf.gz.tbi ${prefix}/${prefix}.vcf.gz.tbi
    """

    stub:
    prefix = task.ext.prefix ?: "${meta.id}"
    """
    mkdir ${prefix}
    echo "" | gzip > ${prefix}/${prefix}.vcf.gz
    touch ${prefix}/${prefix}.vcf.gz.tbi ${prefix}/contigs.fa ${prefix}/supporting.bam ${prefix}/supporting.bam.bai
    touch ${prefix}/summary.json ${prefix}/report.html ${prefix}/genuma_calls_mqc.json
    """
}
