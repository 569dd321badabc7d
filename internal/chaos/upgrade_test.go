package chaos

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"muster/jobs"
	"muster/jobs/queue/hooks"
)

var upgradeFor = flag.Duration("upgrade.for", 0, "how long each version works alone, under load; 0: not at all")

// broughtRunbook is for real hosts: a file is brought, and a secret is compared.
const broughtRunbook = `
name: brought
arguments:
  task: {type: string}
  nap: {type: string}
  dir: {type: string}
  config: {type: file}
  password: {type: secret}
timeout: 5s
steps:
  - name: bring
    repeatable: true
    upload: {from: config, to: "{{dir}}/{{host.name}}"}
  - name: one
    run: |
      test {{password}} = "$(cat {{dir}}/{{host.name}})" || exit 9
      echo begin {{task}} 1 $(date +%s.%N) >> ~/seen; sleep {{nap}}; echo end {{task}} 1 $(date +%s.%N) >> ~/seen
  - name: two
    run: "echo begin {{task}} 2 $(date +%s.%N) >> ~/seen; echo end {{task}} 2 $(date +%s.%N) >> ~/seen"
`

// A kind of task is a runbook, the hosts it is for, and flags of muster run.
type kindOfTask struct {
	name, runbook string
	from, to      int // of the hosts; of the real ones if these are none
	flags         []string
}

// kindsOfTasks are those that must survive an upgrade.
func (h *house) kindsOfTasks() []kindOfTask {
	word := filepath.Join(h.dir, "word")
	return []kindOfTask{
		{"plain", "calm", 0, hostCount, nil},
		{"repeatable", "twice", 0, hostCount, nil},
		{"disruptive, in groups", "rough", 0, pairHosts, nil},
		{"limit of a site", "calm", siteFrom, siteTo, nil},
		{"limit of a runbook", "image", 0, hostCount, nil},
		{"rollout in waves", "calm", 0, hostCount, []string{"--waves", "1,50%,100%", "--max-failed", "0"}},
		{"in a lane", "calm", 0, hostCount, []string{"--lane", "chaos/upgrade"}},
		{"later", "calm", 0, hostCount, []string{"--at", "+6s"}},
		{"with records on hosts", "once", 0, 0, nil},
		{"with a file and a secret", "brought", 0, 0, []string{"--arg", "dir=" + filepath.Join(h.dir, "brought"),
			"--arg-file", "config=" + word, "--arg", "password=@" + word}},
	}
}

// A loader keeps a house busy with tasks of all kinds, which all must succeed.
type loader struct {
	*operator
	kinds []kindOfTask
	count *tally
}

// openMost bounds the tasks that are open at once.
const openMost = 12

func (l *loader) work(ctx context.Context) {
	for i := 0; pause(ctx, between(l.r, 50*time.Millisecond, 400*time.Millisecond)); {
		calm := context.WithoutCancel(ctx)
		open := slices.DeleteFunc(slices.Clone(l.tasks), func(t *task) bool { return t.ended })
		l.look(calm, open)
		for _, t := range open {
			if !t.known {
				l.ask(calm, t)
			}
		}
		if len(open) < openMost {
			l.load(calm, l.kinds[i%len(l.kinds)])
			i++
		}
	}
}

// load submits a task of a kind.
func (l *loader) load(ctx context.Context, k kindOfTask) {
	t := &task{id: jobs.NewTaskID(time.Now(), uint16(l.r.Uint32())), runbook: k.runbook}
	if k.to == 0 {
		for i := range realCount {
			t.on = append(t.on, realName(i))
		}
	} else {
		for _, i := range l.r.Perm(k.to - k.from)[:min(k.to-k.from, 4+l.r.IntN(24))] {
			t.on = append(t.on, nameOf(k.from+i))
		}
	}
	t.args = append([]string{"run", k.runbook, "--on", strings.Join(t.on, ","), "--arg", "nap=0.3",
		"--arg", "task=" + string(t.id), "--id", string(t.id), "--detach"}, k.flags...)
	l.tasks = append(l.tasks, t)
	l.count.add1(k.name)
	l.ask(ctx, t)
}

// change gives all servers and all nodes another version, one after the other, each when the one
// before works.
func (h *house) change(t *testing.T, to version) {
	t.Helper()
	at := slices.Index(h.all, to)
	for _, list := range []struct {
		nodes []*node
		by    syscall.Signal
	}{{h.servers, syscall.SIGTERM}, {h.nodes, syscall.SIGUSR2}} {
		for _, n := range list.nodes {
			started := n.starts(t, to)
			if err := n.binary.install(at); err != nil {
				t.Fatal(err)
			}
			n.signal(list.by, again)
			h.await(t, n.name+" works with version "+to.name, func() bool { return n.starts(t, to) > started })
		}
	}
	h.await(t, "all nodes have version "+to.name, func() bool {
		out, err := h.muster(t.Context(), h.servers[0].url, "nodes", "-o", "json")
		var nodes []jobs.Node
		if err != nil || json.Unmarshal([]byte(out), &nodes) != nil || len(nodes) != len(h.nodes) {
			return false
		}
		return !slices.ContainsFunc(nodes, func(n jobs.Node) bool { return n.Version != to.name })
	})
}

// starts counts how often a process has begun with a version, by its log.
func (n *node) starts(t *testing.T, v version) int {
	t.Helper()
	text, err := os.ReadFile(n.log.Name())
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(text), "version="+v.name)
}

func (h *house) await(t *testing.T, what string, is func() bool) {
	t.Helper()
	late := time.Now().Add(3 * time.Minute)
	for tick := time.Tick(100 * time.Millisecond); !is(); <-tick {
		if time.Now().After(late) {
			t.Fatalf("%s: not after three minutes", what)
		}
	}
}

// A phase of an upgrade, for its rate.
type phase struct {
	name string
	span
}

// TestUpgrade works with the muster of the release before, gives all servers and nodes this one
// under load, works on, and goes back. Each job of each kind of task must succeed, and by the hosts'
// log each step runs exactly once.
func TestUpgrade(t *testing.T) {
	if *upgradeFor == 0 {
		return // it is asked for by make upgrade
	}
	if *previous == "" {
		*previous = "release"
	}
	if *seed == 0 {
		*seed = rand.Uint64N(1_000_000)
	}
	hooks.Quiet()
	dir, err := os.MkdirTemp("", "muster-upgrade-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() || *keep {
			fmt.Printf("upgrade: seed %d; the logs are in %s\n", *seed, dir)
			return
		}
		os.RemoveAll(dir)
	})
	*netns = false
	h := newHouse(t, dir, func(int) int { return 1 })
	h.write("word", "correct-horse-battery-staple")
	if err := os.Mkdir(filepath.Join(dir, "brought"), 0o755); err != nil {
		t.Fatal(err)
	}
	l := &loader{operator: newOperator(h), kinds: h.kindsOfTasks(), count: newTally()}
	phases := h.upgrade(t, l)
	if err := l.settle(t.Context(), endsWithin); err != nil {
		t.Error(err)
	}
	logs := h.logs()
	h.stop()
	h.judgeVersions(logs)

	r := h.record(t, l.operator)
	table("task", l.count.counts(), "submitted")
	if len(l.refused.counts()) > 0 {
		table("what muster said to orders that it did not carry out", l.refused.counts(), "times")
	}
	r.judge(0)
	h.judge(r)
	r.judgeAll()
	table("outcome", r.outcomes.counts(), "jobs")
	table("invariant", r.counts(), "checked")
	r.rates(phases)
	for _, words := range r.wrong {
		t.Error(words)
	}
	if t.Failed() {
		h.write("judgement.txt", strings.Join(r.wrong, "\n"))
		r.save(h)
	}
}

// upgrade goes to this version and back, under load.
func (h *house) upgrade(t *testing.T, l *loader) (phases []phase) {
	ctx, stop := context.WithCancel(t.Context())
	var load sync.WaitGroup
	load.Go(func() { l.work(ctx) })
	defer load.Wait()
	defer stop()
	now, before := h.all[0], h.all[1]
	note := func(name string, do func()) {
		from := time.Now()
		do()
		phases = append(phases, phase{name, span{from, time.Now()}})
		fmt.Printf("upgrade: %s: %.0f s\n", name, time.Since(from).Seconds())
	}
	alone := func() { pause(ctx, *upgradeFor) }
	note("the previous version", alone)
	note("from the previous to this", func() { h.change(t, now) })
	note("this version", alone)
	note("from this to the previous", func() { h.change(t, before) })
	note("the previous version again", alone)
	return phases
}

// judgeAll asks that every job has succeeded, and that every step has run exactly once.
func (r *record) judgeAll() {
	const all, once = "every job succeeds", "every step runs exactly once"
	times := map[string]int{}
	for _, c := range r.commands {
		times[fmt.Sprint(c.job, " step ", c.step)]++
	}
	for what, n := range times {
		r.checked.add1(once)
		if n != 1 {
			r.say("%s ran %d times", what, n)
		}
	}
	for id, ends := range r.ends {
		r.checked.add1(all)
		if e := ends[0]; e.outcome != jobs.Succeeded {
			r.say("%s ended %s: %s", id, e.outcome, e.err)
		}
	}
	if len(times) == 0 || len(r.ends) == 0 {
		r.say("nothing was done")
	}
}

// rates prints how many jobs ended in a second of each phase.
func (r *record) rates(phases []phase) {
	for _, p := range phases {
		n := 0
		for _, ends := range r.ends {
			if at := ends[0].at; at.After(p.from) && at.Before(p.to) {
				n++
			}
		}
		fmt.Printf("upgrade: %s: %.1f jobs/s\n", p.name, float64(n)/p.to.Sub(p.from).Seconds())
	}
}
