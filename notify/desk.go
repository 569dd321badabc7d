package notify

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"muster/internal/wording"
	"muster/jobs"
)

// A Book is what is known beside the signals in hand.
type Book interface {
	// State returns how a thing was last told; empty: it was not.
	State(name string) (string, error)
	SetState(name, state string) error
	// Group returns an open group; nil: there is none.
	Group(rule, name string) (*Open, error)
	// OfTask returns the open groups that collect for a task.
	OfTask(id jobs.TaskID) ([]*Open, error)
}

// Open is a group that still collects.
type Open struct {
	Rule   string      `json:"rule"`
	Name   string      `json:"name"`
	Task   jobs.TaskID `json:"task,omitempty"` // whose end closes it
	First  string      `json:"first"`          // key of its first signal
	Opened jobs.Time   `json:"opened"`
	Due    jobs.Time   `json:"due"`
	Items  []Signal    `json:"items"`
	More   int         `json:"more,omitempty"` // happenings that it only counts
	Tasks  Tasks       `json:"tasks"`
}

// Tasks are those that a message concerns. A message of which not all are known is seen only by
// callers who see the whole house.
type Tasks struct {
	IDs   []jobs.TaskID `json:"ids,omitempty"`
	Other bool          `json:"other,omitempty"` // it concerns more than these
}

// The bounds of a group.
const (
	itemsMax = 50
	tasksMax = 200
)

// Desk sorts signals into groups.
type Desk struct {
	Rules *Rules
	Book  Book
	Now   time.Time

	touched []*Open
}

// Take sorts in one signal.
func (d *Desk) Take(s Signal) error {
	fresh, err := d.changes(s)
	if err != nil || !fresh {
		return err
	}
	for _, r := range d.Rules.list {
		part, ok := r.fit(s)
		if !ok {
			continue
		}
		if r.OnChange && s.What == TaskEnded {
			if ok, err = d.otherwise(r, part); err != nil {
				return err
			}
		}
		if ok {
			if len(r.Customers) > 0 {
				part.On = "" // it may name hosts of other customers
			}
			if err := d.collect(r, part); err != nil {
				return err
			}
		}
	}
	if s.What != TaskEnded {
		return nil
	}
	// The task has ended, so its groups have nothing to wait for.
	list, err := d.Book.OfTask(s.Task)
	for _, g := range list {
		d.due(d.touch(g))
	}
	for _, g := range d.touched {
		if g.Task == s.Task && s.Task != "" {
			d.due(g)
		}
	}
	return err
}

func (d *Desk) due(g *Open) {
	if g.Due.After(d.Now) {
		g.Due = jobs.Time{Time: d.Now}
	}
}

// changes reports whether a signal says something new of a thing that lasts.
func (d *Desk) changes(s Signal) (bool, error) {
	if !s.What.Clears() {
		return true, nil
	}
	name, state := string(s.What)+" "+s.thing(), "on"
	if s.Over {
		state = ""
	}
	was, err := d.Book.State(name)
	if err != nil || was == state {
		return false, err
	}
	return true, d.Book.SetState(name, state)
}

// otherwise reports whether a task ended otherwise than the last one like it: well, or not.
func (d *Desk) otherwise(r Rule, s Signal) (bool, error) {
	like := cmp.Or(s.Schedule, s.On)
	sum := sha256.Sum256([]byte(fmt.Sprintf("%q %q %q", r.Name, s.Runbook, like)))
	name, state := "series "+hex.EncodeToString(sum[:12]), "good"
	if s.bad() {
		state = "bad"
	}
	was, err := d.Book.State(name)
	if err != nil {
		return false, err
	}
	return state != cmp.Or(was, "good"), d.Book.SetState(name, state)
}

// bad reports whether a task has a job that did not succeed.
func (s Signal) bad() bool {
	return slices.ContainsFunc(s.Counts, func(c Count) bool {
		return c.Outcome != jobs.Succeeded && c.Outcome != jobs.Skipped && c.Outcome != jobs.Superseded
	})
}

// nameOf returns the group of a signal under a rule.
func (r Rule) nameOf(s Signal) string {
	switch r.Group {
	case ByRunbook:
		return "runbook " + s.Runbook
	case ByCustomer:
		return "customer " + s.Customer
	case ByRule:
		return "rule"
	}
	return cmp.Or(string(s.Task), string(s.What)+" "+s.thing())
}

func (d *Desk) collect(r Rule, s Signal) error {
	for _, part := range r.split(s) {
		name := r.nameOf(part)
		g, err := d.open(r, name, part)
		if err != nil {
			return err
		}
		g.add(part)
	}
	return nil
}

// split divides the end of a task among its customers, where a rule groups by customer.
func (r Rule) split(s Signal) []Signal {
	if r.Group != ByCustomer || s.What != TaskEnded {
		return []Signal{s}
	}
	var out []Signal
	for _, c := range s.Counts {
		i := slices.IndexFunc(out, func(x Signal) bool { return x.Customer == c.Customer })
		if i < 0 {
			one := s
			one.Customer, one.Counts = c.Customer, nil
			out, i = append(out, one), len(out)
		}
		out[i].Counts = append(out[i].Counts, c)
	}
	return out
}

// open returns the group of a rule and a name, a new one if there is none.
func (d *Desk) open(r Rule, name string, s Signal) (*Open, error) {
	for _, g := range d.touched {
		if g.Rule == r.Name && g.Name == name {
			return g, nil
		}
	}
	g, err := d.Book.Group(r.Name, name)
	if err != nil {
		return nil, err
	}
	if g == nil {
		g = &Open{Rule: r.Name, Name: name, First: s.Key, Opened: jobs.Time{Time: d.Now},
			Due: jobs.Time{Time: d.Now.Add(r.Wait)}}
		if r.Group == ByTask {
			g.Task = s.Task
		}
	}
	return d.touch(g), nil
}

// touch keeps a group for the end of the round; one that is kept already stays.
func (d *Desk) touch(g *Open) *Open {
	for _, had := range d.touched {
		if had.Rule == g.Rule && had.Name == g.Name {
			return had
		}
	}
	d.touched = append(d.touched, g)
	return g
}

// Touched returns the groups that the round has changed.
func (d *Desk) Touched() []*Open { return d.touched }

// add puts a signal into the group, and counts together what is alike.
func (g *Open) add(s Signal) {
	g.Tasks.add(s.Task)
	s.Note = harmless(s.Note)
	for i := range g.Items {
		had := &g.Items[i]
		if had.What == s.What && had.thing() == s.thing() && had.Outcome == s.Outcome &&
			had.Customer == s.Customer && had.Over == s.Over && len(s.Counts) == 0 {
			had.Hosts.Join(s.Hosts)
			if s.Note != "" {
				had.Note = s.Note
			}
			return
		}
	}
	if len(g.Items) >= itemsMax {
		g.More++
		return
	}
	g.Items = append(g.Items, s)
}

// harmless returns a note, which may repeat what a host said, without what moves a terminal.
func harmless(note string) string {
	note = strings.Map(func(c rune) rune {
		if unicode.IsControl(c) || unicode.Is(unicode.Cf, c) {
			return ' '
		}
		return c
	}, note)
	return wording.OneLine(note, noteMax)
}

func (t *Tasks) add(id jobs.TaskID) {
	switch {
	case slices.Contains(t.IDs, id) && id != "":
	case id == "" || len(t.IDs) >= tasksMax:
		t.Other = true
	default:
		t.IDs = append(t.IDs, id)
	}
}

// ID returns the id of the message of a group to a receiver: the same one whenever it is sent.
func (g *Open) ID(receiver string) string {
	sum := sha256.Sum256([]byte(fmt.Sprintf("%q %q %q %d %q", g.Rule, g.Name, g.First,
		jobs.MicrosOf(g.Opened.Time), receiver)))
	return "msg_" + hex.EncodeToString(sum[:16])
}

// The pauses between two tries.
const (
	pauseFirst = 5 * time.Second
	pauseMost  = 15 * time.Minute
)

// Pause returns the time until the next try, after so many in vain. Messages that failed together
// do not come together again.
func Pause(tries int, id string) time.Duration {
	d := pauseMost
	if tries < 9 {
		d = min(pauseMost, pauseFirst<<max(0, tries-1))
	}
	sum := sha256.Sum256([]byte(fmt.Sprint(id, tries)))
	return d - d*time.Duration(sum[0])/1024 // up to a quarter less
}
