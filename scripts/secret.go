package scripts

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"muster/internal/seal"
)

// This file is about arguments of type secret. Their texts are in no text of a step: a
// placeholder becomes a variable of the shell, which gets its value on stdin. So they are in
// no argument and no environment of a process, where everybody on the host could read them.

// BecomePassword stands among the secrets of a task for the password of sudo. No argument of a
// runbook can have that name.
const BecomePassword = "become.password"

// secretPrefix begins the variables that hold secrets.
const secretPrefix = "muster_secret_"

// SecretsMissing is the exit code of a step whose secrets did not come whole. Nothing of its
// text has run then, and SecretsLost is the last line that it said.
const SecretsMissing = 97

// SecretsLost is what such a step says.
const SecretsLost = "muster: the secrets of this step did not come whole: nothing of it was run"

// secretsWhole is the last line of what comes on stdin.
const secretsWhole = "# whole"

// secretHead stands before the text of a step with secrets. What comes is held against its
// end before any of it is read as shell.
const secretHead = secretPrefix + `all=$(cat)
case $` + secretPrefix + `all in
*'` + secretsWhole + `') ;;
*) echo '` + SecretsLost + `'; exit 97 ;;
esac
eval "$` + secretPrefix + `all"
unset ` + secretPrefix + `all
exec </dev/null
`

// Given is all that was given for the arguments of a task.
type Given struct {
	Args    map[string]string
	Secrets map[string]seal.Text
	Files   map[string][]byte
	Stored  map[string]int64 // sizes of stored contents, by SHA-256 in hex
	// Unsaid: nothing of it will run, so secrets need not be there. Their names are.
	Unsaid bool
}

// SecretArguments are the names of those of type secret.
func (r *Runbook) SecretArguments() []string {
	var names []string
	for _, a := range r.Arguments {
		if a.Type == TypeSecret {
			names = append(names, a.Name)
		}
	}
	return names
}

// bindSecret keeps a secret as it is. No message repeats it.
func (v *Values) bindSecret(a Argument, g Given) error {
	if _, said := g.Args[a.Name]; said {
		return fmt.Errorf("argument %q is secret: given as a text it stands in the list of processes "+
			"and in the history of the shell; %s", a.Name, a.howSecret())
	}
	text, ok := g.Secrets[a.Name]
	switch {
	case !ok && g.Unsaid:
		v.keepSecret(a.Name, "")
		return nil
	case !ok:
		return fmt.Errorf("argument %q is missing: %s; %s", a.Name, a.want(), a.howSecret())
	}
	if _, err := a.canonical(string(text)); err != nil {
		return fmt.Errorf("argument %q: %w", a.Name, err)
	}
	v.keepSecret(a.Name, text)
	return nil
}

func (v *Values) keepSecret(name string, text seal.Text) {
	if v.Plain == nil {
		v.Plain = map[string]seal.Text{}
	}
	v.Plain[name] = text
}

// bindBecome keeps the password of sudo, which is no argument. No message repeats it.
func (v *Values) bindBecome(g Given) error {
	text, ok := g.Secrets[BecomePassword]
	switch {
	case !ok:
		return nil
	case text == "":
		return errors.New("the password of sudo is empty")
	case strings.ContainsAny(string(text), "\n\r\x00"):
		return errors.New("the password of sudo has more than one line")
	}
	if v.Plain == nil {
		v.Plain = map[string]seal.Text{}
	}
	v.Plain[BecomePassword] = text
	return nil
}

func (a Argument) howSecret() string {
	return fmt.Sprintf("give it as --arg %s=@FILE, or --arg %s=@- for the standard input, or leave "+
		"it out on a terminal, which asks for it", a.Name, a.Name)
}

// secretValue holds a secret against its rules, in words that do not repeat it.
func (a Argument) secretValue(text string) (string, error) {
	if text == "" {
		return "", errors.New("the secret is empty")
	}
	if _, err := a.stringValue(text); err != nil && a.MaxLength > 0 {
		return "", fmt.Errorf("the secret does not match the pattern, or has more than %d characters",
			a.MaxLength)
	} else if err != nil {
		return "", errors.New("the secret does not match the pattern")
	}
	return text, nil
}

// names are those of all secrets, sealed or not.
func (v Values) secretNames() []string {
	names := map[string]bool{}
	for name := range v.Plain {
		names[name] = true
	}
	for name := range v.Secrets {
		names[name] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// Seal puts sealed texts into the place of those that are not.
func (f *Frozen) Seal(how func(argument string, text seal.Text) (string, error)) error {
	if len(f.Values.Plain) == 0 {
		return nil
	}
	sealed := map[string]string{}
	for name, text := range f.Values.Plain {
		box, err := how(name, text)
		if err != nil {
			return fmt.Errorf("argument %q: %w", name, err)
		}
		sealed[name] = box
	}
	f.Values.Secrets, f.Values.Plain = sealed, nil
	return nil
}

// OpenSecrets opens all secrets, by the names of their arguments.
func (f Frozen) OpenSecrets(how func(argument, sealed string) (seal.Text, error)) (
	map[string]seal.Text, error) {
	if len(f.Values.Secrets) == 0 {
		return nil, nil
	}
	texts := map[string]seal.Text{}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(f.Values.Secrets)) {
		text, err := how(name, f.Values.Secrets[name])
		if err != nil {
			errs = append(errs, fmt.Errorf("argument %q: %w", name, err))
		}
		texts[name] = text
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return texts, nil
}

// SecretInput is what the step must get on stdin; nil: nothing.
func (a Action) SecretInput(texts map[string]seal.Text) ([]byte, error) {
	if len(a.Secrets) == 0 {
		return nil, nil
	}
	var b strings.Builder
	for i, name := range a.Secrets {
		text, ok := texts[name]
		if !ok {
			return nil, fmt.Errorf("the secret %q is not in the task", name)
		}
		word, err := quote(string(text))
		if err != nil {
			return nil, fmt.Errorf("the secret %q: %w", name, err)
		}
		fmt.Fprintf(&b, "%s%d=%s\n", secretPrefix, i+1, word)
	}
	b.WriteString(secretsWhole + "\n")
	return []byte(b.String()), nil
}

// secrets are those that a text of a step may use, and those that it does.
type secrets struct {
	known []string
	used  []string // in the order of their variables
}

// word is what stands for a secret in a shell text; false: it is none.
func (s *secrets) word(ref string) (string, bool) {
	if s == nil || !slices.Contains(s.known, ref) {
		return "", false
	}
	i := slices.Index(s.used, ref)
	if i < 0 {
		i = len(s.used)
		s.used = append(s.used, ref)
	}
	return fmt.Sprintf(`"$%s%d"`, secretPrefix, i+1), true
}

// shellCommands are those that every shell does itself, so that their arguments are those
// of no process.
func shellCommands() []string {
	return []string{"printf", "echo", "test", "[", ":", "set", "readonly", "local"}
}

// exposed finds the secrets that the text would show to everybody on the host: as an
// argument of a program, or in the environment of one.
func exposed(file *syntax.File, holes []part, functions []string) []fault {
	var faults []fault
	var above []syntax.Node
	syntax.Walk(file, func(n syntax.Node) bool {
		if n == nil {
			above = above[:len(above)-1]
			return true
		}
		if lit, ok := n.(*syntax.Lit); ok {
			for _, h := range holesIn(lit, holes) {
				if why := exposure(above, lit, functions); why != "" {
					faults = append(faults,
						fault{h.start, fmt.Sprintf("{{%s}} is secret, and %s", h.ref, why)})
				}
			}
		}
		above = append(above, n)
		return true
	})
	return faults
}

const (
	secretHint = `hand it over on stdin, as in printf '%s\n' {{…}} | command, or in a file of ` +
		"mode 0600"
	argvWhy = "would be an argument of a program, which everybody on the host can read: " +
		secretHint
	environWhy = "would be in the environment of a program, which others can read: " + secretHint
)

// exposure says how a word is shown; "" if it is not.
func exposure(above []syntax.Node, leaf syntax.Node, functions []string) string {
	inner := leaf
	for _, n := range slices.Backward(above) {
		switch n := n.(type) {
		case *syntax.CallExpr:
			_, assigned := inner.(*syntax.Assign)
			switch {
			case assigned && len(n.Args) > 0, !assigned && n.Args[0].Lit() == "export":
				return environWhy
			case !assigned && !within(n.Args[0].Lit(), functions):
				return argvWhy
			}
		}
		inner = n
	}
	return ""
}

func within(command string, functions []string) bool {
	return slices.Contains(shellCommands(), command) || slices.Contains(functions, command)
}

// functionsOf names the functions that a shell text defines.
func functionsOf(text string) []string {
	t, _ := cut(text)
	file, bad := parseShell(punch(text, t.placeholders(), func(n int) string {
		return strings.Repeat("A", n)
	}))
	if bad != nil {
		return nil
	}
	var names []string
	syntax.Walk(file, func(n syntax.Node) bool {
		if f, ok := n.(*syntax.FuncDecl); ok {
			names = append(names, f.Name.Value)
		}
		return true
	})
	return names
}

// shellWithSecrets reads a shell text that may use them.
func (p *parser) shellWithSecrets(v value) string {
	p.secretsFit = true
	defer func() { p.secretsFit = false }()
	return p.shell(v)
}

// exposedIn finds the secrets of a text that is in order otherwise.
func (p *parser) exposedIn(text string, t template) []fault {
	var holes []part
	for _, h := range t.placeholders() {
		if a := p.argument(h.ref); a != nil && a.Type == TypeSecret {
			holes = append(holes, h)
		}
	}
	if len(holes) == 0 {
		return nil
	}
	file, bad := parseShell(punch(text, t.placeholders(), func(n int) string {
		return strings.Repeat("A", n)
	}))
	if bad != nil {
		return []fault{*bad}
	}
	return exposed(file, holes, slices.Concat(p.functions, functionsOf(text)))
}
