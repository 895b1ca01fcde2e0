# make help lists what there is. Tools are built from the versions in tools/go.mod.
.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

.PHONY: demo
demo: ## watch calls follow the weights, survive a lost priority and one that answers errors, and come back
	go run ./cmd/understudy demo

.PHONY: test
test: ## all tests of all modules
	go test work

.PHONY: browser
browser: ## the pages in a headless Chromium
	bash .ci/browser

.PHONY: screenshots
screenshots: ## take the screenshots in docs again (needs Chromium)
	go run ./bench/screenshots

.PHONY: race
race: ## all tests under the race detector
	bash .ci/race

.PHONY: fuzz
fuzz: ## each fuzz target for FUZZTIME: so many inputs (40000x), or a time (10s)
	bash .ci/fuzz $(or $(FUZZTIME),40000x)

.PHONY: upstream
upstream: ## grpc-go's own tests of pick_first and weighted_target, against ours
	bash .ci/upstream

.PHONY: sim
sim: ## the simulator: new seeds until it is stopped, or SEED= alone, or DAYS= of a day each; PAIRS=all or kill+hang
	SIM_DAYS=$(DAYS) SIM_PAIRS=$(PAIRS) bash .ci/sim $(SEED)

.PHONY: lint
lint: ## vet and golangci-lint over all modules
	go vet work
	bash .ci/lint

.PHONY: count
count: ## how many lines of code each room has; ROOMS="internal/join discovery" for some
	GOWORK=off go -C tools run ./count $(ROOMS)

.PHONY: bench
bench: ## picks, bring-up and updates of the generated tree; its scheduler beside textbook EDF and gRPC-Go's policies; five minutes
	go run ./bench/edf

.PHONY: bench-updates
bench-updates: ## bring-up and updates of 1,000 to 10,000 endpoints, beside gRPC-Go's round_robin
	go test -run '^$$' -bench 'BringUp|Update' -benchtime 1x ./weightedroundrobin

.PHONY: bench-failover
bench-failover: ## 1,000 channels that lose a tier of backends, until all have answers again, beside gRPC-Go's policies; some minutes
	go run ./bench/failover

.PHONY: bench-tiers
bench-tiers: ## tiers that are killed, hang or answer errors: ours beside grpc-go's policies and grpc-gcp-go; three minutes
	GOWORK=off go -C interop/peers run .

.PHONY: fleet
fleet: ## how calls of a fleet of clients spread when it starts; writes docs/fleet
	go run ./bench/fleet

.PHONY: fleet-tiers
fleet-tiers: ## the same for a fleet of CLIENTS (4000) that loses a tier, in the simulator; a few minutes
	go test ./internal/testing/sim -run TestFleet -count=1 -timeout 0 -sim.fleet $(CURDIR)/bench/fleet/tiers.csv -sim.clients $(or $(CLIENTS),4000)
	go run ./bench/fleet

.PHONY: attack
attack: ## understudy serve under each attack for a minute, while a good client is timed; ten minutes
	go test ./cmd/understudy -run TestAttacks -count=1 -v -timeout 0 -attack.for 1m

.PHONY: release
release: ## install the command as a stranger does, from modules that a tag would make
	bash .ci/release

.PHONY: floor
floor: ## the root module at the lowest versions it asks for and at the newest, with both supported Go releases; some minutes
	bash .ci/floor

.PHONY: tidy
tidy: ## go mod tidy for all modules
	GOWORK=off go mod tidy
	GOWORK=off go -C tools mod tidy
	bash .ci/tidy cmd/understudy ../..
	bash .ci/tidy interop ..
	bash .ci/tidy bench ..
	GOWORK=off go -C interop/peers mod tidy
	GOWORK=off go -C interop/kubernetes/apiserver mod tidy

.PHONY: ci
ci: ## all that continuous integration runs
	bash .ci/run

.PHONY: kubernetes
kubernetes: ## discovery/kubernetes against a real API server, which is built first: six minutes of CPU, once
	bash .ci/kubernetes

.PHONY: interop-node
interop-node: ## gRPC for Node.js against understudy serve (needs Node.js and npm)
	npm --prefix interop/grpcjs ci --no-audit --no-fund
	go test -tags grpcjs -run Node ./interop

.PHONY: mutants
mutants: ## change one small place at a time and run what should notice: N=100 of each room; ROOMS="internal/core/priority"
	GOWORK=off go -C tools run ./mutants -n $(or $(N),100) -seed $(or $(SEED),1) $(ROOMS)

.PHONY: reference
reference: ## write docs/reference/commands.md from the help texts
	go test ./cmd/understudy -run TestTheReferenceOfCommands -count=1 -reference

.PHONY: vulnerabilities
vulnerabilities: ## known vulnerabilities in what the modules call (govulncheck), where its database can be reached
	bash .ci/vulnerabilities
