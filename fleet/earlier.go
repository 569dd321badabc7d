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

// Earlier selects hosts of an earlier task by the outcomes of their jobs. The caller, who
// knows tasks, looks up these hosts and passes them to Selector.Resolve.
//
//	task:0wcy7y2fb2/failed       hosts whose job failed in that task
//	task:0wcy7y2fb2/!succeeded   hosts whose job ended with another outcome
//	task:0wcy7y2fb2              all hosts of that task
type Earlier struct {
	Task    string
	Outcome string // empty: any outcome, or none yet
	Not     bool   // select jobs that ended with another outcome
}

// String returns e in the syntax of selectors.
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

// Earlier returns the references to earlier tasks in the selector, each once.
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

// Resolve returns a copy of the selector that knows which hosts its references to earlier
// tasks stand for.
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
		return nil, misreadAt(len(earlierPrefix)+len(id)+1, "%q: %q is not an outcome of a job: %s",
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
