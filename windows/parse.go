package windows

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"muster/internal/wording"
)

// File is a text with the file name that mistakes in it are reported under.
type File struct {
	Name    string `json:"name"`
	Content string `json:"content"`
}

// Parse reads windows and freezes from files, as in
//
//	windows:
//	  - name: acme-sunday
//	    customer: acme            # or site, group, host; or customer and one of these
//	    zone: Europe/Zurich
//	    start: "0 2 * * SUN"      # cron text, or words as first Sunday 02:00, or a list of them
//	    # or  dates: [2026-12-24 22:00]
//	    # or  ics: FILE
//	    except: [2026-12-24]      # days on which it is not open
//	    end: "04:00"              # or length: 2h
//	    cutoff: 15m               # nothing is begun so long before the end
//	    from: 2026-01-01          # valid from, until
//	    until: 2027-12-31         # that day included
//	    gap: first                # or skip: a start in an hour that is left out
//	    fold: first               # or second: a start in an hour that comes twice
//	    runbooks: [firmware]      # absent: all that need a window
//	    at_end: finish            # or stop_at_safe_point
//	    on_change: next           # or nearest, cancel
//	    approval: required        # or none
//	freezes:
//	  - name: year-end
//	    customer: acme            # or site, group, host; absent: everyone
//	    zone: Europe/Zurich
//	    from: 2026-12-20
//	    until: 2027-01-04 06:00   # absent: until it is lifted; or ics: FILE
//	    reason: peak season
//
// The files that "ics" names are searched among the attached files. The error reports all
// mistakes, with file and line.
func Parse(files, attached []File) (Agreed, error) {
	r := newReader(attached, nil)
	r.all(files)
	r.weigh(Agreed{})
	return r.agreed, errors.Join(r.errs...)
}

// parseKept reads files that are in force. It does not weigh them, because that was done when they
// were applied.
func (k Known) parseKept(files, attached []File) (Agreed, Known, error) {
	r := newReader(attached, k)
	r.all(files)
	return r.agreed, r.parts, errors.Join(r.errs...)
}

// Known has what files say that were read before: a change of one file costs no reading of the
// others. It never changes.
type Known map[File]part

// A part is what a file says that names no attached file, with where its names are defined.
type part struct {
	Agreed
	places map[string]string
}

func (r *reader) all(files []File) {
	for _, f := range files {
		if p, known := r.known[f]; !known || !r.take(f, p) {
			r.learn(f)
		}
	}
}

// take takes what a file says, and reports whether it could: a reading finds the line with a name
// that is there already.
func (r *reader) take(f File, p part) bool {
	for name := range p.places {
		if r.names[name] != "" {
			return false
		}
	}
	maps.Copy(r.names, p.places)
	r.agreed.Windows = append(r.agreed.Windows, p.Windows...)
	r.agreed.Freezes = append(r.agreed.Freezes, p.Freezes...)
	r.parts[f] = p
	return true
}

// learn reads a file, and keeps what it says.
func (r *reader) learn(f File) {
	was, errs, asked := r.agreed, len(r.errs), r.asked
	r.read(f)
	if len(r.errs) > errs || r.asked > asked {
		return
	}
	p := part{Agreed{Windows: slices.Clone(r.agreed.Windows[len(was.Windows):]),
		Freezes: slices.Clone(r.agreed.Freezes[len(was.Freezes):])}, map[string]string{}}
	for _, i := range p.items() {
		name := strings.Replace(i.key, " ", "", 1)
		p.places[name] = r.names[name]
	}
	r.parts[f] = p
}

// Attached returns the name of the file that a file names in "ics", which is relative to the
// folder of that file. So two customers may each have a maintenance.ics, in folders of their own.
func Attached(file, ics string) string {
	if filepath.IsAbs(ics) {
		return ics
	}
	return filepath.Join(filepath.Dir(file), ics)
}

// reader collects the entries of files, and all mistakes in them.
type reader struct {
	file     string
	attached []File
	names    map[string]string // windows and freezes by name: where each was defined
	keys     map[*yaml.Node]string
	check    RolloutCheck
	agreed   Agreed
	errs     []error
	known    Known
	parts    Known // the files that were read
	asked    int   // for attached files
}

func newReader(attached []File, k Known) *reader {
	return &reader{attached: attached, known: k, parts: Known{}, names: map[string]string{},
		keys: map[*yaml.Node]string{}}
}

func (r *reader) mistake(n *yaml.Node, format string, args ...any) {
	r.errs = append(r.errs, fmt.Errorf("%s:%d: %s", r.file, n.Line, fmt.Sprintf(format, args...)))
}

func (r *reader) read(f File) {
	root := r.document(f, "windows or freezes")
	if root == nil {
		return
	}
	top := r.whole(root, "windows", "freezes")
	for _, n := range r.list(top["windows"]) {
		r.window(n)
	}
	for _, n := range r.list(top["freezes"]) {
		r.freeze(n)
	}
}

var windowKeys = []string{"name", "customer", "site", "group", "host", "zone", "start", "dates",
	"ics", "except", "length", "end", "cutoff", "from", "until", "gap", "fold", "runbooks", "at_end",
	"on_change", "approval"}

func (r *reader) window(n *yaml.Node) {
	f := r.fields(n, "a window", windowKeys)
	if f == nil {
		return
	}
	before := len(r.errs)
	name := r.name(n, f["name"], "window")
	w := Window{
		Name:     name,
		Zone:     r.zone(n, f["zone"]),
		Length:   r.duration(f["length"]),
		Cutoff:   r.duration(f["cutoff"]),
		From:     r.wall(f["from"]),
		Until:    r.until(f["until"]),
		Runbooks: r.texts(f["runbooks"]),
		AtEnd:    AtEnd(r.choice(f["at_end"], string(Finish), string(StopAtSafePoint))),
		OnChange: OnChange(r.choice(f["on_change"], string(MoveToNext), string(MoveToNearest),
			string(CancelJobs))),
		Approval: r.choice(f["approval"], "required", "none") == "required",
	}
	w.For, w.Customer = r.scope(f)
	if r.choice(f["gap"], "first", "skip") == "skip" {
		w.Gap = GapSkip
	}
	if r.choice(f["fold"], "first", "second") == "second" {
		w.Fold = FoldSecond
	}
	if s := r.text(f["end"]); s != "" {
		end, err := parseClock(s)
		if err != nil {
			r.mistake(f["end"], "end %v", err)
		}
		// 00:00 means the end of a day, not its beginning.
		w.End = time.Duration((end+day-1)%day+1) * time.Second
	}
	if f["customer"] == nil && f["site"] == nil && f["group"] == nil && f["host"] == nil {
		r.mistake(n, "window %s is for nobody: give one of customer, site, group and host", w.Name)
	}
	w.Times = r.times(f, w)
	if len(r.errs) == before {
		for _, err := range w.Validate() {
			r.mistake(n, "window %s: %v", w.Name, err)
		}
	}
	r.agreed.Windows = append(r.agreed.Windows, w)
}

// times reads start, dates, ics and except.
func (r *reader) times(f map[string]*yaml.Node, w Window) Calendar {
	c := Calendar{Except: r.except(f["except"])}
	for _, n := range r.oneOrMore(f["start"]) {
		recurrence, err := ParseRecurrence(r.text(n))
		if err != nil {
			r.mistake(n, "start: %v", wording.ErrorLine(err))
			continue
		}
		c.Recurrences = append(c.Recurrences, recurrence)
	}
	for _, n := range r.oneOrMore(f["dates"]) {
		c.Dates = append(c.Dates, r.wall(n))
	}
	slices.Sort(c.Dates)
	c.Events = r.events(f["ics"], w.Zone, "window "+w.Name, false)
	return c
}

var freezeKeys = []string{"name", "customer", "site", "group", "host", "zone", "from", "until",
	"ics", "reason"}

func (r *reader) freeze(n *yaml.Node) {
	f := r.fields(n, "a freeze", freezeKeys)
	if f == nil {
		return
	}
	z, name := r.zone(n, f["zone"]), r.name(n, f["name"], "freeze")
	x := Freeze{
		Name:   name,
		Zone:   z,
		Reason: r.text(f["reason"]),
		From:   r.wall(f["from"]),
		Until:  r.until(f["until"]),
		Events: r.events(f["ics"], z, "freeze "+name, true),
	}
	x.For, x.Customer = r.scope(f)
	switch {
	case f["from"] == nil && f["ics"] == nil:
		r.mistake(n, "freeze %s never begins: give from or ics", x.Name)
	case x.Until != 0 && x.Until <= x.From:
		r.mistake(f["until"], "until %s is not after from %s", clip(r.text(f["until"])), x.From)
	}
	r.agreed.Freezes = append(r.agreed.Freezes, x)
}

// name reads the name of a window or a freeze, which must be usable on command lines.
func (r *reader) name(at, n *yaml.Node, what string) string {
	if n == nil {
		r.mistake(at, "a %s without a name", what)
		return ""
	}
	s := r.text(n)
	if err := checkName(s); err != nil {
		r.mistake(n, "%v", err)
		return s
	}
	if first, ok := r.names[what+s]; ok {
		r.mistake(n, "%s %s is there already, at %s: names are unique", what, s, first)
		return s
	}
	r.names[what+s] = fmt.Sprintf("%s:%d", r.file, n.Line)
	return s
}

// scope reads at most one of four keys; or a customer and one of the others, and then the entry is
// for hosts that match both.
func (r *reader) scope(f map[string]*yaml.Node) (s Scope, customer string) {
	for l := Customer; l <= Host; l++ {
		n := f[l.String()]
		if n == nil {
			continue
		}
		switch s.Level {
		case Everyone:
		case Customer:
			customer = s.Name
		default:
			r.mistake(n, "%s and %s: give one of site, group and host", s.Level, l)
		}
		s = Scope{l, r.text(n)}
		if err := checkName(s.Name); err != nil {
			r.mistake(n, "%s: %v", l, err)
		}
	}
	return s, customer
}

// zone reads a zone. It has no default, because any default would be a guess.
func (r *reader) zone(at, n *yaml.Node) Zone {
	if n == nil {
		r.mistake(at, "no zone: want UTC or an IANA name as Europe/Zurich")
		return Zone{}
	}
	z, err := LoadZone(r.text(n))
	if err != nil {
		r.mistake(n, "%v", err)
	}
	return z
}

// doubt notes a doubt about an entry.
func (r *reader) doubt(of, what string) {
	if r.agreed.Doubts == nil {
		r.agreed.Doubts = map[string][]string{}
	}
	r.agreed.Doubts[of] = append(r.agreed.Doubts[of], what)
}

// events reads the events of the file that a window or a freeze names.
func (r *reader) events(n *yaml.Node, z Zone, of string, freeze bool) []Event {
	if n == nil {
		return nil
	}
	r.asked++
	name := r.text(n)
	i := -1
	for _, known := range []string{Attached(r.file, name), name} {
		if i < 0 {
			i = slices.IndexFunc(r.attached, func(f File) bool { return f.Name == known })
		}
	}
	if i < 0 {
		r.mistake(n, "ics: there is no file %s", clip(name))
		return nil
	}
	ical := icalReader{floating: z, freeze: freeze}
	events, err := readICal([]byte(r.attached[i].Content), &ical)
	for _, err := range flatten(err) {
		r.errs = append(r.errs, fmt.Errorf("%s: %w", name, err))
	}
	for _, err := range ical.doubts {
		r.doubt(of, fmt.Sprintf("%s: %v", name, err))
	}
	return events
}
