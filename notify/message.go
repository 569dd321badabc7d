package notify

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"muster/internal/wording"
	"muster/jobs"
)

// A Message is what a receiver gets. Webhooks and programs get it as JSON.
type Message struct {
	ID    string    `json:"id"`
	Type  string    `json:"type"` // muster.outcome, muster.task-ended, …; muster.several
	At    jobs.Time `json:"timestamp"`
	Rule  string    `json:"rule"`
	Title string    `json:"title"`
	Text  string    `json:"text"`
	Link  string    `json:"link,omitempty"`
	Test  bool      `json:"test,omitempty"` // somebody tries the receiver: nothing has happened
	Items []Signal  `json:"items"`
	More  int       `json:"more,omitempty"` // happenings that are only counted
}

// The bounds of texts, in bytes.
const (
	titleMax = 150
	noteMax  = 300
	textMax  = 8 << 10
)

// Message returns the message of a group. base begins the addresses of pages; empty: there are
// none.
func (g *Open) Message(receiver, base string, now time.Time) Message {
	m := Message{ID: g.ID(receiver), At: jobs.Time{Time: now}, Rule: g.Rule, Items: g.Items,
		More: g.More, Type: "muster.several"}
	kinds := map[What]bool{}
	for _, s := range g.Items {
		kinds[s.What] = true
	}
	if len(kinds) == 1 {
		m.Type = "muster." + string(g.Items[0].What)
	}
	lines := make([]string, 0, len(g.Items)+1)
	for _, s := range g.Items {
		lines = append(lines, s.Line())
	}
	if g.More > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", g.More))
	}
	m.Title = titleOf(g)
	m.Text = wording.ClipTo(strings.Join(lines, "\n"), textMax)
	if base != "" && len(g.Tasks.IDs) == 1 && !g.Tasks.Other {
		m.Link = strings.TrimRight(base, "/") + "/tasks/" + string(g.Tasks.IDs[0])
	}
	return m
}

// TestMessage returns a message by which somebody tries a receiver.
func TestMessage(receiver, by string, now time.Time) Message {
	s := Signal{Key: fmt.Sprintf("test %s %s %d", receiver, by, now.UnixMicro()), What: Test,
		At: jobs.Time{Time: now}, Note: "sent by " + by}
	g := Open{Rule: "test", Name: "test", First: s.Key, Opened: s.At, Items: []Signal{s}}
	m := g.Message(receiver, "", now)
	m.Test = true
	return m
}

func titleOf(g *Open) string {
	if len(g.Items) == 0 {
		return "muster: nothing"
	}
	first := g.Items[0]
	switch {
	case len(g.Items) == 1 && g.More == 0:
		return "muster: " + wording.OneLine(first.Line(), titleMax)
	case g.Task != "":
		total := 0
		for _, s := range g.Items {
			total += s.Hosts.Count
		}
		return fmt.Sprintf("muster: task %s (%s): %s", g.Task, wording.OneLine(first.Runbook, 60),
			wording.Count(total, "host"))
	}
	return fmt.Sprintf("muster: %d happenings (%s)", len(g.Items)+g.More, g.Rule)
}

// Line says in one line what happened.
func (s Signal) Line() string {
	text := s.words()
	if s.Note != "" {
		text += ": " + wording.OneLine(s.Note, noteMax)
	}
	return wording.OneLine(text, 1000)
}

func (s Signal) words() string {
	work := fmt.Sprintf("task %s (%s)", s.Task, s.Runbook)
	place := strings.TrimPrefix(s.Zone+"/"+s.Object, "/")
	state := func(on, over string) string {
		if s.Over {
			return over
		}
		return on
	}
	switch s.What {
	case Outcome:
		of := ""
		if s.Customer != "" {
			of = " of " + s.Customer
		}
		return fmt.Sprintf("%s: %s on %s%s", work, s.Outcome, s.Hosts, of)
	case TaskEnded:
		return work + " has ended: " + countWords(s.Counts)
	case WindowMissed:
		return fmt.Sprintf("%s: expired in wait for a window on %s", work, s.Hosts)
	case WindowOverrun:
		return "job " + s.Object + " works on behind the end of its window"
	case RolloutStopped:
		return work + " was stopped by its rule"
	case ApprovalWanted:
		return fmt.Sprintf("%s of %s waits for signatures", work, s.Operator)
	case GroupFrozen:
		return "group " + place + state(" is frozen", " is not frozen any more")
	case HostAside:
		return "host " + place + state(" is in quarantine: it takes only checks", " takes all jobs again")
	case ZoneFrozen:
		return "zone " + s.Zone + state(" is frozen: it starts nothing", " is not frozen any more")
	case ScheduleFailed:
		return "schedule " + s.Object + ": a tick has no task"
	case NodeGone:
		return "node " + s.Object + state(" is not heard of any more", " is there again")
	case NodeAside:
		return "node " + s.Object + state(" is set aside: it takes nothing", " is not set aside any more")
	case ZoneUnserved:
		return "zone " + s.Zone + state(": no node begins its jobs", ": a node works on it again")
	case HistoryAway:
		return "history" + state(" could not be written", " is written again")
	case NotProven:
		return "not proven: " + cmp.Or(s.Object, string(s.Task))
	case GlassBroken:
		return work + ": one person ran alone what more must sign"
	case AgreedLost:
		return "Redis" + state(" has lost what people have agreed: nothing starts",
			" has what people have agreed again")
	case ApplyFailed:
		return "repository " + s.Object + state(": its newest commit is not in force",
			": its newest commit is in force")
	case DeliveryExpired:
		return "a message was given up, which " + s.Object + " did not take"
	}
	return "this is a test: nothing has happened"
}

// String returns the number of the hosts and the names of the first.
func (h Hosts) String() string {
	if h.Count == 0 {
		return "no host"
	}
	text := wording.Count(h.Count, "host")
	if len(h.Names) > 0 {
		text += " (" + strings.Join(h.Names, ", ")
		if h.Count > len(h.Names) {
			text += ", …"
		}
		text += ")"
	}
	return text
}

// countWords says how the jobs of a task ended, the bad ones with hosts.
func countWords(list []Count) string {
	by := map[jobs.Outcome]*Hosts{}
	for _, c := range list {
		if by[c.Outcome] == nil {
			by[c.Outcome] = &Hosts{}
		}
		by[c.Outcome].Join(c.Hosts)
	}
	var parts []string
	for _, o := range append(jobs.Outcomes(), "") {
		switch h := by[o]; {
		case h == nil:
		case o == jobs.Succeeded:
			parts = append(parts, fmt.Sprintf("%d %s", h.Count, o))
		default:
			parts = append(parts, fmt.Sprintf("%s on %s", cmp.Or(string(o), "end not known to history"), h))
		}
	}
	if len(parts) == 0 {
		return "no job"
	}
	return strings.Join(parts, ", ")
}

// JSON returns the message as webhooks and programs get it.
func (m Message) JSON() []byte {
	text, _ := json.Marshal(m) // texts and numbers only: no error is possible
	return text
}

// Slack returns the message for receivers that understand what Slack does.
func (m Message) Slack() []byte {
	safe := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
	text := safe.Replace(m.Title)
	if m.Text != strings.TrimPrefix(m.Title, "muster: ") {
		text += "\n" + safe.Replace(wording.ClipTo(m.Text, 3000))
	}
	if m.Link != "" {
		text += "\n" + m.Link
	}
	out, _ := json.Marshal(map[string]string{"text": text})
	return out
}

// alert is one of Alertmanager's version 2.
type alert struct {
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	StartsAt    time.Time         `json:"startsAt"`
	EndsAt      time.Time         `json:"endsAt"`
	URL         string            `json:"generatorURL,omitempty"`
}

// An Alertmanager forgets an alert at its end, which must not come before people have seen it.
const (
	alertShort = time.Hour          // of what happened at one instant
	alertLong  = 7 * 24 * time.Hour // of what lasts until a message says that it is over
)

// Alerts returns the message as alerts for Alertmanager.
func (m Message) Alerts() []byte {
	list := []alert{}
	for _, s := range m.Items {
		a := alert{Labels: map[string]string{"alertname": "muster-" + string(s.What), "rule": m.Rule},
			Annotations: map[string]string{"summary": s.Line()}, StartsAt: s.At.UTC(),
			EndsAt: s.At.Add(alertShort).UTC(), URL: m.Link}
		for name, value := range map[string]string{"task": string(s.Task), "runbook": s.Runbook,
			"zone": s.Zone, "object": s.Object, "customer": s.Customer, "outcome": string(s.Outcome)} {
			if value != "" {
				a.Labels[name] = value
			}
		}
		switch {
		case s.Over:
			// The alert that ends has begun earlier; Alertmanager takes the end of any that is alike.
			a.StartsAt, a.EndsAt = s.At.Add(-time.Second).UTC(), s.At.UTC()
		case s.What.Clears():
			a.EndsAt = s.At.Add(alertLong).UTC()
		}
		list = append(list, a)
	}
	out, _ := json.Marshal(list)
	return out
}

// MailText returns the body of a mail, with lines that end as mail wants it.
func (m Message) MailText() string {
	lines := []string{m.Text, ""}
	if m.Link != "" {
		lines = append(lines, m.Link, "")
	}
	lines = append(lines, "Rule "+m.Rule+" of muster; message "+m.ID)
	return strings.ReplaceAll(strings.Join(lines, "\n"), "\n", "\r\n") + "\r\n"
}

// Kinds returns the kinds of happenings in a group, between commas.
func (g *Open) Kinds() string {
	var list []string
	for _, s := range g.Items {
		if !slices.Contains(list, string(s.What)) {
			list = append(list, string(s.What))
		}
	}
	return strings.Join(list, ",")
}
