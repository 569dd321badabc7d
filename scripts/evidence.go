package scripts

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"muster/internal/jsonpath"
)

// This file judges a step by its output as well as by its exit code, because programs such as
// `rndc` print errors and exit with 0.

// Expect lists the conditions for the success of a step. All of them must hold.
type Expect struct {
	Exit    []int      `json:"exit,omitempty"` // any of these codes; empty: 0
	Match   string     `json:"match,omitempty"`
	NoMatch string     `json:"no_match,omitempty"`
	JSON    []JSONTest `json:"json,omitempty"`
}

// JSONTest compares a value in the output, which must be JSON.
type JSONTest struct {
	Path  string  `json:"path"`
	Op    string  `json:"op"`
	Right Operand `json:"right"`
}

// String returns the test in the syntax of runbooks.
func (t JSONTest) String() string { return t.Path + " " + t.Op + " " + t.Right.String() }

// ClassRule assigns a class to failures that match it.
type ClassRule struct {
	Exit  *int   `json:"exit,omitempty"`  // of the step
	Match string `json:"match,omitempty"` // of the output
	Class string `json:"class"`
	Say   string `json:"say,omitempty"` // explanation for people
}

// The classes that a rule can name.
const (
	ClassUser      = "user"      // the user's artifact, ruleset or command is wrong
	ClassOperator  = "operator"  // an operator must look at the host
	ClassTransient = "transient" // a later try may succeed
)

func classNames() []string { return []string{ClassUser, ClassOperator, ClassTransient} }

// Save stores a value from the output for later steps.
type Save struct {
	Name  string `json:"name"`
	Match string `json:"match,omitempty"` // the last match; its first group if there is one
	JSON  string `json:"json,omitempty"`  // a path
	Lines bool   `json:"lines,omitempty"` // the whole output, without its last newline

	// Default is the value if nothing is found; if it is nil, the step fails then.
	Default *string `json:"default,omitempty"`
}

// Evidence holds everything by which a step is judged.
type Evidence struct {
	Exit   int
	Signal string // the signal that ended it; mostly empty
	Output []byte // the part that was kept
	Cut    bool   // a part of the output was dropped
	Lost   string // why the host could not keep the rest, such as a full disk; mostly empty
}

// Finding is the judgement of a step.
type Finding struct {
	OK    bool
	Moot  bool              // undecidable, because the deciding output was lost
	Text  string            // why it failed, for people
	Class string            // of the failure
	Saved map[string]string // values to save, if it succeeded
}

// Judge decides whether a step succeeded. had holds the values that earlier steps saved.
func (a Action) Judge(e Evidence, had map[string]string) Finding {
	if what := a.undecided(e); what != "" {
		return Finding{Moot: true, Class: ClassOperator, Text: fmt.Sprintf(
			"exit %d, but a part of its output is lost (%s), so it is not known %s", e.Exit, e.Lost, what)}
	}
	if why := a.Expect.fails(e); why != "" {
		return a.failure(e, why)
	}
	saved, err := a.keep(e, had)
	if err != nil {
		return a.failure(e, err.Error())
	}
	return Finding{OK: true, Saved: saved}
}

// undecided returns what cannot be decided because output was lost, or "" if the rest is
// enough. Matches in the rest count, and so does the exit code.
func (a Action) undecided(e Evidence) string {
	x := a.Expect
	if x == nil {
		x = &Expect{}
	}
	switch {
	case e.Lost == "":
	case (&Expect{Exit: x.Exit}).fails(e) != "", x.NoMatch != "" && matches(x.NoMatch, e.Output):
		// It has failed, whatever the lost output was.
	case x.Match != "" && !matches(x.Match, e.Output):
		return "whether it matches " + brief(x.Match)
	case x.NoMatch != "":
		return "whether nothing in it matches " + brief(x.NoMatch)
	case len(x.JSON) > 0:
		return "whether it is as expected"
	case len(a.Save) > 0:
		return "which values to save"
	}
	return ""
}

// Keep returns the values that an unfinished step would save; it skips those not found.
func (a Action) Keep(e Evidence, had map[string]string) map[string]string {
	saved := map[string]string{}
	if e.Lost != "" {
		return saved
	}
	for _, s := range a.Save {
		if v, err := s.find(e); err == nil && bounded(saved, had, s.Name, v) == nil {
			saved[s.Name] = v
		}
	}
	return saved
}

func (a Action) failure(e Evidence, why string) Finding {
	f := Finding{Text: why, Class: ClassUser}
	for _, rule := range a.Classes {
		if rule.fits(e) {
			f.Class = rule.Class
			if rule.Say != "" {
				f.Text = rule.Say + " (" + why + ")"
			}
			break
		}
	}
	return f
}

func (r ClassRule) fits(e Evidence) bool {
	if r.Exit != nil && *r.Exit != e.Exit {
		return false
	}
	return r.Match == "" || matches(r.Match, e.Output)
}

func matches(pattern string, output []byte) bool {
	re, err := regexp.Compile(multiline(pattern))
	return err == nil && re.Match(output)
}

// multiline makes ^ and $ match at lines, because an output has many.
func multiline(pattern string) string { return "(?m)" + pattern }

// fails returns the first condition that does not hold, or "".
func (x *Expect) fails(e Evidence) string {
	if x == nil {
		x = &Expect{}
	}
	how := fmt.Sprintf("exit %d", e.Exit)
	if e.Signal != "" {
		how = "ended by signal " + e.Signal
	}
	switch {
	case len(x.Exit) == 0 && e.Exit != 0:
		return how
	case len(x.Exit) > 0 && (e.Signal != "" || !slices.Contains(x.Exit, e.Exit)):
		return fmt.Sprintf("%s, want %s", how, list(x.Exit))
	case x.Match != "" && !matches(x.Match, e.Output):
		return fmt.Sprintf("%s, but nothing in the output matches %s", how, brief(x.Match))
	case x.NoMatch != "" && matches(x.NoMatch, e.Output):
		return fmt.Sprintf("%s, but the output matches %s", how, brief(x.NoMatch))
	case x.NoMatch != "" && e.Cut:
		return fmt.Sprintf("%s, but the output is too long to say that nothing in it matches %s",
			how, brief(x.NoMatch))
	case len(x.JSON) == 0:
		return ""
	}
	return x.failsJSON(how, e)
}

func (x *Expect) failsJSON(how string, e Evidence) string {
	if e.Cut {
		return how + ", but the output is too long to be read as JSON"
	}
	v, err := jsonpath.Parse(e.Output)
	if err != nil {
		return how + ", but " + err.Error()
	}
	for _, t := range x.JSON {
		got, err := jsonpath.Find(v, t.Path)
		ok := false
		if err == nil {
			ok, err = compare(got, t.Op, t.Right.Text)
		}
		switch {
		case err != nil:
			return fmt.Sprintf("%s, but %s: %s", how, t, err)
		case !ok:
			return fmt.Sprintf("%s, but %s is %s, want %s %s", how, t.Path, brief(got), t.Op, t.Right)
		}
	}
	return ""
}

func list(codes []int) string {
	var words []string
	for _, c := range codes {
		words = append(words, fmt.Sprint(c))
	}
	return strings.Join(words, " or ")
}

// keep returns the values to save.
func (a Action) keep(e Evidence, had map[string]string) (map[string]string, error) {
	if len(a.Save) == 0 {
		return nil, nil
	}
	saved := map[string]string{}
	for _, s := range a.Save {
		v, err := s.find(e)
		if err == nil {
			err = bounded(saved, had, s.Name, v)
		}
		if err != nil {
			return nil, fmt.Errorf("save %s: %w", s.Name, err)
		}
		saved[s.Name] = v
	}
	return saved, nil
}

var errNothingFits = errors.New("nothing in the output matches")

// find returns the value in an output.
func (s Save) find(e Evidence) (string, error) {
	v, err := s.look(e)
	if err != nil && s.Default != nil {
		return *s.Default, nil
	}
	return v, err
}

func (s Save) look(e Evidence) (string, error) {
	switch {
	case s.Match != "":
		return s.lookFor(e.Output)
	case e.Cut:
		return "", errors.New("the output is too long")
	case s.JSON != "":
		v, err := jsonpath.Parse(e.Output)
		if err != nil {
			return "", err
		}
		return jsonpath.Find(v, s.JSON)
	}
	return strings.TrimRight(string(e.Output), "\r\n"), nil
}

func (s Save) lookFor(output []byte) (string, error) {
	re, err := regexp.Compile(multiline(s.Match))
	if err != nil {
		return "", err
	}
	all := re.FindAllSubmatch(output, -1)
	if len(all) == 0 {
		return "", fmt.Errorf("%w %s", errNothingFits, brief(s.Match))
	}
	last := all[len(all)-1]
	return string(last[min(1, len(last)-1)]), nil
}

// bounded refuses a value that exceeds the limits together with the others.
func bounded(saved, had map[string]string, name, v string) error {
	switch {
	case len(v) > savedMax:
		return fmt.Errorf("the value has %d bytes: at most %d", len(v), savedMax)
	case !utf8.ValidString(v):
		return fmt.Errorf("%s is not UTF-8", brief(v))
	case strings.ContainsRune(v, 0):
		return errors.New("the value has a NUL character, which no text on a host can hold")
	}
	total := len(name) + len(v)
	for k, old := range had {
		if _, again := saved[k]; !again && k != name {
			total += len(k) + len(old)
		}
	}
	for k, other := range saved {
		total += len(k) + len(other)
	}
	if total > savedAllMax {
		return fmt.Errorf("the saved values of the job have %d bytes together: at most %d", total,
			savedAllMax)
	}
	return nil
}
