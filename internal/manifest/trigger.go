package manifest

import (
	"errors"
	"fmt"

	"muster/fleet"
	"muster/triggers"
	"muster/windows"
)

func readTriggers(lists []windows.File, _ Input) (out []Entry, err error) {
	var wrong []error
	for _, f := range lists {
		set, err := triggers.Parse(fleet.Source{Name: f.Name, Data: []byte(f.Content)})
		if err != nil {
			wrong = append(wrong, mistakesOf(err)...)
			continue
		}
		for _, t := range set.All() {
			wrong = append(wrong, local(t)...)
			out = append(out, OfTrigger(t))
		}
	}
	return out, errors.Join(wrong...)
}

// local returns the mistakes of a trigger that only one in a file of a server may make: whoever
// applies it must not read the files of servers by it.
func local(t triggers.Trigger) (wrong []error) {
	for _, a := range t.Work.Args {
		if a.File != "" {
			wrong = append(wrong, mistake{t.File, a.Line, fmt.Sprintf("argument %s is a file of the "+
				"server, which only a trigger in the file of server.triggers may read: bind a field of the "+
				"event, or name a stored content as sha256:…", fleet.Word(a.Name))})
		}
	}
	return wrong
}

// OfTrigger returns a trigger as an entry.
func OfTrigger(t triggers.Trigger) Entry {
	return Entry{Kind: Trigger, Name: t.Name, Customer: t.Customer(), Value: t}
}

func triggerDifferences(is, was Entry) []string {
	old, known := was.Value.(triggers.Trigger)
	if !known {
		return []string{unreadable}
	}
	return is.Value.(triggers.Trigger).Differences(old)
}

// unreadable is the difference to an entry that this server cannot read.
const unreadable = "what is in force cannot be read"

// mistakesOf takes the mistakes of a file apart.
func mistakesOf(err error) (list []error) {
	if many, is := err.(fleet.Mistakes); is {
		for _, m := range many {
			list = append(list, mistake{m.File, m.Line, m.Text})
		}
		return list
	}
	return []error{err}
}
