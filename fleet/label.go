package fleet

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
)

// builtinLabels are the fields of a host that a label selector knows as labels.
func builtinLabels() []string { return []string{"name", "customer", "zone", "group"} }

// hostLabels shows the fields and labels of a host to a label selector. An empty
// field is a label that the host has not.
type hostLabels Host

// Lookup returns the value of a label, and whether the host has it.
func (h *hostLabels) Lookup(key string) (string, bool) {
	value := ""
	switch key {
	case "name":
		value = h.Name
	case "customer":
		value = h.Customer
	case "zone":
		value = h.Zone
	case "group":
		value = h.Group
	default:
		value, ok := h.Labels[key]
		return value, ok
	}
	return value, value != ""
}

// Has tells whether the host has a label.
func (h *hostLabels) Has(key string) bool {
	_, ok := h.Lookup(key)
	return ok
}

// Get returns the value of a label, empty if the host has it not.
func (h *hostLabels) Get(key string) string {
	value, _ := h.Lookup(key)
	return value
}

// labelTerms are requirements that must all hold.
type labelTerms []labels.Requirement

func parseLabelTerms(text string) (labelTerms, error) {
	text = strings.TrimSpace(text)
	switch {
	case text == "": // which the library takes for everything
		return nil, errors.New("braces are empty: want label terms in them, as in {role=fw}")
	case len(text) > labelTextMax:
		return nil, fmt.Errorf("label terms of %d bytes: at most %d", len(text), labelTextMax)
	case strings.ContainsAny(text, "[]*?&{}"):
		return nil, fmt.Errorf("%q: a label selector has no ranges, globs or '&'; "+
			"beside host names, label terms stand in braces, as in fw[1-3]&{role=fw} or all!fw*",
			abbreviate(text))
	}
	terms, err := labels.ParseToRequirements(text)
	if err != nil {
		return nil, errors.New(labelErrorText(err))
	}
	if len(terms) == 0 {
		return nil, fmt.Errorf("%q has no label terms", abbreviate(text))
	}
	return terms, nil
}

// labelErrorText leaves out of the library's words what helps nobody here: the
// path of an API field, and the regular expression behind the rule.
func labelErrorText(err error) string {
	text := strings.TrimPrefix(err.Error(), "unable to parse requirement: ")
	text = strings.TrimPrefix(text, "<nil>: ")
	text, _, _ = strings.Cut(text, " (e.g.")
	if len(text) > 400 {
		text = text[:400] + "…"
	}
	return "bad label term: " + strings.ToValidUTF8(text, "")
}

// cost counts values too: they are compared one by one, 16 of them in about the
// time in which a term is looked up.
func (t labelTerms) cost() int {
	cost := len(t)
	for i := range t {
		cost += len(t[i].ValuesUnsorted()) / 16
	}
	return cost
}

func (t labelTerms) find(v *Inventory, _ *lostNames) ([]int, error) {
	if err := t.checkKeys(v); err != nil {
		return nil, err
	}
	var places []int
	for i := range v.hosts {
		if t.match(&v.hosts[i]) {
			places = append(places, i)
		}
	}
	return places, nil
}

func (t labelTerms) match(h *Host) bool {
	for i := range t {
		if !t[i].Matches((*hostLabels)(h)) {
			return false
		}
	}
	return true
}

// checkKeys finds hosts that are given as labels: role=fw,!fw007 would leave
// out nothing at all, as no host has a label fw007.
func (t labelTerms) checkKeys(v *Inventory) error {
	for i := range t {
		key := t[i].Key()
		_, isHost := v.index[key]
		if (isHost || key == everyHost) && !v.hasLabel(key) {
			return fmt.Errorf("%q is a host name, not a label: beside host names, "+
				"label terms stand in braces, as in {role=fw}!%s", key, key)
		}
	}
	return nil
}

func (v *Inventory) hasLabel(key string) bool {
	return slices.ContainsFunc(v.hosts, func(h Host) bool { return (*hostLabels)(&h).Has(key) })
}
