package clitest

import (
	"bytes"
	"testing"
	"time"

	"muster/cli"
)

// NewClient is a client that loses its patience soon.
func NewClient(t *testing.T, url string) *cli.Client {
	t.Helper()
	c, err := cli.NewClient(url, "")
	if err != nil {
		t.Fatal(err)
	}
	c.Patience = cli.Patience{First: time.Millisecond, Most: 2 * time.Millisecond, Whole: 30 * time.Second}
	t.Cleanup(c.Close)
	return c
}

// NewSession is a session that writes to the buffers it returns.
func NewSession(c *cli.Client) (s *cli.Session, out, words *bytes.Buffer) {
	out, words = &bytes.Buffer{}, &bytes.Buffer{}
	return &cli.Session{Client: c, Screen: &cli.Screen{Out: out, Err: words, Width: func() int { return 80 },
		Height: func() int { return 24 }, Now: time.Now}}, out, words
}
