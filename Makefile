# Thorp. `make` alone lists what there is.

CARGO ?= cargo
SEEDS ?= 20000
FIRST ?= 1
BUG_SEEDS ?= 10000
JOBS ?= $(shell nproc)
FUZZ_SECONDS ?= 600
ROUNDS ?= 50
SHARD ?= 1/1
BENCHES ?= cached_read cached_pages_memory directory_memory village log_write
BROKEN ?= VoteNotLocked InvalidationLost VersionsIgnored EvidenceRewritten ReadsNotReported \
	DroppedNotInvalidated SentBeforeEntered OwnCopyOnly LabelIgnored WatermarkNotAwaited WatermarkPassesVote
MODEL ?=
TRANSACTIONS ?= 90000
BROKEN_TRANSACTIONS ?= 3000
WEAK ?= 2
# Who has to reject it: the bug.
BROKEN_BESIDE ?= adya:UpdateTakenTwice appends:UpdateTakenTwice snapshots:NewerThanStanding
OPERATIONS_MIN ?= 1000000
READS ?= 20000
SECONDS ?= 600
EDITS ?= 1000
PEER_SECONDS ?= 30
DEMO_SECONDS ?= 20
RACE_REQUESTS ?= 100000
RACE_READS ?= 10000000
RACE_FAULTS ?= 200
BROKEN_READS ?= 100000
UNBOUND ?= AnswerNotWithheld WritersNotAsked MissedNotCounted SeenWhenSent HeadsNotAwaited ReadLeaseBesideWriter
ANSWERS ?= 100000
WRONG_RULES ?= WriteWithoutRead MembersIgnored ListForWriters
PYTHON ?=
DEMO ?=
LAB ?= cold --members 3 --repeats 1
OCEAN ?=
PAGES ?= 1000000
FAILOVER ?=
BUILT = $(or $(CARGO_TARGET_DIR),target)
SKIPPED = $(abspath $(BUILT))/skipped.txt

.PHONY: help build demo demo-rights demo-consistency test lint floors tla tla-deep unit models-beside kill trace histories identities bounds wiki wiki-edits wagtail-edits web-demo web-home-race web-peers rights-elsewhere sim logs mixed anomalies hostile same back campaign bugs web-race web-sim web-sim-bugs fuzz http-cache-tests tls bench large failover lab scale ocean planning clean

help: ## This list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

build: ## The thorp command, optimised
	$(CARGO) build --release -p thorp-cli

demo: build ## A village at work on this machine, checked: make demo [MODEL=file.ifc] [DEMO=--quick]
	@python="$(PYTHON)"; [ -n "$$python" ] || python=$$(scripts/ifc_python.sh) || exit 1; \
	exec $(CARGO) run -q --release -p thorp-cli -- demo --python "$$python" $(if $(MODEL),--model "$(MODEL)") $(DEMO)

demo-rights: build ## Who is refused what, and by whom: rights on real processes, checked
	exec $(CARGO) run -q --release -p thorp-cli -- demo --rights

demo-consistency: build ## A site is cut off and goes on sharing; hard reads elsewhere: real processes, checked
	exec $(CARGO) run -q --release -p thorp-cli -- demo --consistency

test: lint floors ## Everything that CI runs
	@$(MAKE) --no-print-directory models-beside & models=$$!; \
	$(MAKE) --no-print-directory unit; unit=$$?; \
	wait $$models && exit $$unit
	@if [ -s "$(SKIPPED)" ]; then echo "These tests skipped. CONTRIBUTING.md says why, under A fork."; cat "$(SKIPPED)"; fi

lint: ## Format, and lints as errors
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	$(CARGO) clippy --workspace --no-default-features --all-targets -- -D warnings
	cd spec && $(CARGO) fmt --check && $(CARGO) clippy --all-targets -- -D warnings
	cd lab && $(CARGO) fmt --all --check && $(CARGO) clippy -p thorp-lab --all-targets -- -D warnings
	cd fuzz && $(CARGO) fmt --check && $(CARGO) clippy --no-default-features -- -D warnings
	cd rights-elsewhere && $(CARGO) fmt --check

floors: ## The house stands: floors, files, modules and citations
	$(CARGO) run -q -p thorp-floors

tla: ## The protocol's TLA+ models, and the counterexample to each guard that is switched off
	cd spec && $(CARGO) test -q -- --nocapture

# The tests wait a lot. The models take the processors only while these do not want them.
models-beside:
	@mkdir -p $(BUILT); said=$(BUILT)/models.txt; \
	if nice -n 10 $(MAKE) --no-print-directory tla > $$said 2>&1; then \
		echo "The models hold: $$said"; else cat $$said; exit 1; fi

tla-deep: ## The models for larger villages (many minutes)
	cd spec && $(CARGO) test -q -- --nocapture --test-threads=1 --ignored

unit: export THORP_SKIPPED = $(SKIPPED)
# Many tests wait for processes: more of them run than there are processors.
unit: export RUST_TEST_THREADS ?= 3
unit: ## Unit, story, simulation and process tests
	@rm -f "$(SKIPPED)"
	scripts/setup_tests.sh
	$(CARGO) test --workspace --no-fail-fast
	cd lab && $(CARGO) test -q -p thorp-lab

kill: ## Homes are killed under load fifty times, one and then two: make kill ROUNDS=50
	THORP_KILL_ROUNDS=$(ROUNDS) $(CARGO) test -p thorp-cli --test kill_home --test two_homes -- --nocapture

trace: ## A trace of system calls: every acknowledgement comes after a sync (needs strace)
	$(CARGO) test -p thorp-cli --test trace_syncs -- --nocapture

histories: ## What real processes did under faults, judged by another's checker; broken builds are rejected: make histories TRANSACTIONS=90000
	$(CARGO) build --release -p thorp-cli -p thorp-histories
	$(CARGO) build --release -p thorp-cli -p thorp-histories --features thorp-cli/planted-bugs,thorp-histories/planted-bugs \
		--target-dir $(BUILT)/planted --config 'profile.release.lto="off"'
	@rm -f $(BUILT)/histories.jsonl; \
	run="$(BUILT)/release/thorp-histories run --thorp $(BUILT)/release/thorp --tally $(BUILT)/histories.jsonl"; \
	for workload in registers "lists --weak $(WEAK)"; do for strict in "" --strict; do \
		$$run --transactions $(TRANSACTIONS) --workload $$workload $$strict || exit 1; \
	done; done; \
	run="$(BUILT)/planted/release/thorp-histories run --thorp $(BUILT)/planted/release/thorp --tally $(BUILT)/histories.jsonl"; \
	for bug in $(BROKEN); do \
		$$run --workload lists --transactions $(BROKEN_TRANSACTIONS) --bug $$bug --out $(BUILT)/planted/$$bug.jsonl || exit 1; \
	done; \
	for bug in $(BROKEN_BESIDE); do \
		$$run --workload lists --weak $(WEAK) --transactions $(BROKEN_TRANSACTIONS) --by $${bug%:*} --bug $${bug#*:} \
			--out $(BUILT)/planted/$${bug#*:}-beside.jsonl || exit 1; \
	done
	@$(BUILT)/release/thorp-histories sum $(BUILT)/histories.jsonl --operations-min $(OPERATIONS_MIN)

identities: ## Certificates change under load, with failovers in between; no edge is lost but the revoked one's: make identities TRANSACTIONS=20000
	$(CARGO) build --release -p thorp-cli -p thorp-histories
	@for strict in "" --strict; do \
		$(BUILT)/release/thorp-histories run --thorp $(BUILT)/release/thorp --identities --workload lists \
			--transactions $(TRANSACTIONS) $$strict || exit 1; \
	done

bounds: ## Hard bounds on real processes with a home 40 ms away, counted by what writers were answered; broken builds are noticed: make bounds READS=1000000
	$(CARGO) build --release -p thorp-bench --bin bounds
	$(CARGO) build --release -p thorp-bench --bin bounds --features planted-bugs \
		--target-dir $(BUILT)/planted --config 'profile.release.lto="off"'
	$(BUILT)/release/bounds --reads $(READS)
	@for bug in $(UNBOUND); do \
		THORP_PLANTED_BUG=$$bug $(BUILT)/planted/release/bounds --reads $(BROKEN_READS) || exit 1; \
	done

wiki: ## MediaWiki on PostgreSQL behind thorp web: no answer is older than what was acknowledged (Debian 12): make wiki SECONDS=600
	$(CARGO) build --release -p thorp-cli
	$(CARGO) build --release -p thorp-bench --bin wiki
	BUILT=$(BUILT) scripts/wiki.sh $(BUILT)/release/thorp $(BUILT)/release/wiki --seconds $(SECONDS)

wiki-edits: ## Random edits of MediaWiki behind thorp web: after each one, 40 pages are compared with the origin (Debian 12): make wiki-edits EDITS=1000
	$(CARGO) build --release -p thorp-cli
	BUILT=$(BUILT) scripts/wiki.sh $(BUILT)/release/thorp scripts/edits/mediawiki.py --edits $(EDITS)
	sed 's/"page:1:{title}", //' crates/web/recipes/mediawiki.toml >$(BUILT)/without-talk.toml
	BUILT=$(BUILT) RECIPE=$(BUILT)/without-talk.toml scripts/wiki.sh $(BUILT)/release/thorp scripts/edits/mediawiki.py \
		--edits 200 --expect-differences

wagtail-edits: ## The same for Wagtail 8 (PyPI): make wagtail-edits EDITS=1000
	$(CARGO) build --release -p thorp-cli
	BUILT=$(BUILT) scripts/wagtail.sh $(BUILT)/release/thorp --edits $(EDITS)
	BUILT=$(BUILT) WITHOUT='"menu:t", ' scripts/wagtail.sh $(BUILT)/release/thorp --edits 200 --expect-differences

web-demo: ## The auction house behind thorp web, and behind a cache with a lifetime of one second: stale answers of both: make web-demo DEMO_SECONDS=20
	$(CARGO) build --release -p thorp-cli
	$(CARGO) build --release -p thorp-examples --bin auction
	$(CARGO) build --release -p thorp-bench --bin web_demo
	$(BUILT)/release/web_demo $(BUILT)/release/thorp $(BUILT)/release/auction --seconds $(DEMO_SECONDS)

web-home-race: ## Homes and proxies are killed under load: no answer is stale; broken builds are noticed: make web-home-race RACE_REQUESTS=100000
	THORP_RACE_REQUESTS=$(RACE_REQUESTS) $(CARGO) test --release -p thorp-cli --test web_home nobody
	@for bug in VoteLeavesEven EvidenceAfterAnswer; do \
		THORP_PLANTED_BUG=$$bug $(CARGO) test --release -p thorp-cli --features planted-bugs --target-dir $(BUILT)/planted \
			--test web_home blind || exit 1; \
	done

web-peers: ## Stale answers of thorp web, Varnish, nginx and Traffic Server, purged after each update (Debian 12): make web-peers PEER_SECONDS=30
	$(CARGO) build --release -p thorp-cli
	BUILT=$(BUILT) scripts/peers.sh $(BUILT)/release/thorp $(PEER_SECONDS)

rights-elsewhere: ## What homes and sites answer about rights, compared with casbin; wrong rules are noticed: make rights-elsewhere ANSWERS=100000
	$(CARGO) build -p thorp-cli
	$(CARGO) build -p thorp-cli --features planted-bugs --target-dir $(BUILT)/planted
	cd rights-elsewhere && $(CARGO) clippy --target-dir $(abspath $(BUILT))/elsewhere -- -D warnings
	cd rights-elsewhere && $(CARGO) build --target-dir $(abspath $(BUILT))/elsewhere
	@run="$(BUILT)/elsewhere/debug/thorp-rights-elsewhere --answers $(ANSWERS)"; \
	$$run --thorp $(BUILT)/debug/thorp || exit 1; \
	for rule in $(WRONG_RULES); do \
		THORP_PLANTED_BUG=$$rule $$run --thorp $(BUILT)/planted/debug/thorp || exit 1; \
	done

sim: ## The simulator: make sim SEEDS=20000 FIRST=1
	$(CARGO) run --profile sim -p thorp-sim -- run --first $(FIRST) --seeds $(SEEDS) --jobs $(JOBS)

logs: ## Villages whose members write by logs, with leases and pulls: make logs SEEDS=2000 FIRST=1
	$(CARGO) run --profile sim -p thorp-sim -- logs --first $(FIRST) --seeds $(SEEDS) --jobs $(JOBS)

mixed: ## Sessions of all presets on the same objects, kept in target/: goes on where it stopped: make mixed SEEDS=20000
	@tree=$$(scripts/simulated_tree.sh) || exit 1; mkdir -p target; \
	$(CARGO) run --profile sim -p thorp-sim -- mixed --first $(FIRST) --seeds $(SEEDS) --jobs $(JOBS) \
		--shard $(SHARD) --tree "$$tree" --keep target/mixed.jsonl

anomalies: ## Which presets exclude which anomalies, and a seed for each of the others: make anomalies SEEDS=10000
	$(CARGO) run --profile sim -p thorp-sim -- anomalies --seeds $(SEEDS) --jobs $(JOBS)

hostile: ## Villages with hostile nodes that stay for long; everybody else goes on: make hostile SEEDS=20000 FIRST=1
	$(CARGO) run --profile sim -p thorp-sim -- hostile --first $(FIRST) --seeds $(SEEDS) --jobs $(JOBS)

same: ## Whether the simulator does on seeds 1 to 2,000 what it did before: for changes that only move code
	$(CARGO) run --profile sim -p thorp-sim -- same --jobs $(JOBS)

back: ## Villages whose homes go back in time (rule R9): make back SEEDS=20000 FIRST=1
	$(CARGO) run --profile sim -p thorp-sim -- back --first $(FIRST) --seeds $(SEEDS) --jobs $(JOBS)

campaign: ## A long one, kept in target/: goes on where it stopped: make campaign SEEDS=100000 SHARD=1/1
	@tree=$$(scripts/simulated_tree.sh) || exit 1; mkdir -p target; \
	$(CARGO) run --profile sim -p thorp-sim -- run --first $(FIRST) --seeds $(SEEDS) --jobs $(JOBS) \
		--shard $(SHARD) --tree "$$tree" --keep target/campaign.jsonl

bugs: ## Every planted bug is caught, and after how many seeds: make bugs BUG_SEEDS=10000
	$(CARGO) run --profile sim -p thorp-sim -- bugs --seeds-max $(BUG_SEEDS) --jobs $(JOBS)

web-race: ## Readers race writers through thorp web with requests as the source, under faults; with a rule switched off the probe finds stale answers: make web-race RACE_READS=10000000 RACE_FAULTS=200
	THORP_RACE_READS=$(RACE_READS) THORP_RACE_FAULTS=$(RACE_FAULTS) \
		$(CARGO) test --profile sim -p thorp-web --features planted-bugs --test web -- race:: --nocapture --test-threads 1

web-sim: ## The web cache from one seed, with followers and faults: make web-sim SEEDS=20000 FIRST=1
	$(CARGO) run --profile sim -p thorp-web-sim -- run --first $(FIRST) --seeds $(SEEDS) --jobs $(JOBS)
	$(CARGO) run --profile sim -p thorp-web-sim -- run --requests --first $(FIRST) --seeds $(SEEDS) --jobs $(JOBS)

web-sim-bugs: ## Each planted bug of the web cache, and the seed that shows it; four only a story shows: make web-sim-bugs BUG_SEEDS=30000
	$(CARGO) run --profile sim -p thorp-web-sim -- bugs --seeds-max $(BUG_SEEDS) --jobs $(JOBS)

fuzz: ## Coverage-guided fuzzing of what comes off the wire (needs cargo-fuzz and a nightly toolchain)
	cd fuzz && $(CARGO) run -q --no-default-features --bin scripts corpus/roles
	cd fuzz && $(CARGO) +nightly fuzz run codec -- -max_total_time=$(FUZZ_SECONDS) -max_len=4096
	cd fuzz && $(CARGO) +nightly fuzz run -s none machines corpus/machines corpus/roles -- -max_total_time=$(FUZZ_SECONDS) -max_len=4096
	cd fuzz && $(CARGO) +nightly fuzz run -s none roles -- -max_total_time=$$((3 * $(FUZZ_SECONDS))) -max_len=4096

http-cache-tests: ## A public suite of tests for HTTP caches, against thorp web on loopback (needs node and npm)
	$(CARGO) build -p thorp-cli
	CARGO_TARGET_DIR=$(abspath $(BUILT)) scripts/http_cache_tests.sh $(BUILT)/debug/thorp

tls: ## A home's port, judged by testssl.sh (needs Debian's package testssl.sh)
	$(CARGO) build -p thorp-cli
	scripts/tls_of_a_home.sh $(BUILT)/debug/thorp

bench: ## What docs/performance.md tells, measured here: one line of JSON for each figure
	$(CARGO) build --release -p thorp-bench
	@for bench in $(BENCHES); do $(CARGO) run -q --release -p thorp-bench --bin $$bench || exit 1; done

failover: ## What failing costs: a site, a member and a home are killed or stopped under load: make failover [FAILOVER="site_killed 5"]
	$(CARGO) run -q --release -p thorp-bench --bin failover -- $(FAILOVER)

large: ## Values of 100 MiB and 1 GiB pass through a site and a home, and the memory of each process is measured
	THORP_LARGE=100,1024 $(CARGO) test --release -p thorp-cli --test large_values memory -- --nocapture

lab: build ## Experiments over real wide-area links (needs root): make lab LAB="cold --members 3 --repeats 1"
	cd lab && $(CARGO) build --release --workspace --target-dir $(abspath $(BUILT))/lab
	$(BUILT)/lab/release/thorp-lab $(LAB) --thorp $(abspath $(BUILT))/release/thorp --out lab-out

scale: ## How a home and its sites grow with members, sites and pages, drawn in lab-out: make scale [PAGES=1000000]
	$(CARGO) build --release -p thorp-bench --bin scale
	cd lab && $(CARGO) build --release --target-dir $(abspath $(BUILT))/lab
	$(BUILT)/lab/release/thorp-lab scale --bench $(abspath $(BUILT))/release/scale --pages $(PAGES) --out lab-out

ocean: ## All experiments over wide-area links that docs/performance.md tells of, in a row: make ocean [OCEAN=--quick]
	@$(MAKE) --no-print-directory lab LAB="ocean $(OCEAN)"

planning: build ## The pages of docs/planning and their charts: what the models make of the papers' parameters
	$(BUILT)/release/thorp plan paper --out docs $(if $(THORP_TEST_DATA),--data "$(THORP_TEST_DATA)")

clean: ## What was built
	$(CARGO) clean
