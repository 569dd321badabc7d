package tasks

import (
	"bytes"
	"testing"

	"muster/cli"
	"muster/testkit/apitest"
)

func TestLogsOnATerminalAreHarmless(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]string{
		"hello\x1b[2J\xff\r\nnext": `hello\x1b[2J\xff` + "\nnext\n",
		"":                         "",
		"ends\n":                   "ends\n",
	} {
		var out bytes.Buffer
		s := &cli.Session{Client: nil, Screen: &cli.Screen{Out: &out, OutTerm: true}}
		if err := showOutput(s.Screen, apitest.AJob, []byte(said)); err != nil || out.String() != want {
			t.Errorf("%q is shown as %q, %v, want %q", said, out.String(), err, want)
		}
	}
}
