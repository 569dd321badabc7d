package sim

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster/jobs"
	"muster/jobs/model"
)

var update = flag.Bool("sim.update", false, "write the logs of the scenarios anew")

// A scenario is a story with a name, in a file of testdata: what there is, what people do, which
// faults strike, and behind a line of dashes all that happens then.
type scenario struct {
	*world
	t     *testing.T
	tasks map[string]jobs.TaskID
	lasts time.Duration

	submits time.Duration // when the last task was submitted
}

const dashes = "----\n"

// TestScenarios plays each file of testdata, and compares the log in it with what happens. With
// -sim.update it writes the logs anew.
func TestScenarios(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) < 3 {
		t.Fatalf("%d scenarios: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			script, want, _ := strings.Cut(string(data), dashes)
			var got string
			synctest.Test(t, func(t *testing.T) { got = playScript(t, script) })
			if *update {
				if err := os.WriteFile(file, []byte(script+dashes+got), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if got != want {
				t.Errorf("another story than in the file (+ is what happened):\n%s", cmp.Diff(
					strings.Split(want, "\n"), strings.Split(got, "\n")))
			}
		})
	}
}

// playScript plays a scenario, and returns its log.
func playScript(t *testing.T, script string) string {
	s := &scenario{world: newWorld(t, 1), t: t, tasks: map[string]jobs.TaskID{}, lasts: 10 * time.Minute}
	defer s.close()
	s.faults = faults{w: s.world, fired: map[fault]int{}, seen: map[string]int{}, excused: map[string]int{},
		plot: &plot{names: map[string]string{}}}
	s.redis = newServer(s.world)
	for i, line := range strings.Split(script, "\n") {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if err := s.line(line); err != nil {
			t.Fatalf("line %d: %q: %s", i+1, line, err)
		}
	}
	s.run(s.lasts)
	s.staff.truth()
	for _, missed := range s.faults.plot.unused() {
		t.Errorf("no fault has struck %s", missed)
	}
	if s.wrong != "" {
		t.Error(s.wrong)
	}
	return s.log()
}

// line obeys a line: "hosts 2", "node n1 of 2 slots", "task a on fw00: act 20s, look 1s",
// "fault a:fw00 attempt 1 step 0: child killed after 5s", "at 30s cancel a", "lasts 20m".
func (s *scenario) line(text string) error {
	verb, rest, _ := strings.Cut(text, " ")
	switch verb {
	case "hosts":
		n, err := strconv.Atoi(rest)
		newHosts(s.world, n)
		for _, h := range s.hosts {
			h.limits = nil
		}
		s.staff = newStaff(s.world)
		return err
	case "node":
		name, slots, _ := strings.Cut(rest, " of ")
		n, err := strconv.Atoi(strings.TrimSuffix(slots, " slots"))
		s.nodes = append(s.nodes, newNode(s.world, name, n))
		return err
	case "task":
		return s.task(rest)
	case "fault":
		return s.faults.plot.plan(rest)
	case "lasts":
		d, err := time.ParseDuration(rest)
		s.lasts = d
		return err
	case "at":
		at, order, _ := strings.Cut(rest, " ")
		d, err := time.ParseDuration(at)
		if err != nil {
			return err
		}
		do, err := s.order(strings.Fields(order))
		if err == nil {
			s.in(d, func() {
				s.say("-- %s", order)
				do()
			})
		}
		return err
	}
	return fmt.Errorf("no line begins with %q", verb)
}

// task submits "a on fw00 fw01: act 20s, look 1s", each task a second after the one before.
func (s *scenario) task(text string) error {
	head, body, ok := strings.Cut(text, ": ")
	name, on, found := strings.Cut(head, " on ")
	if !ok || !found {
		return fmt.Errorf("want NAME on HOST …: STEP, …")
	}
	p := plan{}
	for _, step := range strings.Split(body, ", ") {
		words := append(strings.Fields(step), "0s")
		d, err := time.ParseDuration(words[1])
		st := stage{takes: d, expect: d, timeout: time.Minute}
		switch words[0] {
		case "act":
		case "try":
			st.tries = 3
		case "look":
			st.kind = looking
		case "reboot":
			st.kind, st.takes, st.expect = reboot, time.Second, time.Second
		case "gate":
			st = stage{kind: gating, pause: d}
		case "wait":
			st = stage{kind: waiting, pause: d}
		case "disruptive":
			p.disruptive = true
			continue
		case "repeatable":
			p.repeatable = true
			continue
		case "windowed":
			p.window = true
			continue
		default:
			return fmt.Errorf("no step is called %q", words[0])
		}
		if err != nil {
			return err
		}
		p.steps = append(p.steps, st)
	}
	s.submits += time.Second
	s.in(s.submits, func() {
		id := s.staff.offer(p, p.spec(), model.Put{Hosts: strings.Fields(on)})
		s.tasks[name], s.faults.plot.names[name] = id, string(id)
	})
	return nil
}

// order returns what a person, or an accident, does.
func (s *scenario) order(words []string) (func(), error) {
	last := words[len(words)-1]
	d, timed := time.ParseDuration(last)
	todo := map[string]func(){
		"cancel": func() {
			task, host, _ := strings.Cut(last, ":")
			e := model.Ending{Task: s.tasks[task], Note: "alice: cancel"}
			if host != "" {
				e.Hosts = []string{host}
			}
			s.staff.end(e)
		},
		"open":    func() { s.gate(words, jobs.GateOpen) },
		"refuse":  func() { s.gate(words, jobs.GateRefuse) },
		"pause":   func() { s.staff.pause(s.tasks[last]) },
		"resume":  func() { s.staff.resume(s.tasks[last]) },
		"halt":    func() { s.staff.halt() },
		"lift":    func() { s.staff.lift() },
		"clear":   func() { s.staff.clear("group/" + last) },
		"freeze":  func() { s.staff.freeze(d) },
		"flush":   func() { s.redis.flush(); s.in(time.Second, s.staff.agree) },
		"restart": func() { s.redis.restart(d, nil) },
		"stall":   func() { s.redis.stalled = s.now + d },
		"jump":    func() { s.redis.offset += d },
		"stop":    func() { s.child(func(c *child) { c.process.stop(d) }) },
		"kill":    func() { s.child(func(c *child) { c.die("killed by signal 9") }) },
		"master":  func() { s.node(words[1]).die(d) },
		"crash":   func() { s.node(words[1]).crash(d) },
		"sleep":   func() { s.node(words[1]).sleep(d) },
	}
	do, known := todo[words[0]]
	if !known {
		return nil, fmt.Errorf("no order is called %q", words[0])
	}
	needs := []string{"freeze", "restart", "stall", "jump", "stop", "master", "crash", "sleep"}
	if slices.Contains(needs, words[0]) && timed != nil {
		return nil, timed
	}
	return do, nil
}

// gate answers "a:fw00 1", the gate of a job by the index of its step.
func (s *scenario) gate(words []string, word jobs.GateWord) {
	task, host, _ := strings.Cut(words[1], ":")
	step, err := strconv.Atoi(words[2])
	if err != nil {
		panic(err)
	}
	s.staff.answerGate(jobs.NewID(s.tasks[task], host), step, word)
}

// node returns the node of a name.
func (s *scenario) node(name string) *node {
	i := slices.IndexFunc(s.nodes, func(n *node) bool { return n.name == name })
	if i < 0 {
		panic("no node is called " + name)
	}
	return s.nodes[i]
}

// child does something with the first child that has a job.
func (s *scenario) child(do func(*child)) {
	for _, n := range s.nodes {
		for _, c := range n.living() {
			if len(c.held) > 0 {
				do(c)
				return
			}
		}
	}
	s.t.Errorf("%s: there is no child", s.now)
}

var (
	traceLine = regexp.MustCompile(`^ *(\S+) (.*)$`)
	token     = regexp.MustCompile(` by \d{10,}`)
	until     = regexp.MustCompile(` until (\S+)`)
)

// log returns all that happened, in rounded times and with the names of the tasks.
func (s *scenario) log() string {
	var b strings.Builder
	for _, line := range s.trace {
		m := traceLine.FindStringSubmatch(line)
		at, err := time.ParseDuration(m[1])
		if err != nil {
			s.t.Fatal(err)
		}
		text := until.ReplaceAllStringFunc(token.ReplaceAllString(m[2], ""), func(x string) string {
			end, _ := time.ParseDuration(strings.TrimPrefix(x, " until "))
			return " until " + round(end)
		})
		for name, id := range s.tasks {
			text = strings.ReplaceAll(text, string(id), name)
		}
		fmt.Fprintf(&b, "%8s  %s\n", round(at), strings.TrimSpace(text))
	}
	return b.String()
}

func round(d time.Duration) string { return fmt.Sprintf("%.1fs", d.Seconds()) }
