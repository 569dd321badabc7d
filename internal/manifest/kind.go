package manifest

import (
	"slices"

	"muster/internal/wording"
	"muster/windows"
)

// The kinds of entries.
const (
	Schedule = "schedule"
	Window   = "window"
	Freeze   = "freeze"
	Trigger  = "trigger"
	Notify   = "notify"
	Runbook  = "runbook"
)

// An Entry is one thing that is configured, as a file says it or as it is in force.
type Entry struct {
	Kind     string
	Name     string
	Customer string // to whom it belongs; empty: to none
	Place    string // file:line of its document; empty: it is in force
	Value    any    // such as windows.Entry, triggers.Trigger; nil: this muster cannot read it

	Document string // as its author wrote it, with its kind; empty: the server has it in another form
	File     string // file:line where servers read it by themselves; empty: nowhere
}

// BuiltIn is the File of an entry that every server has.
const BuiltIn = "built in"

// ID returns a text that no other entry has.
func (e Entry) ID() string { return ID(e.Kind, e.Name) }

// ID returns the text that identifies an entry.
func ID(kind, name string) string { return kind + "/" + name }

// A kind says how documents of a kind become entries.
type kind struct {
	word string
	list string // the key of the list of such entries in a file of their own; empty: each has a file
	each bool   // each document is read for itself

	// read returns the entries of files with lists, or all mistakes in them.
	read func(lists []windows.File, in Input) ([]Entry, error)

	// differences names the values in which an entry differs from another one: "key: old → new".
	differences func(is, was Entry) []string
}

// kinds has a row for each kind, in the order in which lists show them.
var kinds = []kind{
	{Runbook, "", true, readRunbooks, runbookDifferences},
	{Schedule, "schedules", false, readSchedules, scheduleDifferences},
	{Window, "windows", false, readWindows, windowDifferences},
	{Freeze, "freezes", false, readFreezes, freezeDifferences},
	{Trigger, "triggers", true, readTriggers, triggerDifferences},
	{Notify, "rules", true, readNotify, notifyDifferences},
}

// elsewhere says where people change what no apply changes.
var elsewhere = map[string]string{
	"access": "whoever may apply it could give himself every right, and servers must know whom to " +
		"believe while Redis is away: servers follow the file that server.access of muster.yaml names, " +
		"so change that file",
	"inventory": "servers follow the files, programs and URLs that inventory of muster.yaml names: " +
		"change those",
	"limit": "limits are in the inventory, which servers follow: change that file",
	"receiver": "receivers of notifications have programs and secrets of the server: change the " +
		"file that server.notify of muster.yaml names",
}

// Kinds returns the words for all kinds.
func Kinds() []string {
	var words []string
	for _, k := range kinds {
		words = append(words, k.word)
	}
	return words
}

func kindOf(word string) (kind, bool) {
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.word == word })
	if i < 0 {
		return kind{}, false
	}
	return kinds[i], true
}

// notAKind says what is wrong with the word for a kind.
func notAKind(word string) string {
	if where, known := elsewhere[word]; known {
		return "muster apply changes no " + word + ": " + where
	}
	text := "unknown kind " + wording.Quote(word) + ": want " + wording.Join(Kinds(), ", ")
	if near := wording.Nearest(word, Kinds()); near != "" {
		text += "; did you mean " + near + "?"
	}
	return text
}
