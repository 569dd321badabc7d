package sshsig

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"muster/internal/wording"
)

// limits are the options of a line.
type limits struct {
	namespaces    []string  // patterns; nil: all namespaces
	after, before time.Time // the first and the last second; zero: no limit
}

// outside returns the place of the first of the stops that is outside of quotes; the length of the
// text if there is none. It is not closed if a quote has no end.
func outside(text, stops string) (end int, closed bool) {
	quoted := false
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '\\' && strings.HasPrefix(text[i+1:], `"`):
			i++
		case text[i] == '"':
			quoted = !quoted
		case !quoted && strings.IndexByte(stops, text[i]) >= 0:
			return i, true
		}
	}
	return len(text), !quoted
}

// parseLimits reads options, with commas between them. All quotes in the text have an end.
func parseLimits(text string, place *time.Location) (l limits, mistakes []error) {
	seen := map[string]bool{}
	for {
		end, _ := outside(text, ",")
		name, value, _ := strings.Cut(text[:end], "=")
		name = strings.ToLower(name)
		if err := l.set(name, value, place); err != nil {
			mistakes = append(mistakes, err)
		} else if seen[name] {
			mistakes = append(mistakes, fmt.Errorf("the option %s is there twice: want it once", name))
		}
		seen[name] = true
		if end == len(text) {
			break
		}
		text = text[end+1:]
	}
	if !l.after.IsZero() && !l.before.IsZero() && !l.after.Before(l.before) {
		mistakes = append(mistakes, errors.New("valid-before is not later than valid-after, so the key "+
			"is never valid: want it later"))
	}
	return l, mistakes
}

// set takes one option.
func (l *limits) set(name, value string, place *time.Location) error {
	var err error
	switch name {
	case "namespaces":
		l.namespaces, err = parsePatterns(value)
	case "valid-after":
		l.after, err = parseTime(value, place)
	case "valid-before":
		l.before, err = parseTime(value, place)
	case "cert-authority":
		return errors.New("cert-authority: certificates are not supported here: list the key of each " +
			"signer")
	default:
		return fmt.Errorf("%s is no option, nor the type of a key that may sign: want namespaces=, "+
			"valid-after= or valid-before=, and no blank between options", wording.Quote(name))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// unquote returns the text between quotes. Only a quote can be escaped there.
func unquote(value string) (string, error) {
	text, begins := strings.CutPrefix(value, `"`)
	text, ends := strings.CutSuffix(text, `"`)
	bare := strings.ReplaceAll(text, `\"`, "")
	if !begins || !ends || strings.Contains(bare, `"`) {
		return "", errors.New(`want its value in quotes, as in ="…"`)
	}
	return strings.ReplaceAll(text, `\"`, `"`), nil
}

// parsePatterns reads patterns of namespaces, with commas between them.
func parsePatterns(value string) ([]string, error) {
	text, err := unquote(value)
	if err != nil {
		return nil, err
	}
	patterns := strings.Split(text, ",")
	for _, p := range patterns {
		if err := checkName("pattern", strings.TrimPrefix(p, "!")); err != nil {
			return nil, err
		}
	}
	return patterns, nil
}

// parseTime reads a time in the form of OpenSSH.
func parseTime(value string, place *time.Location) (time.Time, error) {
	text, err := unquote(value)
	if err != nil {
		return time.Time{}, err
	}
	digits, utc := strings.CutSuffix(text, "Z")
	layout := map[int]string{8: "20060102", 12: "200601021504", 14: "20060102150405"}[len(digits)]
	t, err := time.Parse(layout, digits)
	if layout == "" || err != nil {
		return time.Time{}, fmt.Errorf("%s is no time: want YYYYMMDD, YYYYMMDDHHMM or YYYYMMDDHHMMSS, "+
			"with a Z behind it for UTC", wording.Quote(text))
	}
	if !utc {
		t = t.Add(-winter(t, place))
	}
	if t.Unix() <= 0 {
		return time.Time{}, fmt.Errorf("%s is too early: want a time after 1970", wording.Quote(text))
	}
	return t, nil
}

// winter returns how far the clocks of a place are ahead of UTC without summer time, near the
// moment at which they show the digits of t. OpenSSH has mktime believe that there is no summer
// time, so a local time in July means to it an hour more than the clocks show. A file must mean the
// same here.
func winter(t time.Time, place *time.Location) time.Duration {
	local := time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), 0, place)
	if start, end := local.ZoneBounds(); local.IsDST() && !end.IsZero() {
		local = end
	} else if local.IsDST() {
		local = start.Add(-time.Second)
	}
	_, ahead := local.Zone()
	return time.Duration(ahead) * time.Second
}

// against says why a key may not sign in a namespace at a time; empty: it may.
func (l limits) against(namespace string, at time.Time) string {
	at = at.Truncate(time.Second) // OpenSSH compares whole seconds
	switch {
	case l.namespaces != nil && !matchList(l.namespaces, namespace):
		return fmt.Sprintf("it is not for the namespace %s, only for %s", wording.Quote(namespace),
			wording.ClipList(strings.Join(l.namespaces, ",")))
	case !l.after.IsZero() && at.Before(l.after):
		return "it is not valid before " + l.after.UTC().Format(timeForm)
	case !l.before.IsZero() && at.After(l.before):
		return "it has expired: it was valid until " + l.before.UTC().Format(timeForm)
	}
	return ""
}

// matchList reports whether a pattern matches, and none with a ! before it does.
func matchList(patterns []string, text string) bool {
	found := false
	for _, p := range patterns {
		p, not := strings.CutPrefix(p, "!")
		if !match(p, text) {
			continue
		}
		if not {
			return false
		}
		found = true
	}
	return found
}

// match compares a text with a pattern, in which * is any bytes and ? is one byte.
func match(pattern, text string) bool {
	star, from := -1, 0 // the last star, and the end of what it covers
	p, t := 0, 0
	for t < len(text) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, from = p, t
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == text[t]):
			p++
			t++
		case star >= 0:
			from++
			p, t = star+1, from
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}
