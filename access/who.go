package access

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"muster/internal/wording"
)

// A Who identifies the asker: a principal, its groups, and the scope of its token.
type Who struct {
	Principal string   `json:"principal"`        // such as os:alice or user:bob
	Groups    []string `json:"groups,omitempty"` // such as os-group:ops
	Scope     *Scope   `json:"-"`                // of the token that it showed; nil: no limit
}

// A family is the kinds that names may have: the part before the colon. The rest of a name is
// compared exactly, and has no wildcards.
type family struct {
	what    string
	kinds   []string
	example string
}

var (
	principals = family{"principal", []string{"os", "user", "oidc", "cert", "trigger"},
		"os:alice or user:ci"}
	groups = family{"group", []string{"os-group", "group"}, "os-group:ops or group:network"}
)

// nameMax bounds principals and groups.
const nameMax = 512 // bytes

// CheckPrincipal returns an error unless a text can be the name of a principal: a kind and a name,
// such as os:alice for a user of the machine or user:ci for the owner of tokens.
func CheckPrincipal(text string) error {
	return principals.check(text, groups)
}

// CheckGroup returns an error unless a text can be the name of a group, such as os-group:ops.
func CheckGroup(text string) error {
	return groups.check(text, principals)
}

// check returns an error unless a text is a name of the family.
func (f family) check(text string, other family) error {
	kind, name, colon := strings.Cut(text, ":")
	shown, want := f.what+" "+wording.Quote(text), "want "+f.example
	invisible := func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }
	switch {
	case !colon && slices.Contains(slices.Concat(f.kinds, other.kinds), kind):
		return fmt.Errorf("%s has no name: %s", shown, want)
	case !colon:
		return fmt.Errorf("%s has no kind: %s", shown, want)
	case slices.Contains(other.kinds, kind):
		return fmt.Errorf("%s is a %s: write it as one", shown, other.what)
	case !slices.Contains(f.kinds, kind):
		if near := wording.Nearest(kind, f.kinds); near != "" {
			return fmt.Errorf("%s has an unknown kind: did you mean %s?", shown,
				wording.Quote(near+":"+name))
		}
		return fmt.Errorf("%s has an unknown kind: want one of %s", shown, strings.Join(f.kinds, ", "))
	case name == "":
		return fmt.Errorf("%s has no name: %s", shown, want)
	case len(text) > nameMax:
		return fmt.Errorf("%s has %d bytes: at most %d", shown, len(text), nameMax)
	case strings.ContainsFunc(text, invisible):
		return fmt.Errorf("%s has a blank or a control character: remove it", shown)
	case strings.ContainsAny(name, "*?"):
		return fmt.Errorf("%s has a wildcard, but names are compared exactly: name each, or a group",
			shown)
	}
	return nil
}
