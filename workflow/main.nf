#!/usr/bin/env nextflow
/*
 * Somatic mutations of many patients: each genuma call is distributed, each of its tasks is a job.
 *
 *   nextflow run workflow/main.nf -profile slurm --input samplesheet.csv --reference ref.fa --outdir results
 *
 * What goes from process to process are receipts. The data stay in the call's run folder, in the work directory, which every
 * node sees (or in a bucket, where genuma itself reads and writes). docs/guide/cluster.md says how it is used.
 */
nextflow.enable.dsl = 2

import groovy.json.JsonSlurper
import java.security.MessageDigest

params.input = null
params.reference = null
params.targets = null
params.panel = null
params.known = null
params.gff = null
params.signatures = null
params.strict = false
params.force = false
params.platform = null
params.multiqc = 'multiqc'
params.outdir = 'results'
params.shards = null
params.partitions = null
params.parts = null          // earlier name of params.partitions
params.genuma = 'genuma'
params.genuma_args = ''
params.align = false
params.align_args = '--mark-duplicates'
params.help = false

def usage() {
    """\
    usage: nextflow run main.nf --input samplesheet.csv [options]

      --input FILE        samplesheet of nf-core/sarek: patient,sex,status,sample,lane,fastq_1,fastq_2,bam,bai,cram,crai;
                          status 0 is normal, 1 tumour. A patient without a normal is called tumour-only
      --reference FASTA   reference to call with
      --targets FILE      target intervals (genuma call --targets)
      --panel TABLE       panel of normals (genuma call --panel)
      --known VCF         known variants of the population (genuma call --known)
      --gff FILE          genes, GFF3 of Ensembl or GENCODE (genuma call --gff)
      --signatures FILE   mutational signatures, matrix of COSMIC (genuma call --signatures)
      --strict            no results of a pair with any warning, for example of two people
      --force             results of a pair in spite of a warning that withholds them
      --platform NAME     PL of the read groups of genuma align and of supporting.bam, such as ILLUMINA
      --multiqc FILE      MultiQC; without it there is no common report [multiqc, if it is installed]
      --outdir DIR        where results go [results]
      --shards N          shards of the reads, each read by a task of its own [by the size of the reads]
      --partitions N      partitions of the k-mers, each counted by a task of its own [as many as shards]
      --genuma_args ARGS  more options of genuma call, as one word: --genuma_args='--min-quality 20'
      --genuma FILE       the program [genuma]
      --align             also align each sample of FASTQ: sorted, indexed BAM, duplicates marked; wants --reference
      --align_args ARGS   options of genuma align [--mark-duplicates]
      -profile NAME       standard, slurm, awsbatch; docker, apptainer beside them; test""".stripIndent()
}

// The number of partitions, given by its name or by its earlier name.
def numPartitions() { params.parts ?: params.partitions }

/* ---- the samplesheet ---- */

// The files of a row by their kind: fastq, bam or cram; null if the row is wrong.
def files_of_row(row, say) {
    def given = [fastq: ['fastq_1', 'fastq_2'], bam: ['bam'], cram: ['cram']].findAll { kind, columns -> columns.any { row[it] } }
    if (given.size() != 1) {
        say(given ? "reads in columns ${given.values().flatten().join(', ')}: give one kind in a line" : 'no reads: give fastq_1 and fastq_2, bam, or cram')
        return null
    }
    def kind = given.keySet().first()
    def endings = [fastq: /\S+\.(fq|fastq)(\.(gz|bz2|xz|zst))?/, bam: /\S+\.bam/, cram: /\S+\.cram/]
    def paths = given[kind].collect { column ->
        def name = row[column]
        if (!name) { say("no ${column}: reads come in pairs"); return null }
        if (!(name ==~ endings[kind])) { say("${column} is '${name}': a name without blanks that ends with ${kind == 'fastq' ? '.fq or .fastq, and then nothing, .gz, .bz2, .xz or .zst' : '.' + kind}"); return null }
        def path = file(name)
        // It is read piece by piece by many jobs, by its name.
        if (path.scheme != 'file') { say("${name} is no file: mount the bucket on all nodes and give the path there"); return null }
        if (!path.exists()) { say("there is no file ${name}"); return null }
        path
    }
    [kind: kind, paths: paths]
}

// Samples of the sheet, or an end with all that is wrong with it, line by line. Indexes (bai, crai) are not needed, and the sex
// of a patient is estimated from the reads.
def samples_of(sheet) {
    def columns = ['patient', 'sample', 'status']
    def possible = columns + ['sex', 'lane', 'fastq_1', 'fastq_2', 'bam', 'bai', 'cram', 'crai']
    if (!sheet.exists()) error("--input: there is no file ${sheet}")
    // Trailing blanks and DOS line ends come from spreadsheets.
    def lines = sheet.text.readLines()
    def header = lines ? lines[0].replace('\uFEFF', '').split(',', -1).collect { it.trim() } : []
    def missing = columns.findAll { !(it in header) }
    if (missing) error("${sheet}: line 1: no column ${missing.join(', ')}; the columns of a samplesheet are ${possible.join(',')}")
    def wrong = []
    def samples = [:]
    def files = [:]
    lines.eachWithIndex { line, at ->
        if (at == 0 || !line.trim()) return
        def cells = line.split(',', -1).collect { it.trim() }
        def say = { wrong << "line ${at + 1}: ${it}".toString() }
        if (cells.size() != header.size()) return say("${cells.size()} fields, and ${header.size()} columns in line 1")
        def row = [header, cells].transpose().collectEntries()
        row.lane = row.lane ?: '1'
        ['patient', 'sample', 'lane'].each {
            if (!(row[it] ==~ /[A-Za-z0-9][A-Za-z0-9_.-]*/)) say("${it} is '${row[it]}': letters, digits, '_', '.' and '-' are possible")
        }
        if (!(row.status in ['0', '1'])) say("status is '${row.status}': 0 is normal, 1 tumour")
        def reads = files_of_row(row, say)
        if (!reads) return
        reads.paths.findAll().each { path ->
            if (files.containsKey(path)) say("${path} is in line ${files[path]} already")
            files[path] = at + 1
        }
        def sample = samples.get([row.patient, row.sample], [patient: row.patient, sample: row.sample, status: row.status, kind: reads.kind, lanes: []])
        if (sample.status != row.status) say("sample ${row.sample} of patient ${row.patient} has status ${row.status} here and ${sample.status} before")
        if (sample.kind != reads.kind) say("sample ${row.sample} has ${reads.kind} here and ${sample.kind} before: give one kind for a sample")
        if (row.lane in sample.lanes*.lane) say("lane ${row.lane} of sample ${row.sample} is there twice")
        sample.lanes << [lane: row.lane, paths: reads.paths]
    }
    if (!samples && !wrong) wrong << 'no samples below line 1'
    samples.values().groupBy { it.patient }.each { patient, of ->
        def normals = of.findAll { it.status == '0' }*.sample
        if (!normals && !params.reference) wrong << "patient ${patient} has no normal sample (status 0): a tumour-only call needs --reference".toString()
        if (normals.size() > 1) wrong << "patient ${patient} has several normal samples (${normals.join(', ')}): each tumour is called against one".toString()
        if (normals.size() == of.size()) wrong << "patient ${patient} has no tumour sample (status 1)".toString()
    }
    if (!params.reference && samples.values().any { it.kind == 'cram' }) wrong << 'CRAM needs --reference'
    if (wrong) error("${sheet}: " + wrong.join("\n${sheet}: "))
    samples.values() as List
}

// Lanes in the order of their names, so that the order of lines does not matter to what is cached.
def files_of(sample) {
    sample.lanes.sort(false) { it.lane }.collectMany { it.paths }
}

// Names as genuma is to read them: whole, since each step runs in a folder of its own.
def name_of(path) {
    path.scheme == 'file' ? path.toAbsolutePath().normalize().toString() : path.toUriString()
}

// Other inputs or parameters are another run folder: none is ever written to by two different calls.
def digest(List what) {
    MessageDigest.getInstance('SHA-256').digest(what.join('\n').getBytes('UTF-8')).encodeHex().toString().take(12)
}

// A file that an option of the workflow names; null if it is not given.
def file_of_option(name) {
    if (!params[name]) return null
    def path = file(params[name])
    if (path.scheme != 'file') error("--${name}: ${params[name]} is no file: mount the bucket on all nodes and give the path there")
    if (!path.exists()) error("--${name}: there is no file ${params[name]}")
    path
}

// Each tumour with the normal of its patient, if it has one: all that a step needs to know, as plain words.
def pairs_of(samples) {
    def options = ['reference', 'targets', 'panel', 'known', 'gff'].collectEntries { [it, file_of_option(it)] }.findAll { it.value }
    // Only the last step reads the signatures, so that another matrix is no other run folder.
    def signatures = file_of_option('signatures')
    ['gff', 'signatures'].each { if (params[it] && !params.reference) error("--${it} needs --reference") }
    samples.findAll { it.status == '1' }.collect { tumor ->
        def normal = samples.find { it.patient == tumor.patient && it.status == '0' }
        def (t, n) = [files_of(tumor), normal ? files_of(normal) : []]
        def inputs = t + n + options.values()
        def seen = inputs.collect { "${name_of(it)} ${it.size()} ${it.lastModified()}" }
        def key = digest(seen + [tumor.sample, normal?.sample, "${params.shards} ${numPartitions()} ${params.platform} ${params.genuma_args}"])
        [
            id: "${tumor.patient}-${tumor.sample}-${key}".toString(),
            patient: tumor.patient,
            sample: tumor.sample,
            normal_sample: normal?.sample,
            name: (normal ? "${tumor.sample}_vs_${normal.sample}" : tumor.sample).toString(),
            run: name_of(workflow.workDir.resolve("genuma/${tumor.patient}-${tumor.sample}-${key}")),
            tumor: t.collect { name_of(it) },
            normal: n.collect { name_of(it) },
            options: options.collectEntries { name, path -> [name, name_of(path)] },
            signatures: signatures ? name_of(signatures) : null,
            folders: folders_of((inputs + [signatures]).findAll()),
        ]
    }
}

/* ---- steps ---- */

// A word for the shell.
def quoted(word) {
    "'" + word.toString().replace("'", "'\\''") + "'"
}

// How the container engine is given a folder, and the characters that separate the parts of that option; null without a container.
def mount_option() {
    def volume = [format: '-v %1$s:%1$s', separators: /:/]
    def bind = [format: '-B %1$s', separators: /[:,]/]
    [docker: volume, podman: volume, apptainer: bind, singularity: bind][workflow.containerEngine]
}

// Folders that a container has to be given, since files are passed by name; an end if one cannot be given.
def folders_of(paths) {
    def work = workflow.workDir.scheme == 'file' ? [workflow.workDir.toString()] : []
    def folders = work + paths.collect { it.toAbsolutePath().normalize().parent.toString() }.sort()
    def mount = mount_option()
    def wrong = folders.find { mount && it =~ mount.separators }
    if (wrong) error("${wrong}: ${workflow.containerEngine} cannot be given a folder with ':' or ',' in its name: give the files in it by another path")
    folders.unique()
}

// The options that give a container these folders. Nextflow pastes them into a shell script.
def mounts(pair) {
    def mount = mount_option()
    mount ? pair.folders.collect { String.format(mount.format, quoted(it)) }.join(' ') : ''
}

// What runs a step, and a word on what to do when the run folder has gone.
def step(pair, name, number, threads, more = '') {
    def gone = "the run folder ${pair.run} has gone since it was planned: start once more without -resume"
    def look = pair.run.contains('://') ? '' : "[ -e ${quoted(pair.run + '/plan.json')} ] || { echo ${quoted(gone)} >&2; exit 1; }"
    """\
    ${look}
    ${quoted(params.genuma)} step ${quoted(pair.run)} ${name} ${number} --threads ${threads} \${GENUMA_SCRATCH:+--work "\$GENUMA_SCRATCH"} ${more}
    echo ${name} ${number} > receipt
    """.stripIndent()
}

// The plan says what genuma will take; the kernel and the shell take some for the job too.
def mib(need, attempt) {
    "${((need.memory_mb * 1.1 + 128) as long) * attempt} MB"
}

// Which warnings withhold the results of a pair.
def warning_rule() {
    params.strict ? '--strict' : params.force ? '--force' : ''
}

// What happens when genuma itself fails (exit code 1): the branch of this pair ends, the others go on, and the exit code of the
// workflow tells of it. A task that was killed is tried again.
def on_error(status) {
    status in ((130..145) + [104, 175, 247, Integer.MAX_VALUE, -1]) ? 'retry' : status == 1 ? 'ignore' : 'finish'
}

process PLAN {
    tag "${pair.patient} ${pair.name}"
    errorStrategy { on_error(task.exitStatus) }
    containerOptions { mounts(pair) }

    input:
    val pair

    output:
    tuple val(pair), path('plan.json')

    script:
    def local = !pair.run.contains('://')
    def words = { list -> list.collect { quoted(it) }.join(' ') }
    def normal = pair.normal ? "--normal ${words(pair.normal)} --normal-name ${quoted(pair.normal_sample)}" : ''
    def options = pair.options.collect { name, path -> "--${name} ${quoted(path)}" }.join(' ')
    """
    ${quoted(params.genuma)} call --plan ${quoted(pair.run)} ${params.shards ? "--shards ${params.shards}" : ''} ${numPartitions() ? "--partitions ${numPartitions()}" : ''} \\
      --tumor ${words(pair.tumor)} --tumor-name ${quoted(pair.sample)} ${normal} \\
      ${options} ${params.platform ? "--platform ${quoted(params.platform)}" : ''} ${warning_rule()} \\
      -o ${quoted(pair.run + '/results')} ${params.genuma_args}
    ${local ? "cp ${quoted(pair.run + '/plan.json')} plan.json" : 'touch plan.json'}
    """
}

process SCATTER {
    tag "${pair.patient} ${pair.name} ${number}"
    cpus { need.threads }
    memory { mib(need, task.attempt) }
    time { "${need.minutes * task.attempt} min" }
    containerOptions { mounts(pair) }

    input:
    tuple val(pair), val(need), val(number), val(after)

    output:
    tuple val(pair), path('receipt')

    script:
    step(pair, 'scatter', number, task.cpus)
}

process COUNT {
    tag "${pair.patient} ${pair.name} ${number}"
    cpus { need.threads }
    memory { mib(need, task.attempt) }
    time { "${need.minutes * task.attempt} min" }
    containerOptions { mounts(pair) }

    input:
    tuple val(pair), val(need), val(number), val(after)

    output:
    tuple val(pair), path('receipt')

    script:
    step(pair, 'count', number, task.cpus)
}

process PICK {
    tag "${pair.patient} ${pair.name}"
    cpus { need.threads }
    memory { mib(need, task.attempt) }
    time { "${need.minutes * task.attempt} min" }
    containerOptions { mounts(pair) }

    input:
    tuple val(pair), val(need), val(number), val(after)

    output:
    tuple val(pair), path('receipt')

    script:
    step(pair, 'pick', number, task.cpus)
}

process LABEL {
    tag "${pair.patient} ${pair.name} ${number}"
    cpus { need.threads }
    memory { mib(need, task.attempt) }
    time { "${need.minutes * task.attempt} min" }
    containerOptions { mounts(pair) }

    input:
    tuple val(pair), val(need), val(number), val(after)

    output:
    tuple val(pair), path('receipt')

    script:
    step(pair, 'label', number, task.cpus)
}

process ASSEMBLE {
    tag "${pair.patient} ${pair.name}"
    cpus { need.threads }
    memory { mib(need, task.attempt) }
    time { "${need.minutes * task.attempt} min" }
    containerOptions { mounts(pair) }

    input:
    tuple val(pair), val(need), val(number), val(after)

    output:
    tuple val(pair), path('receipt')

    script:
    step(pair, 'assemble', number, task.cpus)
}

process PLACE {
    tag "${pair.patient} ${pair.name}"
    cpus { need.threads }
    memory { mib(need, task.attempt) }
    time { "${need.minutes * task.attempt} min" }
    containerOptions { mounts(pair) }

    input:
    tuple val(pair), val(need), val(number), val(after)

    output:
    tuple val(pair), path('receipt')

    script:
    step(pair, 'place', number, task.cpus)
}

process RECRUIT {
    tag "${pair.patient} ${pair.name} ${number}"
    cpus { need.threads }
    memory { mib(need, task.attempt) }
    time { "${need.minutes * task.attempt} min" }
    containerOptions { mounts(pair) }

    input:
    tuple val(pair), val(need), val(number), val(after)

    output:
    tuple val(pair), path('receipt')

    script:
    step(pair, 'recruit', number, task.cpus)
}

process FINISH {
    tag "${pair.patient} ${pair.name}"
    errorStrategy { on_error(task.exitStatus) }
    cpus { need.threads }
    memory { mib(need, task.attempt) }
    time { "${need.minutes * task.attempt} min" }
    containerOptions { mounts(pair) }
    publishDir { "${params.outdir}/${pair.patient}/${pair.name}" }, mode: 'copy', saveAs: { it - ~/^results\// }

    input:
    tuple val(pair), val(need), val(number), val(after)

    output:
    tuple val(pair), path('results/*'), emit: files
    path 'results/*_mqc.json', emit: multiqc

    script:
    def maf = pair.options.reference ? '--maf results/somatic.maf' : ''
    def signatures = pair.signatures ? "--signatures ${quoted(pair.signatures)}" : ''
    step(pair, 'finish', number, task.cpus, "-o results ${maf} ${signatures} ${warning_rule()}")
}

process MULTIQC {
    publishDir { "${params.outdir}/multiqc" }, mode: 'copy'

    input:
    path sections, stageAs: 'pair?/*'

    output:
    path 'multiqc_report.html', optional: true

    script:
    """
    if command -v ${quoted(params.multiqc)} >/dev/null; then
      ${quoted(params.multiqc)} . --filename multiqc_report.html
    else
      echo ${quoted(params.multiqc + ' is not installed: there is no common report')} >&2
    fi
    """
}

// The programs of this run, in the form of nf-core's versions.yml.
process VERSIONS {
    publishDir { "${params.outdir}/pipeline_info" }, mode: 'copy'

    output:
    path 'versions.yml'

    script:
    """
    {
      echo "FINISH:"
      echo "    genuma: \$(${quoted(params.genuma)} --version | sed 's/^genuma //')"
      if command -v ${quoted(params.multiqc)} >/dev/null; then
        echo "MULTIQC:"
        echo "    multiqc: \$(${quoted(params.multiqc)} --version | sed 's/.*version //')"
      fi
      echo "Workflow:"
      echo "    ${workflow.manifest.name}: ${workflow.manifest.version}"
      echo "    Nextflow: ${workflow.nextflow.version}"
    } > versions.yml
    """
}

process INDEX {
    tag "${reference.name}"

    input:
    path reference

    output:
    path "${reference}*"

    script:
    """
    ${quoted(params.genuma)} index ${quoted(reference)}
    """
}

process ALIGN {
    tag "${sample.patient} ${sample.sample}"
    publishDir { "${params.outdir}/${sample.patient}/aligned" }, mode: 'copy'

    input:
    tuple val(sample), path(reads, stageAs: 'reads?/*')
    path index
    val reference

    output:
    tuple val(sample), path("${sample.sample}.bam"), path("${sample.sample}.bam.bai")

    script:
    def groups = sample.lanes.collect { "-R " + quoted("ID:${sample.sample}.${it}\\tSM:${sample.sample}\\tLB:${sample.sample}${params.platform ? "\\tPL:${params.platform}" : ''}") }
    """
    ${quoted(params.genuma)} align ${quoted(reference)} ${reads} ${groups.join(' ')} --threads ${task.cpus} ${params.align_args} -o ${sample.sample}.bam
    """
}

/* ---- the graph ---- */

// The tasks of a step: one for each number that the plan says.
def tasks(channel, name) {
    channel.flatMap { pair, after ->
        def need = pair.steps[name]
        (1..need.tasks).collect { [pair, need, it, after] }
    }
}

// Waits for all receipts of a step. What goes on is where they lie: a task that ran again has another place, and whatever
// comes after it is then not taken from the cache.
def all(channel, name) {
    channel
        .map { pair, receipt -> [groupKey(pair.id, pair.steps[name].tasks), pair, receipt.toString()] }
        .groupTuple()
        .map { key, pairs, receipts -> [pairs[0], digest(receipts.sort(false))] }
}

workflow {
    if (params.help) {
        log.info(usage())
        exit 0
    }
    if (!params.input) error("--input is missing\n${usage()}")
    [shards: params.shards, partitions: numPartitions()].each { name, value ->
        if (value != null && !(value.toString() ==~ /[1-9][0-9]{0,3}/)) error("--${name} is '${value}': a number from 1 to 9999")
    }
    if (params.strict && params.force) error('--strict and --force exclude each other')
    if (params.align && !params.reference) error('--align wants --reference')
    if (workflow.workDir.toString() =~ /[\s'"\\$`]/) error("the work directory ${workflow.workDir} has blanks or quotes in its name: say another with -work-dir")
    def samples = samples_of(file(params.input))

    PLAN(Channel.fromList(pairs_of(samples)))
    // The plan goes along with the pair. A run in a bucket has its plan there, and this process can read it.
    planned = PLAN.out.map { pair, receipt ->
        def json = receipt.size() ? receipt : file("${pair.run}/plan.json")
        if (!json.exists()) error("the run ${pair.run} has gone since it was planned: start once more without -resume")
        def steps = new JsonSlurper().parseText(json.text).steps.collectEntries { [it.name, [tasks: it.tasks, threads: it.threads, memory_mb: it.memory_mb, minutes: it.minutes]] }
        [pair + [steps: steps], digest([receipt.toString()])]
    }
    SCATTER(tasks(planned, 'scatter'))
    COUNT(tasks(all(SCATTER.out, 'scatter'), 'count'))
    PICK(tasks(all(COUNT.out, 'count'), 'pick'))
    LABEL(tasks(all(PICK.out, 'pick'), 'label'))
    ASSEMBLE(tasks(all(LABEL.out, 'label'), 'assemble'))
    PLACE(tasks(all(ASSEMBLE.out, 'assemble'), 'place'))
    RECRUIT(tasks(all(PLACE.out, 'place'), 'recruit'))
    FINISH(tasks(all(RECRUIT.out, 'recruit'), 'finish'))
    MULTIQC(FINISH.out.multiqc.collect())
    VERSIONS()

    if (params.align) {
        def reference = file(params.reference)
        INDEX(reference)
        ALIGN(
            Channel.fromList(samples.findAll { it.kind == 'fastq' }).map { [[patient: it.patient, sample: it.sample, lanes: it.lanes*.lane.sort(false)], files_of(it)] },
            INDEX.out,
            reference.name,
        )
    }
}
