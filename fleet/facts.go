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

// Facts are properties that a host reported, by name. See FactNames.
type Facts map[string]string

// FactPrefix begins the labels under which selectors see facts: fact.os=debian.
const FactPrefix = "fact."

// FactNames lists all facts. disk and disk_free are MiB of the root file system; uptime and
// clock_offset are seconds; the offset is positive if the host's clock is ahead. record is
// "yes" if the host can keep a record of attempts, or else the list of missing tools.
func FactNames() []string {
	return []string{"os", "os_version", "os_name", "kernel", "arch", "vendor", "model", "firmware",
		"boot_id", "uptime", "disk", "disk_free", "clock_offset", "record"}
}

// The fact that says whether a host can keep a record of attempts.
const (
	recordFact = "record"
	recordKept = "yes"
)

// lackWord matches the words by which the scripts name a missing tool. There are no others.
var lackWord = regexp.MustCompile(`^(flock|setsid|timeout|dd|tail|head|wc|cat|mv|rm|ls|mkdir|` +
	`sync|sleep|stat|folder|/proc/[a-z0-9_/]{1,40})$`)

// CanLack reports whether a word names something that a host needs to keep a record.
func CanLack(word string) bool { return lackWord.MatchString(word) }

// lacking checks the list of missing tools that a host reported; settle stores it.
func (*factReader) lacking(value string) error {
	for word := range strings.FieldsSeq(value) {
		if !CanLack(word) {
			return fmt.Errorf("%q is not a tool that a record needs", abbreviate(word))
		}
	}
	return nil
}

// Lacks returns the tools that the host misses for a record of attempts. It is empty if the
// host misses none or was never asked.
func (f Facts) Lacks() string {
	if f[recordFact] == recordKept {
		return ""
	}
	return f[recordFact]
}

// Unfenced returns the reason, from the inventory or from the facts, why a host keeps no
// record of attempts. It is empty if the host keeps one or if that is not known yet.
func Unfenced(h Host, f Facts) string {
	if h.Fence == FenceNone {
		return "fence: none"
	}
	if lacks := f.Lacks(); lacks != "" {
		return "it lacks " + lacks
	}
	return ""
}

// Limits for the report of a host.
const (
	factsTextMax = 64 << 10 // bytes
	factMax      = 256      // bytes of one value
)

// ParseFacts reads the output of the runbook facts. The host wrote it between the times from
// and to; ParseFacts derives the clock offset from them, and leaves it out if they are too far
// apart to judge it. It skips lines that do not begin with "fact", such as the greeting of a
// login shell. Any mistake in the other lines rejects the whole report.
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
			return nil, errors.New("facts: more facts follow the line `fact end`")
		}
		if err := r.line(text); err != nil {
			return nil, fmt.Errorf("facts: %w", err)
		}
	}
	if !r.ended {
		return nil, errors.New("facts: the end is missing: want a line `fact end`")
	}
	r.settle()
	return r.facts, nil
}

// factReader parses the facts of one host.
type factReader struct {
	from, to time.Time
	raw      map[string]string // values as the host wrote them
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

// factReaders maps each key in a host's report to the function that turns its value into facts.
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

// unquoted returns a reader for a value of os-release, which may be quoted.
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

// uptime reads /proc/uptime: seconds with a fraction, then a second number, which is ignored.
func (r *factReader) uptime(value string) error {
	text, _, _ := strings.Cut(value, ".")
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return errors.New("want seconds")
	}
	r.facts["uptime"] = strconv.FormatInt(n, 10)
	return nil
}

// disk reads the second line of df -Pk. It counts fields from the end, because the name of a
// device may contain blanks.
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
	// An offset within a long span is unknown, because an earlier attempt may have written this.
	from, to := r.from.Unix(), r.to.Unix()
	if off := n - min(max(n, from), to); off != 0 || to-from <= clockApart {
		r.facts["clock_offset"] = strconv.FormatInt(off, 10)
	}
	return nil
}

// clockApart is the longest span, in seconds, within which a host's report still proves that
// its clock is right.
const clockApart = 60

// settle fills in facts that follow from other values.
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

// Labels returns the facts as labels for selectors. Characters that labels cannot have
// become '_' and are trimmed at both ends, so the sign of a clock offset is lost.
func (f Facts) Labels() map[string]string {
	labels := make(map[string]string, len(f))
	for name, value := range f {
		if text := labelValue(value); text != "" {
			labels[FactPrefix+name] = text
		}
	}
	return labels
}

// labelValueMax is the longest value of a label, in bytes.
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
