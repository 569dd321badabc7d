package jobs

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"muster/internal/wording"
)

// The parts of what people have agreed, as history keeps them for a Redis that loses them.
const (
	AgreedWindows   = "windows"   // the timetable: windows, freezes, approvals
	AgreedSchedules = "schedules" // what runs when
	AgreedHalt      = "halt"      // the halt of everything
	AgreedPauses    = "pauses"    // tasks, customers and zones that are paused
	AgreedDrained   = "drained"   // hosts that selections leave out
)

// AgreedParts lists the parts.
func AgreedParts() []string {
	return []string{AgreedWindows, AgreedSchedules, AgreedHalt, AgreedPauses, AgreedDrained}
}

// AgreedPart is one part as it was at an instant: the fields of its key in the hub. Mark grows with
// each change of windows, schedules and drained hosts; orders have numbers of their own.
type AgreedPart struct {
	Part   string            `json:"part"`
	Mark   int64             `json:"mark"`
	Fields map[string]string `json:"fields"`
	At     Time              `json:"at"` // when it was kept
}

// LostIn tells whether a Redis that has now for this part has forgotten something of it.
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

// number is the one that an order begins with; 0: there is none.
func number(text string) int64 {
	first, _, _ := strings.Cut(text, " ")
	n, _ := strconv.ParseInt(first, 10, 64)
	return n
}

// orderOn tells whether an order, "number on|off words", pauses something.
func orderOn(text string) bool {
	words := strings.SplitN(text, " ", 3)
	return len(words) > 1 && words[1] == "on"
}

// Words say what is in a part, for people; empty: nothing.
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

// count returns how many there are; empty if there are none.
func count(n int, what string) string {
	if n == 0 {
		return ""
	}
	return wording.Count(n, what)
}

// AgreedLost says that Redis has forgotten what was agreed. Nothing starts until a person has
// restored it, or said that nothing shall come back.
type AgreedLost struct {
	Since Time   `json:"since"` // not set: nothing was lost
	Note  string `json:"note"`
}
