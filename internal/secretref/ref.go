// Package secretref has the language of references to secrets: texts that name a place where a node
// finds a secret at the beginning of a job. A task, its order and Redis hold the reference only.
//
// It is pure: nothing here reads a secret. Its errors never quote the text that they are about,
// because somebody may have given the secret itself by mistake.
//
// Floor 0: may import internal/wording.
package secretref

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"muster/internal/wording"
)

// Mark begins a reference where the value of an argument could stand. A secret itself is never
// given there, so no secret is taken for a reference.
const Mark = "ref:"

// Cut returns the reference in a text with the mark; ok is false if the text has no mark.
func Cut(text string) (ref string, ok bool) { return strings.CutPrefix(text, Mark) }

// ErrNone is the error of a text that has no mark.
var ErrNone = errors.New("it is no reference")

// Check returns an error unless a text is a reference with its mark. The error is ErrNone if there
// is no mark.
func Check(text string) error {
	ref, ok := Cut(text)
	if !ok {
		return ErrNone
	}
	_, err := Parse(ref)
	return err
}

// A Source says which kind of place has a secret.
type Source string

// The sources.
const (
	File       Source = "file"  // a file of the node
	Credential Source = "cred"  // a credential that systemd gave to the master
	Age        Source = "age"   // a file of the node that age has encrypted
	Vault      Source = "vault" // the KV store, version 2, of Vault or OpenBao
)

// forms shows how a reference to each source is written.
func forms() map[Source]string {
	return map[Source]string{File: "file:/PATH", Credential: "cred:NAME",
		Age: "age:/PATH or age:/PATH#FIELD", Vault: "vault:MOUNT/PATH#FIELD"}
}

// refMax bounds a reference.
const refMax = 512 // bytes

// A Ref is a reference. Its path and field may have placeholders for values of the host.
type Ref struct {
	Source Source
	Path   string
	Field  string // empty: the whole content
}

// String returns the reference as people write it, without the mark.
func (r Ref) String() string {
	if r.Field == "" {
		return string(r.Source) + ":" + r.Path
	}
	return string(r.Source) + ":" + r.Path + "#" + r.Field
}

var (
	// placeholder is a value of the host, as in the text of a runbook.
	placeholder = regexp.MustCompile(`\{\{(host\.(?:name|customer|label\.[A-Za-z0-9._/-]+))\}\}`)
	segment     = regexp.MustCompile(`^[A-Za-z0-9._@+=-]+$`)
	glob        = regexp.MustCompile(`^[A-Za-z0-9._@+=*-]+$`)
)

// Parse reads a reference without its mark.
func Parse(text string) (Ref, error) { return parse(text, segment) }

// parse reads a reference whose segments have the given form.
func parse(text string, form *regexp.Regexp) (Ref, error) {
	name, rest, found := strings.Cut(text, ":")
	r := Ref{Source: Source(name)}
	want, known := forms()[r.Source]
	switch {
	case len(text) > refMax:
		return Ref{}, fmt.Errorf("the reference has more than %d bytes", refMax)
	case !found || !known:
		return Ref{}, errors.New("the reference names no known place: want " + allForms())
	}
	var hash bool
	r.Path, r.Field, hash = strings.Cut(rest, "#")
	// A placeholder counts as one letter: what may stand for it is checked when it is known.
	place := placeholder.ReplaceAllString(r.Path, "x")
	field := placeholder.ReplaceAllString(r.Field, "x")
	bad := func(why string) (Ref, error) {
		return Ref{}, fmt.Errorf("the reference %s: want %s", why, want)
	}
	absolute := strings.HasPrefix(place, "/")
	switch {
	case hash && (r.Source == File || r.Source == Credential):
		return bad("has a field, and such a secret is always whole")
	case hash && !form.MatchString(field):
		return bad("has an empty field, or one with other characters than letters, digits and ._@+=-")
	case (r.Source == File || r.Source == Age) && !absolute:
		return bad("has no absolute path")
	case r.Source == Credential && strings.Contains(place, "/"):
		return bad("has a path in place of a name")
	case r.Source == Vault && (absolute || !strings.Contains(place, "/")):
		return bad("has no mount before its path")
	case r.Source == Vault && !hash && form == segment:
		return bad("names no field")
	}
	for _, s := range strings.Split(strings.TrimPrefix(place, "/"), "/") {
		if s == "." || s == ".." || !form.MatchString(s) {
			return bad("has a part of its path that is empty, '.' or '..', or has other characters than " +
				"letters, digits and ._@+=- (placeholders are {{host.name}}, {{host.customer}} and " +
				"{{host.label.KEY}})")
		}
	}
	return r, nil
}

// allForms lists the forms of all sources.
func allForms() string {
	var list []string
	for _, form := range forms() {
		list = append(list, form)
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// Values returns the value of the host for a placeholder such as host.name.
type Values func(placeholder string) (string, error)

// Fill returns the reference with the values of a host. A value is a part of one segment, or it is
// refused: whoever sets a label must not lead the reference elsewhere.
func (r Ref) Fill(values Values) (Ref, error) {
	text, err := fill(r.String(), values)
	if err != nil {
		return Ref{}, err
	}
	return Parse(text)
}

func fill(text string, values Values) (string, error) {
	var errs []error
	text = placeholder.ReplaceAllStringFunc(text, func(found string) string {
		name := strings.TrimSuffix(strings.TrimPrefix(found, "{{"), "}}")
		v, err := values(name)
		if err == nil && !segment.MatchString(v) {
			err = fmt.Errorf("the value %s has other characters than letters, digits and ._@+=-",
				wording.Quote(v))
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("{{%s}}: %w", name, err))
			return "x"
		}
		return v
	})
	return text, errors.Join(errs...)
}

// A Pattern stands for the references that a rule allows: a reference in which * stands for any
// characters of a segment, and a last segment ** for one or more segments. A pattern without a
// field allows each field.
type Pattern struct{ ref Ref }

// String returns the pattern as people write it.
func (p Pattern) String() string { return p.ref.String() }

// rest is the last segment of a pattern that stands for all below.
const rest = "**"

// ParsePattern reads a pattern.
func ParsePattern(text string) (Pattern, error) {
	r, err := parse(text, glob)
	if err != nil {
		return Pattern{}, err
	}
	above := strings.TrimSuffix(r.Path, "/"+rest)
	if strings.Contains(above, rest) || strings.Contains(r.Field, rest) {
		return Pattern{}, errors.New("** stands only as the whole last segment of a path")
	}
	if r.Source != Credential && strings.Contains(first(r.Path), "*") {
		return Pattern{}, errors.New("the first segment has a *: name the folder, or the mount")
	}
	return Pattern{r}, nil
}

// first returns the first segment of a path.
func first(p string) string {
	s, _, _ := strings.Cut(strings.TrimPrefix(p, "/"), "/")
	return s
}

// Allows reports whether the pattern stands for a reference without placeholders, for the host that
// has these values. A placeholder whose value the host lacks stands for nothing.
func (p Pattern) Allows(r Ref, values Values) bool {
	text, err := fill(p.String(), values)
	if err != nil {
		return false
	}
	own, err := parse(text, glob)
	if err != nil || own.Source != r.Source || own.Field != "" && !match(own.Field, r.Field) {
		return false
	}
	want, have := strings.Split(own.Path, "/"), strings.Split(r.Path, "/")
	if n := len(want) - 1; want[n] == rest && len(have) > n {
		want, have = want[:n], have[:n]
	}
	return slices.EqualFunc(want, have, match)
}

// match reports whether a glob stands for a text. Only * is special in it: parse refuses the other
// special characters of path.Match.
func match(glob, text string) bool {
	ok, err := path.Match(glob, text)
	return ok && err == nil
}

// Root returns the folder of a pattern for files: all that it stands for is below.
func (p Pattern) Root() string {
	var fixed []string
	for _, s := range strings.Split(path.Dir(p.ref.Path), "/") {
		if strings.Contains(s, "*") || strings.Contains(s, "{{") {
			break
		}
		fixed = append(fixed, s)
	}
	return "/" + strings.Join(fixed[min(1, len(fixed)):], "/")
}
