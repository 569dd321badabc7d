package scripts

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"muster/fleet"
)

// Frozen is a runbook with its values, as a task contains it. Later changes of the runbook's
// file do not affect the task. Encoding to JSON and decoding gives back an equal
// Frozen.
type Frozen struct {
	Runbook    string        `json:"runbook"` // its name
	Version    string        `json:"version,omitempty"`
	Hash       string        `json:"hash"` // of the runbook's text
	Disruptive bool          `json:"disruptive,omitempty"`
	ProveGroup bool          `json:"prove_group,omitempty"`
	Needs      []string      `json:"needs,omitempty"`      // names of limits, and facts
	Repeatable bool          `json:"repeatable,omitempty"` // every step may run twice
	Timeout    time.Duration `json:"timeout_ns"`           // of one attempt
	Retry      Retry         `json:"retry"`
	Library    string        `json:"library,omitempty"` // precedes every shell text
	Steps      []Step        `json:"steps"`
	Main       int           `json:"main,omitempty"` // Steps before those of on_fail; 0: all
	Values     Values        `json:"values"`
	Timing
}

// Context holds what a step knows about its job.
type Context struct {
	Task    string            // id of the task
	Attempt int               // number of the attempt
	Saved   map[string]string // values that steps have saved so far

	RecordDir string // where hosts keep records; empty: defaultPlace

	planned bool // nothing ran yet, so each saved value stands for itself
}

// Action is one step for one host.
type Action struct {
	Kind       Kind
	Name       string        // of the step
	Shell      string        // for a POSIX shell; kinds other than run use it as said below
	Upload     *Upload       // of kind upload
	Command    string        // of kind reboot: starts the reboot; Shell is its check, or empty
	Probes     *Probes       // of kinds verify and reboot; Shell is the check
	Spec       any           // what only its kind has, such as a *Wait; Shell is its until
	Timeout    time.Duration // of this step alone
	Repeatable bool
	Disruptive bool   // traffic may suffer
	Skip       string // why it is skipped; empty: it runs

	// Secrets names the arguments that Shell gets on stdin, see SecretInput.
	Secrets []string

	Rules
}

// Upload is a file to bring to a host.
type Upload struct {
	To      string // absolute path; may hold blanks and quotes
	Mode    fs.FileMode
	SHA256  string // in hex
	Size    int64
	Content []byte // read-only, because all hosts share it; nil for a Blob
	Blob    bool   // the content is stored elsewhere, under its SHA256
}

// Freeze combines a runbook with the values that Bind returned for it.
func (r *Runbook) Freeze(v Values) Frozen {
	return Frozen{
		Runbook:    r.Name,
		Version:    r.Version,
		Hash:       r.Hash,
		Disruptive: r.Disruptive,
		ProveGroup: r.ProveGroup,
		Needs:      r.Needs,
		Repeatable: r.Repeatable,
		Timeout:    r.Timeout,
		Retry:      r.Retry,
		Library:    r.Library,
		Steps:      r.Steps,
		Main:       r.Main,
		Values:     v,
		Timing:     r.Timing,
	}
}

// MainSteps returns how many steps a job has if none of them fails.
func (f Frozen) MainSteps() int {
	if f.Main == 0 {
		return len(f.Steps)
	}
	return f.Main
}

// Step returns step i, counted from 0, for a host. An error means that the task cannot run
// on this host with its values, so a retry would not help.
func (f Frozen) Step(i int, h fleet.Host, c Context) (Action, error) {
	if i < 0 || i >= len(f.Steps) {
		return Action{}, fmt.Errorf("runbook %s: no step %d, only %d", f.Runbook, i, len(f.Steps))
	}
	s := f.Steps[i]
	a := Action{Kind: s.Kind, Name: s.Name, Timeout: s.Timeout, Repeatable: s.Repeatable,
		Disruptive: s.Disruptive, Rules: s.Rules}
	if f.Main == 0 { // as before steps had the field themselves
		a.Disruptive = f.Disruptive
	}
	err := f.complete(&a, s, scope{args: f.Values.Args, host: h, context: c})
	if err != nil {
		return Action{}, fmt.Errorf("runbook %s, step %q: %w", f.Runbook, s.Name, err)
	}
	return a, nil
}

// complete fills in the values of a step. A skipped step needs no further values.
func (f Frozen) complete(a *Action, s Step, in scope) (err error) {
	if a.Skip, err = skipped(s.When, in); err != nil || a.Skip != "" {
		return err
	}
	if a.Expect, err = s.Expect.fill(in); err != nil {
		return err
	}
	rule, known := kindTable[s.Kind]
	if !known || rule.spec != nil && s.Spec == nil {
		return fmt.Errorf("kind %q is not known here: a newer muster made the task", s.Kind)
	}
	a.Repeatable = a.Repeatable || rule.again
	return rule.fill(f, s, in, a)
}

// shell fills in a shell text and puts the library before it.
func (f Frozen) shell(text string, in scope) (string, error) {
	text, err := render(text, in, quote)
	if err != nil || f.Library == "" {
		return text, err
	}
	library, err := render(f.Library, in, quote)
	if err != nil {
		return "", fmt.Errorf("library: %w", err)
	}
	return strings.TrimRight(library, "\n") + "\n" + text, nil
}

// skipped returns the condition that does not hold, or "" if all do. Before the job starts,
// some compared values are unknown, so no step counts as skipped.
func skipped(when []Condition, in scope) (string, error) {
	for _, c := range when {
		filled, err := c.fill(in)
		if err != nil {
			return "", fmt.Errorf("when: %w", err)
		}
		if in.context.planned {
			continue
		}
		ok, err := filled.holds()
		if err != nil {
			return "", fmt.Errorf("when: %s: %w", c, err)
		}
		if !ok {
			return fmt.Sprintf("%s is not so: %s", c, brief(filled.Left.Text)), nil
		}
	}
	return "", nil
}

// fill replaces the placeholders in what is expected.
func (x *Expect) fill(in scope) (*Expect, error) {
	if x == nil || len(x.JSON) == 0 {
		return x, nil
	}
	filled := *x
	filled.JSON = slices.Clone(x.JSON)
	for i, t := range filled.JSON {
		c, err := Condition{Op: t.Op, Right: t.Right}.fill(in)
		if err != nil {
			return nil, fmt.Errorf("expect: %w", err)
		}
		filled.JSON[i].Right = c.Right
	}
	return &filled, nil
}

// Check returns an error unless every step can be built for a host, so that a task which
// cannot run there is refused before it is queued.
func (f Frozen) Check(h fleet.Host) error {
	var errs []error
	for i := range f.Steps {
		_, err := f.Step(i, h, Context{planned: true})
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// UnmarshalJSON refuses unknown fields. A task from a newer muster may have a condition on a
// step, and ignoring that would always run the step. It also checks the hashes of files, so
// that Step need not do so for each host.
func (f *Frozen) UnmarshalJSON(data []byte) error {
	type plain Frozen // the same type without this method
	var p plain
	if err := decodeStrictly(data, &p); err != nil {
		return fmt.Errorf("frozen runbook: %w: was it made by another version of muster?", err)
	}
	for sum, content := range p.Values.Files {
		if hash(content) != sum {
			return fmt.Errorf("frozen runbook: the content of file %s has changed", brief(sum))
		}
	}
	*f = Frozen(p)
	return nil
}

func render(text string, s scope, as func(string) (string, error)) (string, error) {
	t, faults := cut(text)
	if len(faults) > 0 {
		return "", fmt.Errorf("at byte %d: %s", faults[0].offset, faults[0].text)
	}
	return t.fill(s, as)
}

// file returns the file of an upload.
func (f Frozen) file(u *UploadSpec, s scope) (*Upload, error) {
	if u == nil {
		return nil, errors.New("the upload is empty")
	}
	to, err := render(u.To, s, plain)
	if err == nil && !(s.context.planned && strings.Contains(u.To, "{{"+savedPrefix)) {
		err = checkPath(to)
	}
	if err != nil {
		return nil, fmt.Errorf("to: %w", err)
	}

	file := &Upload{To: to, Mode: fs.FileMode(u.Mode), SHA256: u.Blob}
	if u.From == "" && u.Blob == "" {
		file.Content = []byte(u.Content)
		file.Size, file.SHA256 = int64(len(file.Content)), hash(file.Content)
		return file, nil
	}
	if u.From != "" {
		file.SHA256 = f.Values.Args[u.From]
	}
	if size, ok := f.Values.Blobs[file.SHA256]; ok {
		file.Size, file.Blob = size, true
		return file, nil
	}
	content, ok := f.Values.Files[file.SHA256]
	if !ok {
		return nil, fmt.Errorf("the content of file %q is not in the task", u.From+u.Blob)
	}
	file.Size, file.Content = int64(len(content)), content
	return file, nil
}

// Blobs returns the stored contents that the task needs, by SHA-256 in hex.
func (f Frozen) Blobs() []string { return slices.Sorted(maps.Keys(f.Values.Blobs)) }
