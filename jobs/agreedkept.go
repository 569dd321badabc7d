package jobs

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"muster/internal/wording"
)

// The parts of the operators' decisions that history keeps, in case Redis loses them.
const (
	AgreedWindows   = "windows"   // the timetable: windows, freezes, approvals
	AgreedSchedules = "schedules" // the schedules of recurring tasks
	AgreedHalt      = "halt"      // the halt of all work
	AgreedPauses    = "pauses"    // pauses of tasks, customers and zones
	AgreedDrained   = "drained"   // hosts that selections leave out
)

// AgreedParts lists the parts.
func AgreedParts() []string {
	return []string{AgreedWindows, AgreedSchedules, AgreedHalt, AgreedPauses, AgreedDrained}
}

// AgreedPart is one part as it was at an instant: the fields of its key in the hub. Mark grows
// with each change of windows, schedules and drained hosts; orders have numbers of their own.
type AgreedPart struct {
	Part   string            `json:"part"`
	Mark   int64             `json:"mark"`
	Fields map[string]string `json:"fields"`
	At     Time              `json:"at"` // when history stored it
}

// LostIn reports whether a Redis that holds now for this part has lost some of p.
func (p AgreedPart) LostIn(now AgreedPart) bool {
	switch p.Part {
	case AgreedHalt:
		return p.Fields["state"] == "on" && number(now.Fields["id"]) < number(p.Fields["id"])
	case AgreedPauses:
		for name, text := range p.Fields {
			if orderOn(text) && number(now.Fields[name]) < number(text) {
				return true
			}
		}
		return false
	}
	return now.Mark < p.Mark
}

// number returns the number at the beginning of an order; 0 if there is none.
func number(text string) int64 {
	first, _, _ := strings.Cut(text, " ")
	n, _ := strconv.ParseInt(first, 10, 64)
	return n
}

// orderOn reports whether an order, "number on|off words", pauses something.
func orderOn(text string) bool {
	words := strings.SplitN(text, " ", 3)
	return len(words) > 1 && words[1] == "on"
}

// Words describes the content of a part for people; empty if it has none.
func (p AgreedPart) Words() string {
	switch p.Part {
	case AgreedWindows:
		var table struct {
			Files, Freezes, Approvals []json.RawMessage
		}
		if p.Mark == 0 || json.Unmarshal([]byte(p.Fields["table"]), &table) != nil {
			return ""
		}
		return fmt.Sprintf("version %d: %d files, %d freezes ordered by hand, %d approvals", p.Mark,
			len(table.Files), len(table.Freezes), len(table.Approvals))
	case AgreedHalt:
		if p.Fields["state"] != "on" {
			return ""
		}
		return "everything is halted: " + p.Fields["note"]
	case AgreedPauses:
		n := 0
		for _, text := range p.Fields {
			if orderOn(text) {
				n++
			}
		}
		return count(n, "pause")
	case AgreedDrained:
		return count(len(p.Fields), "drained host")
	}
	return count(len(p.Fields), "schedule")
}

// count returns a number with its noun; empty if n is 0.
func count(n int, what string) string {
	if n == 0 {
		return ""
	}
	return wording.Count(n, what)
}

// AgreedLost reports that Redis has lost some of the operators' decisions. No job starts until a
// person has restored them, or has decided not to.
type AgreedLost struct {
	Since Time   `json:"since"` // not set: nothing was lost
	Note  string `json:"note"`
}
