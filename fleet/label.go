package fleet

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"muster/internal/wording"
)

// builtinLabels returns the fields of a host that label selectors see as labels.
func builtinLabels() []string { return []string{"name", "customer", "zone", "group"} }

// hostLabels presents the fields and labels of a host to a label selector. A host does
// not have the label of an empty field.
type hostLabels Host

// Lookup returns the value of a label and reports whether the host has it.
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

// labelTerms are requirements, all of which a host must meet.
type labelTerms []labels.Requirement

func parseLabelTerms(text string) (labelTerms, error) {
	switch {
	case strings.TrimSpace(text) == "": // the library would select everything
		return nil, errors.New("braces are empty: want label terms in them, as in {role=fw}")
	case len(text) > labelTextMax:
		return nil, fmt.Errorf("label terms of %d bytes: at most %d", len(text), labelTextMax)
	}
	if i := strings.IndexAny(text, "[]*?&^{}"); i >= 0 {
		return nil, misreadAt(i, "%q: a label selector has no ranges, globs, '&' or '^'; "+
			"beside host names, label terms stand in braces, as in fw[1-3]&{role=fw} or all!fw*",
			abbreviate(text))
	}
	terms, err := labels.ParseToRequirements(text)
	if err != nil {
		return nil, misreadAt(badTerm(text), "%s", labelErrorText(err))
	}
	if len(terms) == 0 {
		return nil, fmt.Errorf("%q has no label terms", abbreviate(text))
	}
	return terms, nil
}

// badTerm returns the position of the first invalid term, because the error of the library
// does not contain it.
func badTerm(text string) int {
	for at := 0; at <= len(text); {
		end := at + termEnd(text[at:])
		this := text[at:end]
		blank := len(this) - len(strings.TrimLeft(this, " "))
		terms, err := labels.ParseToRequirements(this)
		if err != nil || len(terms) == 0 {
			return min(at+blank, len(text)-1)
		}
		at = end + 1
	}
	return 0
}

// termEnd returns the index of the first ',' outside of parentheses.
func termEnd(text string) int {
	inside := false
	for i := range len(text) {
		switch c := text[i]; {
		case c == '(':
			inside = true
		case c == ')':
			inside = false
		case c == ',' && !inside:
			return i
		}
	}
	return len(text)
}

// labelErrorText removes from the library's error the parts that help nobody here: the
// path of an API field, and the regular expression behind the rule.
func labelErrorText(err error) string {
	text := strings.TrimPrefix(err.Error(), "unable to parse requirement: ")
	text = strings.TrimPrefix(text, "<nil>: ")
	text, _, _ = strings.Cut(text, " (e.g.")
	return "bad label term: " + strings.ToValidUTF8(wording.ClipTo(text, 400), "")
}

func (t labelTerms) cost() int { return len(t) }

func (t labelTerms) mention(label string) bool {
	return slices.ContainsFunc(t, func(r labels.Requirement) bool { return r.Key() == label })
}

func (t labelTerms) mark(s *search, into hostSet) error {
	v := s.inventory
	if err := t.checkKeys(v); err != nil {
		return err
	}
	all := v.labelIndex().meeting(&t[0])
	for i := range t[1:] {
		all.and(v.labelIndex().meeting(&t[i+1]))
	}
	into.or(all)
	return nil
}

// checkKeys refuses host names that stand where labels belong: role=fw,!fw007 would
// exclude nothing, because no host has a label fw007.
func (t labelTerms) checkKeys(v *Inventory) error {
	for i := range t {
		key := t[i].Key()
		_, isHost := v.index[key]
		if (isHost || key == everyHost) && v.labelIndex().having(key) == nil {
			return fmt.Errorf("%q is a host name, not a label: beside host names, "+
				"label terms stand in braces, as in {role=fw}!%s", key, key)
		}
	}
	return nil
}

// meeting returns a new set of the hosts that meet a requirement.
func (x *labelIndex) meeting(r *labels.Requirement) hostSet {
	met := newHostSet(len(x.names))
	key := r.Key()
	of := x.byKey[key]
	if key == nameLabel {
		of = x.named(r.ValuesUnsorted())
	}
	switch r.Operator() {
	case selection.In, selection.Equals, selection.DoubleEquals:
		of.mark(r.ValuesUnsorted(), met)
		return met
	case selection.NotIn, selection.NotEquals, selection.DoesNotExist:
		met = x.everybody()
		if r.Operator() == selection.DoesNotExist {
			if of != nil {
				met.less(of.has)
			}
			return met
		}
		not := newHostSet(len(x.names))
		of.mark(r.ValuesUnsorted(), not)
		met.less(not)
		return met
	case selection.Exists:
		if of != nil {
			met.or(of.has)
		}
		return met
	}
	// Only the numeric operators are left: compare once for each value that exists.
	if of != nil {
		for value, hosts := range of.hosts {
			if r.Matches(labels.Set{key: value}) {
				for _, i := range hosts {
					met.add(int(i))
				}
			}
		}
	}
	return met
}
