package scripts

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"muster/internal/seal"
	"muster/internal/secretref"
)

// This file handles arguments of type secret. No text of a step contains their values: a
// placeholder becomes a shell variable that gets its value from stdin. So they never appear in
// arguments or the environment of a process, where everybody on the host could read them.

// BecomePassword is the name of the sudo password among the secrets of a task. No argument of
// a runbook can have that name.
const BecomePassword = "become.password"

// secretPrefix begins the variables that hold secrets.
const secretPrefix = "muster_secret_"

// SecretsMissing is the exit code of a step whose secrets did not arrive completely. Then
// nothing of its text has run, and SecretsLost is its last line.
const SecretsMissing = 97

// SecretsLost is the output of such a step.
const SecretsLost = "muster: the secrets of this step did not come whole: nothing of it was run"

// secretsWhole is the last line of the secrets on stdin.
const secretsWhole = "# whole"

// secretHead precedes the text of a step with secrets. It checks that the input is complete
// before the shell evaluates any of it.
const secretHead = secretPrefix + `all=$(cat)
case $` + secretPrefix + `all in
*'` + secretsWhole + `') ;;
*) echo '` + SecretsLost + `'; exit 97 ;;
esac
eval "$` + secretPrefix + `all"
unset ` + secretPrefix + `all
exec </dev/null
`

// Given holds all values that were given for the arguments of a task.
type Given struct {
	Args    map[string]string
	Secrets map[string]seal.Text
	Files   map[string][]byte
	Stored  map[string]int64 // sizes of stored contents, by SHA-256 in hex
	// Unsaid: nothing will run, so secrets may lack their values. Their names are still checked.
	Unsaid bool
}

// SecretArguments returns the names of the arguments of type secret.
func (r *Runbook) SecretArguments() []string {
	var names []string
	for _, a := range r.Arguments {
		if a.Type == TypeSecret {
			names = append(names, a.Name)
		}
	}
	return names
}

// bindSecret stores a secret unchanged. No message quotes it.
func (v *Values) bindSecret(a Argument, g Given) error {
	text, ok := g.Secrets[a.Name]
	ref, said := g.Args[a.Name]
	switch {
	case ok && strings.HasPrefix(ref, secretref.Mark):
		return fmt.Errorf("argument %q is given twice, as a secret and as a text: keep one", a.Name)
	case said:
		return v.bindRef(a.Name, ref, a.howSecret())
	case !ok && g.Unsaid:
		put(&v.Plain, a.Name, "")
		return nil
	case !ok:
		return fmt.Errorf("argument %q is missing: %s; %s", a.Name, a.want(), a.howSecret())
	}
	if _, err := a.canonical(string(text)); err != nil {
		return fmt.Errorf("argument %q: %w", a.Name, err)
	}
	put(&v.Plain, a.Name, text)
	return nil
}

// bindRef stores a reference in place of a secret. No message quotes it: it may be the secret.
func (v *Values) bindRef(name, text, how string) error {
	switch err := secretref.Check(text); {
	case errors.Is(err, secretref.ErrNone):
		return fmt.Errorf("argument %q is secret: given as a text it stands in the list of processes "+
			"and in the history of the shell; %s", name, how)
	case err != nil:
		return fmt.Errorf("argument %q: %w", name, err)
	}
	put(&v.Secrets, name, text)
	return nil
}

// bindBecome stores the password of sudo, which is not an argument. No message quotes it.
func (v *Values) bindBecome(g Given) error {
	text, ok := g.Secrets[BecomePassword]
	ref, said := g.Args[BecomePassword]
	switch err := text.CheckLine(); {
	case said && !ok:
		return v.bindRef(BecomePassword, ref, "give a reference to it")
	case !ok:
		return nil
	case err != nil:
		return fmt.Errorf("the password of sudo %w", err)
	}
	put(&v.Plain, BecomePassword, text)
	return nil
}

func (a Argument) howSecret() string {
	return fmt.Sprintf("give it as --arg %[1]s=@FILE, or --arg %[1]s=@- for the standard input, or "+
		"--arg %[1]s=ref:REFERENCE, or leave it out on a terminal, which asks for it", a.Name)
}

// secretValue checks a secret by its rules, in messages that do not quote it.
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

// secretNames returns the names of all secrets, sealed or not.
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

// Seal replaces plain secrets by sealed ones.
func (f *Frozen) Seal(how func(argument string, text seal.Text) (string, error)) error {
	sealed := map[string]string{}
	maps.Copy(sealed, f.Values.Secrets) // references
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

// OpenSecrets returns all secrets opened, by the names of their arguments.
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

// SecretInput returns the secrets for the stdin of the step, or nil if it has none.
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

// secrets holds the secrets that a text may use, and those that it does use.
type secrets struct {
	known []string
	used  []string // in the order of their variables
}

// word returns the shell text for a secret; false means that ref is not a secret.
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

// shellCommands returns commands that every shell has built in, so that their arguments are
// never those of a process.
func shellCommands() []string {
	return []string{"printf", "echo", "test", "[", ":", "set", "readonly", "local"}
}

// exposed finds the secrets that the text would reveal to everybody on the host: as an
// argument of a program, or in its environment.
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

// exposure explains how a word is revealed, or returns "".
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

// functionsOf returns the functions that a shell text defines.
func functionsOf(text string) []string {
	t, _ := cut(text)
	file, bad := parsePunched(text, t)
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

// parsePunched reads a shell text with letters in place of its placeholders.
func parsePunched(text string, t template) (*syntax.File, *fault) {
	letters := func(n int) string { return strings.Repeat("A", n) }
	return parseShell(punch(text, t.placeholders(), letters))
}

// shellWithSecrets reads a shell text that may use secrets.
func (p *parser) shellWithSecrets(v value) string {
	p.secretsFit = true
	defer func() { p.secretsFit = false }()
	return p.shell(v)
}

// exposedIn finds the revealed secrets of an otherwise correct text.
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
	file, bad := parsePunched(text, t)
	if bad != nil {
		return []fault{*bad}
	}
	return exposed(file, holes, slices.Concat(p.functions, functionsOf(text)))
}
