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
			text, value := among(p.Hosts, sqlite)
			all, values = append(all, text), append(values, value)
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

// between stands between two pairs in a list for PostgreSQL. No name has it.
const between = "\x1f"

// among returns the term that a job is of one of these hosts with its customer, with its value. For
// PostgreSQL it is a condition of each row, not a table to join: it would sort all rows that join.
func among(hosts map[string]string, sqlite bool) (term, value string) {
	list, texts := make([][2]string, 0, len(hosts)), make([]string, 0, len(hosts))
	for host, customer := range hosts {
		list = append(list, [2]string{host, customer})
		texts = append(texts, customer+"/"+host)
	}
	if !sqlite {
		return "customer || '/' || host = any(string_to_array(?, chr(31)))",
			strings.Join(texts, between)
	}
	text, _ := json.Marshal(list) // texts: no error is possible
	return "(+host, +customer) in (select value->>0, value->>1 from json_each(?))", string(text)
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
