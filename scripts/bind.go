package scripts

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"muster/internal/seal"
)

// Values are the arguments of one task: checked, complete, in canonical form.
type Values struct {
	// Args holds a text for each argument: a number in decimal, a duration in seconds, and for
	// a file the SHA-256 of its content in hex.
	Args map[string]string `json:"args"`
	// Files holds the content of files by SHA-256.
	Files map[string][]byte `json:"files,omitempty"`
	// Blobs holds the sizes, by SHA-256, of files that are stored elsewhere.
	Blobs map[string]int64 `json:"blobs,omitempty"`
	// Secrets holds the sealed texts of arguments of type secret, or references with their mark.
	Secrets map[string]string `json:"secrets,omitempty"`
	// Plain holds secrets that are not sealed yet. They are never stored or sent.
	Plain map[string]seal.Text `json:"-"`
}

// Bind is BindGiven without secrets and stored contents.
func (r *Runbook) Bind(args map[string]string, files map[string][]byte) (Values, error) {
	return r.BindGiven(Given{Args: args, Files: files})
}

// BindGiven checks the arguments of a task and completes them by defaults. For an argument
// of type file the caller gives either the content in Files, under the argument's name, or
// the name of a stored content in Args, see ParseBlob; any other text is a mistake. Stored
// must have those that Runbook.Blobs lists. Frozen.Seal seals the secrets later. BindGiven
// reports all mistakes at once.
func (r *Runbook) BindGiven(g Given) (Values, error) {
	v := Values{Args: map[string]string{}}
	args, files := g.Args, g.Files
	errs := r.strangers(g)
	for _, sum := range r.Blobs(args) {
		errs = append(errs, v.bindBlob(sum, g.Stored))
	}
	for _, a := range r.Arguments {
		if a.Type == TypeFile {
			errs = append(errs, v.bindFile(a, args, files))
			continue
		}
		if a.Type == TypeSecret {
			errs = append(errs, v.bindSecret(a, g))
			continue
		}
		if _, ok := g.Secrets[a.Name]; ok {
			errs = append(errs, fmt.Errorf("argument %q is of type %s, not secret: give it as a text",
				a.Name, a.Type))
			continue
		}
		if _, ok := files[a.Name]; ok {
			errs = append(errs, fmt.Errorf("argument %q is of type %s: give a text, not a file",
				a.Name, a.Type))
			continue
		}
		text, ok := args[a.Name]
		if !ok && a.Required {
			errs = append(errs, fmt.Errorf("argument %q is missing: %s", a.Name, a.want()))
			continue
		}
		if !ok {
			v.Args[a.Name] = a.Default
			continue
		}
		canonical, err := a.canonical(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("argument %q: %w", a.Name, err))
			continue
		}
		v.Args[a.Name] = canonical
	}
	errs = append(errs, v.bindBecome(g))
	if err := errors.Join(errs...); err != nil {
		return Values{}, err
	}
	return v, nil
}

// strangers reports the names of arguments that the runbook does not have.
func (r *Runbook) strangers(g Given) []error {
	var known []string
	for _, a := range r.Arguments {
		known = append(known, a.Name)
	}
	given := map[string]bool{}
	for name := range g.Args {
		given[name] = name != BecomePassword
	}
	for name := range g.Secrets {
		given[name] = name != BecomePassword
	}
	total := 0
	for name, content := range g.Files {
		given[name] = true
		total += len(content)
	}

	var errs []error
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if given[name] && !slices.Contains(known, name) {
			errs = append(errs, fmt.Errorf("runbook %s has no argument %s: %s",
				r.Name, brief(name), Instead(name, known)))
		}
	}
	if total > filesMax {
		errs = append(errs, fmt.Errorf("the files of a task have %d bytes together: at most %d",
			total, filesMax))
	}
	return errs
}

// bindFile stores the content of a file argument.
func (v *Values) bindFile(a Argument, args map[string]string, files map[string][]byte) error {
	content, ok := files[a.Name]
	text, said := args[a.Name]
	switch sum, err := ParseBlob(text); {
	case said && ok:
		return fmt.Errorf("argument %q is given twice, as a file and as a text: keep one", a.Name)
	case said && err != nil:
		return fmt.Errorf("argument %q is of type file: its content is needed, or the name of a "+
			"blob (sha256: and 64 hex digits), not another text", a.Name)
	case said:
		v.Args[a.Name] = sum
		return nil
	case !ok:
		return fmt.Errorf("argument %q is missing: %s", a.Name, a.want())
	}
	sum := hash(content)
	v.Args[a.Name] = sum
	// an empty file is not nil, so that it comes back from JSON as it was
	put(&v.Files, sum, append([]byte{}, content...))
	return nil
}

// want describes a valid value for an argument.
func (a Argument) want() string {
	kind := "want a value of type " + string(a.Type)
	if a.Type == TypeEnum {
		kind = "want one of " + strings.Join(a.Values, ", ")
	}
	if a.Description == "" {
		return kind
	}
	return kind + ": " + a.Description
}

// put sets the value of a key in a map that need not be there yet.
func put[V any](m *map[string]V, key string, value V) {
	if *m == nil {
		*m = map[string]V{}
	}
	(*m)[key] = value
}
