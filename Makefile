# "make help" lists the targets. Tools are built from the versions in test/tools/go.mod.
.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

.PHONY: demo
demo: ## show how calls follow weights, survive a lost or failing priority, and return
	go run ./cmd/understudy demo

.PHONY: test
test: ## run all tests of all modules
	GOGC=400 go test -p 4 -vet=off ./cmd/understudy ./test/interop work

.PHONY: browser
browser: ## test the pages in a headless Chromium
	bash .ci/browser

.PHONY: screenshots
screenshots: ## retake the screenshots in docs (needs Chromium)
	go run ./test/bench/screenshots

.PHONY: race
race: ## run all tests, except those of the cores and internal/arch, under the race detector
	bash .ci/race --all

.PHONY: fuzz
fuzz: ## run each fuzz target for FUZZTIME: a number of inputs (40000x) or a time (10s)
	bash .ci/fuzz $(or $(FUZZTIME),40000x)

.PHONY: upstream
upstream: ## run grpc-go's own tests of pick_first, weighted_target and GOAWAY against our policies, and of least_request and ring_hash below our tree
	bash .ci/upstream

.PHONY: sim
sim: ## run the simulator with new seeds until it is stopped; SEED= for one seed, DAYS= for worlds of a day, PAIRS=all or kill+hang for pairs of faults
	SIM_DAYS=$(DAYS) SIM_PAIRS=$(PAIRS) bash .ci/sim $(SEED)

.PHONY: torture
torture: ## test channels of real processes under faults of the system for FOR (10m), new seeds; SEED= for one seed, with FOR= from there on (Linux)
	TORTURE_FOR=$(FOR) bash .ci/torture $(SEED)

.PHONY: breaks
breaks: ## break the code with each patch of internal/testing/sim/breaks, which the simulator must find; BREAKS="standbys status" for some (ten minutes)
	bash .ci/breaks $(BREAKS)

.PHONY: lint
lint: ## run go vet and golangci-lint on all modules
	go vet work
	bash .ci/lint

.PHONY: count
count: ## count the lines of code in each package directory; PACKAGES="internal/channel/join discovery" for some of them
	GOWORK=off go -C test/tools run ./count $(PACKAGES)

.PHONY: bench
bench: ## benchmark picks of the policy tree, and compare its scheduler with textbook EDF and gRPC-Go's policies (five minutes)
	go run ./test/bench/edf

.PHONY: bench-updates
bench-updates: ## benchmark bring-up and updates of 1,000 to 10,000 endpoints, compared with gRPC-Go's round_robin, and answers of sources
	go test -run '^$$' -bench 'BringUp|Update' -benchtime 1x ./policy/weightedroundrobin
	go test -run '^$$' -bench Answer -benchtime 20x -cpu 1 ./internal/channel

.PHONY: bench-failover
bench-failover: ## measure how long 1,000 channels that lose a priority go without answers, compared with gRPC-Go's policies (some minutes)
	go run ./test/bench/failover

.PHONY: timed
timed: ## check how many calls each fault loses, as docs/explanation/what-starts-a-failover.md says (a minute on a quiet Linux machine)
	go test ./internal/e2e -run 'TestFailoverCauses|TestFiveFailuresEjectEndpoint' -count=1 -v -timed

.PHONY: experiments
experiments: ## draw the experiments of docs/experiments.md again
	go test ./internal/rehearse -run TestExperiments -count=1 -draw

.PHONY: worlds
worlds: ## run the model of overload in all worlds, with three seeds and rescaled, and the library in some (five minutes)
	go test ./internal/testing/overload -all -count=1 -timeout 1h

.PHONY: league
league: ## compare eight clients, ours and others, under twenty faults and write docs/league.md (twenty minutes on a quiet Linux machine); CONTINUE=1 measures only what is missing
	GOWORK=off go -C test/peers run . $(if $(CONTINUE),-continue)

.PHONY: fleet
fleet: ## simulate how the first calls of a fleet of clients are distributed, and write docs/fleet
	go run ./test/bench/fleet

.PHONY: goodput
goodput: ## record what ours, round_robin and pick_first answer of rising loads, and draw docs/fleet/goodput.svg (four minutes)
	go test ./internal/testing/overload -run TestGoodput -count=1 -timeout 0 -goodput $(CURDIR)/test/bench/fleet/goodput.csv
	go run ./test/bench/fleet

.PHONY: tail
tail: ## record how long calls take with each endpoint policy when a backend is slow, and write docs/fleet/tail.md (half an hour)
	go test ./internal/testing/overload -run 'TestTail$$' -count=1 -timeout 0 -tail $(CURDIR)/test/bench/fleet/tail.csv
	go run ./test/bench/fleet

.PHONY: attack
attack: ## attack understudy serve in each way for a minute, and time a normal client meanwhile (ten minutes)
	go test ./cmd/understudy -run TestAttacks -count=1 -v -timeout 0 -attack.for 1m

.PHONY: release
release: ## make the tags of the next version in a scratch copy, and prove that go install and go get work from them
	bash .ci/release

.PHONY: docs
docs: ## follow the pages of docs literally, or PAGES="docs/howto/get-started.md"
	bash .ci/docs -slow $(PAGES)

.PHONY: tag
tag: ## do the same for VERSION=v0.1.0, and fetch the commit and the tags into this repository; pushes nothing
	bash .ci/release --tag $(VERSION)

.PHONY: reproducible
reproducible: ## build the command twice, in two folders and with empty caches, and compare the bytes (minutes)
	bash .ci/reproducible --again

.PHONY: platforms
platforms: ## build the command for each platform
	bash .ci/platforms

.PHONY: grpc
grpc: ## test the library with each minor release of grpc-go, from the lowest to the newest (minutes)
	bash .ci/grpc

.PHONY: licences
licences: ## list the licences of all dependencies again
	GOWORK=off go -C test/tools run ./licences

.PHONY: packages
packages: ## draw the picture in CONTRIBUTING.md again: the groups of packages, and which imports which
	GOWORK=off go -C test/tools run ./packages

.PHONY: image
image: ## build the container image, or, without a container builder, run its root file system
	bash .ci/image

.PHONY: floor
floor: ## test the root module at its lowest and newest versions, with both supported Go releases (some minutes)
	bash .ci/floor

.PHONY: tidy
tidy: ## run go mod tidy in all modules
	GOWORK=off go mod tidy
	GOWORK=off go -C test/tools mod tidy
	bash .ci/tidy cmd/understudy ../..
	bash .ci/tidy test/interop ../..
	bash .ci/tidy test/bench ../..
	GOWORK=off go -C test/peers mod tidy
	GOWORK=off go -C test/apiserver mod tidy

.PHONY: ci
ci: ## run the gate, as CI does for each change
	bash .ci/run

.PHONY: nightly
nightly: ## run what a day may pass without, a line for each step; STEPS="floor race" for some (about an hour and a half)
	bash .ci/nightly $(STEPS)

.PHONY: kubernetes
kubernetes: ## test discovery/kubernetes against a real API server, which is built once (six minutes of CPU)
	bash .ci/kubernetes

.PHONY: interop-node
interop-node: ## test gRPC for Node.js against understudy serve (needs Node.js and npm)
	npm --prefix test/interop/grpcjs ci --no-audit --no-fund
	go test -tags grpcjs -run Node ./test/interop

.PHONY: mutants
mutants: ## make small changes to the code and check that the tests notice: N=100 per directory; PACKAGES="internal/core/priority"
	GOWORK=off go -C test/tools run ./mutants -n $(or $(N),100) -seed $(or $(SEED),1) $(PACKAGES)

.PHONY: reference
reference: ## write docs/reference/commands.md from the help texts, and docs/howto/troubleshooting.md from internal/page/messages.txt
	go test ./cmd/understudy -run TestCommandReference -count=1 -reference
	go test ./internal/page -run TestTroubleshootingPage -count=1 -reference

.PHONY: vulnerabilities
vulnerabilities: ## known vulnerabilities in what the modules call (govulncheck), where its database can be reached
	bash .ci/vulnerabilities
