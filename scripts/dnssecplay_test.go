package scripts_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"muster/testkit/dnstest"
)

// playbook is as much of a runbook as is needed to play it by hand: these tests are
// about what its shell texts do to real servers, and need no queue, no worker and no
// SSH for that.
type playbook struct {
	Arguments map[string]struct{ Default string }
	Library   string
	Steps     []struct {
		Name  string
		When  []string
		Check string
		Run   string
		Wait  struct{ Until, For, Limit string }
		Gate  struct{ Question string }
		Save  map[string]struct{ Match string }
	}
}

// play is a runbook at work on a lab.
type play struct {
	t      testing.TB
	lab    *dnstest.Lab
	values map[string]string

	// before is called before a step runs for the first time, and at a gate.
	before func(step string)

	said  map[string]string // what each step said last
	looks map[string]int    // how often each was run
	done  map[string]time.Time
	ended string // the step at which it ended
	code  int    // its exit code; -1: it waited longer than its limit
}

func newPlay(t testing.TB, l *dnstest.Lab, args map[string]string) *play {
	t.Helper()
	p := &play{t: t, lab: l, before: func(string) {}, said: map[string]string{}, looks: map[string]int{},
		done: map[string]time.Time{}}
	p.values = map[string]string{"zone": dnstest.Zone, "config": l.Primary.Config,
		"rndc_config": l.Primary.Control, "primary": l.Primary.At(), "secondaries": l.Secondary.At(),
		"parents": l.Parent.At(), "grace": "45", "ds_limit": "45", "every": "1", "min_age": "0"}
	p.values["server"] = "bind"
	if l.Primary.Control == "" {
		p.values["server"] = "knot"
	}
	for name, v := range args {
		p.values[name] = v
	}
	return p
}

// run plays the runbook to its end.
func (p *play) run(name string) *play {
	p.t.Helper()
	text, err := os.ReadFile("builtin/" + name + ".yaml")
	if err != nil {
		p.t.Fatal(err)
	}
	var b playbook
	if err := yaml.Unmarshal(text, &b); err != nil {
		p.t.Fatal(err)
	}
	for name, a := range b.Arguments {
		if _, ok := p.values[name]; !ok {
			p.values[name] = a.Default
		}
	}
	for _, s := range b.Steps {
		if !p.due(s.When) {
			continue
		}
		p.before(s.Name)
		p.ended = s.Name
		texts := s.Check + s.Run + s.Wait.Until
		if s.Wait.For != "" {
			texts = "sleep " + s.Wait.For // a worker would be away for as long
		}
		if texts == "" {
			p.said[s.Name] = p.fill(s.Gate.Question, bare)
			continue
		}
		p.code = p.await(s.Name, p.fill(b.Library+"\n"+texts, shellWord), p.fill(s.Wait.Limit, bare))
		if p.code != 0 {
			return p
		}
		p.done[s.Name] = time.Now()
		for name, save := range s.Save {
			all := regexp.MustCompile("(?m)"+save.Match).FindAllStringSubmatch(p.said[s.Name], -1)
			if len(all) == 0 {
				p.t.Fatalf("%s: nothing to save as %s in %s", s.Name, name, p.said[s.Name])
			}
			p.values["saved."+name] = all[len(all)-1][1]
		}
	}
	return p
}

// due reports whether the conditions of a step hold.
func (p *play) due(when []string) bool {
	for _, w := range when {
		words := strings.Fields(p.fill(w, bare))
		if (words[0] == words[2]) != (words[1] == "==") {
			return false
		}
	}
	return true
}

// await runs a text, again and again while it says "not yet" and has a limit.
func (p *play) await(step, text, limit string) int {
	p.t.Helper()
	seconds, _ := strconv.Atoi(limit) // none: it is run once
	late := time.After(time.Duration(seconds) * time.Second)
	tick := time.NewTicker(2 * time.Second) // a look costs a quarter of a second of work
	defer tick.Stop()
	for {
		code := p.sh(step, text)
		if code != 75 || limit == "" {
			return code
		}
		select {
		case <-late:
			return -1
		case <-tick.C:
		}
	}
}

// sh runs a text as a host would.
func (p *play) sh(step, text string) int {
	p.t.Helper()
	p.looks[step]++
	cmd := exec.Command("/bin/sh")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Args = []string{"sh", "-c", text}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	p.said[step] = out.String()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		p.t.Fatalf("%s: %v", step, err)
	}
	return cmd.ProcessState.ExitCode()
}

// fill puts the values into a text.
func (p *play) fill(text string, as func(string) string) string {
	p.t.Helper()
	return regexp.MustCompile(`{{[a-z_.]+}}`).ReplaceAllStringFunc(text, func(hole string) string {
		v, ok := p.values[strings.Trim(hole, "{}")]
		if !ok {
			p.t.Fatalf("nothing stands for %s", hole)
		}
		return as(v)
	})
}

func bare(v string) string { return v }

func shellWord(v string) string { return "'" + strings.ReplaceAll(v, "'", `'\''`) + "'" }

// wants fails the test unless the runbook ended in this way, saying this.
func (p *play) wants(step string, code int, say string) {
	p.t.Helper()
	if p.ended != step || p.code != code || !regexp.MustCompile(say).MatchString(p.said[p.ended]) {
		p.t.Errorf("it ended in %s with %d, want %s with %d, saying %q:\n%s", p.ended, p.code, step, code,
			say, p.said[p.ended])
	}
}

// tell gives a command to the primary.
func (p *play) tell(words ...string) string {
	p.t.Helper()
	out, err := p.lab.Primary.Tell(words...)
	if err != nil {
		p.t.Fatal(err)
	}
	return out
}

// unbroken fails the test if the zone was anything but secure at any time.
func unbroken(t testing.TB, w *dnstest.Watcher) {
	t.Helper()
	seen, broken := w.End()
	if len(broken) > 0 || seen[dnstest.Secure] < 10 {
		t.Errorf("the resolver saw %v: %q", seen, broken)
	}
	t.Log(fmt.Sprint("seen by the resolver: ", seen))
}

// wantsTimeline fails the test unless the key was removed when look had said so: never
// earlier, and not much later.
func (p *play) wantsTimeline() {
	p.t.Helper()
	said := func(name string) time.Duration {
		m := regexp.MustCompile(name + ` (\d+) = `).FindStringSubmatch(p.said["look"])
		if m == nil {
			p.t.Fatalf("no %s in %s", name, p.said["look"])
		}
		n, _ := strconv.Atoi(m[1])
		return time.Duration(n) * time.Second
	}
	const (
		whole = 2 * time.Second  // servers and the shell count whole seconds
		slack = 30 * time.Second // of a busy machine
	)
	for _, one := range []struct {
		step     string
		computed time.Duration
	}{{"published", said("Ipub")}, {"retired", said("Ipub") + said("Iret")}} {
		took := p.done[one.step].Sub(p.done["start"])
		p.t.Logf("%s: computed %s, seen after %s", one.step, one.computed, took.Round(100*time.Millisecond))
		if took < one.computed-whole || took > one.computed+slack {
			p.t.Errorf("%s: computed %s after the start, but it was %s", one.step, one.computed, took)
		}
	}
}

// wantsSpread fails the test unless the key's server heard of the new DS when look had said
// so: not before resolvers have forgotten the old one.
func (p *play) wantsSpread() {
	p.t.Helper()
	m := regexp.MustCompile(`\+(\d+) s  after that the old key is removed`).FindStringSubmatch(p.said["look"])
	if m == nil {
		p.t.Fatalf("no time behind the DS in %s", p.said["look"])
	}
	least, _ := strconv.Atoi(m[1])
	took := p.done["submit"].Sub(p.done["ds"])
	if least == 0 || took < time.Duration(least)*time.Second {
		p.t.Errorf("the server was told of the DS %s after it was there, and was to be after %d s", took, least)
	}
}
