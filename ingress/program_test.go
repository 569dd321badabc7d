package ingress

import (
	"slices"
	"strings"
	"testing"
	"time"

	"muster/fleet"
)

func TestASourceCanBeAProgram(t *testing.T) {
	t.Parallel()
	list, err := Parse(fleet.Source{Name: "events.yaml", Data: []byte(`sources:
  - {name: a, preset: program, command: [/bin/list, "a b", --all]}
  - {name: b, preset: program, command: [/bin/say], lines: text, repeated: keep, every: 5s, customer: acme}
`)})
	if err != nil {
		t.Fatal(err)
	}
	a, _ := list.Find("a")
	b, _ := list.Find("b")
	if a.Program == nil || !slices.Equal(a.Program.Command, []string{"/bin/list", "a b", "--all"}) ||
		a.Program.Every != time.Minute || a.Program.Text || a.Program.Each || a.Bounds != usual() {
		t.Errorf("%+v %+v", a, a.Program)
	}
	if b.Program == nil || !b.Program.Text || !b.Program.Each || b.Program.Every != 5*time.Second ||
		b.Customer != "acme" {
		t.Errorf("%+v %+v", b, b.Program)
	}
	m := Message{Header: func(string) []string { return []string{"x"} }, Body: []byte("{}")}
	if _, err := a.Accept(m, []Secret{Secret("x")}); err == nil || err.(*Refusal).Why != Unknown {
		t.Errorf("a message over HTTP is an event of a program: %v", err)
	}
}

func TestAProgramWithMistakesIsRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"{name: a, preset: program}":                                         "needs a command",
		"{name: a, preset: program, command: list}":                          "want a list",
		"{name: a, preset: program, command: []}":                            "absolute path",
		"{name: a, preset: program, command: [list]}":                        "absolute path",
		"{name: a, preset: program, command: [/l, \"a\\nb\"]}":               "has a control character",
		"{name: a, preset: program, command: [/l], secret_file: /s}":         "secret_file has no effect",
		"{name: a, preset: program, command: [/l], kind: X-Kind}":            "kind has no effect",
		"{name: a, preset: program, command: [/l], lines: yaml}":             "known: json, text",
		"{name: a, preset: program, command: [/l], every: 1ms}":              "want a time from 1s",
		"{name: a, preset: program, command: [/l], lines: text, kind_at: x}": "have no effect with lines: text",
		"{name: a, preset: github, secret_file: /s, command: [/l]}":          "command has no effect with preset github",
		"{name: muster, preset: github, secret_file: /s}":                    "muster's own events",
	} {
		_, err := Parse(fleet.Source{Name: "f", Data: []byte("sources:\n  - " + text)})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", text, err, want)
		}
	}
}
