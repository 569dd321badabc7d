package inner

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"muster/fleet"
	"muster/jobs"
)

// taskBody is the body of an event about work. Its task says by which triggers it came about.
type taskBody struct {
	Task     jobs.TaskID `json:"task"`
	Runbook  string      `json:"runbook"`
	Operator string      `json:"operator"`
	Schedule string      `json:"schedule,omitempty"`
	Chain    jobs.TaskID `json:"chain,omitempty"`
}

func bodyOf(t jobs.TaskInfo) taskBody {
	return taskBody{t.Task, t.Runbook, t.Operator, t.Schedule, t.Chain}
}

// Mixed is the outcome of a task whose jobs did not all end alike.
const Mixed = "mixed"

// OutcomeOf returns the outcome of all jobs of a task, or Mixed.
func OutcomeOf(c jobs.Counts) string {
	out := ""
	for o, n := range c {
		switch {
		case n == 0:
		case out == "":
			out = string(o)
		default:
			return Mixed
		}
	}
	return cmp.Or(out, Mixed)
}

// OfTask returns the event that a task has ended. It is the same however many zones tell of it.
func OfTask(t jobs.TaskInfo, list []jobs.JobInfo, find Find) Told {
	names, bad := make([]string, 0, len(list)), []string{}
	for _, j := range list {
		names = append(names, j.Host)
		if j.Outcome != jobs.Succeeded {
			bad = append(bad, j.Host)
		}
	}
	all, one := customers(names, find)
	if len(list) < t.Total {
		one = "" // nobody knows whose the others are
	}
	counts := map[string]int{}
	for o, n := range t.Outcomes {
		if n > 0 {
			counts[string(o)] = n
		}
	}
	return told(of{TaskEnded, one, t.Finished.Time}, struct {
		taskBody
		On       string         `json:"on"`
		Outcome  string         `json:"outcome"`
		Outcomes map[string]int `json:"outcomes"`
		Total    int            `json:"total"`
		// Hosts and Failed are left out where an event would have to name too many hosts.
		Hosts     []string `json:"hosts,omitempty"`
		Failed    []string `json:"not_succeeded,omitempty"`
		Customers []string `json:"customers,omitempty"`
		Finished  string   `json:"finished"`
	}{bodyOf(t), t.On, OutcomeOf(t.Outcomes), counts, t.Total, few(names), few(bad), all,
		t.Finished.String()}, string(t.Task))
}

// OfGroup returns the event that a redundancy group was frozen. members are its hosts in the
// inventory in force; t is empty if Redis has forgotten the task.
func OfGroup(h jobs.Happening, t jobs.TaskInfo, members []string, find Find) Told {
	job, words := detail(h, "job"), detail(h, "note")
	_, one := customers(members, find)
	body := bodyOf(t)
	body.Task = jobs.ID(job).Task()
	return told(of{GroupFrozen, one, h.At.Time}, struct {
		taskBody
		Group string   `json:"group"`
		Zone  string   `json:"zone"`
		Host  string   `json:"host"`
		Note  string   `json:"note"`
		Hosts []string `json:"hosts,omitempty"`
	}{body, h.Object, h.Zone, jobs.ID(job).Host(), note(words), few(members)}, h.Zone, h.ID,
		h.Object)
}

// detail returns a text of what a stream has of a happening.
func detail(h jobs.Happening, name string) string {
	m, _ := h.Detail.(map[string]any)
	text, _ := m[name].(string)
	return text
}

// JobOf returns the job that froze a group.
func JobOf(h jobs.Happening) jobs.ID { return jobs.ID(detail(h, "job")) }

// Expired reports whether a happening is the end of a job that has expired.
func Expired(h jobs.Happening) bool {
	return h.Event == "end" && jobs.ID(h.Object).Host() != "" &&
		detail(h, "outcome") == string(jobs.Expired)
}

// OfMissed returns the events that jobs of a task have expired which waited for a window, one for
// each customer. h is the happening behind which nothing was read yet.
func OfMissed(h jobs.Happening, t jobs.TaskInfo, list []jobs.JobInfo, find Find) []Told {
	by := map[string][]string{}
	for _, j := range list {
		if j.Outcome != jobs.Expired || j.Times.Of(jobs.InWindow) <= 0 {
			continue
		}
		host, _ := find(j.Host)
		by[host.Customer] = append(by[host.Customer], j.Host)
	}
	var out []Told
	for _, customer := range slices.Sorted(maps.Keys(by)) {
		names := by[customer]
		slices.Sort(names)
		out = append(out, told(of{WindowMissed, customer, h.At.Time}, struct {
			taskBody
			Zone  string   `json:"zone"`
			Hosts []string `json:"hosts,omitempty"`
			Total int      `json:"total"`
		}{bodyOf(t), h.Zone, few(names), len(names)}, h.Zone, h.ID, string(t.Task), customer))
	}
	return out
}

// Members returns the hosts of a group in a zone, of those of an inventory.
func Members(inv map[string]fleet.Host, zone, group string) (names []string) {
	for _, h := range inv {
		if h.Zone == zone && h.Group == group {
			names = append(names, h.Name)
		}
	}
	slices.SortFunc(names, strings.Compare)
	return names
}
