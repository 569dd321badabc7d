// Package part has the parts of the house whose history somebody sees, and the condition in SQL
// that leaves out everything else. Pure.
//
// Floor 0: may import nothing of muster.
package part

import (
	"encoding/json"
	"strings"
)

// A Part is a part of the house: the work of some runbooks on some hosts.
type Part struct {
	Runbooks [][]string        // names, and globs with * and ?: of each list one fits; none: all
	Hosts    map[string]string // host → its customer; nil: all hosts
}

// Customer returns the customer of all hosts of all parts, if it is one.
func Customer(parts []Part) (name string, one bool) {
	for _, p := range parts {
		if p.Hosts == nil {
			return "", false
		}
		for _, c := range p.Hosts {
			if one && c != name {
				return "", false
			}
			name, one = c, true
		}
	}
	return name, one
}

// Term returns the term that a job is in one of the parts, with a value for each ? in it; empty:
// all are. A job counts for a host only if that had the same customer when the job ended: a host
// that changes hands takes no history along. The + keeps SQLite from an index that lacks the order
// of a page.
func Term(parts []Part, sqlite bool) (text string, values []any) {
	if parts == nil {
		return "", nil
	}
	either := []string{}
	for _, p := range parts {
		all := []string{}
		if p.Hosts != nil {
			all = append(all, "(host, customer) in (select value->>0, value->>1 "+
				"from jsonb_array_elements(?::jsonb))")
			if sqlite {
				all[0] = "(+host, +customer) in (select value->>0, value->>1 from json_each(?))"
			}
			values = append(values, pairs(p.Hosts))
		}
		for _, list := range p.Runbooks {
			term := []string{}
			for _, glob := range list {
				text, value := like(glob, sqlite)
				term, values = append(term, text), append(values, value)
			}
			all = append(all, "("+strings.Join(term, " or ")+")")
		}
		if len(all) == 0 {
			return "", nil
		}
		either = append(either, "("+strings.Join(all, " and ")+")")
	}
	if len(either) == 0 {
		either = []string{"1 = 0"}
	}
	return "(" + strings.Join(either, " or ") + ")", values
}

// pairs returns hosts with their customers as JSON.
func pairs(hosts map[string]string) string {
	list := make([][2]string, 0, len(hosts))
	for host, customer := range hosts {
		list = append(list, [2]string{host, customer})
	}
	text, _ := json.Marshal(list) // texts: no error is possible
	return string(text)
}

// like returns the term for a glob of runbooks, with its value.
func like(glob string, sqlite bool) (term, value string) {
	switch {
	case !strings.ContainsAny(glob, "*?"):
		return "runbook = ?", glob
	case sqlite:
		return "+runbook glob ?", strings.ReplaceAll(glob, "[", "[[]")
	}
	return `runbook like ? escape '!'`,
		strings.NewReplacer("!", "!!", "%", "!%", "_", "!_", "*", "%", "?", "_").Replace(glob)
}
