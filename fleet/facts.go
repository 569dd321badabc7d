package fleet

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Facts are what a host said of itself, by name. See FactNames.
type Facts map[string]string

// FactPrefix begins the labels that facts are for selectors: fact.os=debian.
const FactPrefix = "fact."

// FactNames lists the facts that there are. disk and disk_free are MiB of the root
// file system, uptime and clock_offset seconds; the offset is positive where the
// host's clock is ahead. record is yes for a host that can keep a record of attempts, else
// what it lacks.
func FactNames() []string {
	return []string{"os", "os_version", "os_name", "kernel", "arch", "vendor", "model", "firmware",
		"boot_id", "uptime", "disk", "disk_free", "clock_offset", "record"}
}

// The fact that tells whether a host can keep a record of attempts.
const (
	recordFact = "record"
	recordKept = "yes"
)

// lackWord is a word of the scripts for what a host lacks to keep a record. They have no others.
var lackWord = regexp.MustCompile(`^(flock|setsid|timeout|dd|tail|head|wc|cat|mv|rm|ls|mkdir|` +
	`sync|sleep|stat|folder|/proc/[a-z0-9_/]{1,40})$`)

// CanLack reports whether a word of a host names something that it needs to keep a record.
func CanLack(word string) bool { return lackWord.MatchString(word) }

// lacking holds what a host says that it lacks against what it can lack; settle keeps it.
func (*factReader) lacking(value string) error {
	for word := range strings.FieldsSeq(value) {
		if !CanLack(word) {
			return fmt.Errorf("%q is nothing that a record needs", abbreviate(word))
		}
	}
	return nil
}

// Lacks is what a host said that it lacks for a record of attempts; empty: nothing, or it
// was not asked.
func (f Facts) Lacks() string {
	if f[recordFact] == recordKept {
		return ""
	}
	return f[recordFact]
}

// Unfenced tells why a host keeps no record of attempts, by its inventory and by what it
// said of itself; empty: it keeps one, or nobody knows yet.
func Unfenced(h Host, f Facts) string {
	if h.Fence == FenceNone {
		return "fence: none"
	}
	if lacks := f.Lacks(); lacks != "" {
		return "it lacks " + lacks
	}
	return ""
}

// Bounds of what a host says of itself.
const (
	factsTextMax = 64 << 10 // bytes
	factMax      = 256      // bytes of one value
)

// ParseFacts reads what the runbook facts made a host say, which was between two moments;
// how far its clock is off is told from there, and not where they are too far apart. Lines
// that are not about facts are left out, as those that a login shell says. Everything else
// must be right, or nothing is believed.
func ParseFacts(said []byte, from, to time.Time) (Facts, error) {
	if len(said) > factsTextMax {
		return nil, fmt.Errorf("facts: %d bytes, at most %d", len(said), factsTextMax)
	}
	r := factReader{from: from, to: to, raw: map[string]string{}, facts: Facts{}}
	for line := range strings.Lines(string(said)) {
		text, found := strings.CutPrefix(strings.TrimRight(line, "\r\n"), "fact ")
		if !found {
			continue
		}
		if r.ended {
			return nil, errors.New("facts: there is more behind the end")
		}
		if err := r.line(text); err != nil {
			return nil, fmt.Errorf("facts: %w", err)
		}
	}
	if !r.ended {
		return nil, errors.New("facts: they have no end: want a line `fact end`")
	}
	r.settle()
	return r.facts, nil
}

// factReader reads the facts of one host.
type factReader struct {
	from, to time.Time
	raw      map[string]string // as the host says it
	facts    Facts
	ended    bool
}

func (r *factReader) line(text string) error {
	if text == "end" {
		r.ended = true
		return nil
	}
	key, value, ok := strings.Cut(text, "=")
	read := factReaders()[key]
	switch {
	case !ok || read == nil:
		return fmt.Errorf("%q: no such fact", abbreviate(text))
	case len(value) > factMax:
		return fmt.Errorf("%s has %d bytes: at most %d", key, len(value), factMax)
	case !utf8.ValidString(value) || strings.ContainsFunc(value, notPrintable):
		return fmt.Errorf("%s = %q: not printable", key, abbreviate(value))
	}
	if _, twice := r.raw[key]; twice {
		return fmt.Errorf("%s is there twice", key)
	}
	value = strings.TrimSpace(value)
	r.raw[key] = value
	if value == "" {
		return nil
	}
	if err := read(r, value); err != nil {
		return fmt.Errorf("%s = %q: %w", key, abbreviate(value), err)
	}
	return nil
}

func notPrintable(r rune) bool { return !unicode.IsPrint(r) }

// factReaders are how the words of a host become facts.
func factReaders() map[string]func(r *factReader, value string) error {
	plain := func(name string) func(*factReader, string) error {
		return func(r *factReader, value string) error {
			r.facts[name] = value
			return nil
		}
	}
	return map[string]func(*factReader, string) error{
		"ID":          unquoted("os"),
		"VERSION_ID":  unquoted("os_version"),
		"PRETTY_NAME": unquoted("os_name"),
		"kernel":      plain("kernel"),
		"arch":        plain("arch"),
		"vendor":      plain("vendor"),
		"model":       plain("model"),
		"firmware":    plain("firmware"),
		"system":      func(*factReader, string) error { return nil }, // see settle
		"tree":        func(*factReader, string) error { return nil },
		"boot_id":     (*factReader).bootID,
		"uptime":      (*factReader).uptime,
		"df":          (*factReader).disk,
		"clock":       (*factReader).clock,
		"lacks":       (*factReader).lacking,
	}
}

// unquoted reads a value of os-release, which may stand in quotes.
func unquoted(name string) func(*factReader, string) error {
	return func(r *factReader, value string) error {
		if n := len(value); n >= 2 && value[0] == value[n-1] && (value[0] == '"' || value[0] == '\'') {
			value = value[1 : n-1]
		}
		if value != "" {
			r.facts[name] = value
		}
		return nil
	}
}

var uuidMust = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

func (r *factReader) bootID(value string) error {
	if !uuidMust.MatchString(value) {
		return errors.New("want a UUID")
	}
	r.facts["boot_id"] = value
	return nil
}

// uptime reads /proc/uptime: seconds with a fraction, and another number.
func (r *factReader) uptime(value string) error {
	text, _, _ := strings.Cut(value, ".")
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return errors.New("want seconds")
	}
	r.facts["uptime"] = strconv.FormatInt(n, 10)
	return nil
}

// disk reads the second line of df -Pk. The name of a device may have blanks, so it is
// read from its end.
func (r *factReader) disk(value string) error {
	f := strings.Fields(value)
	if len(f) < 6 {
		return errors.New("want a line of df -Pk")
	}
	f = f[len(f)-5:]
	for name, text := range map[string]string{"disk": f[0], "disk_free": f[2]} {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 {
			return errors.New("want a line of df -Pk")
		}
		r.facts[name] = strconv.FormatInt(n>>10, 10)
	}
	return nil
}

func (r *factReader) clock(value string) error {
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n < 0 || n > 1<<40 {
		return errors.New("want seconds since 1970")
	}
	if r.to.IsZero() {
		return nil
	}
	// What was said may be of an attempt before: what cannot be told apart is no offset.
	from, to := r.from.Unix(), r.to.Unix()
	if off := n - min(max(n, from), to); off != 0 || to-from <= clockApart {
		r.facts["clock_offset"] = strconv.FormatInt(off, 10)
	}
	return nil
}

// clockApart is how many seconds there may be between which a host said what time it is, to
// call its clock right.
const clockApart = 60

// settle fills in what other facts tell.
func (r *factReader) settle() {
	if r.facts["os"] == "" && r.raw["system"] != "" {
		r.facts["os"] = strings.ToLower(r.raw["system"])
	}
	if lacks, said := r.raw["lacks"]; said {
		r.facts[recordFact] = cmp.Or(strings.Join(strings.Fields(lacks), ", "), recordKept)
	}
	if r.facts["model"] == "" && r.raw["tree"] != "" {
		r.facts["model"] = r.raw["tree"]
	}
}

// Labels are the facts as labels for selectors. A label has fewer letters than a fact:
// what it cannot have becomes '_', and at the ends goes, so the sign of a clock's offset
// as well.
func (f Facts) Labels() map[string]string {
	labels := make(map[string]string, len(f))
	for name, value := range f {
		if text := labelValue(value); text != "" {
			labels[FactPrefix+name] = text
		}
	}
	return labels
}

// labelValueMax is what a label value can have, in bytes.
const labelValueMax = 63

func labelValue(text string) string {
	plain := strings.Map(func(r rune) rune {
		if notInName(r) {
			return '_'
		}
		return r
	}, text)
	if len(plain) > labelValueMax {
		plain = plain[:labelValueMax]
	}
	return strings.Trim(plain, "-_.")
}
