package notify

import (
	"fmt"
	"slices"
	"strings"

	"muster/internal/wording"
	"muster/scripts"
)

// With returns rules with some more, whose names differ from those that are there. It leaves out
// the ones that cannot work, and says why.
func (r *Rules) With(more []Rule) (*Rules, []string) {
	out, wrong := &Rules{}, []string(nil)
	if r != nil {
		out.list, out.receivers = slices.Clone(r.list), r.receivers
	}
	for _, one := range more {
		i := slices.IndexFunc(out.list, func(x Rule) bool { return x.Name == one.Name })
		lost := out.Lost(one)
		switch {
		case i >= 0:
			wrong = append(wrong, fmt.Sprintf("rule %s was applied, and stands in %s, too: the file counts",
				one.Name, out.list[i].Place))
		case len(lost) > 0:
			wrong = append(wrong, fmt.Sprintf("rule %s: %s", one.Name, lost[0]))
		default:
			out.list = append(out.list, one)
		}
	}
	return out, wrong
}

// Lost says which receivers of a rule are not there.
func (r *Rules) Lost(one Rule) (wrong []string) {
	var known []string
	if r != nil {
		for _, x := range r.receivers {
			known = append(known, x.Name)
		}
	}
	for _, name := range one.To {
		switch {
		case slices.Contains(known, name):
		case len(known) == 0:
			wrong = append(wrong, "there is no receiver "+wording.Quote(name)+
				": server.notify names the file that has the receivers")
		default:
			wrong = append(wrong, "there is no receiver "+wording.Quote(name)+": "+
				scripts.Instead(name, known))
		}
	}
	return wrong
}

// Customer returns the customer to whom a rule belongs: it says so if it tells nothing of others.
// Empty: it belongs to nobody.
func (r Rule) Customer() string {
	unknown := func(w What) bool { return !slices.Contains(ofCustomers, w) }
	if slices.ContainsFunc(r.Whats, unknown) || len(r.Customers) != 1 ||
		strings.ContainsAny(r.Customers[0], "*?[\\") {
		return ""
	}
	return r.Customers[0]
}

// Differences names the values in which a rule differs from another one, as key: old → new.
func (r Rule) Differences(was Rule) []string {
	var out []string
	old := was.values()
	for i, v := range r.values() {
		if v[1] != old[i][1] {
			out = append(out, fmt.Sprintf("%s: %s → %s", v[0], orNone(old[i][1]), orNone(v[1])))
		}
	}
	return out
}

func orNone(text string) string {
	if text == "" {
		return "(none)"
	}
	return wording.OneLine(text, 400)
}

// values returns each key of a rule with what it says, in one form.
func (r Rule) values() [][2]string {
	return [][2]string{{"name", r.Name}, {"what", wording.Join(r.Whats, ", ")},
		{"outcomes", wording.Join(r.Outcomes, ", ")}, {"customers", strings.Join(r.Customers, ", ")},
		{"runbooks", strings.Join(r.Runbooks, ", ")}, {"zones", strings.Join(r.Zones, ", ")},
		{"group", string(r.Group)}, {"wait", r.Wait.String()}, {"cleared", fmt.Sprint(r.Cleared)},
		{"on_change", fmt.Sprint(r.OnChange)}, {"to", strings.Join(r.To, ", ")}}
}
