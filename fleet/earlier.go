package fleet

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// earlierPrefix begins an operand that means hosts of an earlier task. No host
// name has a colon.
const earlierPrefix = "task:"

// Earlier means hosts of an earlier task by how their jobs ended there. Whoever
// knows tasks finds out which hosts these are; see Selector.Resolve.
//
//	task:0wcy7y2fb2/failed       failed there
//	task:0wcy7y2fb2/!succeeded   ended there, and in another way
//	task:0wcy7y2fb2              all hosts of it
type Earlier struct {
	Task    string
	Outcome string // empty: however it went
	Not     bool   // those that ended in another way
}

// String is e as it stands in a selector.
func (e Earlier) String() string {
	text := earlierPrefix + e.Task
	if e.Outcome != "" {
		text += "/"
	}
	if e.Not {
		text += "!"
	}
	return text + e.Outcome
}

// Earlier lists what a selector means of earlier tasks, each once.
func (s Selector) Earlier() []Earlier {
	seen := map[Earlier]bool{}
	for _, o := range flat(s.terms) {
		if e, ok := o.(Earlier); ok {
			seen[e] = true
		}
	}
	return slices.SortedFunc(maps.Keys(seen), func(a, b Earlier) int {
		return cmp.Compare(a.String(), b.String())
	})
}

// Resolve returns the selector with the names of the hosts that it means of
// earlier tasks.
func (s Selector) Resolve(found map[Earlier][]string) Selector {
	s.found = found
	return s
}

func parseEarlier(text string) (operand, error) {
	const want = "want task:ID or task:ID/OUTCOME, such as task:0wcy7y2fb2/failed"
	id, outcome, slash := strings.Cut(text[len(earlierPrefix):], "/")
	outcome, not := strings.CutPrefix(outcome, "!")
	e := Earlier{Task: id, Outcome: outcome, Not: not}
	if err := CheckName(id); err != nil {
		return nil, misreadAt(len(earlierPrefix), "%q: the id of the task: %w; %s", abbreviate(text), err,
			want)
	}
	if slash && (outcome == "" || strings.Trim(outcome, "abcdefghijklmnopqrstuvwxyz_") != "") {
		return nil, misreadAt(len(earlierPrefix)+len(id)+1, "%q: %q is not how a job ends: %s",
			abbreviate(text), abbreviate(outcome), want)
	}
	return e, nil
}

func (e Earlier) cost() int { return 0 }

func (e Earlier) mark(s *search, into hostSet) error {
	names, known := s.earlier[e]
	if !known {
		return fmt.Errorf("%s: %w", e, errUnresolved)
	}
	for _, name := range names {
		if i, ok := s.inventory.index[name]; ok {
			into.add(i)
		} else if !slices.Contains(s.gone, name) {
			s.gone = append(s.gone, name)
		}
	}
	return nil
}

var errUnresolved = errors.New("only a server knows the hosts of tasks")
