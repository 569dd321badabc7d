package manifest

import (
	"errors"

	"muster/fleet"
	"muster/notify"
	"muster/windows"
)

func readNotify(lists []windows.File, _ Input) (out []Entry, err error) {
	var wrong []error
	for _, f := range lists {
		list, err := notify.ParseRules(fleet.Source{Name: f.Name, Data: []byte(f.Content)})
		if err != nil {
			wrong = append(wrong, mistakesOf(err)...)
		}
		for _, r := range list {
			out = append(out, OfNotify(r))
		}
	}
	return out, errors.Join(wrong...)
}

// OfNotify returns a rule of notifications as an entry.
func OfNotify(r notify.Rule) Entry {
	return Entry{Kind: Notify, Name: r.Name, Customer: r.Customer(), Value: r}
}

func notifyDifferences(is, was Entry) []string {
	old, known := was.Value.(notify.Rule)
	if !known {
		return []string{unreadable}
	}
	return is.Value.(notify.Rule).Differences(old)
}
