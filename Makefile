# Thin on purpose: each target installs what is missing (Debian, Ubuntu) and hands over to cargo or a script.
.DEFAULT_GOAL := help
.PHONY: help build demo test lint bench-call bench-parts bench-identity bench-estimates bench-purity bench-align-callers bench-depths bench-assays bench-assay-peers bench-sv bench-beside-indels bench-xenograft bench-duplications bench-annotation bench-rare-alleles bench-align bench-align-results bench-align-scaling bench-run bench-advise bench-farm bench-probe bench-flash bench-count bench-table bench-gpu bench-card fpga-sim docs dist dist-again fuzz fuzz-faults

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 22

build: ## build the release binary, target/release/genuma
	@scripts/setup.sh build
	cargo build --release --locked
	@scripts/binary-size.sh

demo: ## simulate a small tumour and normal pair, call it, score it
	@scripts/setup.sh build
	@scripts/demo.sh

# Builds of one run need no data for the next one. Some tests wait for clusters and virtual machines: one thread more
# than there are CPUs keeps these busy.
test lint: export CARGO_INCREMENTAL ?= 0
test: export RUST_TEST_THREADS ?= $(shell expr $$(nproc) + 1)

test: lint ## lint, then run every test
	@scripts/setup.sh test
	@scripts/test-peers.sh
	cargo test --workspace --locked --no-fail-fast

lint: ## check format, lints, features, language, documented constants, the picture of the crates, packaging and, with cargo-deny, the crates we build from
	@scripts/setup.sh build lint
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	@scripts/features.sh
	@scripts/supply.sh
	@scripts/plain-language.sh
	@scripts/float-constants.sh
	@scripts/model-tables.sh --check
	@scripts/align-tables.py --self-test
	@scripts/align-tables.py --check
	@scripts/guide-words.py
	@scripts/io-errors.py --self-test
	@scripts/io-errors.py
	@scripts/architecture.py --check
	@scripts/file-lengths.sh
	cargo package --workspace --no-verify --allow-dirty --locked --quiet

fpga-sim: ## the simulated FPGA of the tests, in target/fpga; ARGS=31 for one k
	@scripts/setup.sh fpga
	@scripts/fpga.sh sim $(ARGS)

docs: ## the documentation as a book with search, in target/book
	@scripts/setup.sh build docs
	@scripts/docs.sh

dist: ## static binaries for x86-64 and arm64, each as archive, Debian package and image, in target/dist/out; ARGS=x86_64 for one
	@scripts/setup.sh build dist
	@scripts/dist.sh $(ARGS)

dist-again: ## make them once more from another folder, and compare the bytes
	@scripts/setup.sh build dist
	@scripts/dist/again.sh $(ARGS)

fuzz-faults: ## let genuma's system calls fail one by one and damage its files, for an hour; ARGS="--minutes 5 --case call" for less
	@scripts/setup.sh build
	@scripts/fuzz-faults.sh $(ARGS)

fuzz: ## feed every parser what it does not expect, each for a minute; ARGS="--seconds 600 fastq" for more of one
	@scripts/setup.sh build
	@scripts/fuzz.sh $(ARGS)

bench-call: ## time and score `genuma call` beside bwa, GATK Mutect2 and Delly
	@scripts/setup.sh build bench
	@bench/call.sh $(ARGS)

bench-parts: ## what a call in parts costs beside one process; ARGS="--genome-length 100000000 --rounds 2" for more
	@scripts/setup.sh build test bench
	@bench/parts.sh $(ARGS)

bench-identity: ## errors of the identity test on shallow samples of one or two people; ARGS="--people 28 --reads 6" for 1008 pairs of each relation
	@scripts/setup.sh build
	cargo build --release --locked --package genuma
	cargo build --release --locked --package genuma-pair --example identity
	@bench/identity.sh $(ARGS)

bench-purity: ## compare purity and copy numbers of `genuma check` with simulated truth; ARGS="--seeds 10 --depths 100/30" for more
	@scripts/setup.sh build
	cargo build --release --locked
	@bench/purity.sh $(ARGS)

bench-estimates: ## compare estimates of tumour in normal with simulated truth; ARGS="--of repeats" for unstable tandem repeats
	@scripts/setup.sh build
	cargo build --release --locked
	@bench/estimates.sh $(ARGS)

bench-align-callers: ## score Mutect2 and Delly on alignments of `genuma align` and of bwa mem; ARGS="--genome FASTA" for real sequence as well
	@scripts/setup.sh build bench
	@bench/align_callers.sh $(ARGS)

bench-rare-alleles: ## recall of alleles of 0.5 to 2 % in deep libraries, with reads of another simulator; ARGS="--genome FASTA --seeds 1,2" for real sequence
	@scripts/setup.sh build
	cargo build --release --locked --package genuma
	@bench/rare_alleles.py $(ARGS)

bench-assays: ## score `genuma call` on one simulated set of each assay; ARGS="--sets w30,n5 --seed-offset 1000" for sets of other seeds
	@scripts/setup.sh build
	cargo build --release --locked --package genuma
	@bench/assays.py $(ARGS)

bench-assay-peers: ## score Mutect2 and freebayes on the folders in ARGS, which bench-assays kept with --data
	@scripts/setup.sh bench
	@bench/peers.sh >&2
	@bench/assay_peers.py $(ARGS)

bench-sv: ## score genuma and Delly with Truvari on simulated structural variants; ARGS="--seeds 1,2 --types" for other seeds and a row for each type
	@scripts/setup.sh build test bench
	@scripts/test-peers.sh
	cargo build --release --locked --package genuma
	@bench/structural_variants.py $(ARGS)

bench-beside-indels: ## score genuma, Mutect2 and freebayes on somatic changes beside germline indels; ARGS="--seeds 1,2 --genome FASTA" for other sets
	@scripts/setup.sh build bench
	@bench/peers.sh >&2
	cargo build --release --locked --package genuma
	@bench/beside_germline_indels.py $(ARGS)

bench-xenograft: ## false calls where a part of the tumour's reads is of another species; ARGS="--rates 0.02,0.15 --host-share 0.05" for other sets
	@scripts/setup.sh build bench
	cargo build --release --locked --package genuma
	@bench/xenograft.py $(ARGS)

bench-duplications: ## recall of tandem duplications spiked into the real reads of the folder in ARGS; ARGS="--fractions 0.2 FOLDER" for other allele fractions
	@scripts/setup.sh build bench
	cargo build --release --locked --package genuma
	@bench/spiked_duplications.py $(ARGS)

bench-annotation: ## measure what naming the genes costs a call; ARGS="--callgrind --bases 550000 --transcripts 2000" for instructions
	@scripts/setup.sh build
	cargo build --release --locked --package genuma
	@bench/annotation.py $(ARGS)

bench-depths: ## score `genuma call` over depths, purities and kinds of libraries; ARGS="--peers yes" for Mutect2 and Delly beside it
	@scripts/setup.sh build
	@bench/depths.sh $(ARGS)

bench-align: ## time and score `genuma align` beside minibwa, strobealign and samtools, and its stages beside their floors; ARGS="--only others" for more
	@scripts/setup.sh build bench
	@bench/align.sh $(ARGS)

bench-align-results: ## measure five aligners on five kinds of reads, write bench/results/align/VERSION-MACHINE.tsv and redraw its tables; ARGS="--pairs 1000" for fewer
	@scripts/setup.sh build bench
	@bench/align_results.py $(ARGS)
	@scripts/align-tables.py

bench-align-scaling: ## what the farm costs `genuma align` at 16 workers, and memory over 10⁶ pieces
	@scripts/setup.sh build
	cargo bench -p genuma-align --locked --bench scaling

bench-run: ## time `genuma run` with 1, 2 and 4 instances beside the plain commands of five aligners
	@scripts/setup.sh build bench
	@bench/run.sh $(ARGS)

bench-advise: ## score the advisor on the published run times of lenis2017
	@scripts/setup.sh build
	@bench/advise.sh $(ARGS)

bench-farm: ## time the farm beside crossbeam-channel, rayon and a locked queue
	@scripts/setup.sh build
	cargo bench -p genuma-farm --locked --bench peers --bench many

bench-probe: ## hold the probe's triad and chase beside plain C
	@scripts/setup.sh build
	@bench/probe.sh $(ARGS)

bench-count: ## time counting k-mers beside KMC, and beside the floor of reading and writing
	@scripts/setup.sh build test bench
	@bench/count.sh $(ARGS)

bench-card: ## measure align, count and call with 1, 2, 4 ... threads, and a GPU if there is one, in 8 minutes on 16 cores
	@scripts/setup.sh build
	@bench/card.sh $(ARGS)

bench-gpu: ## time counting on a device beside all threads, and a whole call, with joules where they can be read; ARGS="--device 1" for another
	@scripts/setup.sh build
	@bench/gpu.sh $(ARGS)

bench-table: ## time combining tables of k-mers beside cat and kmc_tools
	@scripts/setup.sh build test bench
	@bench/table.sh $(ARGS)

bench-flash: ## time lookups of a table on flash beside fio and RocksDB
	@scripts/setup.sh build bench
	@bench/flash.sh $(ARGS)
