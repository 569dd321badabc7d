package main

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"muster/cli"
)

// muster runs a command against a server, as main does.
func muster(t *testing.T, url string, args ...string) (code int, out, words string) {
	t.Helper()
	return musterWith(t.Context(), url, args...)
}

func musterWith(ctx context.Context, url string, args ...string) (code int, out, words string) {
	var stdout, stderr bytes.Buffer
	root := newRoot()
	root.SetOut(&stdout)
	root.SetErr(&stderr)
	if url != "" {
		args = append(args, "--server", url)
	}
	root.SetArgs(args)
	code, err := cli.Execute(ctx, root)
	if err != nil {
		fmt.Fprintln(&stderr, err)
	}
	return code, stdout.String(), stderr.String()
}
