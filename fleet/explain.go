package fleet

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/selection"

	"muster/internal/wording"
)

// explainEmpty returns the reason why a selector picks no host.
func explainEmpty(s *search, sel Selector) string {
	v := s.inventory
	switch {
	case len(v.hosts) == 0:
		return "the inventory has no hosts"
	case len(sel.terms) == 0:
		return "it is empty: name hosts, or say all"
	}
	var reasons []string
	for _, o := range flat(sel.terms) {
		switch what := o.(type) {
		case labelTerms:
			reasons = append(reasons, v.labelIndex().unknown(what)...)
		case Earlier:
			if len(s.earlier[what]) == 0 {
				reasons = append(reasons, what.none())
			}
		}
	}
	if len(s.gone) > 0 {
		reasons = append(reasons, "no longer in the inventory: "+wording.ClipList(Fold(s.gone)))
	}
	if len(reasons) == 0 {
		return "no host meets all its terms together"
	}
	return strings.Join(slices.Compact(reasons), "; ")
}

// none explains that the earlier task has no such host.
func (e Earlier) none() string {
	switch {
	case e.Outcome == "":
		return fmt.Sprintf("nothing is known any longer about the hosts of task %s", e.Task)
	case e.Not:
		return fmt.Sprintf("no job of task %s is known to have ended other than %s; how a job ended is "+
			"kept for a day", e.Task, e.Outcome)
	}
	return fmt.Sprintf("no job of task %s is known to have ended %s; how a job ended is kept for a "+
		"day", e.Task, e.Outcome)
}

// unknown returns a hint for each label or value in the terms that no host has, with
// similar ones. It skips terms that require an absence, because an unknown label
// fulfils those.
func (x *labelIndex) unknown(terms labelTerms) []string {
	var reasons []string
	for i := range terms {
		t := &terms[i]
		switch t.Operator() {
		case selection.DoesNotExist, selection.NotIn, selection.NotEquals:
			continue
		}
		values, known := x.values[t.Key()]
		if fact, is := strings.CutPrefix(t.Key(), FactPrefix); is && !known {
			reasons = append(reasons, unsaid(fact))
			continue
		}
		if !known {
			reasons = append(reasons, fmt.Sprintf("no host has the label %s%s", t.Key(),
				orThere("", t.Key(), x.keys)))
			continue
		}
		switch t.Operator() {
		case selection.In, selection.Equals, selection.DoubleEquals:
			for _, value := range t.ValuesUnsorted() {
				if _, found := slices.BinarySearch(values, value); !found && len(reasons) < hintsMax {
					reasons = append(reasons, fmt.Sprintf("no host has %s=%s%s", t.Key(), value,
						orThere(t.Key()+"=", value, values)))
				}
			}
		}
	}
	return reasons
}

// unsaid explains why no host has a fact.
func unsaid(fact string) string {
	if !slices.Contains(FactNames(), fact) {
		return fmt.Sprintf("there is no fact %s%s", fact, orThere("", fact, FactNames()))
	}
	return fmt.Sprintf("no host has reported %s%s yet: `muster facts gather SELECTOR` asks hosts",
		FactPrefix, fact)
}

// OrThere returns the end of a message that rejects a word: the words most similar to it, or
// else some of the words that would be accepted. Without words it returns "".
func OrThere(word string, words []string) string {
	if len(words) == 0 {
		return ""
	}
	return orThere("", word, words)
}

// orThere returns the end of a message that rejects a word: similar words, or else some
// of those that would be accepted, each behind the prefix.
func orThere(prefix, word string, words []string) string {
	near := wording.Nearby(word, words, 3)
	text := ", nearest: "
	if len(near) == 0 {
		text, near = ", there are: ", words[:min(5, len(words))]
	}
	for i, w := range near {
		if i > 0 {
			text += ", "
		}
		text += prefix + w
	}
	if len(near) == 5 && len(words) > 5 {
		text += ", …"
	}
	return text
}
