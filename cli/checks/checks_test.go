package checks_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"muster/cli"
	"muster/cli/checks"
	"muster/fleet"
)

// parse counts the lines of a file; a line "bad" is a mistake, and "gone" is an error.
func parse(src fleet.Source) (map[string]int, string, error) {
	var wrong fleet.Mistakes
	lines := strings.Fields(string(src.Data))
	for i, line := range lines {
		switch line {
		case "bad":
			wrong = append(wrong, fleet.Mistake{File: src.Name, Line: i + 1, Text: "bad"})
		case "gone":
			return nil, "", errors.New("the file is gone")
		}
	}
	if len(wrong) > 0 {
		return map[string]int{"lines": 0}, "", wrong
	}
	return map[string]int{"lines": len(lines)}, cli.Count(len(lines), "line"), nil
}

func TestAFileIsChecked(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{"good": "a\nb\n", "bad": "a\nbad\nbad\n", "gone": "gone"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	bad := filepath.Join(dir, "bad")
	for _, one := range []struct {
		args string
		code int
		out  string
		err  string
	}{
		{"good", 0, "2 lines, no mistakes\n", ""},
		{"good -o json", 0, `"lines": 2`, ""},
		{"good -o json", 0, `"mistakes": []`, ""},
		{"bad", cli.ExitNotAll, "", bad + ":2: bad\n" + bad + ":3: bad"},
		{"bad -o json", cli.ExitNotAll, `"text": "bad"`, ""},
		{"gone", cli.ExitUsage, "", "the file is gone"},
		{"absent", cli.ExitUsage, "", "absent"},
		{"good -o yaml", cli.ExitUsage, "", "yaml"},
	} {
		c := checks.New(&cobra.Command{SilenceErrors: true, SilenceUsage: true}, parse)
		var out strings.Builder
		c.SetOut(&out)
		c.SetArgs(strings.Fields(filepath.Join(dir, one.args)))
		err := c.Execute()
		var exit *cli.ExitError
		code := 0
		if errors.As(err, &exit) {
			code = exit.Code
		}
		if code != one.code || !strings.Contains(out.String(), one.out) ||
			one.err != "" && (err == nil || !strings.Contains(err.Error(), one.err)) {
			t.Errorf("%s: %d, %q, %v", one.args, code, out.String(), err)
		}
	}
}
