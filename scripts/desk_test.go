package scripts_test

import (
	"os"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	"mvdan.cc/sh/v3/syntax"

	"muster/testkit/hosttest"
)

// desk runs the texts of a built-in runbook on a host, from its console. Tests of whole houses
// cover the worker's use of them. A text has the name of its step, or STEP.PART.
type desk struct {
	t       *testing.T
	h       *hosttest.Host
	library string
	texts   map[string]string
	args    map[string]string
}

func newDesk(t *testing.T, h *hosttest.Host, book string, args map[string]string) *desk {
	t.Helper()
	data, err := os.ReadFile("builtin/" + book + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Library   string
		Arguments map[string]struct{ Default string }
		Steps     []map[string]any
	}
	if err := yaml.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	d := &desk{t: t, h: h, library: doc.Library, texts: map[string]string{}, args: map[string]string{
		"task.id": "task1", "host.name": "fw1"}}
	for name, a := range doc.Arguments {
		d.args[name] = a.Default
	}
	for name, v := range args {
		d.args[name] = v
	}
	d.collect(doc.Steps)
	return d
}

func (d *desk) collect(steps []map[string]any) {
	for _, s := range steps {
		name := s["name"].(string)
		for kind, what := range s {
			switch what := what.(type) {
			case string:
				if kind == "run" || kind == "check" {
					d.texts[name] = what
				}
			case map[string]any:
				for part, text := range what {
					if text, ok := text.(string); ok && kind != "save" {
						d.texts[name+"."+part] = text
					}
				}
			}
		}
		if block, ok := s["on_fail"].([]any); ok {
			var more []map[string]any
			for _, one := range block {
				more = append(more, one.(map[string]any))
			}
			d.collect(more)
		}
	}
}

// try runs one of the texts and returns what it said.
func (d *desk) try(name string) (string, error) {
	d.t.Helper()
	text, ok := d.texts[name]
	if !ok {
		d.t.Fatalf("the runbook has no %s", name)
	}
	for arg, v := range d.args {
		quoted, err := syntax.Quote(v, syntax.LangPOSIX)
		if err != nil {
			d.t.Fatal(err)
		}
		text = strings.ReplaceAll(text, "{{"+arg+"}}", quoted)
	}
	return d.h.Console("exec 2>&1; MUSTER_DIR=/var/lib/muster/confirm; mkdir -p $MUSTER_DIR\n" + d.library + text)
}

// do runs texts of which each must work.
func (d *desk) do(names ...string) (said string) {
	d.t.Helper()
	for _, name := range names {
		out, err := d.try(name)
		if err != nil {
			d.t.Fatalf("%s: %v\n%s", name, err, out)
		}
		said += out
	}
	return said
}

// refuses runs a text that must end with a code and say something.
func (d *desk) refuses(name, code, words string) (said string) {
	d.t.Helper()
	out, err := d.try(name)
	if err == nil || !strings.Contains(err.Error(), "exit status "+code) || !strings.Contains(out, words) {
		d.t.Errorf("%s: want exit status %s and %q, got %v\n%s", name, code, words, err, out)
	}
	return out
}
