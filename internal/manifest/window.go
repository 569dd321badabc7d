package manifest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"muster/windows"
)

func readWindows(lists []windows.File, in Input) ([]Entry, error) {
	agreed, err := windows.Parse(lists, in.Attached)
	var out []Entry
	for _, w := range agreed.Windows {
		out = append(out, OfWindow(w))
	}
	return out, err
}

// OfWindow returns a window as an entry.
func OfWindow(w windows.Window) Entry {
	return Entry{Kind: Window, Name: w.Name, Customer: w.Owner(), Value: w}
}

func readFreezes(lists []windows.File, in Input) ([]Entry, error) {
	agreed, err := windows.Parse(lists, in.Attached)
	var out []Entry
	for _, f := range agreed.Freezes {
		out = append(out, OfFreeze(f))
	}
	return out, err
}

// OfFreeze returns a freeze as an entry.
func OfFreeze(f windows.Freeze) Entry {
	return Entry{Kind: Freeze, Name: f.Name, Customer: f.Owner(), Value: f}
}

func windowDifferences(is, was Entry) []string {
	a, b := is.Value.(windows.Window), was.Value.(windows.Window)
	out := compare(windowValues(a), windowValues(b))
	if len(out) == 0 && a.Hash() != b.Hash() {
		out = []string{"its times differ"}
	}
	return out
}

func freezeDifferences(is, was Entry) []string {
	return compare(freezeValues(is.Value.(windows.Freeze)), freezeValues(was.Value.(windows.Freeze)))
}

// A value is one key of an entry with what it says.
type value struct{ key, text string }

// compare names the values that differ.
func compare(is, was []value) []string {
	var out []string
	for i, v := range is {
		if old := was[i].text; old != v.text {
			out = append(out, fmt.Sprintf("%s: %s → %s", v.key, orNone(old), orNone(v.text)))
		}
	}
	return out
}

func orNone(text string) string {
	if text == "" {
		return "(none)"
	}
	return text
}

func windowValues(w windows.Window) []value {
	var starts, dates, except []string
	for _, r := range w.Times.Recurrences {
		starts = append(starts, r.String())
	}
	for _, d := range w.Times.Dates {
		dates = append(dates, d.String())
	}
	for _, d := range w.Times.Except {
		except = append(except, d.String())
	}
	approval, end := "none", ""
	if w.Approval {
		approval = "required"
	}
	if w.End > 0 {
		end = fmt.Sprintf("%02d:%02d:%02d", int(w.End.Hours()), int(w.End.Minutes())%60,
			int(w.End.Seconds())%60)
	}
	return []value{{"for", w.Whose()}, {"zone", w.Zone.String()},
		{"start", strings.Join(starts, ", ")}, {"dates", strings.Join(dates, ", ")},
		{"ics", eventsOf(w.Times.Events)}, {"except", strings.Join(except, ", ")},
		{"length", spanOf(int64(w.Length), w.Length)}, {"end", end},
		{"cutoff", spanOf(int64(w.Cutoff), w.Cutoff)}, {"from", wallOf(w.From)},
		{"until", wallOf(w.Until)}, {"gap", choiceOf(w.Gap == windows.GapSkip, "skip", "first")},
		{"fold", choiceOf(w.Fold == windows.FoldSecond, "second", "first")},
		{"runbooks", strings.Join(w.Runbooks, ", ")},
		{"at_end", string(w.AtEnd)}, {"on_change", string(w.OnChange)}, {"approval", approval}}
}

func freezeValues(f windows.Freeze) []value {
	return []value{{"for", f.Whose()}, {"zone", f.Zone.String()}, {"from", wallOf(f.From)},
		{"until", wallOf(f.Until)}, {"ics", eventsOf(f.Events)}, {"reason", f.Reason}}
}

func wallOf(w windows.Wall) string {
	if w == 0 {
		return ""
	}
	return w.String()
}

func spanOf(n int64, text fmt.Stringer) string {
	if n == 0 {
		return ""
	}
	return text.String()
}

func choiceOf(is bool, yes, no string) string {
	if is {
		return yes
	}
	return no
}

// eventsOf identifies the events of an iCalendar file.
func eventsOf(list []windows.Event) string {
	if len(list) == 0 {
		return ""
	}
	text, err := json.Marshal(list)
	if err != nil {
		return fmt.Sprintf("%d events", len(list))
	}
	sum := sha256.Sum256(text)
	return fmt.Sprintf("%d events (%s)", len(list), hex.EncodeToString(sum[:4]))
}
