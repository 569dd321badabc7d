package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"muster/api"
	"muster/cli"
	"muster/jobs"
)

// grantGlass lets Ann break the glass, as far as the access file goes.
func (o *office) grantGlass() {
	o.t.Helper()
	text, err := os.ReadFile(o.file("access.yaml"))
	if err != nil {
		o.t.Fatal(err)
	}
	o.write("access.yaml", string(text)+"  - {principal: user:ann, grants: [{verbs: [break-glass]}]}\n")
	late, tick := o.late(), time.Tick(commandEvery)
	for {
		words, _ := o.as("ann", "whoami")
		if strings.Contains(words, "break-glass") {
			return
		}
		select {
		case <-late:
			o.t.Fatalf("the server does not follow the access file: %s", words)
		case <-tick:
		}
	}
}

// At night one person runs alone what two must sign: on the hosts where the policy of the node says
// so, with an entry in the log before, the node's own word after, and a review by somebody else.
func TestGlassIsBrokenOnRealHosts(t *testing.T) {
	t.Parallel()
	o := newOffice(t, `  - {runbooks: [exec], hosts: fw0003, people: 2, mode: require}
  - {runbooks: [exec], people: 2, break_glass: ["user:ann"], mode: require}
  - {level: server, mode: require}
`)
	o.master()
	emergency := func(on, words string) []string {
		return []string{"run", "exec", on, "--arg", "cmd=echo " + words, "--break-glass", "INC-7: the site is down"}
	}
	o.want("ann", 2, "break-glass", emergency("fw0001", "too-early")...)
	o.grantGlass()
	o.want("bob", 2, "may not", emergency("fw0001", "not-bob")...)
	o.want("ann", 1, "does not let user:ann break the glass", emergency("fw0003", "not-there")...)
	o.want("ann", 0, "2 succeeded", emergency("fw[0001-0002]", "alone")...)
	for _, c := range o.fleet.Log() {
		if strings.Contains(c.Command, "too-early") || strings.Contains(c.Command, "not-") {
			t.Errorf("a host did what nobody was allowed to order: %+v", c)
		}
	}
	var open api.ReviewList
	o.query(&open, "approvals", "reviews")
	if len(open.Reviews) != 1 || open.Reviews[0].Reason != "INC-7: the site is down" {
		t.Fatalf("open reviews: %+v", open)
	}
	id := string(open.Reviews[0].Task)
	o.awaitPast(jobs.TaskID(id), 2)
	for words, args := range map[string][]string{
		"glass.break": {"audit", "ls", "--verb", "glass.*"},
		"glass-used":  {"history", "events", id},
		"1 review":    {"health"},
	} {
		if out, _ := o.muster(args...); !strings.Contains(out, words) {
			t.Errorf("muster %s does not say %q: %s", strings.Join(args, " "), words, out)
		}
	}
	o.want("ann", 1, "", "approvals", "review", id, "--reason", "I was right")
	o.want("eve", 1, "may not approve", "approvals", "review", id, "--reason", "she was right")
	o.want("bob", 2, "reason", "approvals", "review", id)
	o.want("bob", 0, "", "approvals", "review", id, "--reason", "the outage was real")
	// The end of the entry comes into the log a moment after the answer.
	o.lookUntil("the list of reviews after bob's", func(c *cli.Client) (any, bool, error) {
		var left api.ReviewList
		err := c.Get(t.Context(), "/v1/reviews", nil, &left)
		return left, len(left.Reviews) == 0, err
	})
}
