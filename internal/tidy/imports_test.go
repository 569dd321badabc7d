package tidy

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// importRules say who may know whom.
var importRules = []rule{
	{"floors", checkFloors},
	{"floor in the doc", checkFloorDocs},
	{"tests only", checkTestsOnly},
	{"apart", checkApart},
	{"one side of the wire", checkWire},
	{"doors", checkDoors},
	{"calls", checkCalls},
}

// floors gives each package its floor. A package imports only lower floors, so
// that it can be read and tested without those above, and without its siblings.
var floors = map[string]int{
	"internal/ordered":           -1,
	"internal/wording":           -1, // the ground: fleet and windows need it, too
	"internal/loopback":          -1,
	"internal/lazyregexp":        -1,
	"fleet":                      0,
	"internal/diff":              0,
	"internal/group":             0,
	"internal/handover":          0,
	"internal/sdnotify":          0,
	"internal/jsonpath":          0,
	"internal/manifest":          4,
	"internal/gitsource":         1,
	"internal/repofile":          5,
	"internal/trial":             0,
	"internal/files":             0,
	"internal/proc":              0,
	"internal/nearby":            2,
	"internal/socket":            1,
	"internal/strictyaml":        2,
	"access":                     3,
	"trust":                      2,
	"notify":                     3,
	"triggers":                   3,
	"history/outbox":             4,
	"history/happened":           4,
	"history/courses":            4,
	"history/outcomes":           4,
	"server/herald":              5,
	"server/traces":              5,
	"server/spans":               3,
	"internal/loglines":          3,
	"server/notices":             6,
	"server/entries":             6,
	"server/firing":              6,
	"cli/notices":                6,
	"cli/lanes":                  6,
	"cli/standing":               6,
	"cli/repositories":           6,
	"server/arrivals":            6,
	"cli/arrivals":               6,
	"worker/warden":              3,
	"internal/seal":              0,
	"internal/secretref":         0,
	"worker/secrets":             3,
	"worker/veil":                2,
	"worker/playbook":            2,
	"worker/plays":               3,
	"internal/serverkey":         1,
	"internal/sshsig":            1,
	"internal/backupfile":        1,
	"internal/certs":             1,
	"internal/logins":            1,
	"windows":                    0,
	"jobs":                       1,
	"scripts":                    1,
	"server/foresight":           7,
	"server/waits":               6,
	"server/intake":              7,
	"server/metrics":             2,
	"server/agreed":              2,
	"api":                        2,
	"audit":                      0,
	"events":                     0,
	"ingress":                    3,
	"fleet/ansible":              1,
	"fleet/remote":               1,
	"history":                    3,
	"history/part":               0,
	"history/ledger":             4,
	"history/snapshot":           4,
	"internal/fakefleet":         2,
	"internal/fakefleet/machine": 1,
	"jobs/model":                 2,
	"jobs/plan":                  2,
	"jobs/queue":                 3,
	"jobs/queue/applies":         5,
	"jobs/queue/entries":         5,
	"jobs/queue/blobs":           4,
	"jobs/queue/care":            4,
	"jobs/queue/codec":           2,
	"jobs/queue/firings":         4,
	"jobs/queue/hub":             4,
	"jobs/queue/lanes":           4,
	"jobs/queue/form":            1,
	"jobs/queue/hooks":           1,
	"jobs/queue/apart":           2,
	"jobs/queue/clock":           2,
	"jobs/queue/keys":            1,
	"jobs/queue/orders":          4,
	"jobs/queue/nodes":           4,
	"jobs/queue/read":            4,
	"jobs/queue/vitals":          4,
	"jobs/queue/submit":          4,
	"jobs/queue/work":            4,
	"jobs/queue/archive":         5,
	"jobs/queue/wipe":            4,
	"jobs/queue/inbox":           4,
	"jobs/queue/versions":        4,
	"events/inner":               4,
	"server/inner":               5,
	"server/programs":            5,
	"cli/reset":                  4,
	"master":                     3,
	"master/errands":             2,
	"master/governor":            0,
	"master/sensors":             1,
	"master/steward":             5,
	"master/owners":              2,
	"master/zones":               2,
	"jobs/staff":                 2,
	"jobs/outliers":              2,
	"jobs/front":                 2,
	"jobs/trace":                 2,
	"jobs/lane":                  2,
	"jobs/quarantine":            1,
	"server/nodes":               6,
	"server/door":                8,
	"server":                     9,
	"server/duties":              5,
	"server/depth":               6,
	"server/dispatch":            5,
	"server/election":            5,
	"server/historian":           5,
	"server/reviews":             6,
	"server/draft":               6,
	"server/fault":               2,
	"server/fold":                3,
	"server/web":                 4,
	"server/books":               6,
	"server/rights":              5,
	"server/tokens":              6,
	"server/sessions":            7,
	"server/idp":                 4,
	"server/state":               7,
	"server/schedules":           6,
	"server/apply":               7,
	"server/gitops":              8,
	"server/chains":              7,
	"server/lanes":               7,
	"server/dnssec":              8,
	"cli/dnssec":                 6,
	"server/pages/dnssec":        6,
	"server/pages/passkeys":      6,
	"server/anchor":              5,
	"server/approvals":           6,
	"server/auditlog":            6,
	"server/scribe":              5,
	"server/orders":              6,
	"server/pages":               7,
	"server/pages/estate":        6,
	"server/pages/frame":         5,
	"server/pages/rollouts":      6,
	"server/pages/people":        6,
	"server/pages/signals":       6,
	"server/pages/sheets":        6,
	"server/pages/times":         6,
	"server/pages/work":          6,
	"server/pages/assets":        0,
	"server/tasks":               7,
	"server/reach":               6,
	"server/recent":              5,
	"server/calendar":            6,
	"server/stock":               5,
	"worker":                     5,
	"worker/agreed":              3,
	"worker/attempt":             4,
	"worker/cache":               2,
	"worker/memory":              2,
	"worker/kinds":               3,
	"worker/said":                2,
	"worker/verdict":             2,
	"internal/sources":           3,
	"internal/settings":          10,
	"internal/fit":               11,
	"internal/rehearse":          6,
	"cli":                        3,
	"cli/applies":                6,
	"cli/approvals":              4,
	"cli/audits":                 6,
	"cli/login":                  6,
	"cli/man":                    0,
	"cli/rights":                 12,
	"cli/watch":                  4,
	"cli/complete":               4,
	"cli/checks":                 4,
	"cli/live":                   5,
	"cli/submit":                 5,
	"cli/tasks":                  6,
	"cli/orders":                 6,
	"cli/backup":                 12,
	"cli/reach":                  11,
	"cli/enroll":                 12,
	"cli/bundle":                 13,
	"cli/doctor":                 12,
	"cli/acl":                    8,
	"cli/hosts":                  13,
	"cli/times":                  6,
	"cli/founding":               12,
	"cli/books":                  7,
	"cli/ops":                    6,
	"cli/upgrades":               6,
	"internal/demo":              7,
	"internal/local":             0,
	"cmd/muster":                 14,
	"internal/chaos":             14,
	"internal/sim":               14,
	"internal/tidy":              14,
}

// atticFloor is that of the packages which are nothing but tests.
const atticFloor = 14

func checkFloors(t *tree) []mistake {
	var found []mistake
	for dir, files := range t.packages() {
		if isTestPackage(dir) {
			continue
		}
		if _, ok := floors[dir]; !ok {
			found = append(found, files[0].atLine(0, dir, "this package has no floor, so nobody knows who "+
				"may import it: give it one in the table floors of internal/tidy/imports_test.go, "+
				"or move it below testkit if only tests use it"))
			continue
		}
		for _, f := range files {
			if !f.isTest() {
				found = append(found, floorsOf(f)...)
			}
		}
	}
	return found
}

func floorsOf(f *file) []mistake {
	var found []mistake
	own := floors[f.dir()]
	for _, s := range f.syntax.Imports {
		dir, ok := strings.CutPrefix(importPath(s), module+"/")
		if !ok || isTestPackage(dir) {
			continue
		}
		floor, ok := floors[dir]
		if !ok || floor < own {
			continue // one without a floor is told so itself
		}
		found = append(found, f.at(s.Pos(), dir, "floor %d imports floor %d, but only lower floors may "+
			"be imported, or nothing can be read by itself: declare an interface here, move what both "+
			"need further down, or let cmd/muster bring the two together", own, floor))
	}
	return found
}

var floorWords = regexp.MustCompile(`\bFloor (-?\d+)\b`)

func checkFloorDocs(t *tree) []mistake {
	var found []mistake
	for dir, files := range t.packages() {
		for _, f := range files {
			if f.syntax.Doc == nil || f.isTest() || isTestPackage(dir) {
				continue
			}
			doc := f.syntax.Doc
			said := floorWords.FindStringSubmatch(doc.Text())
			switch floor := strconv.Itoa(floors[dir]); {
			case said == nil:
				m := f.at(doc.Pos(), dir, "the package doc does not name the floor: end it with \"Floor %s: "+
					"may import …\", so that a reader knows where he is", floor)
				m.soft = true
				found = append(found, m)
			case said[1] != floor:
				found = append(found, f.at(doc.Pos(), dir, "the package doc says floor %s, the table in "+
					"internal/tidy/imports_test.go says %s: a reader believes the doc, correct the one that is "+
					"wrong", said[1], floor))
			}
		}
	}
	return found
}

func checkTestsOnly(t *tree) []mistake {
	var found []mistake
	for _, f := range t.goFiles() {
		for _, s := range f.syntax.Imports {
			dir, ok := strings.CutPrefix(importPath(s), module+"/")
			switch {
			case !ok:
			case isTestPackage(dir) && !f.mayUseTestkit():
				found = append(found, f.at(s.Pos(), dir, "only tests, the benchmark and the demo import "+
					"testkit, or its helpers are linked into the binary of every user: move what is "+
					"needed here to where it belongs"))
			case floors[dir] == atticFloor && dir != f.dir():
				found = append(found, f.at(s.Pos(), dir, "this package holds tests and nothing else, so "+
					"nothing imports it: move what is needed here to a package of testkit"))
			}
		}
	}
	return found
}

// checkApart holds for tests too: what needs both is a test of cmd/muster.
func checkApart(t *tree) []mistake {
	other := map[string]string{"master": "worker", "worker": "master"}
	var found []mistake
	for _, f := range t.goFiles() {
		for _, s := range f.syntax.Imports {
			room, _, _ := strings.Cut(f.dir(), "/")
			if dir := other[room]; dir != "" && within(importPath(s), module+"/"+dir) {
				found = append(found, f.at(s.Pos(), dir, "master and worker never import each other, because "+
					"they are two processes that meet in Redis, an inherited socket and signals: put what "+
					"both say into jobs, and a test of both into cmd/muster"))
			}
		}
	}
	return found
}

// wireRooms are all that api may import: whoever uses an API builds no server.
var wireRooms = []string{"audit", "fleet", "jobs", "windows"}

// serverUsers are the rooms that may import server: those that start it or read its
// configuration. Tests of whole houses may do so as well.
var serverUsers = []string{"cmd/muster", "internal/settings"}

// checkWire keeps the command line and the server apart: they meet in api.
func checkWire(t *tree) []mistake {
	var found []mistake
	for _, f := range t.goFiles() {
		if f.isTest() || isTestPackage(f.dir()) {
			continue
		}
		for _, s := range f.syntax.Imports {
			dir, ok := strings.CutPrefix(importPath(s), module+"/")
			switch {
			case !ok:
			case f.dir() == "api" && !slices.Contains(wireRooms, dir):
				found = append(found, f.at(s.Pos(), dir, "api imports %s only, because the command line and "+
					"the server both import it: move what is needed into one of these, or into the room "+
					"that uses it", strings.Join(wireRooms, ", ")))
			case dir == "server" && !slices.Contains(serverUsers, f.dir()):
				found = append(found, f.at(s.Pos(), dir, "only %s import server: take the bodies of requests "+
					"and answers from api", strings.Join(serverUsers, " and ")))
			}
		}
	}
	return found
}

// within says that a path is dir or below it.
func within(p, dir string) bool { return p == dir || strings.HasPrefix(p, dir+"/") }

func checkDoors(t *tree) []mistake {
	var found []mistake
	for _, f := range t.goFiles() {
		for _, s := range f.syntax.Imports {
			p := importPath(s)
			d, ok := doorOf(p)
			switch {
			case ok && d.open(f):
			case ok:
				found = append(found, f.at(s.Pos(), p, "its door is %s, not here: %s; ask the door for what "+
					"you need, through an interface declared here", d.rooms(), d.why))
			case isForeign(p):
				found = append(found, f.at(s.Pos(), p, "no door is given for this library, so it would "+
					"spread through the house: name the rooms that may import it, and why, in the table doors "+
					"of internal/tidy/doors_test.go"))
			}
		}
	}
	return found
}

// doorOf finds the most special door: the one with the longest path.
func doorOf(p string) (door, bool) {
	var best door
	for _, d := range doors {
		if within(p, d.lib) && len(d.lib) > len(best.lib) {
			best = d
		}
	}
	return best, best.lib != ""
}

// isForeign says that a path is neither ours nor of the standard library.
func isForeign(p string) bool {
	first, _, _ := strings.Cut(p, "/")
	return first != module && strings.Contains(first, ".")
}

func checkCalls(t *tree) []mistake {
	var found []mistake
	for _, f := range t.goFiles() {
		for _, c := range calls {
			if c.open(f) {
				continue
			}
			for _, s := range f.uses(c.lib, c.names...) {
				found = append(found, f.at(s.Pos(), path.Base(c.lib)+"."+s.Sel.Name,
					"this is called in %s, not here: %s", c.rooms(), c.why))
			}
		}
	}
	return found
}

// knownRooms is every name that a door may give: a wrong one would open nothing.
func knownRooms() []string {
	return append(slices.Collect(maps.Keys(floors)), "cmd")
}
