package fleet

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/selection"
)

// explainEmpty says why a selector picks nothing.
func explainEmpty(v *Inventory, sel Selector) string {
	switch {
	case len(v.hosts) == 0:
		return "the inventory has no hosts"
	case len(sel.terms) == 0:
		return "it is empty: name hosts, or say all"
	}
	var reasons []string
	facts := gather(v)
	for _, t := range sel.terms {
		if terms, ok := t.what.(labelTerms); ok {
			reasons = append(reasons, facts.unknown(terms)...)
		}
	}
	if len(reasons) == 0 {
		return "no host meets all of it together"
	}
	return strings.Join(slices.Compact(reasons), "; ")
}

// facts are the names of all hosts, their labels, and the values of each label,
// all sorted.
type facts struct {
	names  []string
	keys   []string
	values map[string][]string
}

func gather(v *Inventory) facts {
	f := facts{values: make(map[string][]string)}
	sets := map[string]map[string]bool{"name": {}}
	for i := range v.hosts {
		h := (*hostLabels)(&v.hosts[i])
		f.names = append(f.names, h.Name)
		for _, key := range builtinLabels()[1:] { // names are sorted and unique already
			if value, ok := h.Lookup(key); ok {
				addTo(sets, key, value)
			}
		}
		for key, value := range h.Labels {
			addTo(sets, key, value)
		}
	}
	for key, set := range sets {
		f.values[key] = sortedKeys(set)
	}
	f.values["name"] = f.names
	f.keys = sortedKeys(f.values)
	return f
}

func addTo(sets map[string]map[string]bool, key, value string) {
	set := sets[key]
	if set == nil {
		set = map[string]bool{}
		sets[key] = set
	}
	if !set[value] { // reading is cheaper, and most values repeat
		set[value] = true
	}
}

// unknown tells which labels and values of the terms no host has, and what
// comes near them. Terms that ask for an absence are never the reason.
func (f facts) unknown(terms labelTerms) []string {
	var reasons []string
	for i := range terms {
		t := &terms[i]
		switch t.Operator() {
		case selection.DoesNotExist, selection.NotIn, selection.NotEquals:
			continue
		}
		values, known := f.values[t.Key()]
		if !known {
			reasons = append(reasons, fmt.Sprintf("no host has the label %s%s", t.Key(),
				orThere("", t.Key(), f.keys)))
			continue
		}
		switch t.Operator() {
		case selection.In, selection.Equals, selection.DoubleEquals:
			for _, value := range t.ValuesUnsorted() {
				if !slices.Contains(values, value) && len(reasons) < 5 {
					reasons = append(reasons, fmt.Sprintf("no host has %s=%s%s", t.Key(), value,
						orThere(t.Key()+"=", value, values)))
				}
			}
		}
	}
	return reasons
}

// orThere is the end of a message: what comes near the word, or else what there
// is.
func orThere(prefix, word string, words []string) string {
	near := nearest(word, words, 3)
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

// termsFor finds label terms for a word that was used as a host name.
func (f facts) termsFor(word string) []string {
	var terms []string
	for _, key := range f.keys {
		switch {
		case key == word:
			terms = append(terms, "{"+key+"}")
		case key != "name" && slices.Contains(f.values[key], word):
			terms = append(terms, key+"="+word)
		}
	}
	return terms
}
