# What one does with this tree. `make` alone lists it.
#
# Everything works on a fresh Debian 12 with Go, git and make; what else a target
# needs it installs itself and says so (tools/install.sh).

.DEFAULT_GOAL := help
# Only the race detector needs C; the binary shall run wherever it is copied.
export CGO_ENABLED := 0

# The stamp of go build fails in a clone that another user owns; VERSION is ours.
export GOFLAGS += -buildvcs=false
VERSION := $(shell git describe --always --dirty 2>/dev/null || echo unknown)

# ARGS go to the program of a target: make demo ARGS='--hosts 3000'.
ARGS ?=
FUZZTIME ?= 10s # how long each fuzz target runs
TALLY ?= # collects the numbers of several runs for .ci/run
testsum = bin/testsum $(if $(TALLY),-tally $(TALLY) -name $@) --

# servers is what tests are held against, in the words of tools/install.sh.
servers := redis sshd nodeset ansible nft rauc bind knot postgres chromium systemd packages prometheus

.PHONY: help build demo test
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build bin/muster
	go build -ldflags '-X muster/cli.Version=$(VERSION)' -o bin/muster ./cmd/muster

demo: build ## run a big and a small task on a pretended fleet (ARGS='--help' for more)
	bin/muster demo $(ARGS)

# -count=1: the cache of go test does not know which programs are installed. Most tests wait for
# servers and hosts, so four of a package run at a time (cmd/muster: eight). GOGC saves processors.
test: bin/testsum build ## run all tests, also on a real Redis, sshd, nft, named, nodeset, Ansible …
	@tools/install.sh $(servers)
	@cd tools && ../bin/testsum -name tools $(if $(TALLY),-tally $(TALLY)) -- ./...
	@cd tools/browser && ../../bin/testsum -name pages $(if $(TALLY),-tally $(TALLY)) -- -count=1 -short .
	GOGC=400 $(testsum) -count=1 -p 3 -parallel 4 -timeout 20m $(ARGS) ./...

.PHONY: pairs redteam sim chaos mutants vm race test-pages
test-pages: build ## look at every page in Chromium (ARGS='-shots DIR' makes pictures)
	@tools/install.sh chromium redis
	cd tools/browser && go test -count=1 -timeout 45m . $(ARGS)
pairs: ## both members of a group due at once, 1,000 times, judged by the hosts' log
	@tools/install.sh redis
	go test ./cmd/muster -count=1 -timeout 20m -v -run AreNeverDisturbedAtOnce -tries 1000

redteam: ; @tools/install.sh redis && tools/redteam.sh $(ARGS) ## somebody who writes to Redis, or has rights for one customer, attacks a real house

sim: ## masters, hosts and faults in pretended time, many seeds (ARGS='-sim.seeds 50000')
	go test ./internal/sim -count=1 -timeout 0 -v -run TestSim -sim.seeds 5000 $(ARGS)

chaos: ## 10 minutes of faults for real processes, judged by the hosts (ARGS='-chaos.for 3m')
	@tools/install.sh redis sshd
	go test ./internal/chaos -count=1 -timeout 0 -v -run TestChaos -chaos.for 10m $(ARGS)

mutants: ## break the tree on purpose: tests must see each of tools/mutants (ARGS='-only lost')
	@tools/install.sh redis sshd nft rauc
	go run -C tools ./cmd/mutants $(ARGS) ..

vm: ## units, sessions and boots of a real systemd, in a virtual machine
	@tools/install.sh redis vm
	go test ./cmd/muster -count=1 -timeout 60m -v -run TestOnARealSystemd -vm $(ARGS)

race: bin/testsum ## run all tests with the race detector (ARGS=-short for the short ones)
	@tools/install.sh $(servers) gcc
	GORACE=atexit_sleep_ms=20 CGO_ENABLED=1 $(testsum) -race -count=1 -parallel 4 -timeout 40m $(ARGS) ./...

.PHONY: packages release lint fuzz bench drill upgrade clean bin/testsum
packages: ; tools/packages.sh $(ARGS) ## .deb and .rpm for amd64 and arm64, in dist/
release: ; tools/release.sh $(ARGS) ## all of a release in dist/, built twice (ARGS=1.2.0)
lint: ; tools/lint.sh ## gofmt, go vet, staticcheck, go.mod and go.sum
drill: ; tools/drill.sh $(ARGS) ## play docs/RUNBOOK_OPERATOR.md on a real house, and count what the hosts saw
upgrade: ; tools/upgrade.sh $(ARGS) ## this version and the release before, both directions under load (ARGS='-upgrade.for 3m')
fuzz: ; tools/fuzz.sh $(FUZZTIME) ## run every fuzz target for FUZZTIME, 10s unless told otherwise
bench: ; $(MAKE) -C bench ## compare with other job runners (see bench/README.md)
clean: ; @rm -rf bin dist ## remove what was built
bin/testsum: # phony: go build knows better than make what is new
	@go build -C tools -o ../bin/testsum ./cmd/testsum
