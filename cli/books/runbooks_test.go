package books

import (
	"strings"
	"testing"

	"muster/api"
	"muster/scripts"
)

func TestTheListOfRunbooksIsNarrow(t *testing.T) {
	t.Parallel()
	var list []api.Runbook
	for _, name := range []string{"dnssec", "exec", "firewall", "firmware", "facts", "reboot"} {
		book, ok := scripts.Builtin(name)
		if !ok {
			t.Fatalf("there is no runbook %s", name)
		}
		r := api.Runbook{Name: name, Description: book.Description, Disruptive: true, Repeatable: true}
		for _, a := range book.Arguments {
			r.Arguments = append(r.Arguments,
				api.RunbookArg{Name: a.Name, Type: string(a.Type), Required: a.Required})
		}
		list = append(list, r)
	}
	text := runbookGrid(list).Render(0, true)
	for line := range strings.Lines(text) {
		if n := len([]rune(strings.TrimRight(line, "\n"))); n > 100 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	for _, part := range []string{"zone=STRING key=ENUM [+", "ruleset=FILE [+8]", "cmd=STRING ",
		"bundle=FILE version=STRING [+"} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not in\n%s", part, text)
		}
	}
}
