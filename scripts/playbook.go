package scripts

import (
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// PlaybookSpec is a step of kind ansible in a runbook.
type PlaybookSpec struct {
	Playbook  string            `json:"playbook"`          // a path in the folder of playbooks of the node
	Vars      map[string]string `json:"vars,omitempty"`    // by variable: a text with placeholders
	Secrets   map[string]string `json:"secrets,omitempty"` // by variable: an argument of type secret
	Groups    []string          `json:"groups,omitempty"`  // of the host, beside those of its labels
	Tags      []string          `json:"tags,omitempty"`
	SkipTags  []string          `json:"skip_tags,omitempty"`
	Dry       string            `json:"dry,omitempty"`       // OnlyCheck or OnlyDiff: nothing is changed
	Inventory string            `json:"inventory,omitempty"` // a path in the folder; it holds beside ours
	Vault     string            `json:"vault,omitempty"`     // an argument of type secret: its password
}

// PlaybookOf returns the playbook of a step of kind ansible, with its values; nil for other steps.
func PlaybookOf(a Action) *PlaybookSpec {
	b, _ := a.Spec.(*PlaybookSpec)
	return b
}

// fillPlaybook fills in the variables for one host. They are data, so nothing quotes them.
func fillPlaybook(f Frozen, b *PlaybookSpec, in scope, a *Action) error {
	filled := *b
	filled.Vars = make(map[string]string, len(b.Vars))
	for _, name := range slices.Sorted(maps.Keys(b.Vars)) {
		text, err := render(b.Vars[name], in, plain)
		if err != nil {
			return fmt.Errorf("vars: %s: %w", name, err)
		}
		filled.Vars[name] = text
	}
	for _, name := range append(slices.Sorted(maps.Values(b.Secrets)), b.Vault) {
		if name != "" && !slices.Contains(f.Values.secretNames(), name) {
			return fmt.Errorf("the secret %q is not in the task", name)
		}
	}
	a.Spec = &filled
	return nil
}

func readPlaybook(p *parser, v value) *PlaybookSpec {
	b := &PlaybookSpec{}
	seen := readMapping(p, v, playbookKeys(), b)
	if _, ok := seen["playbook"]; !ok && v.isMapping() {
		p.add(at(v.Node), "ansible has no playbook: give its path in the folder of playbooks")
	}
	for name := range b.Secrets {
		if _, twice := b.Vars[name]; twice {
			p.add(at(seen["secrets"].Node), "variable %s is in vars and in secrets: keep one", name)
		}
	}
	return b
}

func playbookKeys() []key[PlaybookSpec] {
	return []key[PlaybookSpec]{
		{"playbook", func(p *parser, v value, b *PlaybookSpec) { b.Playbook = inFolder(p, v) }},
		{"inventory", func(p *parser, v value, b *PlaybookSpec) { b.Inventory = inFolder(p, v) }},
		{"vars", func(p *parser, v value, b *PlaybookSpec) {
			b.Vars = readVariables(p, v, func(v value) string {
				text, _ := p.text(v, textMax)
				p.template(v, text)
				return text
			})
		}},
		{"secrets", func(p *parser, v value, b *PlaybookSpec) {
			b.Secrets = readVariables(p, v, func(v value) string { return secretName(p, v, "secrets") })
		}},
		{"vault", func(p *parser, v value, b *PlaybookSpec) { b.Vault = secretName(p, v, "vault") }},
		{"groups", func(p *parser, v value, b *PlaybookSpec) { b.Groups = readWords(p, v) }},
		{"tags", func(p *parser, v value, b *PlaybookSpec) { b.Tags = readWords(p, v) }},
		{"skip_tags", func(p *parser, v value, b *PlaybookSpec) { b.SkipTags = readWords(p, v) }},
	}
}

// inFolder reads a path within the folder of playbooks.
func inFolder(p *parser, v value) string {
	text, ok := p.text(v, pathMax)
	if ok && (!fs.ValidPath(text) || text == "." || strings.ContainsFunc(text, controls)) {
		p.add(at(v.Node), "%s %s: want a path within the folder of playbooks, as web/site.yml, "+
			"without '.', '..' and '/' at an end", v.key, brief(text))
	}
	return text
}

// secretName reads the name of an argument of type secret.
func secretName(p *parser, v value, what string) string {
	name, ok := p.text(v, nameMax)
	if a := p.argument(name); ok && (a == nil || a.Type != TypeSecret) {
		p.add(at(v.Node), "%s: no argument %s of type secret", what, brief(name))
	}
	return name
}

var variableMust = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
var tagMust = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.:-]*$`)

// readVariables reads a mapping of variables. Those that begin with ansible_ lead the connection to
// the host, which is for muster to say.
func readVariables(p *parser, v value, read func(value) string) map[string]string {
	vars := map[string]string{}
	for _, one := range p.pairs(v) {
		_, twice := vars[one.key]
		switch {
		case twice:
			p.add(at(one.keyNode), "variable %s is there twice", brief(one.key))
		case !variableMust.MatchString(one.key) || len(one.key) > nameMax:
			p.add(at(one.keyNode), "variable %s: use letters, digits and '_'", brief(one.key))
		case strings.HasPrefix(strings.ToLower(one.key), "ansible_"):
			p.add(at(one.keyNode), "variable %s: those of ansible_ lead the connection to the host, "+
				"which the inventory of muster describes: choose another name", brief(one.key))
		}
		vars[one.key] = read(one)
	}
	if len(vars) > rulesMax {
		p.add(at(v.Node), "%s has %d variables: at most %d", v.key, len(vars), rulesMax)
	}
	return vars
}

func readWords(p *parser, v value) (words []string) {
	for _, item := range p.rules(v) {
		text, ok := p.text(item, nameMax)
		if ok && !tagMust.MatchString(text) {
			p.add(at(item.Node), "%s: use letters, digits, '_', '-', '.' and ':'", brief(text))
		}
		words = append(words, text)
	}
	return words
}

func playbookTypes() property {
	texts := property{"type": "array", "items": property{"type": []string{"string", "number"}}}
	vars := property{"type": "object", "additionalProperties": texts["items"]}
	return object(keyNames(playbookKeys()), property{"vars": vars, "secrets": vars, "groups": texts,
		"tags": texts, "skip_tags": texts})
}
