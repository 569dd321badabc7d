package dnssec

import (
	"strconv"
	"strings"
	"time"

	"muster/api"
	"muster/internal/lazyregexp"
	"muster/internal/wording"
	"muster/jobs"
)

// The output of a host is hostile: these lines are looked for in it, so many at most, and all else
// is ignored.
const linesMost = 40

// linesRead bounds the lines of an output that are looked at.
const linesRead = 2000

// linesOf returns the lines of an output that may say something, so many at most.
func linesOf(said string) (list []string) {
	for line := range strings.Lines(said) {
		if line = strings.TrimSuffix(line, "\n"); line == "" {
			continue
		}
		if list = append(list, line); len(list) == linesRead {
			break
		}
	}
	return list
}

var (
	keyLine = lazyregexp.New(`^key +([0-9]{1,5}) +([ZKC]SK) ([A-Za-z0-9-]{1,30}) ` +
		`(new|ready|active|old|gone)$`)
	factLine   = lazyregexp.New(`^(DS|server|zsk|ksk) +(.+)$`)
	pinLine    = lazyregexp.New(`^(old|new|ds)=(.+)$`)
	momentLine = lazyregexp.New(`^  ([0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:]{8} UTC|then|` +
		`\+[0-9]{1,12} s)  +(.+)$`)
	stepLine = lazyregexp.New(`^== (step [0-9]+ of [0-9]+: .+) ==$`)
	lastLine = lazyregexp.New(`^(trouble|refused|waiting): .+$`)
)

// statusOf reads what a job of dnssec-status said.
func statusOf(j api.DNSSECJob, said string) *api.DNSSECStatus {
	s := &api.DNSSECStatus{DNSSECJob: j, Keys: []api.DNSSECKey{}, DS: []string{}, Servers: []string{},
		Policy: []string{}}
	begins := func(line string) {
		if !stepLine().MatchString(line) {
			return
		}
		// A step that runs again says all of it again.
		s.Keys, s.DS, s.Servers, s.Policy = s.Keys[:0], s.DS[:0], s.Servers[:0], s.Policy[:0]
	}
	for _, line := range linesOf(said) {
		begins(line)
		if m := keyLine().FindStringSubmatch(line); m != nil && len(s.Keys) < linesMost {
			tag, _ := strconv.Atoi(m[1]) // five digits at most
			s.Keys = append(s.Keys, api.DNSSECKey{Tag: tag, Role: m[2], Algorithm: m[3], Phase: m[4]})
			continue
		}
		if m := factLine().FindStringSubmatch(line); m != nil {
			switch text := oneLine(m[2]); m[1] {
			case "DS":
				s.DS = bounded(s.DS, text)
			case "server":
				s.Servers = bounded(s.Servers, text)
			default:
				s.Policy = bounded(s.Policy, m[1]+": "+text)
			}
		}
	}
	s.Said = wordOf(j, said)
	return s
}

// rollOf reads what a job of dnssec said.
func rollOf(j api.DNSSECJob, kind, said string) *api.DNSSECRoll {
	r := &api.DNSSECRoll{DNSSECJob: j, Kind: kind, Timeline: []api.DNSSECMoment{}}
	for _, line := range linesOf(said) {
		if m := stepLine().FindStringSubmatch(line); m != nil {
			r.Step = oneLine(m[1])
		} else if m := pinLine().FindStringSubmatch(line); m != nil {
			switch text := oneLine(m[2]); m[1] {
			case "old":
				r.Old = text
			case "new":
				r.New = text
			case "ds":
				r.DS = strings.TrimPrefix(text, "none")
			}
		} else if m := momentLine().FindStringSubmatch(line); m != nil && len(r.Timeline) < linesMost {
			r.Timeline = append(r.Timeline, momentOf(m[1], oneLine(m[2])))
		} else if strings.HasPrefix(line, "timeline ") {
			r.Timeline = r.Timeline[:0] // it was looked at again
		}
	}
	r.Said = wordOf(j, said)
	return r
}

// momentOf reads a line of a timeline.
func momentOf(when, what string) api.DNSSECMoment {
	m := api.DNSSECMoment{What: what}
	at, err := time.Parse("2006-01-02 15:04:05 MST", when)
	if err == nil {
		m.At = jobs.Time{Time: at.UTC()}
	} else {
		m.After = when
	}
	return m
}

// oneLine returns a text of a host on one line, within bounds. It is as hostile as before.
func oneLine(text string) string { return wording.OneLine(text, 300) }

// bounded adds a text to a list that has room for it.
func bounded(list []string, text string) []string {
	if len(list) < linesMost {
		list = append(list, text)
	}
	return list
}

// wordOf returns the last word of a job: the last line that says what is wrong or awaited; of a
// job that succeeded its last line.
func wordOf(j api.DNSSECJob, said string) string {
	word, last := "", ""
	for line := range strings.Lines(said) {
		line = strings.TrimSpace(line)
		if lastLine().MatchString(line) {
			word = line
		}
		if line != "" {
			last = line
		}
	}
	switch {
	case j.Outcome == jobs.Succeeded:
		return oneLine(last)
	case word != "":
		return oneLine(word)
	}
	return j.Said
}
