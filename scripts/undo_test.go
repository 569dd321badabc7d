package scripts_test

import (
	"strings"
	"testing"

	"muster/scripts"
)

// A mistake in the runbook that reverts another is reported where that one names it, beside all
// other mistakes, but not if the reverting runbook cannot be read itself.
func TestMistakesOfAnUndoHaveTheirPlace(t *testing.T) {
	t.Parallel()
	const steps = "steps: [{name: a, run: ls}]\n"
	for _, test := range []struct{ name, one, other, want string }{
		{"missing", "name: one\nundo: two\n" + steps, "name: too\nsteps: []\n",
			"a:2:7: undo: no runbook \"two\": did you mean \"too\"?\nb:2:8: steps is empty: a runbook has at least one step"},
		{"no task", "name: one\nundo: two\n" + steps, "name: two\n" + steps,
			"a:2:7: undo: runbook two has no argument of of type string, which is the task that it is to take back"},
		{"broken", "name: one\nundo: two\n" + steps, "name: two\nargumens: {of: {type: string}}\n" + steps,
			`b:2:1: unknown key "argumens": did you mean "arguments"?`},
		{"no YAML", "name: one\nundo: two\n" + steps, "name: two\n\tsteps: []\n",
			"b:2:1: a tab in the indentation: use blanks"},
		{"no name", "name: one\nundo: two\n" + steps, "nam: two\n" + steps,
			"b:1:1: unknown key \"nam\": did you mean \"name\"?\nb:1:1: name is missing"},
	} {
		_, err := scripts.NewCatalog([]scripts.Source{{File: "a", Data: []byte(test.one)},
			{File: "b", Data: []byte(test.other)}})
		if err == nil || !strings.HasPrefix(err.Error(), test.want) ||
			strings.Count(err.Error(), "\n") != strings.Count(test.want, "\n") {
			t.Errorf("%s: %v\nwant\n%s", test.name, err, test.want)
		}
	}
}
