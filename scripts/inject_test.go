package scripts_test

import (
	"bytes"
	"context"
	"os/exec"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"muster/scripts"
)

// fragments are pieces of shell text, good and bad, to be put together at
// random. They call nothing but builtins and loop nowhere.
var fragments = []string{
	"{{v}}", "{{v}}", "{{v}}", "{{v}}", "'", `"`, `\`, "`", "$(", ")", "$((", "))", "${x:-", "${x#", "}",
	"$", " ", " ", "\n", "\\\n", ";", "&&", "|", "#", "=", "x=", "export x=", "printf %s ", "echo ", "<<E ",
	"<<'E' ", "<<-E", "\nE\n", "E", "(", "{ ", "; }", "case ", " in ", " in *) echo a;; esac", "if ", "then ",
	"; fi", "for x in ", "; do echo $x; done", "f() ", "2>&1", "!", "~", "*", "{{{{", "a", "1+", "[ ", " ]",
}

// attacks print a canary if any part of them is run, but do not hold it.
var attacks = []string{
	`printf %s%s CAN ARY`, `$(printf %s%s CAN ARY)`, "`printf %s%s CAN ARY`", `'; printf %s%s CAN ARY; '`,
	`"; printf %s%s CAN ARY; "`, "\nprintf %s%s CAN ARY\n", "\nE\nprintf %s%s CAN ARY\n", `\'; printf %s%s CAN ARY #`,
	`); printf %s%s CAN ARY; (`, `}; printf %s%s CAN ARY; {`, `)); printf %s%s CAN ARY; ((`, "; printf %s%s CAN ARY;",
	`;; esac; printf %s%s CAN ARY #`, "a'$(printf %s%s CAN ARY)'", `a"$(printf %s%s CAN ARY)"`,
}

// Whatever a runbook looks like: if Parse takes it, no value is run. Only eval
// and its like could, and no fragment is one.
func TestNoValueIsEverRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir() // a fragment may redirect into a file
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(rapid.SampledFrom(fragments), 1, 9).Draw(t, "parts")
		runbook, err := scripts.Parse("x", []byte(stepOf("echo "+strings.Join(parts, ""))))
		if err != nil {
			return
		}
		attack := rapid.SampledFrom(attacks).Draw(t, "attack")
		shell := shellOf(t, runbook, map[string]string{"v": attack})

		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		c := exec.CommandContext(ctx, "/bin/sh", "-c", "--", shell)
		c.Dir, c.Env = dir, []string{"PATH=/nowhere"}
		out, _ := c.CombinedOutput() // that it may fail is no matter
		if bytes.Contains(out, []byte("CANARY")) {
			t.Fatalf("the value was run by\n%s", shell)
		}
	})
}
